package collectives

import (
	"fmt"
	"slices"
	"sync"

	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// Settings are the settings of a Joiner.
type Settings struct {
	JoinConfig
	// Ranks are the ranks whose records come. Empty: all ranks.
	Ranks []int32
	// HideHosts keeps hosts out of the names of spans.
	HideHosts bool
	// Remote says that records come from other collectors, which send some of them again after they died. Each record counts once, as long as its collective is
	// remembered. A rank whose input nothing was heard of is told from one that hangs: see Input.Alive.
	Remote bool
	// Series bounds the series of a run's metrics.
	Series int
	// Conclusions are what was said of collectives that may be read again. nil: nobody remembers.
	Conclusions *Conclusions
	// OpenRun is told the first collective of a run, and each that began earlier; file is the first of the run's logs by name. It returns the span of the run, nil
	// where that was sent already. No function: no run has a span.
	OpenRun func(file string, start int64, source spans.TimeSource) *spans.RunSpan
}

// Joiner joins the ranks' records of collectives. H is what a record came by, and is given back when its collective leaves: a lent line, an offset. Its methods
// and the methods of its inputs are safe for concurrent use, but not two methods of one Input.
type Joiner[H any] struct {
	mu sync.Mutex // guards all below, and all that this reaches: runs, communicators, collectives that wait
	joiner
	held holds[H]
	came []H // scratch: the H values of the collective that leaves
}

// New makes a Joiner.
func New[H any](s Settings) *Joiner[H] {
	return &Joiner[H]{joiner: newJoiner(s)}
}

// Waiting is the memory of the collectives that wait, in bytes, about.
func (j *Joiner[H]) Waiting() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes
}

// Learned appends the points that a batch of collectives taught: scores of ranks, offsets of clocks, traffic of links. It is called once for each batch,
// when the batch is whole and before its spans are made: the first collective of a run that is sent opens the run.
func (j *Joiner[H]) Learned(points []Point, batch []*Collective) []Point {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.learned(points, batch)
}

// Free lets collectives that were taken be used again.
func (j *Joiner[H]) Free(batch []*Collective) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range batch {
		if cap(c.parts) <= usualParts {
			c.open.reset()
			j.opens.put(c.open)
			c.reset()
			j.free.put(c)
		}
	}
}

// Leftover returns an error that says what waits or is held; nil: nothing, as it must be when all records have left.
func (j *Joiner[H]) Leftover() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	tracks := 0
	for _, r := range j.runs {
		for _, c := range r.comms {
			for _, t := range append(c.tracks[:], c.all) {
				if t != nil {
					tracks += len(t.open) + len(t.seqs)
				}
			}
		}
	}
	if j.bytes == 0 && j.oldest == nil && j.newest == nil && j.again == nil && j.begun == 0 && j.held.used == 0 && tracks == 0 {
		return nil
	}
	return fmt.Errorf("%d bytes, %d in sequences, %d held, %d begun; oldest %p, newest %p, again %p",
		j.bytes, tracks, j.held.used, j.begun, j.oldest, j.newest, j.again)
}

// leave hands over the collectives that leave.
func (j *Joiner[H]) leave(take func(c *Collective, came []H)) {
	if len(j.leaving) == 0 {
		return
	}
	for _, c := range j.leaving {
		j.came = j.came[:0]
		for i := range c.parts {
			j.came = j.held.take(j.came, c.parts[i].held)
			c.parts[i].held = slot(len(j.came)) // holds nothing any more: for Records
		}
		take(c, j.came)
	}
	clear(j.came)
	clear(j.leaving)
	j.leaving = j.leaving[:0]
}

// Records gives each record of a collective that is being taken a place of its own: that which place returns of the range, among all that the collective came
// by, of what the record came by. The collective has the place of the first; false: there is no record.
func (c *Collective) Records(place func(from, to int) int) bool {
	from := 0
	for i := range c.parts {
		to := int(c.parts[i].held)
		at := place(from, to)
		if i == 0 {
			c.Place = at
		}
		c.parts[i].held = slot(at)
		from = to
	}
	c.placed = true
	return len(c.parts) > 0
}

// joiner is the part of a Joiner that does not depend on H. Its methods are called with Joiner.mu held; collectives that they let go of are in leaving.
type joiner struct {
	set   Settings
	ranks []int32 // each once; none: all

	names  spans.Interner
	runs   map[string]*run
	rows   map[rowKey]string
	ghosts ghosts

	sampler sampler
	hows    map[how]*how // each how once
	lastHow *how

	waiting
	heardOf    int64         // inputs that were not heard of since are taken to be dead, Unix ns
	remembered int64         // the memory of the communicators, in bytes
	ended      []*open       // in the order in which they ended
	leaving    []*Collective // those of them that are closed and judged
	opens      pool[open]
	free       pool[Collective]

	silent int // inputs that have said nothing: their ranks are not known yet
	begun  int // inputs with a record that goes on

	record   record // scratch, as all below
	arrivals []late.Arrival
	lateness []int64
	ends     []clocks.End
	next     []int32
}

func newJoiner(s Settings) joiner {
	return joiner{
		set: s, ranks: slices.Compact(slices.Sorted(slices.Values(s.Ranks))), runs: make(map[string]*run), rows: make(map[rowKey]string),
		sampler: newSampler(s.SampleRate), hows: make(map[how]*how), ghosts: ghosts{set: make(map[ghostKey]ghost)},
	}
}

const (
	maxFree    = 2048 // collectives
	perRoom    = 8    // that are allocated together
	usualParts = 64
)

// pool keeps what is used again. The zero value is ready.
type pool[T any] []*T

func (p *pool[T]) get() *T {
	if len(*p) == 0 {
		for more := make([]T, perRoom); len(more) > 0; more = more[1:] {
			*p = append(*p, &more[0])
		}
	}
	n := len(*p) - 1
	x := (*p)[n]
	*p = (*p)[:n]
	return x
}

func (p *pool[T]) put(x *T) {
	if len(*p) < maxFree {
		*p = append(*p, x)
	}
}

// add is the way of a record that was identified. It leaves at once, or waits in its collective for the records of the other ranks.
func (j *joiner) add(in *input, r *record) {
	switch {
	case r.track == nil:
		j.end(j.single(r), Complete)
	case r.op.Ordinal:
		j.by(byCount).join(in, r)
	default:
		j.by(byNumber).join(in, r)
	}
	j.lookAgain(againMost)
	j.close()
	j.bound()
}

// From says where the records of an Input are from.
type From struct {
	Run string
	// Path is the log's. Where the host is not known, its base stands for the clock.
	Path string
	// Family is the family of log formats. Each family is joined by itself: otherwise a collective in the logs of two tools would have each rank twice.
	Family string
	// OwnClock says that the times are not of the host's clock but of a clock of its own, such as a GPU's.
	OwnClock bool
	// Coarse says that the times are about when it was, as a watchdog sees them: they are not compared.
	Coarse bool
}

// Input is one of the streams that records come by, such as a file. While an input has said nothing its ranks are not known, and where the size of a
// communicator is not known either, its collectives wait for the input. The methods of one Input must not be called at the same time.
type Input[H any] struct {
	From From // to be complete before Add is called
	// Known says that the collectives of which all records are added while it is set were sent in an earlier life. They are judged, for what comes later is
	// compared with them, but not added up.
	Known bool
	of    *Joiner[H]
	take  func(c *Collective, came []H)
	input
}

// input is the part of an Input that does not depend on H.
type input struct {
	heard bool  // it said something, or has nothing to say
	alive int64 // when it was heard of last, Unix ns

	comms   map[string]*communicator
	comm    *communicator // the last one, of the id
	id      string
	sources []*source
}

// maxKnown bounds what an input remembers of communicators and sources; it may ask again.
const maxKnown = 256

// Input makes an input. take is given each collective that leaves with a call of the input's methods, whichever inputs its records came by, and the H values of
// its records (valid during the call). take is called with the Joiner locked and must not call it.
func (j *Joiner[H]) Input(from From, take func(c *Collective, came []H)) *Input[H] {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.silent++
	return &Input[H]{From: from, of: j, take: take, input: input{comms: make(map[string]*communicator)}}
}

// Heard says that the input has said something, or has nothing to say: nothing waits for it any more.
func (in *Input[H]) Heard() {
	if in.heard {
		return
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.of.hear(&in.input)
}

// Alive says at Unix ns at that the input is still read, also where it has nothing to say.
func (in *Input[H]) Alive(at int64) {
	in.Heard()
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.alive = max(in.alive, at)
}

// Begin says that a record has begun whose rest comes later: reading does not end before its End.
func (in *Input[H]) Begin() { in.unfinished(1) }

// End says that the record that had begun was added, or is given up.
func (in *Input[H]) End() { in.unfinished(-1) }

func (in *Input[H]) unfinished(n int) {
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.of.begun += n
}

// Add takes a rank's record of an operation, and came, the lines or offsets that it came by, read at Unix ns at. o is only read during the call. A line with
// the records of several ranks is added rank by rank, each time with the same came. false: the record had come before (see Settings.Remote), and came is not
// held.
func (in *Input[H]) Add(o *op.Op, came []H, at int64) bool {
	comm, src := in.communicator(o.Comm), in.source(o.Host, o.PID)
	j := in.of
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &j.record
	*r = record{part: part{src: src}, comm: comm, op: o, came: len(came), at: at, known: in.Known}
	if !j.identify(&in.input, r) {
		return false
	}
	r.held = j.held.put(came)
	j.add(&in.input, r)
	j.leave(in.take)
	return true
}

// Resume says that all was added again that had been read when what is Known was sent: collectives of which all records are Known were sent as they are, and
// what else comes of them is late.
func (in *Input[H]) Resume() {
	j := in.of
	j.mu.Lock()
	defer j.mu.Unlock()
	j.resume()
	j.leave(in.take)
}

// Expire lets go of collectives whose last record was read before the given Unix ns, the oldest first and about a batch of them. math.MaxInt64 says
// that reading has ended: then all leave, once no record is unfinished.
func (in *Input[H]) Expire(before int64) {
	j := in.of
	j.mu.Lock()
	defer j.mu.Unlock()
	j.expire(before)
	j.leave(in.take)
}

// communicator finds the communicator of an operation; mostly it is the same as for the operation before.
func (in *Input[H]) communicator(id []byte) *communicator {
	if in.comm != nil && in.id == string(id) {
		return in.comm
	}
	c := in.comms[string(id)]
	if c == nil {
		if len(in.comms) >= maxKnown {
			clear(in.comms)
		}
		in.of.mu.Lock()
		c = in.of.find(in.of.runOf(&in.From), commKey{in.From.Family, spans.Name(id)})
		in.of.mu.Unlock()
		in.comms[string(id)] = c
	}
	in.comm, in.id = c, string(id)
	return c
}

// source finds who wrote a record; mostly it is who wrote the one before.
func (in *Input[H]) source(host []byte, pid int64) *source {
	for _, s := range slices.Backward(in.sources) {
		if s.pid == pid && s.host == string(host) {
			return s
		}
	}
	if len(in.sources) >= maxKnown {
		in.sources = in.sources[:0]
	}
	in.of.mu.Lock()
	s := in.of.source(&in.From, host, pid)
	in.of.mu.Unlock()
	in.sources = append(in.sources, s)
	return s
}

// holds keeps what records came by (a lent line of a file, an offset of a topic) apart from what they say, so that only Joiner and Input depend on the type H.
// Freed slots are used again. The zero value is ready.
type holds[H any] struct {
	slots []hold[H]
	free  slot // the first slot that holds nothing
	used  int  // slots that hold something
}

type hold[H any] struct {
	held H
	next slot // the next slot of the same record; in a free slot the next free one
}

// slot is the number of a hold, counted from 1.
type slot int32

// nowhere is the slot of a record that came by nothing.
const nowhere slot = 0

// maxIdle bounds the slots that are kept while nothing is held.
const maxIdle = 1 << 16

// put holds the values that one record came by and returns their first slot.
func (h *holds[H]) put(held []H) slot {
	first := nowhere
	for _, one := range slices.Backward(held) {
		first = h.add(hold[H]{one, first})
	}
	return first
}

func (h *holds[H]) add(one hold[H]) slot {
	h.used++
	if h.free == nowhere {
		h.slots = append(h.slots, one)
		return slot(len(h.slots))
	}
	at := h.free
	s := &h.slots[at-1]
	h.free = s.next
	*s = one
	return at
}

// take appends the values held from a first slot on, in the order in which they were put, and frees the slots.
func (h *holds[H]) take(to []H, first slot) []H {
	for at := first; at != nowhere; {
		s := &h.slots[at-1]
		to = append(to, s.held)
		next := s.next
		*s = hold[H]{next: h.free}
		h.free = at
		at = next
		h.used--
	}
	if h.used == 0 && len(h.slots) > maxIdle {
		*h = holds[H]{}
	}
	return to
}

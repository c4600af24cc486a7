package collectives

import (
	"fmt"
	"maps"
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
	// Remote: records come from remote collectors, which repeat some of them after a crash. Each record counts once, as long as its collective is remembered. A
	// rank with a silent input is distinguished from a hanging one: see Input.Alive.
	Remote bool
	// Series bounds the series of a run's metrics.
	Series int
	// Conclusions are the judgements of collectives that may be read again. nil: none.
	Conclusions *Conclusions
	// OpenRun is called with the first collective of a run, and with each one that began earlier; file is the first of the run's logs by name. No function:
	// no run has a span.
	OpenRun func(file string, start int64, source spans.TimeSource)
}

// Joiner joins the ranks' records of collectives. H is the origin of a record, returned when its collective leaves: a lent line, an offset. Its methods and the
// methods of its inputs are safe for concurrent use, but not two methods of the same Input.
type Joiner[H any] struct {
	mu sync.Mutex // guards everything below: runs, communicators, waiting collectives
	joiner
	held origins[H]
	came []H // scratch: the origins of a leaving collective
}

// New makes a Joiner.
func New[H any](s Settings) *Joiner[H] {
	return &Joiner[H]{joiner: newJoiner(s)}
}

// Waiting returns the approximate memory of the waiting collectives, in bytes.
func (j *Joiner[H]) Waiting() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes
}

// Learned appends to points what a batch of collectives says about their runs: scores of ranks, offsets of clocks, traffic of links. It is called once per
// complete batch, before the spans are made: the first collective of a run opens the run (Settings.OpenRun).
func (j *Joiner[H]) Learned(points []Point, batch []*Collective) []Point {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.learned(points, batch)
}

// Free takes collectives back for reuse, once their spans are accepted. Collectives with many ranks are left to the garbage collector, since they need much
// memory and are rare.
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

// Leftover returns an error if anything is still waiting or held, for tests: after all records have left nothing may be.
func (j *Joiner[H]) Leftover() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	tracks := 0
	for _, r := range j.runs {
		for _, c := range r.comms {
			for _, t := range slices.AppendSeq(append(c.tracks[:], c.all), maps.Values(c.others)) {
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

// leave passes the leaving collectives to take, the function of an input, each with the origins of its records, and frees the slots of the origins.
func (j *Joiner[H]) leave(take func(c *Collective, came []H)) {
	if len(j.leaving) == 0 {
		return
	}
	for _, c := range j.leaving {
		j.came = j.came[:0]
		for i := range c.parts {
			j.came = j.held.take(j.came, c.parts[i].held)
			c.parts[i].held = slot(len(j.came)) // no slot any more: where in came the part's origins end, for Records
		}
		take(c, j.came)
	}
	clear(j.came)
	clear(j.leaving)
	j.leaving = j.leaving[:0]
}

// Records gives each record of a collective a place of its own in the batch; only the take function may call it. take got the origins of all records in one
// list: place is called with the range of each record's origins in this list, and returns the place of the record. The collective gets the place of the first
// record. false: the collective has no record.
func (c *Collective) Records(place func(from, to int) int) bool {
	from := 0
	for i := range c.parts {
		to := int(c.parts[i].held)
		index := place(from, to)
		if i == 0 {
			c.Place = index
		}
		c.parts[i].held = slot(index)
		from = to
	}
	c.placed = true
	return len(c.parts) > 0
}

// joiner is the part of a Joiner independent of H. Its methods are called with Joiner.mu held; collectives that end are in leaving.
type joiner struct {
	set   Settings
	ranks []int32 // each once; none: all

	names      spans.Interner
	runs       map[string]*run
	rows       map[rowKey]string
	departures departures

	sampler sampler
	hows    map[how]*how // each how once
	lastHow *how

	waiting
	aliveSince int64         // inputs silent since are taken to be dead, Unix ns
	remembered int64         // the memory of the communicators, in bytes
	ended      []*open       // in order of their ends
	leaving    []*Collective // the closed and judged ones
	opens      pool[open]
	free       pool[Collective]

	silent int // inputs that are not started (input.started): their ranks are unknown
	begun  int // inputs with an unfinished record

	record   record // scratch, as all below
	arrivals []late.Arrival
	lateness []int64
	ends     []clocks.End
	next     []int32
}

// newJoiner returns a joiner without collectives.
func newJoiner(s Settings) joiner {
	return joiner{
		set: s, ranks: slices.Compact(slices.Sorted(slices.Values(s.Ranks))), runs: make(map[string]*run), rows: make(map[rowKey]string),
		sampler: newSampler(s.SampleRate), hows: make(map[how]*how), departures: departures{set: make(map[departureKey]departure)},
	}
}

const (
	maxFree    = 2048 // collectives in a pool
	perRoom    = 8    // values allocated together
	usualParts = 64   // records: a collective with more is not recycled, and its memory is counted as it grows
)

// pool recycles values. The zero value is ready.
type pool[T any] []*T

// get takes a value out of the pool. If empty, the pool first allocates perRoom values at once.
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

// put puts an emptied value into the pool, unless the pool is full.
func (p *pool[T]) put(x *T) {
	if len(*p) < maxFree {
		*p = append(*p, x)
	}
}

// add processes an identified record: it leaves at once, or waits in its collective for the records of other ranks. Collectives that end, by this record or for
// lack of memory, are closed, and put into leaving.
func (j *joiner) add(in *input, r *record) {
	switch {
	case r.track == nil: // no rank shares the operation
		j.end(j.newSingle(r), Complete)
	case r.op.Ordinal:
		j.joiningOf(byCount).join(in, r)
	default:
		j.joiningOf(byNumber).join(in, r)
	}
	j.settleAgain(againMost)
	j.close()
	j.limitMemory()
}

// From says where the records of an Input are from.
type From struct {
	Run string
	// Path is the path of the log. The path names the clock of an unknown host; in ids only its base does.
	Path string
	// Family is the family of log formats. Each family is joined by itself: otherwise a collective in the logs of two tools would have each rank twice.
	Family string
	// OwnClock: the times are of a different clock from the host's, for example a GPU's.
	OwnClock bool
	// Coarse: the times are approximate, for example a watchdog's, and are not compared.
	Coarse bool
}

// Input is a stream of records, for example a file. The ranks of a silent input are unknown, and if the size of a communicator is unknown too, its collectives
// wait for the input. The methods of an Input must not be called concurrently.
type Input[H any] struct {
	From From // to be complete before Add is called
	// Known: collectives whose records are all added while Known is set were sent before a restart. They are judged, as a basis for later ones, but not added
	// up.
	Known bool
	of    *Joiner[H]
	take  func(c *Collective, came []H)
	input
}

// input is the part of an Input independent of H.
type input struct {
	// started: collectives no longer wait for the input's first record, because it has come (addRecord), or EndWait was called. Only methods of the input itself
	// set started, with Joiner.mu held; these methods are not called concurrently, so they may read started without the lock.
	started bool
	alive   int64 // time of the last record or heartbeat, Unix ns

	comms   map[string]*communicator
	comm    *communicator // the last one, of the id
	id      string
	sources []*source
}

// maxKnown bounds the communicators and sources cached in an input.
const maxKnown = 256

// Input makes an input. take is called with each collective that leaves in a call of the input's methods, whichever inputs its records came from, and with the
// origins of its records (valid during the call). take is called with the Joiner locked and must not call back.
func (j *Joiner[H]) Input(from From, take func(c *Collective, came []H)) *Input[H] {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.silent++
	return &Input[H]{From: from, of: j, take: take, input: input{comms: make(map[string]*communicator)}}
}

// EndWait ends the wait for the input's first record, which would tell the ranks of the input: the caller knows that none is coming, or that it would come too
// late. Collectives of an unknown number of ranks then wait for the other silent inputs only. After the first record, EndWait does nothing.
func (in *Input[H]) EndWait() {
	if in.started {
		return
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.of.startInput(&in.input)
}

// Alive records that the input is still read at a time, Unix ns, even without records.
func (in *Input[H]) Alive(at int64) {
	in.EndWait()
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.alive = max(in.alive, at)
}

// Begin counts an unfinished record, which is completed later: reading does not end before its End.
func (in *Input[H]) Begin() { in.addUnfinished(1) }

// End records that an unfinished record was added or given up.
func (in *Input[H]) End() { in.addUnfinished(-1) }

// addUnfinished adds n to the number of unfinished records.
func (in *Input[H]) addUnfinished(n int) {
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.of.begun += n
}

// Add takes the record of a rank, read at a time, Unix ns; came are its lines or offsets. o is only read during the call. A line with records of several ranks
// is added rank by rank, with the same came. false: a repeated record (see Settings.Remote), and came is not kept.
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

// Resume marks the end of the records read before the restart: collectives with only Known records were sent as they are, and their further records are late.
func (in *Input[H]) Resume() {
	j := in.of
	j.mu.Lock()
	defer j.mu.Unlock()
	j.resume()
	j.leave(in.take)
}

// Expire ends collectives whose last record was read before the given time, Unix ns, less a quarter of HangTimeout: the oldest first, about a batch of them per
// call. math.MaxInt64 means the end of reading: every collective leaves, once no record is unfinished.
func (in *Input[H]) Expire(before int64) {
	j := in.of
	j.mu.Lock()
	defer j.mu.Unlock()
	j.expire(before)
	j.leave(in.take)
}

// communicator returns the communicator of an id, made if absent. Mostly the id is that of the last record, else the map of the input has the communicator: the
// Joiner is locked only for an id new to the input.
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
		c = in.of.communicator(in.of.runOf(&in.From), commKey{in.From.Family, spans.Name(id)})
		in.of.mu.Unlock()
		in.comms[string(id)] = c
	}
	in.comm, in.id = c, string(id)
	return c
}

// source returns the writer of a record, a process on a host, made if absent. The latest writers are checked first.
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

// origins keeps the origins of records (a lent line of a file, an offset of a topic) apart from their content: only Joiner and Input depend on the type H.
// Freed slots are recycled. The zero value is ready.
type origins[H any] struct {
	slots []heldOrigin[H]
	free  slot // the first free slot
	used  int  // slots in use
}

type heldOrigin[H any] struct {
	held H
	next slot // the next slot of the same record; in a free slot the next free one
}

// slot is the number of a hold, counted from 1.
type slot int32

// noSlot is the slot of a record without an origin.
const noSlot slot = 0

// maxIdle bounds the memory of empty holds, in slots.
const maxIdle = 1 << 16

// put stores the origins of a record and returns the first of their slots.
func (h *origins[H]) put(held []H) slot {
	first := noSlot
	for _, one := range slices.Backward(held) {
		first = h.add(heldOrigin[H]{one, first})
	}
	return first
}

// add stores an origin in the first free slot, or in a new one.
func (h *origins[H]) add(one heldOrigin[H]) slot {
	h.used++
	if h.free == noSlot {
		h.slots = append(h.slots, one)
		return slot(len(h.slots))
	}
	at := h.free
	s := &h.slots[at-1]
	h.free = s.next
	*s = one
	return at
}

// take appends the origins of a record to the list to, in order, and frees their slots. first is the slot that put returned.
func (h *origins[H]) take(to []H, first slot) []H {
	for at := first; at != noSlot; {
		s := &h.slots[at-1]
		to = append(to, s.held)
		next := s.next
		*s = heldOrigin[H]{next: h.free}
		h.free = at
		at = next
		h.used--
	}
	if h.used == 0 && len(h.slots) > maxIdle {
		*h = origins[H]{}
	}
	return to
}

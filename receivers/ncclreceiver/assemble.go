package ncclreceiver

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives/baseline"
	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/internal/collectives/links"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// assembler joins the records of all streams. A handler calls it with its stream locked; it locks no stream.
type assembler struct {
	r *ncclReceiver

	mu    sync.Mutex
	names spans.Interner
	runs  map[string]*run
	rows  map[rowKey]string
	// The collectives that wait, in the order of their last record.
	oldest, newest *collective
	bytes          int64
	remembered     int64 // what the communicators take
	// silent is how many streams have said nothing: their ranks are not known yet. When none is any more, walk goes through the collectives that waited for them.
	silent int
	walk   *collective
	begun  int // streams with a record that goes on
	ghosts ghosts

	hows    map[how]*how
	lastHow *how

	arrivals []late.Arrival // scratch
	lateness []int64
	ends     []clocks.End
	next     []int32
}

// run is what is known of one run.
type run struct {
	scores    int             // series of nccl.rank.score
	id, file  string          // the file it was first seen in
	trace     pcommon.TraceID // of its span
	span      pcommon.SpanID
	opened    bool // its span is in a batch
	comms     map[commKey]*communicator
	clocks    map[string]int32
	hosts     []*source // the first of each clock
	nodes     map[string]int32
	nodeNames []string
	est       clocks.Estimator
	links     links.Links     // rank to rank
	between   links.Links     // node to node
	ranks     map[int32]int32 // node of a global rank
	closed    int
	hot, slow []string
	moved     bool               // links have changed since they were told
	since     int64              // the end of the first collective that had links
	toldAt    int64              // of the last points of links
	told      map[[2]int32]int64 // records of the pairs when they were told last
}

type commKey struct{ family, id string }

// communicator is what is known of one.
type communicator struct {
	run         *run
	family      string // of formats: each counts by itself
	id, name    string
	size        int32
	tracks      [op.Kinds]*track
	others      map[string]*track
	all         *track // where one sequence counts all operations
	seen        bits   // ranks that had a record
	known       int    // how many
	gone        bits   // of them those that were waited for in vain
	lost        int    // how many
	global      bool   // its ranks are global ones, of any number
	sparse      bool   // ranks may well have no record: VCCL logs sends between nodes, and only some of them
	settled     bool   // ranks that were never seen are not waited for any more
	completedAt int64  // when the last one that was complete began to be read
	window      *late.Window
	baselines   map[baselineKey]*baseline.Baseline
	hosts       []*source // by rank
	rows        []string  // by rank: the name of its spans
	closed      int
	reported    int   // closed, when the scores were told last
	scored      bool  // its ranks have series
	open        int   // collectives
	bytes       int64 // what it takes, about
	used        int64 // when its last record was read
	forgotten   bool  // there may be another in its place

	// Of logs whose numbers are counted.
	loose     []*collective // records that are not what the others have as their n-th, by when they ended
	progress  []int64       // by rank: the last end, Unix ns
	slowest   int32         // the rank that has come least far,
	slowestOf int           // of so many,
	horizon   int64         // to here
	sweepAt   int64         // the horizon at which to look at what waits again
}

type baselineKey struct {
	kind   op.Kind
	name   string
	bucket int
}

// track is one sequence of a communicator.
type track struct {
	key  ghostTrack
	open map[uint64]*collective
	seqs []uint64 // of open ones, in order
	last []lastSeq
	top  uint64
	any  bool
	// shaky is how many collectives must be whole, where numbers are counted, before anything is concluded from one.
	shaky int
}

type lastSeq struct {
	seq  uint64
	seen bool
}

func newAssembler(r *ncclReceiver) *assembler {
	return &assembler{r: r, runs: make(map[string]*run), rows: make(map[rowKey]string), hows: make(map[how]*how), ghosts: newGhosts()}
}

// stream takes note of a stream that has said nothing yet.
func (a *assembler) stream() {
	a.mu.Lock()
	a.silent++
	a.mu.Unlock()
}

// heard says that a stream has, or has nothing to say.
func (a *assembler) heard(h *handler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hear(h)
}

func (a *assembler) hear(h *handler) {
	if h.heard {
		return
	}
	h.heard = true
	if a.silent--; a.silent == 0 {
		a.walk = a.oldest
	}
}

// walkMost bounds what leaves with one record: it goes with the batch at hand.
const walkMost = 8

// recheck lets go of those that waited for streams that had said nothing.
func (a *assembler) recheck(h *handler, most int) {
	for ; a.walk != nil && most > 0; most-- {
		c := a.walk
		a.walk = c.newer
		a.settle(h, c)
	}
}

func (a *assembler) runOf(id, file string) *run {
	r := a.runs[id]
	if r == nil {
		trace, span := spans.RunIDs(id)
		r = &run{id: id, trace: trace, span: span, file: file, comms: make(map[commKey]*communicator), clocks: make(map[string]int32), nodes: make(map[string]int32), ranks: make(map[int32]int32), told: make(map[[2]int32]int64)}
		a.runs[id] = r
	}
	return r
}

// source makes one of a host, or of a file where the host is not known or the clock is that of its GPU: each is a clock.
func (a *assembler) source(runID string, host []byte, pid int64, file string, gpuClocks bool) *source {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.runOf(runID, file)
	name := a.names.Text(host)
	s := &source{host: name, pid: pid, name: name, key: name}
	if name == "" || gpuClocks {
		s.name, s.key = file, filepath.Base(file)
	}
	var ok bool
	if s.clock, ok = r.clocks[s.name]; !ok {
		s.clock = clocks.MaxClocks // is not looked at
		if len(r.hosts) < clocks.MaxClocks {
			s.clock = int32(len(r.hosts))
			r.hosts = append(r.hosts, s)
			r.clocks[s.name] = s.clock
		}
	}
	if s.node, ok = r.nodes[s.host]; !ok {
		s.node = op.Unknown
		if s.host != "" && len(r.nodeNames) < clocks.MaxClocks {
			s.node = int32(len(r.nodeNames))
			r.nodeNames = append(r.nodeNames, s.host)
			r.nodes[s.host] = s.node
		}
	}
	return s
}

// communicator finds that of an operation, or takes it up.
func (a *assembler) communicator(runID, file, family string, id []byte) *communicator {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(a.runOf(runID, file), commKey{family, spans.Name(id)})
}

func (a *assembler) find(r *run, key commKey) *communicator {
	c := r.comms[key]
	if c == nil {
		c = &communicator{run: r, family: key.family, id: key.id, baselines: make(map[baselineKey]*baseline.Baseline)}
		c.window = late.NewWindow(a.r.cfg.WindowSize)
		r.comms[key] = c
		a.remember(c, commBytes)
	}
	return c
}

func (a *assembler) remember(c *communicator, bytes int) {
	c.bytes += int64(bytes)
	a.remembered += int64(bytes)
}

// forget makes room for what is new: communicators that nothing waits in are forgotten, those first that were not heard of for longest.
func (a *assembler) forget() {
	var idle []*communicator
	for _, r := range a.runs {
		for _, c := range r.comms {
			if c.open == 0 {
				idle = append(idle, c)
			}
		}
	}
	slices.SortFunc(idle, func(x, y *communicator) int { return cmp.Compare(x.used, y.used) })
	for _, c := range idle {
		if a.remembered <= a.r.cfg.MaxStateBytes*3/4 {
			return
		}
		a.remembered -= c.bytes
		delete(c.run.comms, commKey{c.family, c.id})
		// Handlers and batches still have it.
		c.tracks, c.others, c.all, c.seen, c.gone, c.window, c.baselines, c.hosts, c.rows, c.progress = [op.Kinds]*track{}, nil, nil, nil, nil, nil, nil, nil, nil, nil
		c.forgotten = true
	}
}

// add takes an operation with the lines it was read from. What leaves goes into the handler's batch.
func (a *assembler) add(h *handler, comm *communicator, src *source, o *op.Op, lents []tail.Lent, at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if comm.forgotten {
		comm = a.find(comm.run, commKey{comm.family, comm.id})
	}
	comm.used = at
	if o.CommSize > 0 {
		comm.size = o.CommSize
	}
	comm.sparse = comm.sparse || o.Sends > 0
	comm.global = comm.global || o.Global
	if len(o.CommName) > 0 && string(o.CommName) != comm.name && string(o.CommName) != unnamed {
		comm.name = a.names.Text(o.CommName)
	}
	defer a.bound(h)
	defer a.recheck(h, walkMost)
	if !o.HasSeq || o.Rank < 0 || o.Rank > maxRank {
		c := a.r.collectives.Get()
		a.describe(c, comm, o, at)
		a.put(c, src, o, lents)
		a.close(h, c, complete)
		return
	}
	if o.Ordinal {
		a.count(h, comm, src, o, lents, at)
		return
	}
	t := a.track(comm, o)
	c := t.open[o.Seq]
	if c == nil {
		if sent, ok := a.ghosts.has(t.key, o.Seq); ok {
			c = a.r.collectives.Get()
			a.describe(c, comm, o, at)
			c.joined, c.dropped = true, !sent
			a.put(c, src, o, lents)
			a.close(h, c, tardy)
			return
		}
		c = a.open(t, comm, o, at)
	}
	a.touch(c, at)
	a.put(c, src, o, lents)
	words := len(c.has)
	first := c.has.set(o.Rank)
	if n := int64(len(c.has)-words) * 8; n > 0 {
		c.bytes += n
		a.bytes += n
	}
	if first {
		c.ranks++
	}
	a.see(comm, o.Rank, src)
	a.hear(h)
	a.pass(h, t, o.Rank, o.Seq, c, first)
	a.settle(h, c)
}

// bound lets go of what there is no room for.
func (a *assembler) bound(h *handler) {
	most := a.r.cfg.MaxStateBytes
	if a.remembered > most {
		a.forget()
	}
	for a.oldest != nil && max(a.bytes, a.remembered) > most {
		a.drop(h, a.oldest, evicted)
		if a.remembered > most {
			a.forget()
		}
	}
}

// unnamed is what Inspector writes where a communicator has no name.
const unnamed = "unknown"

// track finds the sequence of an operation.
func (a *assembler) track(comm *communicator, o *op.Op) *track {
	var at **track
	switch {
	case o.SeqOfAll:
		at = &comm.all
	case o.Kind != op.Other:
		at = &comm.tracks[o.Kind]
	default:
		t := comm.others[string(o.Name)]
		if t == nil {
			if comm.others == nil {
				comm.others = make(map[string]*track)
			}
			t = a.newTrack(comm)
			comm.others[a.names.Text(o.Name)] = t
		}
		return t
	}
	if *at == nil {
		*at = a.newTrack(comm)
	}
	return *at
}

func (a *assembler) newTrack(comm *communicator) *track {
	a.remember(comm, trackBytes)
	return &track{key: a.ghosts.track(), open: make(map[uint64]*collective)}
}

// open takes up a collective.
func (a *assembler) open(t *track, comm *communicator, o *op.Op, at int64) *collective {
	c := a.r.collectives.Get()
	a.describe(c, comm, o, at)
	c.joined, c.track = true, t
	if n := int(min(max(comm.size, int32(comm.known)), usualParts)); cap(c.parts) < n {
		c.parts = make([]part, 0, n)
	}
	if t.any && o.Seq > t.top+1 && !comm.sparse && !o.Ordinal {
		c.gap = o.Seq - t.top - 1
	}
	if t.any && o.Seq < t.top {
		t.passedBy(c, o)
	}
	t.top, t.any = max(t.top, o.Seq), true
	t.open[o.Seq] = c
	c.bytes = collectiveBytes + int64(cap(c.parts))*partBytes
	if n := len(t.seqs); n == 0 || t.seqs[n-1] < o.Seq {
		t.seqs = append(t.seqs, o.Seq)
	} else {
		i, _ := slices.BinarySearch(t.seqs, o.Seq)
		t.seqs = slices.Insert(t.seqs, i, o.Seq)
	}
	a.enlist(c)
	return c
}

// enlist puts a collective behind those that wait.
func (a *assembler) enlist(c *collective) {
	c.waiting = true
	c.comm.open++
	a.bytes += c.bytes
	c.older = a.newest
	if a.newest != nil {
		a.newest.newer = c
	} else {
		a.oldest = c
	}
	a.newest = c
}

// withdraw takes a collective from those that wait.
func (a *assembler) withdraw(c *collective) {
	a.unlink(c)
	a.bytes -= c.bytes
	c.comm.open--
	c.waiting = false
	if c.join == byTime {
		return // it is in no sequence
	}
	t := c.track
	delete(t.open, c.seq)
	if i, ok := slices.BinarySearch(t.seqs, c.seq); ok {
		if i == 0 {
			t.seqs = t.seqs[1:]
		} else {
			t.seqs = slices.Delete(t.seqs, i, i+1)
		}
	}
}

// passedBy counts the ranks that have gone on before c was taken up. Where its first rank has gone on too, numbers begin anew, as in a job that was started again.
func (t *track) passedBy(c *collective, o *op.Op) {
	if t.beyond(o.Rank, o.Seq) {
		return
	}
	for rank := range t.last {
		if t.beyond(int32(rank), o.Seq) {
			c.passed++
		}
	}
}

// describe writes down what its first record says of the whole.
func (a *assembler) describe(c *collective, comm *communicator, o *op.Op, at int64) {
	c.comm, c.run = comm, comm.run
	c.kind, c.seq, c.ordinal = o.Kind, o.Seq, o.Ordinal
	c.name, c.algorithm, c.protocol, c.datatype = a.text(o.Name), a.text(o.Algorithm), a.text(o.Protocol), a.text(o.Datatype)
	c.nodes, c.channels = o.Nodes, o.Channels
	c.size, c.total = o.Size, o.Total
	c.proxy, c.hasParent, c.parentKind, c.parentSeq = o.Proxy, o.HasParent && o.Rank >= 0, o.ParentKind, o.ParentSeq
	c.opened, c.last = at, at
}

// touch moves a collective to the end of those that wait.
func (a *assembler) touch(c *collective, at int64) {
	c.last = max(c.last, at) // streams are read beside each other
	if c == a.newest {
		return
	}
	a.unlink(c)
	c.older = a.newest
	a.newest.newer = c
	a.newest = c
}

func (a *assembler) unlink(c *collective) {
	if a.walk == c {
		a.walk = c.newer
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		a.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		a.newest = c.older
	}
	c.older, c.newer = nil, nil
}

// put adds a record to a collective.
func (a *assembler) put(c *collective, src *source, o *op.Op, lents []tail.Lent) {
	// In AllToAll each rank may send as much as it likes, and what went over a link is not the message.
	if o.Size >= 0 && c.size >= 0 && o.Size != c.size && o.Kind != op.AllToAll && o.Sends == 0 || o.Kind != c.kind {
		c.mismatch = c.joined
	}
	c.total = max(c.total, o.Total)
	c.channels = max(c.channels, o.Channels)
	c.errs += o.Errors
	c.retries += o.Retries
	c.parts = append(c.parts, part{
		src: src, rank: o.Rank, how: a.how(o), state: o.State, start: o.Start, end: o.End, duration: o.Duration, late: op.Unknown,
		reportedAlg: o.ReportedAlg, reportedBus: o.ReportedBus,
	})
	p := &c.parts[len(c.parts)-1]
	bytes := int64(lentBytes)
	if n := len(c.parts); n > usualParts {
		bytes += partBytes
	}
	if len(lents) > 0 {
		p.lent = lents[0]
	}
	if p.more = a.more(o, lents); p.more != nil {
		bytes += moreBytes + int64(len(p.more.details))*detailBytes + int64(len(lents))*16
	}
	c.bytes += bytes
	if c.track != nil {
		a.bytes += bytes
	}
}

// text is one string for equal bytes.
func (a *assembler) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return a.names.Text(b)
}

// how finds what the record has in common with others; mostly it is that of the one before.
func (a *assembler) how(o *op.Op) *how {
	h := a.lastHow
	if h != nil && h.timing == string(o.Timing) && h.time == o.Time && h.global == o.Global && h.waits == o.Waits && h.synthetic == (o.Start == 0) && h.unit == o.ReportedUnit {
		return h
	}
	key := how{global: o.Global, waits: o.Waits, synthetic: o.Start == 0, time: o.Time, timing: a.text(o.Timing), unit: o.ReportedUnit}
	h = a.hows[key]
	if h == nil {
		if len(a.hows) >= maxKnown {
			clear(a.hows)
		}
		h = &key
		a.hows[key] = h
	}
	a.lastHow = h
	return h
}

// more copies what few records have; nil: this one has nothing of it.
func (a *assembler) more(o *op.Op, lents []tail.Lent) *more {
	if len(lents) <= 1 && o.Peer < 0 && o.Source < 0 && o.Channel < 0 && o.Stream < 0 && o.Errors == 0 && o.Retries == 0 && o.Sends == 0 && len(o.Details) == 0 && !o.TimedOut {
		return nil
	}
	m := &more{
		peer: o.Peer, sourceRank: o.Source, destRank: o.Destination, channel: o.Channel, stream: o.Stream, errors: o.Errors, retries: o.Retries,
		timedOut: o.TimedOut, sends: o.Sends, linkBandwidth: o.LinkBandwidth, linkWorst: o.LinkBandwidthWorst,
	}
	if len(lents) > 1 {
		m.lents = append([]tail.Lent(nil), lents[1:]...)
	}
	if len(o.Details) > 0 {
		m.details = make([]detail, len(o.Details))
		for i := range o.Details {
			d := &o.Details[i]
			m.details[i] = detail{
				name: d.Name, direction: d.Direction, operation: spans.Name(d.Operation), start: d.Start, end: d.End, duration: d.Duration, size: d.Size,
				channel: d.Channel, peer: d.Peer, step: d.Step, parent: d.Under,
			}
		}
	}
	return m
}

// rowKey is what a rank's spans are named by.
type rowKey struct {
	rank int32
	host string
}

// maxRows bounds the names of ranks' spans: Jaeger lists them as operations, and whoever makes metrics of spans has series of them.
const maxRows = 4096

// row names the spans of a rank. Beyond so many all have one name.
func (a *assembler) row(rank int32, host string) string {
	if a.r.cfg.Redact.HashHosts {
		host = "" // the hash is in the attributes
	}
	key := rowKey{rank, host}
	name, ok := a.rows[key]
	if !ok {
		if name = spans.SpanNCCLRank; len(a.rows) < maxRows {
			name = spans.NCCLRankName(rank, host)
			a.rows[key] = name
		}
	}
	return name
}

// see takes note of a rank of a communicator.
func (a *assembler) see(comm *communicator, rank int32, src *source) {
	if comm.seen.set(rank) {
		comm.known++
		if n := int(rank) + 1 - len(comm.hosts); n > 0 {
			comm.hosts = append(comm.hosts, make([]*source, n)...)
			comm.rows = append(comm.rows, make([]string, n)...)
			a.remember(comm, 33*n)
		}
		a.remember(comm, rankBytes+rankWindowBytes*a.r.cfg.WindowSize)
	}
	if before := comm.hosts[rank]; before == nil || before.host != src.host {
		comm.rows[rank] = a.row(rank, src.host)
	}
	comm.hosts[rank] = src
	if comm.gone.has(rank) {
		comm.gone.unset(rank)
		comm.lost--
	}
}

// pass takes note that a rank has gone on to seq: what it left out does not come any more. Ranks log what they do in order.
// Where ranks have as many records of a collective as links, all have come once the rank goes on.
func (a *assembler) pass(h *handler, t *track, rank int32, seq uint64, c *collective, first bool) {
	sparse := c.comm.sparse
	if n := int(rank) + 1 - len(t.last); n > 0 {
		t.last = append(t.last, make([]lastSeq, n)...)
		a.remember(c.comm, 16*n)
	}
	before := t.last[rank]
	if before.seen && seq <= before.seq {
		if first && !sparse && c.passed > 0 && seq < before.seq {
			c.passed-- // it does come
		}
		return
	}
	t.last[rank] = lastSeq{seq, true}
	next := before.seq + 1 // of those that are passed now
	if sparse {
		next = before.seq
	}
	from := 0
	if before.seen {
		if seq == next {
			return
		}
		from, _ = slices.BinarySearch(t.seqs, next)
	}
	for i := from; i < len(t.seqs) && t.seqs[i] < seq; {
		o := t.open[t.seqs[i]]
		if sparse || !o.has.has(rank) {
			o.passed++
			if a.full(o) {
				a.close(h, o, a.outcome(o)) // takes it out of seqs
				continue
			}
		}
		i++
	}
}

// full says whether no more records are to be expected.
func (a *assembler) full(c *collective) bool {
	comm := c.comm
	need := comm.known - comm.lost
	switch {
	case comm.sparse:
		return a.silent == 0 && c.passed >= need
	case comm.settled:
	case comm.size > 0:
		need = max(a.r.ranksOf(comm.size), comm.known) - comm.lost // what the log says may be less than what it has
	case a.silent > 0:
		return false
	}
	return c.ranks+c.passed >= need
}

func (a *assembler) outcome(c *collective) outcome {
	switch {
	case c.comm.sparse:
	case c.passed > 0 && c.ranks < c.comm.known-c.comm.lost:
		return gap
	case c.comm.lost > 0:
		return gone
	}
	return complete
}

// drop lets go of a collective that is not whole.
func (a *assembler) drop(h *handler, c *collective, why outcome) {
	if c.join == byNumber {
		a.close(h, c, why)
	} else {
		a.giveUp(h, c, why)
	}
}

// expireMost bounds what one call of expire lets go, in records: a batch.
const expireMost = 2_000

// unfinished counts the streams with a record that goes on.
func (a *assembler) unfinished(n int) {
	a.mu.Lock()
	a.begun += n
	a.mu.Unlock()
}

// expire lets go of the collectives whose last record was read before the given time.
func (a *assembler) expire(h *handler, before int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	why := timedOut
	if before == math.MaxInt64 { // reading ends: first the streams end what they have begun
		if why = ended; a.begun > 0 {
			return
		}
	} else {
		before -= a.r.cfg.HangTimeout.Nanoseconds() / 4 // what streams have begun ends a little before
	}
	a.recheck(h, expireMost/usualParts)
	for records := 0; a.oldest != nil && a.oldest.last < before && records < expireMost; {
		records += len(a.oldest.parts)
		a.drop(h, a.oldest, why)
	}
}

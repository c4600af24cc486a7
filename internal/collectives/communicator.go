package collectives

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/collectives/baseline"
	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/internal/collectives/links"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// run is the state of a training run: its communicators, clocks and links.
type run struct {
	scores          int // number of its series of nccl.rank.score
	id              string
	file            string          // the first of its logs, by name
	trace           pcommon.TraceID // of its span
	span            pcommon.SpanID
	began           int64 // the earliest start of a collective sent, Unix ns; math.MaxInt64: none yet
	comms           map[commKey]*communicator
	clocks          map[string]int32 // source.clock by source.name
	hosts           []*source        // the first source of each clock
	nodes           map[string]int32 // source.node by host
	nodeNames       []string         // the hosts, by source.node
	est             clocks.Estimator
	links           links.Links        // rank to rank, by number: ranks of several communicators share links where the log lacks global ranks
	between         links.Links        // node to node
	ranks           map[int32]int32    // node of a global rank (how.global)
	closed          int                // number of collectives closed
	moved           bool               // links have changed since the last report
	since           int64              // the start of the counts of links: the end of a collective of the first batch with traffic, Unix ns
	reportedAt      int64              // time of the last report of links, Unix ns
	reportedRecords map[[2]int32]int64 // records of the pairs in the last report
}

// commKey identifies a communicator of a run. Each family of log formats has communicators of its own (From.Family).
type commKey struct{ family, id string }

// communicator is the state of a communicator over all its collectives: its sequences of numbers, its ranks, and the basis of judgements.
type communicator struct {
	run         *run
	family      string // family of formats: each counts by itself
	id, name    string
	size        int32             // ranks, as logged; 0: unknown
	tracks      [op.Kinds]*track  // by operation
	others      map[string]*track // of op.Other, by name
	all         *track            // for a single sequence that counts all operations
	seen        bits              // ranks with a record
	known       int               // how many
	gone        bits              // ranks with an earlier record, given up since
	lost        int               // how many
	global      bool              // its ranks are global ranks: a number may be beyond size
	sparse      bool              // ranks may lack records without a fault: VCCL logs sends between nodes, and only some of them
	settled     bool              // unseen ranks are not waited for any more
	completedAt int64             // when the first record of the last complete collective was read
	window      *late.Window
	baselines   map[baselineKey]*baseline.Baseline
	nodes       map[int32]int32 // node of a rank; in a communicator of global ranks run.ranks has the nodes
	hosts       []*source       // by rank
	inputs      []*input        // by rank, to know whose readers are alive (Settings.Remote)
	rows        []string        // by rank: the name of its spans
	closed      int             // number of collectives closed
	reported    int             // closed at the last report of scores
	scored      bool            // its ranks have series
	open        int             // number of collectives that wait
	bytes       int64           // memory, about
	used        int64           // when its last record was read
	forgotten   bool            // dropped; another communicator may have its place

	counted
}

// baselineKey identifies bandwidths that compare with each other.
type baselineKey struct {
	kind   op.Kind
	name   string // as logged, for op.Other
	bucket int    // baseline.Bucket of the size
}

// track is a sequence of a communicator: its collectives of one operation, or all its collectives if the log counts them together.
type track struct {
	key  trackKey
	open map[uint64]*open // by number
	seqs []uint64         // of open collectives, in order
	last []lastSeq        // by rank
	top  uint64           // the highest number until now
	any  bool             // false: no number yet, top means nothing
	// again: top is of a record read again.
	again bool
	// shaky is the number of complete collectives still required, with counted numbers, before any conclusion; −1: the latest allowed one.
	shaky int
}

// lastSeq is how far a rank has come in a track.
type lastSeq struct {
	seq  uint64 // the highest number of its records
	seen bool   // false: the rank has no record yet
}

// The memory of a communicator's state, about, in bytes: itself, each sequence, each rank, and each rank in each collective of the window.
const (
	commBytes       = 1600
	trackBytes      = 300
	rankBytes       = 250
	rankWindowBytes = 12
	rankSlotBytes   = 33 // of each rank up to the largest: its place in hosts and rows
	lastSeqBytes    = 16
	baselineBytes   = 16 // of each collective of the window
	nodeBytes       = 24 // of each rank in nodes
)

// isBeyond reports whether a rank has a record with a higher number than seq.
func (t *track) isBeyond(rank int32, seq uint64) bool {
	return int(rank) < len(t.last) && t.last[rank].seen && t.last[rank].seq > seq
}

// noteRank records that the communicator has the rank of a record, and where the rank runs. A rank that was given up is waited for again.
func (j *joiner) noteRank(in *input, r *record) {
	comm, rank, src := r.comm, r.rank, r.src
	if comm.seen.set(rank) {
		comm.known++
		if n := int(rank) + 1 - len(comm.hosts); n > 0 { // room in the lists by rank, up to this rank
			comm.hosts = append(comm.hosts, make([]*source, n)...)
			comm.rows = append(comm.rows, make([]string, n)...)
			if j.set.Remote {
				comm.inputs = append(comm.inputs, make([]*input, n)...)
			}
			j.countMemory(comm, rankSlotBytes*n)
		}
		j.countMemory(comm, rankBytes+rankWindowBytes*j.set.WindowSize)
	}
	if before := comm.hosts[rank]; before == nil || before.host != src.host {
		comm.rows[rank] = j.rankSpanName(rank, src.host)
	}
	comm.hosts[rank] = src
	if j.set.Remote {
		comm.inputs[rank] = in
	}
	if comm.gone.has(rank) {
		comm.gone.unset(rank)
		comm.lost--
	}
}

// hostOf returns the host of a rank of the communicator; empty: unknown.
func (comm *communicator) hostOf(rank int32) string {
	if int(rank) < len(comm.hosts) && comm.hosts[rank] != nil {
		return comm.hosts[rank].host
	}
	return ""
}

// ranksOf returns how many ranks of a communicator of the given size have logs that are read here (Settings.Ranks).
func (j *joiner) ranksOf(size int32) int {
	if len(j.ranks) == 0 {
		return int(size)
	}
	n := 0
	for _, rank := range j.ranks {
		if rank < size {
			n++
		}
	}
	return n
}

// full reports whether no more records of a collective are expected: each rank of the communicator has a record here, has gone on without one, or was given up.
func (j *joiner) full(c *open) bool {
	comm := c.comm
	need := comm.known - comm.lost
	switch {
	case comm.sparse: // a rank may have more records, one per link, until it goes on
		return j.silent == 0 && c.passed >= need
	case comm.settled: // need has only ranks with a record: the others were waited for in vain
	case comm.size > 0:
		need = max(j.ranksOf(comm.size), comm.known) - comm.lost // the size in the log may be smaller than the number of ranks with records
	case j.silent > 0: // the size is unknown, and a silent input may have another rank
		return false
	}
	have := c.ranks + c.passed
	return have >= need && (comm.lost == 0 || have-c.lostLater() >= need)
}

// lostLater returns how many of the ranks counted in c.ranks and c.passed were given up later. full waits for the remaining ranks only, and subtracts the
// result.
func (c *open) lostLater() (n int) {
	passed := 0
	for rank := range int32(len(c.comm.gone) * 64) {
		switch {
		case !c.comm.gone.has(rank):
		case c.has.has(rank):
			n++
		case c.track.isBeyond(rank, c.seq):
			passed++
		}
	}
	// After a restart of the numbers, track.last still has numbers from before: ranks are beyond seq that are not in c.passed (passedBy).
	return n + min(passed, c.passed)
}

// whyFull returns the outcome of a full collective: Complete, Gap or Gone.
func (c *open) whyFull() Outcome {
	switch {
	case c.comm.sparse: // ranks without a record are normal
	case c.passed > 0 && c.ranks < c.comm.known-c.comm.lost: // some of the ranks not given up have no record, and have gone on
		return Gap
	case c.comm.lost > 0 && c.ranks < c.comm.known:
		return Gone
	}
	return Complete
}

// giveUpRank gives up a rank: collectives no longer wait for its records, until noteRank.
func (comm *communicator) giveUpRank(rank int32) {
	if !comm.gone.has(rank) {
		comm.gone.set(rank)
		comm.lost++
	}
}

// rowKey is the key of the name of a rank's spans.
type rowKey struct {
	rank int32
	host string
}

// maxRows bounds the names of ranks' spans: Jaeger lists them as operations, and metrics made of spans have a series for each.
const maxRows = 4096

// rankSpanName returns the name of the spans of a rank, with the rank and the host: Jaeger shows the name at the left. Beyond maxRows names, further ranks
// share one name.
func (j *joiner) rankSpanName(rank int32, host string) string {
	if j.set.HideHosts {
		host = ""
	}
	key := rowKey{rank, host}
	name, ok := j.rows[key]
	if !ok {
		name = spans.SpanNCCLRank
		if len(j.rows) < maxRows {
			name = spans.NCCLRankName(rank, host)
			j.rows[key] = name
		}
	}
	return name
}

// countMemory adds to the memory counted for a communicator and for all communicators, in bytes.
func (j *joiner) countMemory(c *communicator, bytes int) {
	c.bytes += int64(bytes)
	j.remembered += int64(bytes)
}

// dropIdle drops communicators without open collectives, the least recently used first, when the memory of all exceeds MaxStateBytes. It frees memory down to
// three quarters of the limit, so that the next communicator does not need another search.
func (j *joiner) dropIdle() {
	if j.remembered <= j.set.MaxStateBytes {
		return
	}
	var idle []*communicator
	for _, r := range j.runs {
		for _, c := range r.comms {
			if c.open == 0 {
				idle = append(idle, c)
			}
		}
	}
	slices.SortFunc(idle, func(x, y *communicator) int { return cmp.Compare(x.used, y.used) })
	for _, c := range idle {
		if j.remembered <= j.set.MaxStateBytes*3/4 {
			return
		}
		j.remembered -= c.bytes
		delete(c.run.comms, commKey{c.family, c.id})
		// Inputs and collectives that have left still refer to c, and would keep its memory in use.
		c.tracks, c.others, c.all, c.seen, c.gone, c.window, c.baselines = [op.Kinds]*track{}, nil, nil, nil, nil, nil, nil
		c.nodes, c.hosts, c.inputs, c.rows, c.progress = nil, nil, nil, nil, nil
		c.forgotten = true
	}
}

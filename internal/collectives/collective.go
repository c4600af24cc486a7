package collectives

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// MaxRank bounds the ranks that are joined: the record of a rank with a larger number leaves alone.
const MaxRank = 1<<16 - 1

// Collective has the ranks' records of one collective, or the single record of an operation that is not joined, and the conclusions.
type Collective struct {
	judged
	// Place is set by the taker: the place of the collective in its batch.
	Place   int
	placed  bool // Records gave each record a place of its own, in part.held
	crowded bool // the trace has no room for all spans: some are summed up (fit.go)
}

// open is a collective that waits for records.
type open struct {
	comm  *communicator
	track *track // the sequence with its number; nil: none, as of an operation that is not joined, and of a late record
	run   *run

	// The fields of op.Op of the same names.
	kind                          op.Kind
	name                          string
	seq                           uint64
	seqOfAll                      bool // the ranks share seq (op.Op.SeqOfAll), whatever the operation
	joined                        bool // false: a single span, without a collective around the record
	ordinal                       bool // seq is counted (op.Op.Ordinal)
	proxy, hasParent              bool // of a network proxy, for the collective of parentKind and parentSeq
	parentKind                    op.Kind
	parentSeq                     uint64
	algorithm, protocol, datatype string
	nodes, channels               int32
	size, total                   int64

	parts         []part // the records
	has           bits   // ranks with a record
	ranks         int    // distinct ranks
	passed        int    // known ranks that have gone on without a record here; in a sparse communicator those with a record too
	gap           uint64 // numbers between the highest number before and this collective's: their records are nowhere
	opened, last  int64  // when the first and the last record were read, Unix ns
	bytes         int64  // memory, about
	older, newer  *open  // in the order of last
	waiting       bool   // in the list of waiting collectives
	mismatch      bool   // the ranks disagree about the operation or the size
	errs, retries int64  // of all records together
	known         bool   // all records were sent before a restart
	logged        int64  // the latest logged end of a record, Unix ns
	join          joinKind
	when          extent  // starts and ends of the records; unless joined by number
	whole         bool    // has all ranks, as far as known without a number
	unsent        bool    // of a late record: the root that left was not drawn
	rootID        *rootID // of a late record: the root that left, if an id decided its trace
	outcome       Outcome
}

// closed is an ended collective: its missing records, ids, times and bandwidths.
type closed struct {
	*open

	sure               bool // its records are certainly one collective
	commName           string
	commSize           int32 // ranks; 0: unknown
	trace              pcommon.TraceID
	byID               bool           // an id in the log decided the trace
	id, parent         pcommon.SpanID // of the root span
	missing            []int32        // the first MaxListed ranks without a record
	stuck              []int32        // the first MaxListed ranks whose record has no end
	missingCount       int
	unheard            []int32 // missing ranks whose input is silent
	hang               bool
	waited             int64         // how long missing ranks were waited for before they were given up, ns; 0: not given up here
	start, end         int64         // of all records together, Unix ns
	duration, transfer int64         // of the rank that waited longest, and of the rank that came last, ns; op.Unknown
	factor             float64       // bus bandwidth / algorithm bandwidth (busFactor); NaN: none
	alg, bus           float64       // algorithm and bus bandwidth of the transfer, By/s; NaN: not known
	busMean            float64       // mean of the ranks' own bus bandwidths, waiting included; NaN: not known
	disagreement       float64       // the largest of the ranks' (see disagreementOf)
	offsets            []clockOffset // of the clocks in parts, as far as estimated
	reference          string        // name of the clock that offsets refer to
	corrected          bool          // the offsets were taken from the times
}

// judged is a collective compared with earlier ones: its late ranks, slow bandwidth and slow links.
type judged struct {
	closed

	undrawn             bool       // by SampleRate
	state               string     // tracestate of its spans; empty: all are drawn, or this one is not, or a late record
	baseline, deviation float64    // median of earlier bandwidths, By/s, and how far below (baseline.Judgement); NaN: the bandwidth is not low
	latest              int        // index in parts of the last to arrive; -1: none
	lateMax, lateCost   int64      // how late the last came, ns, and the time lost by the others, rank-ns
	slow                []slowRank // the stragglers of the communicator, worst first
	slowest             int        // index in slow of who was late here, or is named from here on; -1: none
	newlySlow           bool       // one of slow is new
	over                []slowRank // ranks that are no longer slow
	hotLinks, slowLinks []string   // names of links, "3→4"; only of each linksEvery-th collective of a run
}

// part is a rank's record of a collective.
type part struct {
	held                 slot // first slot of its origins in holds; after leave see Collective.Records
	rank                 int32
	src                  *source
	more                 *more // nil: its rarely used fields are all empty
	how                  *how
	again                int32 // for a rank with several records: how many come before
	state                op.State
	left, bare, plain    bool    // no room in the trace for its span, for its details, for its phases
	start, end, duration int64   // Unix ns (0: unknown until time), ns (op.Unknown)
	late                 int64   // ns behind the first to arrive; op.Unknown
	reportedAlg          float64 // as logged, By/s; NaN: absent
	reportedBus          float64
	name                 string // of its span
}

// how has the fields with few different values: records with equal fields share one how.
type how struct {
	global, waits bool // op.Op.Global and op.Op.Waits
	synthetic     bool // the log has no clock of the operation: the end is about the time of writing
	time          spans.TimeSource
	timing, unit  string // op.Op.Timing and op.Op.ReportedUnit
}

// more has rarely used fields, of op.Op but for came and id.
type more struct {
	came                 int // number of lines or offsets that the record came by
	peer                 int32
	sourceRank, destRank int32
	channel              int32
	stream               int64
	errors, retries      int64
	timedOut             bool
	sends                int64
	linkBandwidth        float64
	linkWorst            float64
	details              []detail
	id                   pcommon.SpanID // of the rank's span; empty: by rank
	// By the ids in the record; empty: none. traceText is the id of the trace as logged.
	trace     pcommon.TraceID
	parent    pcommon.SpanID
	traceText string
}

type detail struct {
	name, direction, operation  string
	start, end, duration, size  int64
	channel, peer, step, parent int32
}

// source is who wrote records: a process on a host, or a file of an unknown host.
type source struct {
	host  string // empty: unknown
	pid   int64
	clock int32  // number of its clock in the run's estimator
	name  string // of the clock: the host, or the path of the file
	key   string // as name, but without the file's folder: the same wherever the log lies
	node  int32  // the host's number; op.Unknown
	// coarse: its times are not compared (From.Coarse).
	coarse bool
}

// slowRank is a straggler, as stored but for its host.
type slowRank struct {
	Rank       int32
	Late, Cost int64   `json:",omitempty"` // ns
	Score      float64 `json:",omitempty"`
	host       string
}

// clockOffset is how much a clock is ahead of the reference, ns.
type clockOffset struct {
	clock               int32
	offset, uncertainty float64
}

// Outcome is why a collective left.
type Outcome uint8

// The outcomes.
const (
	Complete Outcome = iota // all ranks have a record
	Gap                     // missing ranks have gone on
	Gone                    // missing ranks were given up before
	TimedOut                // no record came for HangTimeout
	Unheard                 // like TimedOut, but the reader of a missing rank's log, at least of one, is silent too
	Evicted                 // no room was left
	Ended                   // reading ended
	Late                    // a record of a collective that has already left
	Outcomes
)

// reasons are spans.AttrIncompleteReason by outcome; Complete and Late have none.
var reasons = [Outcomes]string{
	Gap: spans.NCCLIncompleteGap, Gone: spans.NCCLIncompleteGone, TimedOut: spans.NCCLIncompleteTimeout, Unheard: spans.NCCLIncompleteUnheard,
	Evicted: spans.NCCLIncompleteEvicted, Ended: spans.NCCLIncompleteEnd,
}

// String returns the outcome for metrics.
func (o Outcome) String() string {
	switch o {
	case Complete:
		return "complete"
	case Late:
		return "late"
	case Gap, Gone, TimedOut, Unheard, Evicted, Ended, Outcomes:
	}
	return reasons[o]
}

// Found is how many ranks were found for a collective joined by time.
type Found uint8

// All ranks, some, or a single one without a match.
const (
	FoundAll Found = iota
	FoundSome
	FoundOne
	Founds
)

// String returns the value for metrics.
func (f Found) String() string { return [...]string{"all", "some", "one"}[f] }

// Run returns the id of the run.
func (c *Collective) Run() string { return c.run.id }

// Counts are the collectives and records by outcome.
type Counts struct {
	Left    [Outcomes]int64 // collectives and single operations, but not the operations of proxies
	Found   [Founds]int64   // collectives joined by time
	Sampled int64           // records of collectives not drawn because of JoinConfig.SampleRate
}

// Count counts the outcomes of a batch of collectives, for the metrics of the component that joined them.
func Count(batch []*Collective) (n Counts) {
	for _, c := range batch {
		if !c.proxy {
			n.Left[c.outcome]++
		}
		if c.join == byTime {
			n.Found[c.found()]++
		}
		if c.undrawn {
			n.Sampled += int64(len(c.parts))
		}
	}
	return n
}

// found returns how many ranks were found for a collective joined by time.
func (c *open) found() Found {
	switch {
	case c.whole:
		return FoundAll
	case len(c.parts) > 1:
		return FoundSome
	}
	return FoundOne
}

// reset empties the collective for reuse, and keeps the memory of its lists.
func (c *open) reset() {
	clear(c.parts)
	clear(c.has)
	*c = open{parts: c.parts[:0], has: c.has[:0]}
}

// reset empties the Collective for reuse, and keeps the memory of its lists.
func (c *Collective) reset() {
	*c = Collective{judged: judged{
		closed: closed{missing: c.missing[:0], unheard: c.unheard[:0], stuck: c.stuck[:0], offsets: c.offsets[:0]},
		slow:   c.slow[:0], over: c.over[:0],
	}}
}

// unconfirmed reports whether the collective was joined by counting or by time and is not complete: its records may be of several collectives.
func (c *open) unconfirmed() bool { return c.join != byNumber && !c.whole }

// operation returns the name of the operation: the name of its kind in NCCL, or of an unknown kind the logged name.
func (c *open) operation() string {
	if c.kind == op.Other {
		return c.name
	}
	return c.kind.String()
}

// bits is a set of ranks: rank i is bit i%64 of word i/64.
type bits []uint64

// has reports whether rank i is in the set.
func (b bits) has(i int32) bool { return int(i>>6) < len(b) && b[i>>6]>>(uint(i)&63)&1 == 1 }

// set adds i to the set, and reports whether i is new.
func (b *bits) set(i int32) bool {
	for int(i>>6) >= len(*b) {
		*b = append(*b, 0)
	}
	old := (*b)[i>>6]
	(*b)[i>>6] = old | 1<<(uint(i)&63)
	return (*b)[i>>6] != old
}

// unset removes rank i from the set.
func (b bits) unset(i int32) {
	if int(i>>6) < len(b) {
		b[i>>6] &^= 1 << (uint(i) & 63)
	}
}

// union returns a new set with the ranks of both.
func (b bits) union(o bits) bits {
	out := make(bits, max(len(b), len(o)))
	copy(out, b)
	for i, word := range o {
		out[i] |= word
	}
	return out
}

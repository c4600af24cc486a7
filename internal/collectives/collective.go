package collectives

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// MaxRank bounds the ranks that are joined: the record of a rank with a larger number leaves alone.
const MaxRank = 1<<16 - 1

// Collective has the ranks' records of one collective, or the only record of an operation that is not joined, and what is said of it.
type Collective struct {
	judged
	// Place is for the taker to set: the place of the collective in the batch that it is sent with.
	Place   int
	placed  bool           // each record has a place of its own, in held
	opens   *spans.RunSpan // of the first of its run that is sent
	crowded bool           // the trace has no room for all
}

// open is a collective that waits for records.
type open struct {
	comm  *communicator
	track *track // nil: it is not joined
	run   *run

	kind                          op.Kind
	name                          string
	seq                           uint64
	joined, ordinal               bool // not joined: there is no collective around its record, which is one span
	proxy, hasParent              bool // of a network proxy, for the collective of parentKind and parentSeq
	parentKind                    op.Kind
	parentSeq                     uint64
	algorithm, protocol, datatype string
	nodes, channels               int32
	size, total                   int64

	parts         []part
	has           bits
	ranks         int // distinct ranks
	passed        int // known ranks that have gone on without it
	gap           uint64
	opened, last  int64 // when its first and its last record were read
	bytes         int64
	older, newer  *open // in the order of last
	waiting       bool  // it is in the list of waiting collectives
	mismatch      bool
	errs, retries int64
	known         bool  // its records were sent in an earlier life
	logged        int64 // the latest end of its records as logged, Unix ns
	join          join
	when          stretch // where it is not joined by number
	whole         bool    // it has all ranks, as far as that can be known where it is not joined by number
	unsent        bool    // of a tardy record: the root that left was not drawn
	rootID        *rootID // of a tardy record: the root that left, where byID holds for it
	outcome       Outcome
}

// closed is a collective that has ended: which records it lacks, its ids, times and bandwidths.
type closed struct {
	*open

	sure               bool // there is no doubt that its records are one collective
	commName           string
	commSize           int32
	trace              pcommon.TraceID
	byID               bool // an id in the log decided the trace
	id, parent         pcommon.SpanID
	missing, stuck     []int32
	missingCount       int
	unheard            []int32 // of the missing ranks those whose input was not heard of
	hang               bool
	waited             int64
	start, end         int64
	duration, transfer int64   // ns; op.Unknown
	factor             float64 // factor of the bus bandwidth; NaN: there is none
	alg, bus           float64
	busMean            float64 // mean of the ranks' own bus bandwidths, waiting included; NaN: not known
	disagreement       float64
	offsets            []clockOffset
	reference          string
	corrected          bool
}

// judged is a collective that was compared with those before: who was late, and whether its bandwidth and links are slow.
type judged struct {
	closed

	undrawn             bool   // by SampleRate
	state               string // tracestate of its spans; empty: all are drawn
	baseline, deviation float64
	latest              int // index in parts of the last to arrive
	lateMax, lateCost   int64
	slow                []slowRank
	slowest             int        // index in slow of who was late here, or is named from here on; -1: none
	newlySlow           bool       // one of slow is named for the first time
	over                []slowRank // ranks that were slow and are not any more
	hotLinks, slowLinks []string
}

// part is the record of one rank.
type part struct {
	held                 slot
	rank                 int32
	src                  *source
	more                 *more // fields that few records have
	how                  *how
	again                int32 // for a rank with several records: how many come before
	state                op.State
	left, bare, plain    bool  // the trace has no room for its span, for its details, for when it waited
	start, end, duration int64 // Unix ns, ns; op.Unknown
	late                 int64 // ns behind the first to arrive; op.Unknown
	reportedAlg          float64
	reportedBus          float64
	name                 string // name of its span
}

// how has the fields that many records have in common.
type how struct {
	global, waits bool
	synthetic     bool // no clock of the operation is in the log: its end is about when the record was written
	time          spans.TimeSource
	timing, unit  string
}

// more has the fields that few records have.
type more struct {
	came                 int // how much the record came by
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
	id                   pcommon.SpanID // of the rank's span; empty: the one of its rank
	// By the ids that the record carries; empty: none. traceText is the id of the trace as logged.
	trace     pcommon.TraceID
	parent    pcommon.SpanID
	traceText string
}

type detail struct {
	name, direction, operation  string
	start, end, duration, size  int64
	channel, peer, step, parent int32
}

// source is who wrote records.
type source struct {
	host  string
	pid   int64
	clock int32 // number of its clock in the run's estimator
	name  string
	key   string // without the file's folder, so that it is the same wherever the log lies
	node  int32  // the host's number; op.Unknown
	// coarse says that its times are not compared: From.Coarse.
	coarse bool
}

// slowRank is a rank that is late again and again, as stored but for its host.
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
	Complete Outcome = iota // all ranks are there
	Gap                     // ranks that are not have gone on
	Gone                    // ranks that are not were waited for in vain before
	TimedOut                // nothing came for so long
	Unheard                 // as TimedOut, but who reads the logs of missing ranks was not heard of either
	Evicted                 // there was no room
	Ended                   // reading ended
	Tardy                   // a record that came after its collective had left
	Outcomes
)

// reasons are spans.AttrIncompleteReason of collectives without ranks that were seen before.
var reasons = [Outcomes]string{
	Gap: spans.NCCLIncompleteGap, Gone: spans.NCCLIncompleteGone, TimedOut: spans.NCCLIncompleteTimeout, Unheard: spans.NCCLIncompleteUnheard,
	Evicted: spans.NCCLIncompleteEvicted, Ended: spans.NCCLIncompleteEnd,
}

func (o Outcome) String() string {
	switch o {
	case Complete:
		return "complete"
	case Tardy:
		return "late"
	case Gap, Gone, TimedOut, Unheard, Evicted, Ended, Outcomes:
	}
	return reasons[o]
}

// Found is which ranks were found of a collective that was joined by time.
type Found uint8

// How many ranks were found: all, some, or one, whose record fits no other.
const (
	FoundAll Found = iota
	FoundSome
	FoundOne
	Founds
)

func (f Found) String() string { return [...]string{"all", "some", "one"}[f] }

// Run is the id of its run.
func (c *Collective) Run() string { return c.run.id }

// Counts are the collectives and records by what happened to them.
type Counts struct {
	Left    [Outcomes]int64 // collectives and single operations, but not what proxies did
	Found   [Founds]int64   // collectives that were joined by time
	Sampled int64           // records of collectives that are not drawn because of JoinConfig.SampleRate
}

// Count counts collectives that have left.
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

func (c *open) found() Found {
	switch {
	case c.whole:
		return FoundAll
	case len(c.parts) > 1:
		return FoundSome
	}
	return FoundOne
}

func (c *open) reset() {
	clear(c.parts)
	clear(c.has)
	*c = open{parts: c.parts[:0], has: c.has[:0]}
}

func (c *Collective) reset() {
	*c = Collective{judged: judged{
		closed: closed{missing: c.missing[:0], unheard: c.unheard[:0], stuck: c.stuck[:0], offsets: c.offsets[:0]},
		slow:   c.slow[:0], over: c.over[:0],
	}}
}

// unconfirmed says that the collective was joined by counting or by time only: its records may not all be of one collective.
func (c *open) unconfirmed() bool { return c.join != byNumber && !c.whole }

// operation is its name.
func (c *open) operation() string {
	if c.kind == op.Other {
		return c.name
	}
	return c.kind.String()
}

// bits is a set of ranks.
type bits []uint64

func (b bits) has(i int32) bool { return int(i>>6) < len(b) && b[i>>6]>>(uint(i)&63)&1 == 1 }

// set says whether it was not there.
func (b *bits) set(i int32) bool {
	for int(i>>6) >= len(*b) {
		*b = append(*b, 0)
	}
	old := (*b)[i>>6]
	(*b)[i>>6] = old | 1<<(uint(i)&63)
	return (*b)[i>>6] != old
}

func (b bits) unset(i int32) {
	if int(i>>6) < len(b) {
		b[i>>6] &^= 1 << (uint(i) & 63)
	}
}

// with is a new set that has both.
func (b bits) with(o bits) bits {
	out := make(bits, max(len(b), len(o)))
	copy(out, b)
	for i, word := range o {
		out[i] |= word
	}
	return out
}

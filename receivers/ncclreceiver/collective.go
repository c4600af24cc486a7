package ncclreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// maxRank bounds the ranks that are joined: one with a larger number leaves alone.
const maxRank = 1<<16 - 1

// source is who wrote records.
type source struct {
	host  string
	pid   int64
	clock int32 // of the run's estimator
	name  string
	key   string // the same wherever the log is: without the file's folder
	node  int32  // the host's number; op.Unknown
}

// part is the record of one rank.
type part struct {
	lent                 tail.Lent
	src                  *source
	more                 *more // what few records have
	rank                 int32
	again                int32 // of a rank with several records, how many come before
	how                  *how
	state                op.State
	left, bare, plain    bool  // the trace has no room for its span, for its details, for when it waited
	start, end, duration int64 // Unix ns, ns; op.Unknown
	late                 int64 // ns behind the first to arrive; op.Unknown
	reportedAlg          float64
	reportedBus          float64
	name                 string // of its span
}

// how is what many records have in common.
type how struct {
	global, waits bool
	synthetic     bool // no clock of the operation is in the log: its end is about when the record was written
	time          spans.TimeSource
	timing, unit  string
}

// more is what few records have.
type more struct {
	lents                []tail.Lent // further lines of the record
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
	id                   pcommon.SpanID // of the rank's span; empty: that of its rank
}

type detail struct {
	name, direction, operation  string
	start, end, duration, size  int64
	channel, peer, step, parent int32
}

// What a waiting collective takes, about: itself and its place in the maps, the room for its ranks, what tail knows of a held line.
const (
	collectiveBytes = 800
	partBytes       = 128
	lentBytes       = 110
	// What is remembered of a communicator, about: itself, each sequence, each rank, and that of it in each collective of the window.
	commBytes       = 1600
	trackBytes      = 300
	rankBytes       = 250
	rankWindowBytes = 12
	moreBytes       = 160
	detailBytes     = 96
)

// outcome is why a collective left.
type outcome uint8

const (
	complete outcome = iota
	gap
	gone
	timedOut
	evicted
	ended
	tardy
	outcomes
)

// reasons of those that left without ranks that were seen before.
var reasons = [outcomes]string{
	gap: spans.NCCLIncompleteGap, gone: spans.NCCLIncompleteGone, timedOut: spans.NCCLIncompleteTimeout, evicted: spans.NCCLIncompleteEvicted, ended: spans.NCCLIncompleteEnd,
}

// maxListed bounds the ranks that an attribute lists.
const maxListed = 32

// collective is what the ranks said of one collective, or the only record of an operation that is not joined.
type collective struct {
	comm  *communicator
	track *track
	run   *run
	place tail.Place

	kind                          op.Kind
	name                          string
	seq                           uint64
	joined, ordinal               bool
	proxy, hasParent              bool // of a network proxy, for the collective of parentKind and parentSeq
	parentKind                    op.Kind
	parentSeq                     uint64
	parent                        pcommon.SpanID
	algorithm, protocol, datatype string
	commName                      string
	commSize, nodes, channels     int32
	size, total                   int64

	parts         []part
	has           bits
	ranks         int // distinct ones
	passed        int // known ranks that have gone on without it
	gap           uint64
	opened, last  int64 // when its first and its last record were read
	bytes         int64
	older, newer  *collective // in the order of last
	waiting       bool        // among those that wait
	mismatch      bool
	errs, retries int64
	join          join
	when          stretch // where it is not byNumber
	whole         bool    // it has all ranks, as far as that can be known where it is not byNumber

	// From here on: when it leaves.
	outcome             outcome
	sure                bool // there is no doubt that its records are one collective
	dropped             bool // by sampling
	opensRun            bool // it is the first of its run that is sent
	trace               pcommon.TraceID
	id                  pcommon.SpanID
	missing, stuck      []int32
	missingCount        int
	hang                bool
	waited              int64
	start, end          int64
	duration, transfer  int64   // ns; op.Unknown
	factor              float64 // of the bus bandwidth; NaN: there is none
	alg, bus            float64
	busMean             float64 // of the ranks' own, waiting included; NaN: not known
	baseline, deviation float64
	disagreement        float64
	latest              int // index in parts of the last to arrive
	lateMax, lateCost   int64
	slow                []slowRank
	slowest             int        // of them: who was late here, or is named from here on; -1: none
	newlySlow           bool       // one of them is named for the first time
	over                []slowRank // those that were slow and are not any more
	offsets             []clockOffset
	reference           string
	corrected           bool
	hotLinks, slowLinks []string
	crowded             bool // the trace has no room for all
}

// slowRank is a rank that is late again and again.
type slowRank struct {
	rank       int32
	host       string
	late, cost int64
	score      float64
}

// clockOffset is how much a clock is ahead of the reference, ns.
type clockOffset struct {
	clock               int32
	offset, uncertainty float64
}

func (c *collective) reset() {
	clear(c.parts)
	clear(c.has)
	*c = collective{parts: c.parts[:0], has: c.has[:0], missing: c.missing[:0], stuck: c.stuck[:0], slow: c.slow[:0], over: c.over[:0], offsets: c.offsets[:0]}
}

// unconfirmed says that its records are not known to be all of one collective: it is what could be found by counting or by time.
func (c *collective) unconfirmed() bool { return c.join != byNumber && !c.whole }

// operation is its name.
func (c *collective) operation() string {
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

package facts

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Flags of leaves and windows.
type Flags uint8

// The flags.
const (
	Timeless   Flags = 1 << iota // synthetic times: a duration without a place in time (with Observed: see Run.UseArrivalTimes)
	Point                        // only the end is known
	Observed                     // times of arrival, or stamps of whole seconds
	Bad                          // with a bad verdict
	Error                        // ended in an error
	Unrecorded                   // a collective with a rank without a record
	RecordOnly                   // not drawn: no backend has the span
	Waiting                      // a part of a step that waits for another process: no computing, but for the parts within

	Typical = Waiting // of a step: the time is a median of many, not that of the step
)

// Has reports whether a flag is set.
func (f Flags) Has(flag Flags) bool { return f&flag != 0 }

// Leaf has the kept facts of one span, some 100 bytes. Texts are numbers of [Run.Text].
type Leaf struct {
	Trace      pcommon.TraceID
	Span       pcommon.SpanID
	Parent     pcommon.SpanID // of a part of a step
	Start, End int64          // ns
	Late       int64          // ns from the first rank's arrival to the last's, of a collective; −1: not known. Of a part: the slowest rank's excess
	Blame      int64          // ns of Late since the arrival of the last but one, for which the last rank alone is to blame
	Name       uint32
	Comm       uint32
	Host       uint32
	LateHost   uint32
	LateRank   int32 // the last rank, in the communicator; −1: not known. Of a part: the slowest rank, else the rank of the log
	Ranks      int32 // of the communicator
	PID        int32 // 0: not known
	LatePID    int32 // of the last rank; 0: unknown
	Shares     bool  // of RPCs: Run.SharesOf has the shares of their stages
	Kind       breakdown.Kind
	Flags      Flags
}

// AddOwn adds a leaf to the group of its trace. It returns false if the leaf is already known: then the longer of the two stays (keepLonger).
func (r *Run) AddOwn(g *Group, l Leaf, now time.Time) bool {
	if g.Has(l.Span) {
		g.keepLonger(&l)
		return false
	}
	g.noteSpan(l.Span)
	g.Own = append(g.Own, l)
	g.extendBounds(l.Start, l.End, l.Flags)
	r.bytes += ownBytes
	r.touch(g, now)
	return true
}

// keepLonger keeps the longer of two leaves with the same span id and without a clock: several logs may describe the same part of a step, in any order.
func (g *Group) keepLonger(l *Leaf) {
	for i := range g.Own {
		o := &g.Own[i]
		bothTimeless := o.Flags.Has(Timeless) && l.Flags.Has(Timeless)
		if o.Span == l.Span && bothTimeless && l.End-l.Start > o.End-o.Start {
			*o = *l
		}
	}
}

// AddLeaf adds a leaf whose trace has no window. With FindRepeats a repeat is not added; otherwise it is stored twice, and skipped by EachLeaf. Leaves that
// came within a second of each other are counted together in r.arrived, for Forget.
func (r *Run) AddLeaf(l Leaf, now time.Time) {
	if r.known != nil {
		if _, ok := r.known[l.Span]; ok {
			return
		}
		r.known[l.Span] = struct{}{}
	}
	// Leaves that come in order need no sorting.
	if n := len(r.leaves); n == r.ordered && (n == 0 || compareLeaves(l, r.leaves[n-1]) >= 0) {
		r.ordered++
	}
	r.leaves = append(r.leaves, l)
	r.noteTime(l.Name, l.End, l.Flags)
	r.bytes += LeafBytes
	if n := len(r.arrived); n > 0 && now.Sub(r.arrived[n-1].at) < time.Second {
		r.arrived[n-1].n++
	} else {
		r.arrived = append(r.arrived, arrival{now, 1})
	}
}

// arrival is a number of leaves that came in about the same second.
type arrival struct {
	at time.Time
	n  int
}

// compareLeaves orders by start, end and span.
func compareLeaves(a, b Leaf) int {
	if c := cmp.Compare(a.Start, b.Start); c != 0 {
		return c
	}
	if c := cmp.Compare(a.End, b.End); c != 0 {
		return c
	}
	return slices.Compare(a.Span[:], b.Span[:])
}

// FindRepeats turns the search for repeated leaves on, for a batch that may be a repeat, or off: then no leaf is looked up.
func (r *Run) FindRepeats(on bool) {
	if !on {
		r.known = nil
		return
	}
	if r.known == nil {
		r.known = make(map[pcommon.SpanID]struct{}, len(r.leaves))
		for i := range r.leaves {
			r.known[r.leaves[i].Span] = struct{}{}
		}
	}
}

// Leaf returns the leaf with an index. The pointer is valid until Sort, Forget or Shed, which move leaves.
func (r *Run) Leaf(i int) *Leaf { return &r.leaves[i] }

// Leaves returns the number of leaves of traces without a window.
func (r *Run) Leaves() int { return len(r.leaves) }

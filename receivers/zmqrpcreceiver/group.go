package zmqrpcreceiver

import (
	"cmp"
	"encoding/binary"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/rpclog"
	"github.com/trainbridge/trainbridge/spans"
)

// groupKind is the kind of the calls of a trace.
type groupKind uint8

const (
	callsGroup groupKind = iota
	sessionGroup
	passGroup
)

var (
	rootNames = [...]string{callsGroup: spans.SpanRPCCalls, sessionGroup: spans.SpanRPCSession, passGroup: spans.SpanRPCPass}
	rootKinds = [...]string{callsGroup: spans.KindCalls, sessionGroup: spans.KindSession, passGroup: spans.KindPass}
)

// group is the calls of one trace.
type group struct {
	kind      groupKind
	ordinal   int64 // of passes
	transport string
	end       string // reason of the end
	since     int64  // time of reading the first row, ns
	held      []tail.Held

	number                int64        // in the session, from 1
	block                 int64        // number of restarts of the ids
	rows                  spans.Digest // of the rows as printed, for the ids
	root, session, before ref          // root spans: the group's, its session's, the group's before; zero without one
	calls                 []call
	fields                []field // of all calls
	text                  int     // bytes of the log
	sums                  totals
	disagreement          float64 // the largest of the calls
	compared              bool    // disagreement was computed; may be 0
	slowest               int32   // index in calls

	carried bool           // some call carries the id of a trace
	parent  pcommon.SpanID // parent of all calls; empty: none
	left    int64          // calls with another id, moved to its trace
}

// call is one row.
type call struct {
	id                   int64 // as printed
	method               string
	has                  rpclog.Columns          // columns of the log
	ns                   [rpclog.Durations]int64 // by column
	sent, received       int64                   // By
	throughput           float64                 // By/s, as printed
	step                 int64                   // ns of the last printed digit
	disagreement         float64                 // of throughput; 0: none beyond print rounding
	start                int64                   // Unix ns
	observed             bool                    // start is by the arrival of the row
	compared             bool                    // the throughput was computed
	bare                 bool                    // stages are no spans: the trace would have too many
	slowest, largest     uint8                   // rank in the group, from 1; 0: below the first ranks
	fieldsFrom, fieldsTo int                     // range of group.fields

	trace  pcommon.TraceID // by the id in the row; empty: none
	parent pcommon.SpanID  // by the id in the row; empty: none
	place  tail.Place
}

// maxText bounds the bytes of log text in a trace: with ids, times and the names of attributes a trace then has 4 MB at most. A field takes fieldBytes beside
// its text.
const (
	maxText    = 1 << 20
	fieldBytes = 64
)

// field is an unknown column.
type field struct{ name, text string }

// reset empties the group for reuse, but for its memory.
func (g *group) reset() {
	clear(g.fields)
	clear(g.calls)
	*g = group{held: g.held[:0], calls: g.calls[:0], fields: g.fields[:0]}
}

// name makes the ids of the group's root. The natural key is the group's rows, the first row of its session, and the group's number in the
// session.
func (g *group) name(run string, session []byte) {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(g.number))
	if g.root.ByID { // the trace has more groups
		g.root.Span = spans.SpanID(g.root.Trace, rootNames[g.kind], session, number[:], g.rows.Key())
		return
	}
	g.root.Trace = spans.KeyTraceID(run, "zeromq", session, number[:], g.rows.Key())
	g.root.Span = spans.SpanID(g.root.Trace, rootNames[g.kind])
}

// id makes the id of a span below the root. Groups in one trace have equal keys.
func (g *group) id(role string, key []byte) pcommon.SpanID {
	if g.root.ByID {
		return spans.SpanID(g.root.Trace, role, g.root.Span[:], key)
	}
	return spans.SpanID(g.root.Trace, role, key)
}

// apart decides the trace of a group whose calls carry ids: the most frequent id, and of several the first. Calls with other ids leave the group (g.left is
// their number): for each of their traces apart returns a group of calls without a pass, made by empty. Calls without an id stay. Each group gets the parent
// that its calls share (agree).
func (g *group) apart(empty func() *group) (others []*group) {
	var traces []pcommon.TraceID            // in order of appearance
	counts := make(map[pcommon.TraceID]int) // calls of each
	for i := range g.calls {
		if t := g.calls[i].trace; !t.IsEmpty() {
			if counts[t]++; counts[t] == 1 {
				traces = append(traces, t)
			}
		}
	}
	own := traces[0]
	for _, t := range traces {
		if counts[t] > counts[own] {
			own = t
		}
	}
	g.root.Trace, g.root.ByID = own, true
	if len(traces) > 1 {
		others = g.split(len(traces), empty)
	}
	for _, o := range append(others, g) {
		o.agree()
	}
	return others
}

// split moves the calls of other traces than the group's into groups made by empty, one for each trace. traces is the number of traces.
func (g *group) split(traces int, empty func() *group) (others []*group) {
	of := make(map[pcommon.TraceID]*group, traces)
	of[g.root.Trace] = g
	all, fields := g.calls, g.fields
	g.calls, g.fields, g.sums, g.disagreement, g.compared = nil, nil, totals{}, 0, false // begun anew by take
	for i := range all {
		to := of[all[i].trace]
		switch {
		case all[i].trace.IsEmpty():
			to = g
		case to == nil:
			to = empty()
			to.kind, to.transport, to.number, to.rows = callsGroup, g.transport, g.number, g.rows
			to.root.Trace, to.root.ByID = all[i].trace, true
			of[all[i].trace] = to
			others = append(others, to)
		}
		if to != g {
			g.left++
		}
		to.take(&all[i], fields)
	}
	return others
}

// take adds a call of another group, with the fields of that group.
func (g *group) take(c *call, fields []field) {
	from := len(g.fields)
	g.fields = append(g.fields, fields[c.fieldsFrom:c.fieldsTo]...)
	g.calls = append(g.calls, *c)
	c = &g.calls[len(g.calls)-1]
	c.fieldsFrom, c.fieldsTo = from, len(g.fields)
	g.sums.add(c.has, &c.ns, c.sent, c.received)
	g.compared, g.disagreement = g.compared || c.compared, max(g.disagreement, c.disagreement)
}

// agree sets the parent span that all calls name; empty: they differ, or name none.
func (g *group) agree() {
	g.parent = g.calls[0].parent
	for i := range g.calls {
		if g.calls[i].parent != g.parent {
			g.parent = pcommon.SpanID{}
		}
	}
}

// ranks is the number of slowest calls and of largest calls that are marked.
const ranks = 5

// finish ranks the slowest and the largest calls, and decides whose stages become spans: if a trace has no room for all, those of the slowest calls. why is the
// reason of the group's end.
func (g *group) finish(why string) {
	g.end = why
	rank(g.calls, func(c *call) int64 { return c.ns[rpclog.Total] }, func(i int, r uint8) {
		g.calls[i].slowest = r
		if r == 1 {
			g.slowest = int32(i)
		}
	})
	if !sharedMemory(g.transport) {
		rank(g.calls, func(c *call) int64 { return c.sent + c.received }, func(i int, r uint8) { g.calls[i].largest = r })
	}
	room := maxSpans - maxAround - len(g.calls) // spans for stages
	need := 0
	for i := range g.calls {
		need += g.calls[i].stages()
	}
	if need <= room {
		return
	}
	byTime := make([]int32, len(g.calls)) // indices in calls, the slowest first
	for i := range byTime {
		byTime[i] = int32(i)
	}
	slices.SortStableFunc(byTime, func(a, b int32) int { return cmp.Compare(g.calls[b].ns[rpclog.Total], g.calls[a].ns[rpclog.Total]) })
	for _, i := range byTime {
		c := &g.calls[i]
		if room -= c.stages(); room < 0 {
			c.bare = true
		}
	}
}

// rank calls mark with the calls of the largest values above 0, up to ranks of them: with the index of each, and its rank from 1. Of two equal calls the
// earlier one comes first.
func rank(calls []call, value func(*call) int64, mark func(i int, rank uint8)) {
	var room [ranks + 1]int // one more for an insertion
	top := room[:0]         // indices of the largest until now, the largest first
	for i := range calls {
		v := value(&calls[i])
		if v <= 0 {
			continue
		}
		at := len(top)
		for at > 0 && value(&calls[top[at-1]]) < v {
			at--
		}
		if at < ranks {
			top = slices.Insert(top, at, i)
			top = top[:min(len(top), ranks)]
		}
	}
	for r, i := range top {
		mark(i, uint8(r+1))
	}
}

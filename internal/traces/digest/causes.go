package digest

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// Cost is what one cause cost in all slow windows of a kind, as step_join names it.
type Cost struct {
	Part string   // one of the spans.Part… values; PartUnattributed: what no log explains
	Rank view.Int // that was waited for
	Host string   // its

	Windows int64
	Time    Total // s, more than usual
	Devices Total // s x ranks that waited; empty where their number is not known
	Dearest Top[Blamed]
	reasons []Reason
}

// Reason is why the logs do not explain a part of the time.
type Reason struct {
	Of    string  // one of the spans.Reason… values
	Time  Total   // s
	Apart float64 // s, by how much the clocks of hosts differ at most
}

// mostReasons is how many reasons of a cost are told apart.
const mostReasons = 16

// because notes why a part of the time was not explained.
func (c *Cost) because(of *view.Cause) {
	if of.Reason == "" {
		return
	}
	i := slices.IndexFunc(c.reasons, func(r Reason) bool { return r.Of == of.Reason })
	if i < 0 {
		if len(c.reasons) == mostReasons {
			return
		}
		i, c.reasons = len(c.reasons), append(c.reasons, Reason{Of: text(of.Reason)})
	}
	c.reasons[i].Time.Add(of.Seconds)
	c.reasons[i].Apart = max(c.reasons[i].Apart, orZero(of.ClocksApart))
}

// Reasons are why the logs do not explain the cost, the dearest first.
func (c *Cost) Reasons() []Reason {
	return slices.SortedFunc(slices.Values(c.reasons), func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Time.Sum(), a.Time.Sum()), cmp.Compare(a.Of, b.Of))
	})
}

// Blamed is what is known of a cause in one window.
type Blamed struct {
	Iteration       view.Int
	Comm, Operation string // the collective in which it showed
	Note            string
}

type blame struct {
	part string
	rank view.Int
	host string
}

// mostCauses is how many causes of a kind of window are told apart.
const mostCauses = 256

func (w *Window) causes(s ptrace.Span, b *view.Breakdown, res *resource) {
	for c := range view.Causes(s) {
		cost := w.costs.of(blame{c.Part, c.Rank, c.Host}, blame{part: Other}, mostCauses, func(k blame) (blame, *Cost) {
			k.part, k.host = text(k.part), text(k.host)
			return k, &Cost{Part: k.part, Rank: k.rank, Host: k.host}
		})
		cost.Windows++
		cost.Time.Add(c.Seconds)
		cost.Devices.Add(c.Cost)
		cost.because(&c)
		if of := cost.Dearest.add(mostShown, c.Seconds, s, res); of != nil {
			*of = Blamed{b.Iteration, text(c.Comm), text(c.Operation), text(c.Note)}
		}
	}
}

// Costs are what the causes of the slow windows cost, the dearest first.
func (w *Window) Costs() []*Cost {
	return w.costs.rows(func(a, b *Cost) int {
		return cmp.Or(
			cmp.Compare(b.Devices.Sum(), a.Devices.Sum()), cmp.Compare(b.Time.Sum(), a.Time.Sum()), cmp.Compare(a.Part, b.Part),
			cmp.Compare(a.Rank.Or(math.MaxInt64), b.Rank.Or(math.MaxInt64)), cmp.Compare(a.Host, b.Host),
		)
	})
}

// places are where the records of the last windows stand in their logs: a breakdown is derived of several logs, and stands in none.
type places struct {
	by    map[placeKey]noted
	ring  []placeKey
	next  int
	files []string
	known map[string]int32 // by the place in files
}

// noted is a place without pointers: of so many the garbage collector would look at each.
type noted struct {
	file          int32
	offset, block int64
}

// placeKey is a trace and what kind of log is of interest: the logs of a trace are read side by side, and any may come first.
type placeKey struct {
	trace pcommon.TraceID
	of    view.Kind // KindStep, KindFunction, KindPass
}

type place struct {
	file   string
	offset int64
	block  int64 // of a pass
}

// mostPlaces is how many windows are remembered until their breakdown comes.
const mostPlaces = 1 << 16

// note notes where the first record of a trace is in logs of a kind. It says whether the trace is a new one.
func (p *places) note(s ptrace.Span, res *resource, of view.Kind, block int64) (first bool) {
	if p == nil || res.offset < 0 {
		return false
	}
	k := placeKey{s.TraceID(), of}
	known, again := p.by[k]
	switch {
	case again && cmp.Or(cmp.Compare(p.files[known.file], res.file), cmp.Compare(known.offset, res.offset)) <= 0:
		return false
	case again:
	case len(p.ring) < mostPlaces:
		p.ring = append(p.ring, k)
	default:
		delete(p.by, p.ring[p.next])
		p.ring[p.next] = k
		p.next = (p.next + 1) % mostPlaces
	}
	if p.by == nil {
		p.by, p.known = map[placeKey]noted{}, map[string]int32{}
	}
	file, ok := p.known[res.file]
	if !ok {
		file = int32(len(p.files))
		p.files, p.known[res.file] = append(p.files, res.file), file
	}
	p.by[k] = noted{file, res.offset, block}
	return !again
}

// find says where the first record of a trace is, in logs of the first kind that there is.
func (p *places) find(trace pcommon.TraceID, of ...view.Kind) (at place, ok bool) {
	if p == nil {
		return place{}, false
	}
	for _, kind := range of {
		if n, ok := p.by[placeKey{trace, kind}]; ok {
			return place{p.files[n.file], n.offset, n.block}, true
		}
	}
	return place{}, false
}

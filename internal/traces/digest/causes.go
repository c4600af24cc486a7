package digest

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Cost is the cost of a cause, as named by step_join, over all slow windows of a kind.
type Cost struct {
	Part string   // a spans.Part… value; PartUnattributed: not explained by any log
	Rank view.Int // of the awaited rank
	Host string   // of the rank

	Windows int64       // with the cause
	Time    Total       // s, more than usual
	Devices Total       // s x waiting ranks; empty if their number is unknown
	Dearest Top[Blamed] // the windows with the most time
	reasons []Reason
	notes   []Noted
}

// Noted is a further fact about a cause, such as the rank that loaded data.
type Noted struct {
	Text string
	Time Total // s, of the cause in windows with this fact
}

// mostNotes bounds the facts about a cost; further ones are left out.
const mostNotes = 16

// addNote adds the note about a cause in a window, if any.
func (c *Cost) addNote(cause *view.Cause) {
	if cause.Note == "" {
		return
	}
	i := slices.IndexFunc(c.notes, func(n Noted) bool { return n.Text == cause.Note })
	if i < 0 {
		if len(c.notes) == mostNotes {
			return
		}
		i, c.notes = len(c.notes), append(c.notes, Noted{Text: shortText(cause.Note)})
	}
	c.notes[i].Time.Add(cause.Seconds)
}

// Note returns the note with the most time, and its share of the time of the cost; "": no note.
func (c *Cost) Note() (text string, share float64) {
	most := 0.0
	for i := range c.notes {
		if sum := c.notes[i].Time.Sum(); sum > most {
			text, most = c.notes[i].Text, sum
		}
	}
	return text, most / c.Time.Sum()
}

// Reason is why the logs do not explain a part of the time.
type Reason struct {
	Of    string  // a spans.Reason… value
	Time  Total   // s
	Apart float64 // s, by how much the clocks of hosts differ at most
}

// mostReasons bounds the reasons of a cost; further ones are left out.
const mostReasons = 16

// addReason adds the reason why a part of the time was not explained; nothing without a reason, or for a new reason beyond mostReasons.
func (c *Cost) addReason(cause *view.Cause) {
	if cause.Reason == "" {
		return
	}
	i := slices.IndexFunc(c.reasons, func(r Reason) bool { return r.Of == cause.Reason })
	if i < 0 {
		if len(c.reasons) == mostReasons {
			return
		}
		i, c.reasons = len(c.reasons), append(c.reasons, Reason{Of: shortText(cause.Reason)})
	}
	c.reasons[i].Time.Add(cause.Seconds)
	c.reasons[i].Apart = max(c.reasons[i].Apart, orZero(cause.ClocksApart))
}

// Reasons returns why the logs do not explain the cost, the reason with the most time first.
func (c *Cost) Reasons() []Reason {
	return slices.SortedFunc(slices.Values(c.reasons), func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Time.Sum(), a.Time.Sum()), cmp.Compare(a.Of, b.Of))
	})
}

// Blamed is a cause in one window.
type Blamed struct {
	Iteration       view.Int
	Comm, Operation string // the collective with the wait
	Note            string
}

// blame identifies a cause.
type blame struct {
	part string
	rank view.Int
	host string
}

// mostCauses bounds the causes of a kind of window counted separately.
const mostCauses = 256

// addCauses adds the causes that a breakdown names for a slow window. Beyond mostCauses, further causes count as Other.
func (w *Window) addCauses(s ptrace.Span, b *view.Breakdown, res *resource) {
	for c := range view.Causes(s) {
		cost := w.costs.findOrMake(blame{c.Part, c.Rank, c.Host}, blame{part: Other}, mostCauses, func(k blame) (blame, *Cost) {
			k.part, k.host = shortText(k.part), shortText(k.host)
			return k, &Cost{Part: k.part, Rank: k.rank, Host: k.host}
		})
		cost.Windows++
		cost.Time.Add(c.Seconds)
		cost.Devices.Add(c.Cost)
		cost.addReason(&c)
		cost.addNote(&c)
		if dearest := cost.Dearest.add(mostShown, c.Seconds, s, res); dearest != nil {
			*dearest = Blamed{b.Iteration, shortText(c.Comm), shortText(c.Operation), shortText(c.Note)}
		}
	}
}

// Costs returns the costs of the causes of slow windows, the most expensive first.
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
	by    map[uint64]int32 // indices in ring, by placeKey
	ring  []storedPlace    // the last mostPlaces, in the order of coming
	next  int              // index in a full ring of the oldest, to be replaced
	files []string         // by number
	known map[string]int32 // numbers of files
}

// storedPlace is a place without pointers, which the garbage collector need not scan.
type storedPlace struct {
	key    uint64
	file   int32 // number in files
	offset int64 // By, of the record's first line
	block  int64 // of a pass, see place
}

// placeKey returns a hash of a trace and a kind of log (KindStep, KindFunction, KindPass). The kind is part of the key because the logs of a trace are read in
// parallel, and any may come first.
func placeKey(trace pcommon.TraceID, kind view.Kind) uint64 {
	return spans.IDHash(trace, pcommon.SpanID{byte(kind)})
}

// place is where a record stands.
type place struct {
	file   string
	offset int64 // By, of the first line
	block  int64 // of a pass: how often the numbers of calls had begun anew in the log
}

// mostPlaces is how many windows are remembered until their breakdown comes.
const mostPlaces = 1 << 16

// note records the place of a record of a trace, in logs of a kind: of several records the first, by file and offset. It reports whether the trace is new among
// logs of the kind (first). Without a place in the span, nothing is recorded.
func (p *places) note(s ptrace.Span, res *resource, kind view.Kind, block int64) (first bool) {
	if p == nil || res.offset < 0 {
		return false
	}
	k := placeKey(s.TraceID(), kind)
	i, again := p.by[k]
	if again {
		if was := &p.ring[i]; cmp.Or(cmp.Compare(p.files[was.file], res.file), cmp.Compare(was.offset, res.offset)) > 0 {
			*was = storedPlace{k, p.number(res.file), res.offset, block}
		}
		return false
	}
	now := storedPlace{k, p.number(res.file), res.offset, block}
	if len(p.ring) < mostPlaces {
		i = int32(len(p.ring))
		p.ring = append(p.ring, now)
	} else {
		i = int32(p.next)
		delete(p.by, p.ring[i].key)
		p.ring[i] = now
		p.next = (p.next + 1) % mostPlaces
	}
	if p.by == nil {
		p.by = map[uint64]int32{}
	}
	p.by[k] = i
	return true
}

// number returns the number of a file: its index in p.files, where a new file is added.
func (p *places) number(file string) int32 {
	n, ok := p.known[file]
	if !ok {
		if p.known == nil {
			p.known = map[string]int32{}
		}
		n = int32(len(p.files))
		p.files, p.known[file] = append(p.files, file), n
	}
	return n
}

// find returns the place of the record of a trace, in logs of the first of the given kinds that has one; false: none.
func (p *places) find(trace pcommon.TraceID, kinds ...view.Kind) (at place, ok bool) {
	if p == nil {
		return place{}, false
	}
	for _, kind := range kinds {
		if i, ok := p.by[placeKey(trace, kind)]; ok {
			n := &p.ring[i]
			return place{p.files[n.file], n.offset, n.block}, true
		}
	}
	return place{}, false
}

package show

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// verdict is an event of train_perf; good verdicts have none.
type verdict struct {
	name, reason     string
	value, threshold float64 // NaN: not given
}

// verdictNames are those of all verdicts, good ones too.
func (s *span) verdictNames() (names []string) {
	if v, ok := s.Attributes().Get(spans.AttrVerdict); ok && v.Type() == pcommon.ValueTypeSlice {
		for _, name := range v.Slice().All() {
			names = append(names, name.AsString())
		}
	}
	return names
}

func (s *span) verdicts() []verdict {
	var out []verdict
	for _, e := range s.Events().All() {
		if e.Name() != spans.EventVerdict {
			continue
		}
		text := func(key string) string {
			v, ok := e.Attributes().Get(key)
			if !ok {
				return ""
			}
			return clean(v.AsString())
		}
		number := func(key string) float64 {
			if v, ok := e.Attributes().Get(key); ok && v.Type() == pcommon.ValueTypeDouble {
				return v.Double()
			}
			return math.NaN()
		}
		out = append(out, verdict{
			cmp.Or(text(spans.AttrVerdictName), "verdict"), text(spans.AttrVerdictReason),
			number(spans.AttrVerdictValue), number(spans.AttrVerdictThreshold),
		})
	}
	return out
}

// short is the verdict in a few words: name, value, limit.
func (v verdict) short() string {
	if math.IsNaN(v.value) || math.IsNaN(v.threshold) {
		return v.name
	}
	sign := ">"
	if v.value < v.threshold {
		sign = "<"
	}
	value, limit := strconv.FormatFloat(v.value, 'g', 4, 64), strconv.FormatFloat(v.threshold, 'g', 4, 64)
	known, _ := spans.VerdictNamed(v.name)
	switch known.Unit {
	case spans.UnitBytesPerSecond:
		value, limit = fmt.Sprintf("%.1f", v.value/(1<<20)), strconv.FormatFloat(v.threshold/(1<<20), 'g', 4, 64)+" MiB/s"
	case spans.UnitOne:
		value, limit = percent(v.value), strconv.FormatFloat(100*v.threshold, 'g', 4, 64)+"%"
	case spans.UnitSeconds:
		value, limit = duration(int64(v.value*1e9)), duration(int64(v.threshold*1e9))
	case "":
		if known.Name != "" && v.threshold > 1e9 { // {flop}/s; else samples/s, tokens/s or s, which only the reason tells
			value, limit = fmt.Sprintf("%.1f", v.value/1e12), fmt.Sprintf("%.1f TFLOP/s", v.threshold/1e12)
		}
	}
	return v.name + " " + value + " " + sign + " " + limit
}

// excess says how far the value is from the limit, whichever side is the bad one.
func (v verdict) excess() float64 {
	r := math.Abs(v.value / v.threshold)
	r = max(r, 1/r)
	if math.IsNaN(r) { // no value to compare
		return 0
	}
	return r
}

// meanings explains every verdict of a trace once, with its worst instance; the rest of the drawing only names them.
func meanings(w *strings.Builder, t *trace, width int, p palette) {
	type kind struct {
		n        int
		worst    verdict
		severity string
	}
	kinds := map[string]*kind{}
	for _, s := range t.all {
		for _, v := range s.verdicts() {
			k := kinds[v.name]
			if k == nil {
				k = &kind{worst: v, severity: s.attr(spans.AttrVerdictSeverity)}
				kinds[v.name] = k
			}
			k.n++
			if v.excess() > k.worst.excess() {
				k.worst = v
			}
		}
	}
	if len(kinds) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", p.bold("What the verdicts mean"))
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(kinds[b].n, kinds[a].n), cmp.Compare(a, b))
	})
	for _, name := range names {
		k := kinds[name]
		text := fmt.Sprintf("%d× %s", k.n, name)
		switch {
		case k.worst.reason != "" && k.n > 1:
			text += "; the worst: " + k.worst.reason
		case k.worst.reason != "":
			text += ": " + k.worst.reason
		}
		for i, line := range wrap(text, max(width, minWidth)-2) {
			if i == 0 {
				line = p.paint(cmp.Or(severityColour[k.severity], "33"), line)
			} else {
				line = "  " + line
			}
			fmt.Fprintln(w, line)
		}
	}
}

// fold sums up spans of one name, below one parent, that are not drawn one by one.
type fold struct {
	n, incomplete     int
	whole             bool // there are no others of the name
	parent            *span
	shortest, longest int64 // ns
	together          int64 // ns
	start, end        int64
	low, high         float64 // TQ overhead
	withOverhead      bool
	late              [2]float64 // s, of ranks: the least and the most
	ranks             bool
	verdicts          map[string]int
	names             []string // of verdicts, as they came
}

func newFold(s *span) *fold {
	f := &fold{parent: s.parent, shortest: s.ns(), start: s.start(), end: s.end(), verdicts: map[string]int{}}
	f.add(s)
	return f
}

func (f *fold) add(s *span) {
	f.n++
	f.together += s.ns()
	f.shortest, f.longest = min(f.shortest, s.ns()), max(f.longest, s.ns())
	f.start, f.end = min(f.start, s.start()), max(f.end, s.end())
	if s.incomplete() {
		f.incomplete++
	}
	if v := s.late(); s.isRank() && v >= 0 {
		if !f.ranks {
			f.ranks, f.late = true, [2]float64{v, v}
		}
		f.late = [2]float64{min(f.late[0], v), max(f.late[1], v)}
	}
	if v, ok := s.overhead(); ok && s.stage() == spans.StageFunction {
		if !f.withOverhead {
			f.low, f.high, f.withOverhead = v, v, true
		}
		f.low, f.high = min(f.low, v), max(f.high, v)
	}
	var walk func(s *span)
	walk = func(s *span) {
		for _, v := range s.verdicts() {
			if f.verdicts[v.name] == 0 {
				f.names = append(f.names, v.name)
			}
			f.verdicts[v.name]++
		}
		for _, c := range s.children {
			walk(c)
		}
	}
	walk(s)
}

// times is the range of durations, in the unit of the longest.
func (f *fold) times() string {
	unit, name := 1e9, "s"
	switch {
	case f.longest < 1e6:
		unit, name = 1e3, "µs"
	case f.longest < 1e9:
		unit, name = 1e6, "ms"
	}
	decimals := 2
	if v := float64(f.longest) / unit; v >= 99.95 {
		decimals = 0
	} else if v >= 9.995 {
		decimals = 1
	}
	text := func(ns int64) string { return strconv.FormatFloat(float64(ns)/unit, 'f', decimals, 64) }
	low, high := text(f.shortest), text(f.longest)
	if low == high {
		return high + " " + name
	}
	return low + "–" + high + " " + name
}

func (f *fold) details() string {
	var d []string
	if f.incomplete > 0 {
		d = append(d, fmt.Sprintf("%d INCOMPLETE", f.incomplete))
	}
	if f.ranks {
		d = append(d, "late by "+duration(int64(f.late[0]*1e9))+" to "+duration(int64(f.late[1]*1e9)))
	} else if f.parent != nil && !f.parent.isCollective() {
		d = append(d, "together "+duration(f.together))
		if whole := f.parent.ns(); whole > 0 {
			d = append(d, percent(float64(f.together)/float64(whole)))
		}
	}
	if f.withOverhead {
		share := fmt.Sprintf("%.0f", 100*f.high)
		if low := fmt.Sprintf("%.0f", 100*f.low); low != share {
			share = low + "–" + share
		}
		d = append(d, "TQ overhead "+share+"%")
	}
	for _, name := range f.names {
		d = append(d, fmt.Sprintf("%d× %s", f.verdicts[name], name))
	}
	return strings.Join(d, " · ")
}

package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

// sums of the calls of one function, in ns.
type sums struct {
	function                 string
	calls, incomplete, noID  int
	total, get, compute, put int64
	verdicts                 *tallies
}

func (s *sums) share(ns int64) string {
	if s.total == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(ns)/float64(s.total))
}

func (s *sums) add(o *sums) {
	s.calls, s.incomplete, s.noID = s.calls+o.calls, s.incomplete+o.incomplete, s.noID+o.noID
	s.total, s.get, s.compute, s.put = s.total+o.total, s.get+o.get, s.compute+o.compute, s.put+o.put
}

// noID is the one function of a trace whose log names none: each such call is a trace of its own. Nil: the log names one.
func (t *trace) noID() *span {
	if fs := t.functions(); len(fs) == 1 && spans.NoTraceID(fs[0].attr(spans.AttrTQTraceID)) {
		return fs[0]
	}
	return nil
}

func (s *span) function() string { return cmp.Or(s.attr(spans.AttrTQFunction), s.Name()) }

// functions sums up per function what verl's analyser reports: calls, mean times and shares. Means and shares are of the complete calls; shares are of summed
// times, as the analyser's are.
func functions(traces []*trace) []*sums {
	byFunc := map[string]*sums{}
	for _, t := range traces {
		for _, f := range t.functions() {
			name := f.function()
			s := byFunc[name]
			if s == nil {
				s = &sums{function: name, verdicts: newTallies()}
				byFunc[name] = s
			}
			s.verdicts.count(f)
			if t.noID() != nil {
				s.noID++
			}
			if f.incomplete() {
				s.incomplete++
				continue
			}
			s.calls++
			s.total += f.ns()
			s.get += f.child(spans.StageGet)
			s.compute += f.child(spans.StageCompute)
			s.put += f.child(spans.StagePut)
		}
	}
	return slices.SortedFunc(maps.Values(byFunc), func(a, b *sums) int { return cmp.Compare(a.function, b.function) })
}

func table(w *strings.Builder, traces []*trace, width int, p palette) {
	byFunc := functions(traces)
	if len(byFunc) == 0 {
		return
	}
	g := grid{head: []string{"function", "calls", "mean", "get", "compute", "put", "TQ overhead"}}
	all := &sums{}
	for _, s := range byFunc {
		g.add(append(texts(clean(s.function), strconv.Itoa(s.calls), mean(s.total, s.calls), s.cell(s.get), s.cell(s.compute), s.cell(s.put)),
			cell{s.share(s.get + s.put), overheadColour(s.get+s.put, s.total)})...)
		all.add(s)
	}
	g.print(w, width, p)
	text := fmt.Sprintf("all: %s, %s in functions, %s in TransferQueue, overhead %s", plural(all.calls, "call"), duration(all.total), duration(all.get+all.put), all.share(all.get+all.put))
	text += conclusion(traces)
	if all.incomplete > 0 {
		text += fmt.Sprintf("; %s incomplete (not in the means)", thousands(all.incomplete))
	}
	paragraph(w, text, width, "", p)
	if all.noID > 0 {
		paragraph(w, fmt.Sprintf("%s of %s in the log have no trace id (N/A): no batch is known for them, each is a trace of its own, and they are grouped by function here",
			thousands(all.noID), plural(all.calls+all.incomplete, "call")), width, "", p)
	}
	bad := slices.ContainsFunc(byFunc, func(s *sums) bool { return len(s.verdicts.names) > 0 })
	for _, s := range byFunc {
		if !bad || len(s.verdicts.names) > 0 {
			s.verdicts.print(w, s.function, width, p)
		}
	}
}

// conclusion says how many calls spent more than 30 % of their time in TransferQueue, and where, if that was on one of several hosts.
func conclusion(traces []*trace) string {
	hosts, high, where := map[string]bool{}, 0, map[string]bool{}
	for _, t := range traces {
		for _, f := range t.functions() {
			host := clean(f.attr(spans.AttrHostName))
			hosts[host] = true
			if v, ok := f.overhead(); ok && v > 0.3 {
				where[host] = true
				high++
			}
		}
	}
	switch on := strings.Join(slices.Collect(maps.Keys(where)), ""); {
	case high == 0:
		return ""
	case len(where) == 1 && len(hosts) > 1 && on != "":
		return fmt.Sprintf("; %s above 30%%, all on %s", plural(high, "call"), on)
	}
	return fmt.Sprintf("; %s above 30%%", plural(high, "call"))
}

// tallies are how often each verdict was passed.
type tallies struct {
	names map[string]int // of those that are not good
	good  map[string]int
}

func newTallies() *tallies { return &tallies{map[string]int{}, map[string]int{}} }

// count adds the verdicts about a span and those below it.
func (l *tallies) count(s *span) {
	told := map[string]bool{}
	for _, v := range s.verdicts() {
		told[v.name] = true
	}
	for _, name := range s.verdictNames() {
		if good := !told[name] && strings.HasSuffix(name, "_good"); good {
			l.good[name]++
		} else {
			l.names[name]++
		}
	}
	for _, c := range s.children {
		l.count(c)
	}
}

// shown are the counts by name; good ones only where there is nothing else to say.
func (l *tallies) shown() map[string]int {
	if len(l.names) == 0 {
		return l.good
	}
	return l.names
}

// print says how often each verdict was passed.
func (l *tallies) print(w *strings.Builder, name string, width int, p palette) {
	verdicts := l.shown()
	var all []string
	for _, k := range byCount(verdicts) {
		all = append(all, fmt.Sprintf("%s× %s", thousands(verdicts[k]), clean(k)))
	}
	if len(all) > 0 {
		paragraph(w, fmt.Sprintf("verdicts on %s: %s", clean(name), strings.Join(all, ", ")), width, "", p)
	}
}

func (s *sums) cell(ns int64) string {
	if s.calls == 0 {
		return "-"
	}
	return mean(ns, s.calls) + " (" + s.share(ns) + ")"
}

func mean(ns int64, calls int) string {
	if calls == 0 {
		return "-"
	}
	return duration(ns / int64(calls))
}

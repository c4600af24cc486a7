package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

// sums of the calls of one function, in ns.
type sums struct {
	calls, incomplete        int
	total, get, compute, put int64
	verdicts                 map[string]int
}

func (s *sums) share(ns int64) string {
	if s.total == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(ns)/float64(s.total))
}

// table prints per function what verl's analyser reports: calls, mean times and shares. Means and shares are of the
// complete calls; shares are of summed times, as the analyser's are.
func table(w *strings.Builder, traces []*trace, p palette) {
	byFunc := map[string]*sums{}
	all := &sums{}
	for _, t := range traces {
		for _, f := range t.functions() {
			name := cmp.Or(f.attr(spans.AttrTQFunction), f.Name())
			s := byFunc[name]
			if s == nil {
				s = &sums{verdicts: map[string]int{}}
				byFunc[name] = s
			}
			count(f, s.verdicts)
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
	if len(byFunc) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(byFunc))
	wide := len("function")
	for _, n := range names {
		wide = max(wide, len([]rune(clean(n))))
	}
	fmt.Fprintf(w, "%s\n", p.bold(fmt.Sprintf("%-*s %6s %10s %20s %20s %20s %11s", wide, "function", "calls", "mean", "get", "compute", "put", "TQ overhead")))
	for _, n := range names {
		s := byFunc[n]
		fmt.Fprintf(w, "%-*s %6d %10s %20s %20s %20s %s\n", wide, clean(n), s.calls, mean(s.total, s.calls), s.cell(s.get), s.cell(s.compute), s.cell(s.put),
			p.overhead(fmt.Sprintf("%11s", s.share(s.get+s.put)), s.get+s.put, s.total))
		all.calls += s.calls
		all.incomplete += s.incomplete
		all.total += s.total
		all.get += s.get
		all.put += s.put
	}
	fmt.Fprintf(w, "all: %d calls, %s in functions, %s in TransferQueue, overhead %s", all.calls, duration(all.total), duration(all.get+all.put), all.share(all.get+all.put))
	if all.incomplete > 0 {
		fmt.Fprintf(w, "; %d incomplete (not in the means)", all.incomplete)
	}
	fmt.Fprintln(w)
	for _, n := range names {
		tally(w, n, byFunc[n].verdicts)
	}
}

// tally prints how often each verdict was passed.
func tally(w *strings.Builder, name string, verdicts map[string]int) {
	var parts []string
	for _, k := range slices.SortedFunc(maps.Keys(verdicts), func(a, b string) int { return cmp.Or(cmp.Compare(verdicts[b], verdicts[a]), cmp.Compare(a, b)) }) {
		parts = append(parts, fmt.Sprintf("%d× %s", verdicts[k], clean(k)))
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "verdicts on %s: %s\n", clean(name), strings.Join(parts, ", "))
	}
}

// count adds the verdicts about a span and those below it.
func count(s *span, into map[string]int) {
	for _, name := range s.verdictNames() {
		into[name]++
	}
	for _, c := range s.children {
		count(c, into)
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

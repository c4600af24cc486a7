package show

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// verdict is a verdict of train_perf, with texts that are safe for a terminal.
type verdict struct {
	view.Said
	reason           string
	value, threshold float64 // NaN: not given
}

// verdictName returns the name of a verdict, safe for a terminal; "verdict" if it has none.
func verdictName(name string) string { return reading.Clean(cmp.Or(name, "verdict")) }

// verdicts returns the verdicts on a span, with texts that are safe for a terminal.
func verdicts(s *tree.Span) (out []verdict) {
	for v := range view.Verdicts(s.Span) {
		said := view.Said{Name: verdictName(v.Name), Severity: reading.Clean(v.Severity), Cause: reading.Clean(v.Cause), Stage: reading.Clean(v.Stage)}
		out = append(out, verdict{said, reading.Clean(v.Reason), v.Value, v.Threshold})
	}
	return out
}

// summary returns the verdict in a few words, "overhead 41 % > 30 %": title, value and limit, in the unit that the registry has for the verdict. Without a
// value or a limit, the title.
func (v verdict) summary() string {
	if math.IsNaN(v.value) || math.IsNaN(v.threshold) {
		return v.Title()
	}
	sign := ">"
	if v.value < v.threshold {
		sign = "<"
	}
	write := human.Digits // of a unit without a form of its own, or of a foreign verdict
	known, _ := spans.VerdictNamed(v.Name, v.Cause)
	switch known.Unit {
	case spans.UnitBytesPerSecond:
		write = human.BinaryRate
	case spans.UnitOne:
		write = human.Percent
	case spans.UnitSeconds:
		write = human.Seconds
	case "":
		if known.Name != "" && v.threshold > 1e9 { // above 1e9 only FLOP/s; below, the unit is in the reason alone
			write = human.Flops
		}
	}
	return v.Title() + " " + write(v.value) + " " + sign + " " + write(v.threshold)
}

// excess returns how bad the value is: the ratio of value and limit, always above 1, so that values far below the limit are as bad as values far above. 0 if
// unknown.
func (v verdict) excess() float64 {
	r := math.Abs(v.value / v.threshold)
	r = max(r, 1/r)
	if math.IsNaN(r) { // no value to compare
		return 0
	}
	return r
}

// printVerdictCounts prints how often each verdict was given on a function, a log or a kind of windows: "verdicts on steps: 12× slow step"; nothing if none
// was.
func printVerdictCounts(w *strings.Builder, on string, v digest.Verdicts, l style) {
	counts := v.Shown()
	var all []string
	for _, name := range digest.ByCount(counts) {
		all = append(all, fmt.Sprintf("%s× %s", human.Thousands(counts[name]), reading.Clean(name)))
	}
	if len(all) > 0 {
		printParagraph(w, fmt.Sprintf("verdicts on %s: %s", reading.Clean(on), strings.Join(all, ", ")), "", l)
	}
}

// printMeanings prints, below a waterfall, a line for each kind of verdict of the trace, the most frequent first: how many there are, and the reason of the
// worst. The rows have only the names of verdicts. Kinds differ by title, and by window: a slow batch may lie in a slow step.
func printMeanings(w *strings.Builder, t *tree.Trace, l style) {
	type kind struct {
		n        int
		worst    verdict
		severity string
	}
	kinds := map[string]*kind{}
	for _, s := range t.Spans {
		for _, v := range verdicts(s) {
			title := v.Title() + " " + spans.AttrText(s.Attributes(), spans.AttrStepWindow)
			k := kinds[title]
			if k == nil {
				k = &kind{worst: v, severity: v.Severity}
				kinds[title] = k
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
	fmt.Fprintf(w, "\n%s\n", l.Bold("What the verdicts mean"))
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(kinds[b].n, kinds[a].n), cmp.Compare(a, b))
	})
	for _, name := range names {
		k := kinds[name]
		text := fmt.Sprintf("%d× %s", k.n, k.worst.Title())
		switch {
		case k.worst.reason != "" && k.n > 1:
			text += "; the worst: " + k.worst.reason
		case k.worst.reason != "":
			text += ": " + k.worst.reason
		}
		for i, line := range human.Wrap(text, max(l.width, minWidth)-2) {
			if i == 0 {
				line = l.Paint(cmp.Or(severityColour[k.severity], "33"), line)
			} else {
				line = "  " + line
			}
			fmt.Fprintln(w, line)
		}
	}
}

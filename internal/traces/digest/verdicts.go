package digest

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Verdicts are how often each verdict was passed, by name.
type Verdicts struct {
	Bad  map[string]int // warnings too
	Good map[string]int
}

// Shown are the counts to print: good verdicts only where there are no others.
func (v *Verdicts) Shown() map[string]int {
	if len(v.Bad) == 0 && v.Good != nil {
		return v.Good
	}
	if v.Bad == nil {
		return map[string]int{}
	}
	return v.Bad
}

func (v *Verdicts) count(name string, good bool) {
	of := &v.Bad
	if good {
		of = &v.Good
	}
	if *of == nil {
		*of = map[string]int{}
	}
	(*of)[name]++ // names are those of the findings, which are bounded
}

// Finding is one verdict, over all spans that it was passed on.
type Finding struct {
	Name     string
	Severity string // the registry's; of a verdict that it does not know, the worst of its spans
	Count    int64
	// Worst are those that are furthest from their limits, in ratio. Good verdicts have none.
	Worst Top[view.Verdict]
}

// Findings are all verdicts.
type Findings struct{ by table[string, Finding] }

var severities = []string{spans.SeverityBad, spans.SeverityWarning, spans.SeverityGood}

// worse is the worse of two severities.
func worse(a, b string) string {
	for _, s := range severities {
		if a == s || b == s {
			return s
		}
	}
	return a
}

// Rows are the verdicts, the worst first: by severity, then by how often, then by name.
func (d *Findings) Rows() []*Finding {
	rank := func(f *Finding) int {
		if i := slices.Index(severities, f.Severity); i >= 0 {
			return i
		}
		return 1
	}
	return d.by.rows(func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
}

// told counts the verdicts of a span, also for what the span is of.
func (d *Digest) told(s ptrace.Span, head *view.Head, res *resource, of ...*Verdicts) {
	n := head.Verdicts.Len()
	if n == 0 {
		return
	}
	var events []view.Verdict
	if s.Events().Len() > 0 {
		events = slices.Collect(view.Verdicts(s))
	}
	for i := range n {
		name := head.Verdicts.Text(i)
		f := d.Verdicts.by.of(name, Other, mostDistributed, func(name string) (string, *Finding) {
			name = text(name)
			known, _ := spans.VerdictNamed(name)
			return name, &Finding{Name: name, Severity: known.Severity}
		})
		f.Count++
		at := slices.IndexFunc(events, func(v view.Verdict) bool { return v.Name == name })
		good := at < 0 && strings.HasSuffix(name, "_good")
		for _, v := range of {
			v.count(f.Name, good)
		}
		if _, known := spans.VerdictNamed(name); !known {
			f.Severity = worse(f.Severity, text(head.Severity))
		}
		if at >= 0 {
			v := &events[at]
			if of := f.Worst.add(mostShown, excess(v), s, res); of != nil {
				*of = view.Verdict{Name: f.Name, Reason: text(v.Reason), Value: v.Value, Threshold: v.Threshold}
			}
		}
	}
}

// excess is how far a value is from its limit, whichever side is the bad one; 0 where that is not known.
func excess(v *view.Verdict) float64 {
	r := math.Abs(v.Value / v.Threshold)
	if r = max(r, 1/r); math.IsNaN(r) {
		return 0
	}
	return r
}

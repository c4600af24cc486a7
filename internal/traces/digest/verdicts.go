package digest

import (
	"cmp"
	"math"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Verdicts are how often each verdict was passed, by title.
type Verdicts map[string]int

// Shown returns the counts, never nil.
func (v Verdicts) Shown() map[string]int {
	if v == nil {
		return map[string]int{}
	}
	return v
}

// Finding is a verdict, over all spans with the verdict.
type Finding struct {
	view.Said
	Count int64
	Worst Top[view.Verdict] // the furthest from their limits, in ratio
}

// Findings are all verdicts.
type Findings struct{ by table[view.Said, Finding] }

// Rows returns the verdicts, the worst first: by severity, then by how often, then by title.
func (d *Findings) Rows() []*Finding {
	mild := func(f *Finding) int {
		if f.Severity == spans.SeverityBad {
			return 0
		}
		return 1
	}
	return d.by.rows(func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(mild(a), mild(b)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Title(), b.Title()), cmp.Compare(a.Severity, b.Severity))
	})
}

// countVerdicts counts the verdicts of a span: each verdict as a Finding, with the worst spans as examples, and its title in each of the given counts.
func (d *Digest) countVerdicts(s ptrace.Span, head *view.Head, res *resource, counters ...*Verdicts) {
	if head.Verdicts.Len() == 0 {
		return
	}
	for v := range head.Told(s) {
		f := d.Verdicts.by.findOrMake(v.Said, view.Said{Name: Other}, mostDistributed, func(said view.Said) (view.Said, *Finding) {
			said = view.Said{Name: shortText(said.Name), Severity: shortText(said.Severity), Cause: shortText(said.Cause), Stage: shortText(said.Stage)}
			return said, &Finding{Said: said}
		})
		f.Count++
		title := f.Title()
		for _, counts := range counters {
			if *counts == nil {
				*counts = Verdicts{}
			}
			(*counts)[title]++ // titles are the findings' own, which are bounded
		}
		if v.Reason == "" && math.IsNaN(v.Value) {
			continue // without an explaining event
		}
		if worst := f.Worst.add(mostShown, excessRatio(&v), s, res); worst != nil {
			*worst = view.Verdict{Said: f.Said, Reason: shortText(v.Reason), Value: v.Value, Threshold: v.Threshold}
		}
	}
}

// excessRatio returns how far a value is beyond its limit, in either direction, as a ratio of at least 1; 0: unknown.
func excessRatio(v *view.Verdict) float64 {
	r := math.Abs(v.Value / v.Threshold)
	r = max(r, 1/r)
	if math.IsNaN(r) {
		return 0
	}
	return r
}

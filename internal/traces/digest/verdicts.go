package digest

import (
	"strings"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// Verdicts are how often each verdict was passed, by name.
type Verdicts struct {
	Bad  map[string]int // warnings too
	Good map[string]int
}

func newVerdicts() Verdicts { return Verdicts{map[string]int{}, map[string]int{}} }

// count adds the verdicts on a span and on the spans below it.
func (v *Verdicts) count(s *tree.Span) {
	told := map[string]bool{}
	for e := range view.Verdicts(s.Span) {
		told[e.Name] = true
	}
	for i := range s.Head.Verdicts.Len() {
		name := s.Head.Verdicts.At(i).AsString()
		if good := !told[name] && strings.HasSuffix(name, "_good"); good {
			v.Good[name]++
		} else {
			v.Bad[name]++
		}
	}
	for _, c := range s.Children {
		v.count(c)
	}
}

// Shown are the counts to print: good verdicts only where there are no others.
func (v *Verdicts) Shown() map[string]int {
	if len(v.Bad) == 0 {
		return v.Good
	}
	return v.Bad
}

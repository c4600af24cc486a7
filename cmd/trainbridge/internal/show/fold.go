package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// fold sums up spans with a common row: children of one span, or roots.
type fold struct {
	name              string // of the row; "": the name of the first span
	spans             []*tree.Span
	incomplete        int            // how many spans are incomplete
	whole             bool           // all spans of the name are in the fold: the row says "×12", else "×12 more"
	parent            *tree.Span     // nil for roots
	shortest, longest int64          // ns
	total             int64          // ns, the sum
	start, end        int64          // of the first and the last, ns since 1970
	verdicts          map[string]int // by title, of the spans and all spans below
	names             []string       // the titles of verdicts, in the order of their first appearance
}

// newFold returns a fold of a span.
func newFold(s *tree.Span) *fold {
	f := &fold{parent: s.Parent, shortest: s.NS(), start: s.Start(), end: s.End(), verdicts: map[string]int{}}
	f.add(s)
	return f
}

// add adds a span to the row, with the verdicts on the span and on all spans below.
func (f *fold) add(s *tree.Span) {
	f.spans = append(f.spans, s)
	f.total += s.NS()
	f.shortest, f.longest = min(f.shortest, s.NS()), max(f.longest, s.NS())
	f.start, f.end = min(f.start, s.Start()), max(f.end, s.End())
	if s.Head.Incomplete {
		f.incomplete++
	}
	var walk func(s *tree.Span)
	walk = func(s *tree.Span) {
		for _, v := range verdicts(s) {
			if f.verdicts[v.Title()] == 0 {
				f.names = append(f.names, v.Title())
			}
			f.verdicts[v.Title()]++
		}
		for _, c := range s.Children {
			walk(c)
		}
	}
	walk(s)
}

// times returns the shortest and the longest time: "1.2 s–3.4 s".
func (f *fold) times() string {
	return human.Range(human.Nanoseconds(f.shortest), human.Nanoseconds(f.longest))
}

// details returns the text after the bar of a fold: the number of incomplete spans, the sum and its share of the time of the parent, what domains add, and the
// number of each verdict. Roots, and spans that ran at the same time, have no sum.
func (f *fold) details() string {
	var d []string
	if f.incomplete > 0 {
		d = append(d, fmt.Sprintf("%d INCOMPLETE", f.incomplete))
	}
	parallel := func(d *domain) bool { return d.parallel != nil && d.parallel(f.parent) }
	if f.parent != nil && !slices.ContainsFunc(domains[:], parallel) {
		d = append(d, "together "+human.Nanoseconds(f.total))
		if whole := f.parent.NS(); whole > 0 {
			d = append(d, human.Percent(float64(f.total)/float64(whole)))
		}
	}
	for _, domain := range domains {
		if domain.foldDetails != nil {
			d = append(d, domain.foldDetails(f)...)
		}
	}
	for _, name := range f.names {
		d = append(d, fmt.Sprintf("%d× %s", f.verdicts[name], name))
	}
	return strings.Join(d, " · ")
}

// child is a row to draw below a span: a child, or a fold of several.
type child struct {
	*tree.Span
	bare bool  // without the spans below
	fold *fold // nil, or the children that the row stands for; Span is the first
}

// longestFirst returns the children with as many of the longest as keep (0: all) drawn with their own children. The other children have one row for each name,
// at the end; a single one left of a name is drawn without its children, at its place. Aggregates are never among the longest. The order is the given one.
func longestFirst(children []*tree.Span, keep int) []child {
	out := make([]child, 0, len(children))
	if keep == 0 || len(children) <= keep {
		for _, c := range children {
			out = append(out, child{Span: c})
		}
		return out
	}
	ranked := slices.DeleteFunc(slices.Clone(children), func(s *tree.Span) bool { return s.Kind == view.KindAggregate })
	slices.SortStableFunc(ranked, func(a, b *tree.Span) int { return cmp.Compare(b.NS(), a.NS()) })
	whole := map[*tree.Span]bool{}
	for _, c := range ranked[:min(keep, len(ranked))] {
		whole[c] = true
	}
	count, left := map[string]int{}, map[string]int{} // by name: all children, and those not drawn whole
	for _, c := range children {
		count[c.Name()]++
		if !whole[c] {
			left[c.Name()]++
		}
	}
	var folds []child
	at := map[string]int{} // places in folds, by name
	for _, c := range children {
		name := c.Name()
		i, known := at[name]
		switch {
		case whole[c] || left[name] == 1:
			out = append(out, child{Span: c, bare: !whole[c]})
		case known:
			folds[i].fold.add(c)
		default:
			at[name] = len(folds)
			f := newFold(c)
			f.whole = left[name] == count[name]
			folds = append(folds, child{Span: c, fold: f})
		}
	}
	return append(out, folds...)
}

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

// fold sums up spans below a parent that are not drawn individually.
type fold struct {
	name              string // the spans' name; "": they have several
	spans             []*tree.Span
	incomplete        int
	whole             bool // no more spans of the name
	parent            *tree.Span
	shortest, longest int64 // ns
	together          int64 // ns
	start, end        int64
	verdicts          map[string]int
	names             []string // of verdicts, in the given order
}

func newFold(s *tree.Span) *fold {
	f := &fold{parent: s.Parent, shortest: s.NS(), start: s.Start(), end: s.End(), verdicts: map[string]int{}}
	f.add(s)
	return f
}

func (f *fold) add(s *tree.Span) {
	f.spans = append(f.spans, s)
	f.together += s.NS()
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

func (f *fold) times() string {
	return human.Range(human.Nanoseconds(f.shortest), human.Nanoseconds(f.longest))
}

func (f *fold) details() string {
	var d []string
	if f.incomplete > 0 {
		d = append(d, fmt.Sprintf("%d INCOMPLETE", f.incomplete))
	}
	parallel := func(d *domain) bool { return d.parallel != nil && d.parallel(f.parent) }
	if f.parent != nil && !slices.ContainsFunc(domains[:], parallel) {
		d = append(d, "together "+human.Nanoseconds(f.together))
		if whole := f.parent.NS(); whole > 0 {
			d = append(d, human.Percent(float64(f.together)/float64(whole)))
		}
	}
	for _, domain := range domains {
		if domain.folded != nil {
			d = append(d, domain.folded(f)...)
		}
	}
	for _, name := range f.names {
		d = append(d, fmt.Sprintf("%d× %s", f.verdicts[name], name))
	}
	return strings.Join(d, " · ")
}

// child is a span to draw below another, with or without the spans below, or part of a fold.
type child struct {
	*tree.Span
	bare bool
	fold *fold
}

// longest keeps the longest children whole, and draws the others without the spans below: a row per name at the end.
func longest(children []*tree.Span, keep int) []child {
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
	count, left := map[string]int{}, map[string]int{}
	for _, c := range children {
		count[c.Name()]++
		if !whole[c] {
			left[c.Name()]++
		}
	}
	var folds []child
	at := map[string]int{}
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

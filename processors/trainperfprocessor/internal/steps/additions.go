package steps

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// additions are the attributes to be added to a span: their number is known before the map has to grow.
type additions []addition

// addition is an attribute: a text, or a number.
type addition struct {
	name string
	kind pcommon.ValueType
	x    float64
	text string
}

// text adds a text.
func (a *additions) text(name, text string) {
	*a = append(*a, addition{name: name, kind: pcommon.ValueTypeStr, text: text})
}

// finite adds a number if it is finite: NaN, an unknown value here, breaks backends that store JSON.
func (a *additions) finite(name string, x float64) {
	if spans.Finite(x) {
		*a = append(*a, addition{name: name, kind: pcommon.ValueTypeDouble, x: x})
	}
}

// whole adds a count: as an integer if it is a whole number, else as finite does.
func (a *additions) whole(name string, x float64) {
	if x == math.Trunc(x) && x < 1<<53 {
		*a = append(*a, addition{name: name, kind: pcommon.ValueTypeInt, x: x})
	} else {
		a.finite(name, x)
	}
}

// stated are attributes common to all steps of a resource.
type stated struct {
	additions
	needed [16]bool // by the place in additions, of which there are fewer: a step has the attribute
}

// removeStated removes the attributes that the resource states with the same value, and marks these as needed on the resource.
func (a *additions) removeStated(common *stated) {
	list, n := *a, 0
	for i := range list {
		if common.markIfStated(&list[i]) {
			continue
		}
		if n < i {
			list[n] = list[i]
		}
		n++
	}
	*a = list[:n]
}

// markIfStated reports whether the resource states an attribute with the same value, and marks the attribute as needed.
func (s *stated) markIfStated(v *addition) bool {
	for i := range s.additions {
		if own := &s.additions[i]; own.x == v.x && *own == *v { // most attributes differ in the number, compared first
			s.needed[i] = true
			return true
		}
	}
	return false
}

// put writes to the resource the attributes that a step needs there.
func (s *stated) put(attrs pcommon.Map) {
	n := 0
	for i, x := range s.additions {
		if s.needed[i] {
			s.additions[n] = x
			n++
		}
	}
	s.additions = s.additions[:n]
	if n > 0 {
		s.additions.put(attrs, 0)
	}
}

// put writes the attributes, and makes room for so many others.
func (a additions) put(attrs pcommon.Map, others int) {
	attrs.EnsureCapacity(attrs.Len() + len(a) + others)
	for i := range a {
		switch v := &a[i]; v.kind {
		case pcommon.ValueTypeInt:
			attrs.PutInt(v.name, int64(v.x))
		case pcommon.ValueTypeDouble:
			attrs.PutDouble(v.name, v.x)
		default:
			attrs.PutStr(v.name, v.text)
		}
	}
}

// positive reports whether a number is known and above 0: neither NaN nor infinite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

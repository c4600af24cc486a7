package view

import (
	"math"
	"reflect"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// absent is a quantity missing in the span.
var absent = math.NaN()

// blank returns a view of an empty span: all its quantities are absent.
func blank[T any]() (out T) {
	fill(reflect.ValueOf(&out).Elem())
	return out
}

// fill sets all quantities of a view to absent, at any depth.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(absent)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	}
}

// Int is a whole number that names or orders something. The zero value is absent.
type Int struct {
	N  int64
	OK bool
}

// Or returns the number, or other if absent.
func (i Int) Or(other int64) int64 {
	if i.OK {
		return i.N
	}
	return other
}

// IntOf reads a whole number: an integer, or a double without decimals and below 2⁵³.
func IntOf(v pcommon.Value) Int {
	if n := v.Int(); n != 0 {
		return Int{n, true} // most values are integers; the code below is not inlined
	}
	return intOfDouble(v)
}

// intOfDouble is IntOf for any value but an integer other than 0.
func intOfDouble(v pcommon.Value) Int {
	switch x := v.Double(); v.Type() {
	case pcommon.ValueTypeInt:
		return Int{0, true}
	case pcommon.ValueTypeDouble:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return Int{int64(x), true}
		}
	}
	return Int{}
}

// ordinalOf reads a whole number not below 0.
func ordinalOf(v pcommon.Value) Int {
	if n := v.Int(); n > 0 {
		return Int{n, true} // as in IntOf
	}
	if i := IntOf(v); i.N >= 0 {
		return i
	}
	return Int{}
}

// flagOf reads a flag.
func flagOf(v pcommon.Value) bool { return v.Type() == pcommon.ValueTypeBool && v.Bool() }

// List is an attribute of type list. The zero value is empty.
type List struct {
	of pcommon.Slice
	n  int
}

// listOf reads a list.
func listOf(v pcommon.Value) List {
	if v.Type() != pcommon.ValueTypeSlice {
		return List{}
	}
	return List{of: v.Slice(), n: v.Slice().Len()}
}

// Len returns the number of elements.
func (l List) Len() int { return l.n }

// At returns the element i.
func (l List) At(i int) pcommon.Value { return l.of.At(i) }

// Text returns the element i, empty if not a text.
func (l List) Text(i int) string { return spans.ValueText(l.of.At(i)) }

// Int returns the element i, absent if not a whole number.
func (l List) Int(i int) Int { return IntOf(l.of.At(i)) }

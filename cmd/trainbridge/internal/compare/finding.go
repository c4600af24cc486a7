package compare

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/human"
)

// Findings about a figure; the values stand in the JSON document.
const (
	findingNone   = "no difference that can be told"
	findingFew    = "too few to tell"
	findingOnlyA  = "only in A"
	findingOnlyB  = "only in B"
	findingHigher = "higher"
	findingLower  = "lower"
)

// finding returns the result for a figure, one of the constants above.
func (f *figure) finding() string {
	switch {
	case len(f.b) == 0: // then A has values: a figure without any is not added
		return findingOnlyA
	case len(f.a) == 0:
		return findingOnlyB
	case !f.told:
		return findingFew
	case f.noDifference():
		return findingNone
	case f.difference.value > 0:
		return findingHigher
	}
	return findingLower
}

// differs reports whether a difference is found.
func (f *figure) differs() bool { return f.finding() == findingHigher || f.finding() == findingLower }

// worse reports whether a difference is found and B is worse than A.
func (f *figure) worse() bool { return f.differs() && f.difference.value*float64(f.better) < 0 }

// scale is a unit of printed numbers.
type scale struct {
	by   float64 // in the base unit: 1e-3 for ms
	name string
}

// scales are the units for numbers of each base unit, the largest first.
var scales = map[string][]scale{
	"s":      {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}},
	"By/s":   {{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}},
	"FLOP/s": {{1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}},
	"1":      {{0.01, "%"}},
	"1/s":    {{1, ""}},
	"":       {{1, ""}},
}

// scale returns the unit in which both means are printed: the largest in which the larger mean is 1 or more, else the smallest.
func (f *figure) scale() scale {
	all := scales[f.unit]
	for _, s := range all {
		if max(math.Abs(orZero(f.estimate.a)), math.Abs(orZero(f.estimate.b))) >= s.by {
			return s
		}
	}
	return all[len(all)-1]
}

// digits returns a number with three significant digits, with trailing zeros, so that two numbers are easily compared.
func digits(v float64) string { return human.Fixed(v, human.Decimals(v)) }

// signedDigits returns a difference with its sign, and with as many decimals as the mean (of) has.
func signedDigits(v, of float64) string { return human.Signed(v, human.Decimals(of)) }

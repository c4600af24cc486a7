package compare

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
)

// What is found about a figure; the values stand in the JSON document.
const (
	findingNone   = "no difference that can be told"
	findingFew    = "too few to tell"
	findingOnlyA  = "only in A"
	findingOnlyB  = "only in B"
	findingHigher = "higher"
	findingLower  = "lower"
)

func (f *figure) finding() string {
	switch {
	case len(f.b) == 0:
		if f.countA > 0 {
			return findingOnlyA
		}
		return findingFew
	case len(f.a) == 0:
		return findingOnlyB
	case !f.told:
		return findingFew
	case f.zero():
		return findingNone
	case f.difference.value > 0:
		return findingHigher
	}
	return findingLower
}

// differs says whether there is a difference that can be told.
func (f *figure) differs() bool { return f.finding() == findingHigher || f.finding() == findingLower }

// worse says whether B is worse than A.
func (f *figure) worse() bool { return f.differs() && f.difference.value*float64(f.better) < 0 }

// scale is a unit that numbers are printed in.
type scale struct {
	by   float64
	name string
}

var scales = map[string][]scale{
	"s":      {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}},
	"By/s":   {{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}},
	"FLOP/s": {{1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}},
	"1":      {{0.01, "%"}},
	"1/s":    {{1, ""}},
	"":       {{1, ""}},
}

// scale is the unit in which both means are printed: the larger one is 1 or more.
func (f *figure) scale() scale {
	all := scales[f.unit]
	for _, s := range all {
		if max(math.Abs(orZero(f.estimate.a)), math.Abs(orZero(f.estimate.b))) >= s.by {
			return s
		}
	}
	return all[len(all)-1]
}

// digits prints a number with four significant digits, and whole numbers of more whole.
func digits(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case math.Abs(v) >= 1000:
		return fmt.Sprintf("%.0f", human.Number(v))
	case v == 0:
		return "0"
	}
	after := 3 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', min(max(after, 0), 6), 64)
}

// change prints a difference with as many digits behind the point as the means have.
func change(v, of float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	after := 0
	if _, behind, ok := strings.Cut(digits(of), "."); ok {
		after = len(behind)
	}
	return fmt.Sprintf("%+.*f", after, human.Number(v))
}

// percents prints a ratio as a change.
func percents(ratio float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", human.Number(100*(ratio-1)))
}

package human

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// A number is printed as fmt prints it, unless its digits would be many.
func TestNumber(t *testing.T) {
	for format, numbers := range map[string]map[float64]string{
		"%.2f":     {0: "0.00", -1.005: "-1.00", 999_999_999_999_999: "999999999999999.00", 1e15: "1e+15", -1e308: "-1e+308", math.MaxFloat64: "1.798e+308"},
		"%+.1f %%": {2: "+2.0 %", 1e300: "+1e+300 %", -1e300: "-1e+300 %"},
		"%8.1f|":   {2: "     2.0|"},
		"%.0f":     {1e14: "100000000000000", math.Inf(1): "+Inf"},
	} {
		for x, want := range numbers {
			assert.Equal(t, want, fmt.Sprintf(format, Number(x)))
		}
	}
	assert.Equal(t, "NaN", fmt.Sprintf("%.1f", Number(math.NaN())))
}

// Whatever a number is, its text keeps to a column.
func TestNumbersKeepToTheirColumn(t *testing.T) {
	for _, x := range []float64{1e308, -1e308, 1e15, 123_456_789_012_345} {
		for _, text := range []string{Thousands(x), fmt.Sprintf("%.4f", Number(x))} {
			assert.LessOrEqual(t, utf8.RuneCountInString(text), 21, text)
		}
	}
	assert.Equal(t, "1e+308", Thousands(1e308))
	assert.Equal(t, "123,456,789,012,345", Thousands(123_456_789_012_345.0))
	assert.Equal(t, "9,223,372,036,854,775,807", Thousands(int64(math.MaxInt64)))
	assert.False(t, strings.HasPrefix(Thousands(1e300), "-"))
}

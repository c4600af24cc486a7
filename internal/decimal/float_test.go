package decimal_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFloat(t *testing.T) {
	for in, want := range map[string]float64{
		"0": 0, "7": 7, "+7": 7, "-7.5": -7.5, "007": 7, "5.": 5, ".5": 0.5, "1e3": 1000, "1E+3": 1000, "3e-06": 0.000003, "1.249e+03": 1249,
		"4.99804827338393e-05": 4.99804827338393e-05, "0.09767807275056839": 0.09767807275056839, "-0.0036091046008680547": -0.0036091046008680547,
		"9007199254740993": 9007199254740992, "18446744073709551615": 18446744073709551615, "123456789012345678901234567890": 123456789012345678901234567890,
		"0.1": 0.1, "1e22": 1e22, "1e23": 1e23, "5e-324": 5e-324, "1e-400": 0, "8388608": 8388608, "127785762816": 127785762816,
		"1e999": math.Inf(1), "-1e999": math.Inf(-1), "inf": math.Inf(1), "+inf": math.Inf(1), "-inf": math.Inf(-1), "Infinity": math.Inf(1),
		"-Infinity": math.Inf(-1), "INF": math.Inf(1),
	} {
		v, ok := decimal.Float([]byte(in))
		assert.True(t, ok, in)
		assert.Equal(t, want, v, in) //nolint:testifylint // every bit is meant
	}
	for _, in := range []string{"nan", "NaN", "NAN", "-nan", "+nan"} {
		v, ok := decimal.Float([]byte(in))
		assert.True(t, ok && math.IsNaN(v), in)
	}
	v, _ := decimal.Float([]byte("-0.0"))
	assert.True(t, math.Signbit(v))
	for _, in := range []string{
		"", " ", "-", "+", ".", "-.", "e5", "1e", "1e+", "1e5x", "0x10", "0x1p3", "1_000", "1,000", "1.2.3", "--1", "1 ", " 1", "nano", "infinite", "in", "N/A",
		"None", "1e5.5", "𝟙",
	} {
		_, ok := decimal.Float([]byte(in))
		assert.False(t, ok, in)
	}
}

func TestLeading(t *testing.T) {
	for text, want := range map[string]struct {
		v float64
		n int
	}{
		"": {}, "-": {}, "e": {}, ".": {}, "x1": {}, "5": {5, 1}, "-5.5x": {-5.5, 4}, "1e3/2": {1000, 3}, "1e": {}, "13236.0[Rank": {13236, 7},
		"1.258B": {1.258, 5}, "0:00": {0, 1}, "inf": {math.Inf(1), 3}, "-inf|": {math.Inf(-1), 4},
		"+Infinity": {math.Inf(1), 9}, "nano": {}, "0.09767807275056839,": {0.09767807275056839, 19}, "1e999}": {math.Inf(1), 5}, "1-2": {}, "eta": {},
		strings.Repeat("9", 400): {math.Inf(1), 400},
	} {
		v, n := decimal.Leading([]byte(text))
		assert.Equal(t, want.n, n, text)
		assert.InDelta(t, want.v, v, 0, text)
	}
	v, n := decimal.Leading([]byte("nan |"))
	assert.Equal(t, 3, n)
	assert.True(t, math.IsNaN(v))
}

func TestGroupedFloat(t *testing.T) {
	for in, want := range map[string]float64{
		"177,138": 177138, "5,941": 5941, "1,234,567.89": 1234567.89, "375": 375, "-1,000": -1000, "1234567": 1234567, "1,096.17": 1096.17,
	} {
		v, ok := decimal.GroupedFloat([]byte(in))
		assert.True(t, ok, in)
		assert.Equal(t, want, v, in) //nolint:testifylint // every bit is meant
	}
	for _, in := range []string{"", ",", ",123", "1,23", "1,2345", "1,,234", "1,234,", "1.5,000", "a,123", "-,123", "1," + strings.Repeat("234,", 30) + "567"} {
		_, ok := decimal.GroupedFloat([]byte(in))
		assert.False(t, ok, in)
	}
}

func TestThousands(t *testing.T) {
	for in, want := range map[string]struct {
		v float64
		n int
	}{
		"1,234":             {1234, 5},
		"-1,234,567.8 tok":  {-1234567.8, 12},
		"1,234...":          {1234, 5},
		"1,2345":            {1, 1},
		"1, 234":            {1, 1},
		"12.5,123":          {12.5, 4},
		"12":                {12, 2},
		"1,234,5":           {1234, 5},
		"1,234,567,890, 12": {1234567890, 13},
	} {
		v, n := decimal.Leading([]byte(in))
		v, n = decimal.Thousands([]byte(in), v, n)
		assert.InDelta(t, want.v, v, 0, in)
		assert.Equal(t, want.n, n, in)
	}
}

func TestReprFloat(t *testing.T) {
	for in, want := range map[string]float64{
		"np.float64(0.0042)": 0.0042, "np.int64(151)": 151, "numpy.float32(-1.5)": -1.5, "np.float64(-inf)": math.Inf(-1), "2.5": 2.5,
	} {
		v, ok := decimal.ReprFloat([]byte(in))
		assert.True(t, ok, in)
		assert.Equal(t, want, v, in) //nolint:testifylint // every bit is meant
	}
	v, ok := decimal.ReprFloat([]byte("np.float64(nan)"))
	assert.True(t, ok && math.IsNaN(v))
	for _, in := range []string{"np.float64()", "np.float64(1", "tensor(1.0)", "np(1)", "(1)", "np.str_('a')", "np.float64(1)2"} {
		_, ok := decimal.ReprFloat([]byte(in))
		assert.False(t, ok, in)
	}
}

// FuzzFloat compares with strconv.
func FuzzFloat(f *testing.F) {
	for _, in := range []string{"0.1", "-1e-22", "123456789.123456789e12", "9007199254740993e1", "nan", "1e400", ".", "0x1p4", "1_0", "177,138", "np.int64(3)"} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		decimal.GroupedFloat(b)
		decimal.ReprFloat(b)
		v, ok := decimal.Float(b)
		want, err := strconv.ParseFloat(string(b), 64)
		if ok {
			if err != nil && !math.IsInf(want, 0) && !strings.Contains(strings.ToLower(string(b)), "nan") {
				t.Fatalf("%q: %v, strconv fails: %v", b, v, err)
			}
			if !math.IsNaN(v) && math.Float64bits(v) != math.Float64bits(want) {
				t.Fatalf("%q: %v, strconv has %v", b, v, want)
			}
			return
		}
		// Texts that only strconv reads: hexadecimal, underscores, and words of mixed case.
		if err == nil && !strings.ContainsAny(string(b), "xX_nN") {
			t.Fatalf("%q refused, strconv has %v", b, want)
		}
	})
}

func BenchmarkFloat(b *testing.B) {
	for _, in := range []string{"2.5", "12.4699", "0.09767807275056839", "4.99804827338393e-05", "nan"} {
		b.Run(in, func(b *testing.B) {
			text := []byte(in)
			b.ReportAllocs()
			for b.Loop() {
				decimal.Float(text)
			}
		})
	}
}

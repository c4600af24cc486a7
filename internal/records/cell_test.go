package records

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		s    scale
		want string
	}{
		{0, asIs, "0"},
		{-0.5, asIs, "-0.5"},
		{12, asIs, "12"},
		{1e-5, asIs, "0.00001"},
		{1049190.4, asIs, "1049190.4"},
		{math.NaN(), percent, "NaN"},
		{math.Inf(-1), asIs, "-inf"},
		{math.Inf(1), milli, "inf"},
		{0.98125, percent, "98.125"},
		{0.07, percent, "7"},
		{0, percent, "0"},
		{-0.29, percent, "-29"},
		{0.000491, milli, "0.491"},
		{1.5e-9, milli, "0.0000015"},
		{1.5e-12, milli, "1.5e-9"},
		{7.483e13, tera, "74.83"},
		{120e9, giga, "120"},
		{1e40, tera, "1e28"},
		{12.5, milli, "12500"},
		{1 << 30, gibi, "1"},
		{57.0 * (1 << 30) / 8, gibi, "7.125"},
		{154, kibi, "0.15"},
		{128348, kibi, "125.34"},
		{8192 * 1024, kibi, "8192"},
		{1, kibi, "0.001"},
		{1.5, kibi, "0.00146484375"},
		{223.25 * (1 << 20), mebi, "223.25"},
	} {
		assert.Equal(t, tt.want, string(appendFloat(nil, tt.x, tt.s)), "%g %+v", tt.x, tt.s)
	}
	for _, tt := range []struct {
		n    int64
		s    scale
		want string
	}{
		{1250500, scaleFromNS(scale{tens: 6}), "1250.5"},
		{0, scaleFromNS(asIs), "0"},
		{1, scaleFromNS(asIs), "1e-9"},
		{-15, scaleFromNS(scale{tens: 9}), "-15"},
		{math.MaxInt64, scaleFromNS(asIs), "9223372036.854775807"},
		{154, kibi, "0.15"},
		{42, asIs, "42"},
	} {
		assert.Equal(t, tt.want, string(appendInt(nil, tt.n, tt.s)), "%d %+v", tt.n, tt.s)
	}
}

func TestRandomNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		x := math.Float64frombits(rng.Uint64())
		if math.IsNaN(x) || math.IsInf(x, 0) || math.Abs(x) > 1e300 || math.Abs(x) < 1e-290 {
			continue
		}
		same, err := strconv.ParseFloat(string(appendFloat(nil, x, asIs)), 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(x), math.Float64bits(same))
		for _, tens := range []int8{-12, -9, 2, 3, 6} {
			got, err := strconv.ParseFloat(string(appendFloat(nil, x, scale{tens: tens})), 64)
			require.NoError(t, err)
			require.InEpsilon(t, x*math.Pow10(int(tens)), got, 1e-14)
		}
		// A size printed with two decimals and read as whole bytes comes out as printed.
		printed := math.Round(rng.Float64()*1e8) / 100
		require.Equal(t, strconv.FormatFloat(printed, 'g', -1, 64), strconv.FormatFloat(divide(math.Round(printed*1024), kibi), 'g', -1, 64))
	}
}

// A name in a log is a single cell, is no formula, and reads back unchanged but for bytes outside of any text and invisible runes.
func TestHostileText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "=1+1": "'=1+1", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0", "-2": "'-2", "@SUM(A1)": "'@SUM(A1)", "\tx": "'\tx", "\rx": "\uFFFDx",
		"a,b": "a,b", `say "hi"`: `say "hi"`, "two\nlines": "two\nlines", "=\n\"": "'=\n\"", "bad\xff": "bad\uFFFD", "nul\x00": "nul\uFFFD", " x ": " x ", "中文": "中文",
		"a=b": "a=b", "\xff=1": "\uFFFD=1", "\x1b]0;owned\x07": "\uFFFD]0;owned\uFFFD", "a\u202eb\u2067\u200b": "a\uFFFDb\uFFFD\uFFFD",
		"\u0085\u009b31m\x7f": "\uFFFD\uFFFD31m\uFFFD", "a\u2028b\ufeff": "a\uFFFDb\uFFFD", "tab\tstop": "tab\tstop",
	} {
		cell := appendCSV(nil, appendText(nil, text))
		assert.True(t, utf8.Valid(cell))
		assert.NotRegexp(t, `[\x00-\x08\x0b-\x1f\x7f-\x{9f}\p{Cf}\p{Zl}\p{Zp}]`, string(cell), "%q", text)
		rows, err := csv.NewReader(strings.NewReader("x," + string(cell) + ",y\n")).ReadAll()
		require.NoError(t, err, "%q", text)
		assert.Equal(t, [][]string{{"x", want, "y"}}, rows, "%q", text)
	}
}

// A column of numbers takes NaN and infinity as pandas reads them, and a text only as a text.
func TestNumberThatIsText(t *testing.T) {
	for text, want := range map[string]string{"NaN": "NaN", "+Inf": "inf", "-Infinity": "-inf", "=1": "'=1", "": ""} {
		assert.Equal(t, want, string(appendCSV(nil, appendNumber(nil, pcommon.NewValueStr(text), asIs))))
	}
}

package human

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// The text of any number keeps to its column.
func TestNumbersKeepToTheirColumn(t *testing.T) {
	for _, x := range []float64{1e308, -1e308, 1e15, 123_456_789_012_345} {
		for _, text := range []string{Thousands(x), Fixed(x, 4), Digits(x)} {
			assert.LessOrEqual(t, utf8.RuneCountInString(text), 21, text)
		}
	}
	assert.Equal(t, "1e+308", Thousands(1e308))
	assert.Equal(t, "1e+15 999999999999999.00 +1e+300 -1e+300 1.8e+308", strings.Join([]string{
		Fixed(1e15, 2), Fixed(999_999_999_999_999, 2), Signed(1e300, 1), Signed(-1e300, 1), Fixed(math.MaxFloat64, 2),
	}, " "))
	assert.Equal(t, "123,456,789,012,345", Thousands(123_456_789_012_345.0))
	assert.Equal(t, "9,223,372,036,854,775,807", Thousands(int64(math.MaxInt64)))
	assert.False(t, strings.HasPrefix(Thousands(1e300), "-"))
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 s", 1: "1 s", 5.402: "5.4 s", 136.32: "136 s", 0.9994: "999 ms", 0.9996: "1 s", 0.89825: "898 ms", 123.4e-6: "123 µs",
		5e-9: "5 ns", 1e-9: "-",
		-0.5: "-500 ms", 300: "300 s", 599.44: "599 s", 599.96: "10 min", 605.4: "10 min 5 s", 3599.6: "1 h", 3600: "1 h", 8040: "2 h 14 min",
		-8040:   "-2 h 14 min",
		359_940: "99 h 59 min", 443_160: "123 h", 4_443_160: "1,234 h", 1e300: "2.78e+296 h", math.NaN(): "-", math.Inf(1): "-",
	} {
		assert.Equal(t, want, Seconds(s))
	}
	assert.Equal(t, "898 ms", Nanoseconds(898_249_999))
	for s, want := range map[float64]float64{
		0: 1e-9, 7.73: 1e-2, 12: 1e-1, 0.05: 1e-4, 700: 1, 3599.6: 60, 7200: 60, 359_940: 60, 359_970: 3600, 443_160: 3600,
	} {
		assert.InEpsilon(t, want, LastDigit(s), 1e-12, s)
	}
}

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{
		"256 MiB": Bytes(1 << 28), "1.5 TiB": Bytes(1<<40 + 1<<39), "1,000 B": Bytes(1000), "1.5 KiB": Bytes(1536),
		"25 GiB": Bytes(100 * 256 << 20), "1 GiB": Bytes(1<<30 - 1),
		"180 GB/s": Rate(180.44e9), "999 MB/s": Rate(999e6), "12.5 kB/s": Rate(12.5e3), "8 B/s": Rate(8), "162 MiB/s": BinaryRate(162.4 * (1 << 20)),
		"312 TFLOP/s": Flops(312.4e12), "1.41 GHz": Hertz(1.41e9), "12.5%": Percent(0.125), "4.9%": Percent(0.04932), "100%": Percent(1),
		"0.1%": Percent(0.0006), "0%": Percent(-0.0004), "1,234%": Percent(12.34),
		"+12.5%": Change(1.125), "-12.5%": Change(0.875), "+0%": Change(1), "12,346": Digits(12345.6), "1.5e-06": Digits(1.5e-6),
		"3e-05": Digits(3e-5), "1e+308": Digits(1e308),
		"-1e+15": Digits(-1e15), "1,000": Digits(999.96), "59.5 s": Clock(59.5), "1:30": Clock(90), "2:00:05": Clock(7205), "1.50": Fixed(1.5, 2),
		"+1.50":       Signed(1.5, 2),
		"2.3–4.51 ms": Range("2.3 ms", "4.51 ms"), "898 ms–1.2 s": Range("898 ms", "1.2 s"), "20–35%": Range("20%", "35%"),
		"1 s": Range("1 s", "1 s"), "61 of 80 GiB": Of("61 GiB", "80 GiB"), "1 step": Plural(1, "step"),
		"1,234 losses": Plural(1234, "loss"), "2 batches": Plural(2, "batch"),
	} {
		assert.Equal(t, want, got)
	}
	for _, write := range []func(float64) string{Bytes, Rate, BinaryRate, Flops, Percent, Change, Digits, Clock} {
		assert.Equal(t, Unknown, write(math.NaN()))
	}
}

// Numbers are written on hot paths, into existing memory.
func TestNoAllocations(t *testing.T) {
	b := make([]byte, 0, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b = AppendPercent(AppendBytes(AppendSeconds(AppendDigits(b[:0], 12345), 0.9), 1<<20), 0.5)
	}))
}

func TestColumns(t *testing.T) {
	assert.Equal(t, []string{"one two", "three"}, Wrap("one two three", 8))
	assert.Equal(t, []string{"abcd", "ef"}, Wrap("abcdef", 4))
	assert.Equal(t, []string{"耗时分", "解。"}, Wrap("耗时分解。", 6))
	assert.Equal(t, []string{"耗时，", "分解"}, Wrap("耗时，分解", 6))
	assert.Equal(t, []string{"耗时", "（分", "解）"}, Wrap("耗时（分解）", 6))
	assert.Equal(t, []string{"耗时", "《分", "解》"}, Wrap("耗时《分解》", 6))
	assert.Equal(t, []string{"分解", "耗！时"}, Wrap("分解耗！时", 6))
	assert.Equal(t, []string{"分解", "耗)时"}, Wrap("分解耗)时", 6))
	assert.Equal(t, []string{"耗时", "ms分", "解"}, Wrap("耗时ms分解", 5))
	assert.Equal(t, []string{"时", "间"}, Wrap("时间", 1))
	assert.Equal(t, "耗时…", Cut("耗时分解", 6))
	assert.Empty(t, Cut("abc", 0))
	assert.Equal(t, "耗时  |  ab", Pad("耗时", 6)+"|"+PadLeft("ab", 4))
}

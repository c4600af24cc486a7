package decimal_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

func TestNanos(t *testing.T) {
	for text, want := range map[string]int64{
		"98231.402113": 98231402113000, "0.052000s": 52000000, "0": 0, "1": 1e9, ".5": 5e8, "5.": 5e9, "-0.25": -250000000, "+2": 2e9, "1.1234567899": 1123456789,
		"0.000000001":  1,
		"0.0000000009": 0, "9223372036.854775807": 9223372036854775807, "9.5367431640625e-07": 953, "1e3": 1000e9, "1.5E+2s": 150e9, "12.34e-1": 1234000000,
		"0e99": 0, "0.00001e5": 1e9, "1e-400": 0, "123456789012345678901234e-20": 1234567890123,
		"0.18342280387878418": 183422803,
	} {
		got, err := decimal.Nanos([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "s", ".", "-", "nan", "inf", "1.2.3", "1,5", "0x10", "1e", "1e+", "e5", "1 ", "1ss", "1e5x"} {
		_, err := decimal.Nanos([]byte(text))
		require.ErrorIs(t, err, decimal.ErrDecimal, text)
	}
	for _, text := range []string{"9223372036.854775808", "99999999999999999999", "1e30", "9e999999999999", "99999999999e1"} {
		_, err := decimal.Nanos([]byte(text))
		require.ErrorIs(t, err, decimal.ErrRange, text)
	}
}

// rat reads a number with math/big and cuts digits beyond nanoseconds.
func rat(text string) (*big.Int, bool) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, false
	}
	r.Mul(r, big.NewRat(1e9, 1))
	return new(big.Int).Quo(r.Num(), r.Denom()), true
}

func FuzzNanos(f *testing.F) {
	for _, s := range []string{"98231.402113", "0.052000", "1e-5", "-1.5e2", "9223372036.854775807", "1_0", "0x1p3", "1/2", "00012.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 40 || strings.ContainsAny(s, "_/xXpPbBoOs") { // forms that only math/big reads
			return
		}
		if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 { // keep math/big quick
			return
		}
		got, err := decimal.Nanos([]byte(s))
		want, ok := rat(s)
		switch {
		case err == nil && !ok:
			t.Fatalf("%q read as %d, which math/big refuses", s, got)
		case err == nil && want.Cmp(big.NewInt(got)) != 0:
			t.Fatalf("%q: %d, want %s", s, got, want)
		case err == decimal.ErrDecimal && ok && strings.Trim(s, "+-.0123456789eE") == "": //nolint:errorlint // returned bare
			t.Fatalf("%q refused, math/big reads %s", s, want)
		case err == decimal.ErrRange && ok && want.IsInt64() && want.CmpAbs(big.NewInt(1<<62)) < 0: //nolint:errorlint // as above
			t.Fatalf("%q out of range, math/big reads %s", s, want)
		}
	})
}

func BenchmarkNanos(b *testing.B) {
	in := []byte("98231.402113")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decimal.Nanos(in); err != nil {
			b.Fatal(err)
		}
	}
}

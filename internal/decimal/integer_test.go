package decimal_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

func TestUnsigned(t *testing.T) {
	for text, want := range map[string]struct {
		v   uint64
		end int
	}{
		"": {}, "x": {}, "-1": {}, "0": {0, 1}, "007,": {7, 3}, "9999999999999999999,": {9999999999999999999, 19}, "18446744073709551615": {math.MaxUint64, 20},
		"18446744073709551616": {}, "99999999999999999999": {}, "000000000000000000000012": {12, 24}, "184467440737095516150": {},
	} {
		v, end := decimal.Unsigned([]byte(text), 0)
		assert.Equal(t, want.v, v, text)
		assert.Equal(t, want.end, end, text)
	}
	v, end := decimal.Unsigned([]byte("ab12c"), 2)
	assert.Equal(t, uint64(12), v)
	assert.Equal(t, 4, end)
}

func TestInteger(t *testing.T) {
	v, n := decimal.Integer([]byte("1200 x"), 4)
	assert.Equal(t, []int{1200, 4}, []int{int(v), n})
	_, n = decimal.Integer([]byte("12000"), 4)
	assert.Zero(t, n)
	_, n = decimal.Integer(nil, 4)
	assert.Zero(t, n)
}

func TestThousandths(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "5": 5000, "5.": 5000, "1250.5": 1250500, "0.0004": 0, "0.0005": 1, "1.23456": 1235, "0.9995": 1000, "9223372036854774.999": 9223372036854774999,
	} {
		v, ok := decimal.Thousandths([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, v, text)
	}
	for _, text := range []string{"", ".5", "-1", "+1", "1e3", "1.5e3", "1.2.3", "1 ", "1,5", "nan", "9223372036854776", "99999999999999999999"} {
		_, ok := decimal.Thousandths([]byte(text))
		assert.False(t, ok, text)
	}
}

// FuzzUnsigned compares with math/big.
func FuzzUnsigned(f *testing.F) {
	for _, s := range []string{"0", "18446744073709551615", "18446744073709551616", "12.5"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		decimal.Thousandths(b)
		v, end := decimal.Unsigned(b, 0)
		_, n := decimal.Digits(b, 0)
		want, isNumber := new(big.Int).SetString(string(b[:n]), 10)
		if isNumber && want.IsUint64() != (end == n) {
			t.Fatalf("%q ends at %d", b, end)
		}
		if end > 0 && want.Uint64() != v {
			t.Fatalf("%q: %d", b, v)
		}
	})
}

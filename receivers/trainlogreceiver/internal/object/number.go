package object

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
)

// word reads a number word ("NaN", "inf"), null or truth value of JSON and Python at the beginning of b; n is its length. A truth value has the kind text.
// Another word: none and 0.
func word(b []byte) (v float64, kind kind, n int) {
	for n < len(b) && ascii.IsLetter(b[n]) {
		n++
	}
	switch string(b[:n]) {
	case "NaN", "nan":
		return math.NaN(), number, n
	case "Infinity", "inf":
		return math.Inf(1), number, n
	case "null", "None":
		return 0, null, n
	case "true", "True", "false", "False":
		return 0, text, n
	}
	return 0, none, 0
}

// textNumber reads a number in quotes, as all numbers of Transformers ≥ 5 are.
func textNumber(b []byte) (float64, bool) { return decimal.Float(bytes.TrimSpace(b)) }

package ascii_test

import (
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

func TestKinds(t *testing.T) {
	for c := range 256 {
		r := rune(c)
		plain := r <= unicode.MaxASCII
		assert.Equal(t, plain && unicode.IsDigit(r), ascii.IsDigit(byte(c)), "%q", r)
		assert.Equal(t, plain && unicode.IsLetter(r), ascii.IsLetter(byte(c)), "%q", r)
		assert.Equal(t, plain && (unicode.IsLetter(r) || unicode.IsDigit(r)), ascii.IsAlphanumeric(byte(c)), "%q", r)
	}
}

package ncclras

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The bytes of an answer are bounded, whatever they say.
func TestBytes(t *testing.T) {
	text := `{"communicators":[],"x":[` + strings.Repeat("1,", 1000) + "]}"
	_, err := readMost(strings.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	_, err = readMost(strings.NewReader(text), int64(len(text)-1))
	require.ErrorIs(t, err, errLarge)
}

// A text of maxToken bytes is read, a longer one is not.
func TestTokenBytes(t *testing.T) {
	long := strings.Repeat("x", maxToken)
	s := newScanner(strings.NewReader(`"`+long+`" "`+long+`x"`), 1<<20)
	text, err := s.text()
	require.NoError(t, err)
	require.Equal(t, long, text)
	_, err = s.text()
	require.ErrorIs(t, err, errToken)
}

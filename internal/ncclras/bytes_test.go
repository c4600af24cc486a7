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

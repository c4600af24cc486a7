package fingerprint

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Print and tail do not depend on the split of the content into parts, and a stored tail equals the tail once its bytes were seen.
func TestParts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		content := make([]byte, rnd.IntN(3*Bytes))
		for i := range content {
			content[i] = byte(rnd.IntN(256))
		}
		var whole, parts Print
		whole.Extend(0, content)
		var last Tail
		for off := 0; off < len(content); {
			n := min(len(content)-off, 1+rnd.IntN(200))
			parts.Extend(int64(off), content[off:off+n])
			last.Remember(content[off : off+n])
			off += n
		}
		require.Equal(t, whole, parts)
		require.Equal(t, min(len(content), Bytes), parts.N)
		require.True(t, parts.Begins(content))

		end := bytes.Clone(content[len(content)-last.Len():])
		require.Len(t, end, min(len(content), TailBytes))
		stored := Stored(last.Hash(), last.Len())
		require.Equal(t, last.Hash(), stored.Hash())
		require.True(t, last.Matches(end))
		require.True(t, stored.Matches(end))
		require.Equal(t, last.Hash(), stored.Hash())
		if len(content) == 0 {
			continue
		}
		require.False(t, parts.Begins(content[:parts.N-1]), "a shorter one does not begin alike")
		content[rnd.IntN(parts.N)] ^= 1
		require.False(t, parts.Begins(content))
		other := bytes.Clone(end)
		other[rnd.IntN(len(other))] ^= 1
		require.False(t, stored.Matches(other))
		again := Stored(last.Hash(), last.Len())
		require.False(t, again.Matches(other))
	}
}

// A file has the same id under each of its names.
func TestIDOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Link(path, path+"b"))
	a, err := os.Stat(path)
	require.NoError(t, err)
	b, err := os.Stat(path + "b")
	require.NoError(t, err)
	assert.Equal(t, IDOf(a), IDOf(b))
	assert.NotZero(t, IDOf(a))
	assert.EqualValues(t, 2, Links(b))
}

package rows

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rows come in the order of their keys, then of their texts, in memory and by way of a file, which leaves nothing behind.
func TestSorted(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 30_000} {
		dir := t.TempDir()
		s := New(dir)
		rng := rand.New(rand.NewPCG(3, uint64(n)))
		var want []string
		for i := range n {
			key := fmt.Sprintf("%06d", rng.IntN(max(1, n/2)))
			text := key + strings.Repeat("x", rng.IntN(600)) + fmt.Sprintf(" %d\n", i)
			s.Add([]byte(key), []byte(text))
			want = append(want, text)
		}
		slices.Sort(want) // no text is the beginning of another key's
		slices.SortStableFunc(want, func(a, b string) int { return strings.Compare(a[:6], b[:6]) })
		assert.Equal(t, n == 30_000, len(s.ends) > 0)
		assert.LessOrEqual(t, cap(s.rows), 2*sortBytes)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, files)
		var out bytes.Buffer
		require.NoError(t, s.Each(func(text []byte) error { out.Write(text); return nil }))
		assert.Equal(t, int64(n), s.Len())
		assert.Equal(t, strings.Join(want, ""), out.String())
		require.NoError(t, s.Close())
	}
}

func TestSortedWithoutRoom(t *testing.T) {
	s := New("/nothing/here")
	for range 3 {
		s.Add([]byte("k"), bytes.Repeat([]byte("x"), sortBytes))
	}
	require.ErrorContains(t, s.Each(func([]byte) error { return nil }), "/nothing/here")
	require.NoError(t, s.Close())
}

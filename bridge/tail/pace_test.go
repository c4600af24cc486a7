package tail

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Once continues with the file with the smallest share read, ties by path, while files are read on and come and go.
func TestSideBySide(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tl := &Tailer{final: true}
	var streams []*Stream
	for i := range 200 {
		s := &Stream{t: tl, number: i, working: suspended}
		s.size.Store(int64(1 + rnd.IntN(50)))
		s.lag.Store(s.size.Load())
		streams = append(streams, s)
	}
	rnd.Shuffle(len(streams), func(i, j int) { streams[i], streams[j] = streams[j], streams[i] })
	var queue []queued
	for _, s := range streams {
		tl.put(&queue, s)
	}
	waiting := slices.Clone(streams)
	for turns := 0; len(waiting) > 0; turns++ {
		if turns == 50 { // files found to have grown
			for _, s := range waiting[:20] {
				s.size.Add(100)
				s.lag.Add(100)
			}
			sideBySide(queue).order()
		}
		want := slices.MinFunc(waiting, func(a, b *Stream) int {
			return cmp.Or(cmp.Compare(a.share(), b.share()), cmp.Compare(a.number, b.number))
		})
		s := tl.next(&queue)
		require.Equal(t, want.number, s.number)
		if left := s.lag.Load(); left > 0 {
			s.lag.Store(left - 1 - rnd.Int64N(left))
			tl.put(&queue, s)
		} else {
			waiting = slices.DeleteFunc(waiting, func(o *Stream) bool { return o == s })
		}
		if len(waiting) > 0 { // a waiting stream continues in another way meanwhile
			other := waiting[rnd.IntN(len(waiting))]
			other.lag.Store(other.lag.Load() / 2)
		}
	}
	assert.Empty(t, queue)
}

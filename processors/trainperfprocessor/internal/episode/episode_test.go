package episode

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/processors/internal/lru"
)

// TestEpisodes: a verdict true of 1,000 records is not said on 1,000 spans.
func TestEpisodes(t *testing.T) {
	for name, tt := range map[string]struct {
		holds func(i int) bool // of records 1, 2, …
		want  []string
	}{
		"never":           {func(int) bool { return false }, nil},
		"always":          {func(int) bool { return true }, []string{"1", "101 100/100", "201 100/100", "301 100/100"}},
		"all but one":     {func(i int) bool { return i != 150 }, []string{"1", "101 100/100", "201 99/100", "301 100/100"}},
		"every fifth":     {func(i int) bool { return i%5 == 0 }, []string{"5", "105 20/100", "205 20/100", "305 20/100"}},
		"once, and again": {func(i int) bool { return i == 7 || i == 250 }, []string{"7", "250 1/100"}},
		"soon after":      {func(i int) bool { return i == 7 || i == 106 || i == 107 }, []string{"7", "107 2/100"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := NewAll()
			for range 2 { // the second time each record comes twice
				e, evicted := all.Of(Key{Service: "job", Run: name})
				assert.False(t, evicted)
				*e = Episodes{}
				var got []string
				for i := 1; i <= 350; i++ {
					e.Record(uint64(i))
					if !tt.holds(i) {
						continue
					}
					said := e.Holds("v")
					assert.LessOrEqual(t, said.Held, said.Of)
					e.Record(uint64(i))
					assert.Equal(t, said, e.Holds("v"), "a record that comes again")
					switch {
					case said.Again:
						got = append(got, fmt.Sprintf("%d %d/%d", i, said.Held, said.Of))
					case said.Say:
						got = append(got, strconv.Itoa(i))
					}
				}
				assert.Equal(t, tt.want, got)
			}
		})
	}
}

// TestMostly: a verdict about the record alone is said on each record, until it holds for nearly all.
func TestMostly(t *testing.T) {
	for name, tt := range map[string]struct {
		holds  func(i int) bool
		said   int // of 350 records
		shares []string
	}{
		"always":      {func(int) bool { return true }, 9 + 4, []string{"10 10/10", "110 100/100", "210 100/100", "310 100/100"}},
		"every fifth": {func(i int) bool { return i%5 == 0 }, 70, []string{"10 2/10", "110 20/100", "210 20/100", "310 20/100"}},
		"once":        {func(i int) bool { return i == 7 }, 1, nil},
		"late":        {func(i int) bool { return i > 200 }, 1 + 79 + 1, []string{"201 1/100", "301 100/100"}},
	} {
		t.Run(name, func(t *testing.T) {
			var e Episodes
			said, shares := 0, []string(nil)
			for i := 1; i <= 350; i++ {
				e.Record(uint64(i))
				if !tt.holds(i) {
					continue
				}
				x := e.Mostly("v")
				if x.Again {
					shares = append(shares, fmt.Sprintf("%d %d/%d", i, x.Held, x.Of))
				}
				if x.Say {
					said++
				}
				e.Record(uint64(i))
				assert.Equal(t, x, e.Mostly("v"), "a record that comes again")
			}
			assert.Equal(t, tt.said, said)
			assert.Equal(t, tt.shares, shares)
		})
	}
}

// TestEpisodeShare: the share equals a count over the last 100 records, for random records.
func TestEpisodeShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var e Episodes
	var held []bool
	for i := range 20_000 {
		holds := rng.IntN(1+i/100%150) == 0
		held = append(held, holds)
		e.Record(uint64(i) + 1)
		if !holds {
			continue
		}
		said := e.Holds("v")
		e.Holds("another") // a second verdict must not disturb the first
		if !said.Say {
			continue
		}
		n, from := 0, max(0, len(held)-Window)
		for _, h := range held[from:] {
			if h {
				n++
			}
		}
		assert.Equal(t, n, said.Held, i)
		assert.Equal(t, len(held)-from, said.Of, i)
	}
}

func TestEpisodesAreOfOneKey(t *testing.T) {
	all := NewAll()
	say := func(key Key) bool {
		e, _ := all.Of(key)
		e.Record(uint64(e.N) + 1)
		return e.Holds("v").Say
	}
	key := Key{Service: "a", Run: "b", Of: "c"}
	assert.True(t, say(key))
	assert.False(t, say(key))
	other := key
	other.Rank = 1
	assert.True(t, say(other))
	evictions := 0
	for i := range lru.Size {
		if _, evicted := all.Of(Key{Run: strconv.Itoa(i)}); evicted {
			evictions++
		}
	}
	assert.Equal(t, 2, evictions)
	assert.True(t, say(key), "forgotten")
}

func TestShare(t *testing.T) {
	once, again := Answer{Say: true, Held: 1, Of: 1}, Answer{Say: true, Held: 96, Of: 100, Again: true}
	assert.Equal(t, int64(-1), once.HeldAgain(), "which leaves the section out")
	assert.Equal(t, int64(96), again.HeldAgain())
	assert.Equal(t, "[ True of {held} of the last {of} steps.]", Share("steps"))
}

// BenchmarkEpisodes: a healthy record costs only the look-up of its id.
func BenchmarkEpisodes(b *testing.B) {
	var e Episodes
	b.ReportAllocs()
	id := uint64(0)
	for b.Loop() {
		id++
		e.Record(id)
	}
}

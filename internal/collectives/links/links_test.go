package links

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shown is how many pairs the tests ask for.
const shown = 512

func walk(l *Links) (all []Pair) {
	l.Walk(shown, func(p Pair) { all = append(all, p) })
	return all
}

func TestAdd(t *testing.T) {
	var l Links
	l.Add(0, 8, 4194304, 1250500) // 3.354 GB/s
	l.Add(8, 0, 1000, 0)
	l.Add(0, 8, 4194304, 1000000)
	l.AddBandwidth(0, 8, 5e9)
	l.AddBandwidth(3, 3, math.NaN())
	l.Add(8, 0, -1, 10)
	got := walk(&l)
	require.Len(t, got, 3)
	assert.Equal(t, 3, l.Len())
	assert.Equal(t, [2]int32{0, 8}, [2]int32{got[0].Src, got[0].Dst})
	assert.Equal(t, int64(8388608), got[0].Bytes)
	assert.Equal(t, int64(3), got[0].Records)
	assert.InDelta(t, 5e9, got[0].Bandwidth, 0)
	assert.Equal(t, [2]int64{1000, 2}, [2]int64{got[1].Bytes, got[1].Records}, "the other way is another pair")
	assert.True(t, math.IsNaN(got[1].Bandwidth))
	assert.Equal(t, [2]int64{0, 1}, [2]int64{got[2].Bytes, got[2].Records})
	assert.True(t, math.IsNaN(got[2].Bandwidth))

	l = Links{}
	l.Add(0, 8, 4194304, 1250500)
	assert.InEpsilon(t, 4194304/1250.5e-6, walk(&l)[0].Bandwidth, 1e-12)
	l.Add(0, 8, math.MaxInt64, 1)
	assert.Equal(t, int64(math.MaxInt64), walk(&l)[0].Bytes, "no more than fits")
}

// TestBounds: the first 512 pairs have series, further pairs are summed up, and so are the pairs beyond 4096. Nothing is lost.
func TestBounds(t *testing.T) {
	var l Links
	const n = 5000
	for range 2 {
		for i := range int32(n) {
			l.Add(i, i+1, int64(i), 10)
		}
	}
	got := walk(&l)
	require.Len(t, got, shown)
	assert.Equal(t, MaxTracked, l.Len())
	o := l.Overflow(shown)
	assert.Equal(t, [2]int32{-1, -1}, [2]int32{o.Src, o.Dst})
	assert.Equal(t, int64(2*(n-shown)), o.Records)
	for _, p := range got {
		o.Bytes += p.Bytes
	}
	assert.Equal(t, int64(n*(n-1)), o.Bytes)
	assert.True(t, math.IsNaN(o.Bandwidth))
}

func TestHot(t *testing.T) {
	var l Links
	for i := range int32(3) {
		l.Add(i, 9, 100, 1)
	}
	l.Add(0, 9, 1e6, 1)
	assert.Empty(t, l.Hot(), "none among three")
	l.Add(7, 9, 100, 1)
	// 1000100 of 1000400: the mean is 250100.
	got := l.Hot()
	require.Len(t, got, 1)
	assert.Equal(t, int64(1000100), got[0].Bytes)

	l = Links{}
	for i := range int32(100) {
		l.Add(i, i+1, 1000, 1)
	}
	assert.Empty(t, l.Hot())
	for i := range int32(20) {
		l.Add(i, i+1, 2000+int64(i), 1)
	}
	got = l.Hot()
	require.Len(t, got, 10)
	for i, p := range got {
		assert.Equal(t, int32(19-i), p.Src, "most bytes first")
	}
	l = Links{}
	for i := range int32(4) {
		l.AddBandwidth(i, 9, 1)
	}
	assert.Empty(t, l.Hot(), "no bytes at all")
}

func TestSlow(t *testing.T) {
	var l Links
	add := func(src int32, bandwidth float64, n int) {
		for range n {
			l.AddBandwidth(src, 0, bandwidth)
		}
	}
	add(1, 100, 8)
	add(2, 100, 8)
	add(3, 100, 8)
	add(4, 10, 7)
	assert.Empty(t, l.Slow(), "seven are not enough")
	add(4, 10, 1)
	got := l.Slow()
	require.Len(t, got, 1)
	assert.Equal(t, int32(4), got[0].Src)
	assert.InDelta(t, 10, got[0].Median, 0)
	add(5, 50, 8)
	assert.Len(t, l.Slow(), 1, "half is not below half")
	add(6, 5, 40)
	got = l.Slow()
	require.Len(t, got, 2)
	assert.Equal(t, int32(6), got[0].Src, "the slowest first")
	add(6, 100, 17) // more than half of the last 32
	assert.Len(t, l.Slow(), 1, "well again")
	for i := range int32(50) {
		add(100+i, 200, 8)
	}
	for i := range int32(15) {
		add(200+i, 20+float64(i), 8)
	}
	assert.Len(t, l.Slow(), 10)
}

// TestMedians compares with medians of all values.
func TestMedians(t *testing.T) {
	var l Links
	rng := rand.New(rand.NewPCG(1, 1))
	all := map[int32][]float64{}
	for range 3000 {
		src := rng.Int32N(20)
		v := math.Exp(rng.NormFloat64()) * float64(1+src)
		l.AddBandwidth(src, 99, v)
		all[src] = append(all[src], v)
	}
	middle := func(v []float64) float64 {
		v = slices.Sorted(slices.Values(v))
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	var medians []float64
	for _, v := range all {
		medians = append(medians, middle(v[max(0, len(v)-32):]))
	}
	var want []float64
	limit := middle(medians) / 2
	for _, m := range medians {
		if m < limit {
			want = append(want, m)
		}
	}
	slices.Sort(want)
	got := l.Slow()
	require.NotEmpty(t, want)
	require.Len(t, got, min(len(want), 10))
	for i := range got {
		assert.InEpsilon(t, want[i], got[i].Median, 1e-12)
	}
}

func BenchmarkAdd(b *testing.B) {
	var l Links
	for i := range int32(MaxTracked) {
		l.Add(i%64, i/64, 1000, 1000)
	}
	b.ReportAllocs()
	i := int32(0)
	for b.Loop() {
		l.Add(i%64, i/64%64, 1000, 1000+int64(i))
		i++
	}
}

func BenchmarkSlowHot(b *testing.B) {
	var l Links
	for k := range int64(32) {
		for i := range int32(MaxTracked) {
			l.Add(i%64, i/64, 1000, 1000+k)
		}
	}
	l.Slow()
	b.ReportAllocs()
	for b.Loop() {
		l.Add(3, 3, 1000, 1000)
		l.Slow()
		l.Hot()
	}
}

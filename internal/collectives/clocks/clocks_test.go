package clocks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const epoch = 1_750_000_000_000_000_000

// hosts are clocks whose truth is known.
type hosts struct {
	rng      *rand.Rand
	offset   []float64 // ns at epoch
	drift    []float64
	ranks    int     // per host
	jitter   float64 // ns, standard deviation per rank
	outliers float64 // share of ends late by up to 5 ms
	now      float64 // ns since epoch, true time
	ends     []End
}

func newHosts(seed uint64, n, ranks int) *hosts {
	h := &hosts{rng: rand.New(rand.NewPCG(seed, 7)), ranks: ranks, jitter: 20e3, outliers: 0.01}
	for range n {
		h.offset = append(h.offset, (h.rng.Float64()*2-1)*5e9)
		h.drift = append(h.drift, (h.rng.Float64()*2-1)*25e-6) // up to 50 ppm between two
	}
	return h
}

func (h *hosts) shows(host int, t float64) int64 {
	return epoch + int64(math.Round(t+h.offset[host]+h.drift[host]*t))
}

// truth is the offset of a host when its own clock shows at.
func (h *hosts) truth(host, reference int, at int64) float64 {
	t := (float64(at-epoch) - h.offset[host]) / (1 + h.drift[host])
	return float64(h.shows(host, t) - h.shows(reference, t))
}

// meet is a collective of some hosts, after a pause in ns.
func (h *hosts) meet(e *Estimator, pause float64, who ...int) {
	h.now += pause
	h.ends = h.ends[:0]
	for _, host := range who {
		for range h.ranks {
			t := h.now + h.rng.NormFloat64()*h.jitter
			if h.rng.Float64() < h.outliers {
				t += h.rng.Float64() * 5e6
			}
			h.ends = append(h.ends, End{Clock: int32(host), At: h.shows(host, t)})
		}
	}
	e.Observe(h.ends)
}

func all(n int) (who []int) {
	for i := range n {
		who = append(who, i)
	}
	return who
}

// TestOffset compares with the truth: skews of ±5 s, 50 ppm, collectives every 10 ms to 10 s.
func TestOffset(t *testing.T) {
	for _, ranks := range []int{1, 8} {
		for _, pause := range []float64{10e6, 100e6, 1e9, 10e9} {
			t.Run(fmt.Sprintf("%d ranks, every %.0f ms", ranks, pause/1e6), func(t *testing.T) {
				var worst float64
				within, half, n := 0, 0, 0
				for seed := range uint64(16) {
					h, e := newHosts(seed, 6, ranks), new(Estimator)
					for i := range 200 {
						h.meet(e, pause*(0.5+h.rng.Float64()), all(6)...)
						if i < 32 {
							continue
						}
						for host := 1; host < 6; host++ {
							at := h.shows(host, h.now)
							got, uncertainty, ok := e.Offset(int32(host), at)
							require.True(t, ok)
							off := math.Abs(got - h.truth(host, 0, at))
							worst = max(worst, off)
							n++
							if off <= uncertainty {
								within++
							}
							if off <= uncertainty/2 {
								half++
							}
						}
					}
				}
				t.Logf("worst %.1f µs, within %.2f %% (half %.1f %%)", worst/1e3, 100*float64(within)/float64(n), 100*float64(half)/float64(n))
				assert.Less(t, worst, 50e3)
				assert.Greater(t, float64(within)/float64(n), 0.95)
				// An uncertainty ten times too wide is not honest either.
				assert.Less(t, float64(half)/float64(n), 0.95)
			})
		}
	}
}

// TestEarly asks from the first collectives on, with little data: the uncertainty must say so.
func TestEarly(t *testing.T) {
	for _, pause := range []float64{10e6, 10e9} {
		within, n := 0, 0
		for seed := range uint64(150) {
			h, e := newHosts(seed, 4, 8), new(Estimator)
			_, _, ok := e.Offset(1, epoch)
			require.False(t, ok)
			for range 12 {
				h.meet(e, pause, all(4)...)
				for host := 1; host < 4; host++ {
					at := h.shows(host, h.now)
					got, uncertainty, ok := e.Offset(int32(host), at)
					require.True(t, ok)
					if n++; math.Abs(got-h.truth(host, 0, at)) <= uncertainty {
						within++
					}
				}
			}
		}
		assert.Greater(t, float64(within)/float64(n), 0.95, "every %g ns", pause)
	}
}

// TestAway asks for times long ago or ahead: the drift carries on, and the uncertainty grows with the distance.
func TestAway(t *testing.T) {
	within, n := 0, 0
	for seed := range uint64(200) {
		h, e := newHosts(seed, 3, 4), new(Estimator)
		for range 100 {
			h.meet(e, 1e9, all(3)...)
		}
		_, near, _ := e.Offset(1, h.shows(1, h.now))
		for _, away := range []float64{-200e9, 300e9} {
			at := h.shows(1, h.now+away)
			got, uncertainty, ok := e.Offset(1, at)
			require.True(t, ok)
			assert.Greater(t, uncertainty, 2*near)
			if n++; math.Abs(got-h.truth(1, 0, at)) <= uncertainty {
				within++
			}
		}
	}
	assert.Greater(t, float64(within)/float64(n), 0.95)
}

// TestGap resumes after a pause in which the drift, known from a short window only, carried the line far away.
func TestGap(t *testing.T) {
	for seed := range uint64(50) {
		h, e := newHosts(seed, 3, 8), new(Estimator)
		for range 100 {
			h.meet(e, 10e6, all(3)...)
		}
		h.now += 300e9
		for i := range 30 {
			h.meet(e, 10e6, all(3)...)
			at := h.shows(1, h.now)
			got, uncertainty, _ := e.Offset(1, at)
			off := math.Abs(got - h.truth(1, 0, at))
			if i >= 4 {
				assert.Less(t, off, 50e3, "seed %d, %d collectives after the pause (± %g)", seed, i, uncertainty)
			}
		}
	}
}

// TestJump sets a clock by 3 s, forth and back, and by 500 µs: five collectives later the offset is right again, and the offsets of all other clocks were
// right throughout.
func TestJump(t *testing.T) {
	for _, jump := range []float64{3e9, -3e9, 500e3, -37e9} {
		for _, who := range []int{1, 0} { // 0: the reference itself
			for seed := range uint64(20) {
				h, e := newHosts(seed, 4, 4), new(Estimator)
				for i := range 300 {
					if i == 150 {
						h.offset[who] += jump
					}
					h.meet(e, 1e9, all(4)...)
					if i < 32 || i >= 150 && i < 155 && who == 0 {
						continue
					}
					for host := 1; host < 4; host++ {
						if host == who && i >= 150 && i < 155 {
							continue
						}
						at := h.shows(host, h.now)
						got, _, _ := e.Offset(int32(host), at)
						require.InDelta(t, h.truth(host, 0, at), got, 50e3, "jump of %g ns of clock %d, clock %d at %d, seed %d", jump, who, host, i, seed)
					}
				}
			}
		}
	}
}

// TestChain has hosts that never meet the reference: their offsets follow from hosts that do, with more uncertainty; offsets of islands are unknown.
func TestChain(t *testing.T) {
	within, n := 0, 0
	for seed := range uint64(40) {
		h, e := newHosts(seed, 6, 4), new(Estimator)
		for i := range 150 {
			h.meet(e, 100e6, 3, 2) // before anyone knows host 0
			h.meet(e, 100e6, 0, 1)
			h.meet(e, 100e6, 1, 2)
			h.meet(e, 100e6, 4, 5)
			require.Equal(t, int32(3), e.Reference())
			if i < 40 {
				continue
			}
			for host, hops := range map[int]int{2: 1, 1: 2, 0: 3} {
				at := h.shows(host, h.now)
				got, uncertainty, ok := e.Offset(int32(host), at)
				require.True(t, ok)
				off := math.Abs(got - h.truth(host, 3, at))
				require.Less(t, off, 50e3*math.Sqrt(float64(hops)))
				if n++; off <= uncertainty {
					within++
				}
			}
			_, direct, _ := e.Offset(2, h.shows(2, h.now))
			_, far, _ := e.Offset(0, h.shows(0, h.now))
			require.Greater(t, far, direct)
			for _, island := range []int32{4, 5} {
				_, _, ok := e.Offset(island, epoch)
				require.False(t, ok, "it shares no collective with anyone who knows the reference")
			}
		}
		h.meet(e, 100e6, 0, 3) // now the two meet: the short chain counts
		for range 40 {
			h.meet(e, 100e6, 0, 3)
		}
		at := h.shows(0, h.now)
		got, uncertainty, _ := e.Offset(0, at)
		assert.InDelta(t, h.truth(0, 3, at), got, 50e3)
		assert.Less(t, uncertainty, 50e3)
	}
	assert.Greater(t, float64(within)/float64(n), 0.95)
}

func TestReference(t *testing.T) {
	e := new(Estimator)
	assert.Equal(t, int32(-1), e.Reference())
	e.Observe(nil)
	e.Observe([]End{{Clock: -1, At: epoch}, {Clock: MaxClocks, At: epoch}, {Clock: 7, At: 0}})
	assert.Equal(t, int32(-1), e.Reference(), "nothing that could be used")
	e.Observe([]End{{Clock: 7, At: epoch}, {Clock: 7, At: epoch + 5}})
	assert.Equal(t, int32(7), e.Reference())
	e.Observe([]End{{Clock: 3, At: epoch}, {Clock: 7, At: epoch}})
	assert.Equal(t, int32(7), e.Reference())
	offset, uncertainty, ok := e.Offset(7, epoch)
	assert.True(t, ok)
	assert.Zero(t, offset)
	assert.Zero(t, uncertainty)
	offset, _, ok = e.Offset(3, epoch)
	assert.True(t, ok)
	assert.Zero(t, offset)
	for _, unknown := range []int32{-1, 4, MaxClocks} {
		_, _, ok = e.Offset(unknown, epoch)
		assert.False(t, ok)
	}
}

// FuzzObserve observes random ends: no panic, the reference stays, and an ok offset is finite.
func FuzzObserve(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, int64(epoch))
	f.Add([]byte{0, 255, 1, 0, 0, 128, 1, 7}, int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, in []byte, base int64) {
		e := new(Estimator)
		reference := int32(-1)
		for len(in) >= 4 {
			var ends []End
			for i := 0; i+1 < min(len(in), 8); i += 2 {
				ends = append(ends, End{Clock: int32(in[i] % 8), At: base + int64(int8(in[i+1]))<<(in[i]/8)})
			}
			in = in[4:]
			e.Observe(ends)
			if reference >= 0 {
				require.Equal(t, reference, e.Reference())
			}
			reference = e.Reference()
			for c := range int32(8) {
				offset, uncertainty, ok := e.Offset(c, base)
				require.False(t, math.IsNaN(offset) || math.IsInf(offset, 0) || math.IsNaN(uncertainty) || math.IsInf(uncertainty, 0) || uncertainty < 0)
				require.False(t, ok && reference < 0)
			}
		}
	})
}

// BenchmarkObserve is a collective of 1,024 ranks on 128 hosts, and all their offsets.
func BenchmarkObserve(b *testing.B) {
	h, e := newHosts(1, 128, 8), new(Estimator)
	for range 100 {
		h.meet(e, 1e9, all(128)...)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range h.ends {
			h.ends[i].At += 1e9
		}
		e.Observe(h.ends)
		for c := range int32(128) {
			e.Offset(c, h.ends[0].At)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(h.ends)), "ns/rank")
}

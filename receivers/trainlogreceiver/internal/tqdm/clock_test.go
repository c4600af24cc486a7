package tqdm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/tqdm"
)

// drawn draws a bar as tqdm does (tqdm/std.py, format_meter).
func drawn(n, total int, elapsed, per float64) string {
	rate := fmt.Sprintf("%5.2fit/s", 1/per)
	if 1/per < 1 {
		rate = fmt.Sprintf("%5.2fs/it", per)
	}
	return fmt.Sprintf("%3d%%|##| %d/%d [%02d:%02d<00:00, %s]", 100*n/total, n, total, int(elapsed)/60, int(elapsed)%60, rate)
}

// Seeded runs with stalls, with tqdm's recent speed and with Lightning's mean since the beginning: stalls are found at their steps, and the sum is the bar's
// time.
func TestClockFindsStalls(t *testing.T) {
	const steps, stall = 400, 3.0
	found, all := 0, 0
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		usual := []float64{0.12, 0.3, 0.9, 2.5}[seed%4]
		mean := seed%8 > 3
		var c tqdm.Clock
		first, _ := tqdm.Parse([]byte(fmt.Sprintf("  0%%|  | 0/%d [00:00<?, ?it/s]", steps)))
		require.True(t, c.Draw(&first, false))
		elapsed, dn, dt, sum := 0.0, 0.0, 0.0, 0.0
		for n := 1; n <= steps; n++ {
			took, stalls := usual*(0.95+0.1*rnd.Float64()), rnd.IntN(50) == 0
			if stalls {
				took += stall * usual / min(usual, 1)
				all++
			}
			elapsed += took
			dn, dt = 0.3+0.7*dn, 0.3*took+0.7*dt
			per := dt / dn
			if mean {
				per = elapsed / float64(n)
			}
			b, length := tqdm.Parse([]byte(drawn(n, steps, elapsed, per)))
			require.Positive(t, length)
			require.False(t, c.Draw(&b, mean))
			measured, covers, _ := c.Since()
			c.Mark()
			require.InDelta(t, 1, covers, 0)
			sum += measured
			if isStall := measured > usual+1; isStall && stalls {
				found++
			} else if isStall {
				assert.Fail(t, "no stall", "seed %d: step %d took %.2f s, measured %.2f s", seed, n, took, measured)
			}
		}
		assert.InDelta(t, elapsed, sum, 1, "seed %d", seed)
	}
	assert.Greater(t, float64(found)/float64(all), 0.95, "%d of %d stalls", found, all)
}

func TestClockBegins(t *testing.T) {
	for _, c := range []struct {
		name        string
		lines       []string
		took, steps float64
		guessed     bool
	}{
		{"from the start", []string{"50%|##| 1/8 [00:00<00:00, 4.00it/s]"}, 0.25, 1, false},
		{"with unit_scale", []string{"50%|##| 1/8 [00:00<00:00, 1.25kit/s]"}, 0.0008, 1, false},
		{"of a job that was resumed", []string{"50%|##| 4/8 [00:00<?, ?it/s]", "50%|##| 5/8 [00:02<00:00, 2.00s/it]"}, 2, 1, false},
		{"in the middle", []string{"50%|##| 4/8 [10:00<00:00, 4.00it/s]"}, 0, 0, true},
		{"in the middle, and on", []string{"50%|##| 4/8 [10:00<00:00, 4.00s/it]", "50%|##| 5/8 [10:04<00:00, 4.01s/it]"}, 4.03, 1, false},
		{"another bar", []string{"50%|##| 4/8 [00:08<00:00, 2.00s/it]", "50%|##| 1/8 [00:00<00:00, 2.00it/s]"}, 0.5, 1, false},
		{"refreshed between", []string{"0%|##| 0/8 [00:00<?, ?it/s]", "50%|##| 4/8 [00:00<00:00, 40.00it/s]", "50%|##| 5/8 [00:00<00:00, 40.00it/s]"}, 0.125, 5, false},
		{"without speed", []string{"0%|##| 0/8 [00:00<?, ?it/s]", "50%|##| 1/8 [00:50<00:00, loss=1]"}, 50, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var clock tqdm.Clock
			for _, line := range c.lines {
				b, n := tqdm.Parse([]byte(line))
				require.Positive(t, n, line)
				clock.Draw(&b, false)
			}
			took, steps, guessed := clock.Since()
			assert.InDelta(t, c.took, took, 0.05)
			assert.InDelta(t, c.steps, steps, 0)
			assert.Equal(t, c.guessed, guessed)
		})
	}
}

func FuzzClock(f *testing.F) {
	f.Add(3.0, 10.0, 1.0, 0.5, 0.01, 4.0, 2.0, 0.4)
	f.Fuzz(func(t *testing.T, n, total, elapsed, per, off, n2, elapsed2, per2 float64) {
		for _, v := range []float64{n, total, elapsed, per, off, n2, elapsed2, per2} {
			if !(v >= 0 && v < 1e9) {
				return
			}
		}
		var c tqdm.Clock
		for _, b := range []tqdm.Bar{
			{Done: n, Total: total, Elapsed: elapsed, Per: per, Err: off},
			{Done: n2, Total: total, Elapsed: elapsed2, Per: per2, Err: off},
		} {
			c.Draw(&b, false)
			if took, steps, _ := c.Since(); !(took >= 0) || math.IsInf(took, 0) || !(steps <= max(n, n2)) {
				t.Fatalf("%+v: %v %v", c, took, steps)
			}
			c.Mark()
		}
	})
}

func BenchmarkClock(b *testing.B) {
	var c tqdm.Clock
	bar := tqdm.Bar{Total: 1e9, Per: 0.1, Err: 1e-3}
	b.ReportAllocs()
	for b.Loop() {
		bar.Done++
		bar.Elapsed = math.Floor(bar.Done / 10)
		c.Draw(&bar, false)
		c.Mark()
	}
}

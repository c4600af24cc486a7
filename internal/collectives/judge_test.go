package collectives

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// TestBusFactorReadme recomputes records printed in NCCL Inspector's README and in outputs of nccl-tests.
func TestBusFactorReadme(t *testing.T) {
	for _, tt := range []struct {
		name     string
		kind     op.Kind
		ranks    int
		total    float64 // By
		seconds  float64
		alg, bus float64 // GB/s, as printed
		digits   float64
	}{
		{"Inspector AllReduce", op.AllReduce, 8, 17179869184, 61974e-6, 277.211, 485.119, 1e-3},
		// The size is per rank in the README: S is 8 times as large.
		{"Inspector ReduceScatter", op.ReduceScatter, 8, 8 * 2147483648, 41057e-6, 418.439, 418.439 * 7 / 8, 1e-3},
		{"Inspector ReduceScatter of 32", op.ReduceScatter, 32, 32 * 65536, 110e-6, 19.065018, 18.469236, 1e-6},
		{"nccl-tests all_reduce_perf, 16 ranks", op.AllReduce, 16, 8589934592, 47535e-6, 180.71, 338.82, 1e-2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, ok := busFactor(tt.kind, tt.ranks, false)
			assert.True(t, ok)
			alg := tt.total / tt.seconds / 1e9
			assert.InDelta(t, tt.alg, alg, tt.digits)
			assert.InDelta(t, tt.bus, alg*f, tt.digits)
		})
	}
}

func TestFactor(t *testing.T) {
	// The table of doc/PERFORMANCE.md, for 4 ranks.
	want := map[op.Kind]float64{
		op.AllReduce: 1.5, op.AllGather: 0.75, op.ReduceScatter: 0.75, op.AllToAll: 0.75, op.Gather: 0.75, op.Scatter: 0.75,
		op.Broadcast: 1, op.Reduce: 1, op.Send: 1, op.Recv: 1, op.SendRecv: 1,
	}
	for kind := range op.Kinds {
		f, ok := busFactor(kind, 4, false)
		assert.InDelta(t, want[kind], f, 0, kind)
		assert.Equal(t, kind != op.Other, ok, kind)
		in, _ := busFactor(kind, 4, true)
		if kind == op.AllReduce {
			assert.InDelta(t, 0.6, in, 1e-15) // (n−1)/(n+1)
		} else {
			assert.InDelta(t, f, in, 0, kind)
		}
		for _, n := range []int{1, 0, -1} {
			f, ok := busFactor(kind, n, false)
			alone := n < 1 && (kind == op.Send || kind == op.Recv)
			assert.Equal(t, alone, ok, "%v of %d", kind, n)
			assert.Equal(t, alone, f == 1)
		}
	}
	_, ok := busFactor(op.Kinds, 4, false)
	assert.False(t, ok)
}

func TestInNetwork(t *testing.T) {
	for _, name := range []string{"NVLS", "nvls", "NVLS_TREE", "NVLSTree", "COLLNET_DIRECT", "CollNetDirect", "collnet_chain", "CollNetChain", "SHARP", "Sharp"} {
		assert.True(t, isInNetwork([]byte(name)), name)
	}
	for _, name := range []string{"", "RING", "TREE", "PAT", "NVLS_", "NV", "unknown"} {
		assert.False(t, isInNetwork([]byte(name)), name)
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() { isInNetwork([]byte("COLLNET_CHAIN")) }))
}

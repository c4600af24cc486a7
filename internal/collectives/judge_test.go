package collectives

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
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

// Communicators number their ranks by themselves: a peer is looked for in the communicator of its record.
func TestNodes(t *testing.T) {
	r := newRig(t, 1, nil)
	record := func(comm, host string, rank, peer int32, kind op.Kind) {
		o := says{rank: int(rank), size: 4096, us: 100, of: 2, alone: true}.op()
		o.Kind, o.Comm, o.Host, o.Peer = kind, []byte(comm), []byte(host), peer
		r.inputs[0].Add(o, []string{"line"}, r.now)
	}
	record("0x1", "a", 0, 1, op.Recv)
	record("0x1", "b", 1, 0, op.Recv)
	record("0x2", "c", 0, 1, op.Recv)
	record("0x2", "d", 1, 0, op.Recv)
	record("0x1", "a", 0, 1, op.Send)
	record("0x2", "c", 0, 1, op.Send)
	var got []string
	for _, p := range r.j.Learned(nil, r.left) {
		if p.Metric == spans.MetricNCCLNodeIO {
			got = append(got, p.sourceHost+"→"+p.destinationHost)
		}
	}
	assert.Equal(t, []string{"a→b", "c→d"}, got)
}

// Ranks with different numbers of records form no row of collectives.
func TestInRow(t *testing.T) {
	row := func(ranks ...int32) (of []*open) {
		for _, rank := range ranks {
			of = append(of, &open{kind: op.AllReduce, parts: []part{{rank: rank}}})
		}
		return of
	}
	_, even := countPerRank(row(0, 0, 1, 1))
	assert.True(t, even)
	_, even = countPerRank(row(0, 0, 1, 1, 1))
	assert.False(t, even)
}

// A late record's bandwidth is not judged: its duration may include the wait for ranks whose records left before.
func TestLateBandwidth(t *testing.T) {
	r := newRig(t, 2, nil)
	say := func(rank, seq int, us int64) {
		s := numbered(rank, seq)
		s.of, s.us, s.start = 0, us, int64(seq)*1_000_000
		r.say(s)
	}
	for seq := range 40 {
		say(0, seq, 100)
		say(1, seq, 100)
	}
	for seq := range 10 {
		say(0, 40+seq, 100)
	}
	say(0, 50, 100)
	say(1, 50, 100)
	for seq := range 10 {
		say(1, 40+seq, 500_000)
	}
	require.Contains(t, r.lines[len(r.lines)-1], "49: late")
	for _, c := range r.left {
		assert.True(t, math.IsNaN(c.deviation), c.text())
	}
}

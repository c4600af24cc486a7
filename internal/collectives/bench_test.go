package collectives

import (
	"testing"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// lent is as large as the tail.Lent of a tailer.
type lent struct {
	of   *int
	n, m int32
}

// Records of eight ranks, each with a line of its own: joined, judged and freed. A record must not cost an allocation.
func BenchmarkAdd(b *testing.B) {
	const ranks = 8
	j := New[lent](Settings{JoinConfig: DefaultJoinConfig(), Series: 1000})
	var left []*Collective
	lines := int32(0)
	take := func(c *Collective, came []lent) {
		left = append(left, c)
		for _, l := range came {
			lines += l.n + l.m + int32(*l.of)
		}
	}
	var inputs []*Input[lent]
	var ops []*op.Op
	for rank := range ranks {
		inputs = append(inputs, j.Input(From{Run: "run", Path: "/logs/a.log"}, take))
		ops = append(ops, says{rank: rank, of: ranks, size: 4096, us: int64(100 + rank)}.op())
	}
	came := []lent{{new(int), 1, 2}}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for rank, o := range ops {
			o.Seq, o.Start = uint64(n), o.Start+1_000_000
			o.End = o.Start + o.Duration
			inputs[rank].Add(o, came, o.End)
		}
		if n++; len(left) == 256 {
			j.Free(left)
			left = left[:0]
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(n*ranks), "ns/record")
}

package trainmetricsconnector

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// late adds a collective of so many ranks, all waiting for one.
func late(b *spans.Batch, id, ranks, rank int, cost float64) {
	a := addCollective(b, resourceA, id, "AllReduce", "RING", 1e6, map[string]float64{spans.AttrNCCLLateCost: cost}).Attributes()
	a.PutInt(spans.AttrNCCLCommSize, int64(ranks))
	a.PutInt(spans.AttrNCCLLateRank, int64(rank))
	a.PutStr(spans.AttrNCCLLateHost, fmt.Sprint("node-", rank/8))
}

// lateCosts are the series of ranks, by rank and host; "rest": the ranks without one.
func lateCosts(of map[string]point) map[string]float64 {
	costs := map[string]float64{}
	for key, p := range of {
		if parts := splitKey(key); parts[2] == spans.MetricNCCLRankLateCost {
			name := parts[3]
			if strings.Contains(name, attrOverflow) {
				name = "rest"
			}
			costs[name] += p.value
		}
	}
	return costs
}

// topk(2, …) over the series of ranks names the most expensive ranks, in jobs of any size, and the sum of all series is the whole cost.
func TestLateRanks(t *testing.T) {
	for _, ranks := range []int{8, 64, 1024, 16_384} {
		rng := rand.New(rand.NewPCG(uint64(ranks), 2))
		c := newBed(t)
		truth, all := map[string]float64{}, 0.0
		for i := range 200 {
			b := spans.NewBatch("test", "")
			for j := range 50 {
				rank, cost := rng.IntN(ranks), 0.001*rng.Float64()
				switch j {
				case 7:
					rank, cost = ranks/2, 0.05
				case 9:
					rank, cost = ranks/4, 0.03
				}
				late(b, 50*i+j+1, ranks, rank, cost)
				truth[fmt.Sprintf("[host.name=node-%d nccl.comm.rank=%d]", rank/8, rank)] += cost
				all += cost
			}
			c.consume(b.Traces())
		}
		got := lateCosts(c.flushed(time.Second))
		assert.LessOrEqual(t, len(got), mostLateRanks+1)
		sum := 0.0
		for _, cost := range got {
			sum += cost
		}
		assert.InEpsilon(t, all, sum, 1e-9)
		delete(got, "rest")
		order := func(of map[string]float64) []string {
			return slices.SortedFunc(maps.Keys(of), func(x, y string) int { return cmp.Compare(of[y], of[x]) })[:2]
		}
		assert.Equal(t, order(truth), order(got))
		for _, worst := range order(got) {
			assert.InEpsilon(t, truth[worst], got[worst], 0.02, "%d ranks: what a rank cost before it had a series is in the rest", ranks)
		}
	}
}

// Series of ranks end as all do, and leave room for the next.
func TestLateRanksEnd(t *testing.T) {
	c := newBed(t)
	for round := range 3 {
		b := spans.NewBatch("test", "")
		for rank := range mostLateRanks + 5 {
			late(b, 1000*round+rank+1, 32, 1000*round+rank, 1)
		}
		c.consume(b.Traces())
		got := lateCosts(c.flushed(time.Second))
		assert.Len(t, got, mostLateRanks+1)
		assert.InDelta(t, 5, got["rest"], 0)
		c.flushed(time.Hour)
	}
	assert.Equal(t, newRoom(c.cfg.CardinalityLimit, c.cfg.Histogram.Type), c.store.room)
}

// After a crash ranks with a series keep their series, and the number of series does not grow.
func TestLateRanksAfterACrash(t *testing.T) {
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	for round := range 2 {
		b := spans.NewBatch("test", "")
		for rank := range mostLateRanks + 5 {
			late(b, 1000*round+rank+1, 32, rank, 1)
		}
		c.consume(b.Traces())
		got := lateCosts(c.flushed(time.Second))
		require.Len(t, got, mostLateRanks+1)
		assert.InDelta(t, 5*float64(round+1), got["rest"], 0)
		assert.InDelta(t, float64(round+1), got["[host.name=node-0 nccl.comm.rank=3]"], 0)
		d = newDisk(d.values)
		c = newKept(t, d, c.clock)
	}
}

package tq

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/processors/internal/lru"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

// TestFluctuationAgainstOracle compares with the spread of the last hundred of random times, computed in two passes of floats.
func TestFluctuationAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := newTest(t)
	var gets []float64
	warned, silentUntil := 0, 0 // the verdict comes at most once per hundred
	for i := range 1000 {
		ns := int64(40_000_000 * (1 + 0.1*rng.NormFloat64()))
		if i/200%2 == 1 { // a bad phase
			ns = int64(40_000_000 * rng.ExpFloat64())
		}
		ns = max(ns, 0)
		b := spans.NewBatch("test", "")
		f := addFunction(b, 10*i+10, "rollout", perftest.Base+int64(i)*1e9, 914_024_000, stageSpan{"get", 0, ns}, stageSpan{"compute", ns, 900_000_000},
			stageSpan{"put", 900_000_000, 905_000_000})
		perftest.Judge(p, b.Traces())

		gets = append(gets, float64(ns)/1e9)
		last := gets[max(0, len(gets)-100):]
		mean, square := 0.0, 0.0
		for _, x := range last {
			mean += x / float64(len(last))
		}
		for _, x := range last {
			square += (x - mean) * (x - mean) / float64(len(last))
		}
		cv := math.Sqrt(square) / mean
		want := len(last) >= 20 && cv > 0.5 && i >= silentUntil
		if want {
			silentUntil = i + 100
		}
		assert.Equal(t, want, slices.Contains(perftest.Verdicts(f), saidGet), "function %d, cv %v", i, cv)
		assert.NotContains(t, perftest.Verdicts(f), saidPut)
		for _, e := range f.Events().All() {
			if spans.AttrText(e.Attributes(), spans.AttrVerdictName) == spans.VerdictTQFluctuating {
				warned++
				v, _ := e.Attributes().Get(spans.AttrVerdictValue)
				assert.InDelta(t, cv, v.Double(), 1e-12)
				r := spans.AttrText(e.Attributes(), spans.AttrVerdictReason)
				assert.Contains(t, r, fmt.Sprintf("over the last %d (limit 50%%). The network or the storage is not stable.", len(last)))
				assert.Contains(t, r, "fluctuate: standard deviation ")
			}
		}
	}
	assert.GreaterOrEqual(t, warned, 4)
	assert.LessOrEqual(t, warned, 10)
}

func TestFluctuationOfLoneClientOperations(t *testing.T) {
	p := newTest(t)
	var said []int
	for i := range 240 {
		b := spans.NewBatch("test", "")
		lone := perftest.AddClient(b, i+1, 0, spans.StageClientGet, perftest.Base, int64(1+i%2*9)*1e6)
		// The same operation inside a function belongs to the window of tq.get and says nothing here.
		inner := perftest.AddClient(b, 1000+i, 7, spans.StageClientPut, perftest.Base, int64(1+i%2*9)*1e6)
		perftest.Judge(p, b.Traces())
		assert.Empty(t, perftest.Verdicts(inner))
		if v := perftest.Verdicts(lone); len(v) > 0 {
			assert.Equal(t, []string{saidGet}, v)
			assert.Equal(t, spans.SeverityWarning, perftest.Severity(lone))
			said = append(said, i)
		}
	}
	assert.Equal(t, []int{19, 119, 219}, said, "as soon as there are 20, then once per window")
}

func TestWindowsAreSeparate(t *testing.T) {
	w := newWindows(DefaultConfig().Fluctuation)
	for i := range 50 {
		// Each population is steady; a mixture would not be.
		for j, key := range []windowKey{
			{"a", "r", "f", spans.TQGet}, {"b", "r", "f", spans.TQGet}, {"a", "s", "f", spans.TQGet}, {"a", "r", "g", spans.TQGet}, {
				"a", "r", "f",
				spans.TQPut,
			},
		} {
			s, _ := w.add(key, uint64(i), uint64(1+100*j))
			assert.Zero(t, s.cv)
		}
	}
	assert.Equal(t, 5, w.byKey.Len())
}

func TestWindowsAreBounded(t *testing.T) {
	p := newTest(t)
	b := spans.NewBatch("test", "")
	for i := range lru.Size + 5 {
		addFunction(b, 10*i+10, fmt.Sprint("f", i), perftest.Base, 1000, stageSpan{"get", 0, 10})
	}
	evicted := perftest.Judge(p, b.Traces()).Evicted
	assert.Equal(t, lru.Size, p.windows.byKey.Len())
	assert.Equal(t, int64(5), evicted)
}

func TestWindowOfHugeTimesStaysExact(t *testing.T) {
	var w window
	for i := range uint64(3 * maxWindow) {
		w.add(i, maxWindowNS-i%2, maxWindow)
	}
	s := w.spread()
	assert.InEpsilon(t, 0.5/(maxWindowNS-0.5), s.cv, 1e-9)
	assert.InEpsilon(t, (maxWindowNS-0.5)/1e9, s.mean, 1e-12)
}

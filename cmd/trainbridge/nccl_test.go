package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
	"github.com/trainbridge/trainbridge/test/gen/nccl"
)

// collectives are the attributes of the roots made of a generated log, by the receiver and the processor.
func collectives(t *testing.T, o nccl.Options) (roots []pcommon.Map, truth []nccl.Collective) {
	t.Helper()
	o.Out, o.Timezone = filepath.Join(t.TempDir(), "nccl"), time.UTC
	run, err := nccl.Generate(t.Context(), o)
	require.NoError(t, err)
	log := gentest.Read(t, ncclreceiver.NewFactory(), o.Out+"/*.log", func(l *gentest.Log) bool { return l.Settled(run.Lines) })
	sink, judge := new(consumertest.TracesSink), trainperfprocessor.NewFactory()
	next, err := judge.CreateTraces(t.Context(), processortest.NewNopSettings(judge.Type()), judge.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, next.Start(t.Context(), componenttest.NewNopHost()))
	for _, td := range log.Traces.AllTraces() {
		require.NoError(t, next.ConsumeTraces(t.Context(), td))
	}
	require.NoError(t, next.Shutdown(t.Context()))
	for _, s := range gentest.Spans(sink.AllTraces()) {
		if _, ok := s.Attributes().Get(spans.AttrNCCLRanks); ok {
			roots = append(roots, s.Attributes())
		}
	}
	all, err := gentest.ReadTruth[nccl.Run, nccl.Collective](filepath.Join(o.Out, "truth.json"))
	require.NoError(t, err)
	require.Len(t, roots, o.Steps*o.PerStep)
	return roots, all.Records
}

// The mean bandwidth equals the output of NVIDIA's exporter for the same log. Its numbers, GB/s:
// plugins/profiler/inspector/exporter/example/perf_summary_exporter.py of NVIDIA/nccl at 5067397c, with pandas 3.1.1 and duckdb 2.0.0, on the logs of `gen nccl
// --ranks 4 --nodes 2 --steps 2 --slow-rank 2 --slow-by 0.06 --seed 7 --start 2026-02-11T08:40:00Z --timezone UTC`: mean_coll_busbw_gbs of summary_mixed_*.csv.
func TestMeanOfNVIDIA(t *testing.T) {
	want := map[[2]any]float64{
		{"AllReduce", int64(0)}: 35.2733005, {"AllReduce", int64(2)}: 31.226939, {"AllReduce", int64(1)}: 56.071580000000004, {"AllReduce", int64(3)}: 50.162701,
		{"ReduceScatter", int64(0)}: 146.00106950000003, {"ReduceScatter", int64(1)}: 145.6383565, {"AllGather", int64(0)}: 183.91954199999998,
		{"AllGather", int64(1)}: 183.09017774999998,
	}
	o := nccl.DefaultOptions()
	o.Ranks, o.Nodes, o.Steps, o.SlowRank, o.SlowBy, o.Seed, o.Start = 4, 2, 2, 2, 0.06, 7, time.Date(2026, 2, 11, 8, 40, 0, 0, time.UTC)
	roots, _ := collectives(t, o)
	require.Len(t, roots, len(want))
	for _, m := range roots {
		name, _ := m.Get(spans.AttrNCCLOperation)
		seq, _ := m.Get(spans.AttrNCCLSequence)
		mean, ok := m.Get(spans.AttrNCCLBandwidthBusMean)
		require.True(t, ok)
		assert.InEpsilon(t, 1e9*want[[2]any{name.Str(), seq.Int()}], mean.Double(), 1e-9, "%s %d", name.Str(), seq.Int())
		bus, _ := m.Get(spans.AttrNCCLBandwidthBus)
		assert.GreaterOrEqual(t, bus.Double(), mean.Double(), "the transfer's has no waiting")
	}
}

// Of 208 collectives at the beginning of a slow rank's step or behind another, 164 were blamed on a straggler. The slow rank is late only to the first of each
// step.
func TestStragglerIsNotOnEach(t *testing.T) {
	o := nccl.DefaultOptions()
	o.Steps, o.Verbose, o.SlowRank, o.SlowBy = 52, true, 11, 0.06 // as README's run
	roots, truth := collectives(t, o)
	late := make(map[[2]any]bool) // collectives to which the slow rank came last, by more than half its extra time per step
	for i := range truth {
		c := &truth[i]
		late[[2]any{c.Operation, int64(c.Sequence)}] = c.LateRank == 11 && c.LateNS > 2_400_000
	}
	said := 0
	for _, m := range roots {
		if _, ok := m.Get(spans.AttrVerdictPrefix + spans.VerdictNCCLStraggler); !ok {
			continue
		}
		said++
		name, _ := m.Get(spans.AttrNCCLOperation)
		seq, _ := m.Get(spans.AttrNCCLSequence)
		assert.True(t, late[[2]any{name.Str(), seq.Int()}], "%s %d", name.Str(), seq.Int())
	}
	assert.Greater(t, said, 25, "it is said where that rank was late")
	assert.LessOrEqual(t, said, 52, "and nowhere else: once a step at most")
}

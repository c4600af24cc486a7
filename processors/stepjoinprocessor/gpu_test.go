package stepjoinprocessor

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/gpus"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// scrape is the nvml metrics of 8 GPUs of a host with processes 1000 and up, one each. GPU 3 was throttled by heat for hot seconds in total.
func scrape(host string, at int64, hot float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(spans.AttrHostName, host)
	list := rm.ScopeMetrics().AppendEmpty().Metrics()
	point := func(metric string, n int, v float64, label, value string) pcommon.Map {
		m := list.AppendEmpty()
		m.SetName(metric)
		s := m.SetEmptySum()
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := s.DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(at))
		p.SetDoubleValue(v)
		a := p.Attributes()
		a.PutStr(spans.AttrHardwareID, fmt.Sprintf("GPU-%s-%d", host, n))
		a.PutStr(spans.AttrHardwareName, fmt.Sprintf("GPU %d", n))
		a.PutStr(spans.AttrHardwareType, spans.HardwareTypeGPU)
		a.PutStr(label, value)
		return a
	}
	for n := range 8 {
		held := 0.0
		if n == 3 {
			held = hot
		}
		point(spans.MetricGPUUtilization, n, 0.5, spans.AttrGPUTask, "general")
		point(spans.MetricGPUThrottleTime, n, held, spans.AttrGPUThrottlePolicy, "thermal")
		point(spans.MetricGPUProcessMemory, n, 40e9, spans.AttrHostName, host).PutInt(spans.AttrProcessPID, int64(1000+n))
	}
	return md
}

// rank adds the span of a rank of a collective, written by its process.
func (j *job) rank(n, start, end int64, rank int32, host string, pid int64) {
	trace := spans.KeyTraceID(j.run, "nccl", fmt.Appendf(nil, "%d", n))
	s := j.out.Add(spans.Resource{Service: "nccl", RunID: j.run, Host: host, PID: pid, Time: spans.TimeLogged}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, host, fmt.Appendf(nil, "%d", rank)), Parent: spans.SpanID(trace, "root"), Name: spans.NCCLRankName(rank, host),
		Is: spans.KindRank, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: spans.TimeLogged,
	})
	s.Attributes().PutInt(spans.AttrNCCLCommRank, int64(rank))
}

// slowRun is a run of 20 steps of 2 s with one collective each, in which rank 3 of node-1 is always last, and in the last step by 1.5 s more: then GPU 3 was
// hot for 1.2 s. The results are the breakdown of the last step with the verdict's reason and the events.
func slowRun(t *testing.T, pid int64) (breakdown, reason string, events []string) {
	t.Helper()
	b, j := newBench(t), newJob()
	at, hot := 1000*second+1, 0.0 // a log of whole seconds would not be exact enough
	for n := range int64(20) {
		length, late := 2*second, second/10
		if n == 19 {
			length, late = 2*second+3*second/2, second/10+3*second/2
		}
		root := at + second/2
		j.collective(n, root, root+late+second/10, late, "node-1")
		coll := lastSpan(j.out)
		coll.Attributes().PutDouble(spans.AttrNCCLLateCost, 15*float64(late)/1e9)
		for rank := range int32(16) {
			of := pid + int64(rank%8)
			if rank == 3 {
				j.rank(n, root+late, root+late+second/10, rank, "node-1", of)
			} else {
				j.rank(n, root, root+late+second/10, rank, fmt.Sprintf("node-%d", rank/8), of)
			}
		}
		j.step(n, at, at+length)
		require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
		for until := at + length; at < until; {
			at += second / 2
			if n == 19 && hot < 1.2 {
				hot += 0.4
			}
			for _, host := range []string{"node-0", "node-1"} {
				h := 0.0
				if host == "node-1" {
					h = hot
				}
				require.Zero(t, b.gpus.Notice(scrape(host, at, h), b.cfg.Keep, func([]gpus.Info) {}))
			}
		}
	}
	b.over(t)
	for _, td := range b.sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if n, ok := s.Attributes().Get(spans.AttrIteration); !ok || n.Int() != 19 || s.Name() != spans.SpanBreakdown {
						continue
					}
					breakdown = strings.Join(attributesOf(s.Attributes()), " ")
					for _, e := range s.Events().All() {
						if e.Name() == spans.EventVerdict {
							v, _ := e.Attributes().Get(spans.AttrVerdictReason)
							reason = v.Str()
							continue
						}
						events = append(events, fmt.Sprint(e.Name(), " ", attributesOf(e.Attributes())))
					}
				}
			}
		}
	}
	return breakdown, reason, events
}

func lastSpan(b *spans.Batch) (last ptrace.Span) {
	for _, rs := range b.Traces().ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.Name() == "AllReduce" {
					last = s
				}
			}
		}
	}
	return last
}

func attributesOf(m pcommon.Map) (list []string) {
	for name, v := range m.All() {
		list = append(list, name+"="+v.AsString())
	}
	return list
}

// The rank's span has the process, and nvml has the GPU of the process.
func TestItsGPU(t *testing.T) {
	breakdown, reason, events := slowRun(t, 1000)
	assert.Contains(t, reason, "waiting for rank 3 on node-1 in AllReduce of DP Group 0 (its GPU 3 was held down by heat for 1.2 s)")
	for _, want := range []string{"trainbridge.gpu.count=15 ", "trainbridge.gpu.sample.count=105 ", "hw.gpu.utilization=0.5 ", "trainbridge.gpu.throttle.time.thermal=1.2"} {
		assert.Contains(t, breakdown, want)
	}
	require.Len(t, events, 2)
	assert.Contains(t, events[0], "trainbridge.gpu.throttled [host.name=node-1 hw.id=GPU-node-1-3 hw.name=GPU 3 trainbridge.gpu.throttle.time.thermal=1.2")
	assert.Equal(t, "ml.step.cause [ml.step.part=collective.wait ml.step.cause.time=1.5 ml.step.cause.cost=24 nccl.late.rank=3 nccl.late.host=node-1 "+
		"nccl.comm.name=DP Group 0 nccl.operation=AllReduce ml.step.cause.note=GPU 3 was held down by heat]", events[1])
}

// If nvml knows none of the processes, all GPUs of the hosts count: a hot GPU is in the events, but is no rank's GPU.
func TestNotItsGPU(t *testing.T) {
	breakdown, reason, events := slowRun(t, 77_000)
	assert.Contains(t, reason, "waiting for rank 3 on node-1 in AllReduce of DP Group 0")
	assert.NotContains(t, reason, "GPU")
	assert.Contains(t, breakdown, "trainbridge.gpu.throttle.time.thermal=1.2")
	require.Len(t, events, 2)
	assert.NotContains(t, events[1], "note")
}

// With clocks apart, only the GPUs of the window's own host certainly belong to the time.
func TestGPUsOfClocksApart(t *testing.T) {
	for apart, want := range map[int64]string{0: "trainbridge.gpu.count=2 ", second: "trainbridge.gpu.count=1 "} {
		b, j := newBench(t), newJob()
		start, end := 1000*second+1, 1002*second+1
		trace := spans.StepTraceID(j.run, 1)
		j.out.Add(spans.Resource{Service: "train", RunID: j.run, Host: "node-1", PID: 1000, Time: spans.TimeDerived}, spans.Span{
			Trace: trace, ID: spans.SpanID(trace, "step"), Name: spans.SpanStep, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: spans.TimeDerived,
		})
		j.part(trace, "forward-backward", start, end)
		j.rank(1, start, end, 0, "node-0", 1000)
		for i := range int64(5) {
			for _, host := range []string{"node-0", "node-1"} {
				require.Zero(t, b.gpus.Notice(scrape(host, start+i*second/2, 0), b.cfg.Keep, func([]gpus.Info) {}))
			}
		}
		require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
		b.runs[j.run].Apart = apart
		b.over(t)
		down := find(told(b.sink), "/breakdown@")
		require.Len(t, down, 1)
		assert.Contains(t, down[0], want)
	}
}

// The instances of one component share the known GPUs; another component has separate GPUs.
func TestGPUsAreSharedByID(t *testing.T) {
	f, ctx := NewFactory(), t.Context()
	create := func(name string) (*stepJoin, interface {
		component.Component
		ConsumeMetrics(context.Context, pmetric.Metrics) error
	}, *consumertest.MetricsSink,
	) {
		set := processortest.NewNopSettings(metadata.Type)
		set.ID = component.NewIDWithName(metadata.Type, name)
		traces, err := f.CreateTraces(ctx, set, f.CreateDefaultConfig(), consumertest.NewNop())
		require.NoError(t, err)
		sink := new(consumertest.MetricsSink)
		metrics, err := f.CreateMetrics(ctx, set, f.CreateDefaultConfig(), sink)
		require.NoError(t, err)
		assert.True(t, metrics.Capabilities().MutatesData)
		for _, c := range []component.Component{traces, metrics} {
			require.NoError(t, c.Start(ctx, componenttest.NewNopHost()))
		}
		return traces.(*stepJoin), metrics, sink
	}
	traces, metrics, sink := create("")
	other, otherMetrics, _ := create("other")
	var wg sync.WaitGroup
	for i := range int64(4) {
		wg.Go(func() {
			for n := range int64(50) {
				assert.NoError(t, metrics.ConsumeMetrics(ctx, scrape(fmt.Sprint("node-", i), (1000+n)*second, 0)))
			}
		})
	}
	for n := range int64(50) {
		j := newJob()
		aStep(j, n, (1000+10*n)*second)
		require.NoError(t, traces.ConsumeTraces(ctx, j.traces()))
		traces.sweep(ctx, time.Now().Add(time.Hour), false)
	}
	wg.Wait()
	assert.Equal(t, 200*24, sink.DataPointCount(), "metrics pass")
	assert.NotZero(t, traces.gpus.Bytes())
	assert.Zero(t, other.gpus.Bytes())
	for _, c := range []component.Component{metrics, metrics, traces, other, otherMetrics} {
		require.NoError(t, c.Shutdown(ctx))
	}
	traces, metrics, _ = create("")
	assert.Zero(t, traces.gpus.Bytes(), "all had stopped: what they saw is dropped")
	require.NoError(t, traces.Shutdown(ctx))
	require.NoError(t, metrics.Shutdown(ctx))
}

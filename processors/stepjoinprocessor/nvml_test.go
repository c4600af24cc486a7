//go:build linux && cgo

package stepjoinprocessor

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// The whole path: the nvml receiver scrapes our fake driver, the processor's two instances share the values, and the breakdown of a step whose process ran on
// one of two GPUs has that GPU. The linker finds the driver only in a process started with the path, hence a process of its own for the test.
func TestNVML(t *testing.T) {
	if os.Getenv("TEST_NVML_CHILD") == "" {
		dir := fakenvml.Build(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNVML$", "-test.v")
		cmd.Env = append(os.Environ(), "TEST_NVML_CHILD=1", "LD_LIBRARY_PATH="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), "--- PASS: TestNVML")
		return
	}
	sink := new(consumertest.TracesSink)
	throughNVML(t, sink)
	down := find(told(sink), "/breakdown@")
	require.Len(t, down, 1)
	for _, want := range []string{ // of GPU 0 alone, by fakenvml's documentation
		"trainbridge.gpu.count=1 ", "trainbridge.gpu.sample.count=4 ", "hw.temperature=50 ", "hw.temperature.max=50 ",
		"trainbridge.gpu.clock.frequency=1600000000 ", "hw.gpu.utilization=0.4", "trainbridge.gpu.throttle.time.thermal=0.005",
	} {
		assert.Contains(t, down[0], want)
	}
	power := regexp.MustCompile(`hw\.power=([0-9.]+) `).FindStringSubmatch(down[0])
	require.NotNil(t, power)
	watts, err := strconv.ParseFloat(power[1], 64)
	require.NoError(t, err)
	assert.InDelta(t, 300, watts, 30, "energy over the time between two scrapes, which the machine makes longer or shorter")
	events := map[string]int{}
	for _, td := range sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				for _, e := range s.Events().All() {
					id, _ := e.Attributes().Get(spans.AttrHardwareID)
					code, _ := e.Attributes().Get(spans.AttrErrorType)
					events[e.Name()+" "+id.Str()+" "+code.Str()]++
				}
			}
		}
	}
	const gpu = "GPU-00000000-0000-0000-0000-000000000000"
	assert.Equal(t, map[string]int{spans.EventGPUThrottled + " " + gpu + " ": 1, spans.EventGPUXID + " " + gpu + " xid_79": 1}, events)
}

// throughNVML scrapes two GPUs: the first becomes hot and both have an error. Then a step of the process on the first is sent.
func throughNVML(t *testing.T, sink *consumertest.TracesSink) {
	t.Helper()
	ctx := t.Context()
	state := fakenvml.Use(t, "devices 2\n")
	f, set := NewFactory(), processortest.NewNopSettings(metadata.Type)
	traces, err := f.CreateTraces(ctx, set, f.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	scraped := make(chan int64)
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		at := int64(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Timestamp())
		select {
		case scraped <- at:
		case <-ctx.Done():
		}
		return nil
	})
	require.NoError(t, err)
	metrics, err := f.CreateMetrics(ctx, set, f.CreateDefaultConfig(), next)
	require.NoError(t, err)
	r := nvmlreceiver.NewFactory()
	cfg := r.CreateDefaultConfig().(*nvmlreceiver.Config)
	cfg.CollectionInterval, cfg.InitialDelay = 20*time.Millisecond, 0
	nvml, err := r.CreateMetrics(ctx, receivertest.NewNopSettings(r.Type()), cfg, metrics)
	require.NoError(t, err)
	require.NoError(t, nvml.Start(ctx, componenttest.NewNopHost()))
	<-scraped
	start := <-scraped
	// The thermal counter is twice the value given here. The other counters grow too.
	require.NoError(t, state.Set("devices 2\nvalue 0 violation_ns 1002500000\nxid 0 79\nxid 1 31\n"))
	end := int64(0)
	for range 4 {
		end = <-scraped
	}
	go func() { // release the scrape in progress
		for range scraped {
		}
	}()
	require.NoError(t, nvml.Shutdown(ctx))
	close(scraped)

	host, err := os.Hostname()
	require.NoError(t, err)
	j := newJob()
	trace := spans.StepTraceID(j.run, 1)
	s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Host: host, PID: 1000, Time: spans.TimeDerived}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "step"), Name: spans.SpanStep, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: spans.TimeDerived,
	})
	s.Attributes().PutInt(spans.AttrIteration, 1)
	j.part(trace, "forward-backward", start, end)
	require.NoError(t, traces.Start(ctx, componenttest.NewNopHost()))
	require.NoError(t, traces.ConsumeTraces(ctx, j.traces()))
	require.NoError(t, traces.Shutdown(ctx))
	require.NoError(t, metrics.Shutdown(ctx))
}

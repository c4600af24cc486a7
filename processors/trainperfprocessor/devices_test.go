package trainperfprocessor

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/steps"
	"github.com/trainbridge/trainbridge/spans"
)

// peaks of the table, {flop}/s.
const (
	peakH200 = 989e12
	peakA100 = 312e12
)

func TestDetectedDevice(t *testing.T) {
	node := func(host string) perftest.GPU { return perftest.GPU{Host: host, Model: perftest.H200} }
	for name, tt := range map[string]deviceCase{
		"of its host":       {gpus: []perftest.GPU{node("a"), {Host: "b", Model: perftest.A100}}, host: "a", peak: peakH200, model: perftest.H200},
		"of its other host": {gpus: []perftest.GPU{node("a"), {Host: "b", Model: perftest.A100}}, host: "b", peak: peakA100, model: perftest.A100},
		"eight of them": {
			gpus: []perftest.GPU{node("a"), node("a"), node("a"), node("a"), node("a"), node("a"), node("a"), node("a")},
			host: "a", peak: peakH200, model: perftest.H200,
		},
		"the host on the resource":     {gpus: []perftest.GPU{{Model: perftest.H200}}, on: "a", host: "a", peak: peakH200, model: perftest.H200},
		"the point's host comes first": {gpus: []perftest.GPU{node("a")}, on: "b", host: "b"},
		"host on the span": {
			gpus: []perftest.GPU{node("a"), {Host: "b", Model: perftest.A100}}, host: "a",
			attrs: perftest.Attrs{spans.AttrHostName: "b"}, peak: peakA100, model: perftest.A100,
		},
		"no host, all agree":         {gpus: []perftest.GPU{node("a"), node("b")}, peak: peakH200, model: perftest.H200},
		"no host, they do not agree": {gpus: []perftest.GPU{node("a"), {Host: "b", Model: perftest.A100}, node("c")}},
		"another host":               {gpus: []perftest.GPU{node("a")}, host: "login"},
		"two models on its host":     {gpus: []perftest.GPU{node("a"), {Host: "a", Model: perftest.A100}}, host: "a"},
		"two models on another host": {
			gpus: []perftest.GPU{node("a"), {Host: "b", Model: perftest.A100}, node("b")}, host: "a", peak: peakH200,
			model: perftest.H200,
		},
		"a host without a name":          {gpus: []perftest.GPU{{Model: perftest.H200}}, peak: peakH200, model: perftest.H200},
		"a host without a name, another": {gpus: []perftest.GPU{{Model: perftest.H200}}, host: "a"},
		"cut into parts":                 {gpus: []perftest.GPU{node("a"), {Host: "a", Model: "NVIDIA H200 MIG 1g.18gb", Parent: "GPU-0"}}, host: "a"},
		"parts named as the whole":       {gpus: []perftest.GPU{node("a"), {Host: "a", Model: perftest.H200, Parent: "GPU-0"}}, host: "a"},
		"a part without a name":          {gpus: []perftest.GPU{node("a"), {Host: "a", Parent: "GPU-0"}}, host: "a"},
		"parts only":                     {gpus: []perftest.GPU{{Host: "a", Model: "NVIDIA H200 MIG 1g.18gb", Parent: "GPU-0"}}, host: "a"},
		"one GPU without a name":         {gpus: []perftest.GPU{node("a"), {Host: "a"}}, host: "a", peak: peakH200, model: perftest.H200},
		"beside other hardware": {
			gpus: []perftest.GPU{node("a"), {Host: "a", Model: perftest.A100, Kind: "enclosure"}}, host: "a", peak: peakH200,
			model: perftest.H200,
		},
		"no GPU":               {gpus: []perftest.GPU{{Host: "a", Model: perftest.H200, Kind: "fan"}}, host: "a"},
		"not in the table":     {gpus: []perftest.GPU{{Host: "a", Model: "Abacus 9000"}}, host: "a"},
		"nothing was seen":     {host: "a"},
		"by train::device":     {gpus: []perftest.GPU{node("a")}, config: func(c *steps.Config) { c.Device = "A100" }, host: "a", peak: peakA100},
		"by train::peak_flops": {gpus: []perftest.GPU{node("a")}, config: func(c *steps.Config) { c.PeakFlops = 1e15 }, host: "a", peak: 1e15},
		"by the log": {
			gpus: []perftest.GPU{node("a")}, host: "a", attrs: perftest.Attrs{spans.AttrDeviceModel: "A100"}, peak: peakA100,
			model: "A100",
		},
		"by the log, not in the table": {gpus: []perftest.GPU{node("a")}, host: "a", attrs: perftest.Attrs{spans.AttrDeviceModel: "Abacus"}, model: "Abacus"},
	} {
		t.Run(name, func(t *testing.T) { tt.check(t) })
	}
}

type deviceCase struct {
	gpus   []perftest.GPU
	on     string // host.name of the metrics' resource
	config func(*steps.Config)
	host   string // of the log
	attrs  perftest.Attrs
	peak   float64 // 0: none
	model  string  // hw.model of the span afterwards
}

func (tt *deviceCase) check(t *testing.T) {
	t.Helper()
	change := func(*Config) {}
	if tt.config != nil {
		change = func(c *Config) { tt.config(&c.Train) }
	}
	md := perftest.Scrape(tt.gpus...)
	if tt.on != "" {
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.name", tt.on)
	}
	// 2.8 PFLOP per step by the model; and where no model is known, 400 TFLOP/s of the log.
	known, reported := perftest.Job, perftest.Job
	known.Host, reported.Host = tt.host, tt.host
	known.Model = &perftest.Aquila
	p, _ := newTest(t, change)
	before := pmetric.NewMetrics()
	md.CopyTo(before)
	processMetrics(t, p, md)
	assert.Equal(t, before, md, "metrics of GPUs pass as they are")
	for _, step := range []struct {
		res    spans.Resource
		attrs  perftest.Attrs
		device float64 // {flop}/s
	}{
		{known, nil, perftest.AquilaMegatron / 0.5 / 8},
		{reported, perftest.Attrs{spans.AttrDeviceFlopThroughputReported: 400e12}, 400e12},
	} {
		s := oneStep(t, p, step.res, 0.5, perftest.Attrs{}.With(tt.attrs).With(step.attrs))
		assert.Equal(t, tt.model, perftest.Text(s, spans.AttrDeviceModel))
		if tt.peak == 0 {
			assert.False(t, perftest.Has(s, spans.AttrMFU))
			assert.False(t, perftest.Has(s, spans.AttrFlopPeak))
			continue
		}
		perftest.Numbers(t, s, map[string]float64{spans.AttrFlopPeak: tt.peak, spans.AttrMFU: step.device / tt.peak})
	}
}

// TestDeviceOfTheResource: hw.model of the resource has priority over the nvml metrics.
func TestDeviceOfTheResource(t *testing.T) {
	p, _ := newTest(t, withAquila)
	processMetrics(t, p, perftest.Scrape(perftest.GPU{Host: "a", Model: perftest.H200}))
	b := spans.NewBatch("test", "")
	s := perftest.AddStep(b, spans.Resource{Host: "a"}, 1, 0.5, nil)
	b.Traces().ResourceSpans().At(0).Resource().Attributes().PutStr(spans.AttrDeviceModel, perftest.A100)
	process(t, p, b.Traces())
	perftest.Numbers(t, s, map[string]float64{spans.AttrFlopPeak: peakA100})
	assert.False(t, perftest.Has(s, spans.AttrDeviceModel))
}

// TestDetectedLater: steps before the first scrape have no MFU, steps after the first scrape have; past steps do not change.
func TestDetectedLater(t *testing.T) {
	p, logs := newTest(t, withAquila)
	b := spans.NewBatch("test", "")
	early := perftest.AddStep(b, spans.Resource{Host: "a"}, 1, 0.5, nil)
	process(t, p, b.Traces())
	assert.False(t, perftest.Has(early, spans.AttrMFU))
	processMetrics(t, p, perftest.Scrape(perftest.GPU{Host: "a", Model: perftest.H200}))
	perftest.Numbers(t, oneStep(t, p, spans.Resource{Host: "a"}, 0.5, nil), map[string]float64{spans.AttrFlopPeak: peakH200})
	process(t, p, b.Traces())
	assert.False(t, perftest.Has(early, spans.AttrMFU))
	assert.Zero(t, logs.Len(), "nobody named a device: that is no warning")
}

// components makes the two instances of a component, in a pipeline of traces and in a pipeline of metrics.
func components(t *testing.T, f processor.Factory, name string) (processor.Traces, processor.Metrics, func() []float64) {
	t.Helper()
	set := processortest.NewNopSettings(metadata.Type)
	set.ID = component.NewIDWithName(metadata.Type, name)
	cfg := f.CreateDefaultConfig().(*Config)
	cfg.Train.Model.Model = perftest.Aquila
	sink := new(consumertest.TracesSink)
	traces, err := f.CreateTraces(context.Background(), set, cfg, sink)
	require.NoError(t, err)
	metrics, err := f.CreateMetrics(context.Background(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, traces.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, metrics.Start(context.Background(), componenttest.NewNopHost()))
	// The function sends one more step of a log without host, and returns the peaks applied to such steps so far.
	return traces, metrics, func() (peaks []float64) {
		b := spans.NewBatch("test", "")
		s := perftest.AddStep(b, perftest.Job, 1, 0.5, nil)
		require.NoError(t, traces.ConsumeTraces(context.Background(), b.Traces()))
		if perftest.Has(s, spans.AttrFlopPeak) {
			peaks = append(peaks, perftest.Double(t, s, spans.AttrFlopPeak))
		}
		return peaks
	}
}

func TestDevicesAreSharedByID(t *testing.T) {
	f := NewFactory()
	ctx := context.Background()
	traces, metrics, peaks := components(t, f, "")
	otherTraces, otherMetrics, otherPeaks := components(t, f, "other")
	assert.Empty(t, peaks())
	require.NoError(t, metrics.ConsumeMetrics(ctx, perftest.Scrape(perftest.GPU{Host: "a", Model: perftest.H200})))
	assert.Equal(t, []float64{peakH200}, peaks())
	assert.Empty(t, otherPeaks(), "it is another component")
	require.NoError(t, otherMetrics.ConsumeMetrics(ctx, perftest.Scrape(perftest.GPU{Host: "a", Model: perftest.A100})))
	assert.Equal(t, []float64{peakA100}, otherPeaks())

	// A shutdown of one instance, even twice, takes nothing from the instances left.
	require.NoError(t, metrics.Shutdown(ctx))
	require.NoError(t, metrics.Shutdown(ctx))
	assert.Equal(t, []float64{peakH200}, peaks())
	again, err := f.CreateMetrics(ctx, processortest.NewNopSettings(metadata.Type), f.CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, again.Shutdown(ctx))
	require.NoError(t, traces.Shutdown(ctx))

	// After the last shutdown the known devices are dropped.
	traces, metrics, peaks = components(t, f, "")
	assert.Empty(t, peaks())
	for _, c := range []component.Component{traces, metrics, otherTraces, otherMetrics} {
		require.NoError(t, c.Shutdown(ctx))
	}
}

// TestDevicesAreBounded: the log says once that no further host fits.
func TestDevicesAreBounded(t *testing.T) {
	p, logs := newTest(t)
	var gpus []perftest.GPU
	for i := range devices.Max {
		gpus = append(gpus, perftest.GPU{Host: fmt.Sprint("node", i), Model: perftest.H200})
	}
	processMetrics(t, p, perftest.Scrape(gpus...))
	assert.Zero(t, logs.Len())
	for range 3 {
		processMetrics(t, p, perftest.Scrape(perftest.GPU{Host: "one more", Model: perftest.H200}))
	}
	assert.Equal(t, 1, logs.Len(), "said once")
}

func TestDevicesConcurrently(t *testing.T) {
	p, _ := newTest(t, withAquila)
	var wg sync.WaitGroup
	for g := range 4 {
		host := fmt.Sprint("node", g)
		wg.Go(func() {
			for range 50 {
				processMetrics(t, p, perftest.Scrape(perftest.GPU{Host: host, Model: perftest.H200}))
			}
		})
		wg.Go(func() {
			for range 50 {
				s := oneStep(t, p, spans.Resource{Host: host}, 0.5, nil)
				if perftest.Has(s, spans.AttrFlopPeak) {
					assert.InDelta(t, peakH200, perftest.Double(t, s, spans.AttrFlopPeak), 0)
				}
			}
		})
	}
	wg.Wait()
	for g := range 4 {
		assert.Equal(t, perftest.H200, p.devices.Known().Of(fmt.Sprint("node", g)))
	}
}

// BenchmarkDevices: one scrape of a host with eight GPUs, as it passes again and again.
func BenchmarkDevices(b *testing.B) {
	p, _ := newTest(b)
	gpus := make([]perftest.GPU, 8)
	for i := range gpus {
		gpus[i] = perftest.GPU{Host: "node1", Model: perftest.H200}
	}
	md := perftest.Scrape(gpus...)
	b.ReportAllocs()
	for b.Loop() {
		processMetrics(b, p, md)
	}
}

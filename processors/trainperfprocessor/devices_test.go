package trainperfprocessor

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// gpu is a device as the nvml receiver reports it, or one that it does not.
type gpu struct {
	host, model, parent string
	kind                string // hw.type, "" for gpu
}

// scrape is what nvml says about GPUs: three states of each, and how much memory each device has.
func scrape(gpus ...gpu) pmetric.Metrics {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	status, memory, power := ms.AppendEmpty(), ms.AppendEmpty(), ms.AppendEmpty()
	status.SetName("hw.status")
	memory.SetName("hw.gpu.memory.limit")
	power.SetName("hw.power")
	states, limits, watts := status.SetEmptySum().DataPoints(), memory.SetEmptySum().DataPoints(), power.SetEmptyGauge().DataPoints()
	point := func(list pmetric.NumberDataPointSlice, i int, g gpu, value int64) pcommon.Map {
		dp := list.AppendEmpty()
		dp.SetIntValue(value)
		a := dp.Attributes()
		if g.host != "" {
			a.PutStr("host.name", g.host)
		}
		a.PutStr("hw.id", fmt.Sprint("GPU-", i))
		if g.model != "" {
			a.PutStr("hw.model", g.model)
		}
		return a
	}
	for i, g := range gpus {
		kind := "gpu"
		if g.kind != "" {
			kind = g.kind
		}
		if g.parent != "" {
			point(limits, i, g, 1<<34).PutStr("hw.parent", g.parent)
			continue
		}
		for _, state := range []string{"ok", "degraded", "failed"} {
			a := point(states, i, g, 1)
			a.PutStr("hw.type", kind)
			a.PutStr("hw.state", state)
		}
		point(limits, i, g, 1<<37)
		point(watts, i, gpu{host: g.host, model: "a meter"}, 700).PutStr("hw.type", kind)
	}
	return md
}

// peaks of the table, {flop}/s.
const (
	peakH200 = 989e12
	peakA100 = 312e12
)

const (
	h200 = "NVIDIA H200"
	a100 = "NVIDIA A100-SXM4-80GB"
)

func TestDetectedDevice(t *testing.T) {
	node := func(host string) gpu { return gpu{host: host, model: h200} }
	for name, tt := range map[string]struct {
		gpus   []gpu
		on     string // host.name of the metrics' resource
		config func(*TrainConfig)
		host   string // of the log
		attrs  attrs
		peak   float64 // 0: none
		model  string  // hw.model of the span afterwards
	}{
		"of its host":                    {gpus: []gpu{node("a"), {host: "b", model: a100}}, host: "a", peak: peakH200, model: h200},
		"of its other host":              {gpus: []gpu{node("a"), {host: "b", model: a100}}, host: "b", peak: peakA100, model: a100},
		"eight of them":                  {gpus: []gpu{node("a"), node("a"), node("a"), node("a"), node("a"), node("a"), node("a"), node("a")}, host: "a", peak: peakH200, model: h200},
		"the host on the resource":       {gpus: []gpu{{model: h200}}, on: "a", host: "a", peak: peakH200, model: h200},
		"the point's host comes first":   {gpus: []gpu{node("a")}, on: "b", host: "b"},
		"host on the span":               {gpus: []gpu{node("a"), {host: "b", model: a100}}, host: "a", attrs: attrs{spans.AttrHostName: "b"}, peak: peakA100, model: a100},
		"no host, all agree":             {gpus: []gpu{node("a"), node("b")}, peak: peakH200, model: h200},
		"no host, they do not agree":     {gpus: []gpu{node("a"), {host: "b", model: a100}, node("c")}},
		"another host":                   {gpus: []gpu{node("a")}, host: "login"},
		"two models on its host":         {gpus: []gpu{node("a"), {host: "a", model: a100}}, host: "a"},
		"two models on another host":     {gpus: []gpu{node("a"), {host: "b", model: a100}, node("b")}, host: "a", peak: peakH200, model: h200},
		"a host without a name":          {gpus: []gpu{{model: h200}}, peak: peakH200, model: h200},
		"a host without a name, another": {gpus: []gpu{{model: h200}}, host: "a"},
		"cut into parts":                 {gpus: []gpu{node("a"), {host: "a", model: "NVIDIA H200 MIG 1g.18gb", parent: "GPU-0"}}, host: "a"},
		"parts named as the whole":       {gpus: []gpu{node("a"), {host: "a", model: h200, parent: "GPU-0"}}, host: "a"},
		"a part without a name":          {gpus: []gpu{node("a"), {host: "a", parent: "GPU-0"}}, host: "a"},
		"parts only":                     {gpus: []gpu{{host: "a", model: "NVIDIA H200 MIG 1g.18gb", parent: "GPU-0"}}, host: "a"},
		"one GPU without a name":         {gpus: []gpu{node("a"), {host: "a"}}, host: "a", peak: peakH200, model: h200},
		"beside other hardware":          {gpus: []gpu{node("a"), {host: "a", model: a100, kind: "enclosure"}}, host: "a", peak: peakH200, model: h200},
		"no GPU":                         {gpus: []gpu{{host: "a", model: h200, kind: "fan"}}, host: "a"},
		"not in the table":               {gpus: []gpu{{host: "a", model: "Abacus 9000"}}, host: "a"},
		"nothing was seen":               {host: "a"},
		"by train::device":               {gpus: []gpu{node("a")}, config: func(c *TrainConfig) { c.Device = "A100" }, host: "a", peak: peakA100},
		"by train::peak_flops":           {gpus: []gpu{node("a")}, config: func(c *TrainConfig) { c.PeakFlops = 1e15 }, host: "a", peak: 1e15},
		"by the log":                     {gpus: []gpu{node("a")}, host: "a", attrs: attrs{spans.AttrDeviceModel: "A100"}, peak: peakA100, model: "A100"},
		"by the log, not in the table":   {gpus: []gpu{node("a")}, host: "a", attrs: attrs{spans.AttrDeviceModel: "Abacus"}, model: "Abacus"},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(*TrainConfig) {}
			if tt.config != nil {
				change = tt.config
			}
			md := scrape(tt.gpus...)
			if tt.on != "" {
				md.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.name", tt.on)
			}
			// 2.8 PFLOP per step by the model; and where no model is known, 400 TFLOP/s of the log.
			known, reported := job, job
			known.Host, reported.Host = tt.host, tt.host
			known.Model = &aquila
			p, _ := newTrainTest(t, change)
			before := pmetric.NewMetrics()
			md.CopyTo(before)
			processMetrics(t, p, md)
			assert.Equal(t, before, md, "metrics of GPUs pass as they are")
			for _, step := range []struct {
				res    spans.Resource
				attrs  attrs
				device float64 // {flop}/s
			}{
				{known, nil, aquilaMegatron / 0.5 / 8},
				{reported, attrs{spans.AttrDeviceFlopThroughputReported: 400e12}, 400e12},
			} {
				s := oneStep(t, p, step.res, 0.5, attrs{}.with(tt.attrs).with(step.attrs))
				assert.Equal(t, tt.model, text(s, spans.AttrDeviceModel))
				if tt.peak == 0 {
					assert.False(t, has(s, spans.AttrMFU))
					assert.False(t, has(s, spans.AttrFlopPeak))
					continue
				}
				numbers(t, s, map[string]float64{spans.AttrFlopPeak: tt.peak, spans.AttrMFU: step.device / tt.peak})
			}
		})
	}
}

// TestDeviceOfTheResource: hw.model of the resource comes before what nvml found.
func TestDeviceOfTheResource(t *testing.T) {
	p, _ := newTrainTest(t, withModel(aquila))
	processMetrics(t, p, scrape(gpu{host: "a", model: h200}))
	b := spans.NewBatch("test", "")
	s := addStep(b, spans.Resource{Host: "a"}, 1, 0.5, nil)
	b.Traces().ResourceSpans().At(0).Resource().Attributes().PutStr(spans.AttrDeviceModel, a100)
	process(t, p, b.Traces())
	numbers(t, s, map[string]float64{spans.AttrFlopPeak: peakA100})
	assert.False(t, has(s, spans.AttrDeviceModel))
}

// TestDetectedLater: steps before the first scrape have no MFU, those after it have; one that has passed is left alone.
func TestDetectedLater(t *testing.T) {
	p, logs := newTrainTest(t, withModel(aquila))
	b := spans.NewBatch("test", "")
	early := addStep(b, spans.Resource{Host: "a"}, 1, 0.5, nil)
	process(t, p, b.Traces())
	assert.False(t, has(early, spans.AttrMFU))
	processMetrics(t, p, scrape(gpu{host: "a", model: h200}))
	numbers(t, oneStep(t, p, spans.Resource{Host: "a"}, 0.5, nil), map[string]float64{spans.AttrFlopPeak: peakH200})
	process(t, p, b.Traces())
	assert.False(t, has(early, spans.AttrMFU))
	assert.Zero(t, logs.Len(), "nobody named a device: that is no warning")
}

// components makes the two instances that a component has which stands in a pipeline of traces and in one of metrics.
func components(t *testing.T, f processor.Factory, name string) (processor.Traces, processor.Metrics, func() []float64) {
	t.Helper()
	set := processortest.NewNopSettings(metadata.Type)
	set.ID = component.NewIDWithName(metadata.Type, name)
	cfg := f.CreateDefaultConfig().(*Config)
	cfg.Train.Model.Model = aquila
	sink := new(consumertest.TracesSink)
	traces, err := f.CreateTraces(context.Background(), set, cfg, sink)
	require.NoError(t, err)
	metrics, err := f.CreateMetrics(context.Background(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, traces.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, metrics.Start(context.Background(), componenttest.NewNopHost()))
	// The peaks that a step was held against, of a log without host.
	return traces, metrics, func() (peaks []float64) {
		b := spans.NewBatch("test", "")
		s := addStep(b, job, 1, 0.5, nil)
		require.NoError(t, traces.ConsumeTraces(context.Background(), b.Traces()))
		if has(s, spans.AttrFlopPeak) {
			peaks = append(peaks, double(t, s, spans.AttrFlopPeak))
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
	require.NoError(t, metrics.ConsumeMetrics(ctx, scrape(gpu{host: "a", model: h200})))
	assert.Equal(t, []float64{peakH200}, peaks())
	assert.Empty(t, otherPeaks(), "it is another component")
	require.NoError(t, otherMetrics.ConsumeMetrics(ctx, scrape(gpu{host: "a", model: a100})))
	assert.Equal(t, []float64{peakA100}, otherPeaks())

	// One instance that stops, even twice, takes nothing from the other.
	require.NoError(t, metrics.Shutdown(ctx))
	require.NoError(t, metrics.Shutdown(ctx))
	assert.Equal(t, []float64{peakH200}, peaks())
	again, err := f.CreateMetrics(ctx, processortest.NewNopSettings(metadata.Type), f.CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, again.Shutdown(ctx))
	require.NoError(t, traces.Shutdown(ctx))

	// All have stopped: what they saw is dropped.
	traces, metrics, peaks = components(t, f, "")
	assert.Empty(t, peaks())
	for _, c := range []component.Component{traces, metrics, otherTraces, otherMetrics} {
		require.NoError(t, c.Shutdown(ctx))
	}
}

func TestDevicesAreDropped(t *testing.T) {
	s := &sharedDevices{byID: make(map[component.ID]*usedDevices)}
	id := component.NewID(metadata.Type)
	one, releaseOne := s.use(id)
	two, releaseTwo := s.use(id)
	assert.Same(t, one, two)
	releaseOne()
	releaseOne()
	assert.Len(t, s.byID, 1)
	releaseTwo()
	assert.Empty(t, s.byID)
	three, releaseThree := s.use(id)
	assert.NotSame(t, one, three)
	releaseOne()
	assert.Len(t, s.byID, 1)
	releaseThree()
}

// TestDevicesAgainstOracle compares with the whole history of what was seen.
func TestDevicesAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	d := newDevices()
	start := time.Unix(base/1e9, 0)
	now := start
	d.now = func() time.Time { return now }
	type sighting struct {
		device
		at time.Time
	}
	var history []sighting
	hosts, kinds := []string{"a", "b", "c"}, []string{h200, a100}
	forgotten, agreed := 0, 0
	for range 5000 {
		// Whole minutes, so that every one is the next to sweep in.
		now = now.Add(time.Duration(1+rng.IntN(25)) * time.Minute)
		g := gpu{host: hosts[rng.IntN(3)], model: kinds[min(rng.IntN(8)/3, 1)]}
		require.True(t, d.notice(pcommon.NewMap(), scrape(g).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)))
		history = append(history, sighting{device{g.host, g.model}, now})
		models := map[string]map[string]bool{"": {}}
		for _, s := range history {
			if now.Sub(s.at) > time.Hour {
				continue
			}
			if models[s.host] == nil {
				models[s.host] = map[string]bool{}
			}
			models[s.host][s.model], models[""][s.model] = true, true
		}
		known := d.known.Load()
		for _, host := range append(hosts, "") {
			want := ""
			if len(models[host]) == 1 {
				for model := range models[host] {
					want = model
				}
				agreed++
			}
			if len(models[host]) == 0 {
				forgotten++
			}
			require.Equal(t, want, known.of(host), "host %q", host)
		}
	}
	assert.Positive(t, forgotten)
	assert.Positive(t, agreed)
}

func TestDevicesAreBounded(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	set := componenttest.NewNopTelemetrySettings()
	set.Logger = zap.New(core)
	p, err := newTrainPerf(createDefaultConfig().(*Config), set)
	require.NoError(t, err)
	d := p.train.devices
	now := time.Unix(base/1e9, 0)
	d.now = func() time.Time { return now }
	var gpus []gpu
	for i := range maxDevices {
		gpus = append(gpus, gpu{host: fmt.Sprint("node", i), model: h200})
	}
	long := strings.Repeat("x", maxDeviceText+1)
	processMetrics(t, p, scrape(gpu{host: long, model: h200}, gpu{host: "a", model: long}))
	processMetrics(t, p, scrape(gpus...))
	assert.Len(t, d.seen, maxDevices)
	assert.Zero(t, logs.Len())
	for range 3 {
		processMetrics(t, p, scrape(gpu{host: "one more", model: h200}))
	}
	assert.Equal(t, 1, logs.Len(), "said once")
	assert.Empty(t, d.known.Load().of("one more"))
	assert.Equal(t, h200, d.known.Load().of("node17"))

	now = now.Add(forgetDevice + time.Second)
	processMetrics(t, p, scrape(gpu{host: "one more", model: h200}))
	assert.Equal(t, h200, d.known.Load().of("one more"))
	assert.Len(t, d.seen, 1)
}

// TestDevicesOfOtherTypes: what no number stands in says nothing.
func TestDevicesOfOtherTypes(t *testing.T) {
	p := newTest(t)
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for _, name := range []string{spans.MetricHardwareStatus, spans.MetricGPUMemoryLimit} {
		ms.AppendEmpty().SetName(name)
		for _, m := range []pcommon.Map{
			newMetric(ms, name).SetEmptyHistogram().DataPoints().AppendEmpty().Attributes(),
			newMetric(ms, name).SetEmptySummary().DataPoints().AppendEmpty().Attributes(),
			newMetric(ms, name).SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes(),
		} {
			m.PutStr("hw.type", "gpu")
			m.PutStr("hw.model", h200)
			m.PutStr("hw.parent", "GPU-0")
		}
		odd := newMetric(ms, name).SetEmptyGauge().DataPoints().AppendEmpty().Attributes()
		odd.PutEmptySlice("hw.type").AppendEmpty().SetStr("gpu")
		odd.PutInt("hw.model", 200)
		odd.PutEmptyMap("host.name")
	}
	processMetrics(t, p, md)
	assert.Empty(t, p.train.devices.seen)
	// A gauge will do: not all who send hw.status send a sum.
	m := newMetric(ms, spans.MetricHardwareStatus).SetEmptyGauge().DataPoints().AppendEmpty().Attributes()
	m.PutStr("hw.type", "gpu")
	m.PutStr("hw.model", h200)
	processMetrics(t, p, md)
	assert.Equal(t, h200, p.train.devices.known.Load().of(""))
}

func newMetric(ms pmetric.MetricSlice, name string) pmetric.Metric {
	m := ms.AppendEmpty()
	m.SetName(name)
	return m
}

func TestDevicesConcurrently(t *testing.T) {
	p, _ := newTrainTest(t, withModel(aquila))
	var wg sync.WaitGroup
	for g := range 4 {
		host := fmt.Sprint("node", g)
		wg.Go(func() {
			for range 50 {
				processMetrics(t, p, scrape(gpu{host: host, model: h200}))
			}
		})
		wg.Go(func() {
			for range 50 {
				s := oneStep(t, p, spans.Resource{Host: host}, 0.5, nil)
				if has(s, spans.AttrFlopPeak) {
					assert.InDelta(t, peakH200, double(t, s, spans.AttrFlopPeak), 0)
				}
			}
		})
	}
	wg.Wait()
	for g := range 4 {
		assert.Equal(t, h200, p.train.devices.known.Load().of(fmt.Sprint("node", g)))
	}
}

// BenchmarkDevices: one scrape of a host with eight GPUs, as it passes again and again.
func BenchmarkDevices(b *testing.B) {
	p := newTest(b)
	gpus := make([]gpu, 8)
	for i := range gpus {
		gpus[i] = gpu{host: "node1", model: h200}
	}
	md := scrape(gpus...)
	b.ReportAllocs()
	for b.Loop() {
		processMetrics(b, p, md)
	}
}

package trainperfprocessor

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// aquila is the model of FlagScale's example: 2.813096204697600e15 FLOPs per step of 32 samples by Megatron, 2.918718577311744e15 by perf_monitor.
var aquila = spans.Model{
	Type: "aquila", SwiGLU: true, NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, KVChannels: 128, FFNHiddenSize: 11008,
	PaddedVocabSize: 100008, SeqLength: 2048, GlobalBatchSize: 32, WorldSize: 8,
}

const (
	aquilaMegatron  = 2813096204697600.0
	aquilaFlagScale = 2918718577311744.0
)

// newTrainTest starts a processor; warnings go to the returned log.
func newTrainTest(tb testing.TB, change ...func(*TrainConfig)) (*trainPerf, *observer.ObservedLogs) {
	tb.Helper()
	cfg := createDefaultConfig().(*Config)
	for _, f := range change {
		f(&cfg.Train)
	}
	require.NoError(tb, cfg.Validate())
	core, logs := observer.New(zapcore.WarnLevel)
	set := componenttest.NewNopTelemetrySettings()
	set.Logger = zap.New(core)
	p, err := newTrainPerf(cfg, set)
	require.NoError(tb, err)
	require.NoError(tb, p.start(context.Background(), nil))
	return p, logs
}

func onH100(c *TrainConfig) { c.Device = "NVIDIA H100 80GB HBM3" }

func withModel(m spans.Model) func(*TrainConfig) {
	return func(c *TrainConfig) { c.Model.Model = m }
}

type attrs map[string]any

// addStep appends a step of the given seconds, as the receivers do.
func addStep(b *spans.Batch, res spans.Resource, iteration int64, seconds float64, a attrs) ptrace.Span {
	trace := spans.StepTraceID(res.RunID, iteration)
	end := base + iteration*60_000_000_000
	span := b.Add(res, spans.Span{
		Trace: trace, ID: spanID(int(iteration) + 1_000_000), Name: spans.SpanStep, Kind: ptrace.SpanKindInternal, Start: end - int64(seconds*1e9), End: end, Source: spans.TimeDerived,
	})
	m := span.Attributes()
	m.PutInt(spans.AttrIteration, iteration)
	m.PutInt(spans.AttrStepsCovered, 1)
	m.PutStr(spans.AttrSource, "megatron")
	m.PutDouble(spans.AttrStepDuration, seconds)
	m.PutStr(spans.AttrStepDurationKind, spans.DurationStep)
	for name, v := range a {
		if v == nil {
			m.Remove(name)
			continue
		}
		value, _ := m.GetOrPutEmpty(name)
		if err := value.FromRaw(v); err != nil {
			panic(err)
		}
	}
	return span
}

func oneStep(tb testing.TB, p *trainPerf, res spans.Resource, seconds float64, a attrs) ptrace.Span {
	tb.Helper()
	b := spans.NewBatch("test", "")
	s := addStep(b, res, 7, seconds, a)
	process(tb, p, b.Traces())
	return s
}

// numbers checks attributes; NaN: absent.
func numbers(tb testing.TB, s ptrace.Span, want map[string]float64) {
	tb.Helper()
	for name, x := range want {
		v, ok := s.Attributes().Get(name)
		if math.IsNaN(x) {
			assert.False(tb, ok, name)
			continue
		}
		if assert.True(tb, ok, name) {
			assert.InEpsilon(tb, x, spans.ValueNumber(v), 1e-12, name)
		}
	}
}

func text(s ptrace.Span, name string) string { return spans.AttrText(s.Attributes(), name) }

var job = spans.Resource{Service: "pretrain", RunID: "run-1"}

func TestMeasures(t *testing.T) {
	nan := math.NaN()
	const peak = 989e12
	known := job
	known.Model = &aquila
	for name, tt := range map[string]struct {
		res     spans.Resource
		config  func(*TrainConfig)
		attrs   attrs
		want    map[string]float64
		formula string
	}{
		"by the model of the log": {
			known, func(*TrainConfig) {}, nil,
			map[string]float64{
				spans.AttrFlopCount: aquilaMegatron, spans.AttrFlopThroughput: aquilaMegatron / 0.5, spans.AttrDeviceFlopThroughput: aquilaMegatron / 4, spans.AttrMFU: aquilaMegatron / 4 / peak,
				spans.AttrFlopPeak: peak, spans.AttrHFU: nan, spans.AttrFlopDisagreement: nan,
				spans.AttrSamples: 32, spans.AttrTokens: 32 * 2048, spans.AttrSampleThroughput: 64, spans.AttrTokenThroughput: 64 * 2048,
			},
			"megatron/causal/",
		},
		"by the model of the config, which comes first": {
			known, func(c *TrainConfig) {
				c.Model.Model = aquila
				c.Model.NumLayers, c.Model.VocabSize = 0, 0
				c.Model.NumLayers = 64
			},
			nil,
			map[string]float64{spans.AttrFlopCount: 2*aquilaMegatron - 6.*32*2048*4096*100008},
			"megatron/causal/",
		},
		"the log's batch comes before the model's": {
			known, func(*TrainConfig) {},
			attrs{spans.AttrBatchSize: int64(64), spans.AttrStepsCovered: int64(10)},
			map[string]float64{spans.AttrFlopCount: 2 * aquilaMegatron, spans.AttrFlopThroughput: 2 * aquilaMegatron / 0.5, spans.AttrSamples: 640, spans.AttrTokens: 640 * 2048},
			"megatron/causal/",
		},
		"FlagScale's formula": {
			known, func(c *TrainConfig) { c.Formula = formulaFlagScale }, nil,
			map[string]float64{spans.AttrFlopCount: aquilaFlagScale, spans.AttrMFU: aquilaFlagScale / 4 / peak},
			"flagscale/full/",
		},
		"full recomputation": {
			known, func(c *TrainConfig) { c.Recompute = "full" }, nil,
			// The layers run a fourth time, the logits (2·B·s·h·V forward) do not.
			map[string]float64{spans.AttrMFU: aquilaMegatron / 4 / peak, spans.AttrHFU: (aquilaMegatron*4/3 - 2.*32*2048*4096*100008) / 4 / peak},
			"megatron/causal/full",
		},
		"selective recomputation": {
			known, func(c *TrainConfig) { c.Recompute = "selective" }, nil,
			map[string]float64{spans.AttrHFU: (aquilaMegatron + 2.*32*2048*2048*4096*32) / 4 / peak},
			"megatron/causal/selective",
		},
		"no recomputation": {
			known, func(c *TrainConfig) { c.Recompute = "none" }, nil,
			map[string]float64{spans.AttrHFU: aquilaMegatron / 4 / peak},
			"megatron/causal/none",
		},
		"all of the attention matrix": {
			known, func(c *TrainConfig) { c.Attention = attentionFull }, nil,
			map[string]float64{spans.AttrFlopCount: aquilaMegatron + 3*2.*32*2048*2048*4096*32},
			"megatron/full/",
		},
		"an interval is no step time": {
			known, func(*TrainConfig) {},
			attrs{spans.AttrStepDurationKind: spans.DurationInterval},
			map[string]float64{
				spans.AttrFlopCount: aquilaMegatron, spans.AttrFlopThroughput: nan, spans.AttrMFU: nan, spans.AttrSamples: 32, spans.AttrTokens: 32 * 2048,
				spans.AttrSampleThroughput: nan, spans.AttrTokenThroughput: nan,
			},
			"megatron/causal/",
		},
		"by tokens per second and device": {
			known, func(c *TrainConfig) { c.Model.Model = aquila; c.Model.GlobalBatchSize, c.Model.WorldSize = 0, 0 },
			attrs{spans.AttrStepDuration: nil, spans.AttrDeviceTokenThroughput: 1000., spans.AttrStepsCovered: nil},
			// The log's own description still has the batch, and the world size.
			map[string]float64{spans.AttrDeviceFlopThroughput: aquilaMegatron / 32 / 2048 * 1000, spans.AttrFlopThroughput: aquilaMegatron / 32 / 2048 * 8000, spans.AttrTokenThroughput: 8000},
			"megatron/causal/",
		},
		"the log's rates, no batch, no model": {
			job, func(*TrainConfig) {},
			attrs{spans.AttrSampleThroughput: 100., spans.AttrTokenThroughput: 5000.},
			map[string]float64{spans.AttrSamples: 50, spans.AttrTokens: 2500, spans.AttrFlopCount: nan, spans.AttrMFU: nan, spans.AttrFlopPeak: nan},
			"//",
		},
		"the log counts its tokens": {
			job, func(*TrainConfig) {},
			attrs{spans.AttrTokens: int64(3000)},
			map[string]float64{spans.AttrTokens: 3000, spans.AttrTokenThroughput: 6000, spans.AttrSamples: nan},
			"//",
		},
		"no model, but its sequences": {
			job, func(c *TrainConfig) { c.Model.SeqLength, c.Model.GlobalBatchSize = 2048, 32 }, nil,
			map[string]float64{spans.AttrSamples: 32, spans.AttrTokens: 32 * 2048, spans.AttrTokenThroughput: 64 * 2048, spans.AttrFlopCount: nan},
			"//",
		},
		"no model, but the log's FLOP/s": {
			job, func(*TrainConfig) {},
			attrs{spans.AttrDeviceFlopThroughputReported: 400e12},
			map[string]float64{spans.AttrMFU: 400e12 / peak, spans.AttrFlopPeak: peak, spans.AttrFlopDisagreement: nan, spans.AttrDeviceFlopThroughput: nan, spans.AttrFlopThroughput: nan},
			"reported//",
		},
		"no model, but the log's FLOP/s of all devices": {
			job, func(c *TrainConfig) { c.WorldSize = 4 },
			attrs{spans.AttrFlopThroughputReported: 1600e12},
			map[string]float64{spans.AttrMFU: 400e12 / peak},
			"reported//",
		},
		"a peak of one's own": {
			known, func(c *TrainConfig) { c.PeakFlops = 1e15 }, nil,
			map[string]float64{spans.AttrMFU: aquilaMegatron / 4 / 1e15, spans.AttrFlopPeak: 1e15},
			"megatron/causal/",
		},
		"no model, nothing reported": {
			job, func(*TrainConfig) {}, nil,
			map[string]float64{spans.AttrFlopCount: nan, spans.AttrMFU: nan, spans.AttrSamples: nan},
			"//",
		},
		"disagreement": {
			known, func(*TrainConfig) {},
			attrs{spans.AttrDeviceFlopThroughputReported: aquilaMegatron / 4 * 0.97},
			map[string]float64{spans.AttrFlopDisagreement: 0.03},
			"megatron/causal/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, logs := newTrainTest(t, onH100, tt.config)
			s := oneStep(t, p, tt.res, 0.5, tt.attrs)
			tolerant := map[string]float64{}
			for k, v := range tt.want {
				if k == spans.AttrFlopDisagreement && !math.IsNaN(v) {
					assert.InDelta(t, v, double(t, s, k), 1e-12)
					continue
				}
				tolerant[k] = v
			}
			numbers(t, s, tolerant)
			assert.Equal(t, tt.formula, text(s, spans.AttrFlopFormula)+"/"+text(s, spans.AttrFlopConvention)+"/"+text(s, spans.AttrFlopRecompute))
			assert.Zero(t, logs.Len())
		})
	}
}

// TestMegatronLine: a real line of a Megatron-LM log says 19.1388 s, 128 samples; the model's own numbers, independent of flops.
func TestMegatronLineByHand(t *testing.T) {
	m := spans.Model{NumLayers: 2, HiddenSize: 64, AttentionHeads: 4, SeqLength: 128, PaddedVocabSize: 1000, FFNHiddenSize: 256}
	p, _ := newTrainTest(t, withModel(m), func(c *TrainConfig) { c.PeakFlops, c.WorldSize = 1e12, 2 })
	s := oneStep(t, p, job, 2, attrs{spans.AttrBatchSize: int64(10)})
	// 6·T·(L·(2·h·f + 4·h²) + h·V) + 6·B·s²·L·h
	want := 6.*1280*(2*(2*64*256+4*64*64)+64*1000) + 6.*10*128*128*2*64
	numbers(t, s, map[string]float64{spans.AttrFlopCount: want, spans.AttrDeviceFlopThroughput: want / 4, spans.AttrMFU: want / 4e12})
}

func TestWorldSize(t *testing.T) {
	known := job
	model := aquila
	model.WorldSize = 0
	known.Model = &model
	per := func(tflops float64) any { return tflops * 1e12 }
	for name, tt := range map[string]struct {
		config func(*TrainConfig)
		attrs  attrs
		want   float64 // 0: not known
	}{
		"config first":     {func(c *TrainConfig) { c.WorldSize = 3 }, attrs{spans.AttrWorldSize: int64(4)}, 3},
		"the log's":        {func(*TrainConfig) {}, attrs{spans.AttrWorldSize: int64(4)}, 4},
		"from the FLOP/s":  {func(*TrainConfig) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(74.83), spans.AttrFlopThroughputReported: per(598.66)}, 8},
		"1 device":         {func(*TrainConfig) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(74.83), spans.AttrFlopThroughputReported: per(74.83)}, 1},
		"2048 devices":     {func(*TrainConfig) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(400.12), spans.AttrFlopThroughputReported: per(819445.73)}, 2048},
		"no whole number":  {func(*TrainConfig) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(74.83), spans.AttrFlopThroughputReported: per(560.1)}, 0},
		"too small to say": {func(*TrainConfig) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(0.01), spans.AttrFlopThroughputReported: per(0.08)}, 0},
		"zero":             {func(*TrainConfig) {}, attrs{spans.AttrDeviceFlopThroughputReported: 0., spans.AttrFlopThroughputReported: 0.}, 0},
		"nothing":          {func(*TrainConfig) {}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newTrainTest(t, onH100, tt.config)
			s := oneStep(t, p, known, 0.5, tt.attrs)
			numbers(t, s, map[string]float64{spans.AttrFlopThroughput: aquilaMegatron / 0.5})
			if tt.want == 0 {
				assert.False(t, has(s, spans.AttrDeviceFlopThroughput))
				assert.False(t, has(s, spans.AttrMFU))
				return
			}
			numbers(t, s, map[string]float64{spans.AttrDeviceFlopThroughput: aquilaMegatron / 0.5 / tt.want})
		})
	}
}

func TestDevice(t *testing.T) {
	known := job
	known.Model = &aquila
	p, logs := newTrainTest(t)
	for range 3 {
		s := oneStep(t, p, known, 0.5, attrs{spans.AttrDeviceModel: "Abacus 9000"})
		assert.False(t, has(s, spans.AttrMFU), "no guess")
		assert.True(t, has(s, spans.AttrDeviceFlopThroughput))
		oneStep(t, p, known, 0.5, nil)
	}
	require.Equal(t, 1, logs.Len(), "one warning per name; a device that nobody names is none")
	assert.Equal(t, "Abacus 9000", logs.All()[0].ContextMap()["device"])
	numbers(t, oneStep(t, p, known, 0.5, attrs{spans.AttrDeviceModel: "NVIDIA A100-SXM4-80GB"}), map[string]float64{spans.AttrMFU: aquilaMegatron / 4 / 312e12})
	// On the resource, where an NVML receiver or resource detection would put it.
	b := spans.NewBatch("test", "")
	s := addStep(b, known, 8, 0.5, nil)
	td := b.Traces()
	td.ResourceSpans().At(0).Resource().Attributes().PutStr(spans.AttrDeviceModel, "NVIDIA H100 PCIe")
	process(t, p, td)
	numbers(t, s, map[string]float64{spans.AttrMFU: aquilaMegatron / 4 / 756e12})
}

func TestIncompleteModelWarnsOnce(t *testing.T) {
	half := job
	half.Model = &spans.Model{NumLayers: 4, HiddenSize: 64, AttentionHeads: 4, SeqLength: 128}
	p, logs := newTrainTest(t, onH100)
	for range 3 {
		s := oneStep(t, p, half, 0.5, attrs{spans.AttrBatchSize: int64(4)})
		assert.False(t, has(s, spans.AttrFlopCount))
		numbers(t, s, map[string]float64{spans.AttrSamples: 4})
	}
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "padded_vocab_size", logs.All()[0].ContextMap()["key"])
}

func TestHFConfig(t *testing.T) {
	file := filepath.Join("testdata", "hf_config.json")
	p, _ := newTrainTest(t, onH100, func(c *TrainConfig) {
		c.Model.HFConfig = file
		c.Model.SeqLength, c.Model.GlobalBatchSize, c.Model.WorldSize = 8192, 1, 8
	})
	s := oneStep(t, p, job, 0.5, nil)
	numbers(t, s, map[string]float64{spans.AttrFlopCount: 421645529382912}) // LLaMA 3 8B, of flops_golden.json

	for name, tt := range map[string]struct {
		change func(*TrainConfig)
		text   string
	}{
		"no such file":  {func(c *TrainConfig) { c.Model.HFConfig = filepath.Join("testdata", "none.json") }, "none.json"},
		"not JSON":      {func(c *TrainConfig) { c.Model.HFConfig = filepath.Join("testdata", "config.yaml") }, "config.yaml: is not a JSON object"},
		"no seq_length": {func(c *TrainConfig) { c.Model.HFConfig = file }, "'train::model::seq_length' is missing"},
		"key":           {func(c *TrainConfig) { c.Model.HFConfig = writeFile(t, `{"model_type": "llama"}`) }, "'num_hidden_layers' or 'n_layer' is missing"},
		"not counted": {func(c *TrainConfig) {
			c.Model.HFConfig, c.Model.SeqLength, c.Model.AttentionVariant = file, 8192, "kda"
		}, "(experimental_attention_variant kda)"},
		"a directory": {func(c *TrainConfig) { c.Model.HFConfig = "testdata" }, "testdata"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			tt.change(&cfg.Train)
			tp, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(t, err)
			err = tp.Start(context.Background(), componenttest.NewNopHost())
			require.ErrorIs(t, err, errHFConfig)
			require.ErrorContains(t, err, "'train::model::hf_config'")
			require.ErrorContains(t, err, tt.text)
			require.NoError(t, tp.Shutdown(context.Background()))
		})
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestGatedByArchitecture(t *testing.T) {
	m := aquila
	m.Type, m.SwiGLU = "llama", false
	gated := m
	gated.SwiGLU = true
	p, _ := newTrainTest(t, withModel(m))
	q, _ := newTrainTest(t, withModel(gated))
	assert.InDelta(t, double(t, oneStep(t, q, job, 1, nil), spans.AttrFlopCount), double(t, oneStep(t, p, job, 1, nil), spans.AttrFlopCount), 0)
}

// TestModelsThatCannotBeCounted: what the log reports stays, marked as such, and nothing accuses it. Such a model was counted as a transformer.
func TestModelsThatCannotBeCounted(t *testing.T) {
	m := aquila
	m.HybridPattern = "MD"
	known := job
	known.Model = &m
	p, logs := newTrainTest(t, onH100)
	for range 2 {
		s := oneStep(t, p, known, 0.5, attrs{spans.AttrDeviceFlopThroughputReported: 400e12, spans.AttrBatchSize: int64(32)})
		assert.Equal(t, "hybrid_layer_pattern MD", text(s, spans.AttrFlopUnsupported))
		assert.Equal(t, "reported", text(s, spans.AttrFlopFormula))
		nan := math.NaN()
		numbers(t, s, map[string]float64{
			spans.AttrMFU: 400. / 989, spans.AttrSamples: 32, spans.AttrDeviceFlopThroughputReported: 400e12,
			spans.AttrFlopCount: nan, spans.AttrFlopThroughput: nan, spans.AttrDeviceFlopThroughput: nan, spans.AttrHFU: nan, spans.AttrFlopDisagreement: nan,
		})
		assert.Empty(t, verdicts(s))
	}
	assert.Equal(t, 1, logs.FilterMessageSnippet("leaves out").Len())
	// Without a report there is nothing but the reason, and a second pass changes nothing.
	b := spans.NewBatch("test", "")
	s := addStep(b, known, 7, 0.5, attrs{spans.AttrSource: "perf_monitor", spans.AttrFlopCountReported: 1e12})
	process(t, p, b.Traces())
	assert.Equal(t, "hybrid_layer_pattern MD", text(s, spans.AttrFlopUnsupported))
	assert.Empty(t, text(s, spans.AttrFlopFormula))
	assert.Empty(t, verdicts(s))
	n := s.Attributes().Len()
	process(t, p, b.Traces())
	assert.Equal(t, n, s.Attributes().Len())
}

// TestOddSteps: values of the wrong type or beyond reason are passed over.
func TestOddSteps(t *testing.T) {
	p, _ := newTrainTest(t, onH100, withModel(aquila))
	for name, a := range map[string]attrs{
		"no duration":      {spans.AttrStepDuration: nil},
		"zero duration":    {spans.AttrStepDuration: 0.},
		"negative":         {spans.AttrStepDuration: -1.},
		"NaN duration":     {spans.AttrStepDuration: math.NaN()},
		"text duration":    {spans.AttrStepDuration: "fast"},
		"infinite":         {spans.AttrStepDuration: math.Inf(1)},
		"negative batch":   {spans.AttrBatchSize: int64(-5), spans.AttrStepDuration: nil},
		"infinite batch":   {spans.AttrBatchSize: math.Inf(1), spans.AttrStepDuration: nil},
		"denormal seconds": {spans.AttrStepDuration: 5e-324},
	} {
		t.Run(name, func(t *testing.T) {
			s := oneStep(t, p, job, 0.5, a)
			numbers(t, s, map[string]float64{spans.AttrFlopCount: aquilaMegatron, spans.AttrFlopThroughput: math.NaN(), spans.AttrMFU: math.NaN()})
			for name, v := range s.Attributes().All() {
				if v.Type() == pcommon.ValueTypeDouble && name != spans.AttrStepDuration && name != spans.AttrBatchSize {
					assert.False(t, math.IsInf(v.Double(), 0) || math.IsNaN(v.Double()), name)
				}
			}
		})
	}
	b := spans.NewBatch("test", "")
	s := addStep(b, job, 3, 0.5, nil)
	s.SetName("train.evaluation")
	n := s.Attributes().Len()
	process(t, p, b.Traces())
	assert.Equal(t, n, s.Attributes().Len(), "not a step")
}

func TestStepRetry(t *testing.T) {
	build := func() ptrace.Traces {
		b := spans.NewBatch("test", "")
		for i := int64(1); i <= 150; i++ {
			seconds := 0.5
			if i == 140 {
				seconds = 2
			}
			addStep(b, job, i, seconds, attrs{spans.AttrLoss: 2.5, spans.AttrBatchSize: int64(32)})
		}
		return b.Traces()
	}
	p, _ := newTrainTest(t, onH100, withModel(aquila))
	first := build()
	process(t, p, first)
	assert.Contains(t, verdicts(spanByID(t, first, 1_000_140)), spans.VerdictThroughputLow)
	once := ptrace.NewTraces()
	first.CopyTo(once)
	lengths := func() (n int64) {
		for _, k := range p.train.series.byKey.Keys() {
			s, _ := p.train.series.byKey.Peek(k)
			n += s.seen
		}
		return n
	}
	before := lengths()
	process(t, p, first)
	require.NoError(t, ptracetest.CompareTraces(once, first), "the second pass changed something")
	assert.Equal(t, before, lengths())
	// A fresh copy of the latter part, as a fan-out repeats a batch.
	again := build()
	again.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func(s ptrace.Span) bool { v, _ := s.Attributes().Get(spans.AttrIteration); return v.Int() <= 60 })
	process(t, p, again)
	assert.Equal(t, before, lengths(), "a span was fed twice")
}

func TestStepTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	cfg := createDefaultConfig().(*Config)
	onH100(&cfg.Train)
	p, err := newTrainPerf(cfg, tel.NewTelemetrySettings())
	require.NoError(t, err)
	known, noBatch := job, job
	known.Model = &aquila
	m := aquila
	m.GlobalBatchSize = 0
	noBatch.Model = &m
	b := spans.NewBatch("test", "")
	addStep(b, known, 1, 1, nil)
	addStep(b, known, 2, 1, attrs{spans.AttrStepDuration: nil})
	addStep(b, noBatch, 3, 1, nil)
	addStep(b, job, 4, 1, nil)
	addStep(b, job, 5, 1, attrs{spans.AttrDeviceFlopThroughputReported: 400e12})
	process(t, p, b.Traces())
	process(t, p, b.Traces())
	point := func(outcome string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualProcessorTrainPerfSteps(t, tel, []metricdata.DataPoint[int64]{
		point("measured", 1), point("no_time", 3), point("no_model", 2), point("reported", 1), point("already_measured", 3),
	}, metricdatatest.IgnoreTimestamp())
}

// TestStepGolden runs the whole component on steps of several sources.
func TestStepGolden(t *testing.T) {
	in, err := golden.ReadTraces(filepath.Join("testdata", "train_in.yaml"))
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	onH100(&cfg.Train)
	cfg.Train.Recompute = "full"
	sink := new(consumertest.TracesSink)
	p, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeTraces(context.Background(), in))
	require.NoError(t, p.Shutdown(context.Background()))
	require.Len(t, sink.AllTraces(), 1)
	compare(t, "train_want.yaml", sink.AllTraces()[0])
}

// FuzzStep: whatever a step holds, nothing panics, and processing twice is processing once.
func FuzzStep(f *testing.F) {
	f.Add(0.5, 32.0, 100.0, 1e15, 2.5, int64(7), int64(8), int64(4096), int64(32), "perf_monitor")
	f.Add(math.Inf(1), math.NaN(), -1.0, 5e-324, math.MaxFloat64, int64(math.MinInt64), int64(math.MaxInt64), int64(1), int64(0), "megatron")
	p, _ := newTrainTest(f, onH100)
	f.Fuzz(func(t *testing.T, seconds, batch, rate, reported, loss float64, iteration, world, hidden, layers int64, source string) {
		res := job
		res.Model = &spans.Model{NumLayers: layers, HiddenSize: hidden, AttentionHeads: 8, SeqLength: 128, VocabSize: 100, WorldSize: world, NumExperts: layers % 9}
		b := spans.NewBatch("test", "")
		s := addStep(b, res, 1, 1, attrs{
			spans.AttrIteration: iteration, spans.AttrStepDuration: seconds, spans.AttrBatchSize: batch, spans.AttrSampleThroughput: rate, spans.AttrDeviceFlopThroughputReported: reported,
			spans.AttrFlopThroughputReported: reported * 8, spans.AttrLoss: loss, spans.AttrSource: source, spans.AttrStepsCovered: world,
		})
		process(t, p, b.Traces())
		for _, name := range []string{spans.AttrFlopCount, spans.AttrFlopThroughput, spans.AttrDeviceFlopThroughput, spans.AttrMFU, spans.AttrFlopDisagreement} {
			if v, ok := s.Attributes().Get(name); ok && (math.IsNaN(v.Double()) || math.IsInf(v.Double(), 0) || v.Double() < 0) {
				t.Fatalf("%s is %v", name, v.Double())
			}
		}
		once := ptrace.NewTraces()
		b.Traces().CopyTo(once)
		process(t, p, b.Traces())
		one, err := new(ptrace.ProtoMarshaler).MarshalTraces(once)
		require.NoError(t, err)
		two, err := new(ptrace.ProtoMarshaler).MarshalTraces(b.Traces())
		require.NoError(t, err)
		assert.Equal(t, one, two)
	})
}

// BenchmarkSteps: batches of 100 healthy steps as the receivers send them: of a JSONL log, which names no model, and of Megatron's with one.
func BenchmarkSteps(b *testing.B) {
	known := job
	known.Model = &aquila
	for name, bb := range map[string]struct {
		res   spans.Resource
		attrs attrs
		room  int // attributes that the receivers make room for
	}{
		"no model": {job, attrs{
			spans.AttrSource: "jsonl", spans.AttrIteration: nil, spans.AttrRecord: int64(1), spans.AttrStepsCovered: nil, spans.AttrStepDurationKind: nil, spans.AttrLoss: 2.5,
			spans.AttrSampleThroughput: 64.0, spans.AttrLearningRate: 1e-4, spans.AttrGPUUtilization: 0.97, spans.AttrGPUUtilizationMin: 0.96,
		}, 12},
		"model": {known, attrs{
			spans.AttrLoss: 2.5, spans.AttrBatchSize: int64(32), spans.AttrLearningRate: 1e-4, spans.AttrGradientNorm: 1.2,
			spans.AttrDeviceFlopThroughputReported: 700e12, spans.AttrConsumedSamples: int64(32), spans.AttrWorldSize: int64(8),
		}, 28},
	} {
		b.Run(name, func(b *testing.B) {
			const steps, copies = 100, 8 // as warm as what a receiver has just built
			rng := rand.New(rand.NewPCG(1, 2))
			batch := spans.NewBatch("bench", "")
			for i := range int64(steps) {
				addStep(batch, bb.res, i, 0.5, bb.attrs)
			}
			fresh := make([]ptrace.Traces, copies)
			p, _ := newTrainTest(b, onH100)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%copies == 0 {
					b.StopTimer()
					for i := range fresh {
						fresh[i] = ptrace.NewTraces()
						batch.Traces().CopyTo(fresh[i])
						for j, span := range fresh[i].ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() { // other spans every time
							at := (n+i)*steps + j + 1
							span.SetSpanID(spanID(at))
							m := span.Attributes()
							m.EnsureCapacity(bb.room)
							for _, name := range []string{spans.AttrIteration, spans.AttrRecord} {
								if v, ok := m.Get(name); ok {
									v.SetInt(int64(at))
								}
							}
							m.PutDouble(spans.AttrLoss, healthyLoss(rng, at))
							seconds := 0.5 * math.Exp(0.02*rng.NormFloat64())
							m.PutDouble(spans.AttrStepDuration, seconds)
							if v, ok := m.Get(spans.AttrSampleThroughput); ok {
								v.SetDouble(32 / seconds)
							}
						}
					}
					runtime.GC() // the copies' garbage is not the processor's
					b.StartTimer()
				}
				process(b, p, fresh[n%copies])
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/steps, "ns/span")
		})
	}
}

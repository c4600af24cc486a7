package steps

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type attrs = perftest.Attrs

// newTest starts a domain; warnings go to the returned log.
func newTest(tb testing.TB, change ...func(*Config)) (*Domain, *observer.ObservedLogs) {
	tb.Helper()
	cfg := DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	require.Empty(tb, cfg.Errors())
	core, logs := observer.New(zapcore.WarnLevel)
	d := New(cfg, zap.New(core), devices.New())
	require.NoError(tb, d.Start())
	return d, logs
}

func onH100(c *Config) { c.Device = "NVIDIA H100 80GB HBM3" }

func withModel(m spans.Model) func(*Config) {
	return func(c *Config) { c.Model.Model = m }
}

func oneStep(tb testing.TB, p *Domain, res spans.Resource, seconds float64, a attrs) ptrace.Span {
	tb.Helper()
	b := spans.NewBatch("test", "")
	s := perftest.AddStep(b, res, 7, seconds, a)
	perftest.Judge(p, b.Traces())
	return s
}

// peakH100 is the peak of onH100.
const peakH100 = 989e12

var none = math.NaN() // of an absent attribute

// knownJob is a job whose log describes its model.
func knownJob() spans.Resource {
	res := perftest.Job
	res.Model = &perftest.Aquila
	return res
}

type measureTest struct {
	res     spans.Resource
	config  func(*Config)
	attrs   attrs
	want    map[string]float64
	formula string
}

func checkMeasures(t *testing.T, cases map[string]measureTest) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			p, logs := newTest(t, onH100, tt.config)
			s := oneStep(t, p, tt.res, 0.5, tt.attrs)
			tolerant := map[string]float64{}
			for k, v := range tt.want {
				if k == spans.AttrFlopDisagreement && !math.IsNaN(v) {
					assert.InDelta(t, v, perftest.Double(t, s, k), 1e-12)
					continue
				}
				tolerant[k] = v
			}
			perftest.Numbers(t, s, tolerant)
			assert.Equal(t, tt.formula, perftest.Text(s, spans.AttrFlopFormula)+"/"+perftest.Text(s, spans.AttrFlopConvention)+"/"+perftest.Text(s,
				spans.AttrFlopRecompute))
			assert.Zero(t, logs.Len())
		})
	}
}

func TestMeasuresOfTheModel(t *testing.T) {
	checkMeasures(t, map[string]measureTest{
		"by the model of the log": {
			knownJob(), func(*Config) {}, nil,
			map[string]float64{
				spans.AttrFlopCount: perftest.AquilaMegatron, spans.AttrFlopThroughput: perftest.AquilaMegatron / 0.5,
				spans.AttrDeviceFlopThroughput: perftest.AquilaMegatron / 4, spans.AttrMFU: perftest.AquilaMegatron / 4 / peakH100,
				spans.AttrFlopPeak: peakH100, spans.AttrHFU: none, spans.AttrFlopDisagreement: none,
				spans.AttrSamples: 32, spans.AttrTokens: 32 * 2048, spans.AttrSampleThroughput: 64, spans.AttrTokenThroughput: 64 * 2048,
			},
			"megatron/causal/",
		},
		"by the model of the config, which comes first": {
			knownJob(), func(c *Config) {
				c.Model.Model = perftest.Aquila
				c.Model.NumLayers, c.Model.VocabSize = 0, 0
				c.Model.NumLayers = 64
			},
			nil,
			map[string]float64{spans.AttrFlopCount: 2*perftest.AquilaMegatron - 6.*32*2048*4096*100008},
			"megatron/causal/",
		},
		"the log's batch comes before the model's": {
			knownJob(), func(*Config) {},
			attrs{spans.AttrBatchSize: int64(64), spans.AttrStepsCovered: int64(10)},
			map[string]float64{
				spans.AttrFlopCount: 2 * perftest.AquilaMegatron, spans.AttrFlopThroughput: 2 * perftest.AquilaMegatron / 0.5,
				spans.AttrSamples: 640, spans.AttrTokens: 640 * 2048,
			},
			"megatron/causal/",
		},
	})
}

func TestMeasuresByFormula(t *testing.T) {
	checkMeasures(t, map[string]measureTest{
		"FlagScale's formula": {
			knownJob(), func(c *Config) { c.Formula = formulaFlagScale }, nil,
			map[string]float64{spans.AttrFlopCount: perftest.AquilaFlagScale, spans.AttrMFU: perftest.AquilaFlagScale / 4 / peakH100},
			"flagscale/full/",
		},
		"full recomputation": {
			knownJob(), func(c *Config) { c.Recompute = "full" }, nil,
			// The layers run a fourth time, the logits (2·B·s·h·V forward) do not.
			map[string]float64{
				spans.AttrMFU: perftest.AquilaMegatron / 4 / peakH100,
				spans.AttrHFU: (perftest.AquilaMegatron*4/3 - 2.*32*2048*4096*100008) / 4 / peakH100,
			},
			"megatron/causal/full",
		},
		"selective recomputation": {
			knownJob(), func(c *Config) { c.Recompute = "selective" }, nil,
			map[string]float64{spans.AttrHFU: (perftest.AquilaMegatron + 2.*32*2048*2048*4096*32) / 4 / peakH100},
			"megatron/causal/selective",
		},
		"no recomputation": {
			knownJob(), func(c *Config) { c.Recompute = "none" }, nil,
			map[string]float64{spans.AttrHFU: perftest.AquilaMegatron / 4 / peakH100},
			"megatron/causal/none",
		},
		"all of the attention matrix": {
			knownJob(), func(c *Config) { c.Attention = attentionFull }, nil,
			map[string]float64{spans.AttrFlopCount: perftest.AquilaMegatron + 3*2.*32*2048*2048*4096*32},
			"megatron/full/",
		},
	})
}

func TestMeasuresOfTime(t *testing.T) {
	checkMeasures(t, map[string]measureTest{
		"an interval is no step time": {
			knownJob(), func(*Config) {},
			attrs{spans.AttrStepDurationKind: spans.DurationInterval},
			map[string]float64{
				spans.AttrFlopCount: perftest.AquilaMegatron, spans.AttrFlopThroughput: none, spans.AttrMFU: none, spans.AttrSamples: 32,
				spans.AttrTokens:           32 * 2048,
				spans.AttrSampleThroughput: none, spans.AttrTokenThroughput: none,
			},
			"megatron/causal/",
		},
		"by tokens per second and device": {
			knownJob(), func(c *Config) { c.Model.Model = perftest.Aquila; c.Model.GlobalBatchSize, c.Model.WorldSize = 0, 0 },
			attrs{spans.AttrStepDuration: nil, spans.AttrTimePoint: true, spans.AttrDeviceTokenThroughput: 1000., spans.AttrStepsCovered: nil},
			// The log's own description still has the batch, and the world size.
			map[string]float64{
				spans.AttrDeviceFlopThroughput: perftest.AquilaMegatron / 32 / 2048 * 1000,
				spans.AttrFlopThroughput:       perftest.AquilaMegatron / 32 / 2048 * 8000, spans.AttrTokenThroughput: 8000,
			},
			"megatron/causal/",
		},
	})
}

func TestMeasuresWithoutAModel(t *testing.T) {
	checkMeasures(t, map[string]measureTest{
		"the log's rates, no batch, no model": {
			perftest.Job, func(*Config) {},
			attrs{spans.AttrSampleThroughput: 100., spans.AttrTokenThroughput: 5000.},
			map[string]float64{spans.AttrSamples: 50, spans.AttrTokens: 2500, spans.AttrFlopCount: none, spans.AttrMFU: none, spans.AttrFlopPeak: none},
			"//",
		},
		"the log counts its tokens": {
			perftest.Job, func(*Config) {},
			attrs{spans.AttrTokens: int64(3000)},
			map[string]float64{spans.AttrTokens: 3000, spans.AttrTokenThroughput: 6000, spans.AttrSamples: none},
			"//",
		},
		"no model, but its sequences": {
			perftest.Job, func(c *Config) { c.Model.SeqLength, c.Model.GlobalBatchSize = 2048, 32 }, nil,
			map[string]float64{spans.AttrSamples: 32, spans.AttrTokens: 32 * 2048, spans.AttrTokenThroughput: 64 * 2048, spans.AttrFlopCount: none},
			"//",
		},
		"no model, but the log's FLOP/s": {
			perftest.Job, func(*Config) {},
			attrs{spans.AttrDeviceFlopThroughputReported: 400e12},
			map[string]float64{
				spans.AttrMFU: 400e12 / peakH100, spans.AttrFlopPeak: peakH100, spans.AttrFlopDisagreement: none, spans.AttrDeviceFlopThroughput: none,
				spans.AttrFlopThroughput: none,
			},
			"reported//",
		},
		"no model, but the log's FLOP/s of all devices": {
			perftest.Job, func(c *Config) { c.WorldSize = 4 },
			attrs{spans.AttrFlopThroughputReported: 1600e12},
			map[string]float64{spans.AttrMFU: 400e12 / peakH100},
			"reported//",
		},
	})
}

func TestMeasuresOfThePeak(t *testing.T) {
	checkMeasures(t, map[string]measureTest{
		"a peak of one's own": {
			knownJob(), func(c *Config) { c.PeakFlops = 1e15 }, nil,
			map[string]float64{spans.AttrMFU: perftest.AquilaMegatron / 4 / 1e15, spans.AttrFlopPeak: 1e15},
			"megatron/causal/",
		},
		"no model, nothing reported": {
			perftest.Job, func(*Config) {}, nil,
			map[string]float64{spans.AttrFlopCount: none, spans.AttrMFU: none, spans.AttrSamples: none},
			"//",
		},
		"disagreement": {
			knownJob(), func(*Config) {},
			attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 4 * 0.97},
			map[string]float64{spans.AttrFlopDisagreement: 0.03},
			"megatron/causal/",
		},
	})
}

// TestMegatronLine: a real line of a Megatron-LM log says 19.1388 s, 128 samples; the model's own numbers, independent of flops.
func TestMegatronLineByHand(t *testing.T) {
	m := spans.Model{NumLayers: 2, HiddenSize: 64, AttentionHeads: 4, SeqLength: 128, PaddedVocabSize: 1000, FFNHiddenSize: 256}
	p, _ := newTest(t, withModel(m), func(c *Config) { c.PeakFlops, c.WorldSize = 1e12, 2 })
	s := oneStep(t, p, perftest.Job, 2, attrs{spans.AttrBatchSize: int64(10)})
	// 6·T·(L·(2·h·f + 4·h²) + h·V) + 6·B·s²·L·h
	want := 6.*1280*(2*(2*64*256+4*64*64)+64*1000) + 6.*10*128*128*2*64
	perftest.Numbers(t, s, map[string]float64{spans.AttrFlopCount: want, spans.AttrDeviceFlopThroughput: want / 4, spans.AttrMFU: want / 4e12})
}

func TestWorldSize(t *testing.T) {
	known := perftest.Job
	model := perftest.Aquila
	model.WorldSize = 0
	known.Model = &model
	per := func(tflops float64) any { return tflops * 1e12 }
	for name, tt := range map[string]struct {
		config func(*Config)
		attrs  attrs
		want   float64 // 0: not known
	}{
		"config first":    {func(c *Config) { c.WorldSize = 3 }, attrs{spans.AttrWorldSize: int64(4)}, 3},
		"the log's":       {func(*Config) {}, attrs{spans.AttrWorldSize: int64(4)}, 4},
		"from the FLOP/s": {func(*Config) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(74.83), spans.AttrFlopThroughputReported: per(598.66)}, 8},
		"1 device":        {func(*Config) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(74.83), spans.AttrFlopThroughputReported: per(74.83)}, 1},
		"2048 devices": {
			func(*Config) {},
			attrs{spans.AttrDeviceFlopThroughputReported: per(400.12), spans.AttrFlopThroughputReported: per(819445.73)},
			2048,
		},
		"no whole number":  {func(*Config) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(74.83), spans.AttrFlopThroughputReported: per(560.1)}, 0},
		"too small to say": {func(*Config) {}, attrs{spans.AttrDeviceFlopThroughputReported: per(0.01), spans.AttrFlopThroughputReported: per(0.08)}, 0},
		"zero":             {func(*Config) {}, attrs{spans.AttrDeviceFlopThroughputReported: 0., spans.AttrFlopThroughputReported: 0.}, 0},
		"nothing":          {func(*Config) {}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newTest(t, onH100, tt.config)
			s := oneStep(t, p, known, 0.5, tt.attrs)
			perftest.Numbers(t, s, map[string]float64{spans.AttrFlopThroughput: perftest.AquilaMegatron / 0.5})
			if tt.want == 0 {
				assert.False(t, perftest.Has(s, spans.AttrDeviceFlopThroughput))
				assert.False(t, perftest.Has(s, spans.AttrMFU))
				return
			}
			perftest.Numbers(t, s, map[string]float64{spans.AttrDeviceFlopThroughput: perftest.AquilaMegatron / 0.5 / tt.want})
		})
	}
}

func TestDevice(t *testing.T) {
	known := perftest.Job
	known.Model = &perftest.Aquila
	p, logs := newTest(t)
	for range 3 {
		s := oneStep(t, p, known, 0.5, attrs{spans.AttrDeviceModel: "Abacus 9000"})
		assert.False(t, perftest.Has(s, spans.AttrMFU), "no guess")
		assert.True(t, perftest.Has(s, spans.AttrDeviceFlopThroughput))
		oneStep(t, p, known, 0.5, nil)
	}
	require.Equal(t, 1, logs.Len(), "one warning per name; a device that nobody names is none")
	assert.Equal(t, "Abacus 9000", logs.All()[0].ContextMap()["device"])
	perftest.Numbers(t, oneStep(t, p, known, 0.5, attrs{spans.AttrDeviceModel: "NVIDIA A100-SXM4-80GB"}),
		map[string]float64{spans.AttrMFU: perftest.AquilaMegatron / 4 / 312e12})
	// The device is on the resource, where an NVML receiver or resource detection would put it.
	b := spans.NewBatch("test", "")
	s := perftest.AddStep(b, known, 8, 0.5, nil)
	td := b.Traces()
	td.ResourceSpans().At(0).Resource().Attributes().PutStr(spans.AttrDeviceModel, "NVIDIA H100 PCIe")
	perftest.Judge(p, td)
	perftest.Numbers(t, s, map[string]float64{spans.AttrMFU: perftest.AquilaMegatron / 4 / 756e12})
}

func TestIncompleteModelWarnsOnce(t *testing.T) {
	half := perftest.Job
	half.Model = &spans.Model{NumLayers: 4, HiddenSize: 64, AttentionHeads: 4, SeqLength: 128}
	p, logs := newTest(t, onH100)
	for range 3 {
		s := oneStep(t, p, half, 0.5, attrs{spans.AttrBatchSize: int64(4)})
		assert.False(t, perftest.Has(s, spans.AttrFlopCount))
		perftest.Numbers(t, s, map[string]float64{spans.AttrSamples: 4})
	}
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "padded_vocab_size", logs.All()[0].ContextMap()["key"])
}

func TestHFConfig(t *testing.T) {
	file := filepath.Join("testdata", "hf_config.json")
	p, _ := newTest(t, onH100, func(c *Config) {
		c.Model.HFConfig = file
		c.Model.SeqLength, c.Model.GlobalBatchSize, c.Model.WorldSize = 8192, 1, 8
	})
	s := oneStep(t, p, perftest.Job, 0.5, nil)
	perftest.Numbers(t, s, map[string]float64{spans.AttrFlopCount: 421645529382912}) // LLaMA 3 8B, of flops_golden.json

	for name, tt := range map[string]struct {
		change func(*Config)
		text   string
	}{
		"no such file":  {func(c *Config) { c.Model.HFConfig = filepath.Join("testdata", "none.json") }, "none.json"},
		"not JSON":      {func(c *Config) { c.Model.HFConfig = filepath.Join("..", "..", "testdata", "config.yaml") }, "config.yaml: is not a JSON object"},
		"no seq_length": {func(c *Config) { c.Model.HFConfig = file }, "'train::model::seq_length' is missing"},
		"key":           {func(c *Config) { c.Model.HFConfig = writeFile(t, `{"model_type": "llama"}`) }, "'num_hidden_layers' or 'n_layer' is missing"},
		"not counted": {func(c *Config) {
			c.Model.HFConfig, c.Model.SeqLength, c.Model.AttentionVariant = file, 8192, "kda"
		}, "(experimental_attention_variant kda)"},
		"a directory": {func(c *Config) { c.Model.HFConfig = "testdata" }, "testdata"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			err := New(cfg, zap.NewNop(), devices.New()).Start()
			require.ErrorIs(t, err, errHFConfig)
			require.ErrorContains(t, err, "'train::model::hf_config'")
			require.ErrorContains(t, err, tt.text)
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
	m := perftest.Aquila
	m.Type, m.SwiGLU = "llama", false
	gated := m
	gated.SwiGLU = true
	p, _ := newTest(t, withModel(m))
	q, _ := newTest(t, withModel(gated))
	assert.InDelta(t, perftest.Double(t, oneStep(t, q, perftest.Job, 1, nil), spans.AttrFlopCount),
		perftest.Double(t, oneStep(t, p, perftest.Job, 1, nil), spans.AttrFlopCount), 0)
}

// TestModelsThatCannotBeCounted: for a model without a formula, the log's numbers stay, marked as such, and no verdict blames them.
func TestModelsThatCannotBeCounted(t *testing.T) {
	m := perftest.Aquila
	m.HybridPattern = "MD"
	known := perftest.Job
	known.Model = &m
	p, logs := newTest(t, onH100)
	for range 2 {
		s := oneStep(t, p, known, 0.5, attrs{spans.AttrDeviceFlopThroughputReported: 400e12, spans.AttrBatchSize: int64(32)})
		assert.Equal(t, "hybrid_layer_pattern MD", perftest.Text(s, spans.AttrFlopUnsupported))
		assert.Equal(t, "reported", perftest.Text(s, spans.AttrFlopFormula))
		nan := math.NaN()
		perftest.Numbers(t, s, map[string]float64{
			spans.AttrMFU: 400. / 989, spans.AttrSamples: 32, spans.AttrDeviceFlopThroughputReported: 400e12,
			spans.AttrFlopCount: nan, spans.AttrFlopThroughput: nan, spans.AttrDeviceFlopThroughput: nan, spans.AttrHFU: nan, spans.AttrFlopDisagreement: nan,
		})
		assert.Empty(t, perftest.Verdicts(s))
	}
	assert.Equal(t, 1, logs.FilterMessageSnippet("leaves out").Len())
	// Without a report only the reason is written, and a second pass changes nothing.
	b := spans.NewBatch("test", "")
	s := perftest.AddStep(b, known, 7, 0.5, attrs{spans.AttrSource: "perf_monitor", spans.AttrFlopCountReported: 1e12})
	perftest.Judge(p, b.Traces())
	assert.Equal(t, "hybrid_layer_pattern MD", perftest.Text(s, spans.AttrFlopUnsupported))
	assert.Empty(t, perftest.Text(s, spans.AttrFlopFormula))
	assert.Empty(t, perftest.Verdicts(s))
	n := s.Attributes().Len()
	perftest.Judge(p, b.Traces())
	assert.Equal(t, n, s.Attributes().Len())
}

// TestOddSteps: values of the wrong type or out of range are skipped.
func TestOddSteps(t *testing.T) {
	p, _ := newTest(t, onH100, withModel(perftest.Aquila))
	for name, a := range map[string]attrs{
		"no duration":      {spans.AttrStepDuration: nil, spans.AttrTimePoint: true},
		"zero duration":    {spans.AttrStepDuration: 0.},
		"negative":         {spans.AttrStepDuration: -1.},
		"NaN duration":     {spans.AttrStepDuration: math.NaN()},
		"text duration":    {spans.AttrStepDuration: "fast"},
		"infinite":         {spans.AttrStepDuration: math.Inf(1)},
		"negative batch":   {spans.AttrBatchSize: int64(-5), spans.AttrStepDuration: nil, spans.AttrTimePoint: true},
		"infinite batch":   {spans.AttrBatchSize: math.Inf(1), spans.AttrStepDuration: nil, spans.AttrTimePoint: true},
		"denormal seconds": {spans.AttrStepDuration: 5e-324},
	} {
		t.Run(name, func(t *testing.T) {
			s := oneStep(t, p, perftest.Job, 0.5, a)
			perftest.Numbers(t, s, map[string]float64{
				spans.AttrFlopCount: perftest.AquilaMegatron, spans.AttrFlopThroughput: math.NaN(),
				spans.AttrMFU: math.NaN(),
			})
			for name, v := range s.Attributes().All() {
				if v.Type() == pcommon.ValueTypeDouble && name != spans.AttrStepDuration && name != spans.AttrBatchSize {
					assert.False(t, math.IsInf(v.Double(), 0) || math.IsNaN(v.Double()), name)
				}
			}
		})
	}
	b := spans.NewBatch("test", "")
	s := perftest.AddStep(b, perftest.Job, 3, 0.5, nil)
	s.SetName("train.evaluation")
	s.Attributes().Remove(spans.AttrKind)
	n := s.Attributes().Len()
	perftest.Judge(p, b.Traces())
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
			perftest.AddStep(b, perftest.Job, i, seconds, attrs{spans.AttrLoss: 2.5, spans.AttrBatchSize: int64(32)})
		}
		return b.Traces()
	}
	p, _ := newTest(t, onH100, withModel(perftest.Aquila))
	first := build()
	perftest.Judge(p, first)
	assert.Contains(t, perftest.Verdicts(perftest.SpanByID(t, first, 1_000_140)), spans.VerdictThroughputLow)
	once := ptrace.NewTraces()
	first.CopyTo(once)
	lengths := func() (n int64) {
		for _, k := range p.series.byKey.Keys() {
			s, _ := p.series.byKey.Peek(k)
			n += s.seen
		}
		return n
	}
	before := lengths()
	perftest.Judge(p, first)
	require.NoError(t, ptracetest.CompareTraces(once, first), "the second pass changed something")
	assert.Equal(t, before, lengths())
	// A fresh copy of the latter part, as a fan-out repeats a batch.
	again := build()
	again.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func(s ptrace.Span) bool {
		v,
			_ := s.Attributes().Get(spans.AttrIteration)
		return v.Int() <= 60
	})
	perftest.Judge(p, again)
	assert.Equal(t, before, lengths(), "a span was fed twice")
}

// FuzzStep: whatever a step holds, nothing panics, and processing twice is processing once.
func FuzzStep(f *testing.F) {
	f.Add(0.5, 32.0, 100.0, 1e15, 2.5, int64(7), int64(8), int64(4096), int64(32), "perf_monitor")
	f.Add(math.Inf(1), math.NaN(), -1.0, 5e-324, math.MaxFloat64, int64(math.MinInt64), int64(math.MaxInt64), int64(1), int64(0), "megatron")
	p, _ := newTest(f, onH100)
	f.Fuzz(func(t *testing.T, seconds, batch, rate, reported, loss float64, iteration, world, hidden, layers int64, source string) {
		res := perftest.Job
		res.Model = &spans.Model{
			NumLayers: layers, HiddenSize: hidden, AttentionHeads: 8, SeqLength: 128, VocabSize: 100, WorldSize: world,
			NumExperts: layers % 9,
		}
		b := spans.NewBatch("test", "")
		s := perftest.AddStep(b, res, 1, 1, attrs{
			spans.AttrIteration: iteration, spans.AttrStepDuration: seconds, spans.AttrBatchSize: batch, spans.AttrSampleThroughput: rate,
			spans.AttrDeviceFlopThroughputReported: reported,
			spans.AttrFlopThroughputReported:       reported * 8, spans.AttrLoss: loss, spans.AttrSource: source, spans.AttrStepsCovered: world,
		})
		perftest.Judge(p, b.Traces())
		for _, name := range []string{
			spans.AttrFlopCount, spans.AttrFlopThroughput, spans.AttrDeviceFlopThroughput, spans.AttrMFU,
			spans.AttrFlopDisagreement,
		} {
			if v, ok := s.Attributes().Get(name); ok && (math.IsNaN(v.Double()) || math.IsInf(v.Double(), 0) || v.Double() < 0) {
				t.Fatalf("%s is %v", name, v.Double())
			}
		}
		once := ptrace.NewTraces()
		b.Traces().CopyTo(once)
		perftest.Judge(p, b.Traces())
		one, err := new(ptrace.ProtoMarshaler).MarshalTraces(once)
		require.NoError(t, err)
		two, err := new(ptrace.ProtoMarshaler).MarshalTraces(b.Traces())
		require.NoError(t, err)
		assert.Equal(t, one, two)
	})
}

// TestStepsOfServices: an SDK's user may set a whole number where a share is expected, and a double where a count is.
func TestStepsOfServices(t *testing.T) {
	const seconds, batch = 2, 32
	want := map[string]float64{
		spans.AttrFlopCount: perftest.AquilaMegatron, spans.AttrDeviceFlopThroughput: perftest.AquilaMegatron / seconds / 8, spans.AttrSamples: 10 * batch,
		spans.AttrTokens: 10 * batch * 2048,
	}
	whole := attrs{
		spans.AttrSource: "go", spans.AttrStepDuration: int64(seconds), spans.AttrBatchSize: int64(batch), spans.AttrLoss: int64(3), spans.AttrRank: int64(3),
		spans.AttrWorldSize: int64(8),
		spans.AttrIteration: int64(7), spans.AttrStepsCovered: int64(10), spans.AttrStepDurationKind: nil,
	}
	double := attrs{
		spans.AttrSource: "go", spans.AttrStepDuration: float64(seconds), spans.AttrBatchSize: float64(batch), spans.AttrLoss: 3.0, spans.AttrRank: 3.0,
		spans.AttrWorldSize: 8.0,
		spans.AttrIteration: 7.0, spans.AttrStepsCovered: 10.0, spans.AttrStepDurationKind: nil,
	}
	m := perftest.Aquila
	m.GlobalBatchSize, m.WorldSize = 0, 0
	for name, a := range map[string]attrs{"whole": whole, "double": double} {
		p, _ := newTest(t, onH100, withModel(m))
		perftest.Numbers(t, oneStep(t, p, perftest.Job, seconds, a), want)
		require.Equal(t, 2, p.series.byKey.Len(), name) // of samples/s and of the loss
		for _, k := range p.series.byKey.Keys() {
			assert.Equal(t, int64(3), k.rank, name)
		}
	}
	// A value that is no number, or an impossible number, is ignored.
	for _, odd := range []any{"7", true, []any{int64(1)}, map[string]any{"a": 1.5}, 1.5, 1e300, -1e300} {
		a := attrs{}
		for name := range whole {
			a[name] = odd
		}
		p, _ := newTest(t, onH100, withModel(m))
		s := oneStep(t, p, perftest.Job, seconds, a)
		for _, name := range []string{spans.AttrSamples, spans.AttrFlopCount} {
			if v, ok := s.Attributes().Get(name); ok {
				assert.GreaterOrEqual(t, spans.ValueNumber(v), 0.0, fmt.Sprint(odd))
			}
		}
		assert.NotContains(t, perftest.Verdicts(s), spans.VerdictSlowdown)
	}
}

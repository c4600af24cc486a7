package steps

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

// mixtral and its FLOPs for 16 samples, of flops_golden.json.
var mixtral = spans.Model{
	Type: "mixtral", SwiGLU: true, NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, KVChannels: 128, FFNHiddenSize: 14336,
	PaddedVocabSize: 32000, SeqLength: 4096,
	NumExperts: 8, RouterTopK: 2, GlobalBatchSize: 16, WorldSize: 8,
}

const (
	mixtralMerged  = 5752000591429632.0
	mixtralDense   = 3534882638659584.0
	mixtralDouzi   = 4274076575072256.0
	mixtralSeconds = 3.4567
)

// The verdicts' causes, as perftest.Verdicts prints them.
const (
	wrong          = spans.VerdictFlopsWrong
	saidDP         = wrong + " (" + spans.CauseDPOmitted + ")"
	saidGQA        = wrong + " (" + spans.CauseGQAAsMHA + ")"
	saidMoE        = wrong + " (" + spans.CauseMoEAsDense + ")"
	saidSwiGLU     = wrong + " (" + spans.CauseSwiGLUOmitted + ")"
	saidFlops      = wrong + " (" + spans.CauseFlopsDisagree + ")"
	saidThroughput = wrong + " (" + spans.CauseThroughputDisagrees + ")"
	saidImpossible = wrong + " (" + spans.CauseMFUImpossible + ")"
)

// printed rounds as perf_monitor prints.
func printed(x float64, decimals int) float64 {
	x, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64)
	if err != nil {
		panic(err)
	}
	return x
}

// perfMonitorRow is a row of perf_monitor about a step of 8 devices, with its time, FLOPs and samples.
func perfMonitorRow(seconds, flop, samples, seq float64) attrs {
	const world = 8
	return attrs{
		spans.AttrSource: "perf_monitor", spans.AttrStepDurationKind: spans.DurationMedian, spans.AttrStepDuration: printed(seconds*1000, 1) / 1000,
		spans.AttrFlopThroughputReported: printed(flop/seconds/1e12, 2) * 1e12, spans.AttrDeviceFlopThroughputReported: printed(flop/seconds/1e12/world,
			2) * 1e12,
		spans.AttrSampleThroughput: printed(samples/seconds, 1), spans.AttrTokenThroughput: printed(samples*seq/seconds, 0),
	}
}

func TestFlagScaleErrors(t *testing.T) {
	withDP := func(m spans.Model, dp int64) spans.Model { m.DataParallelSize = dp; return m }
	ours := []string{
		saidDP, saidMoE, saidSwiGLU, saidFlops,
		saidThroughput,
	}
	for name, tt := range map[string]struct {
		model         spans.Model
		flop, samples float64
		want          []string
	}{
		"right":                                {perftest.Aquila, perftest.AquilaFlagScale, 32, nil},
		"right, said so":                       {withDP(perftest.Aquila, 1), perftest.AquilaFlagScale, 32, nil},
		"data parallel 2":                      {perftest.Aquila, perftest.AquilaFlagScale / 2, 16, ours[:1]},
		"data parallel 8":                      {perftest.Aquila, perftest.AquilaFlagScale / 8, 4, ours[:1]},
		"data parallel 4, by the model":        {withDP(perftest.Aquila, 4), perftest.AquilaFlagScale / 4, 8, ours[:1]},
		"another share than the model's":       {withDP(perftest.Aquila, 2), perftest.AquilaFlagScale / 4, 8, []string{ours[3]}},
		"no divisor":                           {perftest.Aquila, perftest.AquilaFlagScale / 3, 32. / 3, []string{ours[3]}},
		"mixtral, right":                       {mixtral, mixtralMerged, 16, nil},
		"mixtral, data parallel":               {mixtral, mixtralMerged / 4, 4, ours[:1]},
		"mixtral as dense":                     {mixtral, mixtralDense, 16, ours[1:2]},
		"mixtral as dense, data parallel":      {mixtral, mixtralDense / 2, 8, []string{ours[1], ours[0]}},
		"mixtral without SwiGLU":               {mixtral, mixtralDouzi, 16, ours[2:3]},
		"mixtral without SwiGLU, and parallel": {mixtral, mixtralDouzi / 8, 2, []string{ours[2], ours[0]}},
		"another model":                        {perftest.Aquila, perftest.AquilaFlagScale * 1.2, 32, []string{ours[3]}},
		"a little off":                         {perftest.Aquila, perftest.AquilaFlagScale * 1.03, 32, nil},
		// the model is described wrongly: the log was blamed
		"half, but all samples":    {perftest.Aquila, perftest.AquilaFlagScale / 2, 32, []string{ours[3]}},
		"only the samples":         {perftest.Aquila, perftest.AquilaFlagScale, 16, ours[:1]},
		"samples of nothing known": {perftest.Aquila, perftest.AquilaFlagScale, 21, ours[4:]},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 20 { // at many speeds, for the rounding of the print
				p, _ := newTest(t, onH100, withModel(tt.model), func(c *Config) { c.MFULow = 0 })
				seconds := mixtralSeconds * math.Pow(1.37, float64(i)/4)
				row := perfMonitorRow(seconds, tt.flop, tt.samples, float64(tt.model.SeqLength))
				s := oneStep(t, p, perftest.Job, seconds, row)
				require.Equal(t, tt.want, perftest.Verdicts(s), "%v s", seconds)
				for j, v := range tt.want {
					e := s.Events().At(j).Attributes()
					assert.Equal(t, v, fmt.Sprintf("%s (%s)", spans.AttrText(e, spans.AttrVerdictName), spans.AttrText(e, spans.AttrVerdictCause)))
					assert.NotContains(t, spans.AttrText(e, spans.AttrVerdictReason), "NaN")
				}
			}
		})
	}
}

func TestFlagScaleReasons(t *testing.T) {
	p, _ := newTest(t, onH100, withModel(mixtral), func(c *Config) { c.MFULow = 0 })
	s := oneStep(t, p, perftest.Job, 4, perfMonitorRow(4, mixtralDense/2, 8, 4096))
	assert.Equal(t, []string{
		"perf_monitor counted the mixture of experts as a dense model (--perf-model-type mixtral does so; moe does not): " +
			"1,767 TFLOP per step, 61.5% of what its formula makes of the model. Use the recomputed FLOP/s.",
		"perf_monitor left out the data-parallel size of 2 (8 of 16 samples per step): its samples/s, tokens/s and TFLOPS " +
			"are too low by that factor. Use the recomputed FLOP/s.",
	}, perftest.Reasons(s))
}

// TestFlopBreakdown: the count of a printed breakdown is evidence without a time.
func TestFlopBreakdown(t *testing.T) {
	p, _ := newTest(t, onH100, withModel(perftest.Aquila), func(c *Config) { c.MFULow = 0 })
	row := attrs{spans.AttrSource: "perf_monitor", spans.AttrFlopCountReported: 1459.36e12, spans.AttrStepDuration: nil}
	assert.Equal(t, []string{saidDP}, perftest.Verdicts(oneStep(t, p, perftest.Job, 1, row)))
	row[spans.AttrFlopCountReported] = 2918.72e12
	assert.Empty(t, perftest.Verdicts(oneStep(t, p, perftest.Job, 1, row)))
}

// TestSharedPerfMonitorLogs: the numbers of the real writers for Aquila-7B, 32 samples on 8 devices, are explained without an error, except the samples per
// second.
func TestSharedPerfMonitorLogs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "logs", "flagscale_perf_monitor", "*", "perf_summary_*.json"))
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var doc struct {
			Rows []map[string]any `json:"iteration_logs"`
		}
		require.NoError(t, json.Unmarshal(raw, &doc))
		require.NotEmpty(t, doc.Rows)
		for _, row := range doc.Rows {
			p, _ := newTest(t, onH100, withModel(perftest.Aquila), func(c *Config) { c.MFULow, c.WorldSize = 0, 0; c.Model.WorldSize = 0 })
			f := func(name string) float64 { return row[name].(float64) }
			s := oneStep(t, p, perftest.Job, 1, attrs{
				spans.AttrSource: "perf_monitor", spans.AttrStepDuration: f("step_time_ms") / 1000, spans.AttrFlopThroughputReported: f("TFLOPS_total") * 1e12,
				spans.AttrDeviceFlopThroughputReported: f("TFLOPS_per_GPU") * 1e12, spans.AttrSampleThroughput: f("samples_per_sec"),
			})
			assert.Empty(t, perftest.Verdicts(s), file)
			// The recomputed figure by FlagScale's own count is the log's, in any formula.
			assert.InEpsilon(t, f("TFLOPS_per_GPU")*1e12, perftest.Double(t, s,
				spans.AttrDeviceFlopThroughput)*perftest.AquilaFlagScale/perftest.AquilaMegatron, 1e-6, fmt.Sprint(row))
		}
	}
}

func TestReportsOfOtherLogs(t *testing.T) {
	full := perftest.AquilaMegatron + 3*2.*32*2048*2048*4096*32
	for name, tt := range map[string]struct {
		attrs attrs
		want  []string
	}{
		"agrees":     {attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 4}, nil},
		"within 5 %": {attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 4 * 0.951}, nil},
		"beyond":     {attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 4 * 0.9}, []string{saidFlops}},
		// sequences packed behind masks
		"no attention at all":      {attrs{spans.AttrDeviceFlopThroughputReported: (2*perftest.AquilaMegatron - full) / 4}, nil},
		"the other convention":     {attrs{spans.AttrDeviceFlopThroughputReported: full / 4}, nil},
		"of all devices":           {attrs{spans.AttrFlopThroughputReported: perftest.AquilaMegatron * 2 * 0.5}, []string{saidFlops}},
		"samples":                  {attrs{spans.AttrSampleThroughput: 64., spans.AttrBatchSize: int64(32)}, nil},
		"samples beyond":           {attrs{spans.AttrSampleThroughput: 32., spans.AttrBatchSize: int64(32)}, []string{saidThroughput}},
		"samples, no logged batch": {attrs{spans.AttrSampleThroughput: 32.}, nil},
		"samples of an interval": {attrs{
			spans.AttrSampleThroughput: 32., spans.AttrBatchSize: int64(32),
			spans.AttrStepDurationKind: spans.DurationInterval,
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newTest(t, onH100, withModel(perftest.Aquila), func(c *Config) { c.MFULow = 0 })
			assert.Equal(t, tt.want, perftest.Verdicts(oneStep(t, p, perftest.Job, 0.5, tt.attrs)))
		})
	}
	p, _ := newTest(t, onH100, withModel(perftest.Aquila), func(c *Config) { c.MFULow = 0 })
	assert.Equal(t, []string{
		"The log has 300 TFLOP/s per device, the model makes 703: 57.3% off. No known cause fits. Compare the configured " +
			"model, seq_length, batch of 32 and number of devices with the job's.",
	}, perftest.Reasons(oneStep(t, p, perftest.Job, 0.5, attrs{spans.AttrDeviceFlopThroughputReported: 300e12})))
}

// llama3 and the douzi branch's count for 16 samples without a model_name: testdata/golden.json of internal/flops.
var llama3 = spans.Model{
	Type: "llama", SwiGLU: true, NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, KVChannels: 128, FFNHiddenSize: 14336,
	PaddedVocabSize: 128256, VocabSize: 128256, SeqLength: 8192,
	GlobalBatchSize: 16, WorldSize: 8,
}

const (
	llama3Douzi   = 7590933788884992.0
	llama3Unnamed = 8224252486483968.0
)

// TestGPTFormulaForGroupedQueries: no train_flops_disagree, "Check the description of the model", for a correct description.
func TestGPTFormulaForGroupedQueries(t *testing.T) {
	untyped := llama3
	untyped.Type = "" // as in Megatron's dump
	ours := []string{saidGQA, saidDP}
	for name, tt := range map[string]struct {
		model         spans.Model
		flop, samples float64
		want          []string
	}{
		"its own formula":                     {llama3, llama3Douzi, 16, nil},
		"untyped, its own formula":            {untyped, llama3Douzi, 16, nil},
		"without name":                        {llama3, llama3Unnamed, 16, ours[:1]},
		"untyped, without name":               {untyped, llama3Unnamed, 16, ours[:1]},
		"without name, data parallel":         {llama3, llama3Unnamed / 8, 2, ours},
		"untyped, without name, parallel":     {untyped, llama3Unnamed / 4, 4, ours},
		"another model, but the samples tell": {llama3, llama3Unnamed * 1.3 / 8, 2, []string{saidFlops, saidDP}},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 20 {
				p, _ := newTest(t, onH100, withModel(tt.model), func(c *Config) { c.MFULow = 0 })
				seconds := 11.11 * math.Pow(1.37, float64(i)/8)
				row := perfMonitorRow(seconds, tt.flop, tt.samples, 8192) // 0.2 samples/s: tokens/s are more precise
				require.Equal(t, tt.want, perftest.Verdicts(oneStep(t, p, perftest.Job, seconds, row)), "%v s", seconds)
			}
		})
	}
	p, _ := newTest(t, onH100, withModel(llama3), func(c *Config) { c.MFULow = 0 })
	assert.Equal(t, []string{
		"perf_monitor counted grouped queries as full multi-head attention, by its formula of a GPT (Megatron has no " +
			"model_name; the merged version has --perf-model-type gpt): 4,112 TFLOP per step, 108.3% of what its formula " +
			"makes of the model. Use the recomputed FLOP/s.",
		"perf_monitor left out the data-parallel size of 2 (8 of 16 samples per step): its samples/s, tokens/s and TFLOPS " +
			"are too low by that factor. Use the recomputed FLOP/s.",
	}, perftest.Reasons(oneStep(t, p, perftest.Job, 4, perfMonitorRow(4, llama3Unnamed/2, 8, 8192))))
}

// TestDataParallelSizeByItsSamples needs no model, and no world size: samples/s × time is 4 of the batch of 32.
func TestDataParallelSizeByItsSamples(t *testing.T) {
	for name, m := range map[string]spans.Model{"a batch only": {GlobalBatchSize: 32}, "and devices": {GlobalBatchSize: 32, WorldSize: 8}} {
		p, _ := newTest(t, onH100, withModel(m))
		row := attrs{spans.AttrSource: "perf_monitor", spans.AttrSampleThroughput: 1.6, spans.AttrStepDuration: 2.5}
		assert.Equal(t, []string{saidDP}, perftest.Verdicts(oneStep(t, p, perftest.Job, 2.5, row)), name)
		row[spans.AttrSampleThroughput] = 12.8
		assert.Empty(t, perftest.Verdicts(oneStep(t, p, perftest.Job, 2.5, row)), name)
	}
	p, _ := newTest(t, onH100, withModel(spans.Model{GlobalBatchSize: 32}))
	assert.Equal(t, []string{saidThroughput}, perftest.Verdicts(oneStep(t, p, perftest.Job, 2.5,
		attrs{spans.AttrSource: "perf_monitor", spans.AttrSampleThroughput: 9., spans.AttrStepDuration: 2.5})))
}

// TestFormulaOfDouzi reproduces the numbers of the branch, which never passes SwiGLU to a mixture of experts.
func TestFormulaOfDouzi(t *testing.T) {
	for name, tt := range map[string]struct {
		model spans.Model
		want  float64
	}{"mixtral": {mixtral, mixtralDouzi}, "llama": {llama3, llama3Douzi}, "llama without type": {
		func() spans.Model { m := llama3; m.Type = ""; return m }(),
		llama3Unnamed,
	}} {
		p, _ := newTest(t, onH100, withModel(tt.model), func(c *Config) { c.Formula, c.MFULow = formulaDouzi, 0 })
		s := oneStep(t, p, perftest.Job, 100, nil)
		perftest.Numbers(t, s, map[string]float64{spans.AttrFlopCount: tt.want})
		assert.Equal(t, "flagscale_douzi", perftest.Text(s, spans.AttrFlopFormula), name)
		assert.Equal(t, "full", perftest.Text(s, spans.AttrFlopConvention), name)
	}
}

// TestWhatFits: the verdict names a cause that fits the numbers.
func TestWhatFits(t *testing.T) {
	parallel := perftest.Aquila
	parallel.DataParallelSize = 2
	for want, tt := range map[string]struct {
		model spans.Model
		attrs attrs
	}{
		"It fits if the log counts recomputed activations too": {
			perftest.Aquila,
			attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 4 * 1.3},
		},
		"It fits if the log counts the embedding too": {
			perftest.Aquila,
			attrs{spans.AttrDeviceFlopThroughputReported: (perftest.AquilaMegatron + 6.*32*2048*2048*4096*32 + 6.*32*2048*4096*100008) / 4},
		},
		"It fits if the log counts the forward pass only": {
			perftest.Aquila,
			attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 12},
		},
		"It fits if the units differ": {
			perftest.Aquila,
			attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 4000},
		},
		"It fits if the log leaves out the data-parallel size": {
			parallel,
			attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 8},
		},
		"It fits if the log is of a single device": {
			perftest.Aquila,
			attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 32},
		},
		"It fits if the batch is another": {
			perftest.Aquila,
			attrs{spans.AttrDeviceFlopThroughputReported: perftest.AquilaMegatron / 4 * 0.7, spans.AttrSampleThroughput: 64 * 0.7},
		},
		"It fits if samples/s are of one device": {
			perftest.Aquila,
			attrs{spans.AttrSampleThroughput: 8., spans.AttrBatchSize: int64(32)},
		},
		"It fits if the time is of all steps of the record": {
			perftest.Aquila,
			attrs{spans.AttrSampleThroughput: 640., spans.AttrBatchSize: int64(32), spans.AttrStepsCovered: int64(10)},
		},
		"The batch, the time or the rate is of something else (padded, of one dev": {
			perftest.Aquila,
			attrs{spans.AttrSampleThroughput: 40., spans.AttrBatchSize: int64(32)},
		},
	} {
		p, _ := newTest(t, onH100, withModel(tt.model), func(c *Config) { c.MFULow = 0 })
		got := perftest.Reasons(oneStep(t, p, perftest.Job, 0.5, tt.attrs))
		if assert.Len(t, got, 1, want) {
			assert.Contains(t, got[0], want)
		}
	}
}

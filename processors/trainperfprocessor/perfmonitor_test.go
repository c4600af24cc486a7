package trainperfprocessor

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

	"github.com/trainbridge/trainbridge/spans"
)

// mixtral and its FLOPs for 16 samples, of flops_golden.json.
var mixtral = spans.Model{
	Type: "mixtral", SwiGLU: true, NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 8, KVChannels: 128, FFNHiddenSize: 14336, PaddedVocabSize: 32000, SeqLength: 4096,
	NumExperts: 8, RouterTopK: 2, GlobalBatchSize: 16, WorldSize: 8,
}

const (
	mixtralMerged  = 5752000591429632.0
	mixtralDense   = 3534882638659584.0
	mixtralDouzi   = 4274076575072256.0
	mixtralSeconds = 3.4567
)

// printed rounds as perf_monitor prints.
func printed(x float64, decimals int) float64 {
	x, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64)
	if err != nil {
		panic(err)
	}
	return x
}

// perfMonitorRow is a row of perf_monitor about a step that took so long, of which it counted so many FLOPs and samples.
func perfMonitorRow(seconds, flop, samples, world, seq float64) attrs {
	return attrs{
		spans.AttrSource: "perf_monitor", spans.AttrStepDurationKind: spans.DurationMedian, spans.AttrStepDuration: printed(seconds*1000, 1) / 1000,
		spans.AttrFlopThroughputReported: printed(flop/seconds/1e12, 2) * 1e12, spans.AttrDeviceFlopThroughputReported: printed(flop/seconds/1e12/world, 2) * 1e12,
		spans.AttrSampleThroughput: printed(samples/seconds, 1), spans.AttrTokenThroughput: printed(samples*seq/seconds, 0),
	}
}

func TestFlagScaleErrors(t *testing.T) {
	withDP := func(m spans.Model, dp int64) spans.Model { m.DataParallelSize = dp; return m }
	ours := []string{spans.VerdictFlagScaleDP, spans.VerdictFlagScaleMoE, spans.VerdictFlagScaleSwiGLU, spans.VerdictFlopsDisagree, spans.VerdictThroughputReported}
	for name, tt := range map[string]struct {
		model         spans.Model
		flop, samples float64
		want          []string
	}{
		"right":                                {aquila, aquilaFlagScale, 32, nil},
		"right, said so":                       {withDP(aquila, 1), aquilaFlagScale, 32, nil},
		"data parallel 2":                      {aquila, aquilaFlagScale / 2, 16, ours[:1]},
		"data parallel 8":                      {aquila, aquilaFlagScale / 8, 4, ours[:1]},
		"data parallel 4, by the model":        {withDP(aquila, 4), aquilaFlagScale / 4, 8, ours[:1]},
		"another share than the model's":       {withDP(aquila, 2), aquilaFlagScale / 4, 8, []string{ours[3]}},
		"no divisor":                           {aquila, aquilaFlagScale / 3, 32. / 3, []string{ours[3]}},
		"mixtral, right":                       {mixtral, mixtralMerged, 16, nil},
		"mixtral, data parallel":               {mixtral, mixtralMerged / 4, 4, ours[:1]},
		"mixtral as dense":                     {mixtral, mixtralDense, 16, ours[1:2]},
		"mixtral as dense, data parallel":      {mixtral, mixtralDense / 2, 8, []string{ours[1], ours[0]}},
		"mixtral without SwiGLU":               {mixtral, mixtralDouzi, 16, ours[2:3]},
		"mixtral without SwiGLU, and parallel": {mixtral, mixtralDouzi / 8, 2, []string{ours[2], ours[0]}},
		"another model":                        {aquila, aquilaFlagScale * 1.2, 32, []string{ours[3]}},
		"a little off":                         {aquila, aquilaFlagScale * 1.03, 32, nil},
		"only the samples":                     {aquila, aquilaFlagScale, 16, ours[:1]},
		"samples of nothing known":             {aquila, aquilaFlagScale, 21, ours[4:]},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 20 { // at many speeds, for the rounding of the print
				p, _ := newTrainTest(t, onH100, withModel(tt.model), func(c *TrainConfig) { c.MFULow = 0 })
				seconds := mixtralSeconds * math.Pow(1.37, float64(i)/4)
				row := perfMonitorRow(seconds, tt.flop, tt.samples, 8, float64(tt.model.SeqLength))
				s := oneStep(t, p, job, seconds, row)
				require.Equal(t, tt.want, verdicts(s), "%v s", seconds)
				for j, v := range tt.want {
					e := s.Events().At(j).Attributes()
					assert.Equal(t, v, spans.AttrText(e, spans.AttrVerdictName))
					assert.NotContains(t, spans.AttrText(e, spans.AttrVerdictReason), "NaN")
				}
			}
		})
	}
}

func TestFlagScaleReasons(t *testing.T) {
	p, _ := newTrainTest(t, onH100, withModel(mixtral), func(c *TrainConfig) { c.MFULow = 0 })
	s := oneStep(t, p, job, 4, perfMonitorRow(4, mixtralDense/2, 8, 8, 4096))
	assert.Equal(t, []string{
		"perf_monitor counted the mixture of experts as a dense model (--perf-model-type mixtral does that; moe does not): it found 1767.44 TFLOP per step, " +
			"which is 61.5% of what its formula makes of the model. Use the recomputed FLOP/s.",
		"perf_monitor left out the data-parallel size of 2: it counted 8 of the 16 samples of a step, so that its samples/s, tokens/s and TFLOPS are that many times too low. Use the recomputed FLOP/s.",
	}, reasons(s))
}

// TestFlopBreakdown: the count that a breakdown printed is evidence without a time.
func TestFlopBreakdown(t *testing.T) {
	p, _ := newTrainTest(t, onH100, withModel(aquila), func(c *TrainConfig) { c.MFULow = 0 })
	row := attrs{spans.AttrSource: "perf_monitor", spans.AttrFlopCountReported: 1459.36e12, spans.AttrStepDuration: nil}
	assert.Equal(t, []string{spans.VerdictFlagScaleDP}, verdicts(oneStep(t, p, job, 1, row)))
	row[spans.AttrFlopCountReported] = 2918.72e12
	assert.Empty(t, verdicts(oneStep(t, p, job, 1, row)))
}

// TestSharedPerfMonitorLogs: what the real writers printed for Aquila-7B, 32 samples on 8 devices, is explained without an error but
// for its samples per second.
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
			p, _ := newTrainTest(t, onH100, withModel(aquila), func(c *TrainConfig) { c.MFULow, c.WorldSize = 0, 0; c.Model.WorldSize = 0 })
			f := func(name string) float64 { return row[name].(float64) }
			s := oneStep(t, p, job, 1, attrs{
				spans.AttrSource: "perf_monitor", spans.AttrStepDuration: f("step_time_ms") / 1000, spans.AttrFlopThroughputReported: f("TFLOPS_total") * 1e12,
				spans.AttrDeviceFlopThroughputReported: f("TFLOPS_per_GPU") * 1e12, spans.AttrSampleThroughput: f("samples_per_sec"),
			})
			assert.Empty(t, verdicts(s), file)
			// The recomputed figure by FlagScale's own count is the log's, whatever formula is in use.
			assert.InEpsilon(t, f("TFLOPS_per_GPU")*1e12, double(t, s, spans.AttrDeviceFlopThroughput)*aquilaFlagScale/aquilaMegatron, 1e-6, fmt.Sprint(row))
		}
	}
}

func TestReportsOfOtherLogs(t *testing.T) {
	full := aquilaMegatron + 3*2.*32*2048*2048*4096*32
	for name, tt := range map[string]struct {
		attrs attrs
		want  []string
	}{
		"agrees":                   {attrs{spans.AttrDeviceFlopThroughputReported: aquilaMegatron / 4}, nil},
		"within 5 %":               {attrs{spans.AttrDeviceFlopThroughputReported: aquilaMegatron / 4 * 0.951}, nil},
		"beyond":                   {attrs{spans.AttrDeviceFlopThroughputReported: aquilaMegatron / 4 * 0.9}, []string{spans.VerdictFlopsDisagree}},
		"the other convention":     {attrs{spans.AttrDeviceFlopThroughputReported: full / 4}, nil},
		"of all devices":           {attrs{spans.AttrFlopThroughputReported: aquilaMegatron * 2 * 0.5}, []string{spans.VerdictFlopsDisagree}},
		"samples":                  {attrs{spans.AttrSampleThroughput: 64., spans.AttrBatchSize: int64(32)}, nil},
		"samples beyond":           {attrs{spans.AttrSampleThroughput: 32., spans.AttrBatchSize: int64(32)}, []string{spans.VerdictThroughputReported}},
		"samples, no logged batch": {attrs{spans.AttrSampleThroughput: 32.}, nil},
		"samples of an interval":   {attrs{spans.AttrSampleThroughput: 32., spans.AttrBatchSize: int64(32), spans.AttrStepDurationKind: spans.DurationInterval}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newTrainTest(t, onH100, withModel(aquila), func(c *TrainConfig) { c.MFULow = 0 })
			assert.Equal(t, tt.want, verdicts(oneStep(t, p, job, 0.5, tt.attrs)))
		})
	}
	p, _ := newTrainTest(t, onH100, withModel(aquila), func(c *TrainConfig) { c.MFULow = 0 })
	assert.Equal(t, []string{
		"The log has 300 TFLOP/s per device where the model makes 703.274, which is 57.3% off, and no known error explains it. Check the description of the model and the batch size.",
	}, reasons(oneStep(t, p, job, 0.5, attrs{spans.AttrDeviceFlopThroughputReported: 300e12})))
}

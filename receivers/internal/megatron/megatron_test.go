package megatron

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// texts keeps records as text.
type texts struct {
	rec record.Record
	got []string
}

func (s *texts) Record() *record.Record { s.rec.Reset(); return &s.rec }

func (s *texts) Emit(rec *record.Record) {
	text := strings.TrimPrefix(recordtest.Show(rec), "step mean open dedup ")
	if rec.RawUnix != nil {
		text += " unix=" + string(rec.RawUnix) + "→" + time.Unix(0, rec.Unix).UTC().Format(time.RFC3339Nano)
	}
	s.got = append(s.got, text)
}

type lineTest struct {
	text    string
	result  Result
	reason  string
	records []string
	args    string
}

func check(t *testing.T, lines []lineTest) {
	t.Helper()
	var p Parser
	for _, l := range lines {
		var out texts
		result, reason := p.Line([]byte(l.text), &out)
		assert.Equal(t, l.result, result, l.text)
		assert.Equal(t, l.reason, reason, l.text)
		assert.Equal(t, l.records, out.got, l.text)
		if result == Arguments {
			var args []string
			for _, a := range p.Arguments() {
				args = append(args, string(a.Name)+"="+string(a.Value))
			}
			assert.Equal(t, l.args, strings.Join(args, " "), l.text)
		}
	}
}

func TestIteration(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"every field": {
			" [2026-03-01 10:00:04.120331] iteration        2/     100 | consumed samples:           64 | skipped samples:            3 | elapsed time per iteration (ms): 1510.4 | throughput per GPU (TFLOP/s/GPU): 54.1 |" +
				" energy per GPU (J/iter/GPU): 880.1 | power per GPU (W/GPU): 582.7 | learning rate: 1.000000E-04 | decoupled learning rate: 2.000000E-04 | global batch size:    32 | lm loss: 9.874163E+00 | load_balancing_loss: 1.021994E+00 |" +
				" seq_load_balancing_loss: 1.5E+00 | z_loss: 2.5E-03 | mtp_1 loss: 3.5E+00 | loss scale: 1.0 | grad norm: 4.066 | num zeros: 12 | params norm: 496.206 | number of skipped iterations:   1 | number of nan iterations:   2 |",
			`stamp="2026-03-01 10:00:04.120331" iteration=2 iterations=100 duration=1.5104(ms) loss=9.874163 lr=0.0001 grad_norm=4.066 grad_zeros=12 params_norm=496.206 loss_scale=1 batch=32 consumed_samples=64 skipped=1 nan_iterations=2` +
				` device_flop/s=5.41e+13(TFLOP/s) energy=880.1 power=582.7 extra:skipped_samples=3 extra:decoupled_learning_rate=0.0002 extra:load_balancing_loss=1.021994 extra:seq_load_balancing_loss=1.5 extra:z_loss=0.0025 extra:mtp_1_loss=3.5`,
		},
		"stamp of whole seconds": {
			" [2025-08-01 07:19:37] iteration        1/    5000 | elapsed time per iteration (ms): 19138.8 | lm loss: 1.043863E+01 |",
			`stamp="2025-08-01 07:19:37" iteration=1 iterations=5000 duration=19.1388(ms) loss=10.43863`,
		},
		"stamp peeled off": {"iteration        1/    5000 | lm loss: 1.0E+01 |", `iteration=1 iterations=5000 loss=10`},
		"a prefix nobody knows": {
			"node03 worker: [2025-08-01 07:19:37] iteration 1/ 5000 | lm loss: 1.0E+01 |",
			`stamp="2025-08-01 07:19:37" iteration=1 iterations=5000 loss=10`,
		},
		"columns of forks": {
			"iteration      300/     300 | consumed samples:       307200 | consumed tokens: 1.258B | elapsed time per iteration (ms): 131064.1 | eta: 0:00:00 | tokens/sec/gpu: 8000.5 | mem usages: 0.4321 | hip mem: 58.2GB | grad norm: 0.623 |",
			`iteration=300 iterations=300 duration=131.0641(ms) grad_norm=0.623 consumed_samples=307200 consumed_tokens=1258000000 device_tokens/s=8000.5 extra:eta="0:00:00" extra:mem_usages=0.4321 extra:hip_mem="58.2GB"`,
		},
		"tokens/sec/GPU":         {"iteration 3/ 9 | tokens/sec/GPU: 812.25 |", `iteration=3 iterations=9 device_tokens/s=812.25`},
		"Megatron-DeepSpeed":     {"iteration 3/ 9 | lm loss: 2 | actual seqlen: 2048 | samples per second: 12.5 | tokens per gpu per second (tgs): 3060.25 | TFLOPs: 33.5 |", `iteration=3 iterations=9 loss=2 samples/s=12.5 device_tokens/s=3060.25 device_flop/s=3.35e+13(TFLOP/s) extra:actual_seqlen=2048`},
		"consumed tokens":        {"iteration 3/ 9 | consumed tokens: 163840 | lm loss: 2 |", `iteration=3 iterations=9 loss=2 consumed_tokens=163840`},
		"thousands of tokens":    {"iteration 3/ 9 | consumed tokens: 2.5K |", `iteration=3 iterations=9 consumed_tokens=2500`},
		"millions of tokens":     {"iteration 3/ 9 | consumed tokens: 2.5M |", `iteration=3 iterations=9 consumed_tokens=2500000`},
		"trillions of tokens":    {"iteration 3/ 9 | consumed tokens: 2.5T |", `iteration=3 iterations=9 consumed_tokens=2500000000000`},
		"another unit of tokens": {"iteration 3/ 9 | consumed tokens: 2.5Q |", `iteration=3 iterations=9 extra:consumed_tokens="2.5Q"`},
		"current and average": {
			"iteration 3/ 9 | elapsed time per iteration (ms): 13100.0/13240.9 | throughput per GPU (TFLOP/s/GPU): 812.5/803.25 | tokens per GPU (tokens/s/GPU): 16011.5/nan |",
			`iteration=3 iterations=9 duration=13.1(ms) device_tokens/s=16011.5 device_flop/s=8.125e+14(TFLOP/s) extra:elapsed_time_per_iteration_(ms)_average=13240.9 extra:throughput_per_GPU_(TFLOP/s/GPU)_average=803.25 extra:tokens_per_GPU_(tokens/s/GPU)_average=NaN`,
		},
		"three numbers": {"iteration 3/ 9 | elapsed time per iteration (ms): 1/2/3 |", `iteration=3 iterations=9 extra:elapsed_time_per_iteration_(ms)="1/2/3"`},
		"all iterations skipped": {
			" [2024-09-03 15:54:54] iteration       10/  500000 | consumed samples:        10240 | learning rate: 0.000000E+00 | loss scale: 8388608.0 | number of skipped iterations:  10 | number of nan iterations:   0 |",
			`stamp="2024-09-03 15:54:54" iteration=10 iterations=500000 lr=0 loss_scale=8388608 consumed_samples=10240 skipped=10 nan_iterations=0`,
		},
		"not finite": {"iteration 3/ 9 | lm loss: NAN | grad norm: nan | params norm: inf | loss scale: -inf |", `iteration=3 iterations=9 loss=NaN grad_norm=NaN params_norm=+Inf loss_scale=-Inf`},
		"a loss that is NaN is left out": {
			"iteration 3/ 9 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 | number of nan iterations:   0 |",
			`iteration=3 iterations=9 loss=NaN grad_norm=NaN loss_scale=1 skipped=0 nan_iterations=0`,
		},
		"another model's loss is there": {
			"iteration 3/ 9 | mlm loss: 2.5 | grad norm: nan | number of skipped iterations:   0 |", `iteration=3 iterations=9 grad_norm=NaN skipped=0 extra:mlm_loss=2.5`,
		},
		"the iteration was skipped":  {"iteration 3/ 9 | grad norm: nan | number of skipped iterations:   1 |", `iteration=3 iterations=9 grad_norm=NaN skipped=1`},
		"cut off before the skipped": {"iteration 3/ 9 | grad norm: nan | numb", `iteration=3 iterations=9 grad_norm=NaN`},
		"a clock of its own":         {" iteration       20/  500000 | current time: 1706860208.35 | consumed samples: 640 |", `iteration=20 iterations=500000 consumed_samples=640 unix=1706860208.35→2024-02-02T07:50:08.35Z`},
		"cut off":                    {"iteration 3/ 9 | lm loss: 2.5 | global batch si", `iteration=3 iterations=9 loss=2.5`},
		"cut off in a number":        {"iteration 3/ 9 | lm loss: 2.5 | grad norm: ", `iteration=3 iterations=9 loss=2.5`},
		"no number":                  {"iteration 3/ 9 | lm loss: oops | grad norm: 1 |", `iteration=3 iterations=9 grad_norm=1 extra:lm_loss="oops"`},
	} {
		t.Run(name, func(t *testing.T) { check(t, []lineTest{{text: c.text, result: Records, records: []string{c.want}}}) })
	}
}

func TestGluedIterations(t *testing.T) {
	check(t, []lineTest{
		{
			text:   "[Rank 2] (after 1 iterations) memory (MB) | allocated: 9334.5 | max allocated: 12680.5 | reserved: 13236.0 | max reserved: 13236.0[Rank 6] (after 1 iterations) memory (MB) | allocated: 9333.5 | max allocated: 12679.5 | reserved: 13234.0 | max reserved: 13235.0",
			result: Records,
			records: []string{
				`side rank=2 iteration=1 mem=9787932672(MiBy) mem_peak=13296467968(MiBy) mem_reserved=13878951936(MiBy) mem_reserved_peak=13878951936(MiBy)`,
				`side rank=6 iteration=1 mem=9786884096(MiBy) mem_peak=13295419392(MiBy) mem_reserved=13876854784(MiBy) mem_reserved_peak=13877903360(MiBy)`,
			},
		},
		{
			text:   "iteration 1/ 9 | lm loss: 2 | number of nan iterations:   0 |[2025-08-01 07:19:37] iteration 2/ 9 | lm loss: 3 |iteration 3/ 9 | lm loss: 4 [Rank 1] (after 3 iterations) memory (MB) | allocated: 1.0",
			result: Records,
			records: []string{
				`iteration=1 iterations=9 loss=2 nan_iterations=0`, `stamp="2025-08-01 07:19:37" iteration=2 iterations=9 loss=3`, `iteration=3 iterations=9 loss=4`,
				`side rank=1 iteration=3 mem=1048576(MiBy)`,
			},
		},
		{
			text: "[Rank 1] (after 3 iterations) memory (MB) | allocated: 1.0 iteration 4/ 9 | lm loss: 2 |", result: Records,
			records: []string{`side rank=1 iteration=3 mem=1048576(MiBy)`, `iteration=4 iterations=9 loss=2`},
		},
	})
}

func TestNoIteration(t *testing.T) {
	check(t, []lineTest{
		{text: ""},
		{text: "   "},
		{text: "iteration"},
		{text: "iteration 3"},
		{text: "iteration 3/9 done"},
		{text: "iteration x/9 | lm loss: 2"},
		{text: "iteration 3/ | lm loss: 2"},
		{text: "saving checkpoint at iteration      11 to /ckpt in torch format"},
		{text: "2024-01-01 10:00:00\tJob ID: 7\t# GPUs: 8\tIteration: 100"},
		{text: "iteration 1234567890123456/ 9 | lm loss: 2 |"},
		{text: "[Rank x] (after 1 iterations) memory (MB) | allocated: 1", result: Malformed, reason: "no_fields"},
		{text: "[Rank 3] init memory (MB) | allocated: ?", result: Malformed, reason: "no_fields"},
		{text: "[Rank 3] hello"},
		{text: "iteration 3/ 9 |", result: Malformed, reason: "no_fields"},
		{text: "iteration 3/ 9 | lm los", result: Malformed, reason: "no_fields"},
	})
}

func TestMemoryWithoutIteration(t *testing.T) {
	check(t, []lineTest{{
		text: "[Rank 3] (after init) memory (MB) | allocated: 2.0 | device memory used: 4.5", result: Records,
		records: []string{`side rank=3 mem=2097152(MiBy) extra:device_memory_used=4.5`},
	}})
}

func TestTimers(t *testing.T) {
	check(t, []lineTest{
		{text: "(min, max) time across ranks (ms):", result: Ignored, reason: "times_title"},
		{text: "max time across ranks (ms):", result: Ignored, reason: "times_title"},
		{text: "times across ranks (ms):", result: Ignored, reason: "times_title"},
		{
			text: "    forward-backward ...............................: (1402.11, 1409.87)", result: Records,
			records: []string{"side stage:forward-backward=1.40987(min 1.40211)"},
		},
		{text: "    optimizer ......................................: 55.5", result: Records, records: []string{"side stage:optimizer=0.0555"}},
		{text: "    optimizer ......................................: (55.5, x)"},
		{text: "    optimizer ......................................: 5 s"},
		{text: "    two words ...: 5"},
		{text: " : 5"},
		{text: "     rank  0: 1402.11"},
		{text: "INFO:megatron.core.timers:times across ranks (ms):", result: Ignored, reason: "times_title"},
		{text: "     rank  0: 1402.11"},
		{text: "  forward-compute:", result: Ignored, reason: "timer_title"},
		{text: "     rank  0: 46.35", result: Records, records: []string{"side stage:forward-compute[0]=0.04635"}},
		{text: "     rank 1023: 54.98", result: Records, records: []string{"side stage:forward-compute[1023]=0.05498"}},
		{text: "     rank 2: x"},
		{text: "     rank : 5"},
		{text: "     rank 2 5"},
		{text: "  " + strings.Repeat("x", 129) + ":"},
		{text: "  batch generator:", result: Ignored, reason: "timer_title"},
		{text: "rank 3: 5"},
		{text: "     rank  3: 5", result: Records, records: []string{"side stage:batch generator[3]=0.005"}},
		{text: "INFO:megatron.core.timers:(min, max) time across ranks (ms):", result: Ignored, reason: "times_title"},
		{text: "     rank  3: 5"},
	})
}

func TestStragglerDetector(t *testing.T) {
	check(t, []lineTest{
		{
			text:   "INFO:megatron.core.utils:[2026-11-22 13:29:09] | MnRtt/Rnk: 40.26ms/1 | MxRtt/Rnk: 69.32ms/2 | MnPwr/Rnk: 601000.00W/0 | MxTmp/Rnk: 63.00C/3 | MnDRtt/Rnk: 2.11ms/3 | MxDRtt/Rnk: 3.5ms/0 | MnEtpt/Rnk: 1.20TF/2 | MxEtpt/Rnk: 2.07TF/1",
			result: Records,
			records: []string{
				`ranks open dedup stamp="2026-11-22 13:29:09" stage:Rtt[1]=0.04026 stage:Rtt[2]=0.06932 stage:DRtt[3]=0.00211 stage:DRtt[0]=0.0035 extra:MnPwr/Rnk="601000.00W/0" extra:MxTmp/Rnk="63.00C/3" extra:MnEtpt/Rnk="1.20TF/2" extra:MxEtpt/Rnk="2.07TF/1"`,
			},
		},
		{text: "| MnRtt/Rnk: 40.26ms/1 | MxRtt/Rnk: 69.32ms/2", result: Records, records: []string{`ranks open dedup stage:Rtt[1]=0.04026 stage:Rtt[2]=0.06932`}},
		{text: "| MnRtt/Rnk: x | MxRtt/Rnk: 69.32s/2 | MxPwr/Rnk: 6W/0", result: Malformed, reason: "no_fields"},
		{text: "[2026-11-22 13:29] | MnRtt/Rnk: 40.26ms/1"},
		{text: "[x] | MnRtt/Rnk: 40.26ms/1"},
		{text: "^^^^ Bottom 2 Ranks with lowest  Etpt(TF): 1.20/2, 1.99/0,", result: Records, records: []string{`side extra:Bottom_Ranks="1.20/2, 1.99/0"`}},
		{
			text: "INFO:megatron.core.utils:^^^^ Top    2 Ranks with highest Etpt(TF): 2.00/3, 2.07/1,", result: Records,
			records: []string{`side extra:Top_Ranks="2.00/3, 2.07/1"`},
		},
		{text: "^^^^ Other 2 Ranks with lowest  Etpt(TF): 1.20/2,"},
		{text: "^^^^^^^^ SyntaxError"},
		{text: "INFO:megatron.core.utils:Toggling StragglerDetector State OFF"},
		{text: "INFO:megatron.x:"},
	})
}

func TestTimesOfOneLine(t *testing.T) {
	check(t, []lineTest{
		{
			text: "time (ms) | forward-compute: 120.5 | backward-compute: 240.25 | ", result: Records,
			records: []string{"side stage:forward-compute=0.1205 stage:backward-compute=0.24025"},
		},
		{text: "time (ms) | nothing", result: Malformed, reason: "no_fields"},
		{text: "total time: 5"},
	})
}

func TestRules(t *testing.T) {
	check(t, []lineTest{
		{text: strings.Repeat("-", 112), result: Ignored, reason: "rule"},
		{text: "-------"},
		{text: "------------- a title -------------"},
	})
}

func TestValidation(t *testing.T) {
	check(t, []lineTest{
		{
			text: " validation loss at iteration 100 | lm loss value: 3.291823E+00 | lm loss PPL: 2.689197E+01 | ", result: Records,
			records: []string{"evaluation iteration=100 val_loss=3.291823 ppl=26.89197"},
		},
		{
			text: " validation loss at iteration 100 on validation set | lm loss value: 3E+00 | lm loss PPL: 2E+01 | mtp_1 loss value: 4.5 | ", result: Records,
			records: []string{"evaluation iteration=100 val_loss=3 ppl=20 extra:mtp_1_loss_value=4.5"},
		},
		{
			text: " validation loss at iteration 100 on test set | lm loss value: 3E+00 | lm loss PPL: 2E+01 | ", result: Records,
			records: []string{`evaluation iteration=100 extra:lm_loss_value=3 extra:lm_loss_PPL=20 extra:evaluation_set="test"`},
		},
		{
			text: " validation loss at the end of training for val data | lm loss value: inf | lm loss PPL: inf | ", result: Records,
			records: []string{"evaluation val_loss=+Inf ppl=+Inf"},
		},
		{text: "validation loss at iteration x | lm loss value: 3 |", result: Malformed, reason: "bad_iteration"},
		{text: "validation loss at iteration 3 | nothing here |", result: Malformed, reason: "no_fields"},
		{text: "validation loss at iteration 3", result: Malformed, reason: "no_fields"},
	})
}

func TestArguments(t *testing.T) {
	long := strings.Repeat("a_long_name_", 5)
	check(t, []lineTest{
		{text: "  hidden_size ..................................... 4096"},
		{text: "------------------------ arguments ------------------------", result: Begin},
		{text: "  hidden_size ..................................... 4096", result: Arguments, args: "hidden_size=4096"},
		{text: "  data_path ....................................... ['a b', 'c']", result: Arguments, args: "data_path=['a b', 'c']"},
		{text: "  " + long + "  True", result: Arguments, args: long + "=True"},
		{text: "  tokenizer_prompt_format ......................... ", result: Arguments, args: "tokenizer_prompt_format="},
		{text: "  linear_attention_freq ........................... [1, 1, 1, 0]", result: Arguments, args: "linear_attention_pattern=1110"},
		{text: "  linear_attention_freq ........................... 4", result: Arguments, args: "linear_attention_freq=4"},
		{text: "  use_tp_pp_dp_mapping ............................ True", result: Arguments, args: "pipeline_model_parallel_size=-1"},
		{text: "  use_tp_pp_dp_mapping ............................ False", result: Arguments, args: "use_tp_pp_dp_mapping=False"},
		{text: "  moe_layer_freq .................................. 2", result: Arguments, args: "moe_layer_freq=2"},
		{text: "  moe_layer_freq .................................. [0, 0, 0, 1, 1, 1]", result: Arguments, args: "moe_layer_pattern=000111"},
		{text: "  moe_layer_freq .................................. [1, 1]", result: Arguments, args: "moe_layer_pattern=11"},
		{text: "  moe_layer_freq .................................. [0, 1, 0, 1]", result: Arguments, args: "moe_layer_pattern=0101"},
		{text: "WARNING: something of another rank"},
		{text: " two words"},
		{text: "  name: value"},
		{text: "  name .....x"},
		{text: "-------------------- end of arguments ---------------------", result: End},
		{text: "  hidden_size ..................................... 4096"},
		{text: " > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)", result: Arguments, args: "padded_vocab_size=50304"},
		{text: "> padded vocab (size: 50257)"},
		{text: "> building train, validation, and test datasets ..."},
		{text: "------------------------ arguments ------------------------", result: Begin},
		{text: "iteration 1/ 9 | lm loss: 2 |", result: Records, records: []string{"iteration=1 iterations=9 loss=2"}},
		{text: "  hidden_size ..................................... 4096"}, // the dump was cut off
	})
}

// Every printed number comes back unchanged, whatever its size and the text around it.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var p Parser
	var out sink
	for range 20_000 {
		n, total, batch := r.Int64N(1e9), r.Int64N(1e9), r.Int64N(1e6)
		ms, loss, grad := r.Float64()*1e5, math.Exp(r.Float64()*60-30), r.NormFloat64()*1e3
		text := fmt.Sprintf(
			" [2026-03-01 10:00:04.%06d] iteration %8d/%8d | elapsed time per iteration (ms): %.1f | global batch size: %5d | lm loss: %.6E | grad norm: %.3f |",
			r.IntN(1e6), n, total, ms, batch, loss, grad,
		)
		result, _ := p.Line([]byte(text), &out)
		require.Equal(t, Records, result)
		near := func(f record.Field, format string, v float64) {
			t.Helper()
			printed, err := strconv.ParseFloat(fmt.Sprintf(format, v), 64)
			require.NoError(t, err)
			require.Equal(t, strconv.FormatFloat(printed, 'g', -1, 64), strconv.FormatFloat(out.rec.Get(f), 'g', -1, 64), text)
		}
		require.InDelta(t, float64(n), out.rec.Get(record.Iteration), 0)
		require.InDelta(t, float64(total), out.rec.Get(record.Iterations), 0)
		near(record.BatchSize, "%.0f", float64(batch))
		near(record.Loss, "%.6E", loss)
		near(record.GradientNorm, "%.3f", grad)
		require.InEpsilon(t, math.Round(ms*10)/1e4, out.rec.Get(record.Duration), 1e-12)
	}
}

// Every Megatron line of the sample logs is read, where the logs are available.
func TestSamples(t *testing.T) {
	names, err := filepath.Glob("../../../../shared/logs/megatron_flagscale_stdout/*.log")
	require.NoError(t, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		var p Parser
		var peeler line.Peeler
		var prefix line.Prefix
		for text := range strings.Lines(string(b)) {
			var out texts
			result, reason := p.Line(peeler.Peel([]byte(strings.TrimRight(text, "\n")), &prefix), &out)
			assert.Contains(t, []Result{Records, Ignored}, result, "%s: %s", reason, text)
			if strings.Contains(text, "] iteration ") {
				require.Len(t, out.got, 1)
				assert.NotNil(t, prefix.Stamp)
				assert.NotContains(t, strings.Replace(out.got[0], `eta="0:00:00"`, "", 1), `="`, "no field is left as text, but the eta")
			}
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{
		"[2026-03-01 10:00:04.120331] iteration 2/ 100 | consumed tokens: 1.258B | elapsed time per iteration (ms): 13100.0/13240.9 | lm loss: nan |",
		"max reserved: 13236.0[Rank 6] (after 1 iterations) memory (MB) | allocated: 9334.37 iteration 4/ 9 | lm loss: 2 |[2026-03-01 10:00:04] iteration 5/ 9 | a b: c |",
		"times across ranks (ms):\n  forward-compute:\n     rank  0: 46.35\nINFO:megatron.core.utils:[2026-11-22 13:29:09] | MnRtt/Rnk: 40.26ms/1 | MxRtt/Rnk: 69.32ms/2\n^^^^ Bottom 2 Ranks with lowest  Etpt(TF): 1.20/2,",
		"    forward-backward ....: (1402.11, 1409.87)", " validation loss at iteration 100 on test set | lm loss value: 3.2E+00 | ", "time (ms) | a: 1 |",
		"------------------------ arguments ------------------------\n  moe_layer_freq ... [0, 1]\n-------------------- end of arguments ---------------------\n> padded vocab (size: 1) (new size: 5)",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Parser
		var out texts
		for l := range strings.SplitSeq(string(text), "\n") {
			before := len(out.got)
			result, reason := p.Line([]byte(l), &out)
			assert.Equal(t, result == Records, len(out.got) > before)
			assert.Equal(t, result == Ignored || result == Malformed, reason != "")
		}
	})
}

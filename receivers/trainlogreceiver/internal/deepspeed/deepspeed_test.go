package deepspeed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/deepspeed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: deepspeed.Source, Parse: deepspeed.Parse}

func TestSamples(t *testing.T) { parser.Samples(t, "deepspeed") }

var seeds = []string{
	"[Rank 0] step=10, skipped=4, lr=[4.99804827338393e-05, 4.99804827338393e-05], mom=[(0.9, 0.95), (0.9, 0.95)]",
	"epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.025771473496132, CurrSamplesPerSec=25.704280480541442, MemAllocated=4.32GB, MaxMemAllocated=38.49GB",
	"0/20, RunningAvgSamplesPerSec=232.73, CurrSamplesPerSec=nan, MemAllocated=0.36GB",
	"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8388608, reducing to 4194304",
	"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1",
	"steps: 200 loss: 5.5508 lm loss: 5.5103 moe loss: 0.0405 iter time (s): 0.936 samples/sec: 136.706",
	"[Rank 0] time (ms) | fwd: 12.34 (fwd_moe: 5.00, 1st_a2a: 0.80, 2nd_a2a: 0.70, top_k: 0.21)",
	"x  1%|] step=, skipped=", " RunningAvgSamplesPerSec=", ", RunningAvgSamplesPerSec=", "Rank Skipping step.", "steps: iter time (s):", "[Rank time (ms) | ",
	"[Rank 9] time (ms) | | (,)",
}

// Regression: with steps_per_print over 1, the timers of the steps between two records are of no step in the log. Added to the record before, they made a
// forward pass of 9.8 s in a step of 2.7 s.
func TestTimersOfLaterSteps(t *testing.T) {
	var p deepspeed.Parser
	line := recordtest.Parser{Source: deepspeed.Source, Parse: p.Parse}
	const micro, global = "[Rank 0] time (ms) | fwd_microstep: 10.00 | step_microstep: 1.00", "[Rank 0] time (ms) | fwd: 10.00 | step: 1.00"
	const microParts, globalParts = "side rank=0 stage:fwd_microstep=0.01 stage:step_microstep=0.001", "side rank=0 stage:fwd=0.01 stage:step=0.001"
	for _, c := range [][2]string{
		{micro, microParts},
		{micro, microParts}, // no step is known yet
		{"[Rank 0] step=10, skipped=0, lr=[0.5], mom=[]", `step open join rank=0 iteration=10 lr=0.5 skipped=0 extra:mom="[]"`},
		{"0/10, RunningAvgSamplesPerSec=1, CurrSamplesPerSec=2", "step open join rank=0 iteration=10 epoch=0 samples/s=2 extra:RunningAvgSamplesPerSec=1"},
		{micro, microParts},
		{"[Rank 0] time (ms) | fwd: 10.00 (fwd_moe: 2.00)", "side rank=0 stage:fwd=0.01 stage:fwd_moe=0.002"},
		{global, "side rank=0 stage:step=0.001"},
		{"[Rank 1] time (ms) | fwd: 10.00 | step: 1.00", "side rank=1 stage:fwd=0.01 stage:step=0.001"},
		{micro, "!" + deepspeed.LaterStep},
		{global, "!" + deepspeed.LaterStep},
		{"[Rank 0] step=20, skipped=0, lr=[0.5], mom=[]", `step open join rank=0 iteration=20 lr=0.5 skipped=0 extra:mom="[]"`},
		{micro, microParts},
		{global, globalParts},
		{micro, "!" + deepspeed.LaterStep},
	} {
		assert.Equal(t, c[1], line.Line(c[0]), c[0])
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"[2023-11-07 01:55:23,711] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=4, lr=[4.99804827338393e-05, 4.99804827338393e-05], mom=[(0.9, 0.95), (0.9, 0.95)]": `step open join rank=0 iteration=10 lr=4.998048273384e-05 skipped=4 extra:lr="[4.99804827338393e-05, 4.99804827338393e-05]" extra:mom="[(0.9, 0.95), (0.9, 0.95)]"`,
		"[2023-08-02 00:41:17,935] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=10, lr=[0.0001], mom=[(0.9, 0.999)]":                                                `step open join rank=0 iteration=10 lr=0.0001 skipped=10 extra:mom="[(0.9, 0.999)]"`,
		"step=7, skipped=0, lr=0.001, mom=(0.9, 0.95)":                        `step open join rank=0 iteration=7 lr=0.001 skipped=0 extra:mom="(0.9, 0.95)"`,
		"[Rank 0] step=7, skipped=0, lr=[], mom=[]":                           `step open join rank=0 iteration=7 skipped=0 extra:lr="[]" extra:mom="[]"`,
		"[Rank 0] step=7, skipped=0, lr=[None], mom=None, loss=nan":           `step open join rank=0 iteration=7 skipped=0 extra:lr="[None]" extra:mom="None" extra:loss="nan"`,
		"[Rank 3] step=7, skipped=0, lr=[np.float64(0.25)], mom=[0.9]":        `step open join rank=3 iteration=7 lr=0.25 skipped=0 extra:mom="[0.9]"`,
		"[Rank 0] step=7, skipped=0, lr=[0.5], mom=[0.9]  12%|█▏ | 12/100 [0": `step open join rank=0 iteration=7 lr=0.5 skipped=0 extra:mom="[0.9]"`,
		// tqdm writes to stderr without a line end, and the logger continues the line.
		"  1%|▏   | 10/1000 [00:12<20:01,  1.21s/it][2023-08-02 00:41:17,935] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.5], mom=[0.9]": `step open join rank=0 stamp="2023-08-02 00:41:17,935" iteration=10 lr=0.5 skipped=0 extra:mom="[0.9]"`,

		"[2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.025771473496132, CurrSamplesPerSec=25.704280480541442, MemAllocated=4.32GB, MaxMemAllocated=38.49GB": `step open join rank=0 iteration=10 epoch=0 samples/s=25.70428048054 mem=4638564679.68(GiBy) mem_peak=41328322805.76(GiBy) extra:micro_step=40 extra:RunningAvgSamplesPerSec=25.0257714735`,
		"[2022-08-29 06:58:56,176] [INFO] [timer.py:198:stop] 0/20, RunningAvgSamplesPerSec=232.7340551694273, CurrSamplesPerSec=227.48090316379353, MemAllocated=0.36GB, MaxMemAllocated=15.06GB":                                  `step open join rank=0 iteration=20 epoch=0 samples/s=227.4809031638 mem=386547056.64(GiBy) mem_peak=16170551869.44(GiBy) extra:RunningAvgSamplesPerSec=232.7340551694`,
		"epoch=2/micro_step=8/global_step=8, RunningAvgSamplesPerSec=nan, CurrSamplesPerSec=nan, MemAllocated=0.0GB, MaxMemAllocated=0.0GB":                                                                                         `step open join rank=0 iteration=8 epoch=2 samples/s=NaN mem=0(GiBy) mem_peak=0(GiBy) extra:micro_step=8 extra:RunningAvgSamplesPerSec=NaN`,
		" 5%|▌ | 5/100 [00:01<00:19, 5.0it/s]epoch=0/micro_step=5/global_step=5, RunningAvgSamplesPerSec=-inf, CurrSamplesPerSec=2.5, MemAllocated=1.5GB, MaxMemAllocated=3.0GB  6%|":                                               `step open join rank=0 iteration=5 epoch=0 samples/s=2.5 mem=1610612736(GiBy) mem_peak=3221225472(GiBy) extra:micro_step=5 extra:RunningAvgSamplesPerSec=-Inf`,
		// Truncated: without its unit, a size may have lost digits.
		"0/20, RunningAvgSamplesPerSec=1, CurrSamplesPerSec=2, MemAllocated=4.3": `step open join rank=0 iteration=20 epoch=0 samples/s=2 extra:RunningAvgSamplesPerSec=1 extra:MemAllocated="4.3"`,

		"[2023-08-02 00:41:17,935] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8388608, reducing to 4194304": `side rank=0 loss_scale=4194304 extra:overflow=1 extra:loss_scale.attempted=8388608`,
		"[deepspeed] OVERFLOW! Rank 5 Skipping step. Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1":                                            `side rank=5 loss_scale=65536 extra:overflow=1 extra:loss_scale.attempted=65536 extra:loss_scale.hysteresis=1`,
		"[deepscale] OVERFLOW! Rank 1 Skipping step. Attempted loss scale: 65536.0, reducing to 32768.0":                                                                    `side rank=1 loss_scale=32768 extra:overflow=1 extra:loss_scale.attempted=65536`,
		"[deepspeed] fp16 dynamic loss scale overflow! Rank 0 Skipping step. Attempted loss scale: 4, reducing to 2":                                                        `side rank=0 loss_scale=2 extra:overflow=1 extra:loss_scale.attempted=4`,
		"[deepspeed] OVERFLOW! Rank 0 Skipping step.": `side rank=0 extra:overflow=1`,

		"steps: 100 loss: 0.0585 iter time (s): 0.186 samples/sec: 53.694":                                     `step mean open join rank=0 iteration=100 duration=0.186 loss=0.0585 samples/s=53.694`,
		"steps: 200 loss: 5.5508 lm loss: 5.5103 moe loss: 0.0405 iter time (s): 0.936 samples/sec: 136.706 ":  `step mean open join rank=0 iteration=200 duration=0.936 loss=5.5508 samples/s=136.706 extra:lm loss=5.5103 extra:moe loss=0.0405`,
		"steps: 1 loss: nan iter time (s): 101.853 samples/sec: inf eta: 1h30m":                                `step mean open join rank=0 iteration=1 duration=101.853 loss=NaN samples/s=+Inf extra:eta="1h30m"`,
		"[default0]: 3%|▎  | 1/30 [00:01<00:29]steps: 3 loss: 2.0 iter time (s): 0.5 samples/sec: 8.000":       `step mean open join rank=0 iteration=3 duration=0.5 loss=2 samples/s=8`,
		"[2026-01-02 03:04:05,678] [INFO] [x.py:1:f] steps: 3 loss: 2.0 iter time (s): 0.5 samples/sec: 8.000": `step mean open join rank=0 iteration=3 duration=0.5 loss=2 samples/s=8`,

		"[Rank 0] time (ms) | fwd_microstep: 12.34 | bwd_microstep: 25.10 | bwd_inner_microstep: 21.02 | bwd_allreduce_microstep: 3.98 | step_microstep: 1.11": `side rank=0 stage:fwd_microstep=0.01234 stage:bwd_microstep=0.0251 stage:bwd_inner_microstep=0.02102 stage:bwd_allreduce_microstep=0.00398 stage:step_microstep=0.00111`,
		"[2026-08-22 10:00:00,002] [INFO] [engine.py:411:x] [Rank 0] time (ms) | fwd: 12.34 (fwd_moe: 5.00, 1st_a2a: 0.80, 2nd_a2a: 0.70, top_k: 0.21)":        `side rank=0 stage:fwd=0.01234 stage:fwd_moe=0.005 stage:1st_a2a=0.0008 stage:2nd_a2a=0.0007 stage:top_k=0.00021`,
		"rank=2 time (ms) | forward: 12.34 (forward_moe: 5.00, 1st alltoall: 0.80, 2nd alltoall: 0.70, top-k: 0.21)":                                           `side rank=2 stage:forward=0.01234 stage:forward_moe=0.005 stage:1st alltoall=0.0008 stage:2nd alltoall=0.0007 stage:top-k=0.00021`,
		"[Rank -1] time (ms) | pipe_send_output: 0.00 | pipe_recv_grad: 7.00 | odd: x":                                                                         `side stage:pipe_send_output=0 stage:pipe_recv_grad=0.007 extra:odd="x"`,
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func TestNoRecord(t *testing.T) {
	for in, want := range map[string]string{
		"[Rank 1] step=x, skipped=1, lr=[1]":                                    "!bad_step",
		"[Rank 1] step=1, skipped=":                                             "!bad_skipped",
		"[Rank 1] step=10, skipped=4, lr=[4.9980482":                            "!unclosed",
		"RunningAvgSamplesPerSec=1, CurrSamplesPerSec=2":                        "!no_step",
		"a/b, RunningAvgSamplesPerSec=1, CurrSamplesPerSec=2":                   "!bad_step",
		"epoch=0/micro_step=1, RunningAvgSamplesPerSec=1":                       "!bad_step",
		"0/20, RunningAvgSamplesPerSec=232.73, CurrSamp":                        "!no_samples_per_second",
		"0/20, RunningAvgSamplesPerSec=232.73, CurrSamplesPerSec=":              "!no_samples_per_second",
		"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8388608":         "!bad_loss_scale",
		"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to ": "!bad_loss_scale",
		"steps: 100 loss: 0.0585 iter time (s): ":                               "!bad_iter_time",
		"steps: x loss: 0.0585 iter time (s): 0.5":                              "!bad_step",
		"[Rank 0] time (ms) | fwd_micros":                                       "!no_timers",

		"": "", "Using /root/.cache as PyTorch extensions root...": "",
		"global_step=1, skipped=0": "",
		"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale": "",
		"Skipping step. Rank":                "",
		"total steps: 100 and iter time (s)": "",
		"loss: 2 iter time (s): 0.5":         "",
		// Old Megatron's timers, without a rank.
		"time (ms) | forward: 10.00 | backward: 20.00 | optimizer: 3.00": "",
		"my_rank=x time (ms) | forward: 10.00":                           "",
		" iteration 5/ 10 | elapsed time per iteration (ms): 100.0 |":    "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func benchmarks() map[string]string {
	return map[string]string{
		"progress": seeds[0], "throughput": seeds[1], "pipeline": seeds[5], "timers": seeds[6],
		"other": "[2026-01-02] some other line of a log that is about as long as these lines are, with nothing in it to read, but words and words",
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) { parser.Bench(b, benchmarks()) }

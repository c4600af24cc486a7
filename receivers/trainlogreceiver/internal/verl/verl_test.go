package verl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/verl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var parser = recordtest.Parser{Source: verl.Source, Parse: verl.Parse}

func TestSamples(t *testing.T) { parser.Samples(t, "verl_console") }

var seeds = []string{
	"step:1 - global_seqlen/min:159906 - actor/entropy:0.09767807275056839 - actor/pg_loss:-0.0036091046008680547 - timing_s/gen:16.227 - timing_s/step:48.7025266494602 - perf/throughput:3283.320414789452",
	"step:151 - actor/ppo_kl:np.float64(0.0042) - actor/pg_loss:-1.2e-05 - critic/advantages/min:-inf - training/global_step:np.int64(151) - timing_s/step:92.4",
	"step:0 - timing/gen:21.470 - critic/lr(1e-4):0.100", "step:1 - :", "step:1 - a", "step:1 -  - :1 - b:", "step: - a:1", "xstep:1 - step:2 - a:1",
}

func TestParse(t *testing.T) {
	const bar = "Training Progress:   2%|▏         | 2/80 [02:53<1:52:39, 86.66s/it]"
	for in, want := range map[string]string{
		seeds[0]: `step iteration=1 duration=48.70252664946 device_tokens/s=3283.320414789 stage:gen=16.227 extra:global_seqlen/min=159906 extra:actor/entropy=0.09767807275057 extra:actor/pg_loss=-0.003609104600868`,
		"\x1b[36m(TaskRunner pid=42)\x1b[0m step:151 - actor/ppo_kl:np.float64(0.0042) - actor/pg_loss:-1.2e-05 - critic/advantages/min:-inf - training/global_step:np.int64(151) - tq/get_time_total:1.92 - tq/get_count:16 - timing_s/step:92.4": `step iteration=151 duration=92.4 extra:actor/ppo_kl=0.0042 extra:actor/pg_loss=-1.2e-05 extra:critic/advantages/min=-Inf extra:tq/get_time_total=1.92 extra:tq/get_count=16`,
		bar + "\x1b[36m(TaskRunner pid=42)\x1b[0m step:2 - actor/pg_loss:0.0 - timing_s/step:86.6":                                               `step iteration=2 duration=86.6 extra:actor/pg_loss=0`,
		bar + "step:2 - actor/lr:1e-06 - actor/grad_norm:nan":                                                                                    `step iteration=2 lr=1e-06 grad_norm=NaN`,
		"\x1b[36m(TaskRunner pid=15930, ip=10.4.1.33)\x1b[0m step:1 - val-core/openai/gsm8k/reward/mean@1:0.41 - timing_s/testing:12.1":          `step iteration=1 stage:testing=12.1 extra:val-core/openai/gsm8k/reward/mean@1=0.41`,
		"step:0 - timing/gen:21.470 - timing/ref:4.360 - timing/adv:0.041 - critic/lr(1e-4):0.100 - actor/lr(1e-4):0.010 - timing/step:30.5":     `step iteration=0 duration=30.5 lr=1e-06 stage:gen=21.47 stage:ref=4.36 stage:adv=0.041 extra:critic/lr(1e-4)=0.1`,
		"step:3 - perf/time_per_step:7.5 - perf/total_num_tokens:1000 - timing_s/step:7.25":                                                      `step iteration=3 duration=7.25 tokens=1000`,
		"step:3 - timing_s/step:7.25 - perf/time_per_step:7.25":                                                                                  `step iteration=3 duration=7.25 extra:perf/time_per_step=7.25`,
		"step:4 - perf/max_memory_allocated_gb:66.066 - perf/max_memory_reserved_gb:74.5 - perf/cpu_memory_used_gb:120.25 - perf/mfu/actor:0.41": `step iteration=4 mem_peak=70937827344.38(GiBy) mem_reserved_peak=79993765888(GiBy) extra:perf/cpu_memory_used_gb=120.25 extra:perf/mfu/actor=0.41`,
		"step:4 - actor/perf/max_memory_allocated_gb:1.0 - training/epoch:2 - training/global_step:5":                                            `step iteration=4 epoch=2 mem_peak=1073741824(GiBy) extra:training/global_step=5`,
		// Statistics over workers are no parts of the step.
		"step:60 - timing_s/agent_loop/slowest/prompt_length:357 - timing_s/generation_timing/topk_ratio:0.5 - timing_s/gen:4.5 - timing_per_token_ms/gen:0.105": `step iteration=60 stage:gen=4.5 extra:timing_s/agent_loop/slowest/prompt_length=357 extra:timing_s/generation_timing/topk_ratio=0.5 extra:timing_per_token_ms/gen=0.105`,
		// The SFT trainer.
		"step:9 - train/loss:1.25 - train/lr(1e-3):0.02 - train/time(s):3.5 - train/grad_norm:0.75 - train/global_tokens:4096": `step iteration=9 duration=3.5 loss=1.25 lr=2e-05 grad_norm=0.75 tokens=4096`,
		"step:9 - train/lr:1e-05 - train/mfu:0.35 - val/loss:2.5":                                                              `step iteration=9 lr=1e-05 val_loss=2.5 mfu=0.35`,
		// Values that are no numbers, a name with a colon, and a truncated line.
		"step:9 - a:b:1.5 - flag:True - name:x y - timing_s/s": `step iteration=9 extra:a:b=1.5 extra:flag="True" extra:name="x y" extra:text="timing_s/s"`,
		"global_step:8 step:9 - a:1":                           `step iteration=9 extra:a=1`,

		"step:9 - actor/entr":     "!no_metrics",
		"step:9 - actor/entropy:": "!no_metrics",
		"step:9 - ":               "!no_metrics",

		"": "", "step:9": "", "step:9 -": "", "step: 9 - a:1": "", "step:x - a:1": "", "step: 10  loss: 1.5  tps: 3": "", "training/global_step:151 - a:1": "",
		"step:5 - saving the checkpoint": "",
		"step:1234567890123456 - a:1":    "",
	} {
		assert.Equal(t, want, parser.Line(in), in)
	}
}

func TestKey(t *testing.T) {
	var rec record.Record
	verl.Key([]byte("training/global_step"), 7, &rec)
	verl.Key([]byte("perf/throughput"), 3283.5, &rec)
	verl.Key([]byte("timing_s/old_log_prob"), 1.5, &rec)
	assert.Equal(t, `step iteration=7 device_tokens/s=3283.5 stage:old_log_prob=1.5`, recordtest.Show(&rec))
}

// long is a line of verl main for GRPO: some 110 metrics, 4 kB.
func long() string {
	var s strings.Builder
	s.WriteString("step:60")
	for _, group := range []string{
		"actor", "critic/score", "critic/rewards", "critic/advantages", "critic/returns", "response_length", "response_length_non_aborted", "prompt_length",
		"num_turns", "tool_call_counts", "timing_per_token_ms", "rollout_corr", "reward_extra",
	} {
		for _, name := range []string{
			"mean:0.09767807275056839", "max:-0.0036091046008680547", "min:24.901607227511704", "clip_ratio:0.0546875", "kl_coef:1.891376622664256e-05",
			"count:np.int64(512)", "std:10240.0",
		} {
			s.WriteString(" - " + group + "/" + name)
		}
	}
	for _, name := range []string{
		"start_profile", "generate_sequences", "reshard", "gen", "reward", "old_log_prob", "values", "adv", "update_critic", "update_actor", "step", "testing",
		"save_checkpoint", "stop_profile",
	} {
		s.WriteString(" - timing_s/" + name + ":22.982502876780927")
	}
	s.WriteString(
		" - perf/total_num_tokens:38357151 - perf/time_per_step:7725.570919440128 - perf/throughput:620.6200065984855 - actor/lr:1e-06 - training/epoch:0",
	)
	return s.String()
}

func TestLong(t *testing.T) {
	text := long()
	require.Greater(t, len(text), 4000)
	var rec record.Record
	found, reason := verl.Parse([]byte(text), &rec)
	require.True(t, found, reason)
	assert.Len(t, rec.Stages, 13)
	assert.Len(t, rec.Extra, 13*7+1)
	assert.Equal(t, 22.982502876780927, rec.Get(record.Duration)) //nolint:testifylint // every bit is meant
}

func benchmarks() map[string]string {
	return map[string]string{
		"short": seeds[0], "4kB": long(),
		"other": "(WorkerDict pid=3258596) INFO:2025-10-07 07:01:41,025:[Rank 0] Saved optim to /root/checkpoint/global_step_60/actor/optim_world_size_8_rank_0.pt",
	}
}

func FuzzParse(f *testing.F) { parser.Fuzz(f, seeds) }

func BenchmarkParse(b *testing.B) { parser.Bench(b, benchmarks()) }

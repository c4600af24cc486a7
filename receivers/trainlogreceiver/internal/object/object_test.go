package object_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// show writes a record as text: kind, fields by number, and the rest.
func show(rec *record.Record) string {
	var w []string
	w = append(w, []string{"step", "evaluation", "summary", "side", "ranks", "sample"}[rec.Kind])
	for f := range record.NumFields {
		if rec.Has(f) {
			w = append(w, fmt.Sprintf("%s=%.15g%s", names[f], rec.Get(f), rec.UnitOf(f)))
		}
	}
	if rec.HasRank {
		w = append(w, fmt.Sprintf("rank=%d", rec.Rank))
	}
	if rec.Host != nil {
		w = append(w, "host="+string(rec.Host))
	}
	if rec.OneGPU {
		w = append(w, "one")
	}
	if rec.Stamp != nil {
		w = append(w, "stamp="+string(rec.Stamp))
	}
	if rec.Unix != 0 {
		w = append(w, fmt.Sprintf("unix=%d(%s)", rec.Unix, rec.RawUnix))
	}
	if rec.Of == record.Mean {
		w = append(w, "mean")
	}
	if len(rec.GPUs) > 0 {
		w = append(w, fmt.Sprintf("gpus=%.15g", rec.GPUs))
	}
	for _, s := range rec.Samples {
		w = append(w, fmt.Sprintf("gpu%d.%d=%.15g", int16(s.Device), s.Metric, s.Value))
	}
	for _, s := range rec.Stages {
		w = append(w, fmt.Sprintf("stage:%s=%g", s.Name, s.Seconds))
	}
	for _, e := range rec.Extra {
		v := fmt.Sprintf("%.15g", e.Value)
		if e.Text != nil {
			v = fmt.Sprintf("%q", e.Text)
		}
		if e.Metric != "" {
			v += "→" + e.Metric + "{" + e.Unit + "}"
		}
		w = append(w, fmt.Sprintf("%s:%s", e.Name, v))
	}
	return strings.Join(w, " ")
}

var names = map[record.Field]string{
	record.Iteration: "it", record.Iterations: "of", record.Epoch: "epoch", record.Duration: "duration", record.WorldSize: "world", record.LocalRank: "local",
	record.Loss:         "loss",
	record.LearningRate: "lr", record.GradientNorm: "norm", record.ValidationLoss: "vloss", record.Perplexity: "ppl", record.BatchSize: "batch",
	record.SampleThroughput: "samples/s",
	record.TokenThroughput:  "tokens/s", record.DeviceTokenThroughput: "tokens/s/gpu", record.FlopThroughput: "flops", record.DeviceFlopThroughput: "flops/gpu",
	record.MFU:         "mfu",
	record.MemoryUsage: "mem", record.MemoryPeak: "peak", record.MemoryReserved: "reserved", record.MemoryReservedPeak: "reservedpeak",
	record.ConsumedTokens: "seen", record.Tokens: "tokens",
	record.ConsumedSamples: "seensamples", record.DevicePower: "power", record.LossScale: "scale", record.ParamsNorm: "pnorm", record.GradientZeros: "zeros",
}

const (
	unfinished = "unfinished"
	other      = "other"
)

func parse(p *object.Parser, text string) string {
	var rec record.Record
	n, found := p.Parse([]byte(text), &rec)
	switch {
	case n < 0:
		return unfinished
	case n != len(text):
		return fmt.Sprintf("ends at %d", n)
	case !found:
		return other
	}
	return show(&rec)
}

type parseTest struct{ name, text, want string }

func testParse(t *testing.T, cases []parseTest) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := object.New(nil)
			assert.Equal(t, c.want, parse(p, c.text))
			assert.Equal(t, c.want, parse(p, c.text), "when the names are known")
			parse(p, `{"other": 1, "names": {"than": 2}, "before": 3}`)
			assert.Equal(t, c.want, parse(p, c.text), "after another record")
		})
	}
}

func TestParseLoggers(t *testing.T) {
	testParse(t, []parseTest{
		{
			"as a logger of one's own writes", `{"loss": 2.345, "throughput": 512.3, "step_time_s": 0.124, "lr": 1.2e-5}`,
			"step duration=0.124 loss=2.345 lr=1.2e-05 samples/s=512.3",
		},
		{"no blanks", `{"loss":2.345,"step":7}`, "step it=7 loss=2.345"},
		{"blanks", "{ \"loss\" :\t2.5 ,\r\n \"step\" : 7 }", "step it=7 loss=2.5"},
		{"not finite", `{"loss": NaN, "throughput": Infinity, "lr": -Infinity}`, "step loss=NaN lr=-Inf samples/s=+Inf"},
		{"Python's words", `{'loss': nan, 'lr': -inf, 'grad_norm': inf, 'best': None, 'ok': True}`, `step loss=NaN lr=-Inf norm=+Inf ok:"True"`},
		{"numbers as text", `{"loss": "2.301", "throughput": " 517 ", "step": "13", "lr": "nan"}`, "step it=13 loss=2.301 lr=NaN samples/s=517"},
		{"data", `{"step": 14, "data": {"loss": 2.29, "throughput": 519.5}}`, "step it=14 loss=2.29 samples/s=519.5"},
		{"case", `{"Loss": 2.28, "Samples_Per_Second": 520.1, "Learning Rate": 1, "Step": 1}`, "step it=1 loss=2.28 lr=1 samples/s=520.1"},
		{"groups", `{"train/loss": 1, "train/global_step": 2, "train/learning_rate": 3, "eval/loss": 4}`, "step it=2 loss=1 lr=3 vloss=4"},
		{"nested", `{"loss": 1, "opt": {"lr": 0.5, "name": "adam", "b": {"c": 2}}}`, `step loss=1 opt.lr:0.5 opt.name:"adam" opt.b.c:2`},
		{"nested under a known name", `{"step": 3, "metrics": {"loss": 1.5}, "train": {"lr": 0.1}}`, "step it=3 loss=1.5 lr=0.1"},
	})
}

func TestParseSamples(t *testing.T) {
	const unix = "unix=1781260205500000000(1781260205.5)"
	testParse(t, []parseTest{
		{
			"a GPU", `{"_timestamp": 1781260205.5, "system.gpu.0.gpu": 97.0, "system.gpu.0.smClock": 1980, "system.gpu.12.memoryAllocatedBytes": 1024}`,
			"sample " + unix + " gpu0.0=0.97 gpu0.6=1980000000 gpu12.1=1024",
		},
		{"a list of a step", `{"step": 1, "ts": 1781260205.5, "gpu_temp": [61, 62.5], "gpu_power_w": [512.5, 600]}`, "sample it=1 " + unix + " gpu0.3=61 gpu1.3=62.5 gpu0.4=512.5 gpu1.4=600"},
		{"memory", `{"step": 1, "loss": 2, "gpu_memory_used_gb": [70, 71], "gpu_temp": 61}`, "step it=1 loss=2 gpu0.1=75161927680 gpu1.1=76235669504 gpu-1.3=61"},
		{"of the process", `{"step": 1, "loss": 2, "gpu_memory_used_gb": 70, "gpu_power_w": 512.5}`, "step it=1 loss=2 mem=75161927680GiBy power=512.5"},
		{"no list of numbers", `{"step": 1, "loss": 2, "gpu_temp": [61, null]}`, `step it=1 loss=2 gpu_temp:"[61, null]"`},
		{"by themselves", `{"timestamp": "2026-06-12T10:30:05Z", "hostname": "gpu-node-1", "gpu_temp": [61]}`, "sample host=gpu-node-1 stamp=2026-06-12T10:30:05Z gpu0.3=61"},
		{"by themselves, without a time", `{"gpu_temp": [61]}`, other},
		{"with the label of its writer", `{"_timestamp": 1781260205.5, "system.gpu.3.temp/l:node-1": 51}`, "sample " + unix + " gpu3.3=51"},
		{"without a time", `{"system.gpu.0.gpu": 97.0}`, other},
		{"no metric of nvml", `{"_timestamp": 1781260205.5, "system.gpu.0.memory": 35, "system.gpu.0.fanSpeed": 30}`, other},
		{"no device", `{"_timestamp": 1781260205.5, "system.gpu.x.gpu": 35, "system.gpu.70000.gpu": 1, "system.gpu.-1.gpu": 1, "system.gpu": 1}`, other},
		{"not finite", `{"_timestamp": 1781260205.5, "system.gpu.0.gpu": NaN, "system.gpu.0.temp": Infinity}`, other},
		{"other hardware", `{"_timestamp": 1781260205.5, "system.cpu": 12.5, "system.gpu.process.0.gpu": 1}`, other},
		{"beside a loss", `{"_timestamp": 1781260205.5, "loss": 2.5, "system.gpu.0.powerWatts": 512.5}`, "step loss=2.5 " + unix + " gpu0.4=512.5"},
	})
}

func TestParseTimes(t *testing.T) {
	testParse(t, []parseTest{
		{"time as text", `{"timestamp": "2026-08-22T10:00:14.5Z", "loss": 1}`, "step loss=1 stamp=2026-08-22T10:00:14.5Z"},
		{"seconds", `{"time": 1781260205.123456789, "loss": 1}`, "step loss=1 unix=1781260205123456789(1781260205.123456789)"},
		{"milliseconds", `{"ts": 1781260206001, "loss": 1}`, "step loss=1 unix=1781260206001000000(1781260206001)"},
		{"microseconds", `{"ts": 1781260206001002, "loss": 1}`, "step loss=1 unix=1781260206001002000(1781260206001002)"},
		{"nanoseconds", `{"ts": 1781260206001002003, "loss": 1}`, "step loss=1 unix=1781260206001002003(1781260206001002003)"},
		{"seconds as text", `{"ts": "1781260205.5", "loss": 1}`, "step loss=1 unix=1781260205500000000(1781260205.5)"},
		{"time since the start", `{"time": 12.5, "loss": 1}`, "step loss=1 time:12.5"},
		{"no time", `{"time": "soon", "loss": 1}`, `step loss=1 time:"soon"`},
		{"a checkpoint behind a step", `{"step": 50, "checkpoint_s": 19.5, "rank": 3}`, "side it=50 rank=3 stage:checkpoint_s=19.5"},
		{
			"timers of both passes", `{"step": 50, "loss": 2, "forward_backward_s": 0.9, "fwd_bwd_ms": 800}`,
			"step it=50 loss=2 stage:forward_backward_s=0.9 stage:fwd_bwd_ms=0.8",
		},
		{"a step with a checkpoint", `{"step": 50, "loss": 2, "checkpoint_s": 19.5, "forward_ms": 250}`, "step it=50 loss=2 stage:checkpoint_s=19.5 stage:forward_ms=0.25"},
		{"no time", `{"step": 50, "loss": 2, "forward": 0.25}`, "step it=50 loss=2 forward:0.25"},
		{"milliseconds a step", `{"step_time_ms": 250, "iter": 1}`, "step it=1 duration=0.25ms"},
		{"steps a second", `{"steps_per_second": 4, "loss": 1}`, "step duration=0.25 loss=1 mean"},
	})
}

func TestParseUnits(t *testing.T) {
	testParse(t, []parseTest{
		{"gpus in percent", `{"gpu_util": [97, 98, 1, 0]}`, "step gpus=[0.97 0.98 0.01 0]"},
		{"gpus as shares", `{"gpu_util": [0.97, 1.0]}`, "step gpus=[0.97 1]"},
		{"gpus as text", `{"gpu_util": ["97", "98 %"]}`, "step gpus=[0.97 0.98]"},
		{"one gpu", `{"gpu_util": 97}`, "step one gpus=[0.97]"},
		{"one gpu as share", `{"gpu_util": 0.5}`, "step one gpus=[0.5]"},
		{"one gpu as text", `{"gpu_util": "97%"}`, "step one gpus=[0.97]"},
		{"no gpus", `{"gpu_util": ["n/a"], "loss": 1}`, `step loss=1 gpu_util:"[\"n/a\"]"`},
		{"mfu", `{"mfu": 0.41}`, "step mfu=0.41"},
		{"mfu in percent", `{"mfu": 41}`, "step mfu=0.41%"},
		{"mfu as text", `{"mfu": "41%"}`, "step mfu=0.41%"},
		{
			"memory", `{"memory_gb": 2, "max_memory_mib": 3, "reserved_gb": 4, "max_memory_reserved": 5}`,
			"step mem=2147483648GiBy peak=3145728MiBy reserved=4294967296GiBy reservedpeak=5",
		},
		{"flops", `{"tflops": 2, "total_tflops": 16}`, "step flops=16000000000000TFLOP/s flops/gpu=2000000000000TFLOP/s"},
		{"tokens", `{"tokens_per_second": 8, "tgs": 4, "tokens_seen": 100}`, "step seen=100 tokens/s=8 tokens/s/gpu=4"},
		{"ranks", `{"rank": 3, "local_rank": 1, "world_size": 8, "loss": 1}`, "step world=8 local=1 loss=1 rank=3"},
		{"no rank", `{"rank": -1, "loss": 1}`, "step loss=1 rank:-1"},
		{"no speed", `{"steps_per_second": 0, "loss": 1}`, "step loss=1 steps_per_second:0"},
	})
}

func TestParseKinds(t *testing.T) {
	testParse(t, []parseTest{
		{"the time of an evaluation beside a step", `{"loss": 1, "eval_runtime": 2}`, "step loss=1 eval_runtime:2"},
		{"evaluation", `{"step": 5, "eval_loss": 2, "eval_runtime": 3, "eval_accuracy": 0.5}`, "evaluation it=5 duration=3 vloss=2 eval_accuracy:0.5"},
		{"evaluation without a loss", `{"step": 5, "eval_accuracy": 0.5}`, "evaluation it=5 eval_accuracy:0.5"},
		{"validation beside a step", `{"step": 5, "loss": 1, "val_loss": 2}`, "step it=5 loss=1 vloss=2"},
		{"timers that begin with t", `{"step": 5, "loss": 1, "t_data": 0.5, "t_fwd": 1, "t_iter": 2}`, "step it=5 duration=2 loss=1 stage:t_data=0.5 stage:t_fwd=1"},
		{"summary", `{"train_runtime": 70.5, "train_samples_per_second": 1.2, "train_loss": 2}`, "summary duration=70.5 loss=2 samples/s=1.2"},
	})
}

func TestParseTrainers(t *testing.T) {
	testParse(t, []parseTest{
		{
			"ms-swift", `{'loss': '0.6', 'global_step/max_steps': '1/60', 'elapsed_time': '56s', 'memory(GiB)': '2', 'train_speed(s/it)': '55.54'}`,
			`step it=1 of=60 duration=55.54 loss=0.6 reservedpeak=2147483648GiBy mean elapsed_time:"56s"`,
		},
		{
			"ms-swift with Megatron", `{'loss': 0.6, 'iteration': '5/100', 'elapsed_time': '56s', 'train_speed(s/it)': 11.2}`,
			`step it=5 of=100 duration=11.2 loss=0.6 mean elapsed_time:"56s"`,
		},
		{"no number of steps", `{'loss': 0.6, 'iteration': '5/?'}`, `step loss=0.6 iteration:"5/?"`},
		{"a step of an epoch", `{'loss': 0.6, 'step': '5/100'}`, `step loss=0.6 step:"5/100"`},
		{"ms-swift, older", `{'loss': 0.5, 'train_speed(iter/s)': 0.25}`, "step duration=4 loss=0.5 mean"},
		{
			"LLaMA-Factory",
			`{"current_steps": 2, "total_steps": 12, "loss": 3.8, "lr": 0.1, "epoch": 0.2, "percentage": 16.67, "throughput": 89.39, "total_tokens": 128, "vram_allocated": 2.0, "vram_reserved": 3.0}`,
			"step it=2 of=12 epoch=0.2 loss=3.8 lr=0.1 seen=128 tokens/s=89.39 peak=2147483648GiBy reservedpeak=3221225472GiBy percentage:16.67",
		},
		{
			"LLaMA-Factory's evaluation", `{"current_steps": 6, "total_steps": 12, "eval_loss": 3, "epoch": 0.6, "throughput": 89.85}`,
			"evaluation it=6 of=12 epoch=0.6 vloss=3 tokens/s=89.85",
		},
		{"LLaMA-Factory's last row", `{"current_steps": 12, "total_steps": 12, "epoch": 1.2, "percentage": 100.0, "throughput": 89.62}`, other},
		{
			"Axolotl",
			`{'loss': '1.5', 'ppl': '4.48', 'memory/max_active (GiB)': '1.5', 'memory/max_allocated (GiB)': '2', 'memory/device_reserved (GiB)': '3', 'tokens/train_per_sec_per_gpu': '1000', 'tokens/total': 128, 'tokens/trainable': 120}`,
			`step loss=1.5 seen=128 tokens/s/gpu=1000 peak=2147483648GiBy reserved=3221225472GiBy ppl:4.48 memory/max_active (GiB):1.5 tokens/trainable:120`,
		},
		{
			"Axolotl's evaluation", `{'eval_loss': 1.5, 'eval_ppl': 4.48, 'memory/max_allocated (GiB)': 2, 'eval_runtime': 3}`,
			"evaluation duration=3 vloss=1.5 ppl=4.48 peak=2147483648GiBy",
		},
		{
			"a step beside the time of the training", `{'loss': 1, 'num_input_tokens_seen': 128, 'train_runtime': 0.6, 'train_tokens_per_second': 204.2}`,
			"step loss=1 seen=128 tokens/s=204.2 train_runtime:0.6",
		},
		{
			"verl", `{"step":1,"data":{"actor/entropy":0.5,"timing_s/gen":1.5,"timing_s/step":4,"perf/throughput":9}}`,
			"step it=1 duration=4 tokens/s/gpu=9 stage:gen=1.5 actor/entropy:0.5",
		},
		{"verl's validation", `{"step":1,"data":{"val-core/gsm8k/reward/mean@1":0.5}}`, "evaluation it=1 val-core/gsm8k/reward/mean@1:0.5"},
	})
}

func TestParseValues(t *testing.T) {
	testParse(t, []parseTest{
		{"lists of groups", `{"lr": [1e-5, 2e-5], "loss": 1, "betas": [0.9, 0.95]}`, `step loss=1 lr=1e-05 betas:"[0.9, 0.95]"`},
		{"tuples", `{'loss': 1, 'betas': (0.9, 0.95)}`, `step loss=1 betas:"(0.9, 0.95)"`},
		{"NumPy and PyTorch", `{'loss': np.float64(1.5), 'grad_norm': tensor(2.5, device='cuda:0'), 'x': Stop()}`, `step loss=1.5 norm=2.5 x:"Stop()"`},
		{"escapes", `{"lo\u0073s": 1, "note": "a\"b\\\n\u00e9\ud83d\ude00\/", 'p': 'it\'s \x41'}`, `step loss=1 note:"a\"b\\\né😀/" p:"it's A"`},
		{
			"identifiers stay texts", `{"loss": 1, "id": "0012", "big": "12345678901234567890", "hash": "1e5", "acc": "0.85"}`,
			`step loss=1 id:"0012" big:"12345678901234567890" hash:100000 acc:0.85`,
		},
		{"twice the same name", `{"loss": 1, "loss": 2}`, "step loss=2"},
		{"numbers of a step without names we know", `{"step": 3, "reward": 0.5}`, "step it=3 reward:0.5"},
		{"a loss that is none", `{"loss": "n/a", "grad_norm": 1}`, `step norm=1 loss:"n/a"`},
		{"a learning rate of a step", `{"step": 3, "lr": 0.5}`, "step it=3 lr=0.5"},
		{"deep", `{"loss": 1, "a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}`, `step loss=1 a.b.c.d.e.f.g.h:1`},
		{"too deep", `{"loss": 1, "a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}}`, `step loss=1 a.b.c.d.e.f.g.h:"{\"i\": 1}"`},
		{"empty names and texts", `{"": 1, "loss": 2, "x": ""}`, `step loss=2 :1 x:""`},
	})
}

func TestParseOther(t *testing.T) {
	testParse(t, []parseTest{
		{"a logger's record", `{"time": "2026-08-22T10:00:14.5Z", "level": "info", "msg": "saved", "step": 3, "took": 2.5}`, other},
		{"no numbers", `{"step": 3, "state": "starting"}`, other},
		{"numbers that any program has", `{"pid": 3, "elapsed": 2.5}`, other},
		{"settings", `{'learning_rate': 0.0001, 'batch_size': 8, 'max_steps': 1000, 'epochs': 3, 'optimizer': {'name': 'adamw', 'betas': [0.9, 0.95]}}`, other},
		{"empty", `{}`, other},
		{"empty data", `{"data": {}}`, other},
		{"nulls", `{"loss": null}`, other},
	})
}

func TestParseUnfinished(t *testing.T) {
	testParse(t, []parseTest{
		{"half", `{"loss": 2.24, "throughput": 5`, unfinished},
		{"half a name", `{"lo`, unfinished},
		{"half a text", `{"a": "b`, unfinished},
		{"half an escape", `{"a": "b\`, unfinished},
		{"half a code", `{"a": "\u12`, unfinished},
		{"half a list", `{"a": [1, 2`, unfinished},
		{"half a word", `{"a": tru`, unfinished},
		{"half an object", `{"a": {"b": 1`, unfinished},
		{"nothing", `{`, unfinished},
		{"no colon", `{"loss" 2}`, unfinished},
		{"no comma", `{"loss": 2 "lr": 1}`, unfinished},
		{"no value", `{"loss": }`, unfinished},
		{"a name without quotes", `{loss: 2}`, unfinished},
		{"a number with letters", `{"loss": 2abc}`, unfinished},
		{"a comma too many", `{"loss": 2,}`, unfinished},
		{"a sign alone", `{"loss": -}`, unfinished},
	})
}

// LLaMA-Factory without tokens, and after a resumption.
func TestPace(t *testing.T) {
	row := func(step int, elapsed string) string {
		return fmt.Sprintf(`{"current_steps": %d, "total_steps": 1000, "loss": 1, "elapsed_time": "%s"}`, step, elapsed)
	}
	p := object.New(nil)
	for _, c := range []struct {
		step    int
		elapsed string
		want    string
	}{
		{10, "0:00:07", ""}, {20, "0:00:14", "0.725"}, {30, "0:00:41", "2.6"}, // slower: whole seconds contradict the mean since the beginning
		{210, "0:00:05", ""}, {220, "0:00:10", ""}, {230, "0:00:25", "1.5"}, // resumed at 200: 0.024 s is not the mean
		{240, "1 day, 0:00:26", "8640.1"}, {250, "soon", ""},
	} {
		for range 2 { // the same row again
			got := parse(p, row(c.step, c.elapsed))
			want := fmt.Sprintf("step it=%d of=1000 ", c.step)
			if c.want != "" {
				want += "duration=" + c.want + " "
			}
			want += "loss=1 "
			if c.want != "" {
				want += "mean "
			}
			assert.Equal(t, want+fmt.Sprintf(`elapsed_time:"%s"`, c.elapsed), got)
		}
	}
}

// ms-swift's train_speed is the mean since the job's beginning: the time of the steps since the row before is told by the running time.
func TestPaceOfSwift(t *testing.T) {
	p := object.New(nil)
	for _, c := range []struct {
		row, want string
	}{
		{`'loss': 1, 'global_step/max_steps': '5/100', 'elapsed_time': '10s', 'train_speed(s/it)': 2`, "it=5 of=100 duration=2 loss=1"},
		{`'loss': 1, 'global_step/max_steps': '10/100', 'elapsed_time': '20s', 'train_speed(s/it)': 2`, "it=10 of=100 duration=2 loss=1"},
		{`'loss': 1, 'global_step/max_steps': '15/100', 'elapsed_time': '10m 30s', 'train_speed(s/it)': 42`, "it=15 of=100 duration=122 loss=1"},
		{`'eval_loss': 1, 'eval_runtime': 60, 'global_step/max_steps': '15/100', 'elapsed_time': '11m 30s', 'train_speed(s/it)': 46`, ""},
		{`'loss': 1, 'global_step/max_steps': '20/100', 'elapsed_time': '11m 40s', 'train_speed(s/it)': 35`, "it=20 of=100 duration=2 loss=1"},
		{`'loss': 1, 'global_step/max_steps': '25/100', 'elapsed_time': '1d 2h 3m 4s', 'train_speed(s/it)': 3751.36`, "it=25 of=100 duration=18616.8 loss=1"},
		// Resumed: the steps of the job before are not in the mean.
		{`'loss': 1, 'global_step/max_steps': '55/100', 'elapsed_time': '10s', 'train_speed(s/it)': 2`, "it=55 of=100 duration=2 loss=1"},
		{`'loss': 1, 'global_step/max_steps': '60/100', 'elapsed_time': '1m 10s', 'train_speed(s/it)': 7`, "it=60 of=100 duration=12 loss=1"},
		{`'loss': 1, 'global_step/max_steps': '65/100', 'elapsed_time': '1m 11s', 'train_speed(s/it)': 4.8`, "it=65 of=100 duration=4.8 loss=1"},
	} {
		if got := parse(p, "{"+c.row+"}"); c.want != "" {
			got, _, _ = strings.Cut(got, " mean")
			assert.Equal(t, "step "+c.want, got, c.row)
		}
	}
}

func TestMapped(t *testing.T) {
	mapped := map[string]object.Target{
		"reward/mean": object.Gauge("rl.reward.mean", "1", 1), "throughput": object.Mapped(record.TokenThroughput, 1000), "Wait_ms": object.Gauge("wait", "s", 0.001),
		"opt.lr": object.Mapped(record.LearningRate, 1), "busy": object.MappedGPU(0.01),
	}
	p := object.New(mapped)
	assert.Equal(t, "step it=1 lr=0.5 tokens/s=8000 gpus=[0.5 0.25] reward/mean:0.25→rl.reward.mean{1} wait_ms:0.5→wait{s}",
		parse(p, `{"step": 1, "reward/mean": 0.25, "throughput": 8, "wait_ms": "500", "opt": {"lr": 0.5}, "busy": [50, 25]}`))
	assert.Equal(t, "step one gpus=[0.5]", parse(p, `{"busy": 50}`))
	assert.Equal(t, `step loss=1 wait_ms:"n/a"`, parse(p, `{"wait_ms": "n/a", "loss": 1}`))

	cases := map[string]object.Target{"Wait": object.Gauge("b", "s", 1), "WAIT": object.Gauge("a", "s", 1), "wAIT": object.Gauge("c", "s", 1)}
	for range 20 { // maps have no order
		assert.Equal(t, "step loss=1 wait:2→a{s}", parse(object.New(cases), `{"wait": 2, "loss": 1}`))
	}

	var rec record.Record
	for _, e := range []record.Extra{
		{Name: []byte("throughput"), Value: 2},
		{Name: []byte("reward/mean"), Value: 3},
		{Name: []byte("x"), Value: 4},
		{Name: []byte("busy"), Value: 50},
		{Name: []byte("wait_ms"), Text: []byte("?")},
	} {
		rec.AddExtra(e)
	}
	object.Apply(&rec, mapped)
	assert.Equal(t, `step tokens/s=2000 one gpus=[0.5] reward/mean:3→rl.reward.mean{1} x:4 wait_ms:"?"`, show(&rec))
}

func TestMember(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "rows": [ {"x": "]"} ], "b": 2}`:                         `{"x": "]"} `,
		`{"s": "\"rows\": [1]", "o": {"rows": [2]}, "n": null, "rows":[]}`: "",
		"{\n \"rows\": [3\n]\n}":                                           "3\n",
	} {
		got, ok := object.Member([]byte(text), "rows")
		assert.True(t, ok, text)
		assert.Equal(t, want, string(got))
	}
	for _, text := range []string{``, `{}`, `[]`, `{"rows": 1}`, `{"rows": [1`, `{"a`, `{"a"`, `{"a":`, `{"a": "`, `{"a" 1, "rows": []}`, `x`} {
		_, ok := object.Member([]byte(text), "rows")
		assert.False(t, ok, text)
	}
}

// The number of names in a record is bounded, and so is the number of remembered names.
func TestManyNames(t *testing.T) {
	p := object.New(nil)
	for i := range 10_000 {
		assert.Equal(t, fmt.Sprintf("step loss=1 n%d:%d", i, i), parse(p, fmt.Sprintf(`{"loss": 1, "n%d": %d}`, i, i)))
	}
	var w strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&w, `"n%d": %d, `, i, i)
	}
	var rec record.Record
	text := []byte("{" + w.String() + `"loss": 3}`)
	n, found := p.Parse(text, &rec)
	assert.Equal(t, len(text), n)
	assert.True(t, found)
	assert.Len(t, rec.Extra, record.MaxExtra)
	assert.InDelta(t, 3, rec.Get(record.Loss), 0)
}

// Whatever encoding/json accepts as an object is read to its end, with the same numbers.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"loss": 2.345, "step": 1, "x": {"y": [1, {"z": "]}"}]}, "s": "\u00e9\ud83d\ude00", "n": null, "t": true}`,
		`{"a":-0.0e+1,"b":1e400,"c":123456789012345678901234567890}`,
		`{"":{"":{}}}`, `{"a":"\\"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := object.New(nil)
		var rec record.Record
		n, _ := p.Parse(b, &rec)
		if n > len(b) {
			t.Fatalf("read %d of %d bytes", n, len(b))
		}
		if n >= 0 && b[n-1] != '}' {
			t.Fatalf("ends with %q", b[n-1])
		}
		first := show(&rec)
		var again record.Record
		if m, _ := p.Parse(b, &again); m != n || n >= 0 && show(&again) != first {
			t.Fatalf("a second time: %d %s, the first: %d %s", m, show(&again), n, first)
		}
		var want map[string]any
		if len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &want) != nil || slices.Contains(b, 0x7f) {
			return
		}
		if n != len(strings.TrimRight(string(b), " \t\r\n")) {
			t.Fatalf("%q is an object for encoding/json, here it ends at %d", b, n)
		}
		count := map[string]int{} // of repeated or composed names, either value is right
		for _, e := range rec.Extra {
			count[string(e.Name)]++
		}
		for _, e := range rec.Extra {
			if count[string(e.Name)] > 1 {
				continue
			}
			if v, ok := want[string(e.Name)].(float64); ok && e.Text == nil && v != e.Value {
				t.Errorf("%s = %v, encoding/json has %v", e.Name, e.Value, v)
			}
		}
		if v, ok := want["loss"].(float64); ok && math.Float64bits(v) != math.Float64bits(rec.Get(record.Loss)) &&
			strings.Count(strings.ToLower(string(b)), "los") == 1 {
			t.Errorf("loss = %v, encoding/json has %v", rec.Get(record.Loss), v)
		}
	})
}

func TestOrder(t *testing.T) {
	p := object.New(nil)
	for range 3 {
		require.Equal(t, "step it=1 loss=2", parse(p, `{"step": 1, "loss": 2}`))
		require.Equal(t, "step it=1 loss=2", parse(p, `{"loss": 2, "step": 1}`))
		require.Equal(t, "step loss=2 a.loss:1 b.loss:3", parse(p, `{"a": {"loss": 1}, "loss": 2, "b": {"loss": 3}}`))
		require.Equal(t, "step loss=2 b.loss:3", parse(p, `{"loss": 2, "b": {"loss": 3}}`))
	}
}

package train

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// megatron writes the standard output of the last rank, with the argument dump of the first: training_log() of
// megatron/training/training.py, _print_args() of arguments.py and core/timers.py, all @d98e8a64.
type megatron struct {
	*log
	f      *logfile.Log
	prefix string
	stamp  logfile.Stamps // prints "2026-02-11 16:40:00"
	losses float64        // of the steps since the last record
	took   int64
	since  int64
}

// rankPrefix is a launcher's prefix of a line of a rank.
func rankPrefix(launcher string, rank int) string {
	switch launcher {
	case "torchrun": // --tee 3; the number is the rank on its node
		return fmt.Sprintf("[default%d]:", rank%8)
	case "srun": // -l
		return fmt.Sprintf("%d: ", rank)
	case "rank":
		return fmt.Sprintf("[rank%d]:", rank)
	}
	return ""
}

func (p *megatron) open() (err error) {
	p.f, err = p.file("host_0_localhost.output")
	if err != nil {
		return err
	}
	p.prefix = rankPrefix(p.opt.Prefix, p.opt.WorldSize-1)
	p.stamp.Loc = p.opt.Timezone
	m := &p.sim.model
	args := map[string]any{
		"num_layers": m.NumLayers, "hidden_size": m.HiddenSize, "num_attention_heads": m.AttentionHeads, "num_query_groups": m.QueryGroups,
		"kv_channels": m.KVChannels, "ffn_hidden_size": m.FFNHiddenSize, "seq_length": m.SeqLength, "padded_vocab_size": m.PaddedVocabSize,
		"vocab_size": m.VocabSize, "global_batch_size": m.GlobalBatchSize, "world_size": m.WorldSize, "data_parallel_size": m.DataParallelSize,
		"swiglu": python(m.SwiGLU), "micro_batch_size": microBatch, "tensor_model_parallel_size": p.sim.tensorParallel(),
		"pipeline_model_parallel_size": 1, "train_iters": p.opt.horizon(), "log_interval": p.opt.Interval, "eval_interval": p.opt.EvalInterval,
		"lr": string(logfile.AppendRepr(nil, lrMax)), "min_lr": string(logfile.AppendRepr(nil, lrMin)), "lr_warmup_iters": lrWarmup, "seed": p.opt.Seed,
		"bf16": "True", "fp16": "False", "num_experts": "None", "recompute_granularity": "None", "multi_latent_attention": "False",
		"add_bias_linear": "False", "group_query_attention": "False", "attention_output_gate": "False", "mtp_num_layers": "None",
		"data_path": "['data/pile_text_document']", "save": "checkpoints", "tokenizer_type": "HFTokenizer", "optimizer": "adam",
	}
	var lines []string
	for name, v := range args {
		lines = append(lines, fmt.Sprintf("  %s %s %v", name, strings.Repeat(".", 48-len(name)), v))
	}
	slices.Sort(lines)
	first := rankPrefix(p.opt.Prefix, 0)
	p.Line(p.f, fmt.Appendf(nil, "%susing world size: %d, data-parallel size: %d, tensor-model-parallel size: %d, pipeline-model-parallel size: 1",
		first, m.WorldSize, m.DataParallelSize, p.sim.tensorParallel()), logfile.Ignored)
	p.Line(p.f, fmt.Appendf(nil, "%s------------------------ arguments ------------------------", first), logfile.Side)
	for _, text := range lines {
		p.Line(p.f, append([]byte(first), text...), logfile.Side)
	}
	p.Line(p.f, fmt.Appendf(nil, "%s-------------------- end of arguments ---------------------", first), logfile.Side)
	b := append([]byte(p.prefix), "[before the start of training step] datetime: "...)
	p.Line(p.f, append(p.stamp.AppendSeconds(b, p.sim.now), ' '), logfile.Ignored)
	return p.Err
}

func python(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

func (p *megatron) step(s *trainStep) {
	p.losses += s.loss
	p.took += s.took
	p.since++
	if s.n%int64(p.opt.Interval) != 0 {
		return
	}
	mean := float64(p.took) / 1e9 / float64(p.since)
	gbs := p.sim.model.GlobalBatchSize
	p.begin(p.f, KindStep, s)
	p.covered(p.since, p.took)
	p.clocked(s.end, time.Microsecond)

	b := p.Text(p.prefix, " [")
	from := len(b)
	b = append(p.stamp.AppendSeconds(b, s.end), '.')
	b = logfile.AppendPadded(b, s.end%1e9/1e3, 6)
	p.note("timestamp", "", b[from:], 1)
	b = append(b, "] iteration "...)
	b = p.integer(b, "iteration", spans.AttrIteration, s.n, 8)
	b = append(b, '/')
	b = p.integer(b, "iterations", spans.AttrIterations, p.opt.horizon(), 8)
	b = append(b, " | consumed samples: "...)
	b = p.integer(b, "consumed samples", spans.AttrConsumedSamples, s.n*gbs, 12)
	b = p.float(b, "elapsed time per iteration (ms)", spans.AttrStepDuration, mean*1e3, 'f', 1, 1e-3)
	b = p.float(b, "throughput per GPU (TFLOP/s/GPU)", spans.AttrDeviceFlopThroughputReported, p.sim.flops()/(mean*1e12*float64(p.opt.WorldSize)), 'f', 1, 1e12)
	b = p.float(b, "learning rate", spans.AttrLearningRate, s.lr, 'E', 6, 1)
	b = append(b, " | global batch size: "...)
	b = p.integer(b, "global batch size", spans.AttrBatchSize, gbs, 5)
	b = p.float(b, "lm loss", spans.AttrLoss, p.losses/float64(p.since), 'E', 6, 1)
	b = p.float(b, "loss scale", spans.AttrLossScale, 1, 'f', 1, 1)
	b = p.float(b, "grad norm", spans.AttrGradientNorm, s.gradNorm, 'f', 3, 1)
	b = p.float(b, "num zeros", spans.AttrGradientZeros, float64(p.rng.IntN(2000)), 'f', 1, 1)
	b = p.float(b, "params norm", spans.AttrParamsNorm, s.paramsNorm, 'f', 3, 1)
	b = append(b, " | number of skipped iterations: "...)
	b = p.integer(b, "number of skipped iterations", spans.AttrSkippedIterations, 0, 3)
	b = append(b, " | number of nan iterations: "...)
	b = p.integer(b, "number of nan iterations", spans.AttrNaNIterations, 0, 3)
	p.Line(p.f, append(b, " |"...), logfile.Record)
	if s.n == int64(p.opt.Interval) {
		p.memory(s)
	}
	if p.opt.Timers {
		p.timers(mean)
	}
	p.end()
	p.losses, p.took, p.since = 0, 0, 0
}

// memory is report_memory(), printed once: MB is MiB.
func (p *megatron) memory(s *trainStep) {
	b := fmt.Appendf(p.Buf[:0], "%s[Rank %d] (after %d iterations) memory (MB)", p.prefix, p.opt.WorldSize-1, s.n)
	for _, f := range []struct {
		name, attr string
		size       float64
	}{
		{"allocated", spans.AttrMemoryUsage, s.memory},
		{"max allocated", spans.AttrMemoryPeak, s.peak},
		{"reserved", spans.AttrMemoryReserved, 62 * gib},
		{"max reserved", spans.AttrMemoryReservedPeak, 62 * gib},
	} {
		b = append(b, " | "...)
		b = append(b, f.name...)
		b = append(b, ": "...)
		from := len(b)
		b = logfile.AppendRepr(b, round(f.size/(1<<20), 2))
		p.note(f.name, f.attr, b[from:], 1<<20)
	}
	p.Line(p.f, b, logfile.Side)
}

// The timers of --timing-log-level 1 and their shares of a step. forward-backward contains the next two.
var megatronTimers = []struct {
	name  string
	share float64
}{
	{"forward-backward", 0.93},
	{"forward-compute", 0.30},
	{"backward-compute", 0.60},
	{"batch-generator", 0.004},
	{"all-grads-sync", 0.02},
	{"optimizer", 0.04},
}

func (p *megatron) timers(mean float64) {
	p.Line(p.f, p.Text(p.prefix, "(min, max) time across ranks (ms):"), logfile.Side)
	for _, t := range megatronTimers {
		slowest := mean * t.share * (1 + 0.005*p.rng.Float64())
		b := p.Text(p.prefix, "    ")
		from := len(b)
		b = append(append(b, t.name...), ' ')
		for len(b)-from < 48 {
			b = append(b, '.')
		}
		b = append(b, ": ("...)
		from = len(b)
		b = strconv.AppendFloat(b, slowest*1e3*(1-0.03*p.rng.Float64()), 'f', 2, 64)
		least, _ := strconv.ParseFloat(string(b[from:]), 64)
		b = append(b, ", "...)
		from = len(b)
		b = strconv.AppendFloat(b, slowest*1e3, 'f', 2, 64)
		most, _ := strconv.ParseFloat(string(b[from:]), 64)
		p.stage(t.name, most/1e3, least/1e3)
		p.Line(p.f, append(b, ')'), logfile.Side)
	}
}

// eval prints the lines of evaluate_and_print_results().
func (p *megatron) eval(s *trainStep, loss, _ float64) {
	p.begin(p.f, KindEvaluation, s)
	p.rec.TrueEndUnixNano = p.sim.now
	text := []byte(" validation loss at iteration ")
	from := len(text)
	text = strconv.AppendInt(text, s.n, 10)
	p.note("iteration", spans.AttrIteration, text[from:], 1)
	text = append(text, " | lm loss value: "...)
	from = len(text)
	text = strconv.AppendFloat(text, loss, 'E', 6, 64)
	p.note("lm loss value", spans.AttrValidationLoss, text[from:], 1)
	text = append(text, " | lm loss PPL: "...)
	from = len(text)
	text = strconv.AppendFloat(text, math.Exp(min(20, loss)), 'E', 6, 64)
	p.note("lm loss PPL", spans.AttrPerplexity, text[from:], 1)
	text = append(text, " | "...)
	rule := p.prefix + strings.Repeat("-", len(text)+1)
	p.Line(p.f, p.Text(rule), logfile.Ignored)
	p.Line(p.f, p.Text(p.prefix, string(text)), logfile.Record)
	p.Line(p.f, p.Text(rule), logfile.Ignored)
	p.end()
}

func (p *megatron) close() {}

func (p *megatron) integer(b []byte, name, attr string, v int64, width int) []byte {
	from := len(b)
	b = strconv.AppendInt(b, v, 10)
	p.note(name, attr, b[from:], 1)
	return writer.PadLeft(b, from, width)
}

func (p *megatron) float(b []byte, name, attr string, v float64, verb byte, decimals int, scale float64) []byte {
	b = append(b, " | "...)
	b = append(b, name...)
	b = append(b, ": "...)
	from := len(b)
	b = writer.AppendPython(b, v, verb, decimals)
	p.note(name, attr, b[from:], scale)
	return b
}

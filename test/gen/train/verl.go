package train

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// verl writes the step line of verl's console logger and optionally the JSON lines of its FileLogger (verl/utils/tracking.py @1dda039b: LocalLogger,
// FileLogger). Neither has a clock.
type verl struct {
	*log
	f, file2 *logfile.Log
	prefix   string
	fields   []verlField
}

type verlField struct {
	name, attr string
	v, scale   float64
	numpy      bool // prints as np.float64(…): a mean of NumPy
	integer    bool
}

func (p *verl) open() (err error) {
	p.f, err = p.file("verl.log")
	if err != nil {
		return err
	}
	if p.opt.FileLogger {
		p.file2, err = p.file("filelogger.jsonl")
		if err != nil {
			return err
		}
	}
	p.prefix = string(writer.RayPrefix(p.opt.Prefix, "TaskRunner", 10_000+p.rng.IntN(2_000_000), ""))
	return nil
}

// step waits for the evaluation, which is logged with the step, though its time is no part of the step.
func (p *verl) step(s *trainStep) {
	if !p.sim.evaluates() {
		p.print(s, float64(s.took)/1e9, 0, math.NaN())
	}
}

func (p *verl) eval(s *trainStep, loss, seconds float64) {
	logged := *s
	logged.end = p.sim.now
	p.print(&logged, float64(s.took)/1e9, seconds, loss)
}

// The parts of a step and their shares; the rest to 1 is time between them.
var verlStages = []struct {
	name  string
	share float64
}{
	{"gen", 0.45},
	{"reward", 0.03},
	{"old_log_prob", 0.12},
	{"ref", 0.10},
	{"adv", 0.005},
	{"update_actor", actorShare},
	{"update_weights", 0.015},
}

// print writes the record of a step, with the duration seconds, and of its evaluation, which took testing seconds, if not 0.
func (p *verl) print(s *trainStep, seconds, testing, validation float64) {
	gpus := float64(p.opt.WorldSize)
	tokens := math.Round(float64(p.sim.model.GlobalBatchSize*p.sim.model.SeqLength) * (0.9 + 0.1*p.rng.Float64()))
	score := 0.8 * float64(s.n) / float64(s.n+200)
	update := 0.0
	f := p.fields[:0]
	f = append(f,
		verlField{name: "global_seqlen/mean", v: tokens / gpus},
		verlField{name: "actor/entropy", v: 0.05 + 0.5/math.Sqrt(float64(s.n)), numpy: true},
		verlField{name: "actor/pg_loss", v: s.loss / 1000 * p.sign(), numpy: true},
		verlField{name: "actor/ppo_kl", v: 1e-5 * p.rng.Float64(), numpy: true},
		verlField{name: "actor/grad_norm", attr: spans.AttrGradientNorm, v: s.gradNorm, numpy: true},
		verlField{name: "actor/lr", attr: spans.AttrLearningRate, v: 1e-6, numpy: true},
		verlField{name: "critic/score/mean", v: score},
		verlField{name: "critic/advantages/min", v: -1.5 - p.rng.Float64()},
		verlField{name: "response_length/mean", v: tokens / float64(p.sim.model.GlobalBatchSize)},
	)
	stages := len(f)
	for _, st := range verlStages {
		took := seconds * st.share * (1 + 0.01*(p.rng.Float64()-0.5))
		if st.name == "update_actor" {
			update = took
		}
		f = append(f, verlField{name: "timing_s/" + st.name, v: took})
	}
	if testing > 0 {
		f = append(f, verlField{name: "timing_s/testing", v: testing})
	}
	timed := len(f)
	f = append(f, verlField{name: "timing_s/step", attr: spans.AttrStepDuration, v: seconds})
	if testing > 0 {
		f = append(f, verlField{name: "val-core/openai/gsm8k/reward/mean@1", v: min(1, 1/validation)})
	}
	f = append(f,
		verlField{name: "timing_per_token_ms/update_actor", v: update * 1e3 / tokens},
		verlField{name: "perf/mfu/actor", v: p.sim.flops() / (update * gpus * devicePeak), numpy: true},
		verlField{name: "perf/max_memory_allocated_gb", attr: spans.AttrMemoryPeak, v: s.peak / gib, scale: gib},
		verlField{name: "perf/max_memory_reserved_gb", attr: spans.AttrMemoryReservedPeak, v: 62.5, scale: gib},
		verlField{name: "perf/total_num_tokens", attr: spans.AttrTokens, v: tokens, integer: true},
		verlField{name: "perf/time_per_step", v: seconds},
		verlField{name: "perf/throughput", attr: spans.AttrDeviceTokenThroughput, v: tokens / (seconds * gpus)},
		verlField{name: "training/global_step", v: float64(s.n), integer: true},
		verlField{name: "training/epoch", attr: spans.AttrEpoch, v: float64(s.n / stepsPerEpoch), integer: true},
	)
	p.fields = f

	p.start(p.f, s, f[stages:timed])
	b := p.Text(p.prefix, "step:")
	from := len(b)
	b = strconv.AppendInt(b, s.n, 10)
	p.note("step", spans.AttrIteration, b[from:], 1)
	for i := range f {
		b = append(append(append(b, " - "...), f[i].name...), ':')
		b = p.value(b, &f[i], true)
	}
	p.Line(p.f, b, logfile.Record)
	p.end()
	if p.file2 == nil {
		return
	}
	p.start(p.file2, s, f[stages:timed])
	b = p.Text(`{"step":`)
	from = len(b)
	b = strconv.AppendInt(b, s.n, 10)
	p.note("step", spans.AttrIteration, b[from:], 1)
	b = append(b, `,"data":{`...)
	for i := range f {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), f[i].name...), `":`...)
		b = p.value(b, &f[i], false)
	}
	p.Line(p.file2, append(b, "}}"...), logfile.Record)
	p.end()
}

func (p *verl) sign() float64 { return float64(2*p.rng.IntN(2) - 1) }

func (p *verl) start(f *logfile.Log, s *trainStep, stages []verlField) {
	p.begin(f, KindStep, s)
	p.covered(1, s.took)
	for i := range stages {
		p.stage(strings.TrimPrefix(stages[i].name, "timing_s/"), stages[i].v, 0)
	}
}

func (p *verl) value(b []byte, f *verlField, console bool) []byte {
	numpy := console && f.numpy
	if numpy {
		b = append(b, "np.float64("...)
	}
	from := len(b)
	switch {
	case f.integer:
		b = strconv.AppendInt(b, int64(f.v), 10)
	case console:
		b = logfile.AppendRepr(b, f.v)
	default:
		b = appendORJSON(b, f.v)
	}
	scale := f.scale
	if scale == 0 {
		scale = 1
	}
	p.note(f.name, f.attr, b[from:], scale)
	if numpy {
		b = append(b, ')')
	}
	return b
}

// appendORJSON prints a float as orjson does: shortest digits, an exponent below 1e-5 without padding, null for NaN and infinities.
func appendORJSON(b []byte, v float64) []byte {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "null"...)
	case a == 0 || a >= 1e-5 && a < 1e16:
		if a != math.Trunc(a) {
			return strconv.AppendFloat(b, v, 'f', -1, 64)
		}
		return strconv.AppendFloat(b, v, 'f', 1, 64)
	}
	text := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	n, _ := strconv.Atoi(exponent)
	return fmt.Appendf(b, "%se%d", mantissa, n)
}

func (p *verl) close() {}

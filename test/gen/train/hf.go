package train

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// hf writes the log of transformers.Trainer: dicts on standard output, glued to tqdm's progress bar, and
// trainer_state.json, rewritten at every checkpoint (trainer_callback.py: ProgressCallback, TrainerState.save_to_json).
type hf struct {
	*log
	f, state *logfile.Log // state is nil without a directory
	history  bytes.Buffer
	entries  int
	losses   float64
	total    float64 // of all steps
	took     int64
	since    int64
	bar      []byte
}

// stepsPerEpoch is of the simulated data set.
const stepsPerEpoch = 1000

// hfField is a key of a dict. Integers are step counts, printed as integers.
type hfField struct {
	name, attr string
	v          float64
	integer    bool
}

func (p *hf) open() (err error) {
	p.f, err = p.file("train.log")
	if err != nil {
		return err
	}
	if writer.IsDir(p.opt.Out) {
		p.state, err = p.file("trainer_state.json")
	}
	return err
}

func (p *hf) step(s *trainStep) {
	p.losses += s.loss
	if !math.IsNaN(s.loss) {
		p.total += s.loss
	}
	p.took += s.took
	p.since++
	if s.n%int64(p.opt.Interval) == 0 {
		p.record(KindStep, s, s.end, []hfField{
			{name: "loss", attr: spans.AttrLoss, v: round(p.losses/float64(p.since), 4)},
			{name: "grad_norm", attr: spans.AttrGradientNorm, v: float64(float32(s.gradNorm))},
			{name: "learning_rate", attr: spans.AttrLearningRate, v: s.lr},
			{name: "epoch", attr: spans.AttrEpoch, v: epoch(s.n)},
		})
		p.losses, p.took, p.since = 0, 0, 0
	}
	if p.Paced && s.n%int64(p.opt.SaveInterval) == 0 { // unpaced, only the last state would be left to see
		p.save(s.n)
	}
}

func epoch(n int64) float64 { return round(float64(n)/stepsPerEpoch, 4) }

func (p *hf) eval(s *trainStep, loss, seconds float64) {
	samples := p.sim.evalSteps() * float64(p.sim.model.GlobalBatchSize)
	p.record(KindEvaluation, s, p.sim.now, []hfField{
		{name: "eval_loss", attr: spans.AttrValidationLoss, v: float64(float32(loss))},
		{name: "eval_runtime", attr: spans.AttrStepDuration, v: round(seconds, 4)},
		{name: "eval_samples_per_second", v: round(samples/seconds, 3)},
		{name: "eval_steps_per_second", v: round(p.sim.evalSteps()/seconds, 3)},
		{name: "epoch", attr: spans.AttrEpoch, v: epoch(s.n)},
	})
}

func (p *hf) close() {
	if p.run.Steps == 0 {
		return
	}
	n, runtime := float64(p.run.Steps), float64(p.run.EndUnixNano-p.run.StartUnixNano)/1e9
	s := trainStep{n: p.run.Steps, end: p.run.EndUnixNano}
	p.record(KindSummary, &s, s.end, []hfField{
		{name: "train_runtime", attr: spans.AttrStepDuration, v: round(runtime, 4)},
		{name: "train_samples_per_second", attr: spans.AttrSampleThroughput, v: round(n*float64(p.sim.model.GlobalBatchSize)/runtime, 3)},
		{name: "train_steps_per_second", v: round(n/runtime, 3)},
		{name: "train_loss", attr: spans.AttrLoss, v: p.total / n},
		{name: "epoch", attr: spans.AttrEpoch, v: epoch(s.n)},
	})
	p.save(s.n)
}

// record prints a dict to the log and keeps it for the state.
func (p *hf) record(kind string, s *trainStep, end int64, fields []hfField) {
	p.begin(p.f, kind, s)
	p.rec.TrueEndUnixNano = end
	if kind == KindStep {
		p.covered(p.since, p.took)
	}
	b := p.Buf[:0]
	trailing := 0
	if p.opt.Progress {
		if len(p.bar) > 0 { // tqdm.write draws the bar anew behind the record
			b = append(append(b, '\r'), p.bar...)
		}
		p.progress(s.n, end)
		b = append(append(b, '\r'), p.bar...)
		if p.rng.IntN(4) > 0 { // tqdm.write clears the bar first; the bar of another process stays
			trailing = len([]rune(string(p.bar)))
			b = append(b, '\r')
			b = writer.AppendSpaces(b, trailing)
			b = append(b, '\r')
		}
	}
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, '\''), f.name...), "': "...)
		if p.opt.Version == 5 { // since 5, on_log prints f"{v:.4g}"
			b = append(b, '\'')
		}
		from := len(b)
		switch {
		case p.opt.Version == 5 && (math.IsNaN(f.v) || math.IsInf(f.v, 0)):
			b = append(b, logfile.NonFinite(f.v, "nan", "inf")...)
		case p.opt.Version == 5:
			b = strconv.AppendFloat(b, f.v, 'g', 4, 64)
		default:
			b = logfile.AppendRepr(b, f.v)
		}
		p.note(f.name, f.attr, b[from:], 1)
		if p.opt.Version == 5 {
			b = append(b, '\'')
		}
	}
	b = append(b, '}')
	p.Line(p.f, writer.AppendSpaces(b, trailing), logfile.Record)
	p.end()
	p.remember(kind, s, end, fields)
}

// remember adds a record to log_history, keys sorted as json.dumps(sort_keys=True) does.
func (p *hf) remember(kind string, s *trainStep, end int64, fields []hfField) {
	if p.state == nil {
		return
	}
	fields = append(fields, hfField{name: "step", attr: spans.AttrIteration, v: float64(s.n), integer: true})
	if kind == KindSummary {
		fields = append(fields, hfField{name: "total_flos", v: p.flos(s.n)})
	}
	sortFields(fields)
	p.begin(p.state, kind, s)
	p.rec.TrueEndUnixNano = end
	if kind == KindStep {
		p.covered(p.since, p.took)
	}
	b := p.history.AvailableBuffer()
	if p.entries > 0 {
		b = append(b, ',')
	}
	p.entries++
	b = append(b, "\n    {"...)
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, "\n      \""...), f.name...), "\": "...)
		from := len(b)
		if f.integer {
			b = strconv.AppendInt(b, int64(f.v), 10)
		} else {
			b = writer.AppendJSONRepr(b, f.v)
		}
		p.note(f.name, f.attr, b[from:], 1)
	}
	p.history.Write(append(b, "\n    }"...))
	p.end()
}

func sortFields(fields []hfField) {
	for i := range fields {
		for j := i; j > 0 && fields[j].name < fields[j-1].name; j-- {
			fields[j], fields[j-1] = fields[j-1], fields[j]
		}
	}
}

func (p *hf) flos(n int64) float64 { return p.sim.flops() * float64(n) }

// save rewrites trainer_state.json.
func (p *hf) save(n int64) {
	if p.state == nil || p.Err != nil {
		return
	}
	b := fmt.Appendf(nil, `{
  "best_global_step": null,
  "best_metric": null,
  "best_model_checkpoint": null,
  "epoch": %s,
  "eval_steps": %d,
  "global_step": %d,
  "is_hyper_param_search": false,
  "is_local_process_zero": true,
  "is_world_process_zero": true,
  "log_history": [%s
  ],
  "logging_steps": %d,
  "max_steps": %d,
  "num_input_tokens_seen": 0,
  "num_train_epochs": %d,
  "save_steps": %d,
  "total_flos": %s,
  "train_batch_size": %d,
  "trial_name": null,
  "trial_params": null
}
`, logfile.AppendRepr(nil, epoch(n)), p.opt.EvalInterval, n, p.history.Bytes(), p.opt.Interval, p.opt.horizon(), (p.opt.horizon()+stepsPerEpoch-1)/stepsPerEpoch,
		p.opt.SaveInterval, logfile.AppendRepr(nil, p.flos(n)), p.sim.micro)
	f := p.state
	p.Err = f.F.Truncate(0)
	if p.Err == nil {
		_, p.Err = f.F.Seek(0, io.SeekStart)
	}
	if p.Err == nil {
		_, p.Err = f.F.Write(b)
	}
	f.Lines, f.Records = int64(bytes.Count(b, []byte("\n"))), int64(p.entries)
	f.Sides = f.Lines - f.Records
}

// progress draws tqdm's bar: "  1%|▏         | 10/1000 [00:26<43:49,  2.66s/it]".
func (p *hf) progress(n, end int64) {
	total := max(n, p.opt.horizon())
	share := float64(n) / float64(total)
	b := strconv.AppendInt(p.bar[:0], int64(share*100), 10)
	b = append(writer.PadLeft(b, 0, 3), "%|"...)
	eighths := int(share * 80)
	for i := range 10 {
		switch left := eighths - 8*i; {
		case left >= 8:
			b = append(b, "█"...)
		case left > 0:
			b = append(b, string(rune('▉'+7-left))...)
		default:
			b = append(b, ' ')
		}
	}
	elapsed := float64(end-p.run.StartUnixNano) / 1e9
	per := elapsed / float64(n)
	b = append(b, "| "...)
	b = append(strconv.AppendInt(b, n, 10), '/')
	b = append(strconv.AppendInt(b, total, 10), " ["...)
	b = append(appendClock(b, elapsed), '<')
	b = append(appendClock(b, per*float64(total-n)), ", "...)
	from := len(b)
	if per > 1 {
		b = append(writer.PadLeft(strconv.AppendFloat(b, per, 'f', 2, 64), from, 5), "s/it]"...)
	} else {
		b = append(writer.PadLeft(strconv.AppendFloat(b, 1/per, 'f', 2, 64), from, 5), "it/s]"...)
	}
	p.bar = b
}

// appendClock is tqdm's format_interval: [h:]mm:ss.
func appendClock(b []byte, seconds float64) []byte {
	t := int64(seconds)
	if h := t / 3600; h > 0 {
		b = append(strconv.AppendInt(b, h, 10), ':')
	}
	b = append(logfile.AppendPadded(b, t/60%60, 2), ':')
	return logfile.AppendPadded(b, t%60, 2)
}

package trainlogreceiver

import (
	"bytes"
	"slices"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/hf"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/jsonl"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
)

// detect returns the function that decides, line by line, whether a file found by its content belongs to train_log: a line does if the format, or any format
// for formatAuto, finds a record in the line, and at least one of the line's records is certainly a training's.
func detect(format string, mapped fields, patterns []*pattern.Pattern) tail.Detect {
	p := newParser(format, mapped, patterns)
	var seen certainty
	return step.Detect(func(text []byte, out step.Out) tail.Reads {
		seen = certainty{Out: out, text: text}
		v, _ := p.Line(text, &seen)
		if v != tail.Record || seen.ambiguous && !seen.sure {
			return tail.ReadsNot
		}
		return tail.ReadsOwn
	})
}

// certainty is the output of a parser that distinguishes a training's own records from records of other programs: dicts of settings in a program's source or at
// the program's start ("CONFIG = {'lr': 1e-4, 'epoch': 3}"), and objects of a step with numbers, possibly a step of anything. No record goes further.
type certainty struct {
	step.Out
	text      []byte // the line
	ambiguous bool   // a record of the line may be another program's
	sure      bool   // a record of the line is a training's
}

// Emit sets ambiguous or sure by a record: ambiguous is a dict without a loss that the text calls settings, or an object without a measurement of a training.
// Records of other kinds than steps are a training's.
func (w *certainty) Emit(rec *record.Record) {
	if rec.Kind != record.Step {
		w.sure = true
		return
	}
	settings := rec.Source == hf.Source && !rec.Has(record.Loss) && calledSettings(w.text, rec.Key)
	anyStep := rec.Source == jsonl.Source && !measures(rec)
	if settings || anyStep {
		w.ambiguous = true
	} else {
		w.sure = true
	}
}

// calledSettings reports whether the text before a dict calls the dict settings: "CONFIG = {", "Args({", "settings: {".
func calledSettings(text, dict []byte) bool {
	i := max(bytes.Index(text, dict), 0) // -1: the dict is in a message, of which text has another form
	before := bytes.ToLower(bytes.TrimSpace(text[:i]))
	return bytes.HasSuffix(before, []byte("=")) || bytes.HasSuffix(before, []byte("(")) || bytes.Contains(before, []byte("config")) ||
		bytes.Contains(before, []byte("settings")) || bytes.Contains(before, []byte("args")) || bytes.Contains(before, []byte("param"))
}

// measured are parts of the names of measurements in trainings. Names of trackers have a slash: actor/kl, train/reward.
var measured = [][]byte{
	[]byte("/"), []byte("loss"), []byte("reward"), []byte("acc"), []byte("kl"), []byte("entropy"), []byte("return"), []byte("advantage"), []byte("grad"),
	[]byte("score"), []byte("token"), []byte("perplexity"), []byte("ppl"), []byte("norm"),
}

// measures reports whether a record has a value that only a training has: a field known to the receiver beside the numbers of the step and of ranks, a part of
// the step, a gauge of the configuration, or an unknown field whose name contains an entry of measured.
func measures(rec *record.Record) bool {
	for f := range rec.All() {
		switch f {
		case record.Iteration, record.Iterations, record.Epoch, record.WorldSize, record.LocalRank:
		default:
			return true
		}
	}
	return len(rec.Stages) > 0 || slices.ContainsFunc(rec.Extra, func(e record.Extra) bool {
		name := bytes.ToLower(e.Name)
		return e.Metric != "" || slices.ContainsFunc(measured, func(part []byte) bool { return bytes.Contains(name, part) })
	})
}

// Losses returns a function to be called with each line of a training log. It calls visit with the iteration and the loss of each step, or with its gradient
// norm without a loss. NaN: the step has no iteration.
func Losses(visit func(iteration, value float64)) func(text []byte) {
	p := newParser(formatAuto, nil, nil)
	read := step.Detect(func(text []byte, out step.Out) tail.Reads {
		p.Line(text, &losses{out, visit})
		return tail.ReadsNot
	})
	return func(text []byte) { read(text) }
}

// losses is the output of a parser that tells visit of the losses in the records.
type losses struct {
	step.Out
	visit func(iteration, value float64)
}

// Emit calls visit with a step's loss, or else with its gradient norm.
func (o *losses) Emit(rec *record.Record) {
	for _, f := range []record.Field{record.Loss, record.GradientNorm} {
		if rec.Kind == record.Step && rec.Has(f) {
			o.visit(rec.Get(record.Iteration), rec.Get(f))
			break
		}
	}
	o.Out.Emit(rec)
}

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

// detect recognizes the records of a format, or of all formats.
func detect(format string, mapped fields, patterns []*pattern.Pattern) tail.Detect {
	p := newParser(format, mapped, patterns)
	var w certainty
	return step.Detect(func(text []byte, out step.Out) tail.Reads {
		w = certainty{Out: out, text: text}
		if v, _ := p.Line(text, &w); v != tail.Record || w.ambiguous && !w.sure {
			return tail.ReadsNot
		}
		return tail.ReadsOwn
	})
}

// certainty distinguishes a training's own records from records of other programs: dicts of settings in a program's source or at its start ("CONFIG = {'lr':
// 1e-4, 'epoch': 3}"), and objects of a step with numbers, possibly a step of anything.
type certainty struct {
	step.Out
	text            []byte // the line
	ambiguous, sure bool   // kinds of records seen
}

func (w *certainty) Emit(rec *record.Record) {
	ambiguous := rec.Kind == record.Step && (rec.Source == hf.Source && !rec.Has(record.Loss) && introduced(w.text, rec.Key) ||
		rec.Source == jsonl.Source && !measures(rec))
	w.ambiguous, w.sure = w.ambiguous || ambiguous, w.sure || !ambiguous
}

// introduced says whether the text before a dict calls the dict settings.
func introduced(text, dict []byte) bool {
	i := max(bytes.Index(text, dict), 0)
	before := bytes.ToLower(bytes.TrimSpace(text[:i]))
	return bytes.HasSuffix(before, []byte("=")) || bytes.HasSuffix(before, []byte("(")) || bytes.Contains(before, []byte("config")) ||
		bytes.Contains(before, []byte("settings")) || bytes.Contains(before, []byte("args")) || bytes.Contains(before, []byte("param"))
}

// measured are parts of the names of measurements in trainings. Names of trackers have a slash: actor/kl, train/reward.
var measured = [][]byte{
	[]byte("/"), []byte("loss"), []byte("reward"), []byte("acc"), []byte("kl"), []byte("entropy"), []byte("return"), []byte("advantage"), []byte("grad"),
	[]byte("score"), []byte("token"), []byte("perplexity"), []byte("ppl"), []byte("norm"),
}

// measures says whether a record has more than the number of its step, in words of trainings.
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

// Losses makes a reader of the lines of a training log. The reader calls visit with the iteration and the loss of each step, or with its gradient norm without
// a loss. NaN: the line has no iteration.
func Losses(visit func(iteration, value float64)) func(text []byte) {
	p := newParser(formatAuto, nil, nil)
	read := step.Detect(func(text []byte, out step.Out) tail.Reads {
		p.Line(text, &losses{out, visit})
		return tail.ReadsNot
	})
	return func(text []byte) { read(text) }
}

type losses struct {
	step.Out
	visit func(iteration, value float64)
}

func (o *losses) Emit(rec *record.Record) {
	for _, f := range []record.Field{record.Loss, record.GradientNorm} {
		if rec.Kind == record.Step && rec.Has(f) {
			o.visit(rec.Get(record.Iteration), rec.Get(f))
			break
		}
	}
	o.Out.Emit(rec)
}

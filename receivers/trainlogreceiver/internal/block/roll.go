package block

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// metrics reads the object that ROLL prints between the lines at the beginning and the end of a step, and emits the step's record. Names end with the reduction
// over ranks: "actor_train/total_loss@sum". time/step_* are parts of the step. mine is false for another line, and for an object without a loss, or with those
// of several models.
func (p *Parser) metrics(b []byte, out Out) (v tail.Verdict, mine bool) {
	b = bytes.TrimPrefix(b, []byte("metrics: "))
	if len(b) == 0 || b[0] != '{' {
		return tail.Ignored, false
	}
	rec := out.Record()
	if n, _ := p.objects.Parse(b, rec); n != len(b) || len(rec.Extra) == 0 {
		return tail.Ignored, false
	}
	loss, losses := 0.0, 0
	kept := rec.Extra[:0]
	for _, e := range rec.Extra {
		name, _, _ := bytes.Cut(e.Name, []byte("@"))
		part, timed := bytes.CutPrefix(name, []byte("time/step_"))
		switch {
		case e.Text != nil:
		case timed && string(part) == "total": // of the step before
			continue
		case timed && e.Value >= 0:
			rec.Stages = append(rec.Stages, record.Stage{Name: part, Seconds: e.Value})
			continue
		case bytes.HasSuffix(name, []byte("_train/total_loss")), bytes.HasSuffix(name, []byte("_train/loss")):
			loss, losses = e.Value, losses+1
		case bytes.HasSuffix(name, []byte("_train/grad_norm")):
			rec.Set(record.GradientNorm, e.Value)
		}
		kept = append(kept, e)
	}
	rec.Extra = kept
	if losses != 1 {
		return tail.Ignored, false
	}
	rec.Set(record.Loss, loss)
	p.place(rec)
	out.Emit(rec)
	return tail.Record, true
}

package step

import (
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// twin is, by format (record.Source), the other format with the same steps in the same log: in Megatron-DeepSpeed, DeepSpeed's engine prints lines of each
// step, and then Megatron's training_log prints another (deepspeedai/Megatron-DeepSpeed, megatron/training.py).
var twin = map[string]string{"deepspeed": "megatron", "megatron": "deepspeed"}

// twins reports whether two records are of one step, written by two formats (twin).
func twins(a, b *record.Record) bool {
	return twin[a.Source] == b.Source && b.Source != "" && a.Kind == record.Step && b.Kind == record.Step && a.Has(record.Iteration) &&
		a.Get(record.Iteration) == b.Get(record.Iteration)
}

// absorb moves the content of the waiting record into rec, a record of the same step by the twin format, so that the step gets one span. It returns the held
// lines of the waiting record, which from now on wait with rec. nil: the two are not of one step, or rec does not wait (Open), so the waiting record keeps its
// lines.
func (h *handler) absorb(rec *record.Record) (held []tail.Held) {
	p := &h.pending
	if !p.open || p.unplaced || !rec.Open || !twins(p.rec, rec) {
		return nil
	}
	rec.Merge(p.rec)
	rec.Stages = append(rec.Stages, p.rec.Stages...)
	for _, e := range p.rec.Extra {
		rec.AddExtra(e)
	}
	held = append(held, p.held...)
	p.open, p.held, p.keep = false, p.held[:0], nil // the record has texts in the old memory
	return held
}

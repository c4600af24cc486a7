package step

import (
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// pending is the record that waits for lines which belong to it. Its record owns its bytes.
type pending struct {
	open bool
	it   item
	rec  record.Record
	held []tail.Held
	keep []byte // what the record's slices point into
}

func (p *pending) set(h *handler, it *item, rec *record.Record) {
	p.open, p.it = true, *it
	stages, extra, gpus := p.rec.Stages[:0], p.rec.Extra[:0], p.rec.GPUs[:0]
	p.rec = *rec
	p.rec.Stages, p.rec.Extra, p.rec.GPUs = stages, extra, append(gpus, rec.GPUs...)
	p.keep = p.keep[:0]
	p.take(rec)
	p.held = append(p.held[:0], h.stream.Hold())
}

// take copies the parts of a record that lie in a line.
func (p *pending) take(rec *record.Record) {
	for _, s := range rec.Stages {
		s.Name = p.own(s.Name)
		p.rec.Stages = append(p.rec.Stages, s)
	}
	for _, e := range rec.Extra {
		e.Name = p.own(e.Name)
		if e.Text != nil {
			e.Text = p.own(e.Text)
		}
		p.rec.AddExtra(e)
	}
}

// own copies bytes. When keep grows, what was copied before stays where it is.
func (p *pending) own(b []byte) []byte {
	if len(p.keep)+len(b) > cap(p.keep) {
		p.keep = make([]byte, 0, max(1024, 2*len(b)))
	}
	n := len(p.keep)
	p.keep = append(p.keep, b...)
	return p.keep[n:len(p.keep):len(p.keep)]
}

// join adds a record to the one that waits, if it belongs to it.
func (h *handler) join(rec *record.Record) bool {
	p := &h.pending
	if !p.open || rec.Kind != record.Side && !rec.Join || p.it.rank != h.rank(rec) && rec.Kind != record.Side ||
		rec.Has(record.Iteration) && int64(rec.Get(record.Iteration)) != p.it.iteration || rec.Source != p.rec.Source {
		return false
	}
	p.rec.Merge(rec)
	p.take(rec)
	p.held = append(p.held, h.stream.Hold())
	return true
}

// leave puts the record that waits into the batch.
func (h *handler) leave() {
	p := &h.pending
	if !p.open {
		return
	}
	p.open = false
	h.batch.add(h, &p.it, &p.rec)
	for _, held := range p.held {
		h.stream.Release(held)
	}
	p.held = p.held[:0]
}

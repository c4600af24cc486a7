package step

import (
	"bytes"
	"maps"
	"slices"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// earlier is the state before a record.
type earlier struct {
	who     who
	track   track
	known   bool // a track existed
	trained bool
}

// before keeps the state before a record of w.
func (h *handler) before(w who) earlier {
	e := earlier{who: w, trained: h.state.Trained}
	if t := h.state.Tracks[w]; t != nil {
		e.track, e.known = *t, true
	}
	return e
}

// restore undoes in s the changes of the record. The tracks are copied.
func (e *earlier) restore(s *state) {
	s.Trained, s.Tracks = e.trained, maps.Clone(s.Tracks)
	delete(s.Tracks, e.who)
	if e.known {
		s.Tracks[e.who] = &e.track
	}
}

// pending is the record that waits for further lines. The record owns its bytes.
type pending struct {
	open  bool
	since int64 // Unix ns, time of reading the first line
	it    placed
	rec   *record.Record
	held  []tail.Held
	keep  []byte // memory of the record's slices
	// byName is the position of the first parts of the record, if many.
	byName  map[string]int
	indexed int // number of parts in byName
	before  earlier

	// Of a record without its iteration, until the record is placed.
	unplaced bool
	prefix   line.Prefix
	line     tail.Line
}

// fewParts is the number of parts up to which a record is searched linearly for each new part. Timers log about as many; a line may have 100,000.
const fewParts = 64

func (p *pending) set(h *handler, it *placed, rec *record.Record) {
	p.open, p.unplaced, p.it, p.since = true, false, *it, h.line.Observed.UnixNano()
	p.keep, p.byName, p.indexed = p.keep[:0], nil, 0
	// The record itself waits, and the one that waited before is filled next. The lists stay with their line.
	next := p.rec
	if next == nil {
		next = new(record.Record)
	}
	p.rec, h.rec = rec, next
	next.Stages, rec.Stages = rec.Stages, next.Stages[:0]
	next.Extra, rec.Extra = rec.Extra, next.Extra[:0]
	p.take(next)
	p.held = append(p.held[:0], h.stream.Hold())
}

// wait keeps a record that has no place until its iteration is known.
func (p *pending) wait(h *handler, rec *record.Record) {
	p.set(h, &placed{item: item{rank: h.rank(rec)}}, rec)
	p.unplaced, p.prefix, p.line = true, h.prefix, *h.line
	for _, text := range [...]*[]byte{&p.rec.Stamp, &p.rec.RawUnix, &p.rec.Key, &p.prefix.Stamp, &p.prefix.Container, &p.prefix.IP} {
		if *text != nil {
			*text = p.own(*text)
		}
	}
	p.rec.IDs.Own(p.own)
}

// take copies the parts of a record that lie in a line.
func (p *pending) take(rec *record.Record) {
	for _, s := range rec.Stages {
		if last := len(p.rec.Stages) - 1; s.HasRank && last >= 0 && bytes.Equal(s.Name, p.rec.Stages[last].Name) {
			s.Name = p.rec.Stages[last].Name // a line per rank
			p.rec.Stages = append(p.rec.Stages, s)
			continue
		}
		// A repeated part is the same work of another microbatch.
		if i := p.part(s.Name); i >= 0 {
			p.rec.Stages[i].Seconds += s.Seconds
			p.rec.Stages[i].Min += s.Min
			continue
		}
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

// part is the index of a part in the record; -1: none.
func (p *pending) part(name []byte) int {
	if len(p.rec.Stages) <= fewParts {
		return slices.IndexFunc(p.rec.Stages, func(s record.Stage) bool { return bytes.Equal(s.Name, name) })
	}
	if p.byName == nil {
		p.byName = make(map[string]int)
	}
	for ; p.indexed < len(p.rec.Stages); p.indexed++ {
		p.byName[string(p.rec.Stages[p.indexed].Name)] = p.indexed
	}
	if i, ok := p.byName[string(name)]; ok {
		return i
	}
	return -1
}

// own copies bytes. When keep grows, earlier copies stay where they are.
func (p *pending) own(b []byte) []byte {
	if len(p.keep)+len(b) > cap(p.keep) {
		p.keep = make([]byte, 0, max(1024, 2*len(b)))
	}
	n := len(p.keep)
	p.keep = append(p.keep, b...)
	return p.keep[n:len(p.keep):len(p.keep)]
}

// join adds a record to the waiting record, if the two belong together.
func (h *handler) join(rec *record.Record) bool {
	p := &h.pending
	if p.unplaced {
		if rec.Kind != record.Side || p.it.rank != h.rank(rec) || rec.Source != p.rec.Source {
			return false
		}
		if !p.rec.Has(record.Duration) {
			p.rec.Of = rec.Of
		}
		if rec.Covers > 0 {
			p.rec.Covers = rec.Covers
		}
		p.rec.Merge(rec)
		p.held = append(p.held, h.stream.Hold())
		return true
	}
	// A Side with a rank (Megatron's memory lines) is of the stated rank, whoever logged the step.
	if !p.open || rec.Kind != record.Side && !rec.Join {
		return false
	}
	if !twins(p.rec, rec) && (p.it.rank != h.rank(rec) && (rec.Kind != record.Side || rec.HasRank) ||
		rec.Has(record.Iteration) && int64(rec.Get(record.Iteration)) != p.it.iteration || rec.Source != p.rec.Source) {
		return false
	}
	if rec.Dedup && h.again(rec) {
		return true
	}
	if rec.Has(record.Duration) && (p.it.point || p.it.kindOfDuration == spans.DurationInterval) { // the log states the duration after all
		p.rec.Unset(record.Duration)
		p.it.kindOfDuration, p.it.point = durationKinds[rec.Of], false
		ns := nanos(rec.Get(record.Duration)) * max(p.it.covered, 1)
		if p.it.time == spans.TimeSynthetic { // times were made without the duration
			t := h.track(who{rec.Source, p.it.rank})
			p.it.end, t.End, t.Made = p.it.end+ns, t.End+ns, t.Made+ns
		}
		p.it.start = p.it.end - ns
	}
	p.rec.Merge(rec)
	p.take(rec)
	p.held = append(p.held, h.stream.Hold())
	return true
}

// again says whether a record of the waiting record is a repetition, and remembers it by the id that the record alone would have.
func (h *handler) again(rec *record.Record) bool {
	raw := rec.RawUnix
	if raw == nil {
		raw = rec.Stamp
	}
	it := h.pending.it
	h.identify(rec, &it, h.track(who{rec.Source, it.rank}), raw)
	if !h.seen.before(it.id, h.setOf(&it)) {
		return false
	}
	h.known++
	h.set.Duplicate()
	return true
}

// leave puts the waiting record into the batch.
func (h *handler) leave() {
	p := &h.pending
	if !p.open {
		return
	}
	unplaced := p.unplaced
	p.open, p.unplaced = false, false
	for _, held := range p.held {
		h.stream.Release(held)
	}
	if unplaced {
		prefix, at := h.prefix, h.line
		h.prefix, h.line = p.prefix, &p.line
		h.place(p.rec, &p.it)
		h.prefix, h.line = prefix, at
	}
	h.batch.add(h, &p.it, p.rec)
	p.held = p.held[:0]
}

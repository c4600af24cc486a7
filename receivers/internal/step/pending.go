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

// earlier is the handler's state before a waiting record was placed. A checkpoint made meanwhile has the earlier state, because the record's lines are read
// again.
type earlier struct {
	who     who
	track   track // if known
	known   bool  // the writer had a track
	trained bool  // state.Trained
}

// stateBefore returns the state before a record of writer w is placed.
func (h *handler) stateBefore(w who) earlier {
	e := earlier{who: w, trained: h.state.Trained}
	if t := h.state.Tracks[w]; t != nil {
		e.track, e.known = *t, true
	}
	return e
}

// restore undoes in s, a copy of the handler's state, the changes by the waiting record. The map of tracks is cloned, as the handler goes on with its own.
func (e *earlier) restore(s *state) {
	s.Trained, s.Tracks = e.trained, maps.Clone(s.Tracks)
	delete(s.Tracks, e.who)
	if e.known {
		s.Tracks[e.who] = &e.track
	}
}

// pending is the record that waits for further lines (record.Open). Its slices are copied out of the line, which is gone by then.
type pending struct {
	open    bool           // a record waits
	since   int64          // Unix ns, time of reading the first line
	it      placed         // the record's place
	rec     *record.Record // the record
	held    []tail.Held    // its lines
	keep    []byte         // memory of the record's slices
	byName  map[string]int // index in rec.Stages of the first indexed parts, where there are many
	indexed int
	before  earlier

	// unplaced: a record without its iteration waits for the next line, which states the iteration (record.Unnumbered). The record is placed when it leaves, with
	// the prefix and the line that it came with.
	unplaced bool
	prefix   line.Prefix
	line     tail.Line
}

// fewParts is the number of parts up to which a record is searched linearly for each new part. Timers log about as many; a line may have 100,000.
const fewParts = 64

// set makes a placed record wait for further lines. The current line is held until the record leaves.
func (p *pending) set(h *handler, it *placed, rec *record.Record) {
	p.open, p.unplaced, p.it, p.since = true, false, *it, h.line.Observed.UnixNano()
	p.keep, p.byName, p.indexed = p.keep[:0], nil, 0
	// rec itself waits, and the record that waited before is the next to be filled by a parser: no copying. Only the lists are copied, as their texts lie in the
	// line.
	next := p.rec
	if next == nil {
		next = new(record.Record)
	}
	p.rec, h.rec = rec, next
	next.Stages, rec.Stages = rec.Stages, next.Stages[:0]
	next.Extra, rec.Extra = rec.Extra, next.Extra[:0]
	p.addParts(next)
	p.held = append(p.held[:0], h.stream.Hold())
}

// setUnplaced makes a record wait that cannot be placed before a further line states its iteration.
func (p *pending) setUnplaced(h *handler, rec *record.Record) {
	p.set(h, &placed{item: item{rank: h.rank(rec)}}, rec)
	p.unplaced, p.prefix, p.line = true, h.prefix, *h.line
	for _, text := range [...]*[]byte{&p.rec.Stamp, &p.rec.RawUnix, &p.rec.Key, &p.prefix.Stamp, &p.prefix.Container, &p.prefix.IP} {
		if *text != nil {
			*text = p.copyText(*text)
		}
	}
	p.rec.IDs.Own(p.copyText)
}

// addParts adds the stages and extras of a record to the waiting record, and copies their texts out of the line. A stage with a name that came before is the
// same work of another microbatch: its times are added up. A stage of a rank is put after the same stage of other ranks.
func (p *pending) addParts(rec *record.Record) {
	for _, s := range rec.Stages {
		if last := len(p.rec.Stages) - 1; s.HasRank && last >= 0 && bytes.Equal(s.Name, p.rec.Stages[last].Name) {
			s.Name = p.rec.Stages[last].Name // a line per rank: the name is copied already
			p.rec.Stages = append(p.rec.Stages, s)
			continue
		}
		if i := p.partIndex(s.Name); i >= 0 {
			p.rec.Stages[i].Seconds += s.Seconds
			p.rec.Stages[i].Min += s.Min
			continue
		}
		s.Name = p.copyText(s.Name)
		p.rec.Stages = append(p.rec.Stages, s)
	}
	for _, e := range rec.Extra {
		e.Name = p.copyText(e.Name)
		if e.Text != nil {
			e.Text = p.copyText(e.Text)
		}
		p.rec.AddExtra(e)
	}
}

// partIndex returns the index in rec.Stages of the part with a name; -1: none. Beyond fewParts the names are indexed in a map.
func (p *pending) partIndex(name []byte) int {
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

// copyText returns a copy of b in keep. A full keep is replaced, and earlier copies stay valid in the old memory.
func (p *pending) copyText(b []byte) []byte {
	if len(p.keep)+len(b) > cap(p.keep) {
		p.keep = make([]byte, 0, max(1024, 2*len(b)))
	}
	n := len(p.keep)
	p.keep = append(p.keep, b...)
	return p.keep[n:len(p.keep):len(p.keep)]
}

// joinPending adds a record to the waiting record, if the two are of the same step and rank. It returns true if the record was added, or is a repetition of a
// part, which is left out.
func (h *handler) joinPending(rec *record.Record) bool {
	p := &h.pending
	if p.unplaced {
		return h.joinUnplaced(rec)
	}
	if !p.open || rec.Kind != record.Side && !rec.Join {
		return false
	}
	if p.rec.Kind == record.Ranks && len(rec.Stages) > 0 { // timers behind a report on ranks, such as of a checkpoint, are of the step before
		return false
	}
	if !twins(p.rec, rec) {
		// A Side is of the waiting record's rank, whoever logged it, unless the Side states a rank (Megatron's memory lines).
		otherRank := p.it.rank != h.rank(rec) && (rec.Kind != record.Side || rec.HasRank)
		otherStep := rec.Has(record.Iteration) && int64(rec.Get(record.Iteration)) != p.it.iteration
		if otherRank || otherStep || rec.Source != p.rec.Source {
			return false
		}
	}
	if rec.Dedup && h.isRepeated(rec) {
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
	p.addParts(rec)
	p.held = append(p.held, h.stream.Hold())
	return true
}

// joinUnplaced adds the record of the line with the iteration to the waiting record, which so far lacks an iteration (pending.unplaced). It returns false if
// rec is another record.
func (h *handler) joinUnplaced(rec *record.Record) bool {
	p := &h.pending
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

// isRepeated reports whether rec, a part of the waiting record, came before from another file, and counts the duplicate. A new part is remembered by the id of
// a record of its own.
func (h *handler) isRepeated(rec *record.Record) bool {
	raw := rec.RawUnix
	if raw == nil {
		raw = rec.Stamp
	}
	it := h.pending.it
	h.identify(rec, &it, h.track(who{rec.Source, it.rank}), raw)
	if !h.seen.checkAndAdd(it.id, h.setOf(&it)) {
		return false
	}
	h.duplicates++
	h.set.Duplicate()
	return true
}

// flushPending puts the waiting record, if any, into the batch, and releases its lines.
func (h *handler) flushPending() {
	p := &h.pending
	if !p.open {
		return
	}
	unplaced := p.unplaced
	p.open, p.unplaced = false, false
	for _, held := range p.held {
		h.stream.Release(held)
	}
	if unplaced { // now, as if its own line were the current one
		prefix, current := h.prefix, h.line
		h.prefix, h.line = p.prefix, &p.line
		h.place(p.rec, &p.it)
		h.prefix, h.line = prefix, current
	}
	h.batch.add(h, &p.it, p.rec)
	p.held = p.held[:0]
}

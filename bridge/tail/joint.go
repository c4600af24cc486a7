package tail

import (
	"cmp"
	"slices"
)

// maxKept bounds the lines kept for shared lines.
const maxKept = 100_000

// Lent is a held line that any stream of the Tailer may put into its batch (Stream.Take).
type Lent struct {
	stream *Stream
	held   Held
	bytes  int32
}

// Lend holds the current line until the batches that Take it, of any stream of the Tailer, are accepted or refused: a single batch, unless Share sets a number.
// Call Lend inside Handler.Line only, and not for a line of Hold. tag is returned with the line (Line.Tag) after a restart. Settings.Joint must be set.
func (s *Stream) Lend(tag uint64) Lent {
	h := s.Hold()
	e := &s.held.slots[h]
	e.refs, e.tag = 1, tag
	if s.document {
		return Lent{s, h, minRecordCost} // the line belongs to many records, and each of them counts
	}
	return Lent{s, h, e.bytes}
}

// Share sets the number of batches for a lent line of this stream; 0: none, the line belongs to the current batch. Call Share inside Handler.Line and
// Handler.Expire, at most once, before the first Take.
func (s *Stream) Share(l Lent, batches int) {
	if batches == 0 {
		s.Release(l.held)
		return
	}
	s.held.slots[l.held].refs = int32(batches)
	if batches > 1 {
		if s.shared == nil {
			s.shared = make(map[Held]*bond)
		}
		s.shared[l.held] = &bond{waiting: 1}
		s.t.shared.Add(1)
	}
}

// Take puts a lent line of any stream into the current batch. It is called inside Handler.Line and Handler.Expire only. The zero Lent is no line.
func (s *Stream) Take(l Lent) {
	if l.stream == nil {
		return
	}
	s.batch.lent = append(s.batch.lent, l)
	s.batch.bytes += max(int64(l.bytes), minRecordCost)
}

// bond is a group of lent lines that are released together, because shared lines connect their records. A shared line sent with one batch and waiting for
// another would be read again after a crash, and bring back the records of the first batch, which need all their lines: so these lines are kept, with the lines
// of the other records of shared lines among them, until no shared line waits.
type bond struct {
	waiting int    // shared lines still waiting for a batch
	lines   []Lent // the other lines, which do not wait
	into    *bond  // the bond that absorbed this bond
}

// root returns the bond that has absorbed b, or b.
func (b *bond) root() *bond {
	for b.into != nil {
		b = b.into
	}
	return b
}

// join merges two bonds and returns the merged one. b is nil for the first bond of a batch.
func (b *bond) join(o *bond) *bond {
	if b == nil || b == o {
		return o
	}
	if len(b.lines) < len(o.lines) { // the shorter list is moved
		b, o = o, b
	}
	b.waiting += o.waiting
	b.lines = append(b.lines, o.lines...)
	*o = bond{into: b}
	return b
}

// settleLent settles the lent lines of an accepted or refused batch. A line that waits for no further batch is released, unless a bond keeps the line until no
// shared line of the bond waits. It returns the number of record lines without a further batch.
func (t *Tailer) settleLent(lent []Lent) (records int64) {
	if len(lent) == 0 {
		return 0
	}
	shared := t.shared.Load() > 0 // else none of the lines is shared: sharing is counted before the batch gets the line
	if shared {
		t.sharing.Lock()
		defer t.sharing.Unlock()
	}
	slices.SortFunc(lent, func(a, b Lent) int { return cmp.Compare(a.stream.number, b.stream.number) })
	var all *bond    // of all shared lines in the batch
	done := lent[:0] // lines without a further batch
	for i := 0; i < len(lent); {
		o := lent[i].stream
		o.mu.Lock()
		for ; i < len(lent) && lent[i].stream == o; i++ { // each stream is locked once
			l := lent[i]
			e := &o.held.slots[l.held]
			e.refs--
			if b, ok := o.shared[l.held]; ok {
				all = all.join(b.root())
				o.shared[l.held] = all
				if e.refs == 0 {
					all.waiting--
				}
			}
			if e.refs > 0 {
				continue
			}
			if e.record {
				records++
				e.record = false // already in the accounts, however long it is kept
				o.held.records--
			}
			if shared {
				done = append(done, l)
			} else {
				o.held.remove(l.held)
			}
		}
		o.afterRelease()
		o.mu.Unlock()
	}
	if all != nil {
		t.kept += len(done)
		all.lines = append(all.lines, done...)
		if all.waiting > 0 && t.kept <= t.maxKept { // beyond maxKept, a crash may repeat records
			return records
		}
		done, all.lines = all.lines, nil
		t.kept -= len(done)
	}
	t.removeLent(done)
	return records
}

// removeLent releases lent lines, in their streams, that no batch and no bond needs any more.
func (t *Tailer) removeLent(lines []Lent) {
	for _, l := range lines {
		o := l.stream
		o.mu.Lock()
		o.held.remove(l.held)
		if _, ok := o.shared[l.held]; ok {
			delete(o.shared, l.held)
			t.shared.Add(-1)
		}
		o.afterRelease()
		o.mu.Unlock()
	}
}

// afterRelease brings the stream's counts and flags up to date after lent lines were released.
func (s *Stream) afterRelease() {
	s.changed()
	s.countHeld()
	s.lent.Store(int64(s.held.n))
	s.documentDone()
}

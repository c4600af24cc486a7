package tail

import (
	"cmp"
	"slices"
)

// maxKept bounds the lines that are kept for the sake of shared ones.
const maxKept = 100_000

// Lent is a held line that any stream of the Tailer may put into its batch (Stream.Take).
type Lent struct {
	stream *Stream
	held   Held
	bytes  int32
}

// Lend holds the line being handled until the batches into which it is put (Take), of this or other streams of the Tailer, are accepted or refused. There is
// one such batch unless Share says more. It is called inside Handler.Line only, and not for a line that Hold holds. tag is given back with the line (Line.Tag)
// when a restart reads it again. Settings.Joint must be set.
func (s *Stream) Lend(tag uint64) Lent {
	h := s.Hold()
	e := &s.held.slots[h]
	e.refs, e.tag = 1, tag
	if s.document {
		return Lent{s, h, minRecordCost} // the line belongs to many records, and each of them counts
	}
	return Lent{s, h, e.bytes}
}

// Share says that a lent line of this stream is put into batches so many times; 0: never, it is done with the batch being built. It is called inside
// Handler.Line and Handler.Expire, once at most, before the line was put into a batch.
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

// Take puts a lent line into the batch being built, whichever stream it is of. It is called inside Handler.Line and Handler.Expire only. The zero Lent is no
// line.
func (s *Stream) Take(l Lent) {
	if l.stream == nil {
		return
	}
	s.batch.lent = append(s.batch.lent, l)
	s.batch.bytes += max(int64(l.bytes), minRecordCost)
}

// bond ties lent lines that are let go of together. A shared line that was sent with one batch and waits for another would be read again after a crash, and
// bring back the records of the first batch, which need all of their lines: so these lines are kept, and with the shared ones among them the lines of their
// other records, until none of them waits.
type bond struct {
	waiting int    // shared lines that still wait for a batch
	lines   []Lent // the other lines, which do not wait
	into    *bond  // the bond that this one became a part of
}

func (b *bond) root() *bond {
	for b.into != nil {
		b = b.into
	}
	return b
}

// join makes one of two.
func (b *bond) join(o *bond) *bond {
	if b == nil || b == o {
		return o
	}
	if len(b.lines) < len(o.lines) {
		b, o = o, b
	}
	b.waiting += o.waiting
	b.lines = append(b.lines, o.lines...)
	*o = bond{into: b}
	return b
}

// settleLent takes note that a batch with these lines was accepted or refused, lets go of them, and returns how many of them were records and are in no other
// batch.
func (t *Tailer) settleLent(lent []Lent) (records int64) {
	if len(lent) == 0 {
		return 0
	}
	shared := t.shared.Load() > 0 // else none of these lines is shared: a shared one would have been counted before it came into the batch
	if shared {
		t.sharing.Lock()
		defer t.sharing.Unlock()
	}
	slices.SortFunc(lent, func(a, b Lent) int { return cmp.Compare(a.stream.number, b.stream.number) })
	var all *bond
	done := lent[:0]
	for i := 0; i < len(lent); {
		o := lent[i].stream
		o.mu.Lock()
		for ; i < len(lent) && lent[i].stream == o; i++ {
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
				e.record = false // it is in the accounts, however long it is kept
				o.held.records--
			}
			if shared {
				done = append(done, l)
			} else {
				o.held.remove(l.held)
			}
		}
		o.letGo()
		o.mu.Unlock()
	}
	if all != nil {
		t.kept += len(done)
		all.lines = append(all.lines, done...)
		if all.waiting > 0 && t.kept <= t.maxKept {
			return records
		}
		done, all.lines = all.lines, nil
		t.kept -= len(done)
	}
	t.removeLent(done)
	return records
}

// removeLent lets go of lent lines that were kept while others were looked at.
func (t *Tailer) removeLent(lines []Lent) {
	for _, l := range lines {
		o := l.stream
		o.mu.Lock()
		o.held.remove(l.held)
		if _, ok := o.shared[l.held]; ok {
			delete(o.shared, l.held)
			t.shared.Add(-1)
		}
		o.letGo()
		o.mu.Unlock()
	}
}

// letGo takes note that lent lines were let go of.
func (s *Stream) letGo() {
	s.changed()
	s.tellHeld()
	s.lent.Store(int64(s.held.n))
	s.documentDone()
}

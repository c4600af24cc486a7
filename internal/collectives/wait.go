package collectives

import (
	"math"
	"slices"
)

// waiting are the collectives that wait for more records, in the order of their last record.
type waiting struct {
	oldest, newest *open
	bytes          int64
	// again is the first of the collectives to settle again: they waited for silent inputs. nil: none.
	again *open
}

// The approximate memory of a waiting collective, in bytes: itself and its place in the maps, the room for its ranks, and for each record its origin and its
// rare fields (more).
const (
	collectiveBytes = 800
	partBytes       = 128
	cameBytes       = 110
	moreBytes       = 200
	moreCameBytes   = 16
	detailBytes     = 96
)

// push appends a collective to the list, as the newest.
func (w *waiting) push(c *open) {
	c.older = w.newest
	if w.newest != nil {
		w.newest.newer = c
	} else {
		w.oldest = c
	}
	w.newest = c
}

// unlink takes a collective out of the list.
func (w *waiting) unlink(c *open) {
	if w.again == c {
		w.again = c.newer
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		w.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		w.newest = c.older
	}
	c.older, c.newer = nil, nil
}

// markNewest moves a collective, new or waiting, to the end of the list, because a record of it was read at a time, Unix ns. more is the memory of the record,
// in bytes.
func (j *joiner) markNewest(c *open, at, more int64) {
	c.last = max(c.last, at) // inputs are read concurrently
	if !c.waiting {
		c.track.insert(c)
		j.enlist(c)
		return
	}
	j.bytes += more
	if c != j.newest {
		j.unlink(c)
		j.push(c)
	}
}

// enlist adds a collective that does not wait yet to the list, and counts its memory.
func (j *joiner) enlist(c *open) {
	c.waiting = true
	c.comm.open++
	j.bytes += c.bytes
	j.push(c)
}

// end ends the wait of a collective with an outcome, and puts it into j.ended, for close.
func (j *joiner) end(c *open, why Outcome) {
	c.outcome = why
	if c.waiting {
		j.withdraw(c)
	}
	j.ended = append(j.ended, c)
}

// withdraw removes a collective from the list of waiting collectives and from its sequence.
func (j *joiner) withdraw(c *open) {
	j.unlink(c)
	j.bytes -= c.bytes
	c.comm.open--
	c.waiting = false
	if c.join != byTime { // byTime: c is in no sequence
		c.track.remove(c.seq)
	}
}

// insert adds an open collective to its sequence.
func (t *track) insert(c *open) {
	t.open[c.seq] = c
	if n := len(t.seqs); n == 0 || t.seqs[n-1] < c.seq { // mostly
		t.seqs = append(t.seqs, c.seq)
		return
	}
	i, _ := slices.BinarySearch(t.seqs, c.seq)
	t.seqs = slices.Insert(t.seqs, i, c.seq)
}

// remove takes the collective of a number out of its sequence.
func (t *track) remove(seq uint64) {
	delete(t.open, seq)
	switch i, ok := slices.BinarySearch(t.seqs, seq); {
	case !ok:
	case i == 0 && len(t.seqs) > 1: // mostly: nothing has to be moved
		t.seqs = t.seqs[1:]
	default:
		t.seqs = slices.Delete(t.seqs, i, i+1)
	}
}

// startInput ends the silence of an input. When no input is silent all ranks are known, and collectives that waited for further ranks are settled again.
func (j *joiner) startInput(in *input) {
	if in.started {
		return
	}
	in.started = true
	if j.silent--; j.silent == 0 {
		j.again = j.oldest
	}
}

// againMost bounds the collectives settled again with one record: leaving collectives go into the current batch.
const againMost = 8

// settleAgain settles again up to most of the collectives that waited for silent inputs, the oldest first: collectives that are full now end.
func (j *joiner) settleAgain(most int) {
	for ; j.again != nil && most > 0; most-- {
		c := j.again
		j.again = c.newer
		j.joiningOf(c.join).settle(c)
	}
}

// limitMemory keeps the memory of waiting collectives, and of the state of communicators, within MaxStateBytes each: idle communicators are dropped, and while
// that is not enough, the oldest collectives end incomplete, which makes more communicators idle.
func (j *joiner) limitMemory() {
	most := j.set.MaxStateBytes
	for j.dropIdle(); j.oldest != nil && max(j.bytes, j.remembered) > most; j.dropIdle() {
		j.endIncomplete(j.oldest, Evicted)
	}
}

// expireMost bounds the records that leave in one call of expire: a batch.
const expireMost = 2_000

// expire gives up the collectives whose last record was read before the given time, Unix ns, less a quarter of HangTimeout: the oldest first, about a batch of
// them per call. Callers call again until none is left. math.MaxInt64 is the end of reading: every collective leaves, once no input has an unfinished record.
func (j *joiner) expire(before int64) {
	why := TimedOut
	if before == math.MaxInt64 { // end of reading: the inputs first end their unfinished records
		why = Ended
		if j.begun > 0 {
			return
		}
	} else {
		j.aliveSince = before
		before -= j.set.HangTimeout.Nanoseconds() / 4 // inputs give up unfinished records a little earlier
	}
	j.settleAgain(expireMost / usualParts) // about a batch of them
	j.close()
	for records := 0; j.oldest != nil && j.oldest.last < before && records < expireMost; {
		records += len(j.oldest.parts)
		j.endIncomplete(j.oldest, why)
	}
}

// resume ends the collectives joined by number whose records were all sent before a restart: their further records are late (departures). Collectives joined by
// counting wait on, because further records would not find them.
func (j *joiner) resume() {
	var next *open
	for c := j.oldest; c != nil; c = next {
		next = c.newer
		if c.known && c.join == byNumber {
			j.end(c, Ended) // not sent again, and no conclusion from missing ranks
		}
	}
	j.close()
}

// endIncomplete ends an incomplete collective, and closes every collective that ends with it.
func (j *joiner) endIncomplete(c *open, why Outcome) {
	j.joiningOf(c.join).giveUp(c, why)
	j.close()
}

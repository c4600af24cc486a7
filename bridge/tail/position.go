package tail

import (
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
)

// piece is a range of bytes of one of a stream's files.
type piece struct {
	file *file
	checkpoint.Range
}

// lineBatch has the lines that one Cut covers: the pieces of the stream whose fate hangs on one delivery.
type lineBatch struct {
	stream  *Stream
	pieces  []piece
	lent    []Lent // lines of this and other streams that are held until then
	records int64  // record lines, without lent ones
	bytes   int64  // bytes that the record lines take from the budget
	length  int64  // of all pieces together
	places  []place
	cut     time.Time // when it was
	what    Delivery
	from    *mark // InOrder: where it begins
}

// extent is how much there is in a batch: bytes of its pieces, taken as one text, record lines among them, and lent lines.
type extent struct {
	bytes, records int64
	lent           int
}

// place is the part of a batch that became one record.
type place struct{ from, to extent }

func (b *lineBatch) extent() extent { return extent{b.length, b.records, len(b.lent)} }

// mark is where a batch begins: the positions not accepted before it, and the handler's state at its beginning.
type mark struct {
	number int
	state  []byte
	at     map[*file]int64
}

// add puts a piece into the batch. Neighbours are merged, so lines that are not held cost one piece per chunk.
func (b *lineBatch) add(f *file, begin, end int64) {
	b.length += end - begin
	if n := len(b.pieces); n > 0 {
		if last := &b.pieces[n-1]; last.file == f && last.End == begin {
			last.End = end
			return
		}
	}
	f.outstanding++
	b.pieces = append(b.pieces, piece{f, checkpoint.Range{Begin: begin, End: end}})
}

func (b *lineBatch) empty() bool { return len(b.pieces) == 0 && len(b.lent) == 0 }

// done gives the pieces back.
func (b *lineBatch) done() {
	for i := range b.pieces {
		b.pieces[i].file.outstanding--
	}
	clear(b.pieces)
	clear(b.lent)
	*b = lineBatch{pieces: b.pieces[:0], lent: b.lent[:0], places: b.places[:0]}
}

// held is a line that waits for its other half.
type held struct {
	piece
	at     int64 // when it was read, Unix ns
	bytes  int32
	refs   int32  // number of batches that a lent line is in, or will be in
	tag    uint64 // as above: the Line.Tag of the line when it is read again
	record bool
	next   Held // next in the free list
}

// heldLines stores held lines under stable numbers, so that holding and releasing neither hash nor move anything.
type heldLines struct {
	slots []held
	free  Held // first free slot, -1 for none
	n     int
	// bytes is about how much memory the lines take; records is how many of them are records.
	bytes, records int64
	told           struct{ bytes, records int64 } // how much of these the Tailer was told
}

// heldCost is the memory of a held line, with the state that a handler keeps for it: for a call that has begun tq_trace 1.6 KB, by a heap profile of 72,000.
func heldCost(e *held) int64 { return 2<<10 + int64(e.bytes) }

func (h *heldLines) put(e held) Held {
	h.n++
	h.bytes += heldCost(&e)
	e.file.outstanding++
	if h.free >= 0 {
		i := h.free
		h.free = h.slots[i].next
		h.slots[i] = e
		return i
	}
	h.slots = append(h.slots, e)
	return Held(len(h.slots) - 1)
}

// remove returns the held line and frees its slot; false for one that is not held.
func (h *heldLines) remove(i Held) (held, bool) {
	if i < 0 || int(i) >= len(h.slots) || h.slots[i].file == nil {
		return held{}, false
	}
	e := h.slots[i]
	h.n--
	h.bytes -= heldCost(&e)
	if e.record {
		h.records--
	}
	e.file.outstanding--
	if h.n == 0 {
		// A burst of held lines must not keep its memory for ever.
		if cap(h.slots) > 4096 {
			h.slots = nil
		}
		h.slots, h.free = h.slots[:0], -1
		return e, true
	}
	h.slots[i] = held{next: h.free}
	h.free = i
	return e, true
}

// oldest returns a time before which a share of the held lines, or more, were read.
func (h *heldLines) oldest(share int) time.Time {
	at := make([]int64, 0, h.n)
	for i := range h.slots {
		if h.slots[i].file != nil {
			at = append(at, h.slots[i].at)
		}
	}
	slices.Sort(at)
	return time.Unix(0, at[len(at)/share]+1)
}

package trainmetricsconnector

import (
	"encoding/binary"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxSeen bounds the ids of one generation: 4 MiB of ids in a half-full table, 16 MiB for both generations.
const maxSeen = 1 << 19

// seen remembers which spans were counted, in two generations: an id is known for at least one window (and at most
// two) after it was last met, unless more than maxSeen other ids came meanwhile.
type seen struct {
	current, previous idSet
	window            int64 // ns
	since             int64 // Unix ns: start of the current generation
	max               int
	early             int64  // generations ended by their size, not their age
	warmed            uint64 // of no meaning: it keeps the compiler from leaving out warm
}

// advance starts a new generation when the current one is old enough.
func (s *seen) advance(now int64) {
	switch age := now - s.since; {
	case age >= 2*s.window:
		s.current.clear()
		s.previous.clear()
		s.since = now
	case age >= s.window:
		s.rotate()
		s.since = now
	}
}

func (s *seen) rotate() {
	s.current, s.previous = s.previous, s.current
	s.current.clear()
}

// known reports whether the id was met before, and remembers it. An id that is asked for again and again (a batch
// that is retried for hours) stays known.
func (s *seen) known(id uint64, now int64) bool {
	if s.current.has(id) {
		return true
	}
	old := s.previous.has(id)
	s.current.add(id)
	if s.current.n >= s.max {
		s.rotate()
		s.since = now
		s.early++
	}
	return old
}

// warm reads the slots where the ids of a chunk are looked for. The tables are larger than the caches, and this way the
// processor waits for all the slots at once in place of one after the other (measured: a third of the time per span).
func (s *seen) warm(chunk []observation) {
	s.warmed += s.current.touch(chunk) + s.previous.touch(chunk)
}

// idOf is 64 bits that stand for a span. Span ids alone may be small numbers that repeat in every trace.
func idOf(trace pcommon.TraceID, span pcommon.SpanID) uint64 {
	hi, lo := binary.BigEndian.Uint64(trace[:8]), binary.BigEndian.Uint64(trace[8:])
	id := binary.BigEndian.Uint64(span[:]) ^ bits.RotateLeft64(lo*0x9e3779b97f4a7c15, 29) ^ hi*0xc2b2ae3d27d4eb4f
	return max(id, 1) // 0 marks a free slot
}

// idSet is a hash table of ids, at most half full, with linear probing.
type idSet struct {
	slots []uint64 // a power of two
	n     int
}

const minSlots = 1 << 10

func (s *idSet) home(id uint64) uint64 {
	return (id * 0x9e3779b97f4a7c15) >> (64 - bits.TrailingZeros(uint(len(s.slots))))
}

func (s *idSet) has(id uint64) bool {
	if s.n == 0 {
		return false
	}
	mask := uint64(len(s.slots) - 1)
	for i := s.home(id); ; i = (i + 1) & mask {
		switch s.slots[i] {
		case id:
			return true
		case 0:
			return false
		}
	}
}

// touch reads the slot of each id, and returns a number of no meaning.
func (s *idSet) touch(chunk []observation) (sum uint64) {
	if s.n == 0 {
		return 0
	}
	for i := range chunk {
		sum += s.slots[s.home(chunk[i].id)]
	}
	return sum
}

// add expects an id that is not in the set.
func (s *idSet) add(id uint64) {
	if 2*s.n >= len(s.slots) {
		old := s.slots
		s.slots, s.n = make([]uint64, max(minSlots, 2*len(old))), 0
		for _, o := range old {
			if o != 0 {
				s.add(o)
			}
		}
	}
	mask := uint64(len(s.slots) - 1)
	i := s.home(id)
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = id
	s.n++
}

func (s *idSet) clear() {
	clear(s.slots)
	s.n = 0
}

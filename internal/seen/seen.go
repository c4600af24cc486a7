// Package seen remembers the spans that a component took, to recognise a batch sent again.
package seen

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxIDs bounds the ids of one generation: 4 MiB of ids in a half-full table, 16 MiB for both generations.
const maxIDs = 1 << 19

// Seen remembers ids in two generations: an id is known for at least one window (and at most two) after its last use, unless more than maxIDs ids came
// meanwhile. It is not safe for concurrent use.
type Seen struct {
	// Early counts generations that ended by their size, not their age.
	Early int64

	current, previous idSet
	window            int64 // ns
	since             int64 // Unix ns: start of the current generation
	max               int
	warmed            uint64 // without meaning: keeps the compiler from leaving out Warm
}

// New remembers ids for a window.
func New(window time.Duration, now time.Time) Seen {
	return Seen{window: int64(window), since: now.UnixNano(), max: maxIDs}
}

// Last remembers at least the last most ids, for any time: without calls of Advance.
func Last(most int) Seen { return Seen{window: math.MaxInt64, max: most} }

// Begin has the window of all ids begin now, Unix ns.
func (s *Seen) Begin(now int64) { s.since = now }

// Advance starts a new generation when the current one is a window old; after two windows without a call both generations are forgotten. It is called before
// ids are asked for. now is Unix ns.
func (s *Seen) Advance(now int64) {
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

// rotate starts a new generation: the current one becomes the previous, and the one before is forgotten, its table reused.
func (s *Seen) rotate() {
	s.current, s.previous = s.previous, s.current
	s.current.clear()
}

// Has reports whether the id is known. Unlike Known, the call remembers nothing.
func (s *Seen) Has(id uint64) bool { return s.current.has(id) || s.previous.has(id) }

// Known reports whether the id is known, and remembers the id. An id that is asked for again and again (a batch retried for hours) stays known.
func (s *Seen) Known(id uint64, now int64) bool {
	if !s.current.add(id) {
		return true
	}
	old := s.previous.has(id)
	if s.current.n >= s.max {
		s.rotate()
		s.since = now
		s.Early++
	}
	return old
}

// Warm reads the slots of an id. The tables are larger than the caches; a caller that warms a chunk of ids first waits for all slots at once, not one after the
// other (measured: a third of the time per span).
func (s *Seen) Warm(id uint64) { s.warmed += s.current.touch(id) + s.previous.touch(id) }

// ID is a 64-bit hash of a span's ids, never 0. Span ids alone may be small numbers that repeat in every trace.
func ID(trace pcommon.TraceID, span pcommon.SpanID) uint64 {
	hi, lo := binary.BigEndian.Uint64(trace[:8]), binary.BigEndian.Uint64(trace[8:])
	id := binary.BigEndian.Uint64(span[:]) ^ bits.RotateLeft64(lo*0x9e3779b97f4a7c15, 29) ^ hi*0xc2b2ae3d27d4eb4f
	return max(id, 1) // 0 marks a free slot
}

// idSet is a hash table of ids, at most half full, with linear probing.
type idSet struct {
	slots []uint64 // a power of two
	n     int      // ids
}

const minSlots = 1 << 10

// home is the slot where the search for an id begins: the upper bits of a multiplicative hash.
func (s *idSet) home(id uint64) uint64 {
	return (id * 0x9e3779b97f4a7c15) >> (64 - bits.TrailingZeros(uint(len(s.slots))))
}

// has reports whether an id is in the set.
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

// touch reads the slot of an id, and returns a number of no meaning.
func (s *idSet) touch(id uint64) uint64 {
	if s.n == 0 {
		return 0
	}
	return s.slots[s.home(id)]
}

// add adds an id, and reports whether the id is new in the set. The id must not be 0, which marks a free slot. A table that is half full is doubled first:
// searches stay short.
func (s *idSet) add(id uint64) bool {
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
	for i := s.home(id); ; i = (i + 1) & mask {
		switch s.slots[i] {
		case id:
			return false
		case 0:
			s.slots[i] = id
			s.n++
			return true
		}
	}
}

func (s *idSet) clear() {
	clear(s.slots)
	s.n = 0
}

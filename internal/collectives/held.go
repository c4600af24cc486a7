package collectives

import "slices"

// holds keeps what records came by (a lent line of a file, an offset of a topic) apart from what they say, so that only Joiner and Input depend on the type H.
// Freed slots are used again. The zero value is ready.
type holds[H any] struct {
	slots []hold[H]
	free  slot // the first slot that holds nothing
	used  int  // slots that hold something
}

type hold[H any] struct {
	held H
	next slot // the next slot of the same record; in a free slot the next free one
}

// slot is the number of a hold, counted from 1.
type slot int32

// nowhere is the slot of a record that came by nothing.
const nowhere slot = 0

// maxIdle bounds the slots that are kept while nothing is held.
const maxIdle = 1 << 16

// put holds the values that one record came by and returns their first slot.
func (h *holds[H]) put(held []H) slot {
	first := nowhere
	for _, one := range slices.Backward(held) {
		first = h.add(hold[H]{one, first})
	}
	return first
}

func (h *holds[H]) add(one hold[H]) slot {
	h.used++
	if h.free == nowhere {
		h.slots = append(h.slots, one)
		return slot(len(h.slots))
	}
	at := h.free
	s := &h.slots[at-1]
	h.free = s.next
	*s = one
	return at
}

// take appends the values held from a first slot on, in the order in which they were put, and frees the slots.
func (h *holds[H]) take(to []H, first slot) []H {
	for at := first; at != nowhere; {
		s := &h.slots[at-1]
		to = append(to, s.held)
		next := s.next
		*s = hold[H]{next: h.free}
		h.free = at
		at = next
		h.used--
	}
	if h.used == 0 && len(h.slots) > maxIdle {
		*h = holds[H]{}
	}
	return to
}

package step

import "sync"

// maxSeen bounds the records remembered, twice: two generations.
const maxSeen = 1 << 16

// seen remembers the records of all files of a receiver. FlagScale writes each row to two files and a summary.
type seen struct {
	mu       sync.Mutex
	new, old map[key]struct{}
}

// before says whether a record was seen before, and remembers it.
func (s *seen) before(k key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.new[k]; ok {
		return true
	}
	_, known := s.old[k]
	if s.new == nil || len(s.new) >= maxSeen {
		s.new, s.old = make(map[key]struct{}), s.new
	}
	s.new[k] = struct{}{}
	return known
}

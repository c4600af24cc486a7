package step

import (
	"encoding/binary"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	seenSets = 1 << 16
	seenWays = 8 // of 8 bytes: a line of the processor's cache
)

// seen remembers the records of all files of a receiver, by the ids of their spans: FlagScale writes each row to two files and a summary.
//
// The table is built as a processor's cache: a record belongs to a set, with room for the seenWays newest ids; a new id displaces the oldest of its set.
// Successive iterations have successive sets: positions scattered over a table of this size, as in a map, would each miss every cache, a tenth of the
// receiver's time.
type seen struct {
	mu   sync.Mutex
	sets [][seenWays]uint64 // 4 MiB, in receivers with duplicates
}

// checkAndAdd reports whether a record was seen before, and remembers a new one. span is the id of the record's span; set is the same for the same record, and
// for few others.
func (s *seen) checkAndAdd(span pcommon.SpanID, set uint64) bool {
	id := binary.BigEndian.Uint64(span[:]) // never 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets == nil {
		s.sets = make([][seenWays]uint64, seenSets)
	}
	ways := &s.sets[set%seenSets]
	for _, other := range ways {
		if other == id {
			return true
		}
	}
	copy(ways[1:], ways[:seenWays-1])
	ways[0] = id
	return false
}

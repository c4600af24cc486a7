package collectives

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"sync"

	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/spans"
)

// Conclusions are judgements of collectives by earlier ones: a baseline, stragglers, slow links. After a crash a new process lacks the earlier ones. A
// collective already sent and read again keeps its stored judgement, even an empty one. The zero value is empty.
type Conclusions struct {
	mu    sync.Mutex
	known map[uint64]*conclusion // of the last processes; nil: nothing was said
	fresh []byte                 // since Fresh
	n     int                    // number of collectives in fresh
}

// RememberedConclusions is how many of the last collectives are to be remembered.
const RememberedConclusions = 1 << 15

// conclusion is the judgement of a collective.
type conclusion struct {
	Baseline, Deviation float64    `json:",omitempty"`
	Late, Over          []slowRank `json:",omitempty"`
	Slowest             int        `json:",omitempty"` // number in Late, from 1
	New                 bool       `json:",omitempty"` // one of Late is new
	Hot, Slow           []string   `json:",omitempty"` // links
}

// settle gives a collective sent before its stored judgement back, so that its spans are the same as before; a new judgement is remembered. nil: no judgement
// is stored.
func (s *Conclusions) settle(c *judged) {
	if s == nil {
		return
	}
	id := spans.IDHash(c.trace, c.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if said, ok := s.known[id]; ok {
		c.conclude(said)
		return
	}
	if s.n >= RememberedConclusions { // nobody has stored these judgements (Fresh): no spans are sent, and none will be read again
		s.fresh, s.n = nil, 0
	}
	s.fresh, s.n = c.appendConclusion(binary.LittleEndian.AppendUint64(s.fresh, id)), s.n+1
}

// appendConclusion appends the length of the conclusion as a varint, and the conclusion as JSON. Most collectives have nothing to conclude: the length is 0.
func (c *judged) appendConclusion(b []byte) []byte {
	if math.IsNaN(c.baseline) && c.slowest < 0 && len(c.over)+len(c.hotLinks)+len(c.slowLinks) == 0 {
		return append(b, 0)
	}
	text, err := json.Marshal(&conclusion{
		Baseline: finite(c.baseline), Deviation: finite(c.deviation), Late: c.slow, Over: c.over, Slowest: c.slowest + 1, New: c.newlySlow,
		Hot: c.hotLinks, Slow: c.slowLinks,
	})
	if err != nil { // texts and finite numbers: no error is possible
		text = nil
	}
	return wire.AppendBytes(b, text)
}

// finite is 0, which is omitted, for values that JSON lacks.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// conclude replaces the judgement of a collective by a stored one; nil: nothing was concluded.
func (c *judged) conclude(said *conclusion) {
	if said == nil {
		said = new(conclusion)
	}
	c.baseline, c.deviation = math.NaN(), math.NaN()
	if said.Baseline > 0 {
		c.baseline, c.deviation = said.Baseline, said.Deviation
	}
	c.slow, c.over, c.slowest, c.newlySlow = c.hosted(c.slow, said.Late), c.hosted(c.over, said.Over), said.Slowest-1, said.New
	c.hotLinks, c.slowLinks = said.Hot, said.Slow
}

// hosted copies stored stragglers into room and adds their hosts, which are not stored.
func (c *judged) hosted(room, said []slowRank) []slowRank {
	room = append(room[:0], said...)
	for i := range room {
		room[i].host = c.comm.hostOf(room[i].Rank)
	}
	return room
}

// Fresh returns the judgements of the n collectives judged since the last call, to be stored for Restore: for each collective the hash of its ids (8 bytes,
// little endian) and its conclusion (see appendConclusion).
func (s *Conclusions) Fresh() (b []byte, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, n = s.fresh, s.n
	s.fresh, s.n = nil, 0
	return b, n
}

// Restore takes the bytes of Fresh, stored by an earlier process, up to the first damage. n is the number of collectives restored.
func (s *Conclusions) Restore(b []byte) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[uint64]*conclusion)
	}
	for c := (wire.Cursor{Rest: b}); len(c.Rest) > 0; n++ {
		id, text := c.Uint64(), c.Bytes()
		said, ok := parseConclusion(text)
		if c.Bad || !ok {
			break
		}
		s.known[id] = said
	}
	return n
}

// parseConclusion parses the JSON of a conclusion. An empty text is nil: nothing was concluded.
func parseConclusion(text []byte) (said *conclusion, ok bool) {
	if len(text) == 0 {
		return nil, true
	}
	if json.Unmarshal(text, &said) != nil || said == nil { // JSON's null leaves said nil
		return nil, false
	}
	return said, said.Slowest >= 0 && said.Slowest <= len(said.Late)
}

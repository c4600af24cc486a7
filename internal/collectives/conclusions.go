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

// restoreOrRemember gives a collective that was sent before its stored judgement back, so that its spans are the same as before; the judgement of any other
// collective is remembered for Fresh. s nil: no judgements are stored.
func (s *Conclusions) restoreOrRemember(c *judged) {
	if s == nil {
		return
	}
	id := spans.IDHash(c.trace, c.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored, ok := s.known[id]; ok {
		c.setConclusion(stored)
		return
	}
	if s.n >= RememberedConclusions { // nobody has stored these judgements (Fresh): no spans are sent, and none will be read again
		s.fresh, s.n = nil, 0
	}
	s.fresh, s.n = c.appendConclusion(binary.LittleEndian.AppendUint64(s.fresh, id)), s.n+1
}

// appendConclusion appends the conclusion as JSON after its length as a varint. Most collectives have no conclusion: the length is 0.
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

// finite returns x, or 0, which JSON omits, for NaN and infinities.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// setConclusion replaces the judgement of a collective by a stored one; nil: the stored judgement is empty.
func (c *judged) setConclusion(stored *conclusion) {
	if stored == nil {
		stored = new(conclusion)
	}
	c.baseline, c.deviation = math.NaN(), math.NaN()
	if stored.Baseline > 0 {
		c.baseline, c.deviation = stored.Baseline, stored.Deviation
	}
	c.slow, c.over, c.slowest, c.newlySlow = c.withHosts(c.slow, stored.Late), c.withHosts(c.over, stored.Over), stored.Slowest-1, stored.New
	c.hotLinks, c.slowLinks = stored.Hot, stored.Slow
}

// withHosts copies stored stragglers into room and adds their hosts, which are not stored.
func (c *judged) withHosts(room, stored []slowRank) []slowRank {
	room = append(room[:0], stored...)
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

// Restore reads the bytes of Fresh, stored by an earlier process, up to the first damage. n is the number of collectives restored.
func (s *Conclusions) Restore(b []byte) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[uint64]*conclusion)
	}
	for c := (wire.Cursor{Rest: b}); len(c.Rest) > 0; n++ {
		id, text := c.Uint64(), c.Bytes()
		stored, ok := parseConclusion(text)
		if c.Bad || !ok {
			break
		}
		s.known[id] = stored
	}
	return n
}

// parseConclusion parses the JSON of a conclusion; nil: the text is empty, as of a collective without a conclusion. false: damaged.
func parseConclusion(text []byte) (stored *conclusion, ok bool) {
	if len(text) == 0 {
		return nil, true
	}
	if json.Unmarshal(text, &stored) != nil || stored == nil { // JSON's null leaves stored nil
		return nil, false
	}
	return stored, stored.Slowest >= 0 && stored.Slowest <= len(stored.Late)
}

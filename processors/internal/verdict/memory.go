package verdict

import (
	"encoding/binary"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/seen"
	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/spans"
)

// Remembered is how many spans with verdicts, and as many without, a Memory knows at least.
const Remembered = 1 << 15

// Memory remembers the verdicts about the spans judged last. A verdict depends on the spans before its own. A span is judged again where its batch was refused,
// or where the process was killed before the batch was acknowledged. Such a span gets its first verdicts again: else one span id would have two contents. The
// zero value is empty.
type Memory struct {
	mu          sync.Mutex
	clean       seen.Seen              // spans.IDHash of the spans without verdicts
	said, older map[uint64][]judgement // of the others; older was full before said was begun
	fresh       []byte                 // stored form of what was said since Fresh
	n           int                    // number of spans in fresh
}

// settle puts the remembered verdicts of a span, also that there were none, on the sheet in place of the new ones; of a span judged for the first time, it
// remembers the sheet's.
func (m *Memory) settle(s *Sheet, span ptrace.Span) {
	id := spans.IDHash(span.TraceID(), span.SpanID())
	m.mu.Lock()
	defer m.mu.Unlock()
	said, ok := m.said[id]
	if !ok {
		said, ok = m.older[id]
	}
	switch {
	case ok:
		s.said = append(s.said[:0], said...)
	case m.clean.Has(id):
		s.said = s.said[:0]
	default:
		m.note(id, s.said)
		m.fresh, m.n = appendSaid(m.fresh, id, s.said), m.n+1
	}
}

// note remembers the verdicts of a span, or that there are none. Beyond Remembered spans with verdicts, the older half is forgotten at once.
func (m *Memory) note(id uint64, said []judgement) {
	if m.said == nil {
		m.clean, m.said, m.older = seen.Last(Remembered), map[uint64][]judgement{}, map[uint64][]judgement{}
	}
	if len(said) == 0 {
		m.clean.Known(id, 0)
		return
	}
	if len(m.said) >= Remembered {
		m.older, m.said = m.said, m.older
		clear(m.said)
	}
	m.said[id] = slices.Clone(said) // the sheet's memory is reused
}

// Fresh returns the verdicts since the last call, of n spans, for storage.
func (m *Memory) Fresh() (b []byte, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, n = m.fresh, m.n
	m.fresh, m.n = nil, 0
	return b, n
}

// Restore reads the output of Fresh up to the first malformed entry, and returns the number of spans read.
func (m *Memory) Restore(b []byte) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := (wire.Cursor{Rest: b}); len(c.Rest) > 0; n++ {
		id, said := readSaid(&c)
		if c.Bad {
			break
		}
		m.note(id, said)
	}
	return n
}

// storedForm is added to severities. A new storage format raises it by the number of severities, so an entry of an older format is not read.
const storedForm = 4

// appendSaid appends the verdicts of a span in stored form.
func appendSaid(b []byte, id uint64, said []judgement) []byte {
	b = binary.LittleEndian.AppendUint64(b, id)
	b = binary.AppendUvarint(b, uint64(len(said)))
	for i := range said {
		j := &said[i]
		b = append(b, storedForm+byte(j.kind.severity))
		for _, text := range [...]string{j.kind.name, j.kind.cause, j.kind.stage, j.reason} {
			b = wire.AppendBytes(b, text)
		}
		b = wire.AppendFloats(b, j.value, j.threshold)
	}
	return b
}

// readSaid is the inverse of appendSaid; c.Bad afterwards: malformed, or of another storage form.
func readSaid(c *wire.Cursor) (id uint64, said []judgement) {
	id = c.Uint64()
	for range c.Count(1) {
		said = append(said, readJudgement(c))
		if c.Bad {
			break
		}
	}
	return id, said
}

// readJudgement reads one verdict of appendSaid.
func readJudgement(c *wire.Cursor) (j judgement) {
	severity := int(c.Byte()) - storedForm
	if severity < 0 || severity >= len(severityText) {
		c.Fail()
	}
	k := &kind{severity: Severity(severity)}
	for _, text := range [...]*string{&k.name, &k.cause, &k.stage, &j.reason} {
		*text = string(c.Bytes())
	}
	k.tag = spans.AttrVerdictPrefix + k.name
	j.kind, j.value, j.threshold = k, c.Float64(), c.Float64()
	return j
}

package verdict

import (
	"encoding/binary"
	"math"
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/spans"
)

// Remembered is how many spans a Memory knows at least.
const Remembered = 1 << 15

// Memory knows what was said of the spans that were judged last. A verdict depends on what came before its span. A span comes again where its batch was
// refused, or the process was killed before it knew that the batch was accepted. Then it has the verdicts that it had: else its id would have two contents.
// The zero value is empty.
type Memory struct {
	mu          sync.Mutex
	said, older map[uint64][]judgement // older was full before said was begun
	fresh       []byte                 // since Fresh
	n           int                    // spans in it
}

// settle has the sheet say of a span what was said of it before; else that is remembered now.
func (m *Memory) settle(s *Sheet, span ptrace.Span) {
	id := spans.IDHash(span.TraceID(), span.SpanID())
	m.mu.Lock()
	defer m.mu.Unlock()
	said, ok := m.said[id]
	if !ok {
		said, ok = m.older[id]
	}
	if ok {
		s.said = append(s.said[:0], said...)
		return
	}
	said = nil
	if len(s.said) > 0 {
		said = append(said, s.said...)
	}
	m.note(id, said)
	m.fresh, m.n = appendSaid(m.fresh, id, said), m.n+1
}

func (m *Memory) note(id uint64, said []judgement) {
	if m.said == nil || len(m.said) >= Remembered {
		m.older, m.said = m.said, make(map[uint64][]judgement)
	}
	m.said[id] = said
}

// Fresh is what was said since the last call, to be stored: n spans.
func (m *Memory) Fresh() (b []byte, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, n = m.fresh, m.n
	m.fresh, m.n = nil, 0
	return b, n
}

// Restore takes what Fresh gave, as far as it makes sense. It returns how many spans are known by it.
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

// storedForm is added to severities, and raised by as many as there are when what is stored takes another form: what is of another form is not taken back.
const storedForm = 4

func appendSaid(b []byte, id uint64, said []judgement) []byte {
	b = binary.LittleEndian.AppendUint64(b, id)
	b = binary.AppendUvarint(b, uint64(len(said)))
	for i := range said {
		j := &said[i]
		b = append(b, storedForm+byte(j.kind.severity))
		for _, text := range [...]string{j.kind.name, j.kind.cause, j.kind.stage, j.reason} {
			b = wire.AppendBytes(b, text)
		}
		for _, x := range [...]float64{j.value, j.threshold} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b
}

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

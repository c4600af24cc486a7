package collectives

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// identify makes the ids. The natural key is the communicator, the operation and its number, or the record itself where it is not joined.
func (c *Collective) identify() {
	var seq [9]byte
	binary.BigEndian.PutUint64(seq[:], c.seq)
	if c.ordinal {
		seq[8] = 1
	}
	operation := c.operation()
	if c.track != nil && c.track == c.comm.all {
		operation = "" // ranks may disagree about it
	}
	var room [64]byte
	if !c.joined || c.join == byTime {
		p := &c.parts[0]
		key := p.key(binary.BigEndian.AppendUint64(room[:0], uint64(c.size)))
		c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(operation), seq[:], []byte(p.src.key), key)
	} else {
		c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(operation), seq[:])
		for i := range c.parts {
			// A rank has as many records as links, which may leave in parts. Their order depends on the order of the files.
			if p := &c.parts[i]; p.more != nil && p.more.sends > 0 {
				p.more.id = spans.SpanID(c.trace, "rank", p.key(room[:0]))
			}
		}
	}
	c.id = spans.SpanID(c.trace, "collective")
	if c.hasParent {
		c.adopt()
	}
}

// adopt puts a proxy's operation into the trace of its collective, below the span of its rank.
func (c *Collective) adopt() {
	own := c.trace
	var seq [9]byte
	binary.BigEndian.PutUint64(seq[:], c.parentSeq)
	c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(c.parentKind.String()), seq[:])
	c.parent = c.rankID(&c.parts[0])
	c.id = spans.SpanID(c.trace, "proxy", own[:])
}

// key appends the logged values that tell the record from others about the same operation.
func (p *part) key(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(p.rank))
	b = binary.BigEndian.AppendUint64(b, uint64(p.start))
	b = binary.BigEndian.AppendUint64(b, uint64(p.duration))
	m := p.more
	if m == nil {
		return b
	}
	for _, n := range [...]int32{m.peer, m.sourceRank, m.destRank, m.channel} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	if len(m.details) > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(m.details[0].start))
		b = binary.BigEndian.AppendUint32(b, uint32(m.details[0].step))
	}
	return b
}

// rankID names the span of a rank. A rank with several links has a span for each.
func (c *Collective) rankID(p *part) pcommon.SpanID {
	if p.more != nil && !p.more.id.IsEmpty() {
		return p.more.id
	}
	var key [16]byte
	binary.BigEndian.PutUint32(key[:], uint32(p.rank))
	n := 4
	if p.again > 0 {
		binary.BigEndian.PutUint32(key[4:], uint32(p.again))
		n = 8
	}
	return spans.SpanID(c.trace, "rank", key[:n])
}

// parent16 makes the key space of a span's children: ranks have equal details.
func parent16(trace pcommon.TraceID, parent pcommon.SpanID) pcommon.TraceID {
	for i := range parent {
		trace[i] ^= parent[i]
	}
	return trace
}

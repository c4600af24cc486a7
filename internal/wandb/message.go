package wandb

import "google.golang.org/protobuf/encoding/protowire"

// message walks over the fields of a protobuf message.
type message struct {
	rest []byte
	tag  uint64 // number and wire type of the field

	bytes  []byte // value of a text, bytes or a message
	number uint64 // of a varint or fixed64
	bad    bool   // the message ends too early or has an unknown wire type
}

// next reads the next field: its tag, and its value into bytes or number; fixed32 and groups are passed over. false: the message has ended, or is bad.
func (m *message) next() bool {
	if len(m.rest) == 0 {
		return false
	}
	number, kind, n := protowire.ConsumeTag(m.rest)
	if n < 0 {
		m.bad = true
		return false
	}
	m.rest = m.rest[n:]
	m.tag, m.bytes, m.number = protowire.EncodeTag(number, kind), nil, 0
	switch kind {
	case protowire.VarintType:
		m.number, n = protowire.ConsumeVarint(m.rest)
	case protowire.Fixed64Type:
		m.number, n = protowire.ConsumeFixed64(m.rest)
	case protowire.BytesType:
		m.bytes, n = protowire.ConsumeBytes(m.rest)
	default:
		n = protowire.ConsumeFieldValue(number, kind, m.rest)
	}
	if n < 0 {
		m.bad = true
		return false
	}
	m.rest = m.rest[n:]
	return true
}

// seconds reads a google.protobuf.Timestamp.
func seconds(b []byte) (s float64, ok bool) {
	m := message{rest: b}
	for m.next() {
		switch m.tag {
		case timeSeconds:
			s += float64(int64(m.number))
		case timeNanos:
			s += float64(int32(m.number)) / 1e9
		}
	}
	return s, !m.bad
}

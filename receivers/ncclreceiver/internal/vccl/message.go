package vccl

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// key is a key of the documented schema (doc.go), or of an id (logids).
type key uint8

const (
	keyTimestamp key = iota
	keyRank
	keyOperation
	keyAlgorithm
	keySize
	keyDuration
	keyBandwidth
	keySource
	keyDestination
	keyChannel
	keyStream
	keyErrors
	keyRetries
	noKey
	keyID // and on: with a logids.Field added, the ids
)

// keyOf returns the key of a column's or member's name; noKey: the name is none of the schema's, and its value is ignored.
func keyOf(name []byte) key {
	switch string(name) {
	case "timestamp":
		return keyTimestamp
	case "rank":
		return keyRank
	case "operation":
		return keyOperation
	case "algorithm":
		return keyAlgorithm
	case "message_size":
		return keySize
	case "duration_us":
		return keyDuration
	case "bandwidth_gbps":
		return keyBandwidth
	case "src_rank":
		return keySource
	case "dst_rank":
		return keyDestination
	case "channel_id":
		return keyChannel
	case "stream_id":
		return keyStream
	case "error_count":
		return keyErrors
	case "retry_count":
		return keyRetries
	case "trace_id", "traceId", "traceid":
		return keyID + key(logids.Trace)
	case "traceparent":
		return keyID + key(logids.TraceParent)
	case "parent_id", "parent_span_id", "parentSpanId", "parentspanid":
		return keyID + key(logids.Parent)
	case "span_id", "spanId", "spanid":
		return keyID + key(logids.Span)
	}
	return noKey
}

// values are the values of a record as printed, texts without quotes; nil: absent.
type values struct {
	of  [noKey][]byte
	ids *logids.IDs // few records have any
}

// set sets the value of a key. An absent id leaves the record without ids.
func (v *values) set(k key, b []byte) {
	switch {
	case k < noKey:
		v.of[k] = b
	case k > noKey && !absent(b):
		if v.ids == nil {
			v.ids = new(logids.IDs)
		}
		v.ids.Set(logids.Field(k-keyID), b)
	}
}

// messages turns records of the documented schema into operations, in any notation.
//
// timestamp is taken as the start of the operation (the schema does not specify start or end) and read exactly; the end is start + duration_us. message_size is
// S of algbw = S/t: the schema does not specify one rank's size or all ranks'. bandwidth_gbps is labelled GB/s but is Gbit/s in the document's own example: S/t
// decides, by its ratio to the printed value. The rank is the global one ("rank of the process"), or else the rank in the file's name.
//
// The schema has no sequence number. Seq counts the records of an operation and rank in the file: right as long as the ranks' files begin together and no
// record was sampled away or lost. Send, Recv and SendRecv have a Seq too, but no HasSeq.
type messages struct {
	rank int32 // of the file's name

	session uint32        // number of restarts of the ordinals
	counts  []count       // records so far, by operation and rank
	index   map[place]int // where in counts the operations of NCCL are
	newFile bool          // the ordinals restart with the next record

	comm []byte // the name made last by commOf,
	of   uint32 // and its session

	// Of the current line, if read again: the content of its tag.
	again bool
	tag   uint64
	line  []count // counts used by the operations of the line
}

// newMessages returns the state of a file whose name may have the rank.
func newMessages(file string) messages {
	return messages{rank: rankOf(file), index: make(map[place]int)}
}

// NewFile is called when the next lines are of another file, or of a rewritten file: the job was restarted. Ordinals restart, and the operations belong to
// another communicator: "session-2", "session-3", … It must not be called between lines that are read again.
func (m *messages) NewFile() { m.newFile = true }

// begin prepares for a line. A line that is read again without a tag is counted as new.
func (m *messages) begin(again bool, tag uint64) {
	m.again, m.tag, m.line = again && tag != 0, tag, m.line[:0]
}

// add adds the operation of a record to out, and counts it. reason is "" if the record is valid; otherwise out has no operation, but the record counts if it
// has an operation and no invalid rank.
func (m *messages) add(v *values, out *parse.Out) (reason string) {
	m.renew()
	o := out.Add()
	reason = m.identify(v, o)
	if reason == "" {
		// The record counts whatever its other values: the other ranks have a record of the operation too.
		o.Comm = m.commOf(m.setOrdinal(o, out))
		o.HasSeq = o.Ordinal && together(o.Kind)
		reason = m.fill(v, o)
	}
	if reason != "" {
		out.Ops = out.Ops[:len(out.Ops)-1]
	}
	if m.again {
		out.Tag = m.tag
	}
	return reason
}

// addTorn adds the operation of the readable part of a record to out, if it has the operation, the time and the duration. The operation counts, unless its
// lines were read again, but has no Seq: whether the other ranks have the same operation at its place is unknown.
func (m *messages) addTorn(v *values, again bool, out *parse.Out) {
	if absent(v.of[keyTimestamp]) || absent(v.of[keyDuration]) {
		return
	}
	o := out.Add()
	reason := m.identify(v, o)
	if reason == "" {
		o.Comm = m.commOf(m.session)
		if m.again { // with a tag, which has the session of then
			o.Comm = m.commOf(uint32(m.tag>>tagSession) & maxSession)
		}
		if !again {
			if i := m.find(o.Kind, o.Name, o.Rank); i >= 0 {
				m.counts[i].N++
			}
		}
		reason = m.fill(v, o)
	}
	if reason != "" {
		out.Ops = out.Ops[:len(out.Ops)-1]
	}
}

// identify reads the rank and the operation of a record into o. reason is "" if the record has an operation and a valid rank, if any.
func (m *messages) identify(v *values, o *op.Op) (reason string) {
	name := v.of[keyOperation]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = m.decode(name)
	}
	if absent(name) {
		return reasonNoOperation
	}
	o.Kind = kindOf(name)
	if o.Kind == op.Other {
		name = name[:min(len(name), maxName)]
		if !utf8.Valid(name) { // Save's JSON holds only valid UTF-8
			name = bytes.ToValidUTF8(name, []byte("\ufffd"))
		}
		o.Name = name
	}
	o.Rank, reason = small(v.of[keyRank])
	if o.Rank == op.Unknown {
		o.Rank = m.rank
	}
	o.Global, o.Waits = true, true // the rank of the process, and a duration that includes the wait for other ranks
	return reason
}

// decode reads a text with escapes. A text refused by encoding/json stays unchanged.
func (m *messages) decode(b []byte) []byte {
	var s string
	if json.Unmarshal([]byte(`"`+string(b)+`"`), &s) != nil {
		return b
	}
	return []byte(s)
}

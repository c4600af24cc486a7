package vccl

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/op"
	"github.com/trainbridge/trainbridge/spans"
)

// key is a key of the mission's schema.
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
)

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
	}
	return noKey
}

// values are the values of a record as printed, texts without quotes; nil: not there.
type values [noKey][]byte

// messages turns records of the mission's schema into operations, whatever they were written as.
//
// timestamp is taken for the start of the operation (the schema says neither) and read exactly; the end is start + duration_us. message_size is S of
// algbw = S/t: whether it is that of one rank or of all the schema does not say either. bandwidth_gbps is labelled GB/s but is Gbit/s in the seed's own
// example: S/t decides, by its ratio to what is printed. The rank is the global one ("rank of the process"); where it is missing, that of the file's name.
//
// The schema has no sequence number. Seq counts the records of an operation and rank in this file: right as long as the ranks' files begin together and
// nothing was sampled away or lost. Send, Recv and SendRecv have one too, but no HasSeq.
type messages struct {
	rank int32 // of the file's name

	session uint32 // how often the ordinals began anew
	counts  []count
	index   map[place]int
	newFile bool // the ordinals begin anew with the next record

	comm []byte // of commOf
	of   uint32

	// Of the line at hand, where it is read again: what its tag says.
	again bool
	tag   uint64
	line  []count // what the operations of the line have used up
}

// count is how many records of an operation a rank has had.
type count struct {
	Operation op.Kind `json:"operation"`
	Name      string  `json:"name,omitempty"` // of op.Other
	Rank      int32   `json:"rank"`
	N         uint64  `json:"n"`
}

// place is where in counts an operation of NCCL's is.
type place struct {
	rank int32
	kind op.Kind
}

// maxCounts bounds what Save writes. Whoever comes later has no Seq: a file of so many ranks is none of VCCL's.
const maxCounts = 1024

// A tag is the session, the header of CSV (by its number), and the ordinal of the line's first operation, +1. Of a line with several operations fromZero says that all began at 0: a compact
// array is a whole file. Else only the operations like the first are known.
const (
	tagOrdinal  = 1<<40 - 1
	tagSession  = 40
	maxSession  = 1<<20 - 1
	tagHeader   = 60
	maxHeaders  = 1 << 3
	tagFromZero = 1 << 63
)

func newMessages(file string) messages {
	return messages{rank: rankOf(file), index: make(map[place]int)}
}

// NewFile says that the lines that follow are of another file, or of one that was written anew: the job was started again. Ordinals begin anew, and the
// operations are those of another communicator: "session-2", "session-3", … Do not call it between lines that are read again.
func (m *messages) NewFile() { m.newFile = true }

// begin takes note of the line at hand.
func (m *messages) begin(again bool, tag uint64) {
	m.again, m.tag, m.line = again && tag != 0, tag, m.line[:0]
}

// renew begins anew where NewFile asked for it.
func (m *messages) renew() {
	if m.newFile && !m.again {
		m.newFile = false
		if len(m.counts) > 0 {
			m.session = min(m.session+1, maxSession)
			m.counts = m.counts[:0]
			clear(m.index)
		}
	}
}

// commOf is what stands for the communicator.
func (m *messages) commOf(session uint32) []byte {
	if session == 0 {
		return nil
	}
	if session != m.of {
		m.comm, m.of = strconv.AppendUint([]byte("session-"), uint64(session)+1, 10), session
	}
	return m.comm
}

// find returns the number of a count, −1 where there is no more room.
func (m *messages) find(kind op.Kind, name []byte, rank int32) int {
	if kind != op.Other {
		if i, ok := m.index[place{rank, kind}]; ok {
			return i
		}
	} else {
		for i := range m.counts {
			if c := &m.counts[i]; c.Operation == kind && c.Rank == rank && c.Name == string(name) {
				return i
			}
		}
	}
	if len(m.counts) == maxCounts {
		return -1
	}
	c := count{Operation: kind, Rank: rank}
	if kind == op.Other {
		c.Name = string(name)
	}
	return m.put(c)
}

func (m *messages) put(c count) int {
	if c.Operation != op.Other {
		m.index[place{c.Rank, c.Operation}] = len(m.counts)
	}
	m.counts = append(m.counts, c)
	return len(m.counts) - 1
}

// next counts an operation. again: of a line that is read again; its tag knows.
func (m *messages) next(o *op.Op, out *op.Out) (session uint32) {
	var name []byte
	if o.Kind == op.Other {
		name = o.Name
	}
	if m.again {
		o.Seq, o.Ordinal = m.read(o.Kind, name, o.Rank)
		return uint32(m.tag>>tagSession) & maxSession
	}
	fresh := len(m.counts) == 0
	i := m.find(o.Kind, name, o.Rank)
	if i < 0 {
		return m.session
	}
	c := &m.counts[i]
	o.Seq, o.Ordinal = c.N, true
	c.N++
	if out.Tag == 0 {
		out.Tag = uint64(m.session)<<tagSession | c.N&tagOrdinal
		if fresh {
			out.Tag |= tagFromZero
		}
	}
	return m.session
}

// read counts an operation of a line that is read again.
func (m *messages) read(kind op.Kind, name []byte, rank int32) (seq uint64, ok bool) {
	for i := range m.line {
		if c := &m.line[i]; c.Operation == kind && c.Rank == rank && c.Name == string(name) {
			c.N++
			return c.N - 1, true
		}
	}
	switch {
	case m.tag&tagOrdinal == 0: // there was no room to count it
		return 0, false
	case len(m.line) == 0:
		seq = m.tag&tagOrdinal - 1
	case m.tag&tagFromZero == 0:
		return 0, false
	}
	m.line = append(m.line, count{kind, string(name), rank, seq + 1})
	return seq, true
}

// add makes an operation of a record.
func (m *messages) add(v *values, out *op.Out) (reason string) {
	m.renew()
	o := out.Add()
	if reason = m.identify(v, o); reason == "" {
		// The record counts whatever else it says: the other ranks have theirs.
		o.Comm = m.commOf(m.next(o, out))
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

// addTorn makes an operation of what could be read of a record, where that says what it was, when and how long. It counts, unless its lines were read again,
// but has no Seq: one cannot know that it is what the other ranks have at its place.
func (m *messages) addTorn(v *values, again bool, out *op.Out) {
	if absent(v[keyTimestamp]) || absent(v[keyDuration]) {
		return
	}
	o := out.Add()
	reason := m.identify(v, o)
	if reason == "" {
		o.Comm = m.commOf(m.session)
		if m.again {
			o.Comm = m.commOf(uint32(m.tag>>tagSession) & maxSession)
		}
		var name []byte
		if o.Kind == op.Other {
			name = o.Name
		}
		if i := -1; !again {
			if i = m.find(o.Kind, name, o.Rank); i >= 0 {
				m.counts[i].N++
			}
		}
		reason = m.fill(v, o)
	}
	if reason != "" {
		out.Ops = out.Ops[:len(out.Ops)-1]
	}
}

// identify reads whose record of what it is.
func (m *messages) identify(v *values, o *op.Op) (reason string) {
	name := v[keyOperation]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = m.decode(name)
	}
	if absent(name) {
		return reasonNoOperation
	}
	if o.Kind = kindOf(name); o.Kind == op.Other {
		o.Name = name
	}
	if o.Rank, reason = small(v[keyRank]); o.Rank == op.Unknown {
		o.Rank = m.rank
	}
	o.Global, o.Waits = true, true
	return reason
}

// fill reads the rest.
func (m *messages) fill(v *values, o *op.Op) (reason string) {
	note := func(why string) {
		if reason == "" {
			reason = why
		}
	}
	var why string
	o.Time = spans.TimeSynthetic
	if b := v[keyTimestamp]; !absent(b) {
		at, err := clock.Nanos(b)
		switch {
		case err != nil || b[len(b)-1] == 's':
			note(reasonNumber)
		case at <= 0:
			note(reasonNegative)
		}
		o.Start, o.End, o.Time = at, at, spans.TimeLogged
	}
	if b := v[keyDuration]; !absent(b) {
		d, ok := micros(b)
		switch {
		case !ok || d > math.MaxInt64-o.Start:
			note(reasonNumber)
		case d < 0:
			note(reasonNegative)
		default:
			o.Duration = d
			if o.Start > 0 {
				o.End = o.Start + d
			}
		}
	} else if o.Start == 0 {
		note(reasonNoTime)
	}
	o.Size, why = natural(v[keySize], op.Unknown)
	note(why)
	o.Total = o.Size
	o.Source, why = small(v[keySource])
	note(why)
	o.Destination, why = small(v[keyDestination])
	note(why)
	o.Channel, why = small(v[keyChannel])
	note(why)
	o.Stream, why = natural(v[keyStream], op.Unknown)
	note(why)
	o.Errors, why = natural(v[keyErrors], 0)
	note(why)
	o.Retries, why = natural(v[keyRetries], 0)
	note(why)
	switch o.Kind {
	case op.Send, op.SendRecv:
		o.Peer = o.Destination
	case op.Recv:
		o.Peer = o.Source
	}
	if b := v[keyBandwidth]; !absent(b) {
		r, ok := record.Float(b)
		if !ok {
			note(reasonNumber)
		}
		if r >= 0 && !math.IsInf(r, 0) {
			o.ReportedUnit, o.ReportedAlg = bandwidth(r, o.Total, o.Duration)
		}
	}
	if b := v[keyAlgorithm]; !absent(b) {
		if bytes.IndexByte(b, '\\') >= 0 {
			b = m.decode(b)
		}
		o.Algorithm = b
	}
	return reason
}

// The units of bandwidth_gbps.
const (
	gigabytes = "GB/s"
	gigabits  = "Gbit/s"
	perGbit   = 1e9 / 8 // By/s
	perGB     = 1e9
	// A bandwidth fits a unit within this, and what rounding to a decimal may do.
	fits     = 0.1
	rounding = 0.05
)

// bandwidth tells in which unit bandwidth_gbps was printed, from S/t, and returns it in By/s. Where neither fits, or nothing is known, it is Gbit/s, as in the
// seed's example (4194304 B in 1250.5 us are 26.8 Gbit/s or 3.35 GB/s; 26.8 is printed).
func bandwidth(reported float64, size, ns int64) (unit string, bytesPerSecond float64) {
	if size > 0 && ns > 0 {
		gb := float64(size) / float64(ns) // By/ns
		asBits, asBytes := math.Abs(reported-8*gb), math.Abs(reported-gb)
		if asBytes <= fits*gb+rounding && asBytes < asBits {
			return gigabytes, reported * perGB
		}
	}
	return gigabits, reported * perGbit
}

// natural reads an integer that cannot be negative; none where there is none.
func natural(b []byte, none int64) (v int64, reason string) {
	if absent(b) {
		return none, ""
	}
	v, ok := integer(b)
	switch {
	case !ok:
		return none, reasonNumber
	case v < 0 && v != none:
		return none, reasonNegative
	}
	return v, ""
}

// small reads an integer of 32 bits, −1 standing for none.
func small(b []byte) (v int32, reason string) {
	n, reason := natural(b, op.Unknown)
	if n > math.MaxInt32 {
		return op.Unknown, reasonNumber
	}
	return int32(n), reason
}

// decode reads a text with escapes.
func (m *messages) decode(b []byte) []byte {
	var s string
	if json.Unmarshal([]byte(`"`+string(b)+`"`), &s) != nil {
		return b
	}
	return []byte(s)
}

// saved is what a restart must know.
type saved struct {
	Session uint32  `json:"session,omitempty"`
	Counts  []count `json:"counts,omitempty"`
	// Of CSV.
	Headers []string `json:"headers,omitempty"`
	Header  int      `json:"header,omitempty"`
	// Of JSON.
	BraceOnly bool `json:"brace_only,omitempty"`
}

func (m *messages) save(s saved) []byte {
	s.Session, s.Counts = m.session, m.counts
	if m.newFile && len(s.Counts) > 0 {
		s.Session, s.Counts = min(s.Session+1, maxSession), nil
	}
	if s.Session == 0 && len(s.Counts) == 0 && len(s.Headers) == 0 && !s.BraceOnly {
		return nil
	}
	b, err := json.Marshal(&s)
	if err != nil {
		return nil // cannot be: numbers and texts
	}
	return b
}

func (m *messages) restore(state []byte) (s saved) {
	if json.Unmarshal(state, &s) != nil {
		return saved{}
	}
	m.session = min(s.Session, maxSession)
	for _, c := range s.Counts[:min(len(s.Counts), maxCounts)] {
		m.put(c)
	}
	return s
}

package vccl

import (
	"encoding/json"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// count is the number of records of an operation and a rank.
type count struct {
	Operation op.Kind `json:"operation"`
	Name      string  `json:"name,omitempty"` // of op.Other
	Rank      int32   `json:"rank"`
	N         uint64  `json:"n"`
}

// place is the key of the index of an operation of NCCL in counts.
type place struct {
	rank int32
	kind op.Kind
}

// maxCounts and maxName (By, of op.Other) bound the output of Save. Operations beyond have no Seq: no file of VCCL has that many ranks.
const (
	maxCounts = 1024
	maxName   = 128
)

// A tag (parse.Out.Tag) lets a line be read again after a restart with the same ordinals. From the lowest bit on: the ordinal of the line's first operation,
// +1; the session; the number of the CSV header; and fromZero. For a line with several operations fromZero says that all ordinals began at 0 in the line: a
// compact array is a whole file. Otherwise only the ordinals of operations like the first are known.
const (
	tagOrdinal  = 1<<40 - 1 // mask of the ordinal
	tagSession  = 40        // position of the session
	maxSession  = 1<<20 - 1 // and its mask
	tagHeader   = 60        // position of the header's number
	maxHeaders  = 1 << 3
	tagFromZero = 1 << 63
)

// renew restarts the counts at the first new record after NewFile: the next session begins, unless the one before had no record.
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

// commOf returns a name for the communicator of a session, as the log has none: nil for the first session, then "session-2" and so on.
func (m *messages) commOf(session uint32) []byte {
	if session == 0 {
		return nil
	}
	if session != m.of {
		m.comm, m.of = strconv.AppendUint([]byte("session-"), uint64(session)+1, 10), session
	}
	return m.comm
}

// find returns the index in counts of an operation and a rank, added if new; −1: counts is full.
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

// put appends a count and returns its index.
func (m *messages) put(c count) int {
	if c.Operation != op.Other {
		m.index[place{c.Rank, c.Operation}] = len(m.counts)
	}
	m.counts = append(m.counts, c)
	return len(m.counts) - 1
}

// setOrdinal sets an operation's ordinal (o.Seq; o.Ordinal marks it as known): how many records of the same operation and rank came before in the file. It
// returns the session. The first operation of a line also makes the line's tag, from which read gets the ordinal and the session of a line that is read again.
func (m *messages) setOrdinal(o *op.Op, out *parse.Out) (session uint32) {
	if m.again {
		o.Seq, o.Ordinal = m.read(o.Kind, o.Name, o.Rank)
		return uint32(m.tag>>tagSession) & maxSession
	}
	fresh := len(m.counts) == 0
	i := m.find(o.Kind, o.Name, o.Rank)
	if i < 0 { // beyond maxCounts: without an ordinal
		return m.session
	}
	c := &m.counts[i]
	o.Seq, o.Ordinal = c.N, true
	c.N++
	if out.Tag == 0 { // the first operation of the line
		out.Tag = uint64(m.session)<<tagSession | c.N&tagOrdinal
		if fresh {
			out.Tag |= tagFromZero
		}
	}
	return m.session
}

// read returns the ordinal of an operation of a line that is read again: counted within the line from the tag's ordinal on. ok is false if the ordinal is
// unknown.
func (m *messages) read(kind op.Kind, name []byte, rank int32) (seq uint64, ok bool) {
	for i := range m.line {
		if c := &m.line[i]; c.Operation == kind && c.Rank == rank && c.Name == string(name) {
			c.N++
			return c.N - 1, true
		}
	}
	switch {
	case m.tag&tagOrdinal == 0: // not counted, beyond the capacity
		return 0, false
	case len(m.line) == 0: // the first operation, of which the tag is
		seq = m.tag&tagOrdinal - 1
	case m.tag&tagFromZero == 0: // another operation, whose ordinal the tag does not have
		return 0, false
	}
	m.line = append(m.line, count{kind, string(name), rank, seq + 1})
	return seq, true
}

// saved is the part that survives a restart.
type saved struct {
	Session uint32  `json:"session,omitempty"`
	Counts  []count `json:"counts,omitempty"`
	// Of CSV.
	Headers []string `json:"headers,omitempty"`
	Header  int      `json:"header,omitempty"`
	// Of JSON.
	BraceOnly bool `json:"brace_only,omitempty"`
}

// save completes s with the session and the counts; nil: there is nothing to save. A new session that begins with the next record is saved as begun.
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

// restore restores the session and the counts, and returns the rest of the state.
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

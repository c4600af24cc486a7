package facts

import (
	"encoding/binary"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/wire"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Facts in stored form, for the process after a crash. Texts are written out, because their numbers are of one process.

// appendBool appends up to 8 booleans as one byte.
func appendBool(b []byte, all ...bool) []byte {
	bits := byte(0)
	for i, is := range all {
		if is {
			bits |= 1 << i
		}
	}
	return append(b, bits)
}

// readBools is the inverse of appendBool.
func readBools(c *wire.Cursor, all ...*bool) {
	bits := c.Byte()
	for i, is := range all {
		*is = bits&(1<<i) != 0
	}
}

// ReadTrace reads a trace id.
func ReadTrace(c *wire.Cursor) (id pcommon.TraceID) {
	copy(id[:], c.Take(uint64(len(id))))
	return id
}

// readSpan reads a span id.
func readSpan(c *wire.Cursor) (id pcommon.SpanID) {
	copy(id[:], c.Take(uint64(len(id))))
	return id
}

// readText reads a text, and returns its number in this run.
func (r *Run) readText(c *wire.Cursor) uint32 { return r.Number(string(c.Bytes())) }

// readKind reads a kind; an unknown kind makes c.Bad.
func readKind(c *wire.Cursor) breakdown.Kind {
	kind := breakdown.Kind(c.Byte())
	if int(kind) >= breakdown.Kinds {
		c.Fail()
	}
	return kind
}

// AppendLeaf appends a leaf, except the shares.
func (r *Run) AppendLeaf(b []byte, l *Leaf) []byte {
	b = append(append(append(b, l.Trace[:]...), l.Span[:]...), l.Parent[:]...)
	b = wire.AppendVarints(b, l.Start, l.End-l.Start, l.Late, l.Blame, int64(l.LateRank), int64(l.Ranks), int64(l.PID), int64(l.LatePID))
	for _, n := range [...]uint32{l.Name, l.Comm, l.Host, l.LateHost} {
		b = wire.AppendBytes(b, r.Text(n))
	}
	return append(b, byte(l.Kind), byte(l.Flags))
}

// ReadLeaf reads what AppendLeaf has written.
func (r *Run) ReadLeaf(c *wire.Cursor) (l Leaf) {
	l.Trace, l.Span, l.Parent = ReadTrace(c), readSpan(c), readSpan(c)
	l.Start = c.Varint()
	l.End, l.Late, l.Blame = l.Start+c.Varint(), c.Varint(), c.Varint()
	l.LateRank, l.Ranks, l.PID, l.LatePID = int32(c.Varint()), int32(c.Varint()), int32(c.Varint()), int32(c.Varint())
	l.Name, l.Comm, l.Host, l.LateHost = r.readText(c), r.readText(c), r.readText(c), r.readText(c)
	l.Kind, l.Flags = readKind(c), Flags(c.Byte())
	return l
}

// Append appends a window, except the values in the leaf of the same span.
func (w *Window) Append(b []byte) []byte {
	return append(wire.AppendFloats(wire.AppendVarints(b, w.Number, w.World), w.Steps, w.Batch), byte(w.Kind))
}

// ReadWindow reads what Window.Append has written, for the window of a leaf's span.
func ReadWindow(c *wire.Cursor, l *Leaf) Window {
	w := Window{
		Number: c.Varint(), World: c.Varint(), Steps: c.Float64(), Batch: c.Float64(), Kind: WindowKind(c.Byte()),
		Flags: l.Flags, Span: l.Span, Start: l.Start, End: l.End, Host: l.Host, PID: l.PID, Name: l.Name,
	}
	if w.Kind > Other {
		c.Fail()
	}
	return w
}

// Append appends a stage.
func (s *Stage) Append(b []byte) []byte {
	return append(wire.AppendVarints(append(b, s.Span[:]...), s.Start, s.End-s.Start), byte(s.Kind), byte(s.Flags))
}

// ReadStage reads what Stage.Append has written.
func ReadStage(c *wire.Cursor) Stage {
	s := Stage{Span: readSpan(c), Start: c.Varint()}
	s.End, s.Kind, s.Flags = s.Start+c.Varint(), readKind(c), Flags(c.Byte())
	return s
}

// AppendUnplaced appends a pass or a call without a time.
func (r *Run) AppendUnplaced(b []byte, u *Unplaced) []byte {
	b = wire.AppendVarints(append(append(b, u.Span[:]...), u.Parent[:]...), u.Start, u.End-u.Start, u.Number)
	return appendBool(wire.AppendBytes(b, r.Text(u.Name)), u.Call, u.Observed)
}

// ReadUnplaced reads what AppendUnplaced has written.
func (r *Run) ReadUnplaced(c *wire.Cursor) Unplaced {
	u := Unplaced{Span: readSpan(c), Parent: readSpan(c), Start: c.Varint()}
	u.End, u.Number, u.Name = u.Start+c.Varint(), c.Varint(), r.readText(c)
	readBools(c, &u.Call, &u.Observed)
	return u
}

// Append appends shares.
func (s *Shares) Append(b []byte) []byte { return wire.AppendFloats(b, s[:]...) }

// ReadShares reads what Shares.Append has written.
func ReadShares(c *wire.Cursor) (s Shares) {
	for i := range s {
		s[i] = c.Float64()
	}
	return s
}

// Append appends a watermark.
func (w *Watermark) Append(b []byte) []byte {
	return appendBool(wire.AppendVarints(wire.AppendBytes(b, w.Source), w.Epoch, w.Number, w.Until, w.Sent, w.Unreadable), w.First)
}

// ReadWatermark reads what Watermark.Append has written.
func ReadWatermark(c *wire.Cursor) Watermark {
	w := Watermark{Source: string(c.Bytes()), Epoch: c.Varint(), Number: c.Varint(), Until: c.Varint(), Sent: c.Varint(), Unreadable: c.Varint()}
	readBools(c, &w.First)
	return w
}

// RunState has the values of a run that are not about a single span.
type RunState struct {
	Trainer, Partition                        string
	Ranks, World, Apart                       int64
	Sampled, RecordOnly, takenOver, unsettled bool
}

// State returns the values of the run that are not about a single span.
func (r *Run) State() RunState {
	return RunState{r.Trainer, r.Partition, r.Ranks, r.World, r.Apart, r.Sampled, r.RecordOnly, r.takenOver, r.unsettled}
}

// Append appends the state, for ReadRunState.
func (w *RunState) Append(b []byte) []byte {
	b = wire.AppendBytes(wire.AppendBytes(b, w.Trainer), w.Partition)
	return appendBool(wire.AppendVarints(b, w.Ranks, w.World, w.Apart), w.Sampled, w.RecordOnly, w.takenOver, w.unsettled)
}

// ReadRunState reads what RunState.Append has written into the run. Numbers that only grow keep the larger value.
func (r *Run) ReadRunState(c *wire.Cursor) {
	r.Trainer, r.Partition = string(c.Bytes()), string(c.Bytes())
	r.Ranks, r.World, r.Apart = max(r.Ranks, c.Varint()), max(r.World, c.Varint()), max(r.Apart, c.Varint())
	readBools(c, &r.Sampled, &r.RecordOnly, &r.takenOver, &r.unsettled)
}

// AppendState appends what is known of the run apart from single facts: RunState, the end of lost facts, the watermarks, and how far each source has come.
func (r *Run) AppendState(b []byte) []byte {
	w := r.State()
	b = wire.AppendBytes(wire.AppendVarints(w.Append(b), r.Lost), r.LostBy)
	b = binary.AppendUvarint(b, uint64(len(r.marks)))
	for source, m := range r.marks {
		b = appendBool(wire.AppendVarints(wire.AppendBytes(b, source), m.epoch, m.number, m.until), m.midway)
	}
	b = binary.AppendUvarint(b, uint64(len(r.sources)))
	for name, s := range r.sources {
		b = wire.AppendVarints(wire.AppendBytes(b, name), s.until)
	}
	return b
}

// ReadState reads what AppendState has written.
func (r *Run) ReadState(c *wire.Cursor, now time.Time) {
	r.ReadRunState(c)
	lost, by := c.Varint(), string(c.Bytes())
	r.MarkLost(lost, by)
	for range c.Count(5) { // the watermarks, of 5 bytes at least
		source := string(c.Bytes())
		m := mark{epoch: c.Varint(), number: c.Varint(), until: c.Varint()}
		readBools(c, &m.midway)
		r.setMark(source, m)
	}
	for range c.Count(2) { // the sources
		name := string(c.Bytes())
		r.Advance(name, c.Varint(), now)
	}
}

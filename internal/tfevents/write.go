package tfevents

import (
	"encoding/binary"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Writer writes an event file for TensorBoard, with a call of Write for each record. It is not safe for concurrent use.
type Writer struct {
	out    io.Writer
	record []byte
}

// NewWriter begins a file, with the event of its version. wallTime is in s since 1970. Errors are those of Write, here as in all methods.
// TensorBoard reads files with "tfevents" in their names.
func NewWriter(out io.Writer, wallTime float64) (*Writer, error) {
	w := &Writer{out: out}
	w.begin(wallTime, 0)
	w.record = protowire.AppendVarint(w.record, eventFileVersion)
	w.record = protowire.AppendString(w.record, "brain.Event:2")
	return w, w.end()
}

// Scalar writes a scalar as simple_value, which rounds its value to float32. Invalid UTF-8 in its tag is replaced.
func (w *Writer) Scalar(s Scalar) error {
	tag := strings.ToValidUTF8(s.Tag, "\uFFFD")
	value := 1 + protowire.SizeBytes(len(tag)) + 1 + protowire.SizeFixed32() // B; a key takes 1
	w.begin(s.WallTime, s.Step)
	w.record = protowire.AppendVarint(w.record, eventSummary)
	w.record = protowire.AppendVarint(w.record, uint64(1+protowire.SizeBytes(value)))
	w.record = protowire.AppendVarint(w.record, summaryValue)
	w.record = protowire.AppendVarint(w.record, uint64(value))
	w.record = protowire.AppendVarint(w.record, valueTag)
	w.record = protowire.AppendString(w.record, tag)
	w.record = protowire.AppendVarint(w.record, valueSimple)
	w.record = protowire.AppendFixed32(w.record, math.Float32bits(float32(s.Value)))
	return w.end()
}

// Start writes the beginning of a session.
func (w *Writer) Start(s Start) error {
	w.begin(s.WallTime, s.Step)
	w.record = protowire.AppendVarint(w.record, eventSessionLog)
	w.record = protowire.AppendBytes(w.record, []byte{byte(sessionStatus), sessionStart})
	return w.end()
}

// begin leaves room for the header, and begins an event.
func (w *Writer) begin(wallTime float64, step int64) {
	w.record = append(w.record[:0], make([]byte, headerSize)...)
	w.record = protowire.AppendVarint(w.record, eventWallTime)
	w.record = protowire.AppendFixed64(w.record, math.Float64bits(wallTime))
	w.record = protowire.AppendVarint(w.record, eventStep)
	w.record = protowire.AppendVarint(w.record, uint64(step))
}

// end writes the record.
func (w *Writer) end() error {
	header, data := w.record[:headerSize], w.record[headerSize:]
	binary.LittleEndian.PutUint64(header, uint64(len(data)))
	binary.LittleEndian.PutUint32(header[lengthSize:], checksum(header[:lengthSize]))
	w.record = binary.LittleEndian.AppendUint32(w.record, checksum(data))
	_, err := w.out.Write(w.record)
	return err
}

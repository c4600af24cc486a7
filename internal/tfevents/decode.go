package tfevents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrDamaged is a file that is unreadable behind an offset: the checksum of a length is wrong, or a record is longer than any event may be. The offset is in
// the text of the error that wraps ErrDamaged.
var ErrDamaged = errors.New("the event file is damaged")

// DefaultMaxRecord bounds the data of a record, in bytes, without a MaxRecord. TensorFlow 1 writes scalars and images in one record.
const DefaultMaxRecord = 64 << 20

const (
	lengthSize = 8         // B
	headerSize = 12        // B: the length and its checksum
	footerSize = 4         // B: the checksum of the data
	mostEvent  = 1<<31 - 1 // B: protobuf has no longer messages
	mostBuffer = 1 << 20   // B that a Decoder keeps from one torn record to the next
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is CRC-32C, masked as in LevelDB, since data may hold checksums.
func checksum(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// Scalar is a value of a tag at a step.
type Scalar struct {
	WallTime float64 // s since 1970: when the trainer handed the value to its writer. NaN is possible
	Step     int64   // as the trainer counts; 0 where none was given
	Tag      string  // valid UTF-8
	Value    float64 // NaN and infinity are possible
}

// Start is the beginning of a session (SessionLog.START). TensorFlow 1 writes a Start for each session, torch's SummaryWriter only where purge_step is given.
// A trainer resumes at Step: earlier values of the run at Step or later are void. TensorBoard's readers differ. In Python the first Start of a run voids
// nothing (tensorboard/backend/event_processing/plugin_event_accumulator.py @70b76c92, _CheckForRestartAndMaybePurge). The data server passes over Starts: a
// value voids the earlier values of its tag at its step or later (tensorboard/data/server/reservoir.rs).
type Start struct {
	WallTime float64 // s since 1970
	Step     int64
}

// Counts are the numbers of records and values that a Decoder has seen.
//
//	Records = Events + Corrupt + Malformed + TooLong
type Counts struct {
	Records   uint64
	Events    uint64 // decoded ones, with scalars or without
	Corrupt   uint64 // the checksum of the data is wrong: skipped
	Malformed uint64 // no event in protobuf; scalars before the flaw are given
	TooLong   uint64 // longer than MaxRecord: skipped, and counted at its beginning

	Scalars uint64 // values, given to Decoder.Scalar
	Others  uint64 // values, but no scalars, and not decoded: histograms, images, texts
}

// Decoder decodes an event file from chunks, while the file grows. The zero Decoder is ready for the beginning of a file. Its memory is bounded, to about
// twice MaxRecord and 10 MiB. It is not safe for concurrent use.
type Decoder struct {
	// Scalar is called for each scalar, in the order of the file; nil: scalars are counted only. A tag may be kept.
	Scalar func(Scalar)
	// Start is called for each start of a session, or is nil.
	Start func(Start)
	// MaxRecord bounds the data of a record, in bytes; 0: DefaultMaxRecord.
	MaxRecord int

	rest   []byte // the beginning of a torn record
	long   int64  // B of a record to skip
	skip   int64  // B of these to come
	offset int64
	counts Counts
	tags   tags
	err    error
}

// NewDecoder makes a Decoder for a file's bytes from an offset on, at which a record begins: Offset of an earlier Decoder.
func NewDecoder(offset int64) *Decoder { return &Decoder{offset: offset} }

// Offset is the position of the next record in the file, in bytes; during a call of Scalar or Start, of the current record.
func (d *Decoder) Offset() int64 { return d.offset }

// Torn is the number of bytes behind Offset that wait for the rest of their record; 0 where the file is damaged. At the end of a finished file they are lost.
func (d *Decoder) Torn() int64 { return int64(len(d.rest)) + d.long - d.skip }

// Counts are the numbers so far.
func (d *Decoder) Counts() Counts { return d.counts }

// Decode takes the next bytes of the file, however many, and keeps none. How a file is cut into chunks makes no difference. An error wraps ErrDamaged, and each
// later call returns the same.
func (d *Decoder) Decode(chunk []byte) error {
	for d.err == nil {
		if d.skip > 0 { // within a record that is too long
			n := min(d.skip, int64(len(chunk)))
			chunk = chunk[n:]
			if d.skip -= n; d.skip > 0 {
				break
			}
			d.offset += d.long
			d.long = 0
		}
		torn := len(d.rest) > 0
		b := chunk
		if torn {
			b = d.rest // a record that began in an earlier chunk, without more of the file behind
		}
		size := d.recordSize(b)
		switch missing := size - int64(len(b)); {
		case d.err != nil || d.skip > 0: // recordSize has found damage, or a record that is too long
		case missing <= 0 && torn:
			d.record(b)
			d.forget()
		case missing <= 0:
			d.record(b[:size])
			chunk = chunk[size:]
		case len(chunk) == 0:
			return nil
		default: // up to the end of the header or of the record
			n := min(missing, int64(len(chunk)))
			d.rest = append(d.rest, chunk[:n]...)
			chunk = chunk[n:]
		}
	}
	return d.err
}

// forget empties rest.
func (d *Decoder) forget() {
	d.rest = d.rest[:0]
	if cap(d.rest) > mostBuffer {
		d.rest = nil
	}
}

// recordSize is the size of the record at the beginning of b; while its length is unknown, the size of the header. A record that is too long is left to skip.
func (d *Decoder) recordSize(b []byte) int64 {
	if len(b) < headerSize {
		return headerSize
	}
	length, ok := dataLength(b)
	if !ok {
		d.err = fmt.Errorf("%w: no length of a record at byte %d", ErrDamaged, d.offset)
		d.rest = nil
		return 0
	}
	size := headerSize + length + footerSize
	most := d.MaxRecord
	if most == 0 {
		most = DefaultMaxRecord
	}
	if length > int64(most) { // Decode skips all of the record, of which rest may have a part
		d.counts.Records++
		d.counts.TooLong++
		d.long, d.skip = size, size-int64(len(d.rest))
		d.forget()
	}
	return size
}

// dataLength reads a header: the length of the record's data.
func dataLength(header []byte) (n int64, ok bool) {
	length := binary.LittleEndian.Uint64(header)
	sum := binary.LittleEndian.Uint32(header[lengthSize:])
	return int64(length), length <= mostEvent && checksum(header[:lengthSize]) == sum
}

// RecordSize is the size of the record at the beginning of b, with its framing; 0: b is too short. The only error is ErrDamaged.
func RecordSize(b []byte) (int64, error) {
	if len(b) < headerSize {
		return 0, nil
	}
	length, ok := dataLength(b)
	if !ok {
		return 0, ErrDamaged
	}
	return headerSize + length + footerSize, nil
}

// recordData is the data of a whole record; !ok: its checksum is wrong.
func recordData(record []byte) (data []byte, ok bool) {
	end := len(record) - footerSize
	data = record[headerSize:end]
	return data, checksum(data) == binary.LittleEndian.Uint32(record[end:])
}

// record decodes a whole record b: counts it as an event, as corrupt (a wrong checksum) or as malformed, and moves Offset behind.
func (d *Decoder) record(b []byte) {
	d.counts.Records++
	data, ok := recordData(b)
	switch {
	case !ok:
		d.counts.Corrupt++
	case d.event(data):
		d.counts.Events++
	default:
		d.counts.Malformed++
	}
	d.offset += int64(len(b))
}

// IsEventFile says whether head begins an event file: the first record is sound and an event with the version of the file, as all writers
// begin. A head shorter than the first record is none; 128 bytes are enough for all known writers.
func IsEventFile(head []byte) bool {
	if len(head) < headerSize {
		return false
	}
	length, ok := dataLength(head)
	size := headerSize + length + footerSize
	if !ok || size > int64(len(head)) {
		return false
	}
	data, ok := recordData(head[:size])
	return ok && isVersion(data)
}

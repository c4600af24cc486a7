package wandb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// MaxRecord is the length of the longest record to be read, in bytes.
const MaxRecord = 16 << 20

// ErrHeader is the error of a file without the beginning of a W&B file of version 0.
var ErrHeader = errors.New("not a W&B file of version 0")

const (
	header       = ":W&B\xe1\xbe\x00"
	blockSize    = 32 << 10
	fragmentHead = 7       // bytes before the data of a fragment
	keptRecord   = 1 << 20 // the largest buffer kept for the next record of several fragments
)

// Types of fragments.
const (
	full = iota + 1
	first
	middle
	last
)

// Handler is called with the records, in the order of the file. An argument, with all its slices, holds until the function returns. Where a function is nil,
// records of the kind are counted, but not looked into.
type Handler struct {
	History func(*History)
	Stats   func(*Stats)
	Run     func(*Run)
	Config  func(*Config)
	Exit    func(*Exit)
}

// Counts are numbers of records.
type Counts struct {
	History, Stats, Run, Config, Exit int64
	Skipped                           int64 // of further kinds: summaries, console output, telemetry
	Malformed                         int64 // whole, but no protobuf message of the kind
	TooLong                           int64 // longer than MaxRecord
	Damaged                           int64 // blocks passed over from some place on, and records without their end
}

// Decoder reads a file in pieces of any size. It holds a fragment (32 KiB) and a record of several fragments (up to MaxRecord).
type Decoder struct {
	handler Handler
	counts  Counts
	err     error

	pos  int64  // place in the file of the next fragment, padding or header
	skip int    // bytes before pos still to come
	part []byte // the beginning of a fragment, the end of which is still to come

	record []byte // the fragments of a record so far
	begun  bool   // record is in use
	start  int64  // place of the record in the file

	row   History
	stats Stats
	run   Run
	cfg   Config
	end   Exit
	items []Item
	text  []byte // keys and values put together
}

// IsFile says whether head begins a W&B file of version 0. 7 bytes are enough.
func IsFile(head []byte) bool { return bytes.HasPrefix(head, []byte(header)) }

// NewDecoder returns a decoder for the bytes from offset on: 0, or the Offset of an earlier decoder.
func NewDecoder(offset int64, handler Handler) *Decoder {
	return &Decoder{handler: handler, pos: offset}
}

// Counts returns the numbers of records read.
func (d *Decoder) Counts() Counts { return d.counts }

// Offset is the place in the file of the first record not read to its end: all before went to the handler, or was counted. The place may lie up to a block
// behind the bytes read, where the rest of a block is passed over.
func (d *Decoder) Offset() int64 {
	if d.begun {
		return d.start
	}
	return d.pos
}

// Feed reads the next bytes of the file. A record without its end waits for the next call. A damaged fragment costs the rest of its block, as in the SDK.
// The only error is ErrHeader, which stays.
func (d *Decoder) Feed(p []byte) error {
	for len(p) > 0 && d.err == nil {
		p = d.piece(p)
	}
	return d.err
}

// Next is Feed for a caller that stops after each record: n is the number of bytes of p read, up to the end of the first record, or of a header, padding or
// damage. whole is false if p ends before.
func (d *Decoder) Next(p []byte) (n int, whole bool) {
	rest := p
	for len(rest) > 0 && d.err == nil {
		rest = d.piece(rest)
		if !d.begun && d.skip == 0 && len(d.part) == 0 {
			return len(p) - len(rest), true
		}
	}
	return len(p) - len(rest), false
}

// piece reads the header, padding, the rest of a damaged block, or a fragment, and returns the bytes behind.
func (d *Decoder) piece(p []byte) []byte {
	left := blockSize - int(d.pos%blockSize)
	switch {
	case d.skip > 0: // pos is already behind
		n := min(d.skip, len(p))
		d.skip -= n
		return p[n:]
	case d.pos < int64(len(header)):
		return d.head(p)
	case left < fragmentHead: // padding
		d.skip = left
		d.pos += int64(left)
		return p
	}
	return d.fragment(p, left)
}

// head checks the header of the file, and returns the bytes behind.
func (d *Decoder) head(p []byte) []byte {
	b, rest := d.take(p, len(header))
	if b == nil {
		return nil
	}
	if string(b) != header {
		d.err = fmt.Errorf("%w: begins with %q", ErrHeader, b)
		return nil
	}
	d.pos += int64(len(b))
	d.part = d.part[:0]
	return rest
}

// take returns the n bytes from d.pos on, of which d.part may have the beginning and p has the rest, and the bytes of p behind. nil: some are missing, and all
// of p is kept in d.part.
func (d *Decoder) take(p []byte, n int) (b, rest []byte) {
	if len(d.part) == 0 && len(p) >= n {
		return p[:n], p[n:]
	}
	k := min(n-len(d.part), len(p))
	d.part = append(d.part, p[:k]...)
	if len(d.part) < n {
		return nil, nil
	}
	return d.part, p[k:]
}

// fragment reads the fragment at d.pos, left bytes before the end of its block, and returns the bytes behind.
func (d *Decoder) fragment(p []byte, left int) []byte {
	var head [fragmentHead]byte // checksum, length, type
	n := copy(head[:], d.part)
	if n += copy(head[n:], p); n < fragmentHead {
		d.part = append(d.part, p...)
		return nil
	}
	kind, size := head[6], fragmentHead+int(binary.LittleEndian.Uint16(head[4:]))
	if size > left || kind < full || kind > last { // the length is worth nothing: nothing of p is taken
		d.damaged(left, len(d.part))
		return p
	}
	b, rest := d.take(p, size)
	if b == nil {
		return nil
	}
	if crc32.ChecksumIEEE(b[6:]) != binary.LittleEndian.Uint32(b) {
		d.damaged(left, size)
		return rest
	}
	d.assemble(kind, b[fragmentHead:])
	d.pos += int64(size)
	d.part = d.part[:0]
	return rest
}

// damaged counts damage and passes over the rest of the block: left bytes, of which read were taken already. A record begun before is lost.
func (d *Decoder) damaged(left, read int) {
	d.counts.Damaged++
	d.begun = false
	d.skip = left - read
	d.pos += int64(left)
	d.part = d.part[:0]
}

// assemble adds a fragment to its record, and reads the record with its last fragment.
func (d *Decoder) assemble(kind byte, data []byte) {
	if kind == full || kind == first {
		if d.begun { // the end of the record before is missing
			d.counts.Damaged++
		}
		d.begun, d.start, d.record = kind == first, d.pos, d.record[:0]
	}
	switch {
	case kind == full:
		d.read(data)
	case !d.begun: // The beginning was damaged or too long, and is counted.
	case len(d.record)+len(data) > MaxRecord:
		d.counts.TooLong++
		d.begun, d.record = false, nil
	default:
		d.record = append(d.record, data...)
		if kind == last {
			d.begun = false
			d.read(d.record)
			if cap(d.record) > keptRecord {
				d.record = nil
			}
		}
	}
}

package envelope

import (
	"bytes"
	"time"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
)

// export reads entries in the format of journalctl -o export (systemd.io/JOURNAL_EXPORT_FORMATS): a field a line, "MESSAGE=text". A field with unprintable
// bytes has its name on a line; then follow eight bytes of length, little endian, and the value.
type export struct {
	stamp []byte // the entry's time, in the notation of clock.Stamps
	left  int    // unread bytes of the length, after the name of a message with unprintable bytes
}

var (
	exportTime    = []byte("__REALTIME_TIMESTAMP=")
	exportMessage = []byte("MESSAGE=")
	exportBinary  = []byte("MESSAGE")
)

const lengthBytes = 8

// journal returns the message in a line of an entry, nil for another field of the entry. ok is false for a line of another format. An entry's time comes before
// its other fields (but __CURSOR), so other fields are only looked for after the first time.
func (p *Peeler) journal(b []byte) (text []byte, ok bool) {
	e := p.exp
	switch {
	case e != nil && e.left > 0:
		return e.binary(b)
	case bytes.HasPrefix(b, exportTime):
		us, end := decimal.Unsigned(b, len(exportTime))
		if end != len(b) || us > 1<<60 { // no number alone, or a time beyond the year 38000
			return nil, false
		}
		if e == nil {
			e = new(export)
			p.exp = e
		}
		e.stamp = time.UnixMicro(int64(us)).UTC().AppendFormat(e.stamp[:0], "2006-01-02T15:04:05.000000Z")
		return nil, true
	case e == nil:
		return nil, false
	case bytes.HasPrefix(b, exportMessage):
		return b[len(exportMessage):], true
	case bytes.Equal(b, exportBinary):
		e.left = lengthBytes
		return nil, true
	case isField(b):
		return nil, true
	}
	return nil, false
}

// binary reads a line behind the name of a message with unprintable bytes: the length and the first line of the value. The value's length is not used: later
// lines of the value are lines as any.
func (e *export) binary(b []byte) (text []byte, ok bool) {
	n := min(len(b), e.left) // bytes of the length in this line
	// A length is below 4 GiB: the upper four bytes are zero, else the line is none of a journal.
	isLength := bytes.IndexFunc(b[max(0, n-4):n], func(r rune) bool { return r != 0 }) < 0
	if n < e.left { // a byte of the length has ended the line: 10, a newline
		e.left -= n + 1
		return nil, true
	}
	e.left = 0
	if !isLength {
		return nil, false
	}
	return b[n:], true
}

// isField says whether a line is another field of an entry: "_HOSTNAME=gpu-01".
func isField(b []byte) bool {
	n := 0
	for n < len(b) && n < 64 && (b[n] >= 'A' && b[n] <= 'Z' || b[n] == '_' || ascii.IsDigit(b[n])) { // 64: journald's limit of a name
		n++
	}
	return n > 2 && n < len(b) && b[n] == '='
}

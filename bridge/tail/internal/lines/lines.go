// Package lines finds the lines of a file in its chunks, for all encodings. Rows of a tracker's binary file are lines too.
package lines

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/rows"
)

// Splitter walks the lines of a chunk. A line ends with \n, \r\n or a lone \r: progress bars rewrite their line with \r, and hours of a bar would otherwise be
// one giant line.
type Splitter struct {
	data []byte
	Pos  int // where the next line begins
	nl   int // the next \n at or after Pos, len(data) if none: kept, because looking for an absent byte costs the whole chunk
	cr   int // the next \r, likewise
	enc  Encoding
	text *[]byte // buffer of decoded lines
	base int64   // offset of data in the file

	// Bad: the last line is damaged, and has no text.
	Bad bool
}

// NewSplitter returns a Splitter of data, which begins at a line's beginning at the offset base of the file. text is the buffer for decoded lines.
func NewSplitter(data []byte, enc Encoding, text *[]byte, base int64) Splitter {
	if enc != Unknown && enc != Bytes {
		return Splitter{data: data, enc: enc, text: text, base: base}
	}
	return Splitter{data: data, nl: indexFrom(data, 0, '\n'), cr: indexFrom(data, 0, '\r')}
}

// indexFrom returns the place of c in data at or after from; len(data): none.
func indexFrom(data []byte, from int, c byte) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		return from + i
	}
	return len(data)
}

// Next returns the next line without its ending and moves Pos after the ending. It returns false where the data ends before the line does. A \r as the very
// last byte may be half of \r\n, so it ends a line only in final data, as does the end itself.
func (s *Splitter) Next(final bool) ([]byte, bool) {
	switch {
	case s.enc.Wide():
		return s.enc.next(s, final)
	case s.enc == Open:
		return nil, false
	case s.enc.Rows():
		return s.row(final)
	}
	start := s.Pos
	switch {
	case s.nl < s.cr:
		s.Pos = s.nl + 1
		text := s.data[start:s.nl]
		s.nl = indexFrom(s.data, s.Pos, '\n')
		return text, true
	case s.cr < s.nl:
		if s.cr == len(s.data)-1 && !final {
			return nil, false
		}
		text := s.data[start:s.cr]
		s.Pos = s.cr + 1
		if s.Pos < len(s.data) && s.nl == s.Pos { // \r\n
			s.Pos++
			s.nl = indexFrom(s.data, s.Pos, '\n')
		}
		s.cr = indexFrom(s.data, s.Pos, '\r')
		return text, true
	case final && start < len(s.data):
		s.Pos = len(s.data)
		return s.data[start:], true
	}
	return nil, false
}

// BOM is the byte order mark as UTF-8.
var BOM = []byte("\xef\xbb\xbf")

// HeadBytes is the number of first bytes that decide a file's encoding.
const HeadBytes = rows.HeadBytes

// Encoding is the character encoding of a file, or the kind of its rows. It is decided by the file's first bytes.
type Encoding uint8

// The encodings.
const (
	Unknown Encoding = iota // not looked at yet, or of fewer than two bytes
	Bytes                   // UTF-8, or any other bytes
	UTF16LE
	UTF16BE
	Open // undecided before more of the file is written
	Events
	WandB
)

// EncodingOf returns the encoding of a file that begins with b. The first HeadBytes decide.
func EncodingOf(b []byte) Encoding {
	b = b[:min(len(b), HeadBytes)]
	kind, open := rows.KindOf(b)
	switch {
	case kind == rows.Events:
		return Events
	case kind == rows.WandB:
		return WandB
	case open:
		return Open
	case len(b) < 2:
		return Unknown
	case b[0] == 0xff && b[1] == 0xfe:
		return UTF16LE
	case b[0] == 0xfe && b[1] == 0xff:
		return UTF16BE
	}
	return Bytes
}

// Wide reports whether characters are of two bytes. Then every position in the file is even.
func (e Encoding) Wide() bool { return e == UTF16LE || e == UTF16BE }

// Rows reports whether the file is binary, with lines made of records.
func (e Encoding) Rows() bool { return e == Events || e == WandB }

// kind returns the kind of a file of rows.
func (e Encoding) kind() rows.Kind {
	if e == WandB {
		return rows.WandB
	}
	return rows.Events
}

// row implements Splitter.Next for files of rows.
func (s *Splitter) row(final bool) ([]byte, bool) {
	line := s.enc.kind().Next(*s.text, s.data[s.Pos:], s.base+int64(s.Pos), final)
	if line.Text != nil {
		*s.text = line.Text
	}
	s.Pos += line.N
	s.Bad = line.Bad
	return line.Text, line.N > 0
}

// Past returns the number of bytes to skip in a file of rows, from an offset on, where the row beginning with b is too long.
func (e Encoding) Past(b []byte, offset int64) int64 { return e.kind().Past(b, offset) }

// Begin returns the last offset, up to the given offset, at which a row of a file of rows may begin; -1: known only by reading the file from its beginning.
func (e Encoding) Begin(offset int64) int64 { return e.kind().Begin(offset) }

// unit returns the first 16 bits of b.
func (e Encoding) unit(b []byte) uint16 {
	if e == UTF16LE {
		return binary.LittleEndian.Uint16(b)
	}
	return binary.BigEndian.Uint16(b)
}

// Most returns the number of droppable bytes among n bytes of an overlong line: all but the last character, which may be half of \r\n.
func (e Encoding) Most(n int) int {
	if e.Wide() {
		return max(0, n&^1-2)
	}
	return n - 1
}

// Decode appends b to dst as UTF-8, and returns the result. Invalid characters become U+FFFD.
func (e Encoding) Decode(dst, b []byte) []byte {
	for len(b) >= 2 {
		r := rune(e.unit(b))
		b = b[2:]
		switch {
		case r < utf8.RuneSelf:
			dst = append(dst, byte(r))
			continue
		case utf16.IsSurrogate(r): // half of a character
			pair := rune(utf8.RuneError)
			if len(b) >= 2 {
				pair = utf16.DecodeRune(r, rune(e.unit(b)))
			}
			r = pair
			if pair != utf8.RuneError { // else the next two bytes are a character of their own
				b = b[2:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// LineEnd returns the offset in b after the last line ending; 0: no line ends in b.
func (e Encoding) LineEnd(b []byte) int {
	if !e.Wide() {
		return bytes.LastIndexAny(b, "\r\n") + 1
	}
	for i := len(b)&^1 - 2; i >= 0; i -= 2 {
		if u := e.unit(b[i:]); u == '\n' || u == '\r' {
			return i + 2
		}
	}
	return 0
}

// next implements Splitter.Next for UTF-16.
func (e Encoding) next(s *Splitter, final bool) ([]byte, bool) {
	start, end := s.Pos, len(s.data)&^1
	for i := start; i < end; i += 2 {
		u := e.unit(s.data[i:])
		if u != '\n' && u != '\r' {
			continue
		}
		s.Pos = i + 2
		if u == '\r' {
			if s.Pos >= end && !final { // perhaps half of \r\n
				s.Pos = start
				return nil, false
			}
			if s.Pos < end && e.unit(s.data[s.Pos:]) == '\n' {
				s.Pos += 2
			}
		}
		return s.decoded(s.data[start:i]), true
	}
	if final && start < end {
		s.Pos = end
		return s.decoded(s.data[start:end]), true
	}
	return nil, false
}

// decoded returns a line as UTF-8, without a byte order mark. The text is valid until the next line.
func (s *Splitter) decoded(b []byte) []byte {
	*s.text = bytes.TrimPrefix(s.enc.Decode((*s.text)[:0], b), BOM)
	return *s.text
}

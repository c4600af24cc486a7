// Package lines finds the lines of a file in its chunks, however its characters are written.
package lines

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Splitter walks the lines of a chunk. A line ends with \n, \r\n or a lone \r: progress bars rewrite their line with \r, and a
// bar that ran for hours would otherwise be one giant line.
type Splitter struct {
	data []byte
	Pos  int // where the next line begins
	nl   int // the next \n at or after Pos; len(data) when there is none
	cr   int // the next \r, likewise
	enc  Encoding
	text *[]byte // of a line that is decoded
}

// NewSplitter walks data, which begin at the beginning of a line. text holds the line that was decoded last.
func NewSplitter(data []byte, enc Encoding, text *[]byte) Splitter {
	if enc.Wide() {
		return Splitter{data: data, enc: enc, text: text}
	}
	return Splitter{data: data, nl: indexFrom(data, 0, '\n'), cr: indexFrom(data, 0, '\r')}
}

func indexFrom(data []byte, from int, c byte) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		return from + i
	}
	return len(data)
}

// Next returns the next line without its ending and moves Pos behind the ending. It returns false where the data end before a
// line does. A \r as the very last byte may be half of \r\n, so it ends a line only when the data are final, as does the end itself.
func (s *Splitter) Next(final bool) ([]byte, bool) {
	if s.enc.Wide() {
		return s.enc.next(s, final)
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
		if s.Pos < len(s.data) && s.nl == s.Pos {
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

// Encoding is how a file writes its characters. It is known by the file's first two bytes.
type Encoding uint8

// The encodings.
const (
	Unknown Encoding = iota // not looked at yet
	Bytes                   // UTF-8, or whatever there is
	UTF16LE
	UTF16BE
)

// EncodingOf looks at the first two bytes of a file.
func EncodingOf(b []byte) Encoding {
	switch {
	case len(b) < 2:
		return Unknown
	case b[0] == 0xff && b[1] == 0xfe:
		return UTF16LE
	case b[0] == 0xfe && b[1] == 0xff:
		return UTF16BE
	}
	return Bytes
}

// Wide says whether characters are of two bytes. Then every position in the file is even.
func (e Encoding) Wide() bool { return e >= UTF16LE }

// unit returns the 16 bits with which b begins.
func (e Encoding) unit(b []byte) uint16 {
	if e == UTF16LE {
		return binary.LittleEndian.Uint16(b)
	}
	return binary.BigEndian.Uint16(b)
}

// Most returns how many of n bytes of a line that is too long can be dropped: the last character may be half of \r\n.
func (e Encoding) Most(n int) int {
	if e.Wide() {
		return max(0, n&^1-2)
	}
	return n - 1
}

// Decode appends b as UTF-8. Bytes that are no character become U+FFFD.
func (e Encoding) Decode(dst, b []byte) []byte {
	for len(b) >= 2 {
		r := rune(e.unit(b))
		b = b[2:]
		switch {
		case r < utf8.RuneSelf:
			dst = append(dst, byte(r))
			continue
		case utf16.IsSurrogate(r):
			pair := rune(utf8.RuneError)
			if len(b) >= 2 {
				pair = utf16.DecodeRune(r, rune(e.unit(b)))
			}
			if r = pair; pair != utf8.RuneError {
				b = b[2:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// LineEnd returns where the last line in b ends; 0: nowhere.
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

// next is Splitter.Next for characters of two bytes.
func (e Encoding) next(s *Splitter, final bool) ([]byte, bool) {
	start, end := s.Pos, len(s.data)&^1
	for i := start; i < end; i += 2 {
		u := e.unit(s.data[i:])
		if u != '\n' && u != '\r' {
			continue
		}
		s.Pos = i + 2
		if u == '\r' {
			if s.Pos >= end && !final {
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

// decoded returns a line as UTF-8. It lives until the next one.
func (s *Splitter) decoded(b []byte) []byte {
	*s.text = bytes.TrimPrefix(s.enc.Decode((*s.text)[:0], b), BOM)
	return *s.text
}

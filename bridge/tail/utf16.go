package tail

import (
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is how a file writes its characters. It is known by the file's first two bytes.
type encoding uint8

const (
	encUnknown encoding = iota // not looked at yet
	encBytes                   // UTF-8, or whatever there is
	utf16LE
	utf16BE
)

func encodingOf(b []byte) encoding {
	switch {
	case len(b) < 2:
		return encUnknown
	case b[0] == 0xff && b[1] == 0xfe:
		return utf16LE
	case b[0] == 0xfe && b[1] == 0xff:
		return utf16BE
	}
	return encBytes
}

// wide says whether characters are of two bytes. Then every position in the file is even.
func (e encoding) wide() bool { return e >= utf16LE }

// unit returns the 16 bits with which b begins.
func (e encoding) unit(b []byte) uint16 {
	if e == utf16LE {
		return binary.LittleEndian.Uint16(b)
	}
	return binary.BigEndian.Uint16(b)
}

// most returns how many of n bytes of a line that is too long can be dropped: the last character may be half of \r\n.
func (e encoding) most(n int) int {
	if e.wide() {
		return max(0, n&^1-2)
	}
	return n - 1
}

// decode appends b as UTF-8. What is no character becomes U+FFFD.
func (e encoding) decode(dst, b []byte) []byte {
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

// lineEnd returns where the last line in b ends; 0: nowhere.
func (e encoding) lineEnd(b []byte) int {
	if !e.wide() {
		return bytes.LastIndexAny(b, "\r\n") + 1
	}
	for i := len(b)&^1 - 2; i >= 0; i -= 2 {
		if u := e.unit(b[i:]); u == '\n' || u == '\r' {
			return i + 2
		}
	}
	return 0
}

// next is splitter.next for characters of two bytes.
func (e encoding) next(s *splitter, final bool) ([]byte, bool) {
	start, end := s.pos, len(s.data)&^1
	for i := start; i < end; i += 2 {
		u := e.unit(s.data[i:])
		if u != '\n' && u != '\r' {
			continue
		}
		s.pos = i + 2
		if u == '\r' {
			if s.pos >= end && !final {
				s.pos = start
				return nil, false
			}
			if s.pos < end && e.unit(s.data[s.pos:]) == '\n' {
				s.pos += 2
			}
		}
		return s.decoded(s.data[start:i]), true
	}
	if final && start < end {
		s.pos = end
		return s.decoded(s.data[start:end]), true
	}
	return nil, false
}

// decoded returns a line as UTF-8. It lives until the next one.
func (s *splitter) decoded(b []byte) []byte {
	*s.text = bytes.TrimPrefix(s.enc.decode((*s.text)[:0], b), bom)
	return *s.text
}

// findEncoding finds out how the file writes its characters; data are what was read at head.
func (f *file) findEncoding(data []byte) {
	if f.head == 0 {
		f.enc = encodingOf(data)
		return
	}
	if f.enc == encUnknown {
		var b [2]byte
		if n, err := f.src.ReadAt(b[:], 0); err == nil || err == io.EOF { //nolint:errorlint // ReadAt returns io.EOF itself
			f.enc = encodingOf(b[:n])
		}
	}
}

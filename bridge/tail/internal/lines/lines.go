// Package lines finds the lines of a file in its chunks, however its characters are written.
package lines

import (
	"bytes"
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

package tail

import "bytes"

// splitter walks the lines of a chunk. A line ends with \n, \r\n or a lone \r: progress bars rewrite their line with \r, and a
// bar that ran for hours would otherwise be one giant line.
type splitter struct {
	data []byte
	pos  int
	nl   int // the next \n at or after pos; len(data) when there is none
	cr   int // the next \r, likewise
	enc  encoding
	text *[]byte // of a line that is decoded
}

func newSplitter(data []byte, enc encoding, text *[]byte) splitter {
	if enc.wide() {
		return splitter{data: data, enc: enc, text: text}
	}
	return splitter{data: data, nl: indexFrom(data, 0, '\n'), cr: indexFrom(data, 0, '\r')}
}

func indexFrom(data []byte, from int, c byte) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		return from + i
	}
	return len(data)
}

// next returns the next line without its ending and moves pos behind the ending. It returns false where the data end before a
// line does. A \r as the very last byte may be half of \r\n, so it ends a line only when the data are final, as does the end itself.
func (s *splitter) next(final bool) ([]byte, bool) {
	if s.enc.wide() {
		return s.enc.next(s, final)
	}
	start := s.pos
	switch {
	case s.nl < s.cr:
		s.pos = s.nl + 1
		text := s.data[start:s.nl]
		s.nl = indexFrom(s.data, s.pos, '\n')
		return text, true
	case s.cr < s.nl:
		if s.cr == len(s.data)-1 && !final {
			return nil, false
		}
		text := s.data[start:s.cr]
		s.pos = s.cr + 1
		if s.pos < len(s.data) && s.nl == s.pos {
			s.pos++
			s.nl = indexFrom(s.data, s.pos, '\n')
		}
		s.cr = indexFrom(s.data, s.pos, '\r')
		return text, true
	case final && start < len(s.data):
		s.pos = len(s.data)
		return s.data[start:], true
	}
	return nil, false
}

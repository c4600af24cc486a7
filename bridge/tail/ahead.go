package tail

import (
	"bytes"
	"io"
	"math"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lines"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

// maxAhead is how much of a file one visit reads, and how much all visits of one turn read before it is another stream's turn.
const maxAhead = 128 << 20

// Ahead visits the lines that follow the one being handled in its file, up to the file's end as it is now, until visit returns false or 128 MiB were read. It
// does not change what is read next: each line comes to Handler.Line too. It is called inside Handler.Line only; the text lives until visit returns.
func (s *Stream) Ahead(visit func(text []byte) bool) {
	if s.cur.file == nil || s.document {
		return
	}
	part := checkpoint.Range{Begin: s.cur.End, End: math.MaxInt64}
	if s.arrival.End > 0 { // what came later was not there when the line was read first
		part.End = s.arrival.SeenUntil
		s.visit(s.cur.file, part, visit)
		return
	}
	s.arrival.SeenUntil = max(s.arrival.SeenUntil, s.visit(s.cur.file, part, visit))
}

// Beginning visits the lines before the one being handled, from the start of its file, as Ahead does: the lines that a reader which starts at the end has
// missed. In a compressed file it sees only the first 128 MiB.
func (s *Stream) Beginning(visit func(text []byte) bool) {
	if s.cur.file == nil || s.document {
		return
	}
	s.visit(s.cur.file, checkpoint.Range{Begin: 0, End: s.cur.Begin}, visit)
}

// visit returns the end of the last line that it visited.
func (s *Stream) visit(f *file, part checkpoint.Range, visit func(text []byte) bool) (end int64) {
	off := part.Begin
	src := f.src
	size := int64(chunkBytes)
	if u, ok := src.(*unpack.Reader); ok {
		// Going back in the one that is being read would mean to decompress everything before head again, each time.
		if f.scout == nil {
			f.scout = u.Twin()
		}
		if f.scout.GoesBack(off) && off > s.t.maxAhead {
			return end
		}
		src = f.scout
	} else if fi, err := f.raw.Stat(); err == nil {
		size = min(size, max(fi.Size()-off+1, minRead)) // mostly little or nothing follows a row that arrives
	}
	buf := make([]byte, size)
	skip := false
	var decoded []byte
	for left := s.t.maxAhead; left > 0; {
		n, err := src.ReadAt(buf, off)
		if err == unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
			n = unpack.SkipBytes
		}
		left -= int64(n)
		s.visited += int64(n)
		if err == unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
			continue
		}
		atEOF := err != nil || n < len(buf)
		if err != nil && err != io.EOF { //nolint:errorlint // ReadAt returns io.EOF itself
			return end
		}
		sp := lines.NewSplitter(buf[:n], f.enc, &decoded, off)
		for {
			begin := off + int64(sp.Pos)
			if begin >= part.End {
				return end
			}
			text, ok := sp.Next(atEOF && s.lastIsDone(f, s.line.Observed))
			if !ok {
				break
			}
			end = off + int64(sp.Pos)
			if skip {
				skip = false
				continue
			}
			text = bytes.TrimLeft(text, "\x00")
			if begin == 0 {
				text = bytes.TrimPrefix(text, lines.BOM)
			}
			if len(text) > 0 && len(text) <= s.t.cfg.MaxLineBytes && !visit(text) {
				return end
			}
		}
		switch {
		case atEOF:
			return end
		case sp.Pos > 0:
			off += int64(sp.Pos)
		case len(buf) <= s.t.cfg.MaxLineBytes:
			buf = make([]byte, 2*len(buf))
		case f.enc.Rows():
			off += f.enc.Past(buf[:n], off)
		default: // a line that is too long
			off += int64(f.enc.Most(n))
			skip = true
		}
	}
	return end
}

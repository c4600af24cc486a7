package tail

import (
	"bytes"
	"io"
	"math"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lines"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

// maxAhead bounds the bytes read by one visit, and by all visits of a turn.
const maxAhead = 128 << 20

// Ahead visits the lines of the file after the current line, up to the file's present end, until visit returns false or 128 MiB were read. The read position
// does not change: each line still comes to Handler.Line. Call Ahead inside Handler.Line only; the text is valid until visit returns.
func (s *Stream) Ahead(visit func(text []byte) bool) {
	if s.cur.file == nil || s.document {
		return
	}
	part := checkpoint.Range{Begin: s.cur.End, End: math.MaxInt64}
	if s.arrival.End > 0 { // read again after a restart: later lines were not there at the first reading
		part.End = s.arrival.SeenUntil
		s.visit(s.cur.file, part, visit)
		return
	}
	s.arrival.SeenUntil = max(s.arrival.SeenUntil, s.visit(s.cur.file, part, visit))
}

// Beginning visits the lines before the current line, from the start of its file, as Ahead does: the lines missed by a reader that starts at the end. Of a
// compressed file, only the first 128 MiB are visited.
func (s *Stream) Beginning(visit func(text []byte) bool) {
	if s.cur.file == nil || s.document {
		return
	}
	s.visit(s.cur.file, checkpoint.Range{Begin: 0, End: s.cur.Begin}, visit)
}

// visit visits the lines that begin in a part of a file, but for empty and overlong ones, at most maxAhead bytes, until visit returns false. It returns the end
// of the last line read; 0: none.
func (s *Stream) visit(f *file, part checkpoint.Range, visit func(text []byte) bool) (end int64) {
	off := part.Begin
	src := f.src
	size := int64(chunkBytes)
	if u, ok := src.(*unpack.Reader); ok {
		// Going back in the main reader would mean to decompress everything before head again, each time.
		if f.scout == nil {
			f.scout = u.Twin()
		}
		if f.scout.GoesBack(off) && off > s.t.maxAhead { // too much to decompress again
			return end
		}
		src = f.scout
	} else if fi, err := f.raw.Stat(); err == nil {
		size = min(size, max(fi.Size()-off+1, minRead)) // mostly little or nothing follows a newly written row
	}
	buf := make([]byte, size)
	skip := false // within an overlong line
	var decoded []byte
	for left := s.t.maxAhead; left > 0; {
		n, err := src.ReadAt(buf, off)
		if err == unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
			n = unpack.SkipBytes // the work of decompressing counts, too
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
		case len(buf) <= s.t.cfg.MaxLineBytes: // no line end in the buffer
			buf = make([]byte, 2*len(buf))
		case f.enc.Rows():
			off += f.enc.Past(buf[:n], off)
		default: // an overlong line
			off += int64(f.enc.Most(n))
			skip = true
		}
	}
	return end
}

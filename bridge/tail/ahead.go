package tail

import "io"

// Ahead visits the lines that follow the one being handled in its file, up to the file's end as it is now, until visit returns false. What is
// read next stays as it is: each line comes to Handler.Line too. It is called inside Handler.Line only; the text lives until visit returns.
func (s *Stream) Ahead(visit func(text []byte) bool) {
	if s.cur.file == nil || s.document {
		return
	}
	s.visit(s.cur.file, s.cur.end, visit)
}

// Beginning visits the lines of the file being handled from its start, as Ahead does: for what a reader that starts at the end has missed.
func (s *Stream) Beginning(visit func(text []byte) bool) {
	if s.cur.file == nil || s.document {
		return
	}
	s.visit(s.cur.file, 0, visit)
}

func (s *Stream) visit(f *file, off int64, visit func(text []byte) bool) {
	src := f.src
	if u, ok := src.(*unpacked); ok {
		// Going back in the one that is being read would mean to decompress everything before head again, each time.
		fresh := &unpacked{raw: u.raw, kind: u.kind, size: u.size, free: u.free}
		defer fresh.stop()
		src = fresh
	}
	buf := make([]byte, chunkBytes)
	skip := false
	for {
		n, err := src.ReadAt(buf, off)
		atEOF := err != nil || n < len(buf)
		if err != nil && err != io.EOF { //nolint:errorlint // ReadAt returns io.EOF itself
			return
		}
		sp := newSplitter(buf[:n])
		for {
			text, ok := sp.next(atEOF && s.lastIsDone(f, s.line.Observed))
			if !ok {
				break
			}
			if skip {
				skip = false
				continue
			}
			if len(text) > 0 && len(text) <= s.t.cfg.MaxLineBytes && !visit(text) {
				return
			}
		}
		switch {
		case atEOF:
			return
		case sp.pos > 0:
			off += int64(sp.pos)
		case len(buf) <= s.t.cfg.MaxLineBytes:
			buf = make([]byte, 2*len(buf))
		default: // a line that is too long
			off += int64(n - 1) // the last byte may be half of \r\n
			skip = true
		}
	}
}

package tail

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/lines"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
)

const maxDocument = 64 << 20

// document is the state of a stream whose file is rewritten whole: each new content is passed on as one line.
type document struct {
	file    *file     // of the content handed over last; nil: the path was not looked at yet
	size    int64     // at the last look
	mtime   time.Time // likewise
	changed bool      // since the last content was passed on
	stable  bool      // unchanged for one look
	failed  bool      // the last attempt to read failed
	sum     uint64    // of the content accepted last
	given   uint64    // of the content handed over last
}

// lookDocument is look for a document: it has a content read that differs from the last in size or time, once two looks in a row have found the same. A
// document that is gone, or no regular file any more, is forgotten when all of it was accepted.
func (w *sweeper) lookDocument(s *Stream, now time.Time) {
	d := &s.doc
	fi, err := w.t.stat(s.path)
	if err != nil || !fi.Mode().IsRegular() {
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			w.t.readError(s.path, err)
		case s.held.n == 0 && len(s.flying) == 0:
			w.forget(s)
			return
		}
	} else if d.file == nil || fi.Size() != d.size || !fi.ModTime().Equal(d.mtime) {
		if d.file == nil {
			d.file = &file{stream: s, path: s.path}
		}
		d.size, d.mtime = fi.Size(), fi.ModTime()
		d.changed, d.stable = true, w.t.final // a Once looks once
		s.activeAt = now
	} else {
		d.stable = true
	}
	if d.changed && d.stable {
		w.t.schedule(s)
	}
	s.noteCaughtUp()
	w.expire(s, now)
	w.endLook(s, now) // looks again later; a document keeps its handler (suspends)
}

// readDocument reads the file whole and passes its content on as one line, unless the content is empty, is too long (rejected), or equals the last one
// passed on, or after a restart the last one accepted. A file that changed since the look is left to the next looks.
func (s *Stream) readDocument(buf *[]byte) {
	d := &s.doc
	if !d.changed || !d.stable || s.t.mayRead(s) == 0 {
		return
	}
	raw, fi, err := osfile.Open(s.path, s.t.cfg.FollowSymlinks)
	if err != nil {
		d.failed = true
		s.t.readError(s.path, err)
		return
	}
	src := s.t.unpack(s.path, raw)
	defer src.Close()
	if fi.Size() != d.size || !fi.ModTime().Equal(d.mtime) {
		return // being rewritten
	}
	n := 0 // bytes read; the last ReadAt finds the end, because a decompressed length is not known before
	for {
		b := grow2(buf, n, min(maxDocument+1, max(2*n, int(d.size)+1)))
		m, err := src.ReadAt(b[n:], int64(n))
		n += m
		if err != nil && !errors.Is(err, io.EOF) {
			d.failed = true
			s.t.readError(s.path, err)
			return
		}
		if n < len(b) || n > maxDocument {
			break
		}
	}
	d.changed, d.failed = false, false
	text := (*buf)[:n]
	if n > maxDocument {
		s.tally.lines++
		s.reject(d.file, reasonLong, text, 0)
		s.cut()
		return
	}
	sum := xxh3.Hash(text)
	if n == 0 || sum == cmp.Or(d.given, d.sum) {
		return
	}
	d.given = sum
	if enc := lines.EncodingOf(text); enc.Wide() {
		text = enc.Decode(nil, text)
	}
	text = bytes.TrimPrefix(text, lines.BOM)
	d.file = &file{stream: s, path: s.path}
	s.line = Line{Observed: s.t.now(), Live: true, ModTime: d.mtime, File: s.line.File}
	s.tally.lines++
	s.toHandler(d.file, text, 0, int64(n))
	s.cut()
}

// documentDone records the acceptance or refusal of the last content: a restart must not read it again.
func (s *Stream) documentDone() {
	if d := &s.doc; s.document && d.file != nil && d.file.outstanding == 0 && d.given != 0 {
		d.sum = d.given
	}
}

// grow2 is grow, but keeps the first keep bytes of the buffer.
func grow2(buf *[]byte, keep, n int) []byte {
	if cap(*buf) < n {
		b := make([]byte, n)
		copy(b, (*buf)[:keep])
		*buf = b
	}
	return (*buf)[:n]
}

package tail

import (
	"bytes"
	"errors"
	"io"
	"os"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
)

// maxDeadLetters bounds the file of refused lines: a backend that refuses everything must not fill a disk.
const maxDeadLetters = 256 << 20

var errDeadLettersFull = errors.New("the file is full: move it away")

// deadLetters is the file of refused lines, as logged but without secrets, fit for reading like the log.
type deadLetters struct {
	path string
	mu   lockorder.Mutex[leaf]
}

// add appends texts to the file, and returns once all are on disk. It returns errDeadLettersFull if the file is full, or the errors of writing.
func (d *deadLetters) add(texts [][]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := os.OpenFile(d.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if fi.Size() >= maxDeadLetters {
		return errors.Join(errDeadLettersFull, f.Close())
	}
	for _, text := range texts {
		if _, e := f.Write(text); e != nil {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// setAside writes the lines of refused records, read again from the log and redacted, to the file of dead letters, if configured. It returns the first of these
// lines, for the warning; nil: no record was named, or no line could be read.
func (t *Tailer) setAside(b *lineBatch, places []Place) (sample []byte) {
	if len(places) == 0 {
		return nil
	}
	if t.dead.path == "" {
		places = places[:1] // a sample is enough
	}
	var texts [][]byte
	seen := make(map[Place]bool, len(places))
	for _, p := range places {
		if int(p) >= len(b.places) || seen[p] {
			continue
		}
		seen[p] = true
		for _, part := range b.parts(b.places[p]) {
			text, err := t.readAgain(part)
			if err != nil {
				t.warn("dead letter", "A refused line cannot be read again", zap.String("path", part.file.path), zap.Error(err))
				continue
			}
			if n := len(text); n > 0 && text[n-1] != '\n' {
				text = append(text, '\n')
			}
			if t.set.Redact != nil {
				text = t.set.Redact(text)
			}
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if t.dead.path != "" {
		if err := t.dead.add(texts); err != nil {
			t.warn("dead letter", "Refused lines cannot be written to 'dead_letter'", zap.String("path", t.dead.path), zap.Error(err))
		}
	}
	return bytes.TrimRight(texts[0], "\r\n")
}

// parts returns where the lines of a record are: the parts of the batch's pieces within its place, in order, then the lent lines still held.
func (b *lineBatch) parts(p place) (out []piece) {
	at := int64(0) // bytes of the pieces so far
	for _, pc := range b.pieces {
		from, to := max(p.from.bytes-at, 0), min(p.to.bytes-at, pc.End-pc.Begin)
		at += pc.End - pc.Begin
		if from < to {
			out = append(out, piece{pc.file, checkpoint.Range{Begin: pc.Begin + from, End: pc.Begin + to}})
		}
	}
	for _, l := range b.lent[p.from.lent:p.to.lent] {
		l.stream.mu.Lock()
		if h := &l.stream.held.slots[l.held]; h.file != nil {
			out = append(out, h.piece)
		}
		l.stream.mu.Unlock()
	}
	return out
}

// readAgain reads the bytes of a piece again from its file, to show or store the lines. Where the file was cut since, the answer is shorter or an error. A
// compressed file is read by a decoder of its own, because its stream's cannot go back, and only in the first unpack.SkipBytes of the content: the error is
// unpack.ErrAgain for lines after.
func (t *Tailer) readAgain(p piece) ([]byte, error) {
	s := p.file.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	b := make([]byte, p.End-p.Begin)
	if p.file.raw == nil && !p.file.compressed && p.file.id != (fingerprint.ID{}) { // closed while others had their turn; a document has no id
		if err := t.reopen(p.file); err != nil {
			return nil, err
		}
		defer t.spare(p.file)
	}
	src := source(p.file.raw)
	if p.file.raw == nil || p.file.compressed {
		raw, fi, err := osfile.Open(p.file.path, t.cfg.FollowSymlinks)
		if err != nil {
			return nil, err
		}
		src = t.unpack(p.file.path, raw)
		defer src.Close()
		if id := p.file.id; id != (fingerprint.ID{}) && id != fingerprint.IDOf(fi) {
			return nil, errTruncated
		}
	}
	n, err := src.ReadAt(b, p.Begin)
	if n == len(b) || errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return b[:n], err
}

// Package unpack reads the content of compressed files.
package unpack

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The compression of a file. Auto: by its name.
const (
	Auto = "auto"
	Gzip = "gzip"
	Zstd = "zstd"
	None = "none"
)

const (
	// SkipBytes is the most to decompress per call on the way to the read position.
	SkipBytes = 4 << 20

	bombRatio  = 1000     // more than any log compresses
	zstdWindow = 64 << 20 // the largest window of a zstd frame
	chunkBytes = 256 << 10
	firstBytes = 1 << 10 // content kept for reading again without going back
)

var (
	// ErrBomb ends a content larger than a thousand times the file.
	ErrBomb = errors.New("decompresses to more than 1000 times its size")
	// ErrAgain asks for the same ReadAt once more.
	ErrAgain = errors.New("a compressed file has still to be decompressed up to there")
)

// KindOf returns the compression of a file: as configured, or for Auto by the file's name.
func KindOf(path, configured string) string {
	if configured != Auto {
		return configured
	}
	switch {
	case strings.HasSuffix(path, ".gz"):
		return Gzip
	case strings.HasSuffix(path, ".zst"):
		return Zstd
	}
	return None
}

// Name returns the name without .gz or .zst.
func Name(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
}

// Reader is the decompressed content of a file, read forwards: going back means beginning again.
type Reader struct {
	raw  *os.File
	kind string
	size int64 // compressed
	free int64 // bytes that the file may always decompress to

	dec    io.Reader // the decoder; nil: not begun
	finish func()    // releases the decoder
	pos    int64     // position of dec in the content
	first  []byte    // the first 1 KiB of the decompressed content
	last   []byte    // the bytes before pos: of the last ReadAt, which the next may want again
	bad    error     // the reason of an early end of the content

	skipped []byte // buffer
}

// NewReader returns a Reader of a compressed file of the given size, which may always decompress to free bytes. The Reader owns the file.
func NewReader(raw *os.File, kind string, size, free int64) *Reader {
	return &Reader{raw: raw, kind: kind, size: size, free: free}
}

// begin makes a new decoder at the beginning of the file.
func (u *Reader) begin() error {
	u.Stop()
	u.pos, u.first, u.last, u.bad = 0, u.first[:0], u.last[:0], nil
	r := io.NewSectionReader(u.raw, 0, 1<<62)
	if u.kind == Gzip {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		u.dec, u.finish = z, func() { _ = z.Close() }
		return nil
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return err
	}
	u.dec, u.finish = z, z.Close
	return nil
}

// Stop releases the decoder. The next ReadAt begins again.
func (u *Reader) Stop() {
	if u.finish != nil {
		u.finish()
		u.finish, u.dec = nil, nil
	}
}

// ReadAt reads the decompressed content. Damage ends the content, with io.EOF; Err has the reason. A call decompresses at most SkipBytes on the way to off:
// then it returns ErrAgain, and the next call continues.
func (u *Reader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= int64(len(u.first)) {
		return copy(p, u.first[off:]), nil // without going back
	}
	if u.dec == nil || off < u.pos-int64(len(u.last)) {
		if err := u.begin(); err != nil {
			u.bad = err
			return 0, io.EOF
		}
	}
	// Forward to off.
	for left := int64(SkipBytes); off > u.pos; {
		if left <= 0 {
			return 0, ErrAgain
		}
		if u.skipped == nil {
			u.skipped = make([]byte, chunkBytes)
		}
		n, err := u.read(u.skipped[:min(off-u.pos, chunkBytes)], 0)
		if err != nil && off > u.pos {
			return 0, err
		}
		left -= int64(n)
	}
	n := copy(p, u.last[int64(len(u.last))-(u.pos-off):]) // bytes before pos
	if n == len(p) {
		return n, nil
	}
	m, err := u.read(p, n)
	return n + m, err
}

// read decompresses into p from its n-th byte on; p[:n] has the bytes before pos. Fewer bytes than requested mean the end of the content: then the error is
// io.EOF.
func (u *Reader) read(p []byte, n int) (int, error) {
	if u.pos > u.free && u.pos/bombRatio > u.size { // divided, because a product might overflow
		u.bad = ErrBomb
		return 0, io.EOF
	}
	m, err := readFull(u.dec, p[n:])
	if m > 0 {
		if have := int64(len(u.first)); have == u.pos && have < firstBytes { // still at the beginning
			u.first = append(u.first, p[n:n+min(m, firstBytes-len(u.first))]...)
		}
		u.pos += int64(m)
		u.last = append(u.last[:0], p[:n+m]...)
	}
	if err != nil {
		if err != io.EOF { //nolint:errorlint // a wrapped EOF is an error of the content
			u.bad = err
		}
		err = io.EOF
	}
	return m, err
}

// readFull is io.ReadFull, but keeps the reader's own error: here io.ErrUnexpectedEOF means a truncated file.
func readFull(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.Read(p[n:])
		n += m
	}
	if n == len(p) {
		err = nil
	}
	return n, err
}

// Close releases the decoder and closes the file.
func (u *Reader) Close() error {
	u.Stop()
	return u.raw.Close()
}

// File returns the compressed file.
func (u *Reader) File() *os.File { return u.raw }

// Pos returns the decoder's position, in bytes of the content.
func (u *Reader) Pos() int64 { return u.pos }

// GoesBack reports whether reading at off means beginning again.
func (u *Reader) GoesBack(off int64) bool { return off < u.pos-int64(len(u.last)) }

// Err returns the reason why the content ends before the end of the file; nil: none.
func (u *Reader) Err() error { return u.bad }

// Twin returns another Reader of the file, at its beginning. It does not own the file: call Stop, not Close.
func (u *Reader) Twin() *Reader { return NewReader(u.raw, u.kind, u.size, u.free) }

package tail

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"
)

const (
	maxPacked  = 16       // decoders that are open at once
	bombRatio  = 1000     // more than any log compresses
	bombBytes  = 1 << 30  // below this, any ratio goes
	zstdWindow = 64 << 20 // what a zstd frame may ask for
	skipBytes  = 4 << 20  // decompressed in one go on the way to where reading goes on
	reasonBomb = "decompression_bomb"
)

var (
	errBomb  = errors.New("decompresses to more than 1000 times its size")
	errAgain = errors.New("a compressed file has still to be decompressed up to there")
)

// packing returns how a file is compressed, by its name or by the configuration.
func (t *Tailer) packing(path string) string {
	if t.cfg.Compression != CompressionAuto {
		return t.cfg.Compression
	}
	switch {
	case strings.HasSuffix(path, ".gz"):
		return CompressionGzip
	case strings.HasSuffix(path, ".zst"):
		return CompressionZstd
	}
	return CompressionNone
}

// unpacked is the decompressed content of a file, read forwards: going back means beginning again.
type unpacked struct {
	raw  *os.File
	kind string
	size int64 // compressed
	free int64 // what it may decompress to in any case

	dec    io.Reader
	finish func()
	pos    int64  // of dec
	first  []byte // the first 1 KiB of what was decompressed
	last   []byte // the bytes before pos
	bad    error  // why the content ends before its end

	skipped []byte // buffer
}

func (u *unpacked) begin() error {
	u.stop()
	u.pos, u.first, u.last, u.bad = 0, u.first[:0], u.last[:0], nil
	r := io.NewSectionReader(u.raw, 0, 1<<62)
	if u.kind == CompressionGzip {
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

func (u *unpacked) stop() {
	if u.finish != nil {
		u.finish()
		u.finish, u.dec = nil, nil
	}
}

// ReadAt gives what can be decompressed. Damage ends the content; bad says so. It passes over skipBytes at most on the way to off: then it returns errAgain, and the next call goes on.
func (u *unpacked) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= int64(len(u.first)) {
		return copy(p, u.first[off:]), nil // without going back
	}
	if u.dec == nil || off < u.pos-int64(len(u.last)) {
		if err := u.begin(); err != nil {
			u.bad = err
			return 0, io.EOF
		}
	}
	for left := int64(skipBytes); off > u.pos; {
		if left <= 0 {
			return 0, errAgain
		}
		want := min(off-u.pos, chunkBytes)
		n, err := u.read(grow(&u.skipped, int(want)), 0)
		if err != nil && off > u.pos {
			return 0, err
		}
		left -= int64(n)
	}
	n := copy(p, u.last[int64(len(u.last))-(u.pos-off):])
	if n == len(p) {
		return n, nil
	}
	m, err := u.read(p, n)
	return n + m, err
}

// read fills p from its n-th byte on; those before it stand before pos. What it returns less than asked for is all there is: then the error is io.EOF.
func (u *unpacked) read(p []byte, n int) (int, error) {
	if u.pos > u.free && u.pos/bombRatio > u.size {
		u.bad = errBomb
		return 0, io.EOF
	}
	m, err := readFull(u.dec, p[n:])
	if m > 0 {
		if have := int64(len(u.first)); have == u.pos && have < printBytes {
			u.first = append(u.first, p[n:n+min(m, printBytes-len(u.first))]...)
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

// readFull is io.ReadFull that keeps the reader's own error: io.ErrUnexpectedEOF means a cut file here.
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

func (u *unpacked) Close() error {
	u.stop()
	return u.raw.Close()
}

// endOfPacked is told that a compressed file was read to its end, or to where it is damaged.
func (s *Stream) endOfPacked(f *file) {
	u, ok := f.src.(*unpacked)
	if ok && u.bad != nil {
		if errors.Is(u.bad, errBomb) {
			s.tally.lines++
			s.tally.count(Rejected, reasonBomb)
			s.t.warn("bomb", "A compressed file was given up", zap.String("path", f.path), zap.Error(u.bad))
		} else {
			s.t.counts.bump(&s.t.counts.readErrs, 1)
			s.t.warn("damaged", "A compressed file is damaged; what comes before the damage was read, and the rest is not, unless the file changes", zap.String("path", f.path), zap.Int64("bytes", f.head), zap.Error(u.bad))
		}
	}
	s.t.close(f)
	s.t.kick(s)
}

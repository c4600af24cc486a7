package unpack

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pack writes a compressed file.
func pack(t *testing.T, kind string, content []byte) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if kind == Zstd {
		z, err := zstd.NewWriter(&b)
		require.NoError(t, err)
		w = z
	}
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// open returns a Reader of the file.
func open(t *testing.T, path, kind string) *Reader {
	t.Helper()
	raw, err := os.Open(path)
	require.NoError(t, err)
	fi, err := raw.Stat()
	require.NoError(t, err)
	return NewReader(raw, kind, fi.Size(), 1<<30)
}

// For any offsets in any order, ReadAt returns the original content. Reading at a far offset takes several calls.
func TestReadAt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	content := make([]byte, 5*SkipBytes/4)
	for i := range content {
		content[i] = byte('a' + rnd.IntN(3))
	}
	for _, kind := range []string{Gzip, Zstd} {
		u := open(t, pack(t, kind, content), kind)
		twin := u.Twin()
		again := 0
		for i := range 8 {
			off, b := rnd.IntN(len(content)), make([]byte, 1+rnd.IntN(2<<10))
			if i == 0 {
				off = len(content) - 100
			}
			from := u
			if i > 0 && rnd.IntN(2) == 0 {
				from = twin
			}
			back := from.GoesBack(int64(off))
			n, err := from.ReadAt(b, int64(off))
			for ; err == ErrAgain; n, err = from.ReadAt(b, int64(off)) { //nolint:errorlint // ReadAt returns it itself
				again++
			}
			if n < len(b) {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.NoError(t, err)
			}
			require.True(t, bytes.Equal(content[off:min(off+len(b), len(content))], b[:n]), "%s %d %v", kind, off, back)
		}
		require.Positive(t, again)
		require.NoError(t, u.Err())
		twin.Stop()
		require.NoError(t, u.Close())
	}
}

// Damage ends the content, and says why.
func TestDamage(t *testing.T) {
	content := bytes.Repeat([]byte("line\n"), 1000)
	for _, kind := range []string{Gzip, Zstd} {
		path := pack(t, kind, content)
		fi, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, fi.Size()-3))
		u := open(t, path, kind)
		b := make([]byte, len(content)+1)
		_, err = u.ReadAt(b, 0)
		require.ErrorIs(t, err, io.EOF)
		require.Error(t, u.Err())
		require.NoError(t, u.Close())
	}
}

func TestKindOf(t *testing.T) {
	assert.Equal(t, Gzip, KindOf("a.gz", Auto))
	assert.Equal(t, Zstd, KindOf("a.zst", Auto))
	assert.Equal(t, None, KindOf("a.log", Auto))
	assert.Equal(t, None, KindOf("a.gz", None))
	assert.Equal(t, Zstd, KindOf("a.log", Zstd))
	assert.Equal(t, "a.log", Name("a.log.gz"))
	assert.Equal(t, "a.log", Name("a.log.zst"))
	assert.Equal(t, "a.log", Name("a.log"))
}

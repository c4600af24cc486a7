package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The file of verdicts has the mode of any new file; an existing file stays unchanged.
func TestVerdictFile(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	for umask, want := range map[int]fs.FileMode{0o002: 0o664, 0o022: 0o644, 0o027: 0o640, 0o077: 0o600} {
		syscall.Umask(umask)
		path := filepath.Join(t.TempDir(), "new", "verdicts.json")
		makeVerdictFile(path)
		fi, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, fi.Mode())
		require.NoError(t, os.WriteFile(path, []byte("told"), 0o600))
		makeVerdictFile(path)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "told", string(text))
		link := filepath.Join(filepath.Dir(path), "link")
		require.NoError(t, os.Symlink("nowhere", link))
		makeVerdictFile(link)
		to, err := os.Readlink(link)
		require.NoError(t, err)
		assert.Equal(t, "nowhere", to)
	}
	makeVerdictFile("")
}

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every entry has its place in the repository, and the skeleton stands in all of the files.
func TestWrite(t *testing.T) {
	root := t.TempDir()
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join("..", "..", e.file))
		require.NoError(t, err)
		path := filepath.Join(root, e.file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, b, 0o644))
	}
	paths, err := write(root, "mylog")
	require.NoError(t, err)
	assert.Len(t, paths, 10)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Contains(t, string(b), "mylog", path)
	}
	_, err = write(root, "mylog")
	require.ErrorContains(t, err, "is there already")
	_, err = write(root, "My-Log")
	require.ErrorContains(t, err, `NAME="My-Log": a Go package`)
}

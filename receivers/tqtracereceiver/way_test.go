package tqtracereceiver

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWayOfALine looks for each file that docs/reference/architecture.md names on the way of a line.
func TestWayOfALine(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "architecture.md"))
	require.NoError(t, err)
	_, way, ok := strings.Cut(string(text), "\n### One line of TransferQueue, file by file\n")
	require.True(t, ok)
	way, _, _ = strings.Cut(way, "\n## ")
	files := regexp.MustCompile("(?m)^ *(?:-|[0-9]+\\.) `([^`]+)`: ").FindAllStringSubmatch(way, -1)
	assert.Len(t, files, strings.Count(way, ".go`: "))
	assert.Greater(t, len(files), 20)
	for _, f := range files {
		assert.FileExists(t, filepath.Join(root, f[1]))
	}
}

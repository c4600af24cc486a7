//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The settings of the Monitor tab are a configuration accepted by the collector; the pictures of docs/jaeger.md are small, and no picture is unused.
func TestJaegerDoc(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs/jaeger.md"))
	require.NoError(t, err)
	monitor, err := os.ReadFile(filepath.Join(repoRoot, "docs/reference/jaeger-monitor.md"))
	require.NoError(t, err)
	_, block, found := strings.Cut(string(monitor), "```yaml\n")
	require.True(t, found)
	block, _, found = strings.Cut(block, "```")
	require.True(t, found)
	for _, bin := range []string{trainbridgeBin(t), ocbBin(t)} {
		run(t, []string{"TRAINBRIDGE_STATE_DIR=" + t.TempDir()}, bin, "validate", "--config", shippedConfig(t), "--config", write(t, "spans.yaml", block))
	}
	pictures, err := filepath.Glob(filepath.Join(repoRoot, "docs/img/jaeger-*.png"))
	require.NoError(t, err)
	assert.NotEmpty(t, pictures)
	for _, p := range pictures {
		info, err := os.Stat(p)
		require.NoError(t, err)
		assert.LessOrEqual(t, info.Size(), int64(100<<10), p)
		assert.Contains(t, string(text), "(img/"+filepath.Base(p)+")", "a picture that the page does not show")
	}
}

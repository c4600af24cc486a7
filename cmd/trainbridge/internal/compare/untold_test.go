package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run whose steps changed once is not said to be like one whose steps did not: a single change says nothing of another run.
func TestUntold(t *testing.T) {
	write := func(later float64) string {
		dir := t.TempDir()
		var log strings.Builder
		for i := 1; i <= 70; i++ {
			took := 48.0
			if i > 30 {
				took = later
			}
			fmt.Fprintf(&log, `{"step": %d, "step_time_s": %.3f}`+"\n", i, took+0.01*float64(i*i%7))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log.jsonl"), []byte(log.String()), 0o600))
		return dir
	}
	text, err := compare(t, write(48), write(71))
	require.NoError(t, err)
	assert.Contains(t, text, "Whether A and B differ cannot be told of ")
	assert.Regexp(t, `48\.0 → 61\.\d s`, text)
	text, err = compare(t, write(48), write(48))
	require.NoError(t, err)
	assert.Contains(t, text, "No difference is found between A and B")
}

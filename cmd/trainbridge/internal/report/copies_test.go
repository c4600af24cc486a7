package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCopiesOfRanks: of 40 steps printed by each of 8 ranks of srun -l 40 count, and a sentence names the copies.
func TestCopiesOfRanks(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for step := 1; step <= 40; step++ {
		for i := range 8 {
			fmt.Fprintf(&b, `%d: {"step": %d, "loss": %.4f, "step_time": 1.%d}`+"\n", (step+i)%8, step, 3-float64(step)/40, step%7)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm-1.out"), []byte(b.String()), 0o600))
	text := strings.Join(strings.Fields(textOf(t, dir)), " ")
	assert.Contains(t, text, "40 steps of")
	assert.NotContains(t, text, "320 steps")
	assert.Contains(t, text, "Slow ranks: 280 lines of "+filepath.Join(dir, "slurm-1.out")+" repeat another rank's steps, which count once")
}

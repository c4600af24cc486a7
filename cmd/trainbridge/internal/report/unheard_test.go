package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// takeLogs takes the logs of ranks 12 to 15 from a job of 16, or cuts them off in the middle of the job.
func takeLogs(t *testing.T, dir string, cut bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "nccl", "*")) // by host and pid, as the ranks are
	require.NoError(t, err)
	require.Len(t, paths, 16)
	for _, path := range paths[12:] {
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Remove(path))
		if cut {
			half := bytes.LastIndexByte(body[:len(body)/2], '\n') + 1
			require.NoError(t, os.WriteFile(path, body[:half], 0o600))
		}
	}
}

// TestRanksWithoutLog: of 16 ranks 12 have a log, or whole logs, and ranks are late, with and without a log. In 57 jobs the network is never accused (once in
// 12 of 57); "a rank without a log, or the network" stands where such a rank was late.
func TestRanksWithoutLog(t *testing.T) {
	seeds := 29
	if testing.Short() {
		seeds = 5
	}
	hidden := 0
	for i := range 2 * seeds {
		cut, seed := i%2 == 1, 1+i/2
		dir := t.TempDir()
		truth := job(t, dir, "--ranks", "16", "--steps", "50", "--seed", strconv.Itoa(seed), "--faults", "straggler", "--fault-every", "4",
			"--nccl", "nccl_inspector")
		takeLogs(t, dir, cut)
		text := strings.Join(strings.Fields(textOf(t, dir)), " ") // wrapped
		name := fmt.Sprintf("seed %d, cut off %t", seed, cut)
		assert.NotContains(t, text, "slow link or NIC", name)
		late := false
		for _, s := range truth.Steps {
			late = late || s.Cause != nil && s.Cause.Rank >= 12 && s.Step > 13 && (!cut || s.Step > 27)
		}
		if late {
			hidden++
			assert.Contains(t, text, "on a rank without a log, or the network", name)
			assert.Contains(t, text, "→ Give the logs of all ranks", name)
		}
		if cut {
			assert.Regexp(t, `Late ranks or a slow network at the end of DP Group 0: the logs of ranks 12–15 end \d+ collectives early`, text, name)
		} else {
			assert.Regexp(t, `Late ranks or a slow network in DP Group 0: no log of ranks 12–15 \(12 of 16 ranks have one\)`, text, name)
		}
		if seed <= 5 {
			assert.Contains(t, textOf(t, dir, "--lang", "zh"), "ranks 12–15", name)
		}
	}
	assert.Greater(t, hidden, seeds/2)
}

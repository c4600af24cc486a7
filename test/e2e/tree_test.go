//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Trees that hold the kernel's file systems come to an end, and these are named.
func TestTreesOfTheMachine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"report", "/proc"},
		{"check", "/proc", "/sys"},
		{"check", "/pro?/**/*"},
		{"report", "/", "--format", "json"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		cmd := exec.CommandContext(ctx, trainbridgeBin(t), args...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // whether the machine has logs is its own affair
		require.NoError(t, ctx.Err(), args)
		cancel()
		assert.NotEqual(t, -1, cmd.ProcessState.ExitCode(), args)
		assert.Contains(t, out.String(), "/proc (proc)", args)
	}
}

// Commands that read finished logs read more of them than they may have open.
func TestFinishedLogsTakeTurns(t *testing.T) {
	t.Parallel()
	logs := &manyLogs{dir: t.TempDir(), rng: seeded()}
	logs.write(t, 200, 20)
	for _, name := range []string{"report", "check"} {
		format := map[string]string{"report": "--format=json", "check": "--json"}[name]
		out, err := exec.Command("/usr/bin/prlimit", "--nofile=64:64", trainbridgeBin(t), name, logs.dir, format).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.NotContains(t, string(out), "too many open files")
		assert.Contains(t, string(out), `"records": 6000`, name)
	}
}

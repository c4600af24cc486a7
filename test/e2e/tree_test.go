//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kernelRoot makes a root directory with the kernel's file systems, a program, and its libraries. The machine's own root may have millions of files.
func kernelRoot(t *testing.T, bin string) string {
	t.Helper()
	root := t.TempDir()
	linked, err := exec.Command("ldd", bin).Output()
	require.NoError(t, err)
	for _, path := range append(regexp.MustCompile(`/\S+`).FindAllString(string(linked), -1), bin, "/proc", "/sys") {
		fi, err := os.Stat(path)
		require.NoError(t, err)
		to := filepath.Join(root, path)
		if fi.IsDir() {
			require.NoError(t, os.MkdirAll(to, 0o755))
		} else {
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
			require.NoError(t, os.WriteFile(to, nil, 0o755))
		}
		require.NoError(t, syscall.Mount(path, to, "", syscall.MS_BIND|syscall.MS_REC, ""))
		t.Cleanup(func() { assert.NoError(t, syscall.Unmount(to, syscall.MNT_DETACH)) })
		require.NoError(t, syscall.Mount("", to, "", syscall.MS_PRIVATE|syscall.MS_REC, "")) // an unmount here must not propagate
	}
	return root
}

// A walk over trees with the kernel's file systems ends, and names these file systems.
func TestTreesOfTheMachine(t *testing.T) {
	t.Parallel()
	bin := trainbridgeBin(t)
	root := kernelRoot(t, bin)
	for _, args := range [][]string{
		{"report", "/proc"},
		{"check", "/proc", "/sys"},
		{"check", "/pro?/**/*"},
		{"report", "/", "--format", "json"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		cmd := exec.CommandContext(ctx, bin, args...)
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
		out, _ := cmd.CombinedOutput() // success depends on the logs found, and is not tested here
		require.NoError(t, ctx.Err(), args)
		cancel()
		require.NotNil(t, cmd.ProcessState, args)
		assert.NotEqual(t, -1, cmd.ProcessState.ExitCode(), args)
		assert.Contains(t, string(out), "/proc (proc)", args)
	}
}

// Commands for finished logs read more logs than they may have open.
func TestFinishedLogsTakeTurns(t *testing.T) {
	t.Parallel()
	logs := &manyLogs{dir: t.TempDir(), rng: seeded()}
	logs.write(t, 200, 20)
	for _, name := range []string{"report", "check"} {
		out, err := exec.Command("/usr/bin/prlimit", "--nofile=64:64", trainbridgeBin(t), name, logs.dir, "--format=json").CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.NotContains(t, string(out), "too many open files")
		assert.Contains(t, string(out), `"records": 6000`, name)
	}
}

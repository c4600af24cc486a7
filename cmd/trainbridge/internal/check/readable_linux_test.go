package check

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asNobody has the test's thread open files as another user: root may read everything.
func asNobody(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.Mode()&0o055 != 0o055 {
			require.NoError(t, os.Chmod(dir, fi.Mode()|0o055))
		}
	}
	runtime.LockOSThread() // for good: the thread ends with the test
	_, err := unix.SetfsuidRetUid(65534)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Setfsuid(0) })
}

// Files and directories without read permission are off; all others are read.
func TestUnreadable(t *testing.T) {
	dir := logs(t, map[string]string{"a.jsonl": step, "secret.jsonl": step, "locked/b.jsonl": step})
	require.NoError(t, os.Chmod(filepath.Join(dir, "a.jsonl"), 0o644))
	require.NoError(t, os.Chmod(filepath.Join(dir, "secret.jsonl"), 0))
	require.NoError(t, os.Chmod(filepath.Join(dir, "locked"), 0))
	asNobody(t, dir)
	out, code := run(t, "", dir)
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "a.jsonl: train_log, 1 line: 1 record\n")
	assert.Contains(t, out, "secret.jsonl cannot be read: permission denied.\n")
	assert.Contains(t, out, "open "+dir+"/locked: permission denied.\n")
	assert.Contains(t, out, "2 problems.\n")
}

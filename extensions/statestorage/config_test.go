package statestorage

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"golang.org/x/sys/unix"
)

func TestLoadConfig(t *testing.T) {
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	sub, err := file.Sub("state_storage")
	require.NoError(t, err)
	cfg := createDefaultConfig()
	require.NoError(t, sub.Unmarshal(cfg))
	assert.Equal(t, &Config{Directory: "state"}, cfg)
}

// Validate reports every detectable problem of a directory, and creates none.
func TestValidate(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "theirs"), 0o555))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "hidden"), 0o700))
	for _, tt := range []struct{ name, directory, want string }{
		{"there", dir, ""},
		{"to be made", filepath.Join(dir, "a", "b", "c"), ""},
		{"relative", "state", ""},
		{"not set", "", "'directory' is not set"},
		{"a file", filepath.Join(dir, "file"), filepath.Join(dir, "file") + ": not a directory"},
		{"below a file", filepath.Join(dir, "file", "state"), filepath.Join(dir, "file", "state") + ": not a directory"},
		{"not writable", filepath.Join(dir, "theirs"), filepath.Join(dir, "theirs") + ": permission denied"},
		{"below what is not writable", filepath.Join(dir, "theirs", "a", "b"), filepath.Join(dir, "theirs") + ": permission denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := &Config{Directory: tt.directory}
			err := cfg.Validate()
			if tt.want == "" {
				assert.NoError(t, err)
			} else {
				asNobody(t, func() { err = cfg.Validate() })
				require.ErrorContains(t, err, tt.want)
				assert.ErrorContains(t, err, "'directory'")
			}
		})
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 3)
	assert.NoDirExists(t, "state")
}

// asNobody calls f as a user who is not root, whom permissions do not bind.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		var errno unix.Errno
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			const nobody = 65534
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
		}
		f()
		if errno != 0 {
			done <- errno
		}
		close(done)
	}()
	require.NoError(t, <-done)
}

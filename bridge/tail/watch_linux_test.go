package tail

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

// Many tailers share two instances of inotify, and each hears what happens in its directories: they never poll here.
func TestTailersShareInotify(t *testing.T) {
	root := t.TempDir()
	log := filepath.Join(root, "job", "a.log")
	put := func(text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o700))
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text + "\n")
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	put("one")
	var tailers []*Tailer
	var got []chan string
	all := func(want string) {
		t.Helper()
		for i, c := range got {
			select {
			case line := <-c:
				assert.Equal(t, want, line)
			case <-time.After(time.Minute):
				require.FailNow(t, "a tailer heard nothing", "%d: %s", i, want)
			}
		}
	}
	for range 12 {
		cfg := DefaultConfig()
		cfg.Include = []string{filepath.Join(root, "*", "*.log")}
		cfg.PollInterval = 24 * time.Hour
		c := make(chan string, 10)
		tl, err := New(cfg, testSettings(), func(*Stream) Handler { return &sink{got: c, fails: &atomic.Int64{}} })
		require.NoError(t, err)
		require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
		tailers, got = append(tailers, tl), append(got, c)
	}
	all("one")
	put("two")
	all("two")
	for _, tl := range tailers[:6] {
		require.NoError(t, tl.Shutdown(t.Context()))
	}
	got = got[6:]
	assert.Equal(t, 2, inotifyInstances(t))
	require.NoError(t, os.Rename(log, log+".1"))
	put("three")
	all("three")
	for i := range 5 { // sooner than anybody looks
		require.NoError(t, os.RemoveAll(filepath.Dir(log)))
		put(fmt.Sprint("new ", i))
		all(fmt.Sprint("new ", i))
	}
	for _, tl := range tailers[6:] {
		require.NoError(t, tl.Shutdown(t.Context()))
	}
	assert.Zero(t, inotifyInstances(t))
}

// inotifyInstances counts those of this process.
func inotifyInstances(t *testing.T) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

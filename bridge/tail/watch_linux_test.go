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

// Many tailers share two instances of inotify, and each gets the events of its directories: they never poll here.
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
				require.FailNow(t, "a tailer got no event", "%d: %s", i, want)
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

// busy is a sink that is slow to cut its first batch.
type busy struct {
	sink
	cuts, cut chan struct{}
}

func (b *busy) Cut() Delivery {
	if len(b.lines) > 0 && b.lines[0] == "one" {
		close(b.cuts)
		<-b.cut
	}
	return b.sink.Cut()
}

// watching starts a tailer of one log, which never polls.
func watching(t *testing.T, h Handler) (tl *Tailer, more func(text string)) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "a.log")
	more = func(text string) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	more("one\n")
	cfg := DefaultConfig()
	cfg.Include, cfg.PollInterval = []string{filepath.Dir(log) + "/*"}, 24*time.Hour
	tl, err := New(cfg, testSettings(), func(*Stream) Handler { return h })
	require.NoError(t, err)
	require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
	return tl, more
}

func gets(t *testing.T, from chan string, want ...string) {
	t.Helper()
	for _, text := range want {
		select {
		case line := <-from:
			assert.Equal(t, text, line)
		case <-time.After(time.Minute):
			require.FailNow(t, "nothing was read", text)
		}
	}
}

// Data written during a drain is read soon, however rarely files are polled.
func TestHintWhileDraining(t *testing.T) {
	b := &busy{sink: sink{got: make(chan string, 10), fails: &atomic.Int64{}}, cuts: make(chan struct{}), cut: make(chan struct{})}
	tl, more := watching(t, b)
	<-b.cuts
	more("two\n")
	require.Eventually(t, func() bool {
		tl.sweepMu.Lock()
		defer tl.sweepMu.Unlock()
		return tl.sweeper.due[0].missed > 0
	}, time.Minute, time.Millisecond)
	close(b.cut)
	gets(t, b.got, "one", "two")
	require.NoError(t, tl.Shutdown(t.Context()))
}

// Data written to a known file before its directory is watched is read once watched.
func TestWrittenBeforeWatched(t *testing.T) {
	s := &sink{got: make(chan string, 10), fails: &atomic.Int64{}}
	tl, more := watching(t, s)
	gets(t, s.got, "one")
	tl.watcher.Forget(func(string) bool { return true })
	more("two\n")
	tl.sweepMu.Lock()
	for _, d := range tl.sweeper.dirs {
		d.next, d.listAgain = time.Time{}, true
	}
	tl.sweepMu.Unlock()
	tl.wakeSweeper()
	gets(t, s.got, "two")
	require.NoError(t, tl.Shutdown(t.Context()))
}

// inotifyInstances counts the inotify instances of this process.
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

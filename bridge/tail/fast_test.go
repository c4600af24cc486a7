package tail

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
)

var keepFlag = flag.Int("tail.keep", 5, "rotated files that the rotation stress keeps")

var rotateFlag = flag.Duration("tail.rotate", 500*time.Millisecond, "how long each case of the rotation stress writes; from 5s on, nothing at all may be lost")

// rotations are writers' ways of rotation: shift makes room for the next file.
var rotations = map[string]func(tb testing.TB, path string, keep int){
	// Python's RotatingFileHandler: each name is freed before its next use.
	"RotatingFileHandler": func(tb testing.TB, path string, keep int) {
		tb.Helper()
		for i := keep - 1; i >= 1; i-- {
			from, to := fmt.Sprintf("%s.%d", path, i), fmt.Sprintf("%s.%d", path, i+1)
			if _, err := os.Stat(from); err == nil {
				_ = os.Remove(to)
				require.NoError(tb, os.Rename(from, to))
			}
		}
		_ = os.Remove(path + ".1")
		require.NoError(tb, os.Rename(path, path+".1"))
	},
	// logrotate: rename and create.
	"logrotate": func(tb testing.TB, path string, keep int) {
		tb.Helper()
		for i := keep; i >= 1; i-- {
			_ = os.Rename(fmt.Sprintf("%s.%d", path, i), fmt.Sprintf("%s.%d", path, i+1))
		}
		require.NoError(tb, os.Rename(path, path+".1"))
		_ = os.Remove(fmt.Sprintf("%s.%d", path, keep+1))
	},
}

// stress writes numbered lines, 20 MB/s, into files of 1 MB, and returns how many.
func stress(tb testing.TB, path string, keep int, d time.Duration, rotate func(testing.TB, string, int)) (lines int) {
	tb.Helper()
	const fileBytes, second = 1_000_000, 20_000_000
	begin, written := time.Now(), 0
	start := begin
	for time.Since(begin) < d {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(tb, err)
		w := bufio.NewWriterSize(f, 8<<10)
		for n := 0; n < fileBytes; {
			m, _ := fmt.Fprintf(w, "%09d this is a line of a log that is written fast\n", lines)
			lines++
			n += m
			if written += m; written%10_000 < m {
				ahead := time.Until(start.Add(time.Duration(written) * time.Second / second))
				if ahead < -500*time.Millisecond { // the machine is busy: do not catch up
					start = start.Add(-ahead)
				}
				time.Sleep(ahead)
			}
		}
		require.NoError(tb, w.Flush())
		require.NoError(tb, f.Close())
		if time.Since(begin) < d {
			rotate(tb, path, keep)
		}
	}
	return lines
}

// numbers is a handler that records the numbers received.
type numbers struct {
	nop
	mu   *sync.Mutex
	seen map[int]int
	sum  uint64
}

func (h *numbers) Line(l *Line) (Verdict, string) {
	n := 0
	for _, c := range l.Text[:min(9, len(l.Text))] {
		n = 10*n + int(c-'0')
	}
	for range 8 { // the work of a parser
		h.sum = fingerprint.Hash(h.sum, l.Text)
	}
	h.mu.Lock()
	h.seen[n]++
	h.mu.Unlock()
	return Record, ""
}

// TestFastRotation follows a real writer that rotates 20 times a second and keeps five files. Nothing is lost without a count. go test -run TestFastRotation
// -tail.rotate=30s is the stress.
func TestFastRotation(t *testing.T) {
	for name, rotate := range rotations {
		for _, pattern := range []string{"*.log", "*.log*"} {
			t.Run(name+" "+pattern, func(t *testing.T) {
				dir := t.TempDir()
				cfg := DefaultConfig()
				cfg.Include = []string{filepath.Join(dir, pattern)}
				h := &numbers{mu: &sync.Mutex{}, seen: map[int]int{}}
				tl, err := New(cfg, testSettings(), func(*Stream) Handler { return h })
				require.NoError(t, err)
				path := filepath.Join(dir, "a.log")
				require.NoError(t, os.WriteFile(path, nil, 0o600))
				require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
				defer func() { require.NoError(t, tl.Shutdown(t.Context())) }()
				waitFor(t, func() bool { return tl.watched.Load() > 0 })
				n := stress(t, path, *keepFlag, *rotateFlag, rotate)
				h.await(t, n, func() bool { return tl.Counts().LostFiles > 0 })
				h.mu.Lock()
				defer h.mu.Unlock()
				again := 0
				for _, times := range h.seen {
					again += times - 1
				}
				lost := tl.Counts().LostFiles
				t.Logf("%d lines written, %d lost, %d read again, lost_files %d", n, n-len(h.seen), again, lost)
				assert.Zero(t, again)
				if len(h.seen) != n {
					assert.Positive(t, lost, "a loss is counted")
					assert.Less(t, *rotateFlag, 5*time.Second, "%d lines lost", n-len(h.seen))
				} else {
					assert.LessOrEqual(t, lost, int64(1), "a jump that is guessed")
				}
			})
		}
	}
}

// await waits until all numbers came, or, where files were lost, until nothing more comes.
func (h *numbers) await(t *testing.T, all int, lost func() bool) {
	t.Helper()
	seen, at := 0, time.Now()
	waitFor(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.seen) != seen {
			seen, at = len(h.seen), time.Now()
		}
		return seen == all || lost() && time.Since(at) > 2*time.Second
	})
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 5*time.Minute, time.Millisecond, "it does not happen")
}

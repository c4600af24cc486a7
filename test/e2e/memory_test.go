//go:build e2e

package e2e

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	memoryFiles = flag.Int("memory.files", 10_000, "how many idle logs TestMemory has; `make memory` takes 200,000")
	memoryAge   = flag.Duration("memory.age", 0, "how long ago they were written")
	memoryJunk  = flag.Int("memory.junk", 10_000, "how many files that are no logs")
	memoryCalls = flag.Int("memory.calls", 300_000, "how many calls that never end; `make memory` takes 1,000,000")
)

// How much memory the collector may take beyond an idle collector without logs.
const (
	perIdleFiles = 64 << 20 // for each 10,000
	allIdleFiles = 512 << 20
	openCalls    = 288 << 20 // 30 MiB of them are facts that step_join stores, ADR 26
	perJunkFiles = 70 << 20  // for each 10,000
)

// Idle logs, calls without an end and files that are no logs cost little.
func TestMemory(t *testing.T) {
	t.Parallel()
	addr := startSink(t).addr
	memory := func(c *collector, name string) int64 { return memoryOf(t, c, name) }
	empty := newCollector(t, trainbridgeBin(t), "/nothing/*", addr)
	empty.up(t)
	t.Run("idle files", func(t *testing.T) {
		logs := t.TempDir()
		written := time.Now().Add(-*memoryAge)
		for i := range *memoryFiles {
			// A thousand files per directory, the limit of a job's workers.
			path := filepath.Join(logs, strconv.Itoa(i/1000), fmt.Sprintf("worker-%d.err", i))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
			require.NoError(t, os.WriteFile(path, []byte(waterfall(uuid.NewString(), written)), 0o600))
			require.NoError(t, os.Chtimes(path, written, written))
		}
		c := newCollector(t, trainbridgeBin(t), logs+"/*/*", addr)
		c.up(t)
		began := time.Now()
		c.read(t, 8**memoryFiles)
		t.Logf("%d files are read in %v", *memoryFiles, time.Since(began).Round(100*time.Millisecond))
		// The heap is given back in the second half minute without work.
		least := [2]int64{1 << 40, 1 << 40}
		for range 70 {
			time.Sleep(time.Second)
			for i, c := range []*collector{empty, c} {
				least[i] = min(least[i], memory(c, "RssAnon"))
			}
		}
		more := least[1] - least[0]
		t.Logf("RssAnon: %d MiB empty, %d MiB more with %d files; VmRSS %d MiB", least[0]>>20, more>>20, *memoryFiles, memory(c, "VmRSS")>>20)
		assert.LessOrEqual(t, more, int64(min(allIdleFiles, perIdleFiles*max(1, *memoryFiles/10_000))))
		c.stop(t)
	})
	t.Run("open calls", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "worker-1.err")
		f, err := os.Create(path)
		require.NoError(t, err)
		out, now := bufio.NewWriter(f), time.Now()
		for i := range *memoryCalls {
			fmt.Fprintf(out, "INFO:%s,%03d:[TQ-TRACE] trace_id=00000000-0000-4000-8000-%012d | func=rollout | pid=%d | stage=FUNCTION_START | timestamp=%d.%06d\n",
				now.Format("2006-01-02 15:04:05"), now.Nanosecond()/1e6, i, 1+i%64, 50_000+i/1e6, i%1e6)
		}
		require.NoError(t, out.Flush())
		require.NoError(t, f.Close())
		c := newCollector(t, trainbridgeBin(t), path, addr)
		c.up(t)
		c.read(t, *memoryCalls)
		more := memory(c, "VmHWM") - memory(empty, "VmHWM")
		t.Logf("VmHWM: %d MiB more with %d open calls than the %d MiB of an empty one", more>>20, *memoryCalls, memory(empty, "VmHWM")>>20)
		assert.LessOrEqual(t, more, int64(openCalls))
		c.stop(t)
	})
	t.Run("junk files", func(t *testing.T) { junkFiles(t, empty) })
	empty.stop(t)
}

// read waits until tq_trace has read the given number of lines.
func (c *collector) read(tb testing.TB, lines int) {
	tb.Helper()
	eventually(tb, func() error {
		all, err := c.accounts()
		if err != nil {
			return err
		}
		if n := all["tq_trace"]["lines"]; n < int64(lines) {
			return fmt.Errorf("%d lines are read, want %d", n, lines)
		}
		return nil
	})
}

// memoryOf is a number of /proc/PID/status, in bytes.
func memoryOf(tb testing.TB, c *collector, name string) int64 {
	tb.Helper()
	n, err := c.status(name)
	require.NoError(tb, err)
	return n
}

// junkFiles puts a log beside files that are no logs.
func junkFiles(t *testing.T, empty *collector) {
	t.Helper()
	logs, now := t.TempDir(), time.Now()
	for i := range *memoryJunk {
		path := filepath.Join(logs, strconv.Itoa(i/1000), fmt.Sprintf("file-%d.txt", i))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte([]string{"", "hello world\n"}[i%2]), 0o600))
		require.NoError(t, os.Chtimes(path, now.Add(-time.Hour), now.Add(-time.Hour)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(logs, "zzz.jsonl"), []byte(`{"step": 1, "loss": 2.5, "step_time_s": 0.05}`+"\n"), 0o600))
	junk := startSink(t)
	c := newCollector(t, trainbridgeBin(t), "/nothing/*", junk.addr)
	c.env = append(c.env, "TRAINBRIDGE_LOGS="+logs+"/**")
	c.up(t)
	line := fmt.Sprintf("No receiver understands %d files", *memoryJunk/2)
	began := time.Now()
	eventually(t, func() error {
		if junk.spans.Load() == 0 {
			return errors.New("the log's span is not there")
		}
		return nil
	})
	t.Logf("beside %d files the log is delivered in %v", *memoryJunk, time.Since(began).Round(100*time.Millisecond))
	assert.False(t, c.logged(line), "it comes before all others were looked at")
	eventually(t, func() error {
		if !c.logged(line) {
			return errors.New("not said: " + line)
		}
		return nil
	})
	more := memoryOf(t, c, "VmHWM") - memoryOf(t, empty, "VmHWM")
	t.Logf("VmHWM: %d MiB more than the %d MiB of an empty one", more>>20, memoryOf(t, empty, "VmHWM")>>20)
	assert.LessOrEqual(t, more, int64(perJunkFiles*max(1, *memoryJunk/10_000)))
	c.stop(t)
}

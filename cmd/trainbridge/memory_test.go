package main

import (
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestContainerLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"none": {nil, 0},
		"version 2": {
			map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, 1 << 30,
		},
		"in a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
		"version 1": {
			map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "536870912\n"}, 512 << 20,
		},
		"version 1, none": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
			}
			assert.Equal(t, c.want, containerLimit(root))
		})
	}
}

func TestGarbagePercent(t *testing.T) {
	assert.Equal(t, 75, garbagePercent(maxCommandGarbage, largeCommand, 4*largeCommand))
	for live, want := range map[uint64]int{0: 200, 10 << 20: 200, 12 << 20: 200, 24 << 20: 100, 48 << 20: 50, 256 << 20: 33, 10 << 30: 33} {
		assert.Equal(t, want, garbagePercent(maxGarbage, math.MaxUint64, live), live)
	}
}

// Memory is given back once in each idle time, not during work.
func TestReleaseWhenQuiet(t *testing.T) {
	tick := make(chan time.Time)
	var released atomic.Int32
	go releaseWhenQuiet(tick, func() { released.Add(1) })
	period := func(work int) {
		sink = make([]byte, work)
		tick <- time.Time{}
	}
	for range 3 {
		period(1)
	}
	period(2 * quiet)
	assert.EqualValues(t, 1, released.Load(), "once in a time of quiet")
	period(1)
	period(1)
	assert.EqualValues(t, 2, released.Load(), "again after work")
	close(tick)
}

var sink []byte

package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

const (
	// gcPercent is Go's GOGC. The heap is small and its turnover large: at Go's default of 100 a fifth of the CPU would go into collecting (make bench).
	gcPercent = 200
	// maxGarbage bounds the garbage between two collections, with leastPercent of a large heap as a minimum: many files make the heap large, and gcPercent
	// would allow twice its size again. A command shares the machine with no job, and a user waits for its end.
	maxGarbage        = 24 << 20
	maxCommandGarbage = 40 << 20
	leastPercent      = 33
	// In a command, what is beyond largeCommand of the data may have as much garbage: reports on 100,000 files would collect most of the time.
	largeCommand = 80 << 20
	// ofLimit is the share of a container's memory for the heap; the rest is the binary's pages and the kernel's buffers.
	ofLimit = 0.85
	// A process that allocates less than quiet in a period is idle, and gives back the memory of the last burst.
	quietPeriod = 10 * time.Second
	quiet       = 12 << 20
)

// limitMemory bounds the memory of the process: the garbage between two collections (boundGarbage, with the same arguments), and in a container the heap, to
// ofLimit of the container's memory. An idle process gives memory back. GOGC and GOMEMLIMIT in the environment take precedence over both bounds.
func limitMemory(garbage, large uint64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		boundGarbage(garbage, large, gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit := containerLimit("/"); limit > 0 {
			debug.SetMemoryLimit(int64(float64(limit) * ofLimit))
		}
	}
	go releaseWhenQuiet(time.NewTicker(quietPeriod).C, debug.FreeOSMemory)
}

// releaseWhenQuiet calls release at the first tick of each idle time: fewer than quiet bytes were allocated since the tick before. It returns when tick is
// closed.
func releaseWhenQuiet(tick <-chan time.Time, release func()) {
	before, released := heapBytes("allocs"), false // all bytes allocated since the start; whether release was called in this idle time
	for range tick {
		now := heapBytes("allocs")
		switch isQuiet := now-before < quiet; {
		case !isQuiet:
			released = false
		case !released:
			release()
			released = true
		}
		before = now
	}
}

// boundGarbage sets GOGC, which is current now, to allow garbagePercent of the live heap, and calls itself again after the next collection.
func boundGarbage(garbage, large uint64, current int) {
	want := garbagePercent(garbage, large, heapBytes("live"))
	// Setting GOGC stops the world: a change below 10 % is not worth a stop.
	if want < current*9/10 || want > current*11/10 {
		debug.SetGCPercent(want)
		current = want
	}
	// Nothing refers to the object, so the next collection finds it dead and runs its finalizer. The object has a pointer: the runtime puts small objects
	// without pointers together, and their finalizers may never run.
	runtime.SetFinalizer(&struct{ current *int }{&current}, func(x *struct{ current *int }) { boundGarbage(garbage, large, *x.current) })
}

// heapBytes reads a metric of the garbage collector, in bytes: "allocs", all allocations since the start, or "live", the data that the last collection kept.
func heapBytes(name string) uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/" + name + ":bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// garbagePercent is the GOGC for a heap with live bytes of data: garbage bytes may be allocated before the next collection, or as many as live exceeds large
// by. The result lies between leastPercent and gcPercent.
func garbagePercent(garbage, large, live uint64) int {
	if live > large {
		garbage = max(garbage, live-large)
	}
	return int(min(gcPercent, max(leastPercent, 100*garbage/max(live, 1))))
}

// containerLimit is the memory limit, in bytes, of the process's control group (cgroup) or of a group above, whichever is the lowest; 0: none. root is "/" but
// in tests. Lines of /proc/self/cgroup are "0::/user.slice" in version 2, "4:cpu,memory:/docker/6f1c" in version 1.
func containerLimit(root string) uint64 {
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	least := uint64(math.MaxUint64)
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" { // version 1 names its controllers
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
		}
		// Each directory up to the top may have a limit. In a container the path may not exist: the group's own directory is mounted at the top.
		for dir := parts[2]; ; dir = filepath.Dir(dir) {
			if text, err := os.ReadFile(filepath.Join(root, base, dir, file)); err == nil {
				if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
					least = min(least, n)
				}
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	if least > 1<<50 { // no file had a limit, or version 1 has written a number near 1 << 63 for none
		return 0
	}
	return least
}

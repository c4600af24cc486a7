package tail

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An idle stream drops its handler and later continues as after a restart.
func TestIdleStreamsSleep(t *testing.T) {
	r := newRig(t)
	made := 0
	r.handler = func(s *Stream) Handler { made++; return &toy{rig: r, s: s, open: map[string]opened{}} }
	r.restart()
	r.write("a.log", "one\n")
	r.write("waits.log", "START x\n")
	r.step(0)
	r.want("one")
	require.Equal(t, 2, made)
	r.steps(20, 5*time.Second)
	a, waits := r.tl.sweeper.streams[r.path("a.log")], r.tl.sweeper.streams[r.path("waits.log")]
	assert.Nil(t, a.handler)
	assert.NotNil(t, waits.handler, "it holds a line")
	r.append("a.log", "two\n")
	r.append("waits.log", "END x\n")
	r.step(5 * time.Second)
	assert.ElementsMatch(t, []string{"two", "START x | END x"}, r.out)
	r.out = nil
	assert.Equal(t, 3, made)
	assert.Equal(t, 1, a.handler.(*toy).saved, "what the old one had saved")

	r.steps(20, 5*time.Second)
	assert.Nil(t, a.handler)
	r.checkpoint()
	r.restart()
	assert.Nil(t, r.tl.sweeper.streams[r.path("a.log")])
	r.append("a.log", "three\n")
	r.step(0)
	r.want("three")
	assert.Equal(t, 1, r.tl.sweeper.streams[r.path("a.log")].handler.(*toy).saved, "stored while it slept")
	r.steps(20, 5*time.Second)
	r.append("a.log", "four\nfive\n")
	r.rename("a.log", "a.log.1")
	r.write("a.log", "six\n")
	r.step(5 * time.Second)
	r.rest()
	assert.ElementsMatch(t, []string{"four", "five", "six"}, r.out)
}

// BenchmarkIdleFiles measures the memory of an idle file, B.
func BenchmarkIdleFiles(b *testing.B) {
	const files = 2000
	for range b.N {
		r := newRig(b)
		for i := range files {
			r.write(fmt.Sprintf("%d.log", i), "one\n")
		}
		before := heapInUse()
		r.step(0)
		r.steps(20, 5*time.Second)
		b.ReportMetric(float64(heapInUse()-before)/files, "B/file")
		r.crash()
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

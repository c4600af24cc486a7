//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

var soakFor = flag.Duration("soak", 90*time.Second, "how long TestSoak runs; `make soak` runs it for an hour")

// usage is the resources held by a collector. Go has a thread per blocked system call, not per goroutine: the heap shows leaked goroutines.
type usage struct{ rss, heap, files, threads int64 }

// soakSlack is how much more a collector may hold at the end than after the warm-up, beside a tenth.
var soakSlack = usage{rss: 16 << 20, heap: 16 << 20, files: 8, threads: 4}

// A collector that reads and delivers for a long time, while logs are rotated and the backend comes and goes, holds no more at the end than after its warm-up.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := newSequence(t, trainbridgeBin(t), 1, newTally())
	s.step = &step{}
	s.prepare()
	s.c.up(s)
	troubles := []func(){
		s.sink.down,
		func() { s.sink.set(failing(codes.Unavailable, 0)) },
		func() { s.sink.set(failing(codes.ResourceExhausted, 50*time.Millisecond)) },
		func() { s.sink.set(slow(300 * time.Millisecond)) },
		func() { s.sink.set(hang(false)) },
	}
	var all []usage
	began := time.Now()
	for second := 0; time.Since(began) < *soakFor; second++ {
		s.work()
		switch second % 20 {
		case 5:
			s.eachFile(func(f *logFile) { s.rotate(f, numbered); s.deleteOldest(f) })
		case 10:
			troubles[second/20%len(troubles)]()
		case 15:
			s.sink.set(accept)
			s.sink.down()
			s.check(s.sink.up())
		}
		s.alive()
		all = append(all, s.usage())
		if second%60 == 59 {
			t.Logf("%v: %v", time.Since(began).Round(time.Second), all[len(all)-1])
		}
		time.Sleep(time.Second - time.Since(began)%time.Second)
	}
	s.sink.set(accept)
	s.sink.down()
	s.check(s.sink.up())
	s.settle()
	warm := len(all) / 3
	before, after := least(all[warm:warm*2]), least(all[warm*2:])
	t.Logf("%d lines; after the warm-up %v, at the end %v", s.tally.lines, before, after)
	for _, x := range []struct {
		name                 string
		before, after, slack int64
	}{
		{"resident memory", before.rss, after.rss, soakSlack.rss},
		{"heap", before.heap, after.heap, soakSlack.heap},
		{"open files", before.files, after.files, soakSlack.files},
		{"threads", before.threads, after.threads, soakSlack.threads},
	} {
		if x.after > x.before+x.before/10+x.slack {
			t.Errorf("%s grew from %d to %d", x.name, x.before, x.after)
		}
	}
}

// usage reads from the kernel, and from the collector the heap.
func (s *sequence) usage() (u usage) {
	s.Helper()
	var err error
	u.rss, err = s.c.status("VmRSS")
	s.check(err)
	u.threads, err = s.c.status("Threads")
	s.check(err)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.c.cmd.Process.Pid))
	s.check(err)
	u.files = int64(len(entries))
	list, err := s.c.ownMetrics()
	s.check(err)
	for _, m := range list {
		if m.name == "otelcol_process_runtime_heap_alloc_bytes" {
			u.heap = int64(m.value)
		}
	}
	if u.heap == 0 {
		s.Fatal("the collector does not say how large its heap is")
	}
	return u
}

// String is a line of a table.
func (u usage) String() string {
	return fmt.Sprintf("RSS %d MiB, heap %d MiB, %d files, %d threads", u.rss>>20, u.heap>>20, u.files, u.threads)
}

// least is the minimum of each number: the share of garbage and faults comes and goes.
func least(all []usage) usage {
	u := all[0]
	for _, v := range all {
		u = usage{rss: min(u.rss, v.rss), heap: min(u.heap, v.heap), files: min(u.files, v.files), threads: min(u.threads, v.threads)}
	}
	return u
}

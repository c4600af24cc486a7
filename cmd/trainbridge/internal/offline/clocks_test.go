package offline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/bridge/tail"
)

// The last words of a job that hung are in a stamp of PyTorch's C++, which has neither year nor a zero before the month.
func TestClocksOfGlog(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"[rank3]:[E612 09:48:20.456945123 ProcessGroupNCCL.cpp:685] [Rank 3] Watchdog caught collective operation timeout", "2026-06-12 09:48:20"},
		{"[rank3]:[W1201 09:48:20.456945123 socket.cpp:9] x", "2026-12-01 09:48:20"},
		{"E0612 09:48:20.456945 4711 torch/distributed/elastic/multiprocessing/api.py:874] failed", "2026-06-12 09:48:20.456945"},
		{"[E612 09:48:20.456945 too few digits", "2026-06-12 09:30:00"},
		{"[E9912 09:48:20.456945123 no month] x", "2026-06-12 09:30:00"},
	} {
		k := newClocks(time.UTC)
		k.noteLine([]byte("2026-06-12 09:30:00 step 7"), tail.Ignored)
		k.noteLine([]byte(c.line), tail.Ignored)
		assert.Equal(t, c.want, time.Unix(0, k.last).UTC().Format("2006-01-02 15:04:05.999999"), c.line)
	}
}

// Lines before the first record and behind the last have their distance from these.
func TestClocksOfEdges(t *testing.T) {
	k := newClocks(time.UTC)
	for _, l := range []struct {
		text string
		v    tail.Verdict
	}{
		{"2026-06-12 09:30:00,000 starting", tail.Ignored},
		{"2026-06-12 09:30:20,000 step 1", tail.Record},
		{"2026-06-12 09:31:20,000 step 2", tail.Record},
		{"2026-06-12 09:31:27,500 done", tail.Ignored},
	} {
		k.noteLine([]byte(l.text), l.v)
	}
	assert.Equal(t, []int64{20e9, 7.5e9}, []int64{k.headNS(), k.tailNS()})

	k = newClocks(time.UTC)
	k.noteLine([]byte("2026-06-12 09:30:00,000 starting"), tail.Ignored)
	k.noteLine([]byte(`{"step": 1}`), tail.Record)
	assert.Equal(t, []int64{-1, -1}, []int64{k.headNS(), k.tailNS()})
}

// A process begins with the file's first line with a clock, unless that line is a loop's own in between its records: "checkpoint saved".
func TestClocksOfBegins(t *testing.T) {
	for _, c := range []struct {
		first tail.Verdict
		want  int
	}{{tail.Ignored, 1}, {tail.Record, 0}} {
		k := newClocks(time.UTC)
		k.noteLine([]byte("2026-06-12 09:30:00,000 step 100"), c.first)
		k.noteLine([]byte("2026-06-12 09:30:20,000 saved checkpoint /ckpt/100"), tail.Ignored)
		assert.Len(t, k.begins, c.want)
	}
}

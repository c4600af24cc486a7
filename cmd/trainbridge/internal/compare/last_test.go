package compare

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// waiting is a run with the cost of each rank, 8 on a host, of coming last.
func waiting(cost func(rank int64) float64) *Run {
	run := newRun("run")
	for rank := range int64(32) {
		host := "node-" + string(rune('0'+rank/8))
		run.last.add(&view.Collective{Last: view.LateRank{Rank: view.Int{N: rank, OK: true}, Host: host, Cost: cost(rank)}})
	}
	return run
}

// TestLast: the rank or host that a single run waits for is named, and only where the runs differ in waiting time.
func TestLast(t *testing.T) {
	alike := waiting(func(int64) float64 { return 1 })
	rank := waiting(func(rank int64) float64 { return map[bool]float64{true: 60, false: 1}[rank == 9] })
	host := waiting(func(rank int64) float64 { return map[bool]float64{true: 10, false: 1}[rank/8 == 2] })
	higher := &figure{section: sectionCollectives, of: "AllReduce", name: "wait for the last rank", unit: "s", better: lowerIsBetter, a: make([]unit, 1), b: make([]unit, 1)}
	higher.told, higher.difference = true, interval{1, 0.5, 1.5}
	lower, none := *higher, *higher
	lower.difference, none.difference = interval{-1, -1.5, -0.5}, interval{1, -1, 3}
	for name, tt := range map[string]struct {
		a, b *Run
		of   *figure
		want string
	}{
		"rank":           {alike, rank, higher, " B waits for rank 9 on node-1: 65.9% of all waiting for late ranks, in A 3.1%."},
		"rank, of A":     {rank, alike, &lower, " A waits for rank 9 on node-1: 65.9% of all waiting for late ranks, in B 3.1%."},
		"host":           {alike, host, higher, " B waits for host node-2: 76.9% of all waiting for late ranks, in A 25%."},
		"in both":        {rank, rank, higher, ""},
		"no difference":  {alike, rank, &none, ""},
		"nobody alone":   {alike, alike, higher, ""},
		"of one unknown": {newRun("run"), rank, higher, ""},
	} {
		d := &document{Comparison: &Comparison{a: tt.a, b: tt.b, figures: []*figure{tt.of}}}
		assert.Equal(t, tt.want, d.lateSentence(), name)
	}
	d := &document{Comparison: &Comparison{a: alike, b: rank, figures: []*figure{higher}}, words: true}
	assert.Contains(t, d.lateSentence(), "rank 9（node-1）")
}

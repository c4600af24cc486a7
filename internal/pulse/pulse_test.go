package pulse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	start = time.Unix(1_800_000_000, 0)
	long  time.Time // ago
)

// beat lets n steps come, each of the same duration, as soon as they are done. The log's clock is behind by apart.
func beat(p *Pulse, from time.Time, first, n int64, each, apart time.Duration) time.Time {
	for i := range n {
		from = from.Add(each)
		p.Step("train", first+i, 0, from.Add(-apart).UnixNano(), from)
	}
	return from
}

// when is the time until a stall is reported; 0: not within two days. Checked once a second.
func when(p *Pulse, last, outage time.Time) time.Duration {
	for s := range 2 * 24 * 3600 {
		after := time.Duration(s) * time.Second
		if _, ok := p.Stalls(last.Add(after), outage); ok {
			return after
		}
	}
	return 0
}

var stalls = []struct {
	name string
	run  func(p *Pulse) (last, outage time.Time)
	want time.Duration
}{
	{"steps of 1 s: after a minute", func(p *Pulse) (time.Time, time.Time) { return beat(p, start, 1, 50, time.Second, 0), long }, time.Minute},
	{"of 10 s: after 20 of them", func(p *Pulse) (time.Time, time.Time) { return beat(p, start, 1, 50, 10*time.Second, 0), long }, 200 * time.Second},
	{"of 2 min: after 10 min more", func(p *Pulse) (time.Time, time.Time) { return beat(p, start, 1, 50, 2*time.Minute, 0), long }, 12 * time.Minute},
	{"of 1 h: after three", func(p *Pulse) (time.Time, time.Time) { return beat(p, start, 1, 50, time.Hour, 0), long }, 3 * time.Hour},
	{"a host whose clock is a day behind", func(p *Pulse) (time.Time, time.Time) { return beat(p, start, 1, 50, time.Second, 24*time.Hour), long }, time.Minute},
	{"a host whose clock is a day ahead", func(p *Pulse) (time.Time, time.Time) { return beat(p, start, 1, 50, time.Second, -24*time.Hour), long }, time.Minute},
	{"too few steps to know what is usual", func(p *Pulse) (time.Time, time.Time) { return beat(p, start, 1, 4, time.Second, 0), long }, 0},
	{"an old log, read at once", func(p *Pulse) (time.Time, time.Time) {
		for i := range int64(500) {
			p.Step("train", i, 0, start.Add(time.Duration(i)*time.Second).UnixNano(), start.Add(time.Hour+time.Duration(i)*time.Millisecond))
		}
		return start.Add(time.Hour), long
	}, 0},
	{"an old log, and then its end live", func(p *Pulse) (time.Time, time.Time) {
		for i := range int64(500) {
			p.Step("train", i, 0, start.Add(time.Duration(i)*time.Second).UnixNano(), start.Add(499*time.Second))
		}
		return beat(p, start.Add(499*time.Second), 500, 5, time.Second, 0), long
	}, time.Minute},
	{"fast steps that come in batches", func(p *Pulse) (time.Time, time.Time) {
		for i := range int64(1000) {
			end := start.Add(time.Duration(i) * 50 * time.Millisecond)
			p.Step("train", i, 0, end.UnixNano(), end.Truncate(time.Second).Add(time.Second))
		}
		return start.Add(50 * time.Second), long
	}, time.Minute},
	{"an evaluation of 5 min came before", func(p *Pulse) (time.Time, time.Time) {
		last := beat(p, start, 1, 50, time.Second, 0)
		return beat(p, last.Add(5*time.Minute), 51, 50, time.Second, 0), long
	}, 10*time.Minute + 2*time.Second},
	{"an evaluation of 5 min came before, in a log that does not number steps", func(p *Pulse) (time.Time, time.Time) {
		var last time.Time
		for _, from := range []time.Time{start, start.Add(350 * time.Second)} {
			for range 50 {
				from = from.Add(time.Second)
				p.Step("train", -1, 0, from.UnixNano(), from)
			}
			last = from
		}
		return last, long
	}, 10*time.Minute + 2*time.Second},
	{"an hour without steps came before, and steps done again", func(p *Pulse) (time.Time, time.Time) {
		last := beat(p, start, 1, 50, time.Second, 0)
		return beat(p, last.Add(time.Hour), 41, 50, time.Second, 0), long
	}, time.Minute},
	{"the run is done", func(p *Pulse) (time.Time, time.Time) {
		last := beat(p, start, 1, 50, time.Second, 0)
		p.Over()
		return last, long
	}, 0},
	{"all steps that were planned are done", func(p *Pulse) (time.Time, time.Time) {
		last := beat(p, start, 1, 50, time.Second, 0)
		p.Step("train", 51, 51, last.Add(time.Second).UnixNano(), last.Add(time.Second))
		return last, long
	}, 0},
	{"nothing could be heard for ten minutes", func(p *Pulse) (time.Time, time.Time) {
		last := beat(p, start, 1, 50, time.Second, 0)
		return last, last.Add(10 * time.Minute)
	}, 11 * time.Minute},
	{"all ranks print each step, a moment apart", func(p *Pulse) (time.Time, time.Time) {
		last := start
		for i := range int64(50) {
			last = last.Add(10*time.Second - 7*time.Millisecond)
			for range 8 {
				p.Step("train", i, 0, last.UnixNano(), last)
				last = last.Add(time.Millisecond)
			}
			last = last.Add(-time.Millisecond)
		}
		return last, long
	}, 200 * time.Second},
}

func TestStalls(t *testing.T) {
	for _, tt := range stalls {
		t.Run(tt.name, func(t *testing.T) {
			var p Pulse
			last, outage := tt.run(&p)
			assert.Equal(t, tt.want, when(&p, last, outage))
		})
	}
}

func TestReportsOnce(t *testing.T) {
	var p Pulse
	last := beat(&p, start, 1, 50, time.Second, 0)
	s, ok := p.Stalls(last.Add(90*time.Second), time.Time{})
	require.True(t, ok)
	assert.Equal(t, Stall{Since: last.UnixNano(), Quiet: 90e9, Usual: 1e9}, s)
	_, ok = p.Stalls(last.Add(time.Hour), time.Time{})
	assert.False(t, ok, "it was reported")
	last = beat(&p, last.Add(time.Hour), 31, 5, time.Second, 0) // restarted
	_, ok = p.Stalls(last.Add(time.Minute), time.Time{})
	assert.True(t, ok, "and stalls again")
}

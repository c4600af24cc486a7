package tail

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

// few restarts the tailer with few open files.
func (r *rig) few(most int64) {
	r.most = most
	r.restart()
}

func TestDescriptorsOfALimit(t *testing.T) {
	for limit, want := range map[uint64]int64{16: 4, 64: 16, 96: 48, 128: 64, 1024: 512, 4096: 2048, 1 << 20: 2048} {
		d := newDescriptors(limit)
		assert.Equal(t, want, d.most, limit)
		assert.Equal(t, want < 2048, d.limited, limit)
	}
}

// More files than may be open are read side by side, and followed, and one line is logged.
func TestFilesTakeTurns(t *testing.T) {
	const files, most = 40, 4
	r := newRig(t)
	r.most = most
	logs := r.observed()
	var want []string
	for round := range 5 {
		for i := range files {
			n := 1000*i + 10*round
			r.append(fmt.Sprintf("%02d.log", i), numbered(n, n+9))
			want = append(want, numberedLines(n, n+9)...)
		}
		r.step(poll)
		r.step(poll)
		assert.LessOrEqual(t, r.tl.open.Load(), int64(most))
		r.step(6 * time.Second)
	}
	assert.ElementsMatch(t, want, r.out)
	c := r.tl.Counts()
	assert.Zero(t, c.ReadErrors)
	assert.Zero(t, c.LostFiles)
	assert.Zero(t, c.Truncations)
	assert.Equal(t, 1, logs.Len(), logs.All())
}

// While nothing can be sent, files with something to read give their descriptors to others, and lose nothing.
func TestFilesTakeTurnsWhileNothingIsAccepted(t *testing.T) {
	const files, most = 20, 2
	r := newRig(t, func(c *Config) { c.MaxInFlightBytes = minInFlight })
	r.few(most)
	r.hold = true
	var want []string
	for i := range files {
		r.append(fmt.Sprintf("%02d.log", i), numbered(1000*i, 1000*i+99))
		want = append(want, numberedLines(1000*i, 1000*i+99)...)
	}
	for range 3 {
		r.step(poll)
		assert.LessOrEqual(t, r.tl.open.Load(), int64(most))
	}
	for i := range files {
		r.rename(fmt.Sprintf("%02d.log", i), fmt.Sprintf("%02d.log.1", i)) // out of pattern
		r.append(fmt.Sprintf("%02d.log", i), numbered(1000*i+100, 1000*i+109))
		want = append(want, numberedLines(1000*i+100, 1000*i+109)...)
	}
	r.step(poll)
	r.hold = false
	r.ackAll()
	r.rest()
	assert.ElementsMatch(t, want, r.out)
	assert.Zero(t, r.tl.Counts().LostFiles)
}

// A file deleted during the turns of others is counted, unless read whole.
func TestDeletedOutOfTurn(t *testing.T) {
	for name, unread := range map[string]bool{"read": false, "unread": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.few(1)
			r.append("a.log", numbered(1, 3))
			r.append("b.log", numbered(11, 13))
			r.step(poll)
			require.Zero(t, r.tl.open.Load())
			if unread {
				r.hold = true
				r.err = os.ErrDeadlineExceeded
				r.append("a.log", numbered(4, 6))
				r.tl.sweep(r.now.Add(poll)) // its growth was seen
			}
			r.remove("a.log")
			r.err, r.hold = nil, false
			r.rest()
			want := int64(0)
			if unread {
				want = 1
			}
			assert.Equal(t, want, r.tl.Counts().LostFiles)
			assert.Zero(t, r.tl.Counts().Truncations)
		})
	}
}

// A Once reads more files than may be open, packed files among them.
func TestOnceTakesTurns(t *testing.T) {
	dir := t.TempDir()
	want := map[string]int{}
	for i := range 60 {
		name, text := fmt.Sprintf("%02d.log", i), numbered(1000*i, 1000*i+99)
		for _, l := range numberedLines(1000*i, 1000*i+99) {
			want[l] = 1
		}
		if i%3 == 0 {
			name, text = name+".gz", gz(text)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cfg := DefaultConfig()
	cfg.Include = []string{filepath.Join(dir, "*")}
	cfg.MaxInFlightBytes = minInFlight // more than one turn per file
	r := &rig{t: t}
	got := map[string]int{}
	r.consume = func(_ context.Context, _ *Stream, out []string) error {
		for _, l := range out {
			got[l]++
		}
		return nil
	}
	o, err := NewOnce(cfg, testSettings(), func(s *Stream) Handler { return &toy{rig: r, s: s, open: map[string]opened{}} })
	require.NoError(t, err)
	o.t.descriptors = &descriptors{most: 4, limited: true}
	_, err = o.Read(t.Context())
	require.NoError(t, err)
	assert.True(t, maps.Equal(want, got), "%d lines of %d", len(got), len(want))
	assert.Zero(t, o.t.descriptors.open)
}

// Tailers share the descriptors of their process: a Tailer with open files leaves one to each other Tailer.
func TestTailersShareDescriptors(t *testing.T) {
	shared := &descriptors{most: 3, limited: true}
	mu := make(chan map[string]int, 1)
	mu <- map[string]int{}
	dir := t.TempDir()
	var all []*Tailer
	for i := range 3 {
		sub := filepath.Join(dir, strconv.Itoa(i))
		require.NoError(t, os.Mkdir(sub, 0o700))
		for n := range 30 {
			require.NoError(t, os.WriteFile(filepath.Join(sub, fmt.Sprintf("%02d.log", n)), []byte(fmt.Sprintf("%d %d\n", i, n)), 0o600))
		}
		cfg := DefaultConfig()
		cfg.Include, cfg.PollInterval = []string{filepath.Join(sub, "*.log")}, 10*time.Millisecond
		r := &rig{t: t, consume: func(_ context.Context, _ *Stream, out []string) error {
			got := <-mu
			for _, l := range out {
				got[l]++
			}
			mu <- got
			return nil
		}}
		tl, err := New(cfg, testSettings(), func(s *Stream) Handler { return &toy{rig: r, s: s, open: map[string]opened{}} })
		require.NoError(t, err)
		tl.descriptors = shared
		require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
		all = append(all, tl)
	}
	waitFor(t, func() bool {
		got := <-mu
		defer func() { mu <- got }()
		return len(got) == 90
	})
	for _, tl := range all {
		require.NoError(t, tl.Shutdown(t.Context()))
	}
	assert.Zero(t, shared.open)
	assert.Empty(t, slices.DeleteFunc(slices.Collect(maps.Values(<-mu)), func(n int) bool { return n == 1 }))
}

// Kernel file systems are not entered, unless a file there is named itself.
func TestKernelsFilesArePassedOver(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Include = append(c.Include, "/proc/**", "/proc/self/**/*.log") })
	r.append("a.log", numbered(1, 1))
	r.step(0)
	r.step(time.Second)
	r.want(numberedLines(1, 1)...)
	st := r.tl.Status()
	assert.Equal(t, 1, st.Files)
	assert.Equal(t, "proc", st.Kernel["/proc"])

	r = newRig(t, func(c *Config) { c.Include = []string{"/proc/version"} })
	r.step(0)
	r.step(time.Second)
	assert.Equal(t, 1, r.tl.Status().Files)
	assert.Empty(t, r.tl.Status().Kernel)
}

package tail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

// sink is a handler whose lines arrive on a channel.
type sink struct {
	got   chan string
	lines []string
	fails *atomic.Int64
}

func (s *sink) Line(l *Line) (Verdict, string) {
	s.lines = append(s.lines, string(l.Text))
	return Record, ""
}
func (s *sink) Expire(time.Time) {}
func (s *sink) Save() []byte     { return nil }
func (s *sink) Restore([]byte)   {}
func (s *sink) Cut() Delivery {
	out := s.lines
	s.lines = nil
	if len(out) == 0 {
		return nil
	}
	return sendFunc(func(ctx context.Context) error {
		if s.fails.Add(-1) >= 0 {
			return errors.New("not yet")
		}
		for _, l := range out {
			select {
			case s.got <- l:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
}

func TestRunning(t *testing.T) {
	for _, watch := range []bool{false, true} {
		t.Run(fmt.Sprintf("inotify %v", watch), func(t *testing.T) {
			dir := t.TempDir()
			cfg := DefaultConfig()
			cfg.Include = []string{filepath.Join(dir, "*.log")}
			cfg.PollInterval = 10 * time.Millisecond
			got := make(chan string, 10)
			var fails atomic.Int64
			fails.Store(2)
			tl, err := New(cfg, testSettings(), func(*Stream) Handler { return &sink{got: got, fails: &fails} })
			require.NoError(t, err)
			tl.noWatch = !watch
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.log"), []byte("one\n"), 0o600))
			require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
			assert.Equal(t, "one", <-got)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "b.log"), []byte("two\n"), 0o600))
			assert.Equal(t, "two", <-got)
			require.NoError(t, os.Rename(filepath.Join(dir, "b.log"), filepath.Join(dir, "b.log.1")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "b.log"), []byte("three\n"), 0o600))
			assert.Equal(t, "three", <-got)
			require.NoError(t, tl.Shutdown(t.Context()))
			require.NoError(t, tl.Shutdown(t.Context()))
			assert.EqualValues(t, 3, tl.Counts().Sent)
		})
	}
}

func TestShutdownWithoutStart(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Include = []string{"/nowhere/*.log"}
	tl, err := New(cfg, testSettings(), func(*Stream) Handler { return nil })
	require.NoError(t, err)
	require.NoError(t, tl.Shutdown(t.Context()))
}

func TestShutdownWhileRefused(t *testing.T) {
	dir := t.TempDir()
	cfg := DefaultConfig()
	cfg.Include = []string{filepath.Join(dir, "*.log")}
	cfg.PollInterval = 10 * time.Millisecond
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.log"), []byte("one\n"), 0o600))
	called := make(chan struct{}, 100)
	tl, err := New(cfg, testSettings(), func(*Stream) Handler { return &refuser{called: called} })
	require.NoError(t, err)
	require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
	<-called
	<-called
	require.NoError(t, tl.Shutdown(t.Context()))
	assert.EqualValues(t, 1, tl.Counts().Pending)
}

// A look at many files ends at Shutdown, and concludes nothing from the unseen files.
func TestShutdownEndsTheLook(t *testing.T) {
	r := newRig(t, every)
	r.write("a.log", "one\n")
	r.write("a.log.1", "zero\n")
	r.rest()
	r.want("zero", "one")
	r.remove("a.log.1")
	for i := range 9 {
		r.write(fmt.Sprintf("b%d.log", i), "two\n")
	}
	tl := r.tl
	tl.set.IsDocument = func(string) bool { // asked of each new file
		if !tl.halted() {
			close(tl.halt)
		}
		return false
	}
	tl.sweep(r.now.Add(time.Minute))
	assert.Len(t, tl.sweeper.streams, 2, "a.log, and the first new file")
	assert.Len(t, tl.sweeper.streams[r.path("a.log")].files, 2, "the file that is gone was not looked for")
}

type refuser struct {
	n      int
	called chan struct{}
}

func (r *refuser) Line(*Line) (Verdict, string) { r.n++; return Record, "" }
func (r *refuser) Expire(time.Time)             {}
func (r *refuser) Save() []byte                 { return nil }
func (r *refuser) Restore([]byte)               {}
func (r *refuser) Cut() Delivery {
	if r.n == 0 {
		return nil
	}
	r.n = 0
	return sendFunc(func(context.Context) error { r.called <- struct{}{}; return errors.New("down") })
}

func TestConfigErrors(t *testing.T) {
	require.NoError(t, func() error { c := DefaultConfig(); c.Include = []string{"/x/**/*.log"}; return c.Check() }())
	c := Config{Include: []string{"["}, StartAt: "x", Compression: "y"}
	err := c.Check()
	for _, want := range []error{errBadGlob, errStartAt, errPollInterval, errMaxLineBytes, errPendingTimeout, errMaxInFlight, errCompression} {
		require.ErrorIs(t, err, want)
	}
	require.ErrorIs(t, Config{}.Check(), errNoInclude)
	shared := DefaultConfig()
	shared.IncludeByContent = []string{"/logs/**"}
	require.NoError(t, shared.Check())
	shared.IncludeByContent = append(shared.IncludeByContent, "[")
	require.ErrorContains(t, shared.Check(), `'include_by_content': "[" is not a glob`)
}

// Refused lines are not written to a file that would be read again, or to an impossible place.
func TestDeadLetterConfig(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("there.txt", nil, 0o600))
	const again, denied = "is read itself, so that each refused line would be read and refused again", "cannot be written"
	for path, want := range map[string]string{
		"":                "",
		"refused.txt":     "",
		"there.txt":       "",
		"x.log.refused":   "",
		"not/x.log":       "",
		"x.log":           again,
		"./sub/../x.log":  again,
		dir + "/x.log":    again,
		"x.log.1":         again,
		"x.log.old":       again,
		"state.json":      again,
		"nowhere/x.txt":   denied,
		"there.txt/x.txt": denied,
		".":               denied,
	} {
		t.Run(path, func(t *testing.T) {
			require.NoError(t, os.MkdirAll("not", 0o700))
			c := DefaultConfig()
			c.Include, c.Exclude, c.Document, c.DeadLetter = []string{"**/*.log"}, []string{dir + "/not/*"}, []string{"state.json"}, path
			err := c.Check()
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
				require.ErrorContains(t, err, "'dead_letter': \""+path+"\"")
			}
			left, err := filepath.Glob(".trainbridge-*")
			require.NoError(t, err)
			assert.Empty(t, left)
			assert.NoFileExists(t, "refused.txt", "checking makes no file")
		})
	}
}

type nop struct{ n int }

func (h *nop) Line(*Line) (Verdict, string) { h.n++; return Record, "" }
func (h *nop) Expire(time.Time)             {}
func (h *nop) Cut() Delivery                { return sendFunc(func(context.Context) error { return nil }) }
func (h *nop) Save() []byte                 { return nil }
func (h *nop) Restore([]byte)               {}

func BenchmarkReadAll(b *testing.B) {
	const lines = 400_000
	path := filepath.Join(b.TempDir(), "a.log")
	line := make([]byte, 165)
	for i := range line {
		line[i] = 'a' + byte(i%26)
	}
	line[164] = '\n'
	f, err := os.Create(path)
	require.NoError(b, err)
	for range lines {
		_, _ = f.Write(line)
	}
	require.NoError(b, f.Close())
	cfg := DefaultConfig()
	cfg.Include = []string{path}
	b.SetBytes(165 * lines)
	b.ReportAllocs()
	for b.Loop() {
		c, err := ReadAll(b.Context(), cfg, testSettings(), func(*Stream) Handler { return &nop{} })
		require.NoError(b, err)
		require.EqualValues(b, lines, c.Sent)
	}
	b.ReportMetric(float64(b.N)*lines/b.Elapsed().Seconds(), "lines/s")
}

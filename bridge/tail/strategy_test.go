package tail

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

const poll = 200 * time.Millisecond

// every also matches rotated files.
func every(c *Config) { c.Include = append(c.Include, c.Include[0]+".*") }

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d of this very log\n", i)
	}
	return b.String()
}

func numberedLines(from, to int) []string {
	return strings.Split(strings.TrimSuffix(numbered(from, to), "\n"), "\n")
}

func TestRotateByRename(t *testing.T) {
	for name, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			r.append("a.log", numbered(1, 3))
			r.step(0)
			r.append("a.log", numbered(4, 5))
			r.rename("a.log", "a.log.1")
			r.append("a.log.1", numbered(6, 6)) // the writer notices late
			r.append("a.log", numbered(7, 8))
			r.step(poll)
			r.append("a.log.1", numbered(9, 9))
			r.step(10 * time.Second)
			r.rest()
			r.want(numberedLines(1, 9)...)
		})
	}
}

func TestRotateTwiceBetweenLooks(t *testing.T) {
	for name, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			r.append("a.log", numbered(1, 3))
			r.step(0)
			r.append("a.log", numbered(4, 4)+"START x\n")
			r.rename("a.log", "a.log.2")
			r.append("a.log.1", numbered(5, 6))
			r.append("a.log", "END x\n"+numbered(7, 7))
			r.step(poll)
			r.rest()
			r.want(append(numberedLines(1, 6), "START x | END x", "line 7 of this very log")...)
		})
	}
}

func TestCopytruncate(t *testing.T) {
	for name, change := range map[string]func(*Config){"out of pattern": func(*Config) {}, "in pattern": every} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			r.append("a.log", numbered(1, 3))
			r.step(0)
			r.append("a.log", numbered(4, 5))
			r.copy("a.log", "a.log.1")
			r.step(poll) // sees the copy before the cut
			r.append("a.log", numbered(6, 7))
			r.copy("a.log", "a.log.1")
			r.truncate("a.log")
			r.append("a.log", numbered(8, 9))
			r.step(poll)
			r.rest()
			r.rest()
			r.want(numberedLines(1, 9)...)
		})
	}
}

// Unread lines without any copy are lost; the other lines are not.
func TestCopytruncateWithoutCopy(t *testing.T) {
	r := newRig(t)
	r.append("a.log", numbered(1, 3))
	r.step(0)
	r.append("a.log", numbered(4, 5))
	r.truncate("a.log")
	r.append("a.log", numbered(6, 7))
	r.step(poll)
	r.want(append(numberedLines(1, 3), numberedLines(6, 7)...)...)
	assert.EqualValues(t, 1, r.tl.Counts().Truncations)
}

func TestTruncateAndRewriteSamePreamble(t *testing.T) {
	pre := strings.Repeat("# the same preamble in every run\n", 60)
	r := newRig(t)
	r.write("a.log", pre+numbered(1, 3))
	r.step(0)
	r.truncate("a.log")
	r.write("a.log", pre+numbered(4, 9)) // longer than before
	r.step(poll)
	r.want(numberedLines(1, 9)...)
}

func TestPingPong(t *testing.T) {
	r := newRig(t)
	var want []string
	for i := range 20 {
		name := []string{"a.log", "b.log"}[i%2]
		r.write(name, numbered(10*i, 10*i+i%7))
		want = append(want, numberedLines(10*i, 10*i+i%7)...)
		r.step(poll)
	}
	r.rest()
	r.want(want...)
}

func TestSymlinkSwap(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Include = []string{filepath.Join(filepath.Dir(c.Include[0]), "current.log")}
		c.FollowSymlinks = true
	})
	r.write("one", numbered(1, 2))
	require.NoError(t, os.Symlink("one", r.path("current.log")))
	r.step(0)
	r.append("one", numbered(3, 4))
	r.write("two", numbered(5, 6))
	require.NoError(t, os.Symlink("two", r.path("new")))
	r.rename("new", "current.log")
	r.step(poll)
	r.append("one", numbered(7, 7)) // a late line
	r.step(poll)
	r.want(numberedLines(1, 7)...)
}

// The target of a link is told from the link's own directory, which may be reached by a link.
func TestLinked(t *testing.T) {
	r := newRig(t)
	require.NoError(t, os.MkdirAll(r.path("runs/7"), 0o750))
	require.NoError(t, os.Symlink("runs/7", r.path("latest")))
	require.NoError(t, os.Symlink("../logs/a.log", r.path("runs/7/a.log")))
	assert.Equal(t, r.path("runs/logs/a.log"), linked(r.path("latest/a.log")))
	assert.Equal(t, r.path("runs/logs/a.log"), linked(r.path("runs/7/a.log")))
	assert.Equal(t, r.path("latest/b.log"), linked(r.path("latest/b.log")))
}

// Rotated files lie beside the target of a link, over any number of links: also files written and rotated between processes.
func TestRotatedBehindSymlink(t *testing.T) {
	for name, gone := range map[string]func(r *rig){"looked": func(*rig) {}, "crashed": (*rig).crash} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.Include = []string{filepath.Join(filepath.Dir(c.Include[0]), "*_a.log")}
				c.FollowSymlinks = true
			})
			require.NoError(t, os.MkdirAll(r.path("pods/a"), 0o750))
			require.NoError(t, os.Symlink(r.path("pods/a/0.log"), r.path("hop")))
			require.NoError(t, os.Symlink("hop", r.path("x_a.log")))
			r.write("pods/a/0.log", numbered(0, 2))
			r.step(0)
			r.ackAll()
			r.checkpoint()
			gone(r)
			r.append("pods/a/0.log", numbered(3, 4))
			r.rename("pods/a/0.log", "pods/a/0.log.20261126-100000")
			r.write("pods/a/0.log", numbered(5, 6))
			r.rename("pods/a/0.log", "pods/a/0.log.20261126-100010")
			r.write("pods/a/0.log", numbered(7, 8))
			if name == "crashed" {
				r.boot()
			}
			r.steps(5, poll)
			r.rest()
			r.want(numberedLines(0, 8)...)
		})
	}
}

func TestSymlinkIsSkipped(t *testing.T) {
	r := newRig(t)
	r.write("one", numbered(1, 2))
	require.NoError(t, os.Symlink("one", r.path("current.log")))
	r.step(0)
	r.want()
}

func TestDeleteAndRecreate(t *testing.T) {
	r := newRig(t)
	for i := range 5 {
		r.append("a.log", numbered(2*i, 2*i+1)) // ext4 gives the inode again
		r.step(poll)
		r.remove("a.log")
		if i%2 == 0 {
			r.step(poll)
		}
	}
	r.rest()
	r.want(numberedLines(0, 9)...)
}

func TestInodeReuseAfterRestart(t *testing.T) {
	r := newRig(t)
	r.append("a.log", numbered(1, 2))
	r.step(0)
	r.checkpoint()
	r.crash()
	r.remove("a.log")
	r.append("b.log", numbered(3, 6))
	r.boot()
	r.step(0)
	r.want(numberedLines(1, 6)...)
}

func TestNewFileIsFound(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Include = []string{filepath.Join(filepath.Dir(c.Include[0]), "**", "*.log")}
		c.Exclude = []string{filepath.Join(filepath.Dir(c.Include[0]), "**", "no*.log")}
		c.StartAt = StartAtEnd
	})
	r.write("old.log", "old\nunfin")
	r.step(0)
	require.NoError(t, os.MkdirAll(r.path("x/y"), 0o700))
	r.write("x/y/new.log", "one\n")
	r.write("x/y/no.log", "two\n")
	r.append("old.log", "ished\n")
	r.rest()
	assert.ElementsMatch(t, []string{"unfinished", "one"}, r.out)
}

func TestHardLinkIsReadOnce(t *testing.T) {
	r := newRig(t)
	r.write("a.log", numbered(1, 2))
	require.NoError(t, os.Link(r.path("a.log"), r.path("b.log")))
	r.step(0)
	r.rest()
	r.want(numberedLines(1, 2)...)
}

func TestNoRegularFile(t *testing.T) {
	r := newRig(t)
	require.NoError(t, mkfifo(r.path("a.log")))
	r.step(0)
	r.want()
}

func TestLineEndings(t *testing.T) {
	nul := strings.Repeat("\x00", 5000)
	for name, tc := range map[string]struct {
		parts []string
		want  []string
	}{
		"lf":                  {[]string{"a\nb\n"}, []string{"a", "b"}},
		"crlf":                {[]string{"a\r\nb\r\n"}, []string{"a", "b"}},
		"crlf in two writes":  {[]string{"a\r", "\nb\r", "\n"}, []string{"a", "b"}},
		"progress bar":        {[]string{"\r 1%\r 2%", "\r 3%", "\r 4%\ndone\n"}, []string{" 1%", " 2%", " 3%", " 4%", "done"}},
		"bom":                 {[]string{"\xef\xbb\xbfa\n\xef\xbb\xbfb\n"}, []string{"a", "\xef\xbb\xbfb"}},
		"nul run":             {[]string{nul + "a\n" + nul + "b\nc\x00d\n"}, []string{"a", "b", "c\x00d"}},
		"nul at the end":      {[]string{"a\n" + nul}, []string{"a"}},
		"invalid utf-8":       {[]string{"a\xff\xfe\n"}, []string{"a\xff\xfe"}},
		"empty lines":         {[]string{"\n\na\n\r\n\rb\n"}, []string{"a", "b"}},
		"completed later":     {[]string{"a\nb", "c", "d\n"}, []string{"a", "bcd"}},
		"last is unfinished":  {[]string{"a\nb"}, []string{"a"}},
		"too long":            {[]string{"a\n" + strings.Repeat("x", 5000) + "\nb\n"}, []string{"a", "b"}},
		"too long in parts":   {[]string{"a\n" + strings.Repeat("x", 5000), strings.Repeat("y", 5000), "z\r", "\nb\n"}, []string{"a", "b"}},
		"as long as it may":   {[]string{strings.Repeat("x", 4096) + "\r\nb\n"}, []string{strings.Repeat("x", 4096), "b"}},
		"one byte too long":   {[]string{strings.Repeat("x", 4097) + "\r\nb\n"}, []string{"b"}},
		"nothing but nul\\n":  {[]string{nul + "\n" + "b\n"}, []string{"b"}},
		"last cr waits":       {[]string{"a\n" + "b\r"}, []string{"a"}},
		"two cr":              {[]string{"a\r\r\nb\n"}, []string{"a", "b"}},
		"rejected and others": {[]string{"! x\n# y\na\n"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.MaxLineBytes = 4096 })
			for _, p := range tc.parts {
				r.append("a.log", p)
				r.step(poll)
			}
			r.step(poll)
			r.want(tc.want...)
		})
	}
}

func TestSparseHole(t *testing.T) {
	r := newRig(t)
	r.append("a.log", "a\n")
	r.step(0)
	f, err := os.OpenFile(r.path("a.log"), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("b\n"), 1<<36) // a writer without O_APPEND after the truncation
	require.NoError(t, errors.Join(err, f.Close()))
	r.step(poll)
	r.want("a", "b")
}

func TestUnfinishedLastLineIsGivenAfterPendingTimeout(t *testing.T) {
	r := newRig(t)
	r.append("a.log", "a\nb")
	r.step(0)
	r.step(r.cfg.PendingTimeout - time.Second)
	r.want("a")
	r.step(10 * time.Second)
	r.want("b")
	r.append("a.log", "\nc\n")
	r.step(10 * time.Second)
	r.want("c")
}

func TestTransientErrorIsRetriedPermanentIsRefused(t *testing.T) {
	r := newRig(t)
	r.append("a.log", numbered(1, 2))
	r.err = errors.New("busy")
	r.step(0)
	r.step(poll)
	r.want()
	require.Len(t, r.flying, 1)
	r.err = nil
	r.ackAll()
	r.want(numberedLines(1, 2)...)
	r.err = consumererror.NewPermanent(errors.New("never"))
	r.append("a.log", numbered(3, 5))
	r.step(10 * time.Second)
	r.balance()
	c := r.tl.Counts()
	assert.EqualValues(t, 2, c.Sent)
	assert.EqualValues(t, 3, c.Refused)
	assert.Zero(t, c.Pending)
}

// Refused data of no record is counted without one, and logged.
func TestRefusedOfNoRecord(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	r := newRig(t)
	r.crash()
	r.telemetry = componenttest.NewNopTelemetrySettings()
	r.telemetry.Logger = zap.New(core)
	r.boot()
	r.hold = true
	r.append("a.log", numbered(1, 3))
	r.step(0)
	r.tl.settle([]*lineBatch{r.flying[0]}, &Refused{Err: errors.New("run")})
	r.flying = nil
	r.balance()
	assert.EqualValues(t, 3, r.tl.Counts().Sent)
	assert.Zero(t, r.tl.Counts().Refused)
	assert.Equal(t, 1, logs.Len())
}

// A consumer slow for one file must not let memory grow without bound, nor stop the other files.
func TestStuckStreamStallsNoOther(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxInFlightBytes = 1 << 20 })
	r.hold = true
	r.write("stuck.log", numbered(1, 100_000))
	r.consume = func(_ context.Context, s *Stream, out []string) error {
		if filepath.Base(s.path) == "stuck.log" {
			return errors.New("stuck")
		}
		r.out = append(r.out, out...)
		return nil
	}
	r.step(0)
	for i := range 50 {
		r.append("other.log", numbered(100*i, 100*i+99))
		r.step(poll)
		for j := range slices.Backward(r.flying) {
			r.ack(j)
		}
		assert.LessOrEqual(t, r.tl.inFlight, r.cfg.MaxInFlightBytes)
	}
	r.want(numberedLines(0, 4999)...)
	n := len(r.flying)
	assert.NotZero(t, n)
	assert.LessOrEqual(t, n, 6)
	r.consume = func(_ context.Context, _ *Stream, out []string) error { r.out = append(r.out, out...); return nil }
	r.hold = false
	r.ackAll()
	r.step(poll)
	r.want(numberedLines(1, 100_000)...)
}

func TestBudgetIsShared(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxInFlightBytes = minInFlight })
	r.hold = true
	for i := range 20 {
		r.write(fmt.Sprintf("%d.log", i), numbered(1, 2000))
	}
	r.step(0)
	assert.Less(t, r.tl.inFlight, r.cfg.MaxInFlightBytes+2*int64(r.tl.chunk), "however many streams there are")
	for len(r.flying) > 0 {
		r.ack(len(r.flying) - 1)
		r.step(0)
	}
	assert.EqualValues(t, 20*2000, r.tl.Counts().Sent)
}

func gz(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

func zst(text string) string {
	var b bytes.Buffer
	z, _ := zstd.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

func TestCompressed(t *testing.T) {
	for name, pack := range map[string]func(string) string{"a.log.gz": gz, "a.log.zst": zst} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, every)
			r.hold = true
			r.write(name, pack(numbered(1, 40_000)+"START x\nlast"))
			r.step(0)
			r.step(poll)
			r.step(poll)
			require.Greater(t, len(r.flying), 2)
			r.ack(1)
			r.checkpoint()
			sent := len(r.out)
			r.restart()
			r.hold = false
			r.rest()
			assert.Len(t, r.out, 40_000+2)
			assert.Positive(t, sent)
			slices.Sort(r.out)
			want := append(numberedLines(1, 40_000), "START x", "last")
			slices.Sort(want)
			assert.True(t, slices.Equal(want, r.out))
			assert.Zero(t, r.tl.open.Load())
		})
	}
}

func TestCompressedDamage(t *testing.T) {
	r := newRig(t, every)
	whole := gz(numbered(1, 5000))
	r.write("a.log.gz", whole[:len(whole)/2])
	r.step(0)
	r.rest()
	n := len(r.out)
	assert.Greater(t, n, 100)
	assert.Less(t, n, 5000)
	assert.Positive(t, r.tl.Counts().ReadErrors)
	r.write("a.log.zst", "no zstd")
	r.rest()
	assert.Len(t, r.out, n)
}

func TestCompressionBomb(t *testing.T) {
	oneGoroutine(t)
	r := newRig(t, every)
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	_, err = z.Write(bytes.Repeat([]byte("0\n"), 1<<19))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	const most = 1 << 30 // set nowhere in the test: the limit of every tailer
	frames := bytes.Repeat(b.Bytes(), most>>20+16)
	require.NoError(t, os.WriteFile(r.path("bomb"), frames, 0o600))
	raw, err := os.Open(r.path("bomb"))
	require.NoError(t, err)
	u := unpack.NewReader(raw, unpack.Zstd, int64(len(frames)), r.tl.bombBytes)
	defer u.Close()
	p, read := make([]byte, 1<<20), int64(0)
	for n := 0; err == nil; read += int64(n) {
		n, err = u.ReadAt(p, read)
	}
	require.ErrorIs(t, u.Err(), unpack.ErrBomb)
	assert.GreaterOrEqual(t, read, int64(most))
	assert.LessOrEqual(t, read, int64(most+2<<20))
}

func TestDocument(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Document = []string{filepath.Join(filepath.Dir(c.Include[0]), "*.json")}
		c.Include = c.Document
	})
	r.write("a.json", "{\n\"a\": 1\n}")
	r.step(0)
	r.want() // may still be written
	r.step(poll)
	r.want("{\n\"a\": 1\n}")
	r.write("a.json", "{\n\"a\": 1\n}")
	r.step(10 * time.Second)
	r.rest()
	r.want()
	r.write("new", "{2}")
	r.rename("new", "a.json")
	r.rest()
	r.want("{2}")
	r.checkpoint()
	r.restart()
	r.rest()
	r.want()
	r.write("a.json", "{3}")
	r.err = errors.New("busy")
	r.rest()
	r.checkpoint()
	r.restart()
	r.err = nil
	r.rest()
	r.want("{3}")
	// The content before the last comes again before the last one is accepted.
	r.hold = true
	r.write("a.json", "{4}")
	r.rest()
	r.write("a.json", "{3}")
	r.rest()
	r.ackAll()
	r.want("{4}", "{3}")
}

// A glob's directory created after the start is found at the next look at idle files, not only by the next full scan.
func TestBaseMadeLater(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Include = []string{filepath.Join(filepath.Dir(c.Include[0]), "logs/17/**/*.log")} })
	r.step(0)
	require.NoError(t, os.MkdirAll(r.path("logs/17/deep"), 0o750))
	r.write("logs/17/deep/a.log", "1\n")
	r.step(maxIdlePoll)
	r.step(r.cfg.PollInterval)
	r.want("1")
	require.NoError(t, os.RemoveAll(r.path("logs")))
	r.step(fullScanEvery)
	require.NoError(t, os.MkdirAll(r.path("logs/17"), 0o750))
	r.write("logs/17/b.log", "2\n")
	r.step(maxIdlePoll)
	r.step(r.cfg.PollInterval)
	r.want("2")
}

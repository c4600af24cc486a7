package tail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/trainbridge/trainbridge/extensions/statestorage"
)

// host has one extension.
type host struct {
	id  component.ID
	ext component.Component
}

func (h host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{h.id: h.ext}
}

// The collector's storages, across a restart.
func TestStorageExtensions(t *testing.T) {
	dir := t.TempDir()
	t.Run("state_storage", func(t *testing.T) {
		storageExtension(t, statestorage.NewFactory(), &statestorage.Config{Directory: dir})
	})
	t.Run("file_storage", func(t *testing.T) {
		cfg := filestorage.NewFactory().CreateDefaultConfig().(*filestorage.Config)
		cfg.Directory = dir
		storageExtension(t, filestorage.NewFactory(), cfg)
	})
}

func storageExtension(t *testing.T, factory extension.Factory, extCfg component.Config) {
	t.Helper()
	logs := t.TempDir()
	id := component.NewID(factory.Type())
	cfg := DefaultConfig()
	cfg.Include = []string{filepath.Join(logs, "*.log")}
	cfg.PollInterval = 10 * time.Millisecond
	cfg.Storage = &id
	run := func(want ...string) {
		ext, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), extCfg)
		require.NoError(t, err)
		require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
		got := make(chan string, 10)
		var fails atomic.Int64
		tl, err := New(cfg, testSettings(), func(*Stream) Handler { return &sink{got: got, fails: &fails} })
		require.NoError(t, err)
		require.NoError(t, tl.Start(t.Context(), host{id, ext}))
		var came []string
		for range want {
			came = append(came, <-got)
		}
		assert.ElementsMatch(t, want, came) // batches may overtake one another
		require.NoError(t, tl.Shutdown(t.Context()))
		require.NoError(t, ext.Shutdown(t.Context()))
		assert.Empty(t, got)
		assert.Zero(t, tl.Counts().CheckpointErrors)
	}
	write := func(text string) {
		f, err := os.OpenFile(filepath.Join(logs, "a.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write("one\ntwo\n")
	run("one", "two")
	write("three\n")
	require.NoError(t, os.Rename(filepath.Join(logs, "a.log"), filepath.Join(logs, "a.log.1")))
	write("four\n")
	run("three", "four")
}

// The metrics have the same numbers as Counts.
func TestMetrics(t *testing.T) {
	r := newRig(t)
	r.crash()
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	r.telemetry = tel.NewTelemetrySettings()
	r.boot()
	r.write("a.log", "one\n# c\n\n! bad\nSTART x\n"+numbered(1, 7))
	r.step(0)
	r.truncate("a.log")
	r.write("a.log", "new\n")
	r.step(poll)
	c := r.tl.Counts()
	require.EqualValues(t, 1, c.Pending)
	first, err := tel.GetMetric("trainbridge.tail.ignored")
	require.NoError(t, err)
	for _, p := range first.Data.(metricdata.Sum[int64]).DataPoints {
		assert.Zero(t, p.Value, "the first scrape, of which the next one is a rise")
	}
	for name, want := range map[string]map[string]int64{
		"lines":             {"": c.Lines},
		"records":           {"": c.Records},
		"sent":              {"": c.Sent},
		"pending":           {"": c.Pending},
		"truncations":       {"": c.Truncations},
		"ignored":           c.Ignored,
		"rejected":          c.Rejected,
		"files":             {"open": 1, "watched": 1},
		"refused":           {"": 0}, // from the start, so the first refusal is a rise
		"lost_files":        {"": 0},
		"read_errors":       {"": 0},
		"checkpoint_errors": {"": 0},
	} {
		got := map[string]int64{}
		if m, err := tel.GetMetric("trainbridge.tail." + name); err == nil {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				id, _ := p.Attributes.Value("receiver")
				assert.Equal(t, "tail_test", id.AsString())
				key, ok := p.Attributes.Value("reason")
				if !ok {
					key, _ = p.Attributes.Value("state")
				}
				got[key.AsString()] = p.Value
			}
		}
		assert.Equal(t, want, got, name)
	}
}

// The account is counted independently: a batch dropped without settlement is noticed.
func TestAccountMissesWhatIsDropped(t *testing.T) {
	r := newRig(t)
	r.hold = true
	r.write("a.log", numbered(1, 7)+"START x\n")
	r.step(0)
	require.Len(t, r.flying, 1)
	b := r.flying[0]
	r.flying = nil
	before := r.tl.Counts()
	require.EqualValues(t, 8, before.Pending)
	r.tl.refund(b.stream, b.bytes, b.records)
	c := r.tl.Counts()
	assert.EqualValues(t, 1, c.Pending)
	assert.Equal(t, before.Records, c.Records)
	assert.EqualValues(t, 7, c.Records-c.Sent-c.Refused-c.Pending)
}

// Live lines are lines appended while the tailer was running.
func TestLive(t *testing.T) {
	r := newRig(t)
	live := map[string]bool{}
	r.onLine = func(_ *toy, text string, l *Line) {
		live[text] = l.Live
		assert.Equal(t, r.now, l.Observed)
	}
	r.write("a.log", "old\n")
	r.step(0)
	r.append("a.log", "appended\n")
	r.step(poll)
	r.write("b.log", "in a new file\n")
	r.step(poll)
	r.append("a.log", "after a pause in which nobody looked\n")
	r.step(liveWithin + time.Second)
	r.checkpoint()
	r.restart()
	r.append("a.log", "while down\n")
	r.step(0)
	r.append("a.log", "appended again\n")
	r.step(poll)
	assert.Equal(t, map[string]bool{
		"old": false, "appended": true, "in a new file": true, "after a pause in which nobody looked": false, "while down": false, "appended again": true,
	}, live)
}

// Lines show where another file begins, even under the same name.
func TestLineFile(t *testing.T) {
	r := newRig(t)
	var got []string
	r.onLine = func(_ *toy, text string, l *Line) { got = append(got, fmt.Sprintf("%s %d", text, l.File)) }
	r.append("a.log", "one\ntwo\n")
	r.step(0)
	r.append("a.log", "three\n")
	r.step(poll)
	r.rename("a.log", "a.log.1")
	r.append("a.log", "four\nfive\n")
	r.step(poll)
	r.truncate("a.log")
	r.append("a.log", "six\n")
	r.step(poll)
	r.append("a.log", "seven\n")
	r.step(poll)
	r.append("b.log", "of another stream\n")
	r.step(poll)
	assert.Equal(t, []string{"one 1", "two 1", "three 1", "four 2", "five 2", "six 3", "seven 3", "of another stream 1"}, got)
}

// Held lines keep waiting while reading pauses: their other half may be unread.
func TestHeldLinesWaitForWhatIsUnread(t *testing.T) {
	for _, rotated := range []string{"", "renamed", "renamed, and there is another"} {
		t.Run(rotated, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.MaxInFlightBytes, c.PendingTimeout = minInFlight, time.Minute })
			r.append("a.log", "START x\n")
			r.step(0)
			r.hold, r.err = true, errors.New("down")
			r.append("a.log", numbered(1, 100)+"END x\n")
			r.step(poll)
			r.steps(100, 3*time.Second)
			if rotated != "" {
				r.rename("a.log", "a.log.1")
			}
			if rotated == "renamed, and there is another" {
				r.append("a.log", "new\n")
			}
			r.steps(100, 3*time.Second)
			r.want()
			r.hold, r.err = false, nil
			r.ackAll()
			r.step(time.Minute)
			assert.Contains(t, r.out, "START x | END x")
		})
	}
}

// Held lines wait neither for future lines, nor for a last line without an end.
func TestHeldLinesExpireAtTheEnd(t *testing.T) {
	for name, grow := range map[string]string{"nothing follows": "", "a line that grows": "x"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.PendingTimeout = time.Minute })
			r.append("a.log", "START x\n"+grow)
			r.step(0)
			for range 6 {
				r.step(10 * time.Second)
				r.want()
				r.append("a.log", grow)
			}
			r.step(10 * time.Second)
			r.append("a.log", grow)
			r.step(10 * time.Second)
			r.want("START x")
		})
	}
}

// The oldest lines of the stream with the most held lines are given up; a stream with few keeps its lines.
func TestHeldLinesAreBounded(t *testing.T) {
	r := newRig(t)
	r.tl.maxHeldBytes = 7 * 2100
	r.append("b.log", "START b\n")
	r.step(poll)
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		r.append("a.log", "START "+id+"\n")
		r.step(poll)
	}
	r.want()
	r.append("a.log", "START 7\n")
	r.step(poll)
	r.want("START 1")
	r.append("a.log", "END 6\n")
	r.append("b.log", "END b\n")
	r.step(poll)
	assert.ElementsMatch(t, []string{"START 6 | END 6", "START b | END b"}, r.out)
	assert.EqualValues(t, 1, r.tl.counts.forced.n)
	r.tl.expireAll()
	assert.Zero(t, r.tl.heldBytes.Load())
	assert.Zero(t, r.tl.holders.Load())
}

// A file that decompresses to far more than any log is given up, and counted; the others continue.
func TestCompressionBombIsCounted(t *testing.T) {
	r := newRig(t, every)
	r.tl.bombBytes = 1 << 20
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	for range 16 {
		_, err = z.Write(bytes.Repeat([]byte{'0'}, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.Less(t, b.Len(), 16<<10)
	r.write("a.log.zst", b.String())
	r.write("b.log", "one\n")
	r.step(0)
	r.rest()
	r.want("one")
	c := r.tl.Counts()
	assert.EqualValues(t, 1, c.Rejected[reasonBomb])
	assert.Zero(t, r.tl.open.Load()-1, "b.log only")
}

// Each content of a document is a file of its own.
func TestDocumentFile(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Document = c.Include })
	seen := map[int]string{}
	r.onLine = func(_ *toy, text string, l *Line) {
		require.NotContains(t, seen, l.File)
		seen[l.File] = text
	}
	for _, text := range []string{"one", "two", "three"} {
		r.write("a.log", text)
		r.rest()
	}
	require.Len(t, seen, 3)
}

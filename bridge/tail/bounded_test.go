package tail

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

const mib = 1 << 20

// place is the read position in the content of a file.
func (f *file) place() int64 {
	if u, ok := f.src.(*unpack.Reader); ok {
		return u.Pos()
	}
	return max(f.head, f.nulTo)
}

// turns gives the streams turns until none is ready, and checks the bytes read per turn.
func (r *rig) turns(most int64) {
	for range 100_000 {
		if len(r.tl.ready) == 0 {
			if len(r.tl.kicked) == 0 {
				return
			}
			r.tl.sweep(r.now)
			continue
		}
		s := r.tl.pop()
		before := map[*file]int64{}
		for _, f := range s.files {
			before[f] = f.place()
		}
		r.tl.turn(s, &r.buf)
		r.ackAll()
		for _, f := range s.files {
			require.LessOrEqual(r.t, f.place()-before[f], most, "%s in one turn", f.path)
		}
	}
	r.t.Fatal("no end of turns")
}

func zeros(tb testing.TB, w io.Writer, n int) {
	tb.Helper()
	b := make([]byte, mib)
	for range n {
		_, err := w.Write(b)
		require.NoError(tb, err)
	}
}

// A compressed file is read turn by turn, even if it holds nothing but NULs; a decompression bomb is given up, counted and logged once, and a restart does not
// begin it again.
func TestCompressedNULs(t *testing.T) {
	oneGoroutine(t)
	r := newRig(t, every)
	logs := r.observed()
	r.tl.bombBytes = 64 * mib
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	zeros(t, z, 256)
	require.NoError(t, z.Close())
	require.Less(t, b.Len(), 64<<10)
	r.write("a.log.zst", b.String())
	r.write("b.log", "one\n")
	r.step(0)
	r.now = r.now.Add(poll)
	r.tl.sweep(r.now)
	r.turns(quantum * chunkBytes)
	r.rest()
	r.want("one")
	c := r.tl.Counts()
	assert.EqualValues(t, 1, c.Rejected[reasonBomb])
	assert.Equal(t, 1, logs.FilterMessage("A compressed file was given up").Len())
	assert.Zero(t, r.tl.packed.Load())
	r.checkpoint()
	r.restart()
	r.tl.bombBytes = 64 * mib
	r.rest()
	assert.Zero(t, r.tl.Counts().Lines)
	assert.Zero(t, r.tl.packed.Load())
}

// A damaged file is logged once, and not tried again before a change.
func TestDamageIsSaidOnce(t *testing.T) {
	r := newRig(t, every)
	logs := r.observed()
	whole := gz(numbered(1, 5000))
	r.write("a.log.gz", whole[:len(whole)/2])
	r.step(0)
	for range 20 {
		r.rest()
	}
	assert.EqualValues(t, 1, r.tl.Counts().ReadErrors)
	require.Equal(t, 1, logs.Len())
	assert.NotContains(t, logs.All()[0].Message, "tried again")
	r.checkpoint()
	r.restart()
	r.rest()
	assert.Zero(t, r.tl.Counts().ReadErrors)
	r.write("a.log.gz", whole)
	r.rest()
	r.want(numberedLines(1, 5000)...)
}

// A compressed file that was read whole, with less content than packed bytes, is gone after a restart: nothing of the file is lost.
func TestCompressedGoneOnceRead(t *testing.T) {
	r := newRig(t, every)
	r.write("a.log.gz", gz("a\n"))
	r.step(0)
	r.rest()
	r.want("a")
	r.checkpoint()
	r.remove("a.log.gz")
	r.restart()
	r.rest()
	assert.Zero(t, r.tl.Counts().LostFiles)
}

// NULs in a compressed file are skipped, and its end is final.
func TestCompressedHole(t *testing.T) {
	r := newRig(t, every)
	r.write("a.log.gz", gz("a\n"+strings.Repeat("\x00", 5*mib)+"b\n"+strings.Repeat("\x00", 3*mib)))
	r.step(0)
	r.now = r.now.Add(poll)
	r.tl.sweep(r.now)
	r.turns(quantum * chunkBytes)
	r.want("a", "b")
	r.rest()
	r.want()
	assert.Zero(t, r.tl.packed.Load())
	assert.True(t, r.tl.sweeper.streams[r.path("a.log.gz")].current.isComplete())
}

// Allocated NULs, for instance where the file system has no holes, are skipped turn by turn.
func TestLongRunOfNULs(t *testing.T) {
	r := newRig(t)
	r.write("a.log", "a\n")
	f, err := os.OpenFile(r.path("a.log"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	zeros(t, f, 64)
	require.NoError(t, f.Close())
	r.tl.sweep(r.now)
	r.turns(quantum * quantum * chunkBytes)
	r.want("a")
	cur := r.tl.sweeper.streams[r.path("a.log")].current
	assert.EqualValues(t, 2, cur.head, "it may be space that is yet to be written")
	assert.EqualValues(t, 64*mib+2, cur.nulTo)
	r.append("a.log", "b\n")
	r.now = r.now.Add(poll)
	r.tl.sweep(r.now)
	r.turns(quantum * quantum * chunkBytes)
	r.want("b")
}

// Preallocated space is read once written.
func TestAllocatedSpaceIsWritten(t *testing.T) {
	r := newRig(t)
	r.write("a.log", "a\n"+strings.Repeat("\x00", 2*mib))
	r.step(0)
	r.want("a")
	for i, at := range []int64{2, 4, 2*mib + 2} {
		f, err := os.OpenFile(r.path("a.log"), os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("b\n"), at)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		later := r.now.Add(time.Duration(i) * time.Second)
		require.NoError(t, os.Chtimes(r.path("a.log"), later, later))
		r.step(poll)
		r.want("b")
	}
}

// wide are lines of 64 KiB each.
func wide(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%064d%s\n", i, strings.Repeat("x", 64<<10-65))
	}
	return b.String()
}

// After a restart in mid-file a compressed file is decompressed up to where reading stopped turn by turn, by the workers.
func TestRestartInsideCompressed(t *testing.T) {
	oneGoroutine(t)
	r := newRig(t, every)
	r.write("a.log.gz", gz(wide(1, 800)))
	r.step(0)
	r.hold = true
	r.now = r.now.Add(poll)
	r.tl.sweep(r.now)
	s := r.tl.sweeper.streams[r.path("a.log.gz")]
	for s.current.head < 40*mib {
		r.tl.turn(r.tl.pop(), &r.buf)
		for len(r.flying) > 1 {
			require.True(t, r.ack(1)) // the first batch stays a hole
		}
	}
	sent := len(r.out)
	r.checkpoint()
	r.restart()
	r.hold = false
	r.tl.sweep(r.now)
	s = r.tl.sweeper.streams[r.path("a.log.gz")]
	assert.LessOrEqual(t, s.current.place(), int64(chunkBytes), "the sweeper waits for no decoder")
	r.now = r.now.Add(poll)
	r.tl.sweep(r.now)
	r.turns(quantum * unpack.SkipBytes)
	r.rest()
	assert.Len(t, r.out, 800)
	assert.Less(t, sent, 800)
	c := r.tl.Counts()
	assert.Zero(t, c.Truncations)
	assert.EqualValues(t, 800-sent, c.Lines)
}

// The comparison of a compressed file proceeds in parts: meanwhile other files are read, and finally a result is known.
func TestComparingCompressedIsBounded(t *testing.T) {
	oneGoroutine(t)
	for name, tc := range map[string]struct {
		down, cut bool
	}{"compressed while reading": {}, "compressed while down": {down: true}, "copied, cut and compressed": {cut: true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, every)
			r.tl.probeBytes = 2 * mib
			all := wide(1, 300)
			r.write("a.log.2.gz", gz(wide(2001, 2250)))
			old := r.now.Add(-time.Hour)
			require.NoError(t, os.Chtimes(r.path("a.log.2.gz"), old, old))
			r.write("a.log", all[:250<<16])
			r.write("b.log", "")
			r.rest()
			assert.Len(t, r.out, 500)
			r.out = nil
			r.checkpoint()
			if tc.down {
				r.crash()
			}
			r.append("a.log", all[250<<16:])
			r.write("a.log.1.gz", gz(all))
			if tc.cut {
				r.truncate("a.log")
			} else {
				r.remove("a.log")
			}
			r.append("a.log", wide(301, 301))
			r.append("b.log", "one\n")
			if tc.down {
				r.boot()
				r.tl.probeBytes = 2 * mib
			}
			most, sweeps := r.probe()
			r.rest()
			r.rest()
			if tc.down || tc.cut {
				assert.Greater(t, sweeps, 2)
				assert.LessOrEqual(t, most, r.tl.probeBytes+unpack.SkipBytes)
				assert.Len(t, r.out, 52)
				assert.Zero(t, r.tl.Counts().LostFiles)
			} else {
				assert.Len(t, r.out, 52, "it was open when it was removed")
			}
			r.steps(6, 30*time.Second)
			assert.Len(t, r.out, 52)
			assert.Zero(t, r.tl.sweeper.probing)
		})
	}
}

// probe sweeps a hundred times. It returns the number of sweeps with comparisons, and the most bytes in a sweep.
func (r *rig) probe() (most int64, sweeps int) {
	r.now = r.now.Add(poll)
	for range 100 {
		before := map[fingerprint.ID]int64{}
		for id, p := range r.tl.sweeper.probes {
			if p.src != nil {
				before[id] = p.src.Pos()
			}
		}
		r.tl.sweep(r.now)
		for id, p := range r.tl.sweeper.probes {
			if p.src != nil {
				most = max(most, p.src.Pos()-before[id])
				sweeps++
			}
		}
		for len(r.tl.ready) > 0 {
			r.tl.turn(r.tl.pop(), &r.buf)
			r.ackAll()
		}
		if sweeps == 1 {
			assert.Contains(r.t, r.out, "one", "no other stream waits")
		}
		if len(r.tl.kicked) == 0 {
			r.now = r.now.Add(time.Second)
		}
	}
	return most, sweeps
}

// How much a handler reads ahead is bounded, per visit and per turn.
func TestAheadIsBounded(t *testing.T) {
	oneGoroutine(t)
	for _, name := range []string{"a.log", "a.log.gz"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, every)
			r.tl.maxAhead = mib
			text := wide(1, 100)
			if name == "a.log.gz" {
				text = gz(text)
			}
			lines, total := 0, 0
			r.onLine = func(h *toy, _ string, _ *Line) {
				n := 0
				h.s.Ahead(func(b []byte) bool { n += len(b); return true })
				assert.LessOrEqual(t, n, mib+chunkBytes)
				total += n
				h.s.Beginning(func(b []byte) bool { n += len(b); return true })
				assert.LessOrEqual(t, n, 2*(mib+chunkBytes))
				lines++
			}
			r.write(name, text)
			r.tl.sweep(r.now)
			r.now = r.now.Add(poll)
			r.tl.sweep(r.now)
			for len(r.tl.ready) > 0 {
				before := lines
				r.tl.turn(r.tl.pop(), &r.buf)
				r.ackAll()
				assert.LessOrEqual(t, lines-before, 20, "in one turn")
			}
			assert.Equal(t, 100, lines)
			assert.Greater(t, total, 5*mib)
		})
	}
}

// stuck is a handler that hangs, as a file system may.
type stuck struct {
	nop
	entered, leave chan struct{}
}

func (h *stuck) Line(*Line) (Verdict, string) {
	close(h.entered)
	<-h.leave
	return Record, ""
}

func TestShutdownHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cfg := DefaultConfig()
		cfg.Include = []string{dir + "/*.log"}
		require.NoError(t, os.WriteFile(dir+"/a.log", []byte("one\n"), 0o600))
		h := &stuck{entered: make(chan struct{}), leave: make(chan struct{})}
		tl, err := New(cfg, testSettings(), func(*Stream) Handler { return h })
		require.NoError(t, err)
		tl.noWatch = true
		require.NoError(t, tl.Start(t.Context(), componenttest.NewNopHost()))
		<-h.entered
		require.ErrorIs(t, tl.Shutdown(context.Background()), errHangs)
		close(h.leave)
		synctest.Wait()
		tl.closeFiles()
	})
}

// stuckStore is a storage on a hanging disk, which ignores its context.
type stuckStore struct {
	*memStore
	component.StartFunc
	component.ShutdownFunc
	hangs atomic.Bool
	leave chan struct{}
}

func (s *stuckStore) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, nil
}

func (s *stuckStore) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if s.hangs.Load() {
		<-s.leave
	}
	return s.memStore.Batch(ctx, ops...)
}

func (s *stuckStore) Close(context.Context) error {
	if s.hangs.Load() {
		<-s.leave
	}
	return nil
}

func TestShutdownWhileTheStorageHangs(t *testing.T) {
	for name, before := range map[string]bool{"at the last positions": false, "since before": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				cfg := DefaultConfig()
				cfg.Include = []string{dir + "/*.log"}
				id := component.MustNewID("stuck")
				cfg.Storage = &id
				require.NoError(t, os.WriteFile(dir+"/a.log", []byte("one\n"), 0o600))
				s := &stuckStore{memStore: newMemStore(), leave: make(chan struct{})}
				s.hangs.Store(before)
				tl, err := New(cfg, testSettings(), func(*Stream) Handler { return &nop{} })
				require.NoError(t, err)
				tl.noWatch = true
				require.NoError(t, tl.Start(t.Context(), host{id, s}))
				time.Sleep(2 * checkpointGap) // of the bubble: positions were to be stored meanwhile
				s.hangs.Store(true)
				require.ErrorIs(t, tl.Shutdown(t.Context()), errStoreHangs)
				close(s.leave)
				synctest.Wait()
				if before {
					tl.closeFiles()
				}
				assert.Zero(t, tl.open.Load())
			})
		})
	}
}

package tail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// memExtension is a storage extension with one memStore.
type memExtension struct {
	component.StartFunc
	component.ShutdownFunc
	store *memStore
}

func (e *memExtension) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return e.store, nil
}

// crowd is a few hundred files that grow while being read.
type crowd struct {
	t     *testing.T
	dir   string
	store *memStore
	lines map[string]map[int64][]string // records of each line, by path and offset
	text  map[string][]string           // of each file, in parts

	mu    sync.Mutex
	rnd   *rand.Rand
	whole map[string]int
	wrong []string
	full  chan struct{} // closed when all records came
	want  int
	stop  func() // ends this process after a number of records
	after int

	crashed map[string][]byte // a checkpoint of this process
}

func (c *crowd) consume(ctx context.Context, _ *Stream, out []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.rnd.IntN(4) == 0:
		return errors.New("not now")
	}
	for _, rec := range out {
		k, said, ok := strings.Cut(rec, ":")
		if !ok {
			continue
		}
		if n := len(strings.Split(said, ",")); n != len(c.lines) {
			c.wrong = append(c.wrong, fmt.Sprintf("%s left with %d of %d", k, n, len(c.lines)))
		}
		c.whole[k]++
		if c.after--; c.after == 0 {
			c.stop()
		}
		if len(c.whole) == c.want && c.full != nil {
			close(c.full)
			c.full = nil
		}
	}
	if c.rnd.IntN(8) == 0 {
		return consumererror.NewPermanent(errors.New("no")) // seen, and refused
	}
	return nil
}

// live runs a Tailer with real goroutines until the given number of records came, or all, while the files grow and checkpoints are stored continuously. It
// returns an earlier content of the store.
func (c *crowd) live(after int, grow bool) map[string][]byte {
	t := c.t
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.crashed = maps.Clone(c.store.values)
	stopped := make(chan struct{})
	full := make(chan struct{})
	c.mu.Lock()
	c.after, c.stop, c.full = after, func() { close(stopped) }, full
	if len(c.whole) == c.want { // perhaps all come again, perhaps none
		close(full)
		c.full = nil
	}
	c.mu.Unlock()

	id := component.MustNewID("mem")
	cfg := DefaultConfig()
	cfg.Include = []string{filepath.Join(c.dir, "*.log")}
	cfg.PollInterval = 10 * time.Millisecond
	cfg.MaxInFlightBytes = 1 << 20
	cfg.Storage = &id
	set := testSettings()
	set.Joint, set.HoldTimeout = true, time.Hour
	m := &meeting{ranks: len(c.text), open: map[string]*met{}, consume: c.consume, wrong: func(format string, args ...any) {
		c.mu.Lock()
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
		c.mu.Unlock()
	}}
	tl, err := New(cfg, set, func(s *Stream) Handler { return &member{m: m, s: s} })
	require.NoError(t, err)
	require.NoError(t, tl.Start(ctx, host{id, &memExtension{store: c.store}}))

	var others sync.WaitGroup
	if grow {
		others.Go(func() { c.grow(ctx) })
	}
	ended := make(chan struct{})
	others.Go(func() { c.checkpoints(ctx, tl, ended) })
	select {
	case <-stopped:
	case <-full:
	case <-ctx.Done():
		t.Error("not all records came")
	}
	close(ended)
	others.Wait()
	kill, now := context.WithCancel(ctx)
	now()
	require.NoError(t, tl.Shutdown(kill))
	require.Equal(t, tl.Counts().Records, tl.Counts().Sent+tl.Counts().Refused+tl.Counts().Pending)
	require.Zero(t, tl.Counts().LostFiles)
	require.NoError(t, halves(c.store.values, c.lines))
	return c.crashed
}

// grow appends to the files, a part to each in turn, until all is written.
func (c *crowd) grow(ctx context.Context) {
	for grow := true; grow; {
		grow = false
		for path, parts := range c.text {
			if ctx.Err() != nil || len(parts) == 0 {
				continue
			}
			f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = f.WriteString(parts[0])
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				c.t.Error(err)
				return
			}
			c.text[path] = parts[1:]
			grow = true
		}
	}
}

// checkpoints are stored until ended is closed. Each has all lines of a record or none; any of them may be left by a crash.
func (c *crowd) checkpoints(ctx context.Context, tl *Tailer, ended <-chan struct{}) {
	var last map[string][]byte
	for {
		select {
		case <-ended:
			return
		default:
		}
		if err := tl.storeAll(ctx, true); err != nil && ctx.Err() == nil {
			c.t.Error(err)
		}
		c.store.mu.Lock()
		values := maps.Clone(c.store.values)
		c.store.mu.Unlock()
		if maps.EqualFunc(values, last, bytes.Equal) {
			time.Sleep(time.Millisecond) // the processors are the tailer's
			continue
		}
		last = values
		if err := halves(values, c.lines); err != nil {
			c.t.Error(err)
			return
		}
		c.mu.Lock()
		if c.rnd.IntN(3) == 0 {
			c.crashed = values
		}
		c.mu.Unlock()
		runtime.Gosched()
	}
}

// Some hundred streams with a line each of every record, with all goroutines: every stored checkpoint has all lines of a record or none, and over clean
// restarts and crashes each record leaves whole; without crashes once.
func TestJointRunning(t *testing.T) {
	streams, records := 240, 60
	if testing.Short() {
		streams = 60
	}
	for name, tc := range map[string]struct{ shared, crash bool }{
		"restarts": {false, false}, "crashes": {false, true}, "restarts, shared lines": {true, false}, "crashes, shared lines": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for what was refused
			c := &crowd{
				t: t, dir: t.TempDir(), store: newMemStore(), lines: map[string]map[int64][]string{}, text: map[string][]string{},
				rnd:   rand.New(rand.NewPCG(1, 1)),
				whole: map[string]int{}, want: records,
			}
			for rank := range streams {
				path := filepath.Join(c.dir, fmt.Sprintf("r%d.log", rank))
				c.lines[path] = map[int64][]string{}
				var b strings.Builder
				begin := 0
				for k := 0; k < records; k++ {
					keys := []string{fmt.Sprintf("k%d", k)}
					if tc.shared && k+1 < records && k%16 < 14 && c.rnd.IntN(4) == 0 {
						k++
						keys = append(keys, fmt.Sprintf("k%d", k))
					}
					if c.rnd.IntN(8) == 0 {
						fmt.Fprintf(&b, "# x\n= %d %d\n", k, rank)
					}
					c.lines[path][int64(b.Len())] = keys
					fmt.Fprintf(&b, "%s %d;\n", strings.Join(keys, ","), rank)
					if k+1 == records || c.rnd.IntN(20) == 0 {
						c.text[path] = append(c.text[path], b.String()[begin:])
						begin = b.Len()
					}
				}
			}
			const lives = 3
			again := 0 // how often a record may come again
			for life := range lives {
				crashed := c.live(records/(lives+1), life == 0)
				if tc.crash {
					c.store = newMemStore()
					c.store.values = crashed
				}
				if tc.crash || tc.shared { // a waiting shared line repeats the records accepted with it
					again++
				}
			}
			c.live(-1, false)
			require.Empty(t, c.wrong)
			require.Len(t, c.whole, records)
			for k, n := range c.whole {
				require.LessOrEqual(t, n, 1+again, k)
			}
		})
	}
}

package tail

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
)

// arriving is a handler of a log without a clock: a record has the reading time of its line, and the number of lines behind it at the time.
type arriving struct {
	rig   *rig
	s     *Stream
	batch []string
}

func (h *arriving) Line(l *Line) (Verdict, string) {
	h.s.ByArrival()
	follow := 0
	h.s.Ahead(func([]byte) bool { follow++; return true })
	h.batch = append(h.batch, fmt.Sprintf("%s %v %d %v %d", l.Text, l.Live, l.Observed.UnixNano(), l.ModTime.UnixNano(), follow))
	return Record, ""
}

func (h *arriving) Cut() Delivery {
	if len(h.batch) == 0 {
		return nil
	}
	out := h.batch
	h.batch = nil
	return sendFunc(func(ctx context.Context) error { return h.rig.consume(ctx, h.s, out) })
}

func (*arriving) Expire(time.Time) {}
func (*arriving) Save() []byte     { return nil }
func (*arriving) Restore([]byte)   {}
func (*arriving) InOrder()         {}

func seedsOfArrivals() uint64 {
	if testing.Short() {
		return 40
	}
	return 300
}

// Output sent before a crash comes again unchanged, even if a line has only the time of its arrival: for any accepted batches, and any time of storing
// positions.
func TestArrivals(t *testing.T) {
	for seed := range seedsOfArrivals() {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			r := newRig(t, func(c *Config) { c.MaxInFlightBytes = minInFlight })
			r.crash()
			r.handler = func(s *Stream) Handler { return &arriving{rig: r, s: s} }
			r.boot()
			r.hold, r.early = true, true
			sent := make(map[string]string)
			r.consume = func(_ context.Context, _ *Stream, out []string) error {
				for _, text := range out {
					name, _, _ := strings.Cut(text, " ")
					if was, ok := sent[name]; ok {
						require.Equal(t, was, text)
					}
					sent[name] = text
				}
				return r.err
			}
			n, files := 0, 0
			for range 40 {
				switch rnd.IntN(8) {
				case 0, 1, 2:
					for range 1 + rnd.IntN(30) {
						n++
						r.append("a.log", fmt.Sprintf("%d\n", n))
					}
				case 3:
					r.err = context.DeadlineExceeded // the batch arrived all the same
					if len(r.flying) > 0 {
						r.ack(rnd.IntN(len(r.flying)))
					}
					r.err = nil
				case 4:
					if len(r.flying) > 0 {
						r.ack(rnd.IntN(len(r.flying)))
					}
				case 5:
					r.checkpoint()
				case 6:
					r.restart()
				case 7:
					if n > 0 && rnd.IntN(3) == 0 {
						r.step(poll)
						files++
						r.rename("a.log", fmt.Sprintf("a.log.%d", files))
						n++
						r.append("a.log", fmt.Sprintf("%d\n", n))
					}
				}
				if rnd.IntN(2) == 0 {
					r.step(time.Duration(1+rnd.IntN(2000)) * time.Millisecond)
				}
			}
			r.hold = false
			r.step(0)
			r.ackAll()
			r.rest()
			require.Len(t, sent, n)
		})
	}
}

// undated is a sink of lines with only the time of their arrival.
type undated struct {
	sink
	s *Stream
}

func (u *undated) Line(l *Line) (Verdict, string) {
	u.s.ByArrival()
	return u.sink.Line(l)
}

// Nothing is sent before the storage has the arrivals of its lines, whoever stores positions at that moment.
func TestArrivalsAreStoredFirst(t *testing.T) {
	log, id := filepath.Join(t.TempDir(), "a.log"), component.MustNewID("stuck")
	require.NoError(t, os.WriteFile(log, []byte("one\n"), 0o600))
	cfg := DefaultConfig()
	cfg.Include, cfg.Storage = []string{log}, &id
	store := &stuckStore{memStore: newMemStore(), leave: make(chan struct{})}
	got := make(chan string, 1)
	tl, err := New(cfg, testSettings(), func(s *Stream) Handler { return &undated{sink{got: got, fails: &atomic.Int64{}}, s} })
	require.NoError(t, err)
	tl.noWatch = true
	require.NoError(t, tl.Start(t.Context(), host{id, store}))
	<-got
	writes := func() int {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.writes
	}
	tl.sweepMu.Lock()
	s := tl.sweeper.streams[log]
	tl.sweepMu.Unlock()
	store.hangs.Store(true)
	s.mu.Lock()
	s.arrived++ // another line was read
	s.changed()
	s.mu.Unlock()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.storing == s.arrived
	}, time.Minute, time.Millisecond, "positions are being stored")
	before, sent := writes(), make(chan int, 1)
	go func() {
		tl.storeArrivals([]*lineBatch{{stream: s}})
		sent <- writes()
	}()
	time.AfterFunc(100*time.Millisecond, func() { store.hangs.Store(false); close(store.leave) })
	assert.Greater(t, <-sent, before)
	require.NoError(t, tl.Shutdown(t.Context()))
}

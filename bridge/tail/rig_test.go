package tail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// memStore is a storage client in memory, with failures on demand.
type memStore struct {
	mu     sync.Mutex
	values map[string][]byte
	fail   error
	writes int
}

func newMemStore() *memStore { return &memStore{values: map[string][]byte{}} }

func (m *memStore) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], m.fail
}

func (m *memStore) Set(ctx context.Context, key string, value []byte) error {
	return m.Batch(ctx, storage.SetOperation(key, value))
}

func (m *memStore) Delete(ctx context.Context, key string) error {
	return m.Batch(ctx, storage.DeleteOperation(key))
}

func (m *memStore) Batch(_ context.Context, ops ...*storage.Operation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = m.values[op.Key]
		case storage.Set:
			m.values[op.Key] = append([]byte(nil), op.Value...)
			m.writes++
		case storage.Delete:
			delete(m.values, op.Key)
		}
	}
	return nil
}

func (m *memStore) Close(context.Context) error { return nil }

// toy is a handler that pairs "START id" with "END id" lines, across anything in between. Other lines are records of their own, "#" lines are ignored and "!"
// lines rejected.
type toy struct {
	rig   *rig
	s     *Stream
	open  map[string]opened
	batch []string
	saved int
	lines int
}

type opened struct {
	h    Held
	text string
	at   time.Time
}

func (h *toy) Line(l *Line) (Verdict, string) {
	h.lines++
	text := string(l.Text)
	if h.rig.onLine != nil {
		h.rig.onLine(h, text, l)
	}
	kind, id, _ := strings.Cut(text, " ")
	switch kind {
	case "#":
		return Ignored, "comment"
	case "!":
		return Rejected, "bad"
	case "START":
		if old, ok := h.open[id]; ok {
			h.s.Release(old.h)
			h.batch = append(h.batch, old.text)
		}
		h.open[id] = opened{h.s.Hold(), text, l.Observed}
	case "END":
		if o, ok := h.open[id]; ok {
			delete(h.open, id)
			h.s.Release(o.h)
			h.batch = append(h.batch, o.text+" | "+text)
		} else {
			h.batch = append(h.batch, text)
		}
	default:
		h.batch = append(h.batch, text)
	}
	return Record, ""
}

func (h *toy) Expire(before time.Time) {
	for id, o := range h.open {
		if o.at.Before(before) {
			delete(h.open, id)
			h.s.Release(o.h)
			h.batch = append(h.batch, o.text)
		}
	}
}

func (h *toy) Cut() Delivery {
	if len(h.batch) == 0 {
		return nil
	}
	out := h.batch
	h.batch = nil
	return sendFunc(func(ctx context.Context) error { return h.rig.consume(ctx, h.s, out) })
}

func (h *toy) Save() []byte     { return fmt.Append(nil, h.lines) }
func (h *toy) Restore(b []byte) { _, _ = fmt.Sscan(string(b), &h.saved) }

// rig runs a Tailer step by step, in one goroutine, with its own clock.
type rig struct {
	t      testing.TB
	dir    string
	cfg    Config
	tl     *Tailer
	now    time.Time
	store  *memStore
	flying []*lineBatch
	out    []string // accepted records
	err    error    // the consumer's answer
	bad    string   // the line that the consumer refuses
	buf    []byte
	onLine func(h *toy, text string, l *Line)
	// handler makes handlers other than toys.
	handler     NewHandler
	isDocument  func(path string) bool // Settings.IsDocument
	joint       bool                   // Settings.Joint
	holdTimeout time.Duration          // Settings.HoldTimeout
	// consume is the next component.
	consume   func(ctx context.Context, s *Stream, out []string) error
	telemetry component.TelemetrySettings // zero: none
	hold      bool                        // keep batches in flight until ack
	sorter    *Sorter
	id        string // of Settings.ID; "": tail_test
	detect    func(path string) Detect
	most      int64 // files that may be open at once; 0: no limit
	early     bool  // store a checkpoint after a file was taken up, before any of it is read
	// tick returns the modification time of a write now; nil: the file system's.
	tick func(name string) time.Time
}

func newRig(tb testing.TB, change ...func(*Config)) *rig {
	tb.Helper()
	r := &rig{t: tb, dir: tb.TempDir(), cfg: DefaultConfig(), now: time.Now(), store: newMemStore()}
	r.cfg.Include = []string{filepath.Join(r.dir, "*.log")}
	id := component.MustNewID("mem")
	r.cfg.Storage = &id
	for _, c := range change {
		c(&r.cfg)
	}
	r.consume = func(_ context.Context, _ *Stream, out []string) error {
		if r.err == nil {
			r.out = append(r.out, out...)
		}
		return r.err
	}
	r.boot()
	if t, ok := tb.(*testing.T); ok {
		t.Cleanup(r.crash)
	}
	return r
}

// oneGoroutine leaves a long test of a rig to the run without the race detector (-short), which would find nothing and take ten times as long.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine")
	}
}

func testSettings() Settings {
	return Settings{ID: component.MustNewID("tail_test"), Kind: component.KindReceiver, Telemetry: componenttest.NewNopTelemetrySettings()}
}

// boot starts a tailer on the checkpoints in the store.
func (r *rig) boot() {
	set := testSettings()
	set.Clock = func() time.Time { return r.now }
	if r.id != "" {
		set.ID = component.MustNewID(r.id)
	}
	set.Joint, set.HoldTimeout = r.joint, r.holdTimeout
	set.Sorter, set.Detect, set.IsDocument = r.sorter, r.detect, r.isDocument
	if r.telemetry.MeterProvider != nil {
		set.Telemetry = r.telemetry
	}
	mk := r.handler
	if mk == nil {
		mk = func(s *Stream) Handler { return &toy{rig: r, s: s, open: map[string]opened{}} }
	}
	tl, err := New(r.cfg, set, mk)
	require.NoError(r.t, err)
	require.NoError(r.t, tl.openCounts())
	tl.store, tl.noWatch = r.store, true
	tl.descriptors = &descriptors{most: cmp.Or(r.most, 2*maxOpenFiles), limited: r.most > 0}
	tl.launch = func(b *lineBatch) { r.flying = append(r.flying, b) }
	require.NoError(r.t, tl.load(context.Background()))
	r.tl = tl
}

// observed restarts the tailer with a log of its own.
func (r *rig) observed() *observer.ObservedLogs {
	core, logs := observer.New(zap.WarnLevel)
	r.crash()
	r.telemetry = componenttest.NewNopTelemetrySettings()
	r.telemetry.Logger = zap.New(core)
	r.boot()
	return logs
}

// crash drops everything in memory.
func (r *rig) crash() {
	if r.tl == nil {
		return
	}

	if r.sorter != nil {
		r.sorter.leave(r.tl)
	}
	r.tl.closeFiles()
	r.tl.counts.close()
	r.tl.kill()
	r.tl, r.flying = nil, nil
}

func (r *rig) restart() {
	r.crash()
	r.boot()
}

// checkpoint stores positions, as happens once a second.
func (r *rig) checkpoint() { _ = r.tl.storeAll(context.Background(), true) }

// ack lets the consumer answer the i-th batch in flight.
func (r *rig) ack(i int) bool {
	b := r.flying[i]
	r.tl.storeArrivals([]*lineBatch{b})
	err := b.delivery.Send(context.Background())
	if err != nil && !isPermanent(err) {
		return false
	}
	r.flying = append(r.flying[:i], r.flying[i+1:]...)
	r.tl.settle([]*lineBatch{b}, err)
	return true
}

func (r *rig) ackAll() {
	for len(r.flying) > 0 && r.ack(0) {
	}
}

// steps makes n steps.
func (r *rig) steps(n int, d time.Duration) {
	for range n {
		r.step(d)
	}
}

// step lets time pass, looks, and reads until nothing is ready.
func (r *rig) step(d time.Duration) {
	r.now = r.now.Add(d)
	for range 1000 {
		r.tl.sweep(r.now)
		select {
		case <-r.tl.early:
			if r.early {
				_ = r.tl.storeAll(context.Background(), false)
			}
		default:
		}
		busy := false
		for len(r.tl.ready) > 0 {
			busy = true
			r.tl.mu.Lock()
			s := r.tl.pop()
			r.tl.mu.Unlock()
			r.tl.turn(s, &r.buf)
			if !r.hold {
				r.ackAll()
			}
		}
		if !busy && len(r.tl.kicked) == 0 {
			if !r.hold {
				r.ackAll()
			}
			r.balance()
			return
		}
	}
	r.t.Fatal("the tailer does not come to rest")
}

// rest reads until everything that time can bring has come, including full scans.
func (r *rig) rest() {
	r.steps(12, 3*time.Second)
}

// balance checks the accounts.
func (r *rig) balance() {
	c := r.tl.Counts()
	sum := c.Records
	for n := range maps.Values(c.Ignored) {
		sum += n
	}
	for n := range maps.Values(c.Rejected) {
		sum += n
	}
	require.Equal(r.t, c.Lines, sum, "lines = records + ignored + rejected: %+v", c)
	require.Equal(r.t, c.Records, c.Sent+c.Refused+c.Pending, "%+v", c)
	var held, flying, budget int64
	for _, s := range r.tl.sweeper.streams {
		own := int64(0)
		for i := range s.held.slots {
			if s.held.slots[i].file != nil && s.held.slots[i].record {
				held++
			}
		}
		for b := range s.flying {
			flying += b.records
			own += b.bytes
		}
		require.Equal(r.t, own, s.inFlight, "the budget is what is in flight")
		budget += own
	}
	require.Equal(r.t, budget, r.tl.inFlight, "the budget is what is in flight")
	open := r.tl.open.Load() + int64(len(r.tl.captures.open)+r.tl.sweeper.probing)
	require.Equal(r.t, open, r.tl.descriptors.open, "the descriptors are of files, captures, and probes")
	require.Equal(r.t, c.Pending, held+flying, "pending lines are held or in flight: %+v", c)
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name, text string) {
	require.NoError(r.t, os.WriteFile(r.path(name), []byte(text), 0o600))
	r.touch(name)
}

func (r *rig) touch(name string) {
	if r.tick != nil {
		at := r.tick(name)
		require.NoError(r.t, os.Chtimes(r.path(name), at, at))
	}
}

func (r *rig) append(name, text string) {
	f, err := os.OpenFile(r.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	require.NoError(r.t, err)
	_, err = f.WriteString(text)
	require.NoError(r.t, errors.Join(err, f.Close()))
	r.touch(name)
}

func (r *rig) rename(from, to string) { require.NoError(r.t, os.Rename(r.path(from), r.path(to))) }
func (r *rig) remove(name string)     { require.NoError(r.t, os.Remove(r.path(name))) }

func (r *rig) truncate(name string) {
	require.NoError(r.t, os.Truncate(r.path(name), 0))
	r.touch(name)
}

func (r *rig) copy(from, to string) {
	b, err := os.ReadFile(r.path(from))
	require.NoError(r.t, err)
	r.write(to, string(b))
}

// want checks the lines accepted since the last call.
func (r *rig) want(lines ...string) {
	r.t.Helper()
	if len(lines) == 0 {
		require.Empty(r.t, r.out)
	} else {
		require.Equal(r.t, lines, r.out)
	}
	r.out = nil
}

// sendFunc is a delivery that never joins another.
type sendFunc func(ctx context.Context) error

func (f sendFunc) Send(ctx context.Context) error { return f(ctx) }
func (sendFunc) Join(Delivery) bool               { return false }

func isPermanent(err error) bool { return consumererror.IsPermanent(err) }

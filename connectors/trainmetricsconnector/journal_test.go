package trainmetricsconnector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/trainbridge/trainbridge/extensions/statestorage"
	"github.com/trainbridge/trainbridge/spans"
)

// disk is a storage that outlives a process, with its content after each write.
type disk struct {
	component.Component
	storage.Client

	mu     sync.Mutex
	values map[string][]byte
	synced map[string][]byte   // content after a machine's crash
	states []map[string][]byte // where all is remembered
	all    bool
	err    error
	owes   bool // a failed write is done later all the same
}

func newDisk(values map[string][]byte) *disk { return &disk{values: maps.Clone(values)} }

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (*disk) Close(context.Context) error { return nil }

func (d *disk) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := d.Batch(ctx, op)
	return op.Value, err
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	runtime.Gosched() // callers that do not wait for the write run first
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil && !d.owes {
		return d.err
	}
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = d.values[op.Key]
		case storage.Set:
			if d.values == nil {
				d.values = map[string][]byte{}
			}
			d.values[op.Key] = op.Value
		case storage.Delete:
			delete(d.values, op.Key)
		}
	}
	if d.all {
		d.states = append(d.states, maps.Clone(d.values))
	}
	return d.err
}

func (d *disk) Write(ctx context.Context, ops ...*storage.Operation) error {
	return d.Batch(ctx, ops...)
}

func (d *disk) Sync(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced = maps.Clone(d.values)
	return nil
}

func (d *disk) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// written is the number of writes.
func (d *disk) written() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.states)
}

type diskHost struct {
	component.Host
	ext component.Component
}

func (h diskHost) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{diskID: h.ext}
}

var diskID = component.MustNewID("disk")

// newKept is a connector on a storage, in a process started at the given time.
func newKept(tb testing.TB, d component.Component, clock time.Time, change ...func(*Config)) *bed {
	tb.Helper()
	b := newBed(tb, append(change, func(c *Config) { c.Storage = &diskID })...)
	if !clock.IsZero() {
		b.clock = clock
		b.store = newStore(b.cfg, clock)
	}
	require.NoError(tb, b.open(tb.Context(), diskHost{componenttest.NewNopHost(), d}))
	return b
}

// values drops the exemplars, which are not stored.
func values(of map[string]point) map[string]point {
	for key, p := range of {
		p.exemplars, p.spans = nil, nil
		of[key] = p
	}
	return of
}

// total is the sum of a metric over all series.
func total(of map[string]point, metric string) (n float64) {
	for key, p := range of {
		if strings.Contains(key, "|"+metric+"|") {
			n += p.value + float64(p.count)
		}
	}
	return n
}

// A process killed and restarted at any moment, with spans sent again, emits the same values, starts and ends of series as one that was not killed.
func TestKilledAtAnyMoment(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds /= 20
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 19))
		change := func(c *Config) {
			c.DedupWindow = 1000 * time.Hour
			if seed%4 == 0 {
				tight(c)
			}
		}
		want, d := newBed(t, change), newDisk(nil)
		got := newKept(t, d, want.clock, change)
		kill := func(values map[string][]byte) {
			d = newDisk(values)
			got = newKept(t, d, want.clock, change)
			assert.Zero(t, got.logs.Len(), got.logs.All())
		}
		var unacked []ptrace.Traces
		for step := range 120 {
			switch rng.IntN(6) {
			case 0, 1: // a batch; a kill may come before or after
				td, before := ofEveryKind(rng.IntN(30)), maps.Clone(d.values)
				id := uint64(step) // the same series, different spans
				if rng.IntN(3) > 0 {
					renumber(td, id)
				}
				want.consume(td)
				got.consume(td)
				if rng.IntN(4) == 0 {
					kill(before)
					got.consume(td)
				}
				unacked = append(unacked, td)
			case 2:
				for _, td := range unacked { // sent again
					want.consume(td)
					got.consume(td)
				}
			case 3:
				unacked = nil
			case 4:
				kill(d.values)
			default:
				after := time.Duration(rng.IntN(100)) * time.Second
				at := want.clock.Add(after)
				require.Equal(t, values(want.flushed(after)), values(got.flushed(after)), "seed %d, step %d", seed, step)
				require.Equal(t, at, got.clock)
				if rng.IntN(4) == 0 {
					kill(d.values)
				}
			}
			require.Equal(t, want.store.room, got.store.room)
		}
		kill(d.values)
		require.Equal(t, values(want.flushed(time.Second)), values(got.flushed(time.Second)), "seed %d", seed)
	}
}

// renumber gives spans new ids, in new traces.
func renumber(td ptrace.Traces, n uint64) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				trace := span.TraceID()
				trace[14], trace[15] = byte(n>>8), byte(n)
				span.SetTraceID(trace)
			}
		}
	}
}

// When a call returns, its spans are stored, whichever call wrote them: after a kill at any time, spans not accepted are sent again, and all are counted once.
func TestKilledAmongManyCalls(t *testing.T) {
	const callers, each = 8, 25
	d := newDisk(nil)
	d.all = true
	c := newKept(t, d, time.Time{})
	var mu sync.Mutex
	accepted := map[int]int{} // the number of writes
	var wg sync.WaitGroup
	for g := range 2 * callers {
		wg.Go(func() {
			for i := range each {
				id := g/2*each + i + 1 // two callers share an id: the call without news waits for the write too
				c.consume(one(spans.StageGet, id, 1e6))
				n := d.written()
				mu.Lock()
				if first, ok := accepted[id]; !ok || n < first {
					accepted[id] = n
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	const key = prefix + "tq.stage.duration|[tq.function=rollout tq.stage=get]"
	for k, values := range d.states {
		follower := newKept(t, newDisk(values), time.Time{})
		for id := 1; id <= callers*each; id++ {
			if accepted[id] > k+1 {
				follower.consume(one(spans.StageGet, id, 1e6))
			}
		}
		require.Equal(t, uint64(callers*each), follower.flushed(time.Second)[key].count, "killed after write %d", k+1)
	}
}

// Values that Prometheus has scraped are stored, and survive a crash of the machine.
func TestStoredBeforeItIsSent(t *testing.T) {
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	d.set(errors.New("no space left on device"))
	c.consume(one(spans.StageGet, 1, 1e6))
	d.set(nil)
	var stored map[string][]byte
	c.next, _ = consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		stored = maps.Clone(d.synced)
		c.sent <- md
		return nil
	})
	sent := c.flushed(15 * time.Second)
	require.NotEmpty(t, sent)
	assert.Equal(t, values(sent), values(newKept(t, newDisk(stored), c.clock).flushed(0)))
}

// A failing storage delays nothing, and has everything once the storage recovers.
func TestStorageFails(t *testing.T) {
	t.Run("and forgets", func(t *testing.T) { storageFails(t, newDisk(nil)) })
	t.Run("and owes", func(t *testing.T) {
		d := newDisk(nil)
		d.owes = true
		storageFails(t, d)
	})
}

func storageFails(t *testing.T, d *disk) {
	t.Helper()
	c := newKept(t, d, time.Time{}, func(c *Config) { c.CardinalityLimit = 100_000 })
	all := map[int]ptrace.Traces{}
	for i := range 40 {
		if i == 10 {
			d.set(errors.New("no space left on device"))
		}
		if i == 30 {
			d.set(nil)
		}
		all[i] = ofEveryKind(i)
		c.consume(all[i])
		if i%7 == 0 {
			c.flushed(10 * time.Minute) // series end, too
		}
	}
	m, err := c.tel.GetMetric("otelcol_connector_train_metrics_storage_failures")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value, int64(20))
	require.Equal(t, 1, c.logs.Len())
	assert.Contains(t, c.logs.All()[0].Message, "Storage keeps nothing")

	follower := newKept(t, newDisk(d.values), c.clock, func(c *Config) { c.CardinalityLimit = 100_000 })
	for _, td := range all {
		follower.consume(td)
	}
	assert.Equal(t, values(c.flushed(time.Second)), values(follower.flushed(time.Second)))
	var groups int
	for key := range d.values {
		if strings.HasPrefix(key, "group-") {
			groups++
		}
	}
	held := 0
	for _, r := range c.store.resources {
		held += len(r.groups)
	}
	assert.Equal(t, held, groups)
}

// State of a different version or damaged is not used, and a warning is logged.
func TestStoredStateThatCannotBeUsed(t *testing.T) {
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	c.consume(ofEveryKind(1))
	for name, tt := range map[string]struct {
		key   string
		value []byte
	}{
		"state":             {stateKey, []byte("?")},
		"group cut":         {"group-0", d.values["group-0"][:20]},
		"group and more":    {"group-0", slices.Concat(d.values["group-0"], []byte{0})},
		"a group twice":     {"group-0", d.values["group-1"]},
		"an unknown family": {"group-0", []byte{0, 0, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			other := newDisk(d.values)
			other.values[tt.key] = tt.value
			c := newKept(t, other, time.Time{})
			require.Equal(t, 1, c.logs.Len())
			assert.Contains(t, c.logs.All()[0].Message, "counters begin anew")
			td := ofEveryKind(2)
			c.consume(td)
			want := newBed(t)
			want.consume(td)
			assert.Equal(t, want.flushed(time.Second), c.flushed(time.Second))

			follower := newKept(t, newDisk(other.values), c.clock) // from here on as usual
			assert.Zero(t, follower.logs.Len())
			follower.consume(td)
			assert.Equal(t, values(want.flushed(time.Second)), values(follower.flushed(time.Second)))
		})
	}
}

// Series end as if the process had gone on, unless spans arrive before the first flush.
func TestExpiryWhileDown(t *testing.T) {
	const key = prefix + "tq.stage.duration|[tq.function=rollout tq.stage=get]"
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	c.consume(one(spans.StageGet, 1, 1e6))
	start := c.flushed(15 * time.Second)[key].start
	later := c.clock.Add(time.Hour)

	back := newKept(t, newDisk(d.values), later)
	back.consume(one(spans.StageGet, 2, 1e6))
	p := back.flushed(15 * time.Second)[key]
	assert.Equal(t, uint64(2), p.count)
	assert.Equal(t, start, p.start)

	gone := newKept(t, d, later)
	assert.True(t, gone.flushed(15 * time.Second)[key].ended)
	assert.Empty(t, gone.flushed(15*time.Second))
	assert.NotContains(t, d.values, "group-0")
	gone.consume(one(spans.StageGet, 1, 1e6)) // was counted, an hour ago
	assert.Empty(t, gone.flushed(15*time.Second))
	gone.consume(one(spans.StageGet, 2, 1e6))
	assert.Equal(t, uint64(1), gone.flushed(15 * time.Second)[key].count)
	assert.Contains(t, d.values, "group-0", "the key is used again")
}

// With a lower limit existing series stay, and new ones go to the overflow: sums over all series go on.
func TestLimitLowered(t *testing.T) {
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	for i := range 20 {
		c.consume(ofEveryKind(i))
	}
	before := c.flushed(time.Second)
	follower := newKept(t, newDisk(d.values), c.clock, tight)
	assert.Equal(t, values(before), values(follower.flushed(0)))
	for i := range 40 { // twenty are sent again
		follower.consume(ofEveryKind(i))
	}
	after := follower.flushed(time.Second)
	for _, metric := range []string{"tq.stage.duration", "ml.train.steps", "rpc.client.call.duration", "nccl.collective.duration", "ml.step.time"} {
		assert.InDelta(t, 2*total(before, metric), total(after, metric), 0, metric)
	}
	assert.NotEmpty(t, after["||tq.stage.duration|[otel.metric.overflow=true]"])
	follower.flushed(time.Hour)
	follower.flushed(time.Hour)
	assert.Equal(t, newRoom(follower.cfg.CardinalityLimit, follower.cfg.Histogram.Type), follower.store.room)
}

// Spans sent again after a long time are known, even if backend or Kafka were down longer than the process.
func TestNothingComesForLong(t *testing.T) {
	d := newDisk(nil)
	td := ofEveryKind(1)
	c := newKept(t, d, time.Time{})
	c.consume(td)
	want := values(c.flushed(time.Second))
	follower := newKept(t, newDisk(d.values), c.clock, func(c *Config) { c.MetricsExpiration = 0 })
	follower.flushed(time.Hour)
	follower.consume(td)
	got := values(follower.flushed(time.Second))
	for key, p := range want {
		assert.Equal(t, p.count, got[key].count, key)
		assert.InDelta(t, p.value, got[key].value, 0, key)
	}
}

// Restored counts are also sent with the other type of histograms.
func TestOtherHistograms(t *testing.T) {
	d := newDisk(nil)
	newKept(t, d, time.Time{}).consume(ofEveryKind(1))
	want := newBed(t, withBuckets)
	want.consume(ofEveryKind(1))
	got := newKept(t, d, want.clock, withBuckets).flushed(time.Second)
	for key, p := range want.flushed(time.Second) {
		assert.Equal(t, p.bounds, got[key].bounds, key)
		assert.Equal(t, p.buckets, got[key].buckets, key)
	}
}

// Ids of an unusable state are in no value, and are not restored later either.
func TestNoIDsOfAnotherState(t *testing.T) {
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	for i := range mostParts + 1 { // a chunk is stored as a whole
		c.consume(ofEveryKind(i))
	}
	require.Contains(t, d.values, chunkKey(0))
	d.values[stateKey] = []byte("?")
	follower := newKept(t, d, c.clock)
	follower.consume(ofEveryKind(1000))
	again, want := newKept(t, d, c.clock), newBed(t)
	again.consume(ofEveryKind(0))
	want.consume(ofEveryKind(1000))
	want.consume(ofEveryKind(0))
	const metric = "tq.stage.duration"
	assert.InDelta(t, total(want.flushed(time.Second), metric), total(again.flushed(time.Second), metric), 0)
}

// However many and however small the batches: the last ids are known, and the storage stays small.
func TestStoredIDsAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 19))
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	const known = (chunks - 1) * chunkIDs
	id := uint64(0)
	for id < 2*known {
		for range rng.IntN(1 << rng.IntN(16)) {
			id++
			c.store.journal.note(id)
		}
		c.save(t.Context())
	}
	size := 0
	for _, value := range d.values {
		size += len(value)
	}
	assert.Less(t, size, 16*known)
	assert.LessOrEqual(t, len(d.values), chunks+mostParts+1)
	follower := newKept(t, d, time.Time{})
	for n := id; n > id-known; n-- {
		require.True(t, follower.store.seen.Has(n), "%d of %d", n, id)
	}
	assert.Zero(t, follower.store.seen.Early)
}

// Later versions read a stored state: a change of its form must raise storedForm.
func TestStoredForm(t *testing.T) {
	d := newDisk(nil)
	c := newKept(t, d, time.Time{}, tight)
	c.consume(ofEveryKind(1))
	c.consume(ofEveryKind(2))
	h := xxh3.New()
	for _, key := range slices.Sorted(maps.Keys(d.values)) {
		_, _ = fmt.Fprintf(h, "%s %x\n", key, d.values[key])
	}
	assert.Equal(t, "form 6: f9b2dd1ee2db9de2", fmt.Sprintf("form %d: %x", storedForm, h.Sum64()))
}

func TestStorageIsMissing(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Storage = &diskID })
	require.ErrorContains(t, b.Start(t.Context(), componenttest.NewNopHost()), `'storage': extension "disk" is not configured`)
	require.NoError(t, b.Shutdown(t.Context()))
}

// FuzzRestore takes back anything, and counts on.
func FuzzRestore(f *testing.F) {
	d := newDisk(nil)
	c := newKept(f, d, time.Time{})
	c.consume(ofEveryKind(1))
	for _, key := range slices.Sorted(maps.Keys(d.values)) {
		f.Add(key, d.values[key])
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		other := newDisk(d.values)
		other.values[key] = value
		c := newKept(t, other, time.Time{})
		c.consume(ofEveryKind(1))
		c.consume(ofEveryKind(2))
		c.flushed(time.Second)
	})
}

// BenchmarkStored is BenchmarkTrainMetrics with a storage on the disk.
func BenchmarkStored(b *testing.B) {
	factory := statestorage.NewFactory()
	ext, err := factory.Create(b.Context(), extensiontest.NewNopSettings(factory.Type()), &statestorage.Config{Directory: b.TempDir()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, ext.Shutdown(context.Background())) })
	for name, td := range map[string]ptrace.Traces{"tq": benchBatch(), "steps": benchSteps(), "collectives": benchCollectives(4, 0)} {
		b.Run(name, func(b *testing.B) {
			c := newKept(b, ext, time.Time{})
			bench(b, c, withKinds(td))
			require.NoError(b, c.storage.Close(b.Context()))
		})
	}
}

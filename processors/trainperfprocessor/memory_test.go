package trainperfprocessor

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"

	"github.com/trainbridge/trainbridge/extensions/statestorage"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

// host has a storage.
type host struct {
	id component.ID
	storage.Extension
}

func (h host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{h.id: h.Extension}
}

// stateIn is the storage in a directory.
func stateIn(tb testing.TB, dir string) host {
	tb.Helper()
	f := statestorage.NewFactory()
	cfg := f.CreateDefaultConfig().(*statestorage.Config)
	cfg.Directory = dir
	ext, err := f.Create(tb.Context(), extensiontest.NewNopSettings(f.Type()), cfg)
	require.NoError(tb, err)
	require.NoError(tb, ext.Start(tb.Context(), nil))
	tb.Cleanup(func() { _ = ext.Shutdown(context.Background()) })
	return host{component.NewID(f.Type()), ext.(storage.Extension)}
}

// calls are TransferQueue functions, some of them slow in TransferQueue.
func calls(from, to int) ptrace.Traces {
	b := spans.NewBatch("test", "")
	for i := from; i < to; i++ {
		get := int64(420)
		if i%7 == 0 {
			get = 10
		}
		perftest.AddFunction(b, 10*i+10, "rollout", perftest.Base+int64(i)*1e9, 1000, perftest.Stage{Name: "get", To: get}, perftest.Stage{Name: "compute", From: get, To: 1000})
	}
	return b.Traces()
}

func judgedBy(t *testing.T, p *trainPerf, td ptrace.Traces) ptrace.Traces {
	t.Helper()
	out, err := p.processTraces(t.Context(), td)
	require.NoError(t, err)
	return out
}

// After a crash, calls sent again get the same verdicts if these were stored; without storage their verdicts differ.
func TestVerdictsAfterACrash(t *testing.T) {
	for name, keeps := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			start := func(h host) *trainPerf {
				p, _ := newTest(t)
				if keeps {
					p.cfg.Storage = &h.id
				}
				openMemory(t, p, h)
				return p
			}
			h := stateIn(t, dir)
			first := start(h)
			judgedBy(t, first, calls(0, 50))
			want := judgedBy(t, first, calls(50, 150))
			require.NoError(t, first.stop(t.Context()))
			require.NoError(t, h.Shutdown(t.Context()))

			second := start(stateIn(t, dir))
			got := judgedBy(t, second, calls(50, 150))
			if err := ptracetest.CompareTraces(want, got); keeps {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
			require.NoError(t, second.stop(t.Context()))
		})
	}
}

// openMemory gives a running instance the storage that its config names.
func openMemory(tb testing.TB, p *trainPerf, h host) {
	tb.Helper()
	p.memory = newMemory()
	require.NoError(tb, p.memory.Open(tb.Context(), h, p.cfg.Storage, component.KindProcessor, component.MustNewID("train_perf"), p.logger))
}

// disk is a storage that may be full.
type disk struct {
	storage.Extension
	storage.Client
	full bool
}

func (d *disk) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	client, err := d.Extension.GetClient(ctx, kind, id, name)
	d.Client = client
	return d, err
}

func (d *disk) Start(ctx context.Context, h component.Host) error { return d.Extension.Start(ctx, h) }

func (d *disk) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if d.full {
		return errors.New("no space left on device")
	}
	return d.Client.Batch(ctx, ops...)
}

// A failing storage blocks nothing and is logged once. Unstored verdicts are stored as soon as the storage works again.
func TestStorageFails(t *testing.T) {
	p, logs := newTest(t)
	h := stateIn(t, t.TempDir())
	d := &disk{Extension: h.Extension, full: true}
	p.cfg.Storage = &h.id
	openMemory(t, p, host{h.id, d})
	judgedBy(t, p, calls(0, 5))
	judgedBy(t, p, calls(5, 10))
	assert.Equal(t, 1, logs.Len())
	d.full = false
	judgedBy(t, p, calls(10, 11))
	require.NoError(t, p.stop(t.Context()))

	good, err := h.GetClient(t.Context(), component.KindProcessor, component.MustNewID("train_perf"), "verdicts")
	require.NoError(t, err)
	next := newMemory()
	said, err := next.Ring.Restore(t.Context(), good)
	require.NoError(t, err)
	assert.Equal(t, 11, next.verdicts.Restore(said))
	require.NoError(t, good.Close(t.Context()))
}

// cpu is the CPU time of the process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStored: a thousand functions with their stages, judged with and without storage of the verdicts.
func BenchmarkStored(b *testing.B) {
	for name, keeps := range map[string]bool{"stored": true, "not stored": false} {
		b.Run(name, func(b *testing.B) {
			p, _ := newTest(b)
			if keeps {
				h := stateIn(b, b.TempDir())
				p.cfg.Storage = &h.id
				openMemory(b, p, h)
			}
			n, used := 0, time.Duration(0)
			for b.Loop() {
				td := calls(n, n+1000)
				n += 1000
				from := cpu(b)
				if _, err := p.processTraces(b.Context(), td); err != nil {
					b.Fatal(err)
				}
				used += cpu(b) - from
			}
			b.ReportMetric(float64(used.Nanoseconds())/float64(n), "cpu-ns/call")
		})
	}
}

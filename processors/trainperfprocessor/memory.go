package trainperfprocessor

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
)

// memory is what was said of the spans that were judged last, also by the last process. The instances of one component share it. See docs/adr/0017.
type memory struct {
	verdict.Memory

	mu      sync.Mutex // of a write, and of what follows
	users   int
	store   storage.Client // nil: none is configured
	ring    storageclient.Ring
	failing bool // that was said
}

func newMemory() *memory { return &memory{ring: storageclient.Ring{Keep: verdict.Remembered}} }

// open takes back what the last process has said. The first instance does so.
func (m *memory) open(ctx context.Context, host component.Host, id *component.ID, of component.ID, log *zap.Logger) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users++; id == nil || m.users > 1 {
		return nil
	}
	store, err := storageclient.Open(ctx, host, id, component.KindProcessor, of, "verdicts")
	if err != nil {
		m.users--
		return err
	}
	said, err := m.ring.Restore(ctx, store)
	if err != nil {
		log.Warn("What the last process has said of spans cannot be used: what is read again may get other verdicts", zap.Error(err))
	}
	m.Restore(said)
	m.store = store
	return nil
}

// close lets go of the storage. The last instance does so.
func (m *memory) close(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		return nil // it was not started
	}
	if m.users--; m.users > 0 || m.store == nil {
		return nil
	}
	err := m.store.Close(ctx)
	m.store = nil
	return err
}

// save stores what was said, before it is sent on. A storage that fails holds up nothing.
func (m *memory) save(ctx context.Context, log *zap.Logger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said, n := m.Fresh()
	if n == 0 || m.store == nil {
		return
	}
	err := m.ring.Add(context.WithoutCancel(ctx), m.store, said, n)
	if err == nil {
		m.failing = false
		return
	}
	m.Stale(said, n)
	if !m.failing {
		m.failing = true
		log.Warn("Storage keeps nothing: spans that are sent again after a crash before it does may get other verdicts", zap.Error(err))
	}
}

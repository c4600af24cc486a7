package storageclient

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// Answers are what a component said of spans that may come again after a crash, and then have to be told the same. See docs/adr/0017.
type Answers interface {
	// Fresh is what was said since the last call, to be stored: n answers.
	Fresh() (b []byte, n int)
	// Restore takes what Fresh gave, as far as it makes sense. It returns how many answers are known by it.
	Restore(b []byte) (n int)
}

// Memory stores answers, also for the process that follows. The instances of a component may share it. With Of, Purpose and Ring.Keep the zero value is ready.
type Memory struct {
	Of      Answers
	Purpose string // of its storage
	Ring    Ring

	mu      sync.Mutex // of a write, and of what follows
	users   int
	store   storage.Client // nil: none is configured
	failing bool           // that was said
	unsaved []byte         // what could not be stored
	n       int            // answers in it
}

// Open takes back what the last process has said. The first instance does so. Without an id nothing is stored.
func (m *Memory) Open(ctx context.Context, host component.Host, id *component.ID, kind component.Kind, of component.ID, log *zap.Logger) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users++; id == nil || m.users > 1 {
		return nil
	}
	store, err := Open(ctx, host, id, kind, of, m.Purpose)
	if err != nil {
		m.users--
		return err
	}
	said, err := m.Ring.Restore(ctx, store)
	if err != nil {
		log.Warn("What the last process has said of spans cannot be used: what is read again may get other "+m.Purpose, zap.Error(err))
	}
	m.Of.Restore(said)
	m.store = store
	return nil
}

// Close lets go of the storage. The last instance does so.
func (m *Memory) Close(ctx context.Context) error {
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

// Save stores what was said, before it is sent on. A storage that fails holds up nothing: what it did not take is stored with what is said next, as long as
// Ring.Keep has room for all.
func (m *Memory) Save(ctx context.Context, log *zap.Logger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said, n := m.Of.Fresh()
	if m.n > 0 {
		said, n = append(m.unsaved, said...), m.n+n
		m.unsaved, m.n = nil, 0
	}
	if n == 0 || m.store == nil {
		return
	}
	err := m.Ring.Add(context.WithoutCancel(ctx), m.store, said, n)
	if err == nil {
		m.failing = false
		return
	}
	if n <= m.Ring.Keep {
		m.unsaved, m.n = said, n
	}
	if !m.failing {
		m.failing = true
		log.Warn("Storage keeps nothing: spans that are sent again after a crash before it does may get other "+m.Purpose, zap.Error(err))
	}
}

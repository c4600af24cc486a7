package storageclient

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// Answers are a component's answers about spans that may come again after a crash, and then must get the same answers. See docs/reference/adr/0017.
type Answers interface {
	// Fresh returns the n answers since the last call, to be stored.
	Fresh() (b []byte, n int)
	// Restore reads the output of Fresh, as far as valid, and returns the number of restored answers.
	Restore(b []byte) (n int)
}

// Memory stores answers for the next process. The instances of a component may share a Memory. With Of, Purpose and Ring.Keep set, the zero value is ready.
type Memory struct {
	Of      Answers
	Purpose string // of the storage
	Ring    Ring

	mu      sync.Mutex // held during a write
	users   int
	store   storage.Client // nil: none is configured
	failing bool           // was logged
	unsaved []byte         // answers that could not be stored
	n       int            // answers in unsaved
}

// Open opens the storage with the given id for a component of the given kind and id (of), and restores the answers of the last process. Only the first instance
// does; all others share the Memory. Without an id nothing is stored.
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

// Close is called by each instance of the component; the last one closes the storage.
func (m *Memory) Close(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		return nil // not started
	}
	if m.users--; m.users > 0 || m.store == nil {
		return nil
	}
	err := m.store.Close(ctx)
	m.store = nil
	return err
}

// Save stores the new answers, before the spans are sent. A failing storage does not block: unsaved answers are stored with the next ones, as long as Ring.Keep
// has room for all.
func (m *Memory) Save(ctx context.Context, log *zap.Logger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said, n := m.Of.Fresh()
	if m.n > 0 { // with those of failed calls before them
		said, n = append(m.unsaved, said...), m.n+n
		m.unsaved, m.n = nil, 0
	}
	if n == 0 || m.store == nil {
		return
	}
	err := m.Ring.Add(context.WithoutCancel(ctx), m.store, said, n) // the spans are sent on also where the caller has given up
	if err == nil {
		m.failing = false
		return
	}
	if n <= m.Ring.Keep { // else they are dropped: the ring has no room for more
		m.unsaved, m.n = said, n
	}
	if !m.failing { // once until the storage works again
		m.failing = true
		log.Warn("Storage keeps nothing: spans that are sent again after a crash before it does may get other "+m.Purpose, zap.Error(err))
	}
}

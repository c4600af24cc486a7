package statestorage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/storageclient"
)

const (
	checkEvery  = 2 * time.Second
	maxOpenings = 10  // tries to open a file whose directory is deleted meanwhile
	maxFileName = 200 // bytes; leaves room for the suffix of a file set aside
)

var (
	_ storage.Extension    = (*stateStorage)(nil)
	_ storageclient.Behind = (*client)(nil)
)

// stateStorage is the state_storage extension: a locked directory, and a client with a file in it for each component.
type stateStorage struct {
	dir  string // absolute
	log  *zap.Logger
	done chan struct{} // closed by Shutdown
	loop sync.WaitGroup

	// The system's calls, replaced by tests.
	fsync   func(*os.File) error
	writeAt func(f *os.File, b []byte, at int64) (int, error)

	mu      sync.Mutex         // locked before the mu of a client
	lock    *os.File           // open while the directory is locked; nil before
	clients map[string]*client // by path
	failing bool               // the last check failed, and was logged
	closed  bool
}

// newStateStorage is an extension whose directory is not locked yet.
func newStateStorage(cfg *Config, log *zap.Logger) (extension.Extension, error) {
	dir, err := filepath.Abs(cfg.Directory)
	if err != nil {
		return nil, fmt.Errorf("'directory': %w", err)
	}
	return &stateStorage{dir: dir, log: log, done: make(chan struct{}), fsync: (*os.File).Sync, writeAt: (*os.File).WriteAt, clients: map[string]*client{}}, nil
}

// Directory is where the files are.
func (e *stateStorage) Directory() string { return e.dir }

// Start locks the directory, or fails if another collector holds the lock.
func (e *stateStorage) Start(context.Context, component.Host) error {
	if err := e.own(); err != nil {
		return err
	}
	e.loop.Go(e.watch)
	return nil
}

// Shutdown closes the open files, and unlocks the directory.
func (e *stateStorage) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.done)
	}
	e.mu.Unlock()
	e.loop.Wait()
	var errs []error
	for _, c := range e.all() {
		errs = append(errs, c.Close(ctx))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
		e.lock = nil
	}
	return errors.Join(errs...)
}

// GetClient opens the storage of a component; name distinguishes the storages of one component.
func (e *stateStorage) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (c storage.Client, err error) {
	path := filepath.Join(e.dir, fileName(kind, id, name))
	for range maxOpenings {
		c, err = e.open(path)
		if !errors.Is(err, fs.ErrNotExist) {
			break // else the directory was deleted meanwhile
		}
	}
	return c, err
}

// open opens the file of a component, which must not be open. fs.ErrNotExist: the directory was deleted between its lock and the opening.
func (e *stateStorage) open(path string) (storage.Client, error) {
	if err := e.own(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clients[path] != nil {
		return nil, fmt.Errorf("%s is open already", path)
	}
	c, err := openClient(e, path)
	if err != nil {
		if c != nil && c.file != nil {
			err = errors.Join(err, c.file.Close())
		}
		return nil, err
	}
	e.clients[path] = c
	return c, nil
}

// fileName is the name of a component's file, "receiver.tq_trace%2F2.positions.state"; of a long name, the beginning and a hash.
func fileName(kind component.Kind, id component.ID, name string) string {
	file := url.PathEscape(strings.ToLower(kind.String()) + "." + id.String() + "." + name)
	if len(file) > maxFileName {
		file = file[:maxFileName] + strconv.FormatUint(xxh3.HashString(file), 16)
	}
	return file + ".state"
}

// own ensures that the directory exists and is locked by this collector. A directory that was deleted or replaced while the collector runs is made and locked
// again, and the files missing in it are written from memory. Called by Start, at each opening, before each Batch, and by check.
func (e *stateStorage) own() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	path := filepath.Join(e.dir, lockName)
	if e.lock != nil {
		if _, same := isAt(e.lock, path); same {
			return nil
		}
	}
	if err := os.MkdirAll(e.dir, 0o750); err != nil {
		return fmt.Errorf("'directory': %w", err)
	}
	f, err := lockFile(path)
	if errors.Is(err, errInUse) {
		return fmt.Errorf("'directory': %s %w: stop that one, or give this one a directory of its own", e.dir, err)
	}
	if err != nil {
		return fmt.Errorf("'directory': cannot be locked: %w", err)
	}
	if e.lock == nil {
		e.lock = f
		return nil
	}
	_ = e.lock.Close()
	e.lock = f
	e.log.Warn(
		"The state directory was deleted or replaced while the collector runs; it is made again, with the state from memory", zap.String("directory", e.dir),
	)
	var errs []error
	for _, c := range e.clients {
		c.mu.Lock()
		if at, _ := isAt(c.file, c.path); at == nil {
			errs = append(errs, c.rewrite())
		}
		c.mu.Unlock()
	}
	return errors.Join(errs...)
}

// syncDir waits until the directory entries are on disk.
func (e *stateStorage) syncDir() error {
	d, err := os.Open(e.dir)
	if err != nil {
		return err
	}
	return errors.Join(e.fsync(d), d.Close())
}

// sync waits until all writes of all components are on disk.
func (e *stateStorage) sync() (err error) {
	for _, c := range e.all() {
		err = errors.Join(err, c.sync())
	}
	return err
}

// watch checks the directory and syncs pending writes every checkEvery, also while nothing is stored: otherwise the loss of a file would be noticed only after
// a crash. The goroutine ends with Shutdown.
func (e *stateStorage) watch() {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.done:
			return
		case <-tick.C:
			e.check()
		}
	}
}

// check ensures that the directory is ours, that each client's file is there with all values, and that all is on disk. A problem is logged once, and its end
// once.
func (e *stateStorage) check() {
	err := e.own()
	if err == nil {
		for _, c := range e.all() {
			c.mu.Lock()
			if !c.closed {
				err = errors.Join(err, c.ready())
			}
			c.mu.Unlock()
		}
		err = errors.Join(err, e.sync())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	switch {
	case err != nil && !e.failing:
		e.log.Warn("State cannot be stored; a crash now would read and send again what came since", zap.String("directory", e.dir), zap.Error(err))
	case err == nil && e.failing:
		e.log.Info("State is stored again", zap.String("directory", e.dir))
	}
	e.failing = err != nil
}

// all are the open clients; their own locks are taken without e.mu.
func (e *stateStorage) all() []*client {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.clients))
}

// forget lets the file of a client be opened again.
func (e *stateStorage) forget(c *client) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clients[c.path] == c {
		delete(e.clients, c.path)
	}
}

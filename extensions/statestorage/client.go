package statestorage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// spare is the size allowed to a file beyond four times the bytes in use, before the file is rewritten.
const spare = 1 << 20

var errClosed = errors.New("the storage is closed")

// client is the storage of one component: an append-only file of batches, and their result in memory.
type client struct {
	ext  *stateStorage
	path string

	mu     sync.Mutex
	file   *os.File
	size   int64             // of the file; another size was not made by us
	values map[string][]byte // never changed in place
	used   int64             // bytes of all keys and values: a file much larger is rewritten
	owed   map[string]bool   // keys whose values are not yet in the file: a Write failed
	dirty  bool              // something may not be on the disk yet
	lost   bool              // fsync failed: the kernel may have dropped dirty pages, and reports success afterwards
	closed bool
}

// openClient reads the state stored at a path. What can be read of a file is used: one that ends in the middle of a batch, as after a crash, is rewritten, any
// other fault sets the file aside first. Beside an error, the client may have an open file, to be closed.
func openClient(ext *stateStorage, path string) (*client, error) {
	c := &client{ext: ext, path: path, values: map[string][]byte{}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, c.rewrite()
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		if err := c.setAside(errFormat); err != nil {
			return nil, err
		}
		return c, c.rewrite()
	}
	c.file, err = os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	c.size, err = readLog(c.file, info.Size(), c.apply)
	if err == nil {
		return c, nil
	}
	if errors.Is(err, errTorn) {
		ext.log.Warn("The last of the state was not written to its end; what was stored before is used, and what is read again has the same ids",
			zap.String("path", path), zap.Int64("lost_bytes", info.Size()-c.size))
	} else if err := c.setAside(err); err != nil {
		return nil, errors.Join(err, c.file.Close())
	}
	if err := c.rewrite(); err != nil {
		return nil, errors.Join(err, c.file.Close())
	}
	return c, nil
}

// setAside renames the file at the path, for a person to look at, and makes room for a new file.
func (c *client) setAside(why error) error {
	aside := c.path + time.Now().UTC().Format(".20060102T150405.000Z")
	if err := os.Rename(c.path, aside); err != nil {
		return fmt.Errorf("a state that cannot be used (%w) cannot be set aside, remove it: %w", why, err)
	}
	c.ext.log.Warn("A state that cannot be used is set aside; what could be read of it is used, the rest is begun anew, and what is read again has the same ids",
		zap.String("path", c.path), zap.String("set_aside", aside), zap.Int64("used_bytes", c.size), zap.Error(why))
	return nil
}

// ready ensures that the path names the open file, with all values, owed ones included. A file that is gone, is another one, has a size that we did not make,
// or may have lost pages is written anew from memory; another file at the path is set aside before.
func (c *client) ready() error {
	at, same := isAt(c.file, c.path)
	whole := same && at.Size() == c.size
	if whole && !c.lost {
		return c.pay()
	}
	if at != nil && !same {
		if err := c.setAside(errors.New("it took the place of the state while the collector runs")); err != nil {
			return err
		}
	}
	if err := c.rewrite(); err != nil {
		return err
	}
	if !whole {
		c.ext.log.Warn("A state file was deleted or changed while the collector runs; it is written anew from memory", zap.String("path", c.path))
	}
	return nil
}

// rewrite puts a new file with nothing but the present values at the path, on disk: written beside and renamed, so that a crash leaves the old file or the new.
func (c *client) rewrite() error {
	ops := make([]*storage.Operation, 0, len(c.values))
	for key, value := range c.values {
		ops = append(ops, storage.SetOperation(key, value))
	}
	b := appendBatch([]byte(logHeader), ops)
	next := c.path + ".new"
	_ = os.Remove(next) // left by a crash
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = c.ext.writeAt(f, b, 0)
	if err == nil {
		err = c.ext.fsync(f)
	}
	if err == nil {
		err = os.Rename(next, c.path)
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(next)
		return err
	}
	if c.file != nil {
		_ = c.file.Close() // the old file is not needed any more
	}
	c.file, c.size, c.owed = f, int64(len(b)), nil
	err = c.ext.syncDir()
	c.dirty, c.lost = err != nil, err != nil // without its directory entry on disk the file does not exist either
	return err
}

// apply changes the values in memory as the operations say, and answers gets by setting their Value.
func (c *client) apply(ops []*storage.Operation) {
	for _, op := range ops {
		old, ok := c.values[op.Key]
		switch op.Type {
		case storage.Get:
			op.Value = slices.Clone(old)
			continue
		case storage.Set:
			c.values[op.Key] = append([]byte{}, op.Value...)
			c.used += int64(len(op.Key) + len(op.Value))
		case storage.Delete:
			delete(c.values, op.Key)
		}
		if ok {
			c.used -= int64(len(op.Key) + len(old))
		}
	}
}

// Batch does all operations, in order, or none. Their changes are on disk when Batch returns, after all earlier writes of any component: a position in a file
// is never ahead of the counts up to it.
func (c *client) Batch(_ context.Context, ops ...*storage.Operation) error { return c.batch(ops, true) }

// Write is a Batch without waiting for the disk: its changes survive the death of the process, but not always of the machine. If the disk fails, the changes
// are made in memory, and owed to the disk: each Batch and Sync of any component first writes the owed values, or fails.
func (c *client) Write(_ context.Context, ops ...*storage.Operation) error {
	return c.batch(ops, false)
}

// Sync waits until all writes of all components are on disk.
func (c *client) Sync(context.Context) error { return c.ext.sync() }

// batch is Batch (now) or Write (not now). Values change in memory once they are in the file, by a Write in any case. A file with too many outdated bytes is
// rewritten.
func (c *client) batch(ops []*storage.Operation, now bool) (err error) {
	b := appendBatch(nil, ops)
	if len(b) > 0 && now {
		// Before the lock of this client: sync takes the locks of all.
		if err = c.ext.own(); err == nil {
			err = c.ext.sync()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	if err == nil && len(b) > 0 {
		err = c.append(b, now)
	}
	if err != nil && now {
		return err
	}
	if err != nil {
		c.owe(ops)
	}
	c.apply(ops)
	if err == nil && c.size > 4*c.used+spare {
		_ = c.rewrite() // the next batch tries again
	}
	return err
}

// append writes a batch to the file; now: onto the disk. Whether the file is still there is asked before something counts as stored: here, or by sync.
func (c *client) append(b []byte, now bool) error {
	if now || c.lost || len(c.owed) > 0 {
		if err := c.ready(); err != nil {
			return err
		}
	}
	return c.put(b, now)
}

// put writes a batch behind the others; after an error the file is as before.
func (c *client) put(b []byte, now bool) error {
	_, err := c.ext.writeAt(c.file, b, c.size)
	if err == nil && now {
		err = c.fsync()
	}
	if err != nil {
		_ = c.file.Truncate(c.size) // if this fails too, the size shows next time that the file has changed
		return err
	}
	c.size, c.dirty = c.size+int64(len(b)), !now
	return nil
}

// owe notes the keys of operations that are not in the file.
func (c *client) owe(ops []*storage.Operation) {
	if c.owed == nil {
		c.owed = map[string]bool{}
	}
	for _, op := range ops {
		if op.Type != storage.Get {
			c.owed[op.Key] = true
		}
	}
}

// pay writes the owed values, in one batch.
func (c *client) pay() error {
	if len(c.owed) == 0 {
		return nil
	}
	ops := make([]*storage.Operation, 0, len(c.owed))
	for key := range c.owed {
		if value, ok := c.values[key]; ok {
			ops = append(ops, storage.SetOperation(key, value))
		} else {
			ops = append(ops, storage.DeleteOperation(key))
		}
	}
	if err := c.put(appendBatch(nil, ops), false); err != nil {
		return err
	}
	c.owed = nil
	return nil
}

// sync waits until the writes are on disk.
func (c *client) sync() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	return c.settle()
}

// settle is sync with c.mu held: owed values are written, and the file is synced, or rewritten if the sync fails.
func (c *client) settle() error {
	if len(c.owed) > 0 || c.dirty {
		if err := c.ready(); err != nil {
			return err
		}
	}
	if !c.dirty {
		return nil
	}
	if c.fsync() != nil {
		return c.rewrite()
	}
	c.dirty = false
	return nil
}

// fsync syncs the file; after an error the file counts as lost.
func (c *client) fsync() error {
	err := c.ext.fsync(c.file)
	c.lost = c.lost || err != nil
	return err
}

// Get returns the value stored with the key, nil if none.
func (c *client) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := c.Batch(ctx, op)
	return op.Value, err
}

// Set stores a value with the key.
func (c *client) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

// Delete forgets the value stored with the key.
func (c *client) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

// Close closes the file, once everything is on disk.
func (c *client) Close(context.Context) error {
	c.ext.forget(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.settle() // settle may have replaced the file
	return errors.Join(err, c.file.Close())
}

package statestorage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// spare is how many outdated bytes a file may have, beyond four times the bytes in use, before it is written anew.
const spare = 1 << 20

var errClosed = errors.New("the storage is closed")

// client is the storage of one component: a file that batches are appended to, and their result in memory.
type client struct {
	ext  *stateStorage
	path string

	mu     sync.Mutex
	file   *os.File
	size   int64             // of the file; another size was not made by us
	values map[string][]byte // never changed in place
	used   int64             // bytes of the log that values need
	closed bool
}

// openClient reads the stored state. A file that cannot be used is set aside.
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
	if c.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
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

// setAside renames whatever stands at the path.
func (c *client) setAside(why error) error {
	aside := c.path + time.Now().UTC().Format(".20060102T150405.000Z")
	if err := os.Rename(c.path, aside); err != nil {
		return fmt.Errorf("a state that cannot be used (%w) cannot be set aside, remove it: %w", why, err)
	}
	c.ext.log.Warn("A state that cannot be used is set aside; what could be read of it is used, the rest is begun anew, and what is read again has the same ids",
		zap.String("path", c.path), zap.String("set_aside", aside), zap.Int64("used_bytes", c.size), zap.Error(why))
	return nil
}

// ready sees to it that the path names the file, with all that was stored.
func (c *client) ready() error {
	at, same := isAt(c.file, c.path)
	if same && at.Size() == c.size {
		return nil
	}
	if at != nil && !same {
		if err := c.setAside(errors.New("it took the place of the state while the collector runs")); err != nil {
			return err
		}
	}
	if err := c.rewrite(); err != nil {
		return err
	}
	c.ext.log.Warn("A state file was deleted or changed while the collector runs; it is written anew from memory", zap.String("path", c.path))
	return nil
}

// rewrite puts a file with nothing but the values at the path.
func (c *client) rewrite() error {
	ops := make([]*storage.Operation, 0, len(c.values))
	for key, value := range c.values {
		ops = append(ops, storage.SetOperation(key, value))
	}
	b := appendBatch([]byte(logHeader), ops)
	next := c.path + ".new"
	_ = os.Remove(next) // the file that a crash left
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = writeAt(f, b, 0); err == nil {
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
	c.file, c.size = f, int64(len(b))
	return syncDir(filepath.Dir(c.path))
}

func writeAt(f *os.File, b []byte, at int64) error {
	if _, err := f.WriteAt(b, at); err != nil {
		return err
	}
	return f.Sync()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// apply changes the values as the operations say, and answers gets.
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

// Batch does all of the operations, in order, or none of them. Their changes are on the disk when Batch returns.
func (c *client) Batch(_ context.Context, ops ...*storage.Operation) error {
	b := appendBatch(nil, ops)
	if len(b) > 0 {
		if err := c.ext.own(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	if len(b) > 0 {
		if err := c.append(b); err != nil {
			return err
		}
	}
	c.apply(ops)
	if c.size > 4*c.used+spare {
		_ = c.rewrite() // the next batch tries again
	}
	return nil
}

func (c *client) append(b []byte) error {
	if err := c.ready(); err != nil {
		return err
	}
	if err := writeAt(c.file, b, c.size); err != nil {
		_ = c.file.Truncate(c.size) // else the size says next time that the file is not as it was
		return err
	}
	c.size += int64(len(b))
	return nil
}

// Get returns the value stored with the key, nil if there is none.
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

// Close lets go of the file.
func (c *client) Close(context.Context) error {
	c.ext.forget(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.file.Close()
}

// Package storageclient opens the storage named by a component's setting 'storage', and keeps the newest records of a component there.
package storageclient

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Open opens the storage of a component, for one of its purposes. Without an id the storage keeps nothing. An error names the key and, for an id of no
// storage, the fix.
func Open(ctx context.Context, host component.Host, id *component.ID, kind component.Kind, of component.ID, purpose string) (storage.Client, error) {
	if id == nil {
		return storage.NewNopClient(), nil
	}
	ext, ok := host.GetExtensions()[*id]
	if !ok {
		return nil, fmt.Errorf("'storage': extension %q is not configured: add it under 'extensions' and to 'service::extensions'", id)
	}
	se, ok := ext.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("'storage': extension %q is not a storage extension: use one such as state_storage", id)
	}
	c, err := se.GetClient(ctx, kind, of, purpose)
	if err != nil {
		return nil, fmt.Errorf("'storage': %w", err)
	}
	return c, nil
}

// Behind is a storage that can leave the time of writing to disk to the system.
type Behind interface {
	// Write is Batch, but safe only against the death of the process: if the machine dies, writes since the last Batch or Sync may be lost, the latest first. A
	// Batch of any component brings all earlier writes to the disk. After a failed Write the storage keeps the changes in memory, still unwritten: until they are
	// on disk, each Batch and Sync of any component fails. Repeating the same Write does no harm.
	Write(ctx context.Context, ops ...*storage.Operation) error
	// Sync brings all writes to the disk.
	Sync(ctx context.Context) error
}

// Write is for writes with each batch of spans, where Batch would wait for the disk each time. A storage without Behind does a Batch.
func Write(ctx context.Context, c storage.Client, ops ...*storage.Operation) error {
	if b, ok := c.(Behind); ok {
		return b.Write(ctx, ops...)
	}
	return c.Batch(ctx, ops...)
}

// Sync brings all writes to the disk.
func Sync(ctx context.Context, c storage.Client) error {
	if b, ok := c.(Behind); ok {
		return b.Sync(ctx)
	}
	return nil
}

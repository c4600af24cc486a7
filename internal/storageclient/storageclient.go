// Package storageclient opens the storage that a component's setting 'storage' names.
package storageclient

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Open opens the storage of a component, for one of its purposes. Without an id it keeps nothing. An error names the key and the fix.
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

// Behind is a storage that can leave it to the system when what is written comes to the disk.
type Behind interface {
	// Write does what Batch does, but only a process that dies loses nothing by it: where the machine dies, what was written since the last Batch or Sync may be
	// lost, the last of it first. A Batch of any component brings to the disk what all have written before. Where Write fails the storage keeps the changes in
	// memory, and owes them to the disk: until they are there, each Batch and Sync of any component fails. To write the same once more does no harm.
	Write(ctx context.Context, ops ...*storage.Operation) error
	// Sync brings what was written to the disk.
	Sync(ctx context.Context) error
}

// Write is for what is written with each batch of spans, where Batch would wait for the disk each time. A storage that knows no difference does a Batch.
func Write(ctx context.Context, c storage.Client, ops ...*storage.Operation) error {
	if b, ok := c.(Behind); ok {
		return b.Write(ctx, ops...)
	}
	return c.Batch(ctx, ops...)
}

// Sync has on the disk what was written.
func Sync(ctx context.Context, c storage.Client) error {
	if b, ok := c.(Behind); ok {
		return b.Sync(ctx)
	}
	return nil
}

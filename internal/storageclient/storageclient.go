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

// Package tailtest reads a Tailer's stored positions, for tests of reading after a restart.
package tailtest

import (
	"context"
	"errors"
	"math"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
)

// Accepted returns the offset up to which each file was read and accepted, by inode; nil without stored positions. A packed file accepted as a whole has
// math.MaxInt64.
func Accepted(ctx context.Context, stored storage.Client) (map[uint64]int64, error) {
	b, err := stored.Get(ctx, checkpoint.IndexKey)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	keys, err := checkpoint.DecodeIndex(b)
	if err != nil {
		return nil, err
	}
	accepted := make(map[uint64]int64)
	for _, key := range keys {
		b, err := stored.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		stream, err := checkpoint.Decode(b)
		if errors.Is(err, checkpoint.ErrDamaged) {
			continue // the files are read again
		}
		for i := range stream.Files {
			f := &stream.Files[i]
			at := f.Head
			if f.Complete {
				at = math.MaxInt64
			}
			if len(f.Holes) > 0 {
				at = f.Holes[0].Begin
			}
			accepted[f.ID.Ino] = max(accepted[f.ID.Ino], at)
		}
	}
	return accepted, nil
}

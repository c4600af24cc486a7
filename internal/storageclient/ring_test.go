package storageclient

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// values is a storage that fails on request.
type values struct {
	storage.Client
	by   map[string][]byte
	fail error
}

func (v *values) Get(_ context.Context, key string) ([]byte, error) { return v.by[key], nil }

func (v *values) Batch(_ context.Context, ops ...*storage.Operation) error {
	if v.fail != nil {
		return v.fail
	}
	for _, op := range ops {
		if op.Type == storage.Set {
			v.by[op.Key] = append([]byte(nil), op.Value...)
		} else {
			delete(v.by, op.Key)
		}
	}
	return nil
}

// Whenever the process ends, the next one knows the newest records, in order, without a gap and bounded; records that could not be stored are missing.
func TestRing(t *testing.T) {
	store, ring := &values{by: make(map[string][]byte)}, Ring{Name: "x-", Keep: 300}
	next, most := uint64(0), 0
	for round := range 500 {
		var batch []byte
		n := 1 + round%7
		for range n {
			batch = binary.LittleEndian.AppendUint64(batch, next)
			next++
		}
		store.fail = errors.New("full")
		require.ErrorIs(t, ring.Add(t.Context(), store, batch, n), store.fail)
		store.fail = nil
		require.NoError(t, ring.Add(t.Context(), store, batch, n, storage.SetOperation("other", batch)))
		assert.Equal(t, batch, store.by["other"])
		if round%9 == 0 {
			ring = Ring{Name: "x-", Keep: 300}
			records, err := ring.Restore(t.Context(), store)
			require.NoError(t, err)
			known := len(records) / 8
			require.GreaterOrEqual(t, known, min(300, int(next)))
			most = max(most, known)
			for i := range known {
				require.Equal(t, next-uint64(known-i), binary.LittleEndian.Uint64(records[8*i:]))
			}
		}
		require.LessOrEqual(t, len(store.by), ringParts+4)
	}
	assert.Less(t, most, 2*300+7)
	store.by["x-ring"] = []byte("what is this")
	_, err := ring.Restore(t.Context(), store)
	assert.Error(t, err)
}

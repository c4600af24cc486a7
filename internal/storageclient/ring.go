package storageclient

import (
	"context"
	"fmt"
	"strconv"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Ring stores the newest records of a component, batch by batch: each batch is a part, many parts become a chunk, and the oldest chunk is deleted. The
// component defines the records, and finds their ends itself.
type Ring struct {
	Name string // prefix of the keys
	Keep int    // number of kept records; up to twice as many are stored

	chunk  int    // number of the unfinished chunk
	parts  int    // parts stored since the chunk was last stored as a whole
	recent []byte // records of the unfinished chunk
	n      int    // records in recent
}

const ringParts = 64 // of a chunk, before the chunk is stored as a whole

// The keys of the ring's state, of a chunk (the unfinished and the last one: numbers modulo 2), and of a part of the unfinished chunk.
func (r *Ring) key() string           { return r.Name + "ring" }
func (r *Ring) chunkKey(i int) string { return r.Name + "ring-chunk-" + strconv.Itoa(i%2) }
func (r *Ring) partKey(i int) string  { return r.Name + "ring-part-" + strconv.Itoa(i) }

// Add stores a batch of n records and the operations more in one write, without waiting for the disk. The batch is written as a part; after ringParts parts, or
// when the chunk has Keep records, the whole chunk is written instead and replaces its parts. A chunk with Keep records is finished, and the chunk before is
// deleted. After an error the ring is unchanged.
func (r *Ring) Add(ctx context.Context, to storage.Client, batch []byte, n int, more ...*storage.Operation) error {
	next := *r // takes effect once stored
	next.recent = append(next.recent, batch...)
	next.n += n
	ops := more
	if next.parts < ringParts && next.n < next.Keep {
		ops = append(ops, storage.SetOperation(r.partKey(next.parts), batch))
		next.parts++
	} else {
		ops = append(ops, storage.SetOperation(r.chunkKey(next.chunk), next.recent))
		for i := range next.parts {
			ops = append(ops, storage.DeleteOperation(r.partKey(i)))
		}
		next.parts = 0
		if next.n >= next.Keep {
			next.chunk, next.recent, next.n = next.chunk+1, nil, 0
			// Keys alternate between two chunks: the next chunk's key still holds the chunk before the finished chunk.
			ops = append(ops, storage.DeleteOperation(r.chunkKey(next.chunk)))
		}
	}
	ops = append(ops, storage.SetOperation(r.key(), fmt.Appendf(nil, "%d %d %d", next.chunk, next.parts, next.n)))
	if err := Write(ctx, to, ops...); err != nil {
		return err
	}
	*r = next
	return nil
}

// Restore reads the stored records, the oldest first: the last chunk, and the unfinished one, with which the ring goes on.
func (r *Ring) Restore(ctx context.Context, from storage.Client) (records []byte, err error) {
	b, err := from.Get(ctx, r.key())
	if err != nil || len(b) == 0 {
		return nil, err
	}
	var was Ring
	if _, err := fmt.Sscanf(string(b), "%d %d %d", &was.chunk, &was.parts, &was.n); err != nil || was.chunk < 0 || was.parts < 0 || was.parts > ringParts {
		return nil, fmt.Errorf("its state is %q", b)
	}
	records, err = from.Get(ctx, r.chunkKey(was.chunk+1)) // the last one: numbers are modulo 2
	if err != nil {
		return nil, err
	}
	keys := []string{r.chunkKey(was.chunk)}
	for i := range was.parts {
		keys = append(keys, r.partKey(i))
	}
	for _, key := range keys {
		b, err := from.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		was.recent = append(was.recent, b...)
	}
	r.chunk, r.parts, r.recent, r.n = was.chunk, was.parts, was.recent, was.n
	return append(records, was.recent...), nil
}

package statestorage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/trainbridge/trainbridge/internal/wire"
)

// A log is a line with the format's name, then batches: the length of the payload and its xxh3 hash, 8 bytes each, little-endian, and the payload. A payload is
// operations: a byte for the type, the key and, for a set, the value, each after its length as a varint.
const (
	logHeader = "trainbridge state 1\n"
	batchHead = 16

	opSet    = 's'
	opDelete = 'd'
)

var (
	errFormat  = errors.New("not a state file of this version")
	errDamaged = errors.New("damaged")
	errTorn    = errors.New("ends in the middle of a batch, as after a crash")
)

// appendBatch appends the batch of the operations to a log; nothing if all are gets, which change nothing.
func appendBatch(b []byte, ops []*storage.Operation) []byte {
	start, size := len(b), batchHead
	for _, op := range ops {
		size += len(op.Key) + len(op.Value) + 8 // 8: the type, and two lengths of mostly short texts
	}
	b = append(slices.Grow(b, size), make([]byte, batchHead)...)
	for _, op := range ops {
		switch op.Type {
		case storage.Set:
			b = wire.AppendBytes(append(b, opSet), op.Key)
			b = wire.AppendBytes(b, op.Value)
		case storage.Delete:
			b = wire.AppendBytes(append(b, opDelete), op.Key)
		case storage.Get:
		}
	}
	payload := b[start+batchHead:]
	if len(payload) == 0 {
		return b[:start]
	}
	binary.LittleEndian.PutUint64(b[start:], uint64(len(payload)))
	binary.LittleEndian.PutUint64(b[start+8:], xxh3.Hash(payload))
	return b
}

// readLog calls apply with each batch of a log of the given size, up to the first incomplete or damaged batch. It returns the number of good bytes, and the
// error of the bytes after them.
func readLog(r io.Reader, size int64, apply func([]*storage.Operation)) (good int64, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head := make([]byte, len(logHeader))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != logHeader {
		return 0, errFormat
	}
	for good = int64(len(logHeader)); good < size; {
		payload, err := readBatch(in, size-good)
		if err != nil {
			return good, err
		}
		ops, ok := decodeBatch(payload)
		if !ok {
			return good, errDamaged
		}
		apply(ops)
		good += batchHead + int64(len(payload))
	}
	return good, nil
}

// readBatch reads the payload of the next batch; left is how much of the file is left. errTorn: the file ends before the batch does. errDamaged: the length
// is 0, which is never written, or the hash is not the payload's. Any other error is of reading.
func readBatch(in io.Reader, left int64) ([]byte, error) {
	if left < batchHead {
		return nil, errTorn
	}
	var head [batchHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n == 0 {
		return nil, errDamaged
	}
	if n > uint64(left-batchHead) {
		return nil, errTorn
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(in, payload); err != nil {
		return nil, err
	}
	if xxh3.Hash(payload) != binary.LittleEndian.Uint64(head[8:]) {
		return nil, errDamaged
	}
	return payload, nil
}

// decodeBatch reads the operations in a payload; ok is false for anything that appendBatch would not have written.
func decodeBatch(b []byte) (ops []*storage.Operation, ok bool) {
	for c := (wire.Cursor{Rest: b}); len(c.Rest) > 0; {
		kind, key := c.Byte(), string(c.Bytes())
		switch kind {
		case opSet:
			ops = append(ops, storage.SetOperation(key, c.Bytes()))
		case opDelete:
			ops = append(ops, storage.DeleteOperation(key))
		default:
			return nil, false
		}
		if c.Bad {
			return nil, false
		}
	}
	return ops, true
}

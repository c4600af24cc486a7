package storageclient

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// answers are numbers, in order of arrival.
type answers struct {
	Answers
	fresh []byte
	n     int
}

func (a *answers) say(x uint64) {
	a.fresh, a.n = binary.LittleEndian.AppendUint64(a.fresh, x), a.n+1
}

func (a *answers) Fresh() (b []byte, n int) {
	b, n = a.fresh, a.n
	a.fresh, a.n = nil, 0
	return b, n
}

// Unsaved answers are stored as soon as the storage works, before later ones, and also without later ones. Never more than Ring.Keep are kept.
func TestMemoryTriesAgain(t *testing.T) {
	store, of := &values{by: make(map[string][]byte)}, &answers{}
	m := Memory{Of: of, Ring: Ring{Keep: 3}, store: store}
	save := func(fail error, said ...uint64) (stored []uint64) {
		for _, x := range said {
			of.say(x)
		}
		store.fail = fail
		m.Save(t.Context(), zap.NewNop())
		var ring Ring
		records, err := ring.Restore(t.Context(), store)
		require.NoError(t, err)
		for ; len(records) > 0; records = records[8:] {
			stored = append(stored, binary.LittleEndian.Uint64(records))
		}
		return stored
	}
	full := errors.New("full")
	assert.Equal(t, []uint64{1}, save(nil, 1))
	assert.Equal(t, []uint64{1}, save(full, 2))
	assert.Equal(t, []uint64{1, 2}, save(nil))
	assert.Equal(t, []uint64{1, 2}, save(full, 3))
	assert.Equal(t, []uint64{1, 2, 3, 4}, save(nil, 4))
	assert.Equal(t, []uint64{1, 2, 3, 4}, save(full, 5, 6))
	assert.Equal(t, []uint64{1, 2, 3, 4}, save(full, 7, 8), "four are too many")
	assert.Equal(t, []uint64{1, 2, 3, 4, 9}, save(nil, 9))
}

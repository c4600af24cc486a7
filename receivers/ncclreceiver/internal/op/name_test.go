package op

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNames(t *testing.T) {
	for k := range Kinds {
		assert.Equal(t, k, KindOf(k.String()), "%d", k)
	}
	assert.Equal(t, AllToAll, KindOf([]byte("AlltoAll")))
	assert.Equal(t, Other, KindOf("allreduce"))
	for _, name := range []string{"all_reduce", "ncclAllReduce", "AllReduce", "ALL-REDUCE", "all reduce"} {
		assert.Equal(t, "allreduce", Canonical(name), name)
	}
	assert.Empty(t, Canonical("_ -"))
}

// The zero of a number is a value: what is not known says so.
func TestInit(t *testing.T) {
	var out Out
	o := out.Add()
	o.Rank, o.Size, o.Details = 3, 7, append(o.Details, Detail{})
	out.Reset()
	again := out.Add()
	assert.Same(t, o, again)
	assert.Equal(t, []int64{Unknown, Unknown, Unknown, Unknown, Unknown}, []int64{int64(again.Rank), again.Size, again.Total, again.Duration, again.Stream})
	assert.Empty(t, again.Details)
	assert.NotZero(t, cap(again.Details))
}

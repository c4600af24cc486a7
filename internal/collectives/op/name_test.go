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

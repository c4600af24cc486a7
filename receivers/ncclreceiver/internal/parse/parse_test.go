package parse

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// The zero of a number is a value: an unknown number is op.Unknown, not 0.
func TestInit(t *testing.T) {
	var out Out
	o := out.Add()
	o.Rank, o.Size, o.Details = 3, 7, append(o.Details, op.Detail{})
	out.Reset()
	again := out.Add()
	assert.Same(t, o, again)
	assert.Equal(
		t, []int64{op.Unknown, op.Unknown, op.Unknown, op.Unknown, op.Unknown}, []int64{int64(again.Rank), again.Size, again.Total, again.Duration, again.Stream},
	)
	assert.Empty(t, again.Details)
	assert.NotZero(t, cap(again.Details))
}

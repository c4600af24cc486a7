package human_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/human"
)

func TestRanks(t *testing.T) {
	for want, of := range map[string][]int64{
		"rank 5": {5}, "ranks 5, 6": {5, 6}, "ranks 3, 7, 12–15": {3, 7, 12, 13, 14, 15}, "ranks 0–2, 4, 5": {0, 1, 2, 4, 5},
	} {
		assert.Equal(t, want, human.Ranks(of))
	}
	var even []int64
	for i := range int64(4096) {
		even = append(even, 2*i)
	}
	assert.True(t, strings.HasSuffix(human.Ranks(even), ", 62, 4,064 more"), human.Ranks(even))
}

package spans

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLabel(t *testing.T) {
	long := strings.Repeat("a", MaxLabelBytes)
	for in, want := range map[string]string{
		"":                     "",
		"rollout":              "rollout",
		long:                   long,
		long + "b":             long,
		long[1:] + "ü":         long[1:],
		long[2:] + "üb":        long[2:] + "ü",
		"\x80" + long + "\x80": "\x80" + long[1:],
	} {
		assert.Equal(t, want, Label(in))
	}
}

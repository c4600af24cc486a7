package reading

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestColumns(t *testing.T) {
	for columns, want := range map[string]int{"": 120, "72": 72, "wide": 120, "-1": 120} {
		t.Setenv("COLUMNS", columns)
		width, tty := Terminal(io.Discard, 120)
		assert.Equal(t, want, width)
		assert.False(t, tty)
	}
}

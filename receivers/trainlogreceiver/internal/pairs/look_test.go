package pairs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A loss at any position in a line, in any case.
func TestLook(t *testing.T) {
	for _, word := range []string{"loss", "Loss", "LOSS", "lOsS", "los", "lo", "l", "lost", "oss", "l\x4fss", "l\x0fss", "Lo损失", "lo loss", "loss损", ""} {
		for before := range 20 {
			for behind := range 20 {
				line := strings.Repeat("l", before) + word + strings.Repeat("o", behind)
				loss, beyond := look([]byte(line))
				assert.Equal(t, strings.Contains(strings.ToLower(line), "loss"), loss, line)
				assert.Equal(t, strings.ContainsRune(line, '损'), beyond, line)
			}
		}
	}
}

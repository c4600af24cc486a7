package rotation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsSuffix(t *testing.T) {
	for s, want := range map[string]bool{
		".1": true, ".12.gz": true, "-20260101": true, "-2026-01-01.zst": true, ".2026-01-01_00": true, ".old": true,
		"": false, ".": false, ".gz": false, "-1": false, "-4711": false, ".log": false, ".1x": false, "1": false,
	} {
		assert.Equal(t, want, IsSuffix(s), s)
	}
}

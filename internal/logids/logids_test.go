package logids

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNamed(t *testing.T) {
	for _, name := range Names {
		assert.NotEqual(t, None, Named(name), name)
	}
	for _, name := range []string{"", "trace", "trace_ids", "TRACE_ID"} {
		assert.Equal(t, None, Named(name), name)
	}
}

func TestIDs(t *testing.T) {
	var ids IDs
	ids.Set(None, []byte("x"))
	assert.Equal(t, IDs{}, ids)
	ids.Set(Span, []byte("x"))
	assert.False(t, ids.Any())
	ids.Set(TraceParent, []byte("y"))
	assert.True(t, ids.Any())
	ids.Own(func(b []byte) []byte { return append([]byte("own "), b...) })
	assert.Equal(t, IDs{Span: []byte("own x"), TraceParent: []byte("own y")}, ids)
}

func TestIsUUID(t *testing.T) {
	assert.True(t, IsUUID([]byte("a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d")))
	for _, text := range []string{
		"", "a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d", "A1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d", "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5g",
		"a1b2c3d4-5e6f-4a7b-8c9d00e1f2a3b4c5d", "00000000-0000-0000-0000-000000000000", "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5-",
	} {
		assert.False(t, IsUUID([]byte(text)), text)
	}
}

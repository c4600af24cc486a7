package writable_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/writable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDir(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, writable.Dir(dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	err = writable.Dir(dir + "/nowhere")
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.NotContains(t, err.Error(), "nowhere", "the caller says which")
}

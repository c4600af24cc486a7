package kernelfs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOf(t *testing.T) {
	for _, dir := range []string{"/proc", "/proc/self/task"} {
		if _, err := os.Stat(dir); assert.NoError(t, err, "this test needs a mounted proc") {
			assert.Equal(t, "proc", Of(dir))
		}
	}
	assert.Empty(t, Of(t.TempDir()))
	assert.Empty(t, Of("/nowhere"))
}

func TestPassed(t *testing.T) {
	assert.Equal(t, "/sys (sysfs), /sys/fs/bpf (bpf)", Passed{"/sys/fs/bpf": "bpf", "/sys": "sysfs"}.String())
	assert.Equal(t, "/a (x), /b (x), /c (x), /d (x), /e (x) and 2 more",
		Passed{"/a": "x", "/b": "x", "/c": "x", "/d": "x", "/e": "x", "/f": "x", "/g": "x"}.String())
}

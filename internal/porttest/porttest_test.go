package porttest

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A closed port can be opened again at once, while children are being started; and no port is given twice.
func TestClosedIsFree(t *testing.T) {
	var children sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		children.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					assert.NoError(t, exec.Command(os.Args[0], "-test.run=^$").Run()) //nolint:noctx // it does nothing
				}
			}
		})
	}
	addr := Addr(t)
	assert.NotEqual(t, addr, Addr(t))
	for range 3000 {
		l, err := Listen(addr)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	close(done)
	children.Wait()
}

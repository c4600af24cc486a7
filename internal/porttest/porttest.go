// Package porttest gives tests ports that stay free between their choice and a server's bind.
package porttest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Host is a loopback address of this test process alone.
var Host = fmt.Sprintf("127.%d.%d.1", 1+os.Getpid()>>8%127, os.Getpid()%256)

// Before its first child, Go tries out pidfds with a child of its own, without syscall.ForkLock (os.checkPidfd): the child's copy of a port would outlive the
// port's close. Here the trial comes before all ports.
var _ = func() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Release()
}()

// given hands every port out once.
var given struct {
	sync.Mutex
	next int
}

// Addr is an unused address of Host.
func Addr(tb testing.TB) string {
	tb.Helper()
	return net.JoinHostPort(Host, strconv.Itoa(On(tb, Host)))
}

// On is an unused port of a host, below the kernel's range for outgoing connections, which could take the port before the server does. Each port is given out
// once; processes begin at different ports.
func On(tb testing.TB, host string) int {
	tb.Helper()
	given.Lock()
	defer given.Unlock()
	const low, high = 20000, 32000
	if given.next == 0 {
		given.next = low + os.Getpid()*7%(high-low)
	}
	for range high - low {
		given.next++
		if given.next >= high {
			given.next = low
		}
		l, err := Listen(net.JoinHostPort(host, strconv.Itoa(given.next)))
		if err == nil && l.Close() == nil {
			return given.next
		}
	}
	tb.Fatal("no free port")
	return 0
}

// Listen opens a TCP port that is free again right after its close.
func Listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return unshared{l}, nil
}

// unshared is a listener without copies in children at its close: a child being started briefly inherits all descriptors of this process.
type unshared struct{ net.Listener }

// Close returns when the port is free, after 10 s at the latest. No child is started meanwhile, so none inherits the descriptor.
func (l unshared) Close() error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	err := l.Listener.Close()
	for range 10_000 {
		again, taken := net.Listen("tcp", l.Addr().String())
		if !errors.Is(taken, syscall.EADDRINUSE) {
			if taken == nil {
				err = errors.Join(err, again.Close())
			}
			break
		}
		time.Sleep(time.Millisecond) // until the child is another program
	}
	return err
}

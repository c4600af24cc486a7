// Package porttest gives tests ports that nobody takes between a look and a server's bind.
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

// Host is an address of the loopback that no other test process uses.
var Host = fmt.Sprintf("127.%d.%d.1", 1+os.Getpid()>>8%127, os.Getpid()%256)

// given hands every port out once.
var given struct {
	sync.Mutex
	next int
}

// Addr is an address of Host at which nobody listens.
func Addr(tb testing.TB) string {
	tb.Helper()
	return net.JoinHostPort(Host, strconv.Itoa(On(tb, Host)))
}

// On is a port of a host at which nobody listens. It lies below the range that the kernel gives to outgoing connections.
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

// Listen opens a port of TCP that is free again as soon as it is closed.
func Listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return unshared{l}, nil
}

// unshared is a listener that no child has open when it is closed: one that is being started has for a moment all that this process has.
type unshared struct{ net.Listener }

// Close returns when the port is free. No child is started meanwhile, so that none has what shows it.
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

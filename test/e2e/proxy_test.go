//go:build e2e

package e2e

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/porttest"
)

// proxy is in front of a server's TCP port, to let the server disappear and come back with all its data.
type proxy struct {
	addr, target string

	mu       sync.Mutex
	listener net.Listener // nil while cut
	conns    map[net.Conn]struct{}
	wg       sync.WaitGroup
}

func startProxy(tb testing.TB, target string) *proxy {
	tb.Helper()
	p := &proxy{addr: freeAddr(tb), target: target, conns: make(map[net.Conn]struct{})}
	require.NoError(tb, p.restore())
	tb.Cleanup(p.cut)
	return p
}

// cut closes the port and every connection through it.
func (p *proxy) cut() {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// restore opens the same port again.
func (p *proxy) restore() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	l, err := porttest.Listen(p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(l, c) })
		}
	})
	return nil
}

func (p *proxy) serve(l net.Listener, c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer s.Close()
	p.mu.Lock()
	if p.listener != l { // cut in the meantime
		p.mu.Unlock()
		return
	}
	p.conns[c], p.conns[s] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { pipe(s, c) })
	both.Go(func() { pipe(c, s) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	delete(p.conns, s)
	p.mu.Unlock()
}

// pipe copies one direction; its end ends the opposite direction as well.
func pipe(dst, src net.Conn) {
	_, _ = io.Copy(dst, src)
	dst.Close()
	src.Close()
}

// Package serve is the page of a report over HTTP, made anew as its logs grow.
package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
)

const (
	mostConnections = 1024
	shutdownWait    = 2 * time.Second
)

// Listener is where a page is served.
type Listener struct {
	net.Listener

	host  string // of the address as given
	token string // random, in the printed address: who knows it may read the page
}

// Listen listens at HOST:PORT. Port 0 is any that is free.
func Listen(ctx context.Context, address string) (*Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q: write it as 127.0.0.1:8080: %w", address, err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	var token [16]byte
	_, _ = rand.Read(token[:]) // never fails
	return &Listener{netutil.LimitListener(l, mostConnections), host, hex.EncodeToString(token[:])}, nil
}

// URL is the address of the page, with the token that opens it.
func (l *Listener) URL() string { return "http://" + l.address() + "/?token=" + l.token }

// address is HOST:PORT as other hosts reach it: for an address without a host, or of all interfaces, the name of this host.
func (l *Listener) address() string {
	at := l.Addr().(*net.TCPAddr)
	host := l.host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host, _ = os.Hostname()
	}
	return net.JoinHostPort(host, strconv.Itoa(at.Port))
}

// Open says whether other hosts can reach the page.
func (l *Listener) Open() bool { return !l.Addr().(*net.TCPAddr).IP.IsLoopback() }

// Serve serves the page of logs until the context ends. req says how logs are read and judged; In and Out are not used. Log gets a line for each error.
func (l *Listener) Serve(ctx context.Context, paths []string, req format.Request, log io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p, err := newPage(paths, req, log)
	if err != nil {
		return err
	}
	read := make(chan struct{}) // closed when the last reading has ended
	go func() {
		defer close(read)
		p.run(ctx)
	}()
	server := &http.Server{
		Handler:           newHandler(l, p),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute, // a page has 4 MB at most
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l.Listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
		defer cancel()
		if server.Shutdown(wait) != nil {
			_ = server.Close()
		}
		err = <-served
	}
	stop() // of the reading, if the server failed
	<-read
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// named says whether a page may be asked for by the name of a host: a foreign page whose name leads here (DNS rebinding) has another name. Allowed are
// localhost and the listener's own name. IP addresses are safe from rebinding: allowed are the listener's, loopback, and any if the listener is at all
// interfaces. Ports are not checked: a tunnel has its own.
func (l *Listener) named(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	own, _, _ := net.SplitHostPort(l.address())
	at := l.Addr().(*net.TCPAddr).IP
	ip := net.ParseIP(name)
	switch {
	case strings.EqualFold(name, "localhost"), strings.EqualFold(name, own):
		return true
	case ip == nil:
		return false
	}
	return ip.Equal(at) || ip.IsLoopback() || at.IsUnspecified()
}

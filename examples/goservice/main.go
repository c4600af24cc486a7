// Goservice is a data server and a data loader in Go whose spans join the traces of a verl job: see README.md.
//
//	goservice serve [--listen 127.0.0.1:7070]
//	goservice fetch [--server 127.0.0.1:7070] [--trace-id ID]... [--samples 1024]
//	goservice [--trace-id ID]... [--samples 1024]   # both in one process
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/trainbridge/trainbridge/bridge"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "goservice:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	command := ""
	if len(args) > 0 && (args[0] == "serve" || args[0] == "fetch") {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("goservice "+command, flag.ContinueOnError)
	listen, server, samples, ids := "127.0.0.1:0", "", 1024, []string(nil)
	switch command {
	case "serve":
		flags.StringVar(&listen, "listen", "127.0.0.1:7070", "address of the data server")
	case "fetch":
		flags.StringVar(&server, "server", "127.0.0.1:7070", "address of the data server")
	}
	if command != "serve" {
		flags.IntVar(&samples, "samples", samples, fmt.Sprintf("samples of a batch, at most %d", datasetSamples))
		flags.Func("trace-id", "trace_id of a batch, as the logs have it; may be repeated (default: a trace of its own)", func(id string) error {
			ids = append(ids, id)
			return nil
		})
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: use serve, fetch or flags alone", flags.Arg(0))
	}
	if samples < 1 || samples > datasetSamples {
		return fmt.Errorf("--samples %d: use 1 to %d", samples, datasetSamples)
	}
	if len(ids) == 0 {
		ids = []string{""}
	}
	switch command {
	case "serve":
		return serve(ctx, listen, func(ctx context.Context, addr string) error {
			_, err := fmt.Fprintln(out, "listening on", addr)
			<-ctx.Done()
			return err
		})
	case "fetch":
		return fetch(ctx, server, ids, samples, out)
	}
	return serve(ctx, listen, func(ctx context.Context, addr string) error { return fetch(ctx, addr, ids, samples, out) })
}

// serve runs the data server until work, called with its address, returns.
func serve(ctx context.Context, addr string, work func(ctx context.Context, addr string) error) error {
	b, err := bridge.New(ctx, bridge.WithServiceName("data-server"))
	if err != nil {
		return err
	}
	defer flush(ctx, b) // last of all: the server's spans end when the server has stopped
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := newServer(b)
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(listener)
		cancel() // no work without a server
	}()
	err = work(ctx, listener.Addr().String())
	stop(server)
	return errors.Join(err, <-served)
}

// stop gives running calls 5 s to end.
func stop(server *grpc.Server) {
	timer := time.AfterFunc(5*time.Second, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}

// fetch prepares a batch for each trace id.
func fetch(ctx context.Context, server string, ids []string, samples int, out io.Writer) (err error) {
	b, err := bridge.New(ctx, bridge.WithServiceName("data-loader"))
	if err != nil {
		return err
	}
	defer flush(ctx, b)
	l, err := newLoader(b, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.conn.Close()) }()
	for _, id := range ids {
		batch, err := l.prefetchBatch(ctx, id, samples)
		if err != nil {
			return fmt.Errorf("trace_id=%q: %w", id, err)
		}
		if _, err := fmt.Fprintf(out, "trace %s  trace_id=%q  %d samples stored as %s\n", batch.trace, id, samples, batch.key); err != nil {
			return err
		}
	}
	return nil
}

// flush sends the queued spans, also after the signal. Without a collector the service ends in order, after 5 s.
func flush(ctx context.Context, b *bridge.Bridge) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "goservice: spans or metrics were lost:", err)
	}
}

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/trainbridge/trainbridge/spans"
)

// backend keeps the runs of the spans received.
type backend struct {
	ptraceotlp.UnimplementedGRPCServer
	mu     sync.Mutex
	opened []string            // the runs of the train.run spans
	runs   map[string][]string // of each service
}

func (b *backend) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rs := range req.Traces().ResourceSpans().All() {
		attrs := rs.Resource().Attributes().AsRaw()
		service, run := attrs[spans.AttrServiceName].(string), attrs[spans.AttrRunID].(string)
		b.runs[service] = append(b.runs[service], run)
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.Name() == spans.SpanRun {
					b.opened = append(b.opened, run)
				}
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

// whole says whether spans of four receivers have come.
func (b *backend) whole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, service := range []string{"verl", "zeromq", "train", "nccl"} {
		if b.runs[service] == nil {
			return false
		}
	}
	return true
}

// The shipped configuration, started on logs of four kinds in four directories: one run if a variable names it, and one train.run span.
func TestOneRun(t *testing.T) {
	for _, name := range append(kinds, spans.JobVariables()...) {
		t.Setenv(name, "")
	}
	for _, name := range kinds {
		t.Setenv(name, "[]")
	}
	for name, it := range map[string]struct {
		env    map[string]string
		run    string
		opened int
	}{
		"TRAINBRIDGE_RUN_ID": {env: map[string]string{"TRAINBRIDGE_RUN_ID": "job-7", "SLURM_JOB_ID": "8"}, run: "job-7", opened: 1},
		"Slurm":              {env: map[string]string{"SLURM_JOB_ID": "8"}, run: "slurm-8", opened: 1},
		"directories":        {opened: 4},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range it.env {
				t.Setenv(name, value)
			}
			b := collect(t)
			assert.Len(t, b.opened, it.opened)
			different := make(map[string]bool)
			for service, runs := range b.runs {
				for _, run := range runs {
					different[run] = true
					if it.run != "" {
						assert.Equal(t, it.run, run, service)
					}
				}
			}
			assert.Len(t, different, it.opened)
		})
	}
}

// collect runs the collector until spans of four receivers have come.
func collect(t *testing.T) *backend {
	t.Helper()
	logs := t.TempDir()
	for dir, log := range map[string]string{"tq": "tqtracereceiver/testdata/seed.log", "zmq": "zmqrpcreceiver/testdata/v1.log", "train": "trainlogreceiver/testdata/jsonl.log"} {
		text, err := os.ReadFile(filepath.Join("../../receivers", log))
		require.NoError(t, err)
		require.NoError(t, os.Mkdir(filepath.Join(logs, dir), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(logs, dir, "a.log"), text, 0o600))
	}
	require.NoError(t, os.CopyFS(filepath.Join(logs, "nccl"), os.DirFS("../../receivers/ncclreceiver/testdata/inspector-v4.4")))
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed by the server
	require.NoError(t, err)
	server, b := grpc.NewServer(), &backend{runs: make(map[string][]string)}
	ptraceotlp.RegisterGRPCServer(server, b)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	t.Setenv("TRAINBRIDGE_LOGS", logs+"/*/*")
	t.Setenv("TRAINBRIDGE_STATE_DIR", t.TempDir())
	t.Setenv("TRAINBRIDGE_OTLP_ENDPOINT", listener.Addr().String())
	set := settings(new(configChecker))
	set.ConfigProviderSettings.ResolverSettings.URIs = append(
		set.ConfigProviderSettings.ResolverSettings.URIs, // any free ports
		"yaml:receivers::otlp::protocols: {grpc: {endpoint: '127.0.0.1:0'}, http: {endpoint: '127.0.0.1:0'}}",
		"yaml:exporters::prometheus::endpoint: 127.0.0.1:0", "yaml:extensions::health_check::endpoint: 127.0.0.1:0",
		"yaml:service::telemetry::metrics: {level: none, readers: []}",
	)
	col, err := otelcol.NewCollector(set)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- col.Run(t.Context()) }()
	require.Eventually(t, b.whole, time.Minute, 20*time.Millisecond)
	col.Shutdown()
	require.NoError(t, <-ended)
	return b
}

package bridge

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // the machine's variables must not change a test
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") || slices.Contains(spans.JobVariables(), name) {
			_ = os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m)
}

// collector is an OTLP/gRPC server that keeps the requests.
type collector struct {
	addr    string
	mu      sync.Mutex
	traces  ptrace.Traces
	metrics pmetric.Metrics
}

type traceServer struct {
	ptraceotlp.UnimplementedGRPCServer
	*collector
}

type metricServer struct {
	pmetricotlp.UnimplementedGRPCServer
	*collector
}

func (s *traceServer) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Traces().ResourceSpans().MoveAndAppendTo(s.traces.ResourceSpans())
	return ptraceotlp.NewExportResponse(), nil
}

func (s *metricServer) Export(_ context.Context, req pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Metrics().ResourceMetrics().MoveAndAppendTo(s.metrics.ResourceMetrics())
	return pmetricotlp.NewExportResponse(), nil
}

func startCollector(tb testing.TB, opts ...grpc.ServerOption) *collector {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	c := &collector{addr: listener.Addr().String(), traces: ptrace.NewTraces(), metrics: pmetric.NewMetrics()}
	server := grpc.NewServer(opts...)
	ptraceotlp.RegisterGRPCServer(server, &traceServer{collector: c})
	pmetricotlp.RegisterGRPCServer(server, &metricServer{collector: c})
	go func() { _ = server.Serve(listener) }()
	tb.Cleanup(server.Stop)
	return c
}

// got is a received span, with its resource.
type got struct {
	ptrace.Span
	resource map[string]any
	scope    string
}

func (g got) attrs() map[string]any { return g.Attributes().AsRaw() }

func (g got) seconds() float64 { return float64(g.EndTimestamp()-g.StartTimestamp()) / 1e9 }

// spans lists the received spans.
func (c *collector) spans() (all []got) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range c.traces.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				all = append(all, got{s, rs.Resource().Attributes().AsRaw(), ss.Scope().Name()})
			}
		}
	}
	return all
}

// rig is a bridge and its collector.
type rig struct {
	*Bridge
	collector *collector
	tb        testing.TB
}

func newRig(tb testing.TB, opts ...Option) *rig {
	tb.Helper()
	c := startCollector(tb)
	b, err := New(tb.Context(), append([]Option{WithEndpoint(c.addr), WithServiceName("data-server"), WithRunID("run-1")}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = b.Shutdown(context.Background()) })
	return &rig{b, c, tb}
}

// flush shuts the bridge down and returns its spans by name, which must be unique.
func (r *rig) flush() map[string]got {
	r.tb.Helper()
	require.NoError(r.tb, r.Shutdown(r.tb.Context()))
	byName := map[string]got{}
	for _, s := range r.collector.spans() {
		require.NotContains(r.tb, byName, s.Name())
		byName[s.Name()] = s
	}
	return byName
}

// parents names the parent of every span, "" for roots, "?" for missing parents.
func parents(all map[string]got) map[string]string {
	names := map[pcommon.SpanID]string{{}: ""}
	for name, s := range all {
		names[s.SpanID()] = name
	}
	out := map[string]string{}
	for name, s := range all {
		parent, ok := names[s.ParentSpanID()]
		if !ok {
			parent = "?"
		}
		out[name] = parent
	}
	return out
}

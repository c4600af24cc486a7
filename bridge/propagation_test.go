package bridge

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/trainbridge/trainbridge/spans"
)

const batchID = "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"

// healthServer does the work of a data server.
type healthServer struct {
	*health.Server
	bridge *Bridge
}

func (s *healthServer) Check(ctx context.Context, req *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	// The request names the batch too: the caller's span stays the parent.
	ctx = WithTraceID(ctx, req.GetService())
	ctx, span := s.bridge.StartFunction(ctx, "serve")
	defer span.End()
	return s.Server.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
}

func TestGRPC(t *testing.T) {
	for _, id := range []string{batchID, "batch-17"} {
		t.Run(id, func(t *testing.T) { testGRPC(t, id) })
	}
}

func testGRPC(t *testing.T, id string) {
	t.Helper()
	client, server := newRig(t), newRig(t, WithServiceName("server"))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(server.TracerProvider()), otelgrpc.WithMeterProvider(server.MeterProvider()), otelgrpc.WithPropagators(server.Propagator()),
	)))
	grpc_health_v1.RegisterHealthServer(srv, &healthServer{health.NewServer(), server.Bridge})
	go func() { _ = srv.Serve(listener) }()
	handler := otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(client.TracerProvider()), otelgrpc.WithMeterProvider(client.MeterProvider()), otelgrpc.WithPropagators(client.Propagator()),
	)
	conn, err := grpc.NewClient(
		listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(handler),
	)
	require.NoError(t, err)
	func(ctx context.Context) {
		ctx, s := client.StartFunction(ctx, "generate_sequences")
		defer s.End()
		_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: id})
	}(WithTraceID(t.Context(), id))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	srv.GracefulStop()
	checkHop(t, client, server, id, "grpc.health.v1.Health/Check", "grpc.health.v1.Health/Check")
	assert.Positive(t, client.collector.metrics.MetricCount(), "otelgrpc measures with the bridge's meters")
	assert.Positive(t, server.collector.metrics.MetricCount())
}

func TestHTTP(t *testing.T) {
	client, server := newRig(t), newRig(t, WithServiceName("server"))
	handler := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		_, s := server.StartFunction(ctx, "serve")
		defer s.End()
	})
	srv := httptest.NewServer(
		otelhttp.NewHandler(handler, "handle", otelhttp.WithTracerProvider(server.TracerProvider()), otelhttp.WithPropagators(server.Propagator())),
	)
	transport := &http.Transport{}
	get := http.Client{
		Transport: otelhttp.NewTransport(transport, otelhttp.WithTracerProvider(client.TracerProvider()), otelhttp.WithPropagators(client.Propagator())),
	}
	func(ctx context.Context) {
		ctx, s := client.StartFunction(ctx, "generate_sequences")
		defer s.End()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, http.NoBody)
		require.NoError(t, err)
		resp, err := get.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}(WithTraceID(t.Context(), batchID))
	transport.CloseIdleConnections()
	srv.Close()
	checkHop(t, client, server, batchID, "HTTP GET", "GET")
}

// checkHop expects the client's function, the client's span of the call, the server's span of the call and the server's function, in a chain of parents in the
// batch's trace.
func checkHop(t *testing.T, client, server *rig, id, clientSpan, serverSpan string) {
	t.Helper()
	sent, served := client.flush(), server.flush()
	require.Contains(t, sent, clientSpan)
	require.Contains(t, served, serverSpan)
	chain := []got{sent["generate_sequences"], sent[clientSpan], served[serverSpan], served["serve"]}
	for i, s := range chain {
		assert.Equal(t, spans.TraceID("run-1", []byte(id)), s.TraceID(), s.Name())
		if i == 0 {
			assert.True(t, s.ParentSpanID().IsEmpty())
		} else {
			assert.Equal(t, chain[i-1].SpanID(), s.ParentSpanID(), s.Name())
		}
	}
	assert.Equal(t, "data-server", sent[clientSpan].resource["service.name"])
	assert.Equal(t, "server", served[serverSpan].resource["service.name"])
}

// A handler that names another batch than its caller is in that batch's trace, and the caller's baggage stays.
func TestAnotherTraceThanTheCallers(t *testing.T) {
	r := newRig(t)
	member, err := baggage.NewMember("tenant", "a")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	ctx, handler := r.Tracer().Start(WithTraceID(baggage.ContextWithBaggage(t.Context(), bag), "a1"), "handler")
	ctx = WithTraceID(ctx, batchID)
	assert.Equal(t, "a", baggage.FromContext(ctx).Member("tenant").Value())
	ctx, fn := r.StartFunction(ctx, "f")
	ctx, s := r.StartGet(ctx)
	s.End()
	fn.End()
	ctx = WithTraceID(ctx, batchID) // fn has ended, so it is not the parent of later spans, though in the same trace
	ctx, s = r.StartFunction(ctx, "g")
	s.End()
	handler.End()
	assert.Equal(t, "a", baggage.FromContext(ctx).Member("tenant").Value())
	all := r.flush()
	assert.Equal(t, map[string]string{"handler": "", "f": "", "tq.get": "f", "g": ""}, parents(all))
	for _, name := range []string{"f", "tq.get", "g"} {
		assert.Equal(t, spans.TraceID("", []byte(batchID)), all[name].TraceID())
	}
}

// Two bridges in one process: the spans of the inner bridge are children of the outer's, in the outer's trace.
func TestTwoBridges(t *testing.T) {
	one, two := newRig(t), newRig(t, WithRunID("run-2"))
	ctx := WithTraceID(t.Context(), "a1")
	ctx, fn := one.StartFunction(ctx, "f")
	ctx, get := two.StartGet(ctx)
	get.End()
	assert.Equal(t, fn.SpanContext().TraceID(), get.SpanContext().TraceID())
	fn.End()
	outer, inner := one.flush()["f"], two.flush()["tq.get"]
	assert.Equal(t, outer.SpanID(), inner.ParentSpanID())
	assert.Equal(t, "f", inner.attrs()["tq.function"])
	assert.InDelta(t, inner.seconds()/outer.seconds(), outer.attrs()["tq.get.utilization"], 1e-12)
	ctx = WithTraceID(ctx, "a1") // no run is named: the run is that of the bridge that starts a span
	assert.NotEqual(t, spans.TraceID("run-1", []byte("a1")), spans.TraceID("run-2", []byte("a1")))
	_, fn = two.StartFunction(ctx, "f")
	assert.EqualValues(t, spans.TraceID("run-2", []byte("a1")), fn.SpanContext().TraceID())
}

// A function of a switched-off bridge, and a stage of an active bridge.
func TestStageOfAnotherBridge(t *testing.T) {
	r := newRig(t)
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), remote)
	ctx, fn := (*Bridge)(nil).StartFunction(ctx, "f")
	_, s := r.StartGet(ctx)
	s.End()
	fn.End()
	get := r.flush()["tq.get"]
	assert.EqualValues(t, remote.SpanID(), get.ParentSpanID())
	assert.Equal(t, "f", get.attrs()["tq.function"])
}

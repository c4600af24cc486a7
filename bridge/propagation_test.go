package bridge

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

const batchID = "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"

// healthServer does what a data server would.
type healthServer struct {
	*health.Server
	bridge *Bridge
}

func (s *healthServer) Check(ctx context.Context, req *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	// The request names the batch too: the caller's span stays the parent.
	ctx = WithTraceID(ctx, req.GetService())
	defer s.bridge.TQFunction(&ctx, "serve").End()
	return s.Server.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
}

func TestGRPC(t *testing.T) {
	client, server := newRig(t), newRig(t, WithServiceName("server"))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(server.TracerProvider()), otelgrpc.WithMeterProvider(server.MeterProvider()), otelgrpc.WithPropagators(server.Propagator()),
	)))
	grpc_health_v1.RegisterHealthServer(srv, &healthServer{health.NewServer(), server.Bridge})
	go func() { _ = srv.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(client.TracerProvider()), otelgrpc.WithMeterProvider(client.MeterProvider()), otelgrpc.WithPropagators(client.Propagator()),
	)))
	require.NoError(t, err)
	func(ctx context.Context) {
		defer client.TQFunction(&ctx, "generate_sequences").End()
		_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: batchID})
	}(WithTraceID(t.Context(), batchID))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	srv.GracefulStop()
	checkHop(t, client, server, "grpc.health.v1.Health/Check", "grpc.health.v1.Health/Check")
	assert.Positive(t, client.collector.metrics.MetricCount(), "otelgrpc measures with the bridge's meters")
	assert.Positive(t, server.collector.metrics.MetricCount())
}

func TestHTTP(t *testing.T) {
	client, server := newRig(t), newRig(t, WithServiceName("server"))
	handler := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		defer server.TQFunction(&ctx, "serve").End()
	})
	srv := httptest.NewServer(otelhttp.NewHandler(handler, "handle", otelhttp.WithTracerProvider(server.TracerProvider()), otelhttp.WithPropagators(server.Propagator())))
	transport := &http.Transport{}
	get := http.Client{Transport: otelhttp.NewTransport(transport, otelhttp.WithTracerProvider(client.TracerProvider()), otelhttp.WithPropagators(client.Propagator()))}
	func(ctx context.Context) {
		defer client.TQFunction(&ctx, "generate_sequences").End()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, http.NoBody)
		require.NoError(t, err)
		resp, err := get.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}(WithTraceID(t.Context(), batchID))
	transport.CloseIdleConnections()
	srv.Close()
	checkHop(t, client, server, "HTTP GET", "GET")
}

// checkHop wants the client's function, the client's span of the call, the server's span of it and the server's function, each below the one before, in the
// batch's trace.
func checkHop(t *testing.T, client, server *rig, clientSpan, serverSpan string) {
	t.Helper()
	sent, served := client.flush(), server.flush()
	require.Contains(t, sent, clientSpan)
	require.Contains(t, served, serverSpan)
	chain := []got{sent["generate_sequences"], sent[clientSpan], served[serverSpan], served["serve"]}
	for i, s := range chain {
		assert.EqualValues(t, uuid.MustParse(batchID), s.TraceID(), s.Name())
		if i == 0 {
			assert.True(t, s.ParentSpanID().IsEmpty())
		} else {
			assert.Equal(t, chain[i-1].SpanID(), s.ParentSpanID(), s.Name())
		}
	}
	assert.Equal(t, "data-server", sent[clientSpan].resource["service.name"])
	assert.Equal(t, "server", served[serverSpan].resource["service.name"])
}

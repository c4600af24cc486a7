package bridge

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/trainbridge/trainbridge/spans"
)

func TestNewSendsSpansAndMetrics(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,dl.rank=3")
	r := newRig(t)
	_, span := r.TracerProvider().Tracer("service").Start(t.Context(), "work")
	span.End()
	_, span = r.Tracer().Start(t.Context(), "own")
	span.End()
	counter, err := r.MeterProvider().Meter("service").Int64Counter("requests")
	require.NoError(t, err)
	counter.Add(t.Context(), 3)
	all := r.flush()

	host, err := os.Hostname()
	require.NoError(t, err)
	want := map[string]any{
		"service.name": "data-server", "ml.run.id": "run-1", "host.name": host, "process.pid": int64(os.Getpid()), "dl.rank": "3", "deployment.environment.name": "test",
		"telemetry.sdk.name": "opentelemetry", "telemetry.sdk.language": "go", "telemetry.sdk.version": "1.44.0",
	}
	assert.Equal(t, want, all["work"].resource)
	assert.Equal(t, "service", all["work"].scope)
	assert.Equal(t, "github.com/trainbridge/trainbridge/bridge", all["own"].scope)
	require.Equal(t, 1, r.collector.metrics.ResourceMetrics().Len())
	rm := r.collector.metrics.ResourceMetrics().At(0)
	assert.Equal(t, want, rm.Resource().Attributes().AsRaw())
	m := rm.ScopeMetrics().At(0).Metrics().At(0)
	assert.Equal(t, "requests", m.Name())
	assert.EqualValues(t, 3, m.Sum().DataPoints().At(0).IntValue())
	assert.Equal(t, "run-1", r.RunID())
}

func TestResource(t *testing.T) {
	program := "unknown_service:" + filepath.Base(os.Args[0])
	for name, it := range map[string]struct {
		env          map[string]string
		opts         []Option
		service, run any
	}{
		"nothing is said": {service: program},
		"environment": {
			env:     map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,ml.run.id=r1", "SLURM_JOB_ID": "7"},
			service: "a", run: "r1",
		},
		"OTEL_SERVICE_NAME comes first": {
			env:     map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "service.name=a", "OTEL_SERVICE_NAME": "b", "SLURM_JOB_ID": "7"},
			service: "b", run: "slurm-7",
		},
		"options come before the environment": {
			env:     map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,ml.run.id=r1", "OTEL_SERVICE_NAME": "b", "SLURM_JOB_ID": "7"},
			opts:    []Option{WithServiceName("c"), WithRunID("r2")},
			service: "c", run: "r2",
		},
		"empty options are none": {
			env:     map[string]string{"OTEL_SERVICE_NAME": "b", "SLURM_JOB_ID": "7"},
			opts:    []Option{WithServiceName(""), WithRunID(""), WithEndpoint("")},
			service: "b", run: "slurm-7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range it.env {
				t.Setenv(k, v)
			}
			c := startCollector(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.addr)
			b, err := New(t.Context(), it.opts...)
			require.NoError(t, err)
			_, span := b.Tracer().Start(t.Context(), "work")
			span.End()
			require.NoError(t, b.Shutdown(t.Context()))
			require.Len(t, c.spans(), 1)
			assert.Equal(t, it.service, c.spans()[0].resource["service.name"])
			assert.Equal(t, it.run, c.spans()[0].resource["ml.run.id"])
			if it.run == nil {
				it.run = ""
			}
			assert.Equal(t, it.run, b.RunID())
		})
	}
}

func TestTarget(t *testing.T) {
	const common, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for name, it := range map[string]struct {
		option string
		env    map[string]string
		want   target
	}{
		"default":              {want: target{field: "WithEndpoint", url: "http://127.0.0.1:4317", plaintext: true}},
		"http":                 {option: "http://collector:4317", want: target{field: "WithEndpoint", url: "http://collector:4317", plaintext: true}},
		"https":                {option: "https://collector:4317/", want: target{field: "WithEndpoint", url: "https://collector:4317"}},
		"https of port 443":    {option: "https://collector", want: target{field: "WithEndpoint", url: "https://collector"}},
		"capitals":             {option: "HTTPS://collector:1", want: target{field: "WithEndpoint", url: "https://collector:1"}},
		"host and port":        {option: "collector:4317", want: target{field: "WithEndpoint", url: "https://collector:4317"}},
		"address and port":     {option: "10.0.0.1:4317", want: target{field: "WithEndpoint", url: "https://10.0.0.1:4317"}},
		"localhost":            {option: "localhost:4317", want: target{field: "WithEndpoint", url: "http://localhost:4317", plaintext: true}},
		"loopback":             {option: "127.8.0.1:4317", want: target{field: "WithEndpoint", url: "http://127.8.0.1:4317", plaintext: true}},
		"loopback of IPv6":     {option: "[::1]:4317", want: target{field: "WithEndpoint", url: "http://[::1]:4317", plaintext: true}},
		"common variable":      {env: map[string]string{common: "http://a:1"}, want: target{field: common, url: "http://a:1", plaintext: true}},
		"own variable":         {env: map[string]string{common: "http://a:1", own: "https://b:2"}, want: target{field: own, url: "https://b:2"}},
		"variable of another":  {env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://b:2"}, want: target{field: "WithEndpoint", url: "http://127.0.0.1:4317", plaintext: true}},
		"option comes first":   {option: "https://c:3", env: map[string]string{common: "http://a:1", own: "http://b:2"}, want: target{field: "WithEndpoint", url: "https://c:3"}},
		"insecure":             {env: map[string]string{common: "a:1", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, want: target{field: common, url: "http://a:1", plaintext: true}},
		"insecure is no https": {env: map[string]string{common: "https://a:1", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, want: target{field: common, url: "https://a:1"}},
		"no exporter":          {env: map[string]string{"OTEL_TRACES_EXPORTER": "none"}, want: target{none: true}},
		"protocol":             {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, want: target{field: "WithEndpoint", url: "http://127.0.0.1:4317", plaintext: true}},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range it.env {
				t.Setenv(k, v)
			}
			got, err := (&settings{endpoint: it.option}).target("TRACES")
			require.NoError(t, err)
			assert.Equal(t, it.want, got)
		})
	}
}

func TestErrorsNameTheField(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "ca.pem")
	for name, it := range map[string]struct {
		opts []Option
		env  map[string]string
		want string
		is   error
	}{
		"no port":           {opts: []Option{WithEndpoint("collector")}, want: `bridge: WithEndpoint: "collector": not an endpoint`, is: ErrEndpoint},
		"http without port": {opts: []Option{WithEndpoint("http://collector")}, want: `bridge: WithEndpoint: "http://collector": `, is: ErrEndpoint},
		"scheme":            {opts: []Option{WithEndpoint("ftp://collector:1")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"path":              {opts: []Option{WithEndpoint("http://collector:4318/v1/traces")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"no host":           {opts: []Option{WithEndpoint(":4317")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"no URL":            {opts: []Option{WithEndpoint("http://[::1:4317")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"password":          {opts: []Option{WithEndpoint("http://a:b@collector:4317")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"variable":          {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector"}, want: "bridge: OTEL_EXPORTER_OTLP_ENDPOINT: ", is: ErrEndpoint},
		"own variable":      {env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "collector"}, want: "bridge: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ", is: ErrEndpoint},
		"protocol":          {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, want: `bridge: OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf": `, is: ErrProtocol},
		"exporter":          {env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, want: `bridge: OTEL_METRICS_EXPORTER: "prometheus": `, is: ErrExporter},
		"queue":             {env: map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, want: `bridge: OTEL_BSP_MAX_QUEUE_SIZE: "-1": `, is: ErrNumber},
		"interval":          {env: map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "15s"}, want: `bridge: OTEL_METRIC_EXPORT_INTERVAL: "15s": `, is: ErrNumber},
		"resource":          {env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "a"}, want: "bridge: OTEL_RESOURCE_ATTRIBUTES: "},
		"certificate": {
			opts: []Option{WithEndpoint("collector:4317")}, env: map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": missing},
			want: "bridge: OTEL_EXPORTER_OTLP_CERTIFICATE: ", is: os.ErrNotExist,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range it.env {
				t.Setenv(k, v)
			}
			b, err := New(t.Context(), it.opts...)
			require.ErrorContains(t, err, it.want)
			assert.Nil(t, b)
			if it.is != nil {
				assert.ErrorIs(t, err, it.is)
			}
		})
	}
}

// certificate is one for 127.0.0.1, and a file with it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	cert := server.TLS.Certificates[0]
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600))
	return cert, file
}

func TestTLS(t *testing.T) {
	cert, file := certificate(t)
	versions := make(chan []uint16, 2) // one per exporter
	c := startCollector(t, grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			versions <- hello.SupportedVersions
			return nil, nil
		},
	})))
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	b, err := New(t.Context(), WithEndpoint("https://"+c.addr))
	require.NoError(t, err)
	ctx := t.Context()
	b.TQFunction(&ctx, "f").End()
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Len(t, c.spans(), 1)
	assert.GreaterOrEqual(t, slices.Min(<-versions), uint16(tls.VersionTLS12))
}

// A certificate for TLS in the environment is none for the plaintext endpoint of an option.
func TestPlaintextDespiteCertificate(t *testing.T) {
	_, file := certificate(t)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://elsewhere.invalid:4317")
	r := newRig(t)
	ctx := t.Context()
	r.TQFunction(&ctx, "f").End()
	assert.Contains(t, r.flush(), "f")
}

func TestDisabled(t *testing.T) {
	t.Setenv("OTEL_SDK_DISABLED", "TRUE")
	r := newRig(t)
	ctx := WithTraceID(t.Context(), "a1b2c3d4")
	func(ctx context.Context) {
		defer r.TQFunction(&ctx, "f").End()
		n := int64(1)
		defer r.TQClientGet(&ctx).DataSize(&n).End()
	}(ctx)
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
	r.TrainStep(&ctx, 1).End()
	assert.Equal(t, remote.TraceID(), trace.SpanContextFromContext(ctx).TraceID(), "the trace of others goes through")
	assert.Empty(t, r.flush())
}

func TestSampler(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	r := newRig(t)
	ctx := WithTraceID(t.Context(), "a1b2c3d4")
	fn := r.TQFunction(&ctx, "f")
	stage := r.TQGet(&ctx)
	stage.End()
	fn.End()
	assert.Equal(t, trace.TraceID(spans.TraceID("run-1", []byte("a1b2c3d4"))), fn.SpanContext().TraceID(), "what is not sampled has ids nevertheless")
	assert.Equal(t, fn.SpanContext().TraceID(), stage.SpanContext().TraceID())
	assert.Empty(t, r.flush())
}

func TestGlobals(t *testing.T) {
	tracers, meters, propagator := otel.GetTracerProvider(), otel.GetMeterProvider(), otel.GetTextMapPropagator()
	r := newRig(t)
	assert.Equal(t, tracers, otel.GetTracerProvider())
	assert.Equal(t, meters, otel.GetMeterProvider())
	assert.Equal(t, propagator, otel.GetTextMapPropagator())
	t.Cleanup(func() {
		otel.SetTracerProvider(tracers)
		otel.SetMeterProvider(meters)
		otel.SetTextMapPropagator(propagator)
	})
	g := newRig(t, WithGlobal())
	assert.Same(t, g.TracerProvider(), otel.GetTracerProvider())
	assert.Same(t, g.MeterProvider(), otel.GetMeterProvider())
	assert.ElementsMatch(t, []string{"traceparent", "tracestate", "baggage"}, otel.GetTextMapPropagator().Fields())
	assert.NotSame(t, r.TracerProvider(), g.TracerProvider())
}

// silent accepts connections and says nothing: worse than a port that refuses them.
func silent(tb testing.TB) string {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// refusing is an address that nothing listens on.
func refusing(tb testing.TB) string {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	require.NoError(tb, listener.Close())
	return listener.Addr().String()
}

func quietErrors(tb testing.TB) {
	tb.Helper()
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	tb.Cleanup(func() { otel.SetErrorHandler(before) })
}

func TestEndpointDown(t *testing.T) {
	quietErrors(t)
	for name, addr := range map[string]func(testing.TB) string{"refusing": refusing, "silent": silent} {
		t.Run(name, func(t *testing.T) {
			b, err := New(t.Context(), WithEndpoint(addr(t)))
			require.NoError(t, err)
			heap := func() int64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			before := heap()
			for range 100_000 { // which take 150 MB
				ctx := t.Context()
				fn := b.TQFunction(&ctx, "generate_sequences")
				fn.End()
			}
			// The queue, the batch at hand and its copy for the wire: some 3,000 spans of 2 KB.
			assert.Less(t, heap()-before, int64(20<<20))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, b.Shutdown(ctx), context.Canceled)
		})
	}
}

func TestShutdownIsBounded(t *testing.T) {
	quietErrors(t)
	for _, name := range [...]string{"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_METRIC_EXPORT_TIMEOUT"} {
		t.Setenv(name, "86400000") // which bound it too, by default
	}
	b, err := New(t.Context(), WithEndpoint(silent(t)))
	require.NoError(t, err)
	assert.Equal(t, 10*time.Second, b.timeout)
	b.timeout = 50 * time.Millisecond
	ctx := t.Context()
	b.TQFunction(&ctx, "f").End()
	counter, err := b.MeterProvider().Meter("m").Int64Counter("requests")
	require.NoError(t, err)
	counter.Add(ctx, 1)
	err = b.Shutdown(context.Background()) // of no end by itself
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, err, b.Shutdown(context.Background()), "once")
}

func TestShutdownTwice(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	r.TQFunction(&ctx, "f").End()
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, r.Shutdown(t.Context()))
	r.TQFunction(&ctx, "g").End() // of no use, and no harm
	assert.Len(t, r.collector.spans(), 1)
}

// New does not connect, nor does Shutdown where there is nothing to send.
func TestNothingToSend(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	b, err := New(t.Context(), WithEndpoint(listener.Addr().String()))
	require.NoError(t, err)
	require.NoError(t, b.Shutdown(t.Context()))
	own, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	defer own.Close()
	first, err := listener.Accept()
	require.NoError(t, err)
	defer first.Close()
	assert.Equal(t, own.LocalAddr().String(), first.RemoteAddr().String(), "someone else had connected before")
}

func TestNoMetricsAreNotSent(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Zero(t, r.collector.metrics.ResourceMetrics().Len())
}

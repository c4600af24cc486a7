package bridge

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trainbridge/trainbridge/internal/porttest"
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
		"service.name": "data-server", "ml.run.id": "run-1", "host.name": host, "process.pid": int64(os.Getpid()), "dl.rank": "3",
		"deployment.environment.name": "test",
		"telemetry.sdk.name":          "opentelemetry", "telemetry.sdk.language": "go", "telemetry.sdk.version": "1.44.0",
	}
	want["service.instance.id"] = all["work"].resource["service.instance.id"] // random
	_, err = uuid.Parse(fmt.Sprint(want["service.instance.id"]))
	require.NoError(t, err)
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

	other := newRig(t)
	_, span = other.Tracer().Start(t.Context(), "work")
	span.End()
	assert.NotEqual(t, want["service.instance.id"], other.flush()["work"].resource["service.instance.id"], "of another process")
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
		"default":            {want: target{field: "WithEndpoint", url: "http://127.0.0.1:4317", plaintext: true}},
		"http":               {option: "http://collector:4317", want: target{field: "WithEndpoint", url: "http://collector:4317", plaintext: true}},
		"https":              {option: "https://collector:4317/", want: target{field: "WithEndpoint", url: "https://collector:4317"}},
		"https of port 443":  {option: "https://collector", want: target{field: "WithEndpoint", url: "https://collector"}},
		"capitals":           {option: "HTTPS://collector:1", want: target{field: "WithEndpoint", url: "https://collector:1"}},
		"host and port":      {option: "collector:4317", want: target{field: "WithEndpoint", url: "https://collector:4317"}},
		"address and port":   {option: "10.0.0.1:4317", want: target{field: "WithEndpoint", url: "https://10.0.0.1:4317"}},
		"localhost":          {option: "localhost:4317", want: target{field: "WithEndpoint", url: "http://localhost:4317", plaintext: true}},
		"loopback":           {option: "127.8.0.1:4317", want: target{field: "WithEndpoint", url: "http://127.8.0.1:4317", plaintext: true}},
		"loopback of IPv6":   {option: "[::1]:4317", want: target{field: "WithEndpoint", url: "http://[::1]:4317", plaintext: true}},
		"any case of a name": {option: "LOCALHOST:4317", want: target{field: "WithEndpoint", url: "http://LOCALHOST:4317", plaintext: true}},
		"IPv6 with a zone":   {option: "https://[fe80::1%25eth0]:4317", want: target{field: "WithEndpoint", url: "https://[fe80::1%25eth0]:4317"}}, // as in a URL
		"IPv6 of port 443":   {option: "https://[::1]", want: target{field: "WithEndpoint", url: "https://[::1]"}},
		"largest port":       {option: "https://c:65535", want: target{field: "WithEndpoint", url: "https://c:65535"}},
		"blanks":             {env: map[string]string{common: " http://a:1 "}, want: target{field: common, url: "http://a:1", plaintext: true}},
		"common variable":    {env: map[string]string{common: "http://a:1"}, want: target{field: common, url: "http://a:1", plaintext: true}},
		"own variable":       {env: map[string]string{common: "http://a:1", own: "https://b:2"}, want: target{field: own, url: "https://b:2"}},
		"variable of another": {
			env:  map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://b:2"},
			want: target{field: "WithEndpoint", url: "http://127.0.0.1:4317", plaintext: true},
		},
		"option comes first": {
			option: "https://c:3", env: map[string]string{common: "http://a:1", own: "http://b:2"}, want: target{field: "WithEndpoint", url: "https://c:3"},
		},
		"insecure": {
			env: map[string]string{common: "a:1", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, want: target{field: common, url: "http://a:1", plaintext: true},
		},
		"insecure is no https": {
			env: map[string]string{common: "https://a:1", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, want: target{field: common, url: "https://a:1"},
		},
		"no exporter": {env: map[string]string{"OTEL_TRACES_EXPORTER": "none"}, want: target{none: true}},
		"protocol": {
			env:  map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"},
			want: target{field: "WithEndpoint", url: "http://127.0.0.1:4317", plaintext: true},
		},
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

func TestErrorsNameTheOption(t *testing.T) {
	checkRefused(t, map[string]refused{
		"no port":           {opts: []Option{WithEndpoint("collector")}, want: `bridge: WithEndpoint: "collector": not an endpoint`, is: ErrEndpoint},
		"http without port": {opts: []Option{WithEndpoint("http://collector")}, want: `bridge: WithEndpoint: "http://collector": `, is: ErrEndpoint},
		"scheme":            {opts: []Option{WithEndpoint("ftp://collector:1")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"path":              {opts: []Option{WithEndpoint("http://collector:4318/v1/traces")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"no host":           {opts: []Option{WithEndpoint(":4317")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"no URL":            {opts: []Option{WithEndpoint("http://[::1:4317")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"password":          {opts: []Option{WithEndpoint("http://a:b@collector:4317")}, want: "bridge: WithEndpoint: not an endpoint", is: ErrEndpoint},
		"port 0":            {opts: []Option{WithEndpoint("collector:0")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"port too large":    {opts: []Option{WithEndpoint("https://collector:65536")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"port has no end":   {opts: []Option{WithEndpoint("https://collector:")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"empty port":        {opts: []Option{WithEndpoint("collector:")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"name of a port":    {opts: []Option{WithEndpoint("collector:otlp")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"IPv6 in no []":     {opts: []Option{WithEndpoint("::1:4317")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"socket":            {opts: []Option{WithEndpoint("unix:///run/otlp.sock")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"socket, no slash":  {opts: []Option{WithEndpoint("unix:/run/otlp.sock")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"resolver of gRPC":  {opts: []Option{WithEndpoint("dns:///collector:4317")}, want: "bridge: WithEndpoint: ", is: ErrEndpoint},
		"service name":      {opts: []Option{WithServiceName("a\xff")}, want: `bridge: WithServiceName: "a\xff": not UTF-8`, is: ErrText},
		"hidden":            {opts: []Option{WithServiceName("a\u202eb")}, want: "bridge: WithServiceName: ", is: ErrText},
		"run id":            {opts: []Option{WithRunID("a\xff")}, want: "bridge: WithRunID: ", is: ErrText},
	})
}

func TestErrorsNameTheVariable(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "ca.pem")
	checkRefused(t, map[string]refused{
		"variable": {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector"}, want: "bridge: OTEL_EXPORTER_OTLP_ENDPOINT: ", is: ErrEndpoint},
		"own variable": {
			env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "collector"}, want: "bridge: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ", is: ErrEndpoint,
		},
		"protocol": {
			env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, want: `bridge: OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf": `, is: ErrProtocol,
		},
		"exporter": {env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, want: `bridge: OTEL_METRICS_EXPORTER: "prometheus": `, is: ErrExporter},
		"queue":    {env: map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, want: `bridge: OTEL_BSP_MAX_QUEUE_SIZE: "-1": `, is: ErrNumber},
		"interval": {env: map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "15s"}, want: `bridge: OTEL_METRIC_EXPORT_INTERVAL: "15s": `, is: ErrNumber},
		"queue too large": {
			env: map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "9223372036854775807"}, want: `bridge: OTEL_BSP_MAX_QUEUE_SIZE: "9223372036854775807": `, is: ErrNumber,
		},
		"batch too large": {
			env: map[string]string{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1048577"}, want: `bridge: OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "1048577": `, is: ErrNumber,
		},
		// 5000 to the SDK
		"number in blanks": {env: map[string]string{"OTEL_BSP_SCHEDULE_DELAY": " 5 "}, want: `bridge: OTEL_BSP_SCHEDULE_DELAY: " 5 ": `, is: ErrNumber},
		"timeout":          {env: map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, want: `bridge: OTEL_EXPORTER_OTLP_TIMEOUT: "10s": `, is: ErrNumber},
		"compression": {
			env: map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, want: `bridge: OTEL_EXPORTER_OTLP_COMPRESSION: "zstd": `, is: ErrCompression,
		},
		"sampler": {env: map[string]string{"OTEL_TRACES_SAMPLER": "sometimes"}, want: `bridge: OTEL_TRACES_SAMPLER: "sometimes": `, is: ErrSampler},
		"ratio": {
			env: map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "10%"}, want: `bridge: OTEL_TRACES_SAMPLER_ARG: "10%": `,
			is: ErrRatio,
		},
		"ratio above 1": {
			env: map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1.5"}, want: "bridge: OTEL_TRACES_SAMPLER_ARG: ",
			is: ErrRatio,
		},
		"ratio is no number": {
			env:  map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"},
			want: "bridge: OTEL_TRACES_SAMPLER_ARG: ", is: ErrRatio,
		},
		"name of env": {env: map[string]string{"OTEL_SERVICE_NAME": "a\xff"}, want: "bridge: OTEL_SERVICE_NAME: ", is: ErrText},
		"job":         {env: map[string]string{"SLURM_JOB_ID": "a\xff"}, want: "bridge: SLURM_JOB_ID: ", is: ErrText},
		"escape":      {env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "a=1,b=%ff"}, want: `bridge: OTEL_RESOURCE_ATTRIBUTES: "b": not UTF-8`, is: ErrText},
		"resource":    {env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "a"}, want: "bridge: OTEL_RESOURCE_ATTRIBUTES: "},
		"certificate": {
			opts: []Option{WithEndpoint("collector:4317")}, env: map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": missing},
			want: "bridge: OTEL_EXPORTER_OTLP_CERTIFICATE: ", is: os.ErrNotExist,
		},
	})
}

// refused is a configuration that New refuses, and parts of its error.
type refused struct {
	opts []Option
	env  map[string]string
	want string
	is   error
}

func checkRefused(t *testing.T, cases map[string]refused) {
	t.Helper()
	for name, it := range cases {
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

// Errors are logged, so their text must not contain possible secrets.
func TestErrorsTellNoSecret(t *testing.T) {
	for name, it := range map[string]struct {
		opts []Option
		env  map[string]string
		is   error
	}{
		"password":           {opts: []Option{WithEndpoint("http://user:s3cret@collector:4317")}, is: ErrEndpoint},
		"without scheme":     {opts: []Option{WithEndpoint("user:s3cret@collector:4317")}, is: ErrEndpoint},
		"no URL":             {opts: []Option{WithEndpoint("http://user:s3cret @collector:4317")}, is: ErrEndpoint},
		"query":              {opts: []Option{WithEndpoint("https://collector:4317?token=s3cret")}, is: ErrEndpoint},
		"variable":           {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://s3cret@collector:4317"}, is: ErrEndpoint},
		"header without =":   {env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "Authorization: Bearer s3cret"}, is: ErrHeaders},
		"header of a signal": {env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "s3cret"}, is: ErrHeaders},
		"header in vain": {
			env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "s3cret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=b", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a=b"},
			is:  ErrHeaders,
		},
		"name of a header": {env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "s3cret key=a"}, is: ErrHeaders},
		"escape":           {env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "key=s3cret%zz"}, is: ErrHeaders},
		"not to be sent":   {env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "key=s3cret%0Akey2"}, is: ErrHeaders},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range it.env {
				t.Setenv(k, v)
			}
			_, err := New(t.Context(), it.opts...)
			require.ErrorIs(t, err, it.is)
			assert.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestValidHeaders(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "a=b": true, " a = b , c=d,": true, "Authorization=Bearer%20abc==": true, "a=": true, "x-a_b.c=1": true,
		"a": false, "a=b,c": false, "=b": false, "a b=c": false, "a=%": false, "a=%C3%A9": false, "a=\u00e9": false, "a/b=c": false,
	} {
		assert.Equal(t, want, validHeaders(text), text)
	}
}

func TestHeadersAndCompression(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abc, tenant=a")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "tenant=b")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	sent := make(chan metadata.MD, 1)
	c := startCollector(t, grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		sent <- md
		return handler(ctx, req)
	}))
	b, err := New(t.Context(), WithEndpoint(c.addr))
	require.NoError(t, err)
	ctx := t.Context()
	_, s := b.StartFunction(ctx, "f")
	s.End()
	require.NoError(t, b.Shutdown(t.Context()))
	md := <-sent
	assert.Equal(t, []string{"b"}, md.Get("tenant"))
	assert.Empty(t, md.Get("authorization"), "the headers of a signal replace all others: so the SDK does")
	assert.Len(t, c.spans(), 1)
}

// certificate is a certificate for 127.0.0.1, and a file with it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	cert := server.TLS.Certificates[0]
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600))
	return cert, file
}

// Unusable certificates and keys are errors: the SDK would continue without them, with the system's certificates.
func TestCertificatesAreLookedAt(t *testing.T) {
	cert, ca := certificate(t)
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, text, 0o600))
		return name
	}
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	_, other, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	otherDER, err := x509.MarshalPKCS8PrivateKey(other)
	require.NoError(t, err)
	key := file("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	otherKey := file("other.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: otherDER}))
	garbage := file("garbage.pem", []byte("garbage"))
	const trusted, chain, private = "OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY"
	for name, it := range map[string]struct {
		env  map[string]string
		want string
	}{
		"all":    {env: map[string]string{trusted: ca, chain: ca, private: key}},
		"no PEM": {env: map[string]string{trusted: garbage}, want: "bridge: " + trusted + ": not a certificate"},
		"of a signal": {
			env:  map[string]string{trusted: ca, "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE": garbage},
			want: "bridge: OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE: not a certificate",
		},
		"key is missing":    {env: map[string]string{chain: ca}, want: "bridge: " + chain + ": "},
		"key alone":         {env: map[string]string{private: key}, want: "bridge: " + private + ": "},
		"key of another":    {env: map[string]string{chain: ca, private: otherKey}, want: "bridge: " + chain + ": "},
		"key is no file":    {env: map[string]string{chain: ca, private: dir}, want: "bridge: " + private + ": "},
		"client is no PEM":  {env: map[string]string{chain: garbage, private: key}, want: "bridge: " + chain + ": "},
		"plaintext is none": {env: map[string]string{trusted: garbage, "OTEL_EXPORTER_OTLP_INSECURE": "TRUE"}},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range it.env {
				t.Setenv(k, v)
			}
			b, err := New(t.Context(), WithEndpoint("collector:4317"))
			if it.want == "" {
				require.NoError(t, err)
				assert.NoError(t, b.Shutdown(t.Context()))
				return
			}
			require.ErrorContains(t, err, it.want)
		})
	}
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
	_, s := b.StartFunction(ctx, "f")
	s.End()
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
	_, s := r.StartFunction(ctx, "f")
	s.End()
	assert.Contains(t, r.flush(), "f")
}

func TestDisabled(t *testing.T) {
	t.Setenv("OTEL_SDK_DISABLED", "TRUE")
	r := newRig(t)
	ctx := WithTraceID(t.Context(), "a1b2c3d4")
	func(ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "f")
		defer s.End()
		n := int64(1)
		_, s = r.StartClientGet(ctx)
		defer s.DataSize(&n).End()
	}(ctx)
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
	ctx, s := r.StartStep(ctx, 1)
	s.End()
	assert.Equal(t, remote.TraceID(), trace.SpanContextFromContext(ctx).TraceID(), "the trace of others goes through")
	assert.Empty(t, r.flush())
}

func TestSampler(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	r := newRig(t)
	ctx := WithTraceID(t.Context(), "a1b2c3d4")
	ctx, fn := r.StartFunction(ctx, "f")
	_, stage := r.StartGet(ctx)
	stage.End()
	fn.End()
	assert.Equal(t, trace.TraceID(spans.TraceID("run-1", []byte("a1b2c3d4"))), fn.SpanContext().TraceID(), "what is not sampled has ids nevertheless")
	assert.Equal(t, fn.SpanContext().TraceID(), stage.SpanContext().TraceID())
	assert.Empty(t, r.flush())
}

// A ratio of the traces is sampled, for any ids, and every process samples the same traces.
func TestRatio(t *testing.T) {
	for name, traceOf := range map[string]func(context.Context, int) context.Context{
		"UUIDs":  func(ctx context.Context, _ int) context.Context { return WithTraceID(ctx, uuid.NewString()) }, // bits 64 and 65 are always 10
		"texts":  func(ctx context.Context, i int) context.Context { return WithTraceID(ctx, strconv.Itoa(i)) },
		"steps":  func(ctx context.Context, i int) context.Context { return WithStep(ctx, int64(i)) },
		"random": func(ctx context.Context, _ int) context.Context { return ctx },
	} {
		for _, sampler := range []string{"traceidratio", " PARENTBASED_traceidratio "} {
			t.Run(name+" "+sampler, func(t *testing.T) {
				t.Setenv("OTEL_TRACES_SAMPLER", sampler)
				t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.25")
				one, two := newRig(t), newRig(t)
				sampled := 0
				for i := range 4000 {
					ctx := traceOf(t.Context(), i)
					ctx, s := one.StartFunction(ctx, "f")
					if s.SpanContext().IsSampled() {
						sampled++
					}
					_, get := two.StartGet(ctx)
					assert.Equal(t, s.SpanContext().IsSampled(), get.SpanContext().IsSampled())
				}
				assert.InDelta(t, 1000, sampled, 200) // 7 standard deviations
			})
		}
	}
}

func TestSamplerOfTheParent(t *testing.T) {
	for sampler, want := range map[string][3]bool{ // a root; a child of a sampled span; a child of an unsampled span
		"":                         {true, true, false},
		"always_on":                {true, true, true},
		"Always_Off":               {false, false, false},
		"parentbased_always_on":    {true, true, false},
		"parentbased_always_off":   {false, true, false},
		"traceidratio":             {true, true, true},
		"parentbased_traceidratio": {true, true, false},
	} {
		t.Run(sampler, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", sampler)
			r := newRig(t)
			for i, parent := range []trace.SpanContextConfig{
				{}, {TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled}, {TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}},
			} {
				ctx := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(parent))
				_, s := r.StartFunction(ctx, "f")
				assert.Equal(t, want[i], s.SpanContext().IsSampled(), i)
			}
		})
	}
}

// A nil bridge is switched off.
func TestNilBridge(t *testing.T) {
	var b *Bridge
	n := int64(1)
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), remote)
	err := errors.New("failed")
	for _, start := range []func(context.Context) (context.Context, *Span){
		func(ctx context.Context) (context.Context, *Span) { return b.StartStep(ctx, 1) },
		func(ctx context.Context) (context.Context, *Span) { return b.StartFunction(ctx, "f") },
		func(ctx context.Context) (context.Context, *Span) { return b.StartGet(ctx) },
		func(ctx context.Context) (context.Context, *Span) { return b.StartCompute(ctx) },
		func(ctx context.Context) (context.Context, *Span) { return b.StartPut(ctx) },
		func(ctx context.Context) (context.Context, *Span) { return b.StartClientGet(ctx) },
		func(ctx context.Context) (context.Context, *Span) { return b.StartClientPut(ctx) },
		func(ctx context.Context) (context.Context, *Span) { return b.StartRPC(ctx, "zeromq", "a") },
		b.StartRPCSerialize, b.StartRPCSend, b.StartRPCReceive, b.StartRPCDeserialize,
	} {
		var s *Span
		ctx, s = start(ctx) //nolint:fatcontext // helpers that follow one another in one scope
		assert.False(t, s.IsRecording())
		s.DataSize(&n).MessageSizes(&n, &n).EndErr(&err)
	}
	assert.Equal(t, remote.TraceID(), trace.SpanContextFromContext(ctx).TraceID())
	assert.PanicsWithValue(t, "broken", func() {
		_, s := b.StartFunction(ctx, "f")
		defer s.End()
		panic("broken")
	})
	_, span := b.Tracer().Start(t.Context(), "a")
	span.End()
	_, span = b.TracerProvider().Tracer("a").Start(t.Context(), "a")
	span.End()
	counter, err := b.MeterProvider().Meter("a").Int64Counter("a")
	require.NoError(t, err)
	counter.Add(ctx, 1)
	assert.NotEmpty(t, b.Propagator().Fields())
	assert.Empty(t, b.RunID())
	require.NoError(t, b.Shutdown(ctx))
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

	// Spans and metrics of a library by package otel leave by the first bridge, and none by the second.
	_, span := otel.Tracer("library").Start(WithStep(t.Context(), 7), "load")
	span.End()
	counter, err := otel.Meter("library").Int64Counter("loads")
	require.NoError(t, err)
	counter.Add(t.Context(), 1)
	load := g.flush()["load"]
	assert.Equal(t, spans.StepTraceID("run-1", 7), load.TraceID())
	assert.Equal(t, "library", load.scope)
	assert.Equal(t, 1, g.collector.metrics.DataPointCount())
	assert.Empty(t, r.flush())
}

// silent accepts connections and never answers: worse than a refused connection.
func silent(tb testing.TB) string {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// refusing is an address without a listener.
func refusing(tb testing.TB) string {
	tb.Helper()
	return porttest.Addr(tb)
}

func quietErrors(tb testing.TB) {
	tb.Helper()
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	tb.Cleanup(func() { otel.SetErrorHandler(before) })
}

// collectorThat is a collector with prepared answers.
func collectorThat(answers func(context.Context) error) func(testing.TB) string {
	return func(tb testing.TB) string {
		tb.Helper()
		return startCollector(tb, grpc.UnaryInterceptor(func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			return nil, answers(ctx)
		})).addr
	}
}

func exhausted(tb testing.TB, retry time.Duration) error {
	tb.Helper()
	s := status.New(codes.ResourceExhausted, "too much")
	if retry > 0 {
		info, err := protoregistry.GlobalTypes.FindMessageByName("google.rpc.RetryInfo")
		require.NoError(tb, err)
		m := info.New()
		m.Set(info.Descriptor().Fields().ByName("retry_delay"), protoreflect.ValueOfMessage(durationpb.New(retry).ProtoReflect()))
		s, err = s.WithDetails(protoadapt.MessageV1Of(m.Interface()))
		require.NoError(tb, err)
	}
	return s.Err()
}

// With any behaviour of the collector, a service runs at its own pace with bounded memory.
func TestEndpointDown(t *testing.T) {
	quietErrors(t)
	cert, _ := certificate(t)
	withTLS := func(tb testing.TB) string {
		tb.Helper()
		return startCollector(tb, grpc.Creds(credentials.NewServerTLSFromCert(&cert))).addr
	}
	now, later := exhausted(t, 0), exhausted(t, 24*time.Hour)
	calls := 50_000 // of 75 MB in total
	if testing.Short() {
		calls = 20_000
	}
	for name, addr := range map[string]func(testing.TB) string{
		"refuses connections":   refusing,
		"silent":                silent,
		"slow":                  collectorThat(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }),
		"refuses":               collectorThat(func(context.Context) error { return now }),
		"refuses for a day":     collectorThat(func(context.Context) error { return later }),
		"is away":               collectorThat(func(context.Context) error { return status.Error(codes.Unavailable, "away") }),
		"wants TLS":             withTLS,
		"of another authority":  func(tb testing.TB) string { tb.Helper(); return "https://" + withTLS(tb) },
		"has no TLS":            func(tb testing.TB) string { tb.Helper(); return "https://" + startCollector(tb).addr },
		"has no address either": func(testing.TB) string { return "https://collector.invalid:4317" },
	} {
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
			for range calls {
				ctx := t.Context()
				_, fn := b.StartFunction(ctx, "generate_sequences")
				fn.End()
			}
			// The queue, the current batch and its copy for the wire: some 3,000 spans of 2 KB.
			assert.Less(t, heap()-before, int64(20<<20))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, b.Shutdown(ctx), context.Canceled)
		})
	}
}

// A busy service whose collector refuses everything has one line in its log, not one per batch.
func TestErrorsOfABusyService(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	handled := make(chan error, 100)
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled <- err }))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	calls := make(chan struct{}, 100)
	b, err := New(
		t.Context(), WithEndpoint(collectorThat(func(context.Context) error { calls <- struct{}{}; return status.Error(codes.PermissionDenied, "no") })(t)),
	)
	require.NoError(t, err)
	ctx := t.Context()
	for range 20 {
		_, s := b.StartStep(ctx, 1)
		s.End()
	}
	for range 20 {
		<-calls
	}
	require.Error(t, <-handled)
	_ = b.Shutdown(t.Context()) // Shutdown may wait for the last answer, and return its error
	assert.Empty(t, handled)
}

// The error of Shutdown reports lost spans, with the reason.
func TestShutdownTellsOfLostSpans(t *testing.T) {
	handled := make(chan error, 10)
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled <- err }))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	for name, retry := range map[string]time.Duration{"at once": 0, "in a day": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			answer := exhausted(t, retry)
			b, err := New(t.Context(), WithEndpoint(collectorThat(func(context.Context) error { return answer })(t)))
			require.NoError(t, err)
			ctx := t.Context()
			_, s := b.StartFunction(ctx, "f")
			s.End()
			require.ErrorContains(t, b.Shutdown(t.Context()), "too much")
			assert.Empty(t, handled, "it is told once")
		})
	}
}

// Others may still be at work.
func TestShutdownMeanwhile(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	begun := make(chan struct{}, 4)
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				ctx := WithTraceID(t.Context(), "a")
				ctx, fn := r.StartFunction(ctx, "f")
				_, s := r.StartGet(ctx)
				s.End()
				fn.End()
				if i == 10 {
					begun <- struct{}{}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 4 {
		<-begun
	}
	require.NoError(t, r.Shutdown(t.Context()))
	close(stop)
	wg.Wait()
	assert.NotEmpty(t, r.collector.spans())
}

func TestShutdownIsBounded(t *testing.T) {
	quietErrors(t)
	for _, name := range [...]string{"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_METRIC_EXPORT_TIMEOUT"} {
		t.Setenv(name, "86400000") // further default bounds
	}
	b, err := New(t.Context(), WithEndpoint(silent(t)))
	require.NoError(t, err)
	assert.Equal(t, 10*time.Second, b.timeout)
	b.timeout = 50 * time.Millisecond
	ctx := t.Context()
	ctx, s := b.StartFunction(ctx, "f")
	s.End()
	counter, err := b.MeterProvider().Meter("m").Int64Counter("requests")
	require.NoError(t, err)
	counter.Add(ctx, 1)
	err = b.Shutdown(context.Background()) // without a deadline of its own
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, err, b.Shutdown(context.Background()), "once")
}

func TestShutdownTwice(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	ctx, s := r.StartFunction(ctx, "f")
	s.End()
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, r.Shutdown(t.Context()))
	_, s = r.StartFunction(ctx, "g")
	s.End() // does nothing, and no harm
	assert.Len(t, r.collector.spans(), 1)
}

// New does not connect, nor does Shutdown with nothing to send.
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

package otlpackedexporter

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter/internal/metadata"
	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter/internal/metadatatest"
	"github.com/trainbridge/trainbridge/internal/health/healthtest"
	"github.com/trainbridge/trainbridge/internal/refusal"
	vocabulary "github.com/trainbridge/trainbridge/spans"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
)

// backend is a real OTLP/gRPC server with prepared answers; afterwards it accepts.
type backend struct {
	ptraceotlp.UnimplementedGRPCServer
	mu      sync.Mutex
	answers []error
	partial int64
	text    string
	calls   int
	names   map[string]int // of the spans accepted
	last    ptrace.Span
	points  int
}

func (b *backend) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	resp := ptraceotlp.NewExportResponse()
	if len(b.answers) > 0 {
		err := b.answers[0]
		b.answers = b.answers[1:]
		if err != nil {
			return resp, err
		}
	}
	for _, rs := range r.Traces().ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			b.names[s.Name()]++
			b.last = s
		}
	}
	resp.PartialSuccess().SetRejectedSpans(b.partial)
	resp.PartialSuccess().SetErrorMessage(b.text)
	return resp, nil
}

type pointServer struct {
	pmetricotlp.UnimplementedGRPCServer
	b *backend
}

func (p *pointServer) Export(_ context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.points += r.Metrics().DataPointCount()
	resp := pmetricotlp.NewExportResponse()
	resp.PartialSuccess().SetRejectedDataPoints(p.b.partial)
	return resp, nil
}

func serve(t *testing.T, b *backend, opts ...grpc.ServerOption) string {
	t.Helper()
	b.names = map[string]int{}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := grpc.NewServer(opts...)
	ptraceotlp.RegisterGRPCServer(srv, b)
	pmetricotlp.RegisterGRPCServer(srv, &pointServer{b: b})
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(srv.Stop)
	return ln.Addr().String()
}

type rig struct {
	exporter.Traces
	metrics exporter.Metrics
	logs    *observer.ObservedLogs
	tel     *componenttest.Telemetry
}

func connect(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.TLS.Insecure = true
	cfg.Compression = configcompression.Type("none")
	cfg.RetryConfig.InitialInterval, cfg.RetryConfig.MaxInterval = time.Millisecond, time.Millisecond
	change(cfg)
	require.NoError(t, cfg.Validate())
	r := &rig{tel: componenttest.NewTelemetry()}
	core, logs := observer.New(zap.InfoLevel)
	r.logs = logs
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.tel.NewTelemetrySettings()
	set.Logger = zap.New(core)
	var err error
	r.Traces, err = createTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	r.metrics, err = createMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, r.metrics.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, r.Shutdown(context.Background()))
		require.NoError(t, r.metrics.Shutdown(context.Background()))
		require.NoError(t, r.tel.Shutdown(context.Background()))
	})
	return r
}

func grpcTo(addr string) func(*Config) { return func(c *Config) { c.Endpoint = addr } }

func numbered(n, size int) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := range n {
		if i%10 == 0 {
			td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
		}
		s := td.ResourceSpans().At(i / 10).ScopeSpans().At(0).Spans().AppendEmpty()
		s.SetName(strconv.Itoa(i))
		s.Attributes().PutStr("text", strings.Repeat("x", size))
	}
	return td
}

// For every error of the backend, the data waits and is accepted later; only INVALID_ARGUMENT is the data's fault.
func TestCodes(t *testing.T) {
	withDelay, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)})
	require.NoError(t, err)
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			fault := status.Error(code, "no")
			b := &backend{answers: []error{fault, fault, withDelay.Err()}}
			r := connect(t, grpcTo(serve(t, b)))
			err := r.ConsumeTraces(t.Context(), numbered(20, 0))
			if code == codes.InvalidArgument {
				require.True(t, consumererror.IsPermanent(err), "%v", err)
				require.True(t, refusal.OfData(err))
				assert.Empty(t, r.logs.All(), "the receiver finds the record and says so")
				return
			}
			require.NoError(t, err)
			assert.Len(t, b.names, 20)
			assert.Equal(t, 4, b.calls)
			texts := r.logs.All()
			require.Len(t, texts, 2, "once a minute, and when it is over")
			assert.Contains(t, texts[0].Message, "20 items held")
			assert.Contains(t, texts[1].Message, "accepts again")
			assert.Empty(t, texts[0].Stack)
		})
	}
}

func TestPartialSuccess(t *testing.T) {
	b := &backend{partial: 7, text: "seven are bad"}
	r := connect(t, grpcTo(serve(t, b)))
	err := r.ConsumeTraces(t.Context(), numbered(20, 0))
	var partial *refusal.Partial
	require.ErrorAs(t, err, &partial)
	assert.EqualValues(t, 7, partial.Rejected)
	assert.Equal(t, "seven are bad", partial.Message)
	assert.Equal(t, 1, b.calls, "not sent again")

	md := pmetric.NewMetrics()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	require.ErrorAs(t, r.metrics.ConsumeMetrics(t.Context(), md), &partial)
	metadatatest.AssertEqualExporterOtlpAckedRejected(
		t, r.tel, []metricdata.DataPoint[int64]{{Value: 14}}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars(),
	)

	b.partial, b.text = 0, "only a word"
	require.NoError(t, r.ConsumeTraces(t.Context(), numbered(1, 0)))
}

// A collector between the receivers and the backend passes on the backend's answer. Its OTLP receiver can only report success for all, or an error.
func TestGateway(t *testing.T) {
	b := &backend{partial: 7, text: "seven are bad"}
	f := otlpreceiver.NewFactory()
	cfg := f.CreateDefaultConfig().(*otlpreceiver.Config)
	address := &cfg.Protocols.GRPC.GetOrInsertDefault().NetAddr
	address.Transport, address.Endpoint = "unix", t.TempDir()+"/otlp"
	gateway, err := f.CreateTraces(t.Context(), receivertest.NewNopSettings(f.Type()), cfg, connect(t, grpcTo(serve(t, b))))
	require.NoError(t, err)
	require.NoError(t, gateway.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, gateway.Shutdown(context.Background())) })

	r := connect(t, grpcTo("unix://"+address.Endpoint))
	var partial *refusal.Partial
	require.ErrorAs(t, r.ConsumeTraces(t.Context(), numbered(20, 0)), &partial)
	assert.Equal(t, refusal.Partial{Rejected: 7, Message: "seven are bad"}, *partial)
	assert.Equal(t, 1, b.calls, "not sent again")

	b.answers, b.partial, b.text = []error{status.Error(codes.InvalidArgument, "bad"), status.Error(codes.Unauthenticated, "expired")}, 0, ""
	require.True(t, refusal.OfData(r.ConsumeTraces(t.Context(), numbered(20, 0))))
	require.NoError(t, r.ConsumeTraces(t.Context(), numbered(20, 0)), "waited for")
	assert.Equal(t, 4, b.calls)
}

// A server's limit of the message size is found, for any limit.
func TestTooLarge(t *testing.T) {
	b := &backend{}
	r := connect(t, grpcTo(serve(t, b, grpc.MaxRecvMsgSize(4000))))
	require.NoError(t, r.ConsumeTraces(t.Context(), numbered(200, 500)))
	assert.Len(t, b.names, 200)
	for name, n := range b.names {
		assert.Equal(t, 1, n, name)
	}

	td := numbered(3, 0)
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1).Attributes().PutStr("text", strings.Repeat("é", 50_000))
	require.NoError(t, r.ConsumeTraces(t.Context(), td))
	assert.Equal(t, 2, b.names["1"], "cut, not lost")
	metadatatest.AssertEqualExporterOtlpAckedTrimmed(
		t, r.tel, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars(),
	)
}

func TestTrimmedSpanSaysSo(t *testing.T) {
	b := &backend{}
	r := connect(t, grpcTo(serve(t, b, grpc.MaxRecvMsgSize(1000))))
	td := numbered(1, 100_000)
	span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	span.Events().AppendEmpty().SetName(strings.Repeat("e", 5000))
	require.NoError(t, r.ConsumeTraces(t.Context(), td))
	cut, ok := b.last.Attributes().Get(vocabulary.AttrTrimmed)
	require.True(t, ok)
	left, _ := b.last.Attributes().Get("text")
	assert.EqualValues(t, 100_000-len(left.Str()), cut.Int())
	whole, _ := span.Attributes().Get("text")
	assert.Len(t, whole.Str(), 100_000, "others hold the same data")
}

// A message that cannot be made small enough is refused, not sent for ever.
func TestNeverSmallEnough(t *testing.T) {
	r := connect(t, grpcTo(serve(t, &backend{}, grpc.MaxRecvMsgSize(10))))
	err := r.ConsumeTraces(t.Context(), numbered(1, 100))
	require.True(t, refusal.OfData(err), "%v", err)
}

// When a part was accepted, only the rest is sent again.
func TestPartsAreNotRepeated(t *testing.T) {
	b := &backend{
		answers: []error{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), nil, status.Error(codes.Unavailable, "away")},
	}
	r := connect(t, grpcTo(serve(t, b)))
	require.NoError(t, r.ConsumeTraces(t.Context(), numbered(40, 0)))
	assert.Len(t, b.names, 40)
	for name, n := range b.names {
		assert.Equal(t, 1, n, name)
	}
}

// Rejected items of one part are still counted when another part has to be sent again.
func TestPartlyRejectedPart(t *testing.T) {
	b := &backend{
		partial: 3, text: "bad",
		answers: []error{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), nil, status.Error(codes.Unavailable, "away")},
	}
	r := connect(t, grpcTo(serve(t, b)))
	var partial *refusal.Partial
	require.ErrorAs(t, r.ConsumeTraces(t.Context(), numbered(40, 0)), &partial)
	assert.Equal(t, refusal.Partial{Rejected: 6, Message: "bad"}, *partial, "of two parts")
	assert.Len(t, b.names, 40)
	metadatatest.AssertEqualExporterOtlpAckedRejected(
		t, r.tel, []metricdata.DataPoint[int64]{{Value: 6}}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars(),
	)
}

// Record-only spans are for collectors: a backend gets the rest of the message, and the message itself stays unchanged.
func TestRecordOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		send  bool
		only  []int // resources, of ten spans each
		sent  int
		calls int
	}{
		"none":                 {false, nil, 30, 1},
		"some":                 {false, []int{0, 2}, 10, 1},
		"all":                  {false, []int{0, 1, 2}, 0, 0},
		"to another collector": {true, []int{0, 1, 2}, 30, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := &backend{}
			addr := serve(t, b)
			r := connect(t, func(c *Config) { c.Endpoint, c.RecordOnly = addr, tt.send })
			td := numbered(30, 0)
			for _, i := range tt.only {
				td.ResourceSpans().At(i).Resource().Attributes().PutBool(vocabulary.AttrRecordOnly, true)
			}
			td.MarkReadOnly()
			require.NoError(t, r.ConsumeTraces(t.Context(), td))
			assert.Len(t, b.names, tt.sent)
			assert.Equal(t, tt.calls, b.calls)
			for _, i := range tt.only {
				assert.Equal(t, tt.send, b.names[strconv.Itoa(10*i)] == 1)
			}
		})
	}
}

// Requests waiting for their next attempt are held as well.
func TestAllThatWaitIsHeld(t *testing.T) {
	r := connect(t, func(c *Config) {
		c.Endpoint = "127.0.0.1:1"
		c.RetryConfig.InitialInterval, c.RetryConfig.MaxInterval = time.Hour, time.Hour
	})
	ctx, cancel := context.WithCancel(t.Context())
	var requests sync.WaitGroup
	for range 3 {
		requests.Go(func() { _ = r.ConsumeTraces(ctx, numbered(20, 0)) })
	}
	e := r.Traces.(tracesIn).e
	require.Eventually(t, func() bool { return e.waiting.Load() == 60 && r.logs.Len() == 1 }, time.Minute, time.Millisecond)
	e.mu.Lock()
	e.logged = time.Time{}
	e.mu.Unlock()
	e.refuses(status.New(codes.Unavailable, "away"))
	assert.Contains(t, r.logs.All()[1].Message, "60 items held")
	cancel()
	requests.Wait()
	assert.Zero(t, e.waiting.Load())
}

func TestNoBackend(t *testing.T) {
	r := connect(t, grpcTo("127.0.0.1:1"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.ConsumeTraces(ctx, numbered(33, 0)) }()
	require.Eventually(t, func() bool { return r.logs.Len() > 0 }, time.Minute, time.Millisecond)
	cancel()
	err := <-done
	require.Error(t, err)
	assert.False(t, consumererror.IsPermanent(err))
	text := r.logs.All()[0].Message
	assert.Contains(t, text, "no backend at 127.0.0.1:1 (connection refused)")
	assert.Contains(t, text, "33 items held")
	assert.Equal(t, 1, r.logs.Len())
}

// A failing backend is reported once, until it accepts something or explains the error; a cancelled call is no report.
func TestHealth(t *testing.T) {
	host, e := healthtest.NewHost(), new(otlpExporter)
	e.cfg, e.set.Logger = createDefaultConfig().(*Config), zap.NewNop()
	require.NoError(t, e.start(t.Context(), host))
	defer func() { require.NoError(t, e.client.close()) }()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	away, failed := status.Error(codes.Unavailable, "away"), componentstatus.StatusRecoverableError
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		seen []componentstatus.Status
	}{
		{t.Context(), nil, nil},
		{gone, away, nil},
		{t.Context(), away, []componentstatus.Status{failed}},
		{t.Context(), away, []componentstatus.Status{failed}},
		{t.Context(), nil, []componentstatus.Status{failed, componentstatus.StatusOK}},
		{t.Context(), status.Error(codes.PermissionDenied, "token"), []componentstatus.Status{failed, componentstatus.StatusOK, failed}},
		{
			t.Context(), status.Error(codes.InvalidArgument, "span"),
			[]componentstatus.Status{failed, componentstatus.StatusOK, failed, componentstatus.StatusOK},
		},
	} {
		_ = e.judge(tt.ctx, nil, tt.err)
		assert.Equal(t, tt.seen, host.Seen())
	}
}

// A proxy that requires a login answers with its page, directly or after a redirection. No data was accepted.
func TestLoginPage(t *testing.T) {
	var mu sync.Mutex
	var pages, posts int
	expired := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case req.Method != http.MethodPost:
			pages++ // net/http follows the redirection
		case !expired:
			posts++
			w.Header().Set("Content-Type", "application/json") // of servers without protobuf
			_, _ = w.Write([]byte("{}"))
			return
		case req.Header.Get("Login") != "":
			http.Redirect(w, req, "/login", http.StatusFound)
			expired = false
			return
		default:
			expired = false
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>Sign in</html>"))
	}))
	t.Cleanup(srv.Close)
	for _, redirected := range []bool{false, true} {
		pages, posts, expired = 0, 0, true
		r := connect(t, func(c *Config) {
			h := confighttp.NewDefaultClientConfig()
			h.Endpoint, h.Compression = srv.URL, configcompression.Type("none")
			if redirected {
				h.Headers = configopaque.MapList{{Name: "Login", Value: "yes"}}
			}
			c.HTTP = configoptional.Some(h)
		})
		require.NoError(t, r.ConsumeTraces(t.Context(), numbered(5, 0)))
		assert.Equal(t, 1, posts, "redirected %v", redirected)
		assert.Zero(t, pages)
		require.Equal(t, 2, r.logs.Len())
		assert.Contains(t, r.logs.All()[0].Message, map[bool]string{false: "login page", true: "302 Found"}[redirected])
	}
}

// A redirection that keeps the method is followed, with the data.
func TestMovedBackend(t *testing.T) {
	var got int
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		assert.NoError(t, err)
		in := ptraceotlp.NewExportRequest()
		assert.NoError(t, in.UnmarshalProto(body))
		got += in.Traces().SpanCount()
	}))
	t.Cleanup(backend.Close)
	old := httptest.NewServer(http.RedirectHandler(backend.URL+"/v1/traces", http.StatusPermanentRedirect))
	t.Cleanup(old.Close)
	r := connect(t, func(c *Config) {
		h := confighttp.NewDefaultClientConfig()
		h.Endpoint, h.Compression = old.URL, configcompression.Type("none")
		c.HTTP = configoptional.Some(h)
	})
	require.NoError(t, r.ConsumeTraces(t.Context(), numbered(5, 0)))
	assert.Equal(t, 5, got)
}

func TestHTTP(t *testing.T) {
	var mu sync.Mutex
	var answers []int
	got, partial := 0, int64(0)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if len(answers) > 0 {
			code := answers[0]
			answers = answers[1:]
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
			return
		}
		assert.Equal(t, "/v1/traces", req.URL.Path)
		body := make([]byte, req.ContentLength)
		_, _ = req.Body.Read(body)
		in := ptraceotlp.NewExportRequest()
		assert.NoError(t, in.UnmarshalProto(body))
		got += in.Traces().SpanCount()
		out := ptraceotlp.NewExportResponse()
		out.PartialSuccess().SetRejectedSpans(partial)
		text, _ := out.MarshalProto()
		w.Header().Set("Content-Type", protobuf+"; charset=utf-8")
		_, _ = w.Write(text)
	}))
	t.Cleanup(srv.Close)
	for code, permanent := range map[int]bool{
		400: true, 422: true, 401: false, 403: false, 404: false, 408: false, 413: false, 429: false, 500: false, 502: false, 503: false, 504: false, 301: false,
	} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			r := connect(t, func(c *Config) {
				h := confighttp.NewDefaultClientConfig()
				h.Endpoint, h.Compression = srv.URL, configcompression.Type("none")
				c.HTTP = configoptional.Some(h)
			})
			mu.Lock()
			answers, got = []int{code}, 0
			mu.Unlock()
			err := r.ConsumeTraces(t.Context(), numbered(5, 0))
			if permanent {
				require.True(t, refusal.OfData(err), "%v", err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, 5, got)
		})
	}
	partial = 3
	r := connect(t, func(c *Config) {
		h := confighttp.NewDefaultClientConfig()
		h.Endpoint, h.Compression = srv.URL+"/", configcompression.Type("none")
		c.HTTP = configoptional.Some(h)
	})
	var p *refusal.Partial
	require.ErrorAs(t, r.ConsumeTraces(t.Context(), numbered(5, 0)), &p)
	assert.EqualValues(t, 3, p.Rejected)
}

func TestConfig(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.ErrorIs(t, cfg.Validate(), errEndpoint)
	h := confighttp.NewDefaultClientConfig()
	cfg.HTTP = configoptional.Some(h)
	require.ErrorIs(t, cfg.Validate(), errURL)
	h.Endpoint = "http://127.0.0.1:4318"
	cfg.HTTP = configoptional.Some(h)
	require.NoError(t, cfg.Validate())
	cfg.Endpoint = "127.0.0.1:4317"
	require.ErrorIs(t, cfg.Validate(), errBoth)
	cfg.HTTP = configoptional.None[confighttp.ClientConfig]()
	cfg.QueueConfig.GetOrInsertDefault().QueueSize = 1 << 20
	require.ErrorIs(t, cfg.Validate(), errQueue)
}

func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "connection refused",
		"name resolver error": "Unavailable: name resolver error",
	} {
		assert.Equal(t, want, plain(status.New(codes.Unavailable, text)))
	}
	assert.False(t, refusal.OfData(errors.New("x")))
}

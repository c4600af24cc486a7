package otlpackedexporter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter/internal/metadata"
	"github.com/trainbridge/trainbridge/internal/ending"
	"github.com/trainbridge/trainbridge/internal/health"
	"github.com/trainbridge/trainbridge/internal/refusal"
)

// client is a connection, by gRPC or HTTP. Its errors are made by package status; rejected and message come from a partial success.
type client interface {
	traces(ctx context.Context, td ptrace.Traces) (rejected int64, message string, err error)
	metrics(ctx context.Context, md pmetric.Metrics) (rejected int64, message string, err error)
	close() error
}

// otlpExporter is the otlp_acked exporter, behind exporterhelper's queue and retries.
type otlpExporter struct {
	cfg       *Config
	set       exporter.Settings
	tel       *metadata.TelemetryBuilder
	userAgent string
	client    client
	health    health.Reporter
	waiting   atomic.Int64 // items received and not yet accepted or refused

	mu      sync.Mutex
	since   time.Time // start of the current failure; zero while the backend accepts
	logged  time.Time // time of the last log entry about the failure
	failing bool      // the current failure was logged
	noted   time.Time // when a message of the backend about accepted requests was last logged (warn)
}

// newExporter is an exporter without a connection.
func newExporter(ctx context.Context, set exporter.Settings, cfg *Config) (*otlpExporter, error) {
	tel, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	agent := fmt.Sprintf("%s/%s (%s/%s)", set.BuildInfo.Description, set.BuildInfo.Version, runtime.GOOS, runtime.GOARCH)
	tel.ExporterOtlpAckedRejected.Add(ctx, 0) // increase() misses a counter that begins above 0
	return &otlpExporter{cfg: cfg, set: set, tel: tel, userAgent: agent}, nil
}

// start makes the client: by HTTP if http::endpoint is set, else by gRPC. The backend need not be there yet.
func (e *otlpExporter) start(ctx context.Context, host component.Host) (err error) {
	e.health.Start(host)
	if e.cfg.HTTP.HasValue() {
		e.client, err = newHTTPClient(ctx, e, host)
	} else {
		e.client, err = newGRPCClient(ctx, e, host)
	}
	return err
}

func (e *otlpExporter) shutdown(context.Context) error {
	e.tel.Shutdown()
	if e.client == nil {
		return nil
	}
	return e.client.close()
}

// tracesIn is the consumer called by receivers.
type tracesIn struct {
	exporter.Traces
	e *otlpExporter
}

// ConsumeTraces returns when the spans were accepted, or refused for good. Record-only spans are left out, unless the configuration asks for them.
func (t tracesIn) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if !t.e.cfg.RecordOnly {
		all := td.ResourceSpans().Len()
		td = drawn(td)
		if td.ResourceSpans().Len() == 0 && all > 0 {
			return nil
		}
	}
	return t.e.hold(ctx, td.SpanCount(), func(ctx context.Context) error { return t.Traces.ConsumeTraces(ctx, td) })
}

// metricsIn is tracesIn for points.
type metricsIn struct {
	exporter.Metrics
	e *otlpExporter
}

// ConsumeMetrics returns when the points were accepted, or refused for good.
func (m metricsIn) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return m.e.hold(ctx, md.DataPointCount(), func(ctx context.Context) error { return m.Metrics.ConsumeMetrics(ctx, md) })
}

// rejectedKey is the context key of a request's *rejections, over all attempts.
type rejectedKey struct{}

// rejections are the items rejected by the backend in accepted parts of a request. Other parts may need another attempt before the request is complete.
type rejections struct {
	mu sync.Mutex
	refusal.Partial
}

// hold sends n items, which count as waiting meanwhile, and returns when they are accepted, in whatever number of attempts and parts. Items that the backend
// rejected while it accepted their request make a permanent error, which says how many.
func (e *otlpExporter) hold(ctx context.Context, n int, send func(context.Context) error) error {
	e.waiting.Add(int64(n))
	defer e.waiting.Add(-int64(n))
	ctx, cancel := ending.Context(ctx) // a stopping server waits for its calls
	defer cancel()
	all := new(rejections)
	if err := send(context.WithValue(ctx, rejectedKey{}, all)); err != nil {
		return err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if p := all.Partial; p.Rejected > 0 {
		return consumererror.NewPermanent(&p)
	}
	return nil
}

// pushTraces is an attempt to send spans. After an error that is not permanent, exporterhelper sends the spans in the error, those not accepted yet, again.
func (e *otlpExporter) pushTraces(ctx context.Context, td ptrace.Traces) error {
	rest, rejected, err := sendAll(ctx, spansOf(td), func(s spans) (int64, string, error) { return e.client.traces(ctx, s.Traces) }, e.trimmed)
	err = e.judge(ctx, rejected, err)
	if err != nil && !consumererror.IsPermanent(err) {
		return consumererror.NewTraces(err, rest.Traces)
	}
	return err
}

// pushMetrics is pushTraces for metrics.
func (e *otlpExporter) pushMetrics(ctx context.Context, md pmetric.Metrics) error {
	rest, rejected, err := sendAll(ctx, pointsOf(md), func(p points) (int64, string, error) { return e.client.metrics(ctx, p.Metrics) }, func() {})
	err = e.judge(ctx, rejected, err)
	if err != nil && !consumererror.IsPermanent(err) {
		return consumererror.NewMetrics(err, rest.Metrics)
	}
	return err
}

// trimmed counts a span that was trimmed to be accepted.
func (e *otlpExporter) trimmed() { e.tel.ExporterOtlpAckedTrimmed.Add(context.Background(), 1) }

// judge classifies the answer to an attempt, and tells health and log. An error is permanent only when the data itself is invalid, or too large. After any
// other error, be it an expired token, a proxy's error page or an unreachable backend, the request is sent again, after the delay that the backend asks for, if
// any.
func (e *otlpExporter) judge(ctx context.Context, rejected *refusal.Partial, err error) error {
	if rejected != nil {
		e.rejects(ctx, rejected)
	}
	switch {
	case err == nil:
		e.accepts()
		return nil
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded): // cancelled by us: says nothing about the backend
		return err
	}
	st := status.Convert(err)
	if st.Code() == codes.InvalidArgument || refusal.TooLarge(err) {
		e.accepts() // the backend works
		return consumererror.NewPermanent(err)
	}
	e.refuses(st)
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			return exporterhelper.NewThrottleRetry(err, info.GetRetryDelay().AsDuration())
		}
	}
	return err
}

// rejects notes what the backend said of an accepted request: the number of items rejected, for hold, the metric and the log; without any, only a message.
func (e *otlpExporter) rejects(ctx context.Context, p *refusal.Partial) {
	if p.Rejected == 0 {
		e.warn("The backend accepted a request and says: "+p.Message, zap.String("endpoint", e.endpoint()))
		return
	}
	if all, ok := ctx.Value(rejectedKey{}).(*rejections); ok {
		all.mu.Lock()
		all.Rejected, all.Message = all.Rejected+p.Rejected, p.Message
		all.mu.Unlock()
	}
	e.tel.ExporterOtlpAckedRejected.Add(ctx, p.Rejected)
	e.warn(
		"The backend rejected items of requests that it accepted; they are not sent again", zap.Int64("rejected", p.Rejected), zap.String("reason", p.Message),
		zap.String("endpoint", e.endpoint()),
	)
}

// endpoint is the address of the backend.
func (e *otlpExporter) endpoint() string {
	if e.cfg.HTTP.HasValue() {
		return e.cfg.HTTP.Get().Endpoint
	}
	return e.cfg.Endpoint
}

const logEvery = time.Minute

// refuses records that the backend is unreachable or refuses, and says so in the log once a minute.
func (e *otlpExporter) refuses(st *status.Status) {
	e.health.Through(false)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.since.IsZero() {
		e.since = now
	}
	if now.Sub(e.logged) < logEvery {
		return
	}
	e.logged, e.failing = now, true
	what := "no backend at"
	if st.Code() != codes.Unavailable && st.Code() != codes.DeadlineExceeded {
		what = "nothing is accepted by the backend at"
	}
	e.set.Logger.Warn(fmt.Sprintf("%s %s (%s); reading waits and nothing is lost, %d items held; check the backend, its credentials, and 'endpoint' "+
		"(TRAINBRIDGE_OTLP_ENDPOINT in the built-in configuration)",
		what, e.endpoint(), plain(st), e.waiting.Load()))
}

// plain is the reason in few words: where gRPC wraps a dial error, only the system's words.
func plain(st *status.Status) string {
	text := st.Message()
	if _, after, ok := strings.Cut(text, "connect: "); ok && st.Code() == codes.Unavailable {
		return strings.TrimRight(after, `"`)
	}
	if st.Code() == codes.DeadlineExceeded {
		return "it does not answer"
	}
	return st.Code().String() + ": " + text
}

// accepts records that the backend accepts, and logs the end of a failure.
func (e *otlpExporter) accepts() {
	e.health.Through(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failing {
		e.set.Logger.Info(fmt.Sprintf("the backend at %s accepts again, after %s", e.endpoint(), time.Since(e.since).Round(time.Second)))
	}
	e.since, e.failing = time.Time{}, false
}

// warn logs a warning once a minute.
func (e *otlpExporter) warn(msg string, fields ...zap.Field) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.noted) >= logEvery {
		e.noted = now
		e.set.Logger.Warn(msg, fields...)
	}
}

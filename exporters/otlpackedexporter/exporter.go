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
	"github.com/trainbridge/trainbridge/internal/refusal"
)

// client is a connection, by gRPC or HTTP. Errors are those of package status; rejected and message are of a partial success.
type client interface {
	traces(ctx context.Context, td ptrace.Traces) (rejected int64, message string, err error)
	metrics(ctx context.Context, md pmetric.Metrics) (rejected int64, message string, err error)
	close() error
}

type otlpExporter struct {
	cfg       *Config
	set       exporter.Settings
	tel       *metadata.TelemetryBuilder
	userAgent string
	client    client
	waiting   atomic.Int64 // items of requests that are under way

	mu     sync.Mutex
	since  time.Time // when the backend last began not to accept; zero while it does
	told   time.Time // of that
	toldOf bool      // that it does not accept, since then
	noted  time.Time // of rejected items
}

func newExporter(set exporter.Settings, cfg *Config) (*otlpExporter, error) {
	tel, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	agent := fmt.Sprintf("%s/%s (%s/%s)", set.BuildInfo.Description, set.BuildInfo.Version, runtime.GOOS, runtime.GOARCH)
	return &otlpExporter{cfg: cfg, set: set, tel: tel, userAgent: agent}, nil
}

func (e *otlpExporter) start(ctx context.Context, host component.Host) (err error) {
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

func (e *otlpExporter) pushTraces(ctx context.Context, td ptrace.Traces) error {
	n := td.SpanCount()
	e.waiting.Add(int64(n))
	defer e.waiting.Add(-int64(n))
	rest, rejected, err := sendAll(ctx, spansOf(td), func(s spans) (int64, string, error) { return e.client.traces(ctx, s.Traces) }, e.trimmed)
	if err = e.judge(ctx, rejected, err); err != nil && !consumererror.IsPermanent(err) {
		return consumererror.NewTraces(err, rest.Traces)
	}
	return err
}

func (e *otlpExporter) pushMetrics(ctx context.Context, md pmetric.Metrics) error {
	n := md.DataPointCount()
	e.waiting.Add(int64(n))
	defer e.waiting.Add(-int64(n))
	rest, rejected, err := sendAll(ctx, pointsOf(md), func(p points) (int64, string, error) { return e.client.metrics(ctx, p.Metrics) }, func() {})
	if err = e.judge(ctx, rejected, err); err != nil && !consumererror.IsPermanent(err) {
		return consumererror.NewMetrics(err, rest.Metrics)
	}
	return err
}

func (e *otlpExporter) trimmed() { e.tel.ExporterOtlpAckedTrimmed.Add(context.Background(), 1) }

// judge says what an answer means: permanent is what is wrong with the data. All else, an expired token or a proxy's error page as much as a backend that is away, is sent again.
func (e *otlpExporter) judge(ctx context.Context, rejected *refusal.Partial, err error) error {
	switch {
	case err == nil:
		e.accepts()
		if rejected == nil {
			return nil
		}
		if rejected.Rejected == 0 {
			e.tell("The backend accepted a request and says: "+rejected.Message, zap.String("endpoint", e.endpoint()))
			return nil
		}
		e.tel.ExporterOtlpAckedRejected.Add(ctx, rejected.Rejected)
		e.tell("The backend rejected items of requests that it accepted; they are not sent again", zap.Int64("rejected", rejected.Rejected), zap.String("reason", rejected.Message), zap.String("endpoint", e.endpoint()))
		return consumererror.NewPermanent(rejected)
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return err
	}
	st := status.Convert(err)
	if st.Code() == codes.InvalidArgument || refusal.TooLarge(err) {
		e.accepts()
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

func (e *otlpExporter) endpoint() string {
	if e.cfg.HTTP.HasValue() {
		return e.cfg.HTTP.Get().Endpoint
	}
	return e.cfg.Endpoint
}

const tellEvery = time.Minute

// refuses says once a minute that the backend is away, or does not accept.
func (e *otlpExporter) refuses(st *status.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.since.IsZero() {
		e.since = now
	}
	if now.Sub(e.told) < tellEvery {
		return
	}
	e.told, e.toldOf = now, true
	what := "no backend at"
	if st.Code() != codes.Unavailable && st.Code() != codes.DeadlineExceeded {
		what = "nothing is accepted by the backend at"
	}
	e.set.Logger.Warn(fmt.Sprintf("%s %s (%s); reading waits and nothing is lost, %d items held; check the backend, its credentials, and 'endpoint' (TRAINBRIDGE_OTLP_ENDPOINT in the built-in configuration)",
		what, e.endpoint(), plain(st), e.waiting.Load()))
}

// plain is the reason in few words: of gRPC's wrapping of a dial error only what the system said.
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

// accepts takes note that the backend answers, and says so after a time in which it did not.
func (e *otlpExporter) accepts() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.toldOf {
		e.set.Logger.Info(fmt.Sprintf("the backend at %s accepts again, after %s", e.endpoint(), time.Since(e.since).Round(time.Second)))
	}
	e.since, e.toldOf = time.Time{}, false
}

// tell warns once a minute.
func (e *otlpExporter) tell(msg string, fields ...zap.Field) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.noted) >= tellEvery {
		e.noted = now
		e.set.Logger.Warn(msg, fields...)
	}
}

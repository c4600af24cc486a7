package bridge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/trainbridge/trainbridge/spans"
)

const (
	scopeName       = "github.com/trainbridge/trainbridge/bridge"
	shutdownTimeout = 10 * time.Second
)

// Bridge owns the providers of a service. It is safe for concurrent use. A nil *Bridge is switched off: spans go nowhere, and the callers' trace context is
// still propagated.
type Bridge struct {
	runID  string
	pid    int
	tracer trace.Tracer
	traces trace.TracerProvider
	meters metric.MeterProvider

	stop    []func(context.Context) error // run at once
	timeout time.Duration                 // limit of a Shutdown whose context has no deadline
	once    sync.Once
	stopErr error
}

// off stands for a nil *Bridge.
var off = &Bridge{
	tracer: nooptrace.NewTracerProvider().Tracer(scopeName), traces: nooptrace.NewTracerProvider(), meters: noopmetric.NewMeterProvider(),
}

// orOff returns b, or the switched off bridge if b is nil.
func (b *Bridge) orOff() *Bridge {
	if b == nil {
		return off
	}
	return b
}

// New makes a bridge that sends to the collector at http://127.0.0.1:4317, or to the endpoint of an option or of the OTEL_EXPORTER_OTLP_* variables. It neither
// connects nor waits: undeliverable spans are kept in a queue of OTEL_BSP_MAX_QUEUE_SIZE spans (2048), beyond which new spans are dropped. Export errors of
// spans go to OpenTelemetry's error handler (otel.SetErrorHandler), which writes to stderr by default, one a minute.
//
// The resource has service.name, service.instance.id (random), ml.run.id, host.name, process.pid and telemetry.sdk.*, and the attributes in
// OTEL_RESOURCE_ATTRIBUTES. With OTEL_SDK_DISABLED=true nothing is recorded. An error names its option or variable.
func New(ctx context.Context, opts ...Option) (*Bridge, error) {
	set := settings{}
	for _, opt := range opts {
		opt(&set)
	}
	res, err := set.resource(ctx)
	if err != nil {
		return nil, err
	}
	run, _ := res.Set().Value(spans.AttrRunID)
	b := &Bridge{runID: run.AsString(), pid: os.Getpid(), timeout: shutdownTimeout, traces: nooptrace.NewTracerProvider(), meters: noopmetric.NewMeterProvider()}
	if !strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		err := checkEnv()
		if err == nil {
			err = b.startTraces(ctx, &set, res)
		}
		if err == nil {
			err = b.startMetrics(ctx, &set, res)
		}
		if err != nil { // traces may have started already
			return nil, errors.Join(err, b.Shutdown(ctx))
		}
	}
	b.tracer = b.traces.Tracer(scopeName)
	if set.global {
		otel.SetTracerProvider(b.traces)
		otel.SetMeterProvider(b.meters)
		otel.SetTextMapPropagator(b.Propagator())
	}
	return b, nil
}

// startTraces makes the tracer provider that sends spans over OTLP, and adds its end to b.stop. With OTEL_TRACES_EXPORTER=none the bridge keeps the provider
// without effect. Nothing runs after an error.
func (b *Bridge) startTraces(ctx context.Context, set *settings, res *resource.Resource) error {
	to, err := set.target("TRACES")
	if err != nil || to.none {
		return err
	}
	sampler, err := sampler()
	if err != nil {
		return err
	}
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL(to.url)}
	if to.plaintext { // a certificate in the environment would take precedence over an http URL
		options = append(options, otlptracegrpc.WithTLSCredentials(plaintext))
	}
	otlp, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return failed(to.field, err)
	}
	exporter := &exporter{SpanExporter: otlp, now: time.Now}
	queue := sdktrace.NewBatchSpanProcessor(exporter)
	provider := sdktrace.NewTracerProvider(
		append(sampler, sdktrace.WithResource(res), sdktrace.WithIDGenerator(ids{b.runID}), sdktrace.WithSpanProcessor(joined{}),
			sdktrace.WithSpanProcessor(queue))...,
	)
	b.traces = provider
	b.stop = append(b.stop, func(ctx context.Context) error {
		exporter.stop()
		// The provider passes nothing on if ctx has ended before, and does not wait for the exporter if ctx ends meanwhile. The exporter then drops the queued
		// spans.
		return errors.Join(provider.Shutdown(ctx), queue.Shutdown(ctx), exporter.Shutdown(ctx), exporter.failed())
	})
	return nil
}

// startMetrics makes the meter provider that sends metrics over OTLP, and adds its end to b.stop. With OTEL_METRICS_EXPORTER=none the bridge keeps the
// provider without effect.
func (b *Bridge) startMetrics(ctx context.Context, set *settings, res *resource.Resource) error {
	to, err := set.target("METRICS")
	if err != nil || to.none {
		return err
	}
	options := []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpointURL(to.url)}
	if to.plaintext {
		options = append(options, otlpmetricgrpc.WithTLSCredentials(plaintext))
	}
	exporter, err := otlpmetricgrpc.New(ctx, options...)
	if err != nil {
		return failed(to.field, err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(nonEmpty{exporter})))
	b.meters = provider
	b.stop = append(b.stop, provider.Shutdown)
	return nil
}

// nonEmpty exports nothing where nothing was measured: most services have no metrics of their own.
type nonEmpty struct{ sdkmetric.Exporter }

func (e nonEmpty) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	if len(rm.ScopeMetrics) == 0 {
		return nil
	}
	return e.Exporter.Export(ctx, rm)
}

// TracerProvider returns the provider of tracers, for otelgrpc.WithTracerProvider and otelhttp.WithTracerProvider.
func (b *Bridge) TracerProvider() trace.TracerProvider { return b.orOff().traces }

// MeterProvider returns the meter provider. The helpers record no metrics: train_metrics derives metrics from their spans.
func (b *Bridge) MeterProvider() metric.MeterProvider { return b.orOff().meters }

// Tracer returns the tracer of the helpers.
func (b *Bridge) Tracer() trace.Tracer { return b.orOff().tracer }

// Propagator returns the propagator of W3C trace context and baggage.
func (b *Bridge) Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}

// RunID returns ml.run.id, empty if unknown.
func (b *Bridge) RunID() string { return b.orOff().runID }

// Shutdown sends the queued spans and stops. It returns when ctx ends, or after 10 s where ctx has no deadline. Unsent spans are lost, and the error says so.
// Later calls return the result of the first. Spans that end after Shutdown are lost, too, without harm.
func (b *Bridge) Shutdown(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.once.Do(func() { b.stopErr = b.shutdown(ctx) })
	return b.stopErr
}

// shutdown stops traces and metrics side by side, so that a slow one leaves the second its time, and returns all errors.
func (b *Bridge) shutdown(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.timeout)
		defer cancel()
	}
	errs := make([]error, len(b.stop))
	var wg sync.WaitGroup
	for i, stop := range b.stop {
		wg.Go(func() { errs[i] = stop(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// readable reports whether a text is fit for a resource unchanged.
func readable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, spans.Hidden)
}

// resource makes the attributes of the service that all spans and metrics carry. An option precedes the environment (OTEL_RESOURCE_ATTRIBUTES,
// OTEL_SERVICE_NAME), which precedes the defaults: of resource.New's detectors, later ones win. An error names the option or variable that is unfit for
// OTLP or cannot be read.
func (s *settings) resource(ctx context.Context) (*resource.Resource, error) {
	run, job := spans.JobRunID()
	for _, it := range [...]struct{ field, text string }{
		{"WithServiceName", s.serviceName}, {"WithRunID", s.runID}, {"OTEL_SERVICE_NAME", env("OTEL_SERVICE_NAME")}, {job, env(job)},
	} {
		if !readable(it.text) {
			return nil, failed(it.field, fmt.Errorf("%q: %w", it.text, ErrText))
		}
	}
	attrs := []attribute.KeyValue{}
	put := func(key, value string) {
		if value != "" {
			attrs = append(attrs, attribute.String(key, value))
		}
	}
	put(spans.AttrServiceName, s.serviceName)
	put(spans.AttrRunID, s.runID)
	// host.name is left out if unknown.
	host, _ := os.Hostname()
	base := []attribute.KeyValue{
		attribute.String(spans.AttrServiceName, spans.Name("unknown_service:"+filepath.Base(os.Args[0]))), attribute.Int(spans.AttrProcessPID, os.Getpid()),
		attribute.String(spans.AttrServiceInstanceID, uuid.NewString()), // two processes of a service are two series
	}
	if host != "" {
		base = append(base, attribute.String(spans.AttrHostName, spans.Name(host)))
	}
	if run != "" {
		base = append(base, attribute.String(spans.AttrRunID, run))
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(base...), resource.WithFromEnv(), resource.WithAttributes(attrs...))
	if err != nil { // of WithFromEnv, such as a pair without "="
		return nil, failed("OTEL_RESOURCE_ATTRIBUTES", err)
	}
	for _, a := range res.Attributes() {
		if !readable(string(a.Key)) || !readable(a.Value.AsString()) { // of OTEL_RESOURCE_ATTRIBUTES: all other texts were checked or cleaned above
			return nil, failed("OTEL_RESOURCE_ATTRIBUTES", fmt.Errorf("%q: %w", a.Key, ErrText))
		}
	}
	return res, nil
}

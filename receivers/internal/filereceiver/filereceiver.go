// Package filereceiver is what all receivers of log files share: one instance for traces and metrics, so that a file is
// read once, and the delivery of batches.
package filereceiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

// Parts are what makes one kind of receiver.
type Parts struct {
	Tail       tail.Config
	NewHandler tail.NewHandler
	Redact     redact.Config
	// HoldTimeout is tail.Settings.HoldTimeout.
	HoldTimeout time.Duration
	// Joint is tail.Settings.Joint.
	Joint bool
	// Shutdown lets go of what Make took. nil: nothing.
	Shutdown func()
}

// Make makes the parts of a configured receiver.
type Make func(r *Receiver, cfg component.Config) (Parts, error)

// Receiver serves the traces and the metrics pipelines of one configured receiver.
type Receiver struct {
	Set   receiver.Settings
	parts Parts
	tail  *tail.Tailer
	obs   *receiverhelper.ObsReport

	redactor *redact.Redactor
	redacted redacted

	traces  consumer.Traces  // nil: no such pipeline
	metrics consumer.Metrics // as above

	mu   sync.Mutex
	runs map[string]bool // runs whose train.run span was sent

	start, stop sync.Once
	forget      func()
	err         error
}

// NewFactory makes a factory of traces and metrics receivers.
func NewFactory(typ component.Type, defaults component.CreateDefaultConfigFunc, traces, metrics component.StabilityLevel, mk Make) receiver.Factory {
	// One instance per configured receiver; the collector asks for it once per signal.
	var mu sync.Mutex
	instances := make(map[component.Config]*Receiver)
	instance := func(set receiver.Settings, cfg component.Config) (*Receiver, error) {
		mu.Lock()
		defer mu.Unlock()
		if r, ok := instances[cfg]; ok {
			return r, nil
		}
		r, err := Prepare(set, cfg, mk, nil, nil)
		if err != nil {
			return nil, err
		}
		r.tail, err = tail.New(r.parts.Tail, r.tailSettings(), r.parts.NewHandler)
		if err != nil {
			return nil, err
		}
		r.forget = func() {
			mu.Lock()
			defer mu.Unlock()
			delete(instances, cfg)
		}
		instances[cfg] = r
		return r, nil
	}
	return receiver.NewFactory(typ, defaults,
		receiver.WithTraces(func(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
			r, err := instance(set, cfg)
			if err == nil {
				r.traces = next
			}
			return r, err
		}, traces),
		receiver.WithMetrics(func(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			r, err := instance(set, cfg)
			if err == nil {
				r.metrics = next
			}
			return r, err
		}, metrics))
}

// Prepare makes everything but the tailer, with consumers that may be nil: for tests of a handler.
func Prepare(set receiver.Settings, cfg component.Config, mk Make, traces consumer.Traces, metrics consumer.Metrics) (*Receiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "file", ReceiverCreateSettings: set})
	if err != nil {
		return nil, err
	}
	r := &Receiver{Set: set, obs: obs, traces: traces, metrics: metrics, runs: make(map[string]bool)}
	if r.parts, err = mk(r, cfg); err != nil {
		return r, err
	}
	if r.redactor, err = redact.New(r.parts.Redact); err != nil {
		return r, err
	}
	r.redacted, err = newRedacted(set)
	return r, err
}

func (r *Receiver) tailSettings() tail.Settings {
	return tail.Settings{ID: r.Set.ID, Kind: component.KindReceiver, Telemetry: r.Set.TelemetrySettings, HoldTimeout: r.parts.HoldTimeout, Joint: r.parts.Joint, Sample: r.redactor.Sample}
}

// ReadAll reads all files once, as tail.ReadAll does, with the given clock (nil: time.Now). A consumer may be nil.
func ReadAll(ctx context.Context, set receiver.Settings, cfg component.Config, mk Make, clock func() time.Time, traces consumer.Traces, metrics consumer.Metrics) (tail.Counts, error) {
	r, err := Prepare(set, cfg, mk, traces, metrics)
	if err != nil {
		return tail.Counts{}, err
	}
	defer r.release()
	settings := r.tailSettings()
	settings.Clock = clock
	return tail.ReadAll(ctx, r.parts.Tail, settings, r.parts.NewHandler)
}

// Start begins to read. The collector calls it once for each pipeline.
func (r *Receiver) Start(ctx context.Context, host component.Host) error {
	r.start.Do(func() { r.err = r.tail.Start(ctx, host) })
	return r.err
}

// Shutdown stops reading and flushes.
func (r *Receiver) Shutdown(ctx context.Context) error {
	var err error
	r.stop.Do(func() {
		r.forget()
		err = r.tail.Shutdown(ctx)
		r.release()
	})
	return err
}

func (r *Receiver) release() {
	if r.parts.Shutdown != nil {
		r.parts.Shutdown()
	}
}

// HasTraces says whether there is a traces pipeline.
func (r *Receiver) HasTraces() bool { return r.traces != nil }

// HasMetrics says whether there is a metrics pipeline.
func (r *Receiver) HasMetrics() bool { return r.metrics != nil }

// FirstOf says whether a run is met for the first time in this process.
func (r *Receiver) FirstOf(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[run] {
		return false
	}
	r.runs[run] = true
	return true
}

// Batch is what goes downstream together. It keeps records, not pdata: a consumer may change or empty what it is given
// even when it fails, so each try builds its data anew, and the usual single try costs no copy.
type Batch interface {
	// Traces may be without spans, Metrics without points: then there is nothing to send of that signal.
	Traces() ptrace.Traces
	Metrics() pmetric.Metrics
	// Done is called once when the batch is delivered or refused for good.
	Done()
}

// Texter is a Batch whose points have no label made of a log's text, and that knows whether its spans have a text of the log, or a field with a name
// of the log's. Where they have none there is nothing to redact.
type Texter interface{ Texts() bool }

// Deliver makes a tail.Deliver of a batch.
func (r *Receiver) Deliver(b Batch) tail.Deliver {
	var tracesDone, metricsDone bool
	again := false // what was redacted is counted once
	var refused error
	return func(ctx context.Context) error {
		first := !again
		again = true
		if !tracesDone && r.traces != nil {
			err := r.sendTraces(ctx, b, first)
			if err != nil && !consumererror.IsPermanent(err) {
				return err
			}
			refused = errors.Join(refused, err)
		}
		tracesDone = true
		if !metricsDone && r.metrics != nil {
			err := r.sendMetrics(ctx, b, first)
			if err != nil && !consumererror.IsPermanent(err) {
				return err
			}
			refused = errors.Join(refused, err)
		}
		metricsDone = true
		b.Done()
		return refused
	}
}

func (r *Receiver) sendTraces(ctx context.Context, b Batch, first bool) error {
	td := b.Traces()
	if t, ok := b.(Texter); !ok || t.Texts() {
		if n := r.redactor.Traces(td); first {
			r.redacted.add(ctx, n)
		}
	}
	n := td.SpanCount() // before a consumer takes it
	if n == 0 {
		return nil
	}
	ctx = r.obs.StartTracesOp(ctx)
	err := r.traces.ConsumeTraces(ctx, td)
	r.obs.EndTracesOp(ctx, r.Set.ID.Type().String(), n, err)
	return err
}

func (r *Receiver) sendMetrics(ctx context.Context, b Batch, first bool) error {
	md := b.Metrics()
	if _, ok := b.(Texter); !ok {
		if n := r.redactor.Metrics(md); first && r.traces == nil { // the labels are attributes of spans too, and counted there
			r.redacted.add(ctx, n)
		}
	}
	n := md.DataPointCount()
	if n == 0 {
		return nil
	}
	ctx = r.obs.StartMetricsOp(ctx)
	err := r.metrics.ConsumeMetrics(ctx, md)
	r.obs.EndMetricsOp(ctx, r.Set.ID.Type().String(), n, err)
	return err
}

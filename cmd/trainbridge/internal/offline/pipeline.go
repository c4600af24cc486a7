package offline

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor"
	"github.com/trainbridge/trainbridge/spans"
)

// joinBytes bounds step_join's memory of a job's logs. Logs are read in parallel, and little is enough: with 8 MiB, 1,500 steps of 64 ranks (1.2 GB) lost
// nothing. The steps of a training log alone (Options.alone) come in order and wait for no other log: few of them stay in the processor's caches, and a report
// takes an eighth less time.
const joinBytes, joinAlone = 16 << 20, 2 << 20

// pipeline is the pipeline behind the receivers of a job: the processors and the connector of the shipped configuration.
type pipeline struct {
	first Sink                             // takes what the receivers make
	queue *queue                           // before first.Traces; nil: a receiver waits until its spans are taken
	sums  *queue                           // before the caller's Sink.Traces, at the end; nil likewise
	join  interface{ Ended(scope string) } // step_join; nil: nothing is joined
	joins processor.Factory                // of step_join
	parts []component.Component            // in the order of stopping: the first gets data first
}

// newPipeline creates and starts the components between the receivers and a sink: for spans train_perf, step_join and train_metrics (see addTraces), for values
// in logs train_perf. The caller closes the pipeline.
func newPipeline(ctx context.Context, opt Options, to Sink) (*pipeline, error) {
	p := new(pipeline)
	traces, err := p.addTraces(ctx, opt, to)
	if err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	p.first.Traces = traces
	if to.NoParts { // then receivers need not wait for the answer (see queue)
		p.queue = newQueue(traces, queuedFirst)
		p.first.Traces = p.queue
	}
	if to.Metrics != nil {
		set := processorSettings(opt, trainperfprocessor.NewFactory())
		cfg, err := configure(trainperfprocessor.NewFactory(), perfConfig(opt))
		if err != nil {
			return nil, errors.Join(err, p.close(ctx))
		}
		perf, err := trainperfprocessor.NewFactory().CreateMetrics(ctx, set, cfg, metricsBetween(opt, to.Metrics))
		if err != nil {
			return nil, errors.Join(err, p.close(ctx))
		}
		p.parts = append([]component.Component{perf}, p.parts...)
		p.first.Metrics = perf
	}
	for _, c := range slices.Backward(p.parts) { // from the end: a component's consumers are started before
		if err := c.Start(ctx, host{}); err != nil {
			return nil, errors.Join(err, p.close(ctx))
		}
	}
	return p, nil
}

// addTraces creates the components for spans, from the last to the first, and returns the first consumer. Spans outside of the times of the options are
// dropped; the others go through train_perf, then step_join (unless NoJoins), then to both train_metrics (for Derived) and the sink.
func (p *pipeline) addTraces(ctx context.Context, opt Options, to Sink) (consumer.Traces, error) {
	next := to.Traces
	if next == nil {
		next = noTraces{}
	}
	if to.NoParts {
		p.sums = newQueue(next, queuedLast)
		next = p.sums
	}
	if to.Derived != nil {
		f := trainmetricsconnector.NewFactory()
		cfg, err := configure(f, map[string]any{"collector": ""})
		if err != nil {
			return nil, err
		}
		derive, err := f.CreateTracesToMetrics(ctx, connector.Settings{
			ID: component.NewID(f.Type()), TelemetrySettings: telemetry(opt.Log), BuildInfo: component.NewDefaultBuildInfo(),
		}, cfg, to.Derived)
		if err != nil {
			return nil, err
		}
		p.parts = append(p.parts, derive)
		next = both{next, derive}
	}
	if !to.NoJoins {
		var err error
		next, err = p.addJoin(ctx, opt, to, next)
		if err != nil {
			return nil, err
		}
	}
	f := trainperfprocessor.NewFactory()
	cfg, err := configure(f, perfConfig(opt))
	if err != nil {
		return nil, err
	}
	perf, err := f.CreateTraces(ctx, processorSettings(opt, f), cfg, next)
	if err != nil {
		return nil, err
	}
	p.parts = append([]component.Component{perf}, p.parts...)
	return tracesBetween(opt, perf), nil
}

// addJoin creates step_join in front of a consumer, part of the sink. If logs are followed, step_join waits by the clock, otherwise for the ends of sources.
func (p *pipeline) addJoin(ctx context.Context, opt Options, to Sink, next consumer.Traces) (consumer.Traces, error) {
	f := stepjoinprocessor.NewFactory()
	p.joins = f
	conf := map[string]any{"max_bytes": joinBytes, "keep": "8760h"} // keep, a year: past spans are forgotten only for lack of room
	if opt.alone {
		conf["max_bytes"] = joinAlone
	}
	if opt.follow {
		conf["wait"] = followWait
	}
	cfg, err := configure(f, conf)
	if err != nil {
		return nil, err
	}
	join, err := f.CreateTraces(ctx, processorSettings(opt, f), cfg, next)
	if err != nil {
		return nil, err
	}
	p.parts = append([]component.Component{join}, p.parts...)
	j := join.(interface {
		Offline(windows func([]spans.Window))
		Ended(scope string)
	})
	if !opt.follow {
		j.Offline(p.windows(to))
	}
	p.join = j
	return join, nil
}

// windows returns the function that takes step_join's windows without spans to the sink, in one order with the spans; nil: the sink, or train_metrics, needs
// spans.
func (p *pipeline) windows(to Sink) func([]spans.Window) {
	if to.Windows == nil || p.sums == nil || to.Derived != nil {
		return nil
	}
	return func(list []spans.Window) { p.sums.work <- func() { to.Windows(list) } }
}

// perfConfig returns the settings of train_perf.
func perfConfig(opt Options) map[string]any {
	return map[string]any{"train": map[string]any{"device": opt.Device}}
}

// processorSettings returns the settings of a processor without a name.
func processorSettings(opt Options, f component.Factory) processor.Settings {
	return processor.Settings{ID: component.NewID(f.Type()), TelemetrySettings: telemetry(opt.Log), BuildInfo: component.NewDefaultBuildInfo()}
}

// sourceEnded tells step_join that all logs of a scope are read, after the spans of the scope that wait in the queue.
func (p *pipeline) sourceEnded(scope string) {
	if p.join == nil {
		return
	}
	if p.queue == nil {
		p.join.Ended(scope)
		return
	}
	p.queue.work <- func() { p.join.Ended(scope) }
}

// sendRuns sends the span of each run, which begins when the first of its logs begins. began has an entry for each receiver and run. It is called after all
// logs are read: with parallel readers the first log is known only then.
func (p *pipeline) sendRuns(ctx context.Context, began []spans.RunSpan) error {
	if p.first.Traces == nil || len(began) == 0 {
		return nil
	}
	first := make(map[string]spans.RunSpan)
	for _, r := range began {
		if was, ok := first[r.Run]; !ok || r.Before(was) {
			first[r.Run] = r
		}
	}
	out := spans.NewBatch("github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline", "")
	for _, r := range first {
		out.AddRun(r)
	}
	return p.first.Traces.ConsumeTraces(context.WithoutCancel(ctx), out.Traces())
}

// close waits until all spans are through the pipeline, and stops the components, which send what they still hold.
func (p *pipeline) close(ctx context.Context) (err error) {
	ctx = context.WithoutCancel(ctx)
	if p.queue != nil {
		err = p.queue.close()
	}
	for _, c := range p.parts {
		err = errors.Join(err, c.Shutdown(ctx))
	}
	if p.sums != nil {
		err = errors.Join(err, p.sums.close())
	}
	return err
}

// host is a component.Host without extensions.
type host struct{}

// GetExtensions implements component.Host.
func (host) GetExtensions() map[component.ID]component.Component { return nil }

// noTraces is a consumer that drops spans.
type noTraces struct{}

func (noTraces) Capabilities() consumer.Capabilities                { return consumer.Capabilities{} }
func (noTraces) ConsumeTraces(context.Context, ptrace.Traces) error { return nil }

// both passes spans to two consumers that do not change them.
type both struct{ first, second consumer.Traces }

func (both) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces implements consumer.Traces.
func (b both) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	// second first: first may be a queue, which hands the batch to another goroutine.
	return errors.Join(b.second.ConsumeTraces(ctx, td), b.first.ConsumeTraces(ctx, td))
}

// tracesBetween returns a consumer that drops spans that end before opt.Since, or begin at opt.Until or after, and passes the others to next.
func tracesBetween(opt Options, next consumer.Traces) consumer.Traces {
	if opt.Since.IsZero() && opt.Until.IsZero() {
		return next
	}
	since, until := bounds(opt)
	return consumerOf(next, func(td ptrace.Traces) {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				ss.Spans().RemoveIf(func(s ptrace.Span) bool { return int64(s.EndTimestamp()) < since || int64(s.StartTimestamp()) >= until })
			}
		}
	})
}

// metricsBetween returns a consumer that drops points before opt.Since, or at opt.Until or after, and metrics left without points, and passes the others to
// next.
func metricsBetween(opt Options, next consumer.Metrics) consumer.Metrics {
	if opt.Since.IsZero() && opt.Until.IsZero() {
		return next
	}
	since, until := bounds(opt)
	out, _ := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
					var points pmetric.NumberDataPointSlice
					switch m.Type() {
					case pmetric.MetricTypeGauge:
						points = m.Gauge().DataPoints()
					case pmetric.MetricTypeSum:
						points = m.Sum().DataPoints()
					default: // no log states another
						return false
					}
					points.RemoveIf(func(p pmetric.NumberDataPoint) bool {
						return int64(p.Timestamp()) < since || int64(p.Timestamp()) >= until
					})
					return points.Len() == 0
				})
			}
		}
		return next.ConsumeMetrics(ctx, md)
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	return out
}

// gpusBetween returns a function that removes values before opt.Since, or at opt.Until or after, and calls next with the rest; nil if next is nil.
func gpusBetween(opt Options, next func(*spans.GPUValues)) func(*spans.GPUValues) {
	if next == nil || opt.Since.IsZero() && opt.Until.IsZero() {
		return next
	}
	since, until := bounds(opt)
	return func(v *spans.GPUValues) {
		n := 0
		for i, at := range v.Times {
			at = int64(spans.Timestamp(at))
			if at >= since && at < until {
				v.Times[n], v.Values[n] = v.Times[i], v.Values[i]
				n++
			}
		}
		v.Times, v.Values = v.Times[:n], v.Values[:n]
		next(v)
	}
}

// consumerOf returns a consumer that edits spans before next gets them.
func consumerOf(next consumer.Traces, edit func(ptrace.Traces)) consumer.Traces {
	out, _ := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		edit(td)
		return next.ConsumeTraces(ctx, td)
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	return out
}

// bounds returns the limits of the wanted times, ns since 1970; without an option the least and the largest time.
func bounds(opt Options) (since, until int64) {
	since, until = 0, int64(1<<63-1)
	if !opt.Since.IsZero() {
		since = max(0, opt.Since.UnixNano())
	}
	if !opt.Until.IsZero() {
		until = opt.Until.UnixNano()
	}
	return since, until
}

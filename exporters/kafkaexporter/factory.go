// Package kafkaexporter is contrib's kafka exporter, for receivers that hold unaccepted data: a missing right loses nothing, and once granted the exporter
// continues on its own.
//
// An exporter that waits for all replicas first asks the broker for a producer id. If the broker refuses for lack of authorization, franz-go's client keeps the
// answer for good, and contrib's exporter keeps the client: nothing is sent until the process restarts. This exporter replaces the refused exporter by a new
// one, at most once a second. With 'sending_queue' enabled the answer is not visible, and nothing is replaced.
package kafkaexporter

import (
	"context"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/kafkaexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// NewFactory makes the factory of kafka, with contrib's configuration.
func NewFactory() exporter.Factory {
	f := kafkaexporter.NewFactory()
	return exporter.NewFactory(
		f.Type(), f.CreateDefaultConfig,
		exporter.WithTraces(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
			r, err := newRenewing(func() (exporter.Traces, error) { return f.CreateTraces(ctx, set, cfg) }, set)
			return traces{r}, err
		}, f.TracesStability()),
		exporter.WithMetrics(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
			r, err := newRenewing(func() (exporter.Metrics, error) { return f.CreateMetrics(ctx, set, cfg) }, set)
			return metrics{r}, err
		}, f.MetricsStability()),
		exporter.WithLogs(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
			r, err := newRenewing(func() (exporter.Logs, error) { return f.CreateLogs(ctx, set, cfg) }, set)
			return logs{r}, err
		}, f.LogsStability()),
	)
}

type traces struct{ *renewing[exporter.Traces] }

// ConsumeTraces returns when the brokers have the spans.
func (t traces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return t.send(ctx, func(e exporter.Traces) error { return e.ConsumeTraces(ctx, td) })
}

type metrics struct{ *renewing[exporter.Metrics] }

// ConsumeMetrics returns when the brokers have the points.
func (m metrics) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return m.send(ctx, func(e exporter.Metrics) error { return e.ConsumeMetrics(ctx, md) })
}

type logs struct{ *renewing[exporter.Logs] }

// ConsumeLogs returns when the brokers have the log records.
func (l logs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return l.send(ctx, func(e exporter.Logs) error { return e.ConsumeLogs(ctx, ld) })
}

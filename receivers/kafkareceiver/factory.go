// Package kafkareceiver is contrib's kafka receiver, whose health recovers with the next message.
//
// Contrib's receiver reports a failure at each error of a fetch, and success only when it is assigned partitions. Many errors, such as a missing right or
// deleted messages, pass without an assignment: health_check would call the collector unhealthy for good.
package kafkareceiver

import (
	"context"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/kafkareceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/internal/health"
)

// NewFactory makes the factory of kafka: contrib's, with its configuration, for each signal with a consumer before the next that reports health at each
// message.
func NewFactory() receiver.Factory {
	f := kafkareceiver.NewFactory()
	return receiver.NewFactory(
		f.Type(), f.CreateDefaultConfig,
		receiver.WithTraces(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
			r := new(reader)
			in, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
				r.health.Through(true)
				return next.ConsumeTraces(ctx, td)
			}, consumer.WithCapabilities(next.Capabilities()))
			if err == nil {
				r.Component, err = f.CreateTraces(ctx, set, cfg, in)
			}
			return r, err
		}, f.TracesStability()),
		receiver.WithMetrics(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			r := new(reader)
			in, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
				r.health.Through(true)
				return next.ConsumeMetrics(ctx, md)
			}, consumer.WithCapabilities(next.Capabilities()))
			if err == nil {
				r.Component, err = f.CreateMetrics(ctx, set, cfg, in)
			}
			return r, err
		}, f.MetricsStability()),
		receiver.WithLogs(func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
			r := new(reader)
			in, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
				r.health.Through(true)
				return next.ConsumeLogs(ctx, ld)
			}, consumer.WithCapabilities(next.Capabilities()))
			if err == nil {
				r.Component, err = f.CreateLogs(ctx, set, cfg, in)
			}
			return r, err
		}, f.LogsStability()),
	)
}

// reader is a receiver of contrib, for one signal, with the health that it reports to the collector.
type reader struct {
	component.Component
	health health.Reporter
}

// Start connects to the brokers.
func (r *reader) Start(ctx context.Context, host component.Host) error {
	r.health.Start(host)
	return r.Component.Start(ctx, reports{host, &r.health})
}

// reports is the host for contrib's receiver: what the receiver reports goes to health, which reports to the collector only what changes.
type reports struct {
	component.Host
	health *health.Reporter
}

// Report implements componentstatus.Reporter. Only working and failing count here: the collector reports start and stop itself.
func (r reports) Report(event *componentstatus.Event) {
	switch event.Status() {
	case componentstatus.StatusOK, componentstatus.StatusRecoverableError:
		r.health.Through(event.Status() == componentstatus.StatusOK)
	}
}

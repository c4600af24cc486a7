package tqtracereceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// NewFactory makes the factory of tq_trace.
func NewFactory() receiver.Factory {
	return filereceiver.NewFactory(metadata.Type, createDefaultConfig, metadata.TracesStability, metadata.MetricsStability,
		func(r *filereceiver.Receiver, cfg component.Config) (filereceiver.Parts, error) {
			_, parts, err := newReceiver(r, cfg)
			return parts, err
		})
}

func createDefaultConfig() component.Config {
	return &Config{
		Config: tail.DefaultConfig(), Redact: redact.DefaultConfig(), RunConfig: spans.RunConfig{ServiceName: "verl"},
		SeriesConfig: filereceiver.SeriesConfig{CardinalityLimit: filereceiver.DefaultCardinalityLimit},
	}
}

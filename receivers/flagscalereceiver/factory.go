package flagscalereceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// NewFactory makes the factory of flagscale.
func NewFactory() receiver.Factory {
	return filereceiver.NewFactory(metadata.Type, createDefaultConfig, metadata.TracesStability, metadata.MetricsStability, newParts)
}

func createDefaultConfig() component.Config {
	return &Config{
		Config: tail.DefaultConfig(), Redact: redact.DefaultConfig(), RunConfig: spans.RunConfig{ServiceName: "flagscale"},
		SeriesConfig: filereceiver.SeriesConfig{CardinalityLimit: filereceiver.DefaultCardinalityLimit},
	}
}

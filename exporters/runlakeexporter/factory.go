package runlakeexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/trainbridge/trainbridge/exporters/runlakeexporter/internal/metadata"
)

// NewFactory returns the factory of the run_lake exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(metadata.Type, createDefaultConfig, exporter.WithTraces(createTraces, metadata.TracesStability))
}

func createDefaultConfig() component.Config { return defaultConfig() }

func createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	return newRunLake(ctx, cfg.(*Config), set, time.Now)
}

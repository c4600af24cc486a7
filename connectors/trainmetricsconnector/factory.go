package trainmetricsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadata"
)

// NewFactory returns the factory of the train_metrics connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(metadata.Type, createDefaultConfig,
		connector.WithTracesToMetrics(createTracesToMetrics, metadata.TracesToMetricsStability))
}

// createDefaultConfig is defaultConfig in the form of the factory.
func createDefaultConfig() component.Config {
	return defaultConfig()
}

// createTracesToMetrics returns a connector that is not started.
func createTracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return newTrainMetrics(cfg.(*Config), set, next)
}

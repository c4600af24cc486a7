package verdictlogsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/trainbridge/trainbridge/connectors/verdictlogsconnector/internal/metadata"
)

// NewFactory returns the factory of the train_verdicts connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(metadata.Type, createDefaultConfig,
		connector.WithTracesToLogs(createTracesToLogs, metadata.TracesToLogsStability))
}

func createDefaultConfig() component.Config {
	return defaultConfig()
}

func createTracesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
	return newVerdictLogs(cfg.(*Config), set, next)
}

package ncclreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// NewFactory makes the factory of nccl.
func NewFactory() receiver.Factory {
	return filereceiver.NewFactory(metadata.Type, createDefaultConfig, metadata.TracesStability, metadata.MetricsStability, newParts)
}

func createDefaultConfig() component.Config {
	return &Config{
		Config: tail.DefaultConfig(), Redact: redact.DefaultConfig(), RunConfig: spans.RunConfig{ServiceName: "nccl"},
		SeriesConfig: filereceiver.SeriesConfig{CardinalityLimit: 1000}, JoinConfig: collectives.DefaultJoinConfig(), Join: joinLocal, Format: formatAuto,
		Kafka: configoptional.Default(defaultKafkaConfig()), RAS: configoptional.Default(defaultRASConfig()),
	}
}

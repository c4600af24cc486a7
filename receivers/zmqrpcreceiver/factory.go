package zmqrpcreceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// NewFactory makes the factory of zmq_rpc.
func NewFactory() receiver.Factory {
	return filereceiver.NewFactory(metadata.Type, createDefaultConfig, metadata.TracesStability, metadata.MetricsStability, newParts)
}

func createDefaultConfig() component.Config {
	return &Config{
		Config: tail.DefaultConfig(), Redact: redact.DefaultConfig(), RunConfig: spans.RunConfig{ServiceName: "zeromq"}, SeriesConfig: filereceiver.SeriesConfig{
			CardinalityLimit: filereceiver.DefaultCardinalityLimit,
		},
		SessionStart: []string{"Init"}, PassStart: []string{"Embedding"}, PassEnd: []string{"LMHead"}, MaxCalls: 1000,
	}
}

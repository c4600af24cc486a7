package trainlogreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// NewFactory makes the factory of train_log.
func NewFactory() receiver.Factory {
	return filereceiver.NewFactory(metadata.Type, createDefaultConfig, metadata.TracesStability, metadata.MetricsStability, makeParts)
}

func createDefaultConfig() component.Config {
	return &Config{
		Config: tail.DefaultConfig(), Redact: redact.DefaultConfig(), RunConfig: spans.RunConfig{ServiceName: "train"},
		SeriesConfig: filereceiver.SeriesConfig{CardinalityLimit: filereceiver.DefaultCardinalityLimit}, Format: formatAuto,
		TraceIDField: logids.DefaultTrace,
	}
}

// makeParts makes what filereceiver needs of train_log: how a stream's lines become records (NewHandler), which files are documents, and how a file found by
// content is recognized (Detect).
func makeParts(r *filereceiver.Receiver, cc component.Config) (filereceiver.Parts, error) {
	cfg := cc.(*Config)
	zone, err := cfg.Location()
	if err != nil {
		return filereceiver.Parts{}, err
	}
	tel, err := metadata.NewTelemetryBuilder(r.Set.TelemetrySettings)
	if err != nil {
		return filereceiver.Parts{}, err
	}
	mapped, patterns := cfg.mapped(), cfg.patterns()
	return filereceiver.Parts{
		Tail:        cfg.Config,
		IsDocument:  isState,
		Redact:      cfg.Redact,
		HoldTimeout: step.HoldTimeout,
		Series:      cfg.CardinalityLimit,
		NewHandler: step.NewHandlers(step.Settings{
			Receiver: r, Run: cfg.RunConfig, Points: cfg.PointsConfig, Zone: zone,
			Duplicate: func() { tel.TrainbridgeTrainLogDuplicates.Add(context.Background(), 1) },
			NewParser: func(_ string, whole bool) step.Parser {
				if whole {
					return newDocumentParser(mapped)
				}
				return newParser(cfg.Format, mapped, patterns)
			},
		}),
		Detect:   func(string) tail.Detect { return detect(cfg.Format, mapped, patterns) },
		Scope:    metadata.ScopeName,
		Run:      cfg.RunConfig,
		Zone:     zone,
		Shutdown: tel.Shutdown,
	}, nil
}

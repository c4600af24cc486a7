package tqtracereceiver

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap/zapcore"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/assemble"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
)

// tqReceiver is what the handlers of one configured receiver share.
type tqReceiver struct {
	*filereceiver.Receiver
	cfg     *Config
	zone    *time.Location
	tel     *metadata.TelemetryBuilder
	reasons [4]metric.MeasurementOption

	batches filereceiver.Pool[functionBatch]
}

func newReceiver(base *filereceiver.Receiver, config component.Config) (*tqReceiver, filereceiver.Parts, error) {
	cfg := config.(*Config)
	zone, err := cfg.Location()
	if err != nil {
		return nil, filereceiver.Parts{}, err
	}
	tel, err := metadata.NewTelemetryBuilder(base.Set.TelemetrySettings)
	if err != nil {
		return nil, filereceiver.Parts{}, err
	}
	r := &tqReceiver{Receiver: base, cfg: cfg, zone: zone, tel: tel}
	for fate, reason := range map[assemble.Fate]string{assemble.Late: "late", assemble.Duplicate: "duplicate", assemble.TooMany: "too_many"} {
		r.reasons[fate] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", reason)))
	}
	newHandler := func(s *tail.Stream) tail.Handler { return r.handle(s) }
	return r, filereceiver.Parts{
		Tail: cfg.Config, Detect: detect, Redact: cfg.Redact, NewHandler: newHandler, Scope: metadata.ScopeName, Series: cfg.CardinalityLimit,
		SpanLinks: cfg.SpanLinks, Shutdown: tel.Shutdown,
	}, nil
}

// repeated counts n lines that Ray dropped.
func (r *tqReceiver) repeated(n int64, path string) {
	r.tel.TrainbridgeTqRepeatedLines.Add(context.Background(), n)
	if !r.Said("repeated") {
		r.Once(
			zapcore.WarnLevel, "repeated",
			"Ray drops lines that are alike ([repeated 7x across cluster]), so functions will be incomplete: set RAY_DEDUP_LOGS=0 for the job, or read the workers' "+
				"own logs, /tmp/ray/session_*/logs/worker-*.err; seen in "+path,
		)
	}
}

// noIDs tells the user what it means that no record has an id. TransferQueue reads the id from BatchMeta.extra_info, where verl puts none.
func (r *tqReceiver) noIDs(records int64, path string) {
	if !r.Said("ids") {
		r.Once(
			zapcore.InfoLevel, "ids",
			fmt.Sprintf(
				"trace_id is N/A in all %d records of %s, so that each call is a trace of its own: to have those of a batch in one, put a UUID into "+
					"extra_info[\"trace_id\"] of its BatchMeta",
				records, path,
			),
		)
	}
}

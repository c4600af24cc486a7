package tqtracereceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

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

	warnRepeated sync.Once

	batches filereceiver.Pool[batch]
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
	return r, filereceiver.Parts{Tail: cfg.Config, Redact: cfg.Redact, NewHandler: newHandler, Scope: metadata.ScopeName, Series: cfg.CardinalityLimit, SpanLinks: cfg.SpanLinks, Shutdown: tel.Shutdown}, nil
}

// repeated counts n lines that Ray dropped.
func (r *tqReceiver) repeated(n int64, path string) {
	r.tel.TrainbridgeTqRepeatedLines.Add(context.Background(), n)
	r.warnRepeated.Do(func() {
		r.Set.Logger.Warn("Ray's log deduplication drops TransferQueue records, so functions will be incomplete. Set RAY_DEDUP_LOGS=0 (or RAY_DEDUP_LOGS_ALLOW_REGEX='\\[TQ-') for the job, "+
			"or read the workers' own logs: include: [/tmp/ray/session_*/logs/worker-*.err]", zap.String("file", path))
	})
}

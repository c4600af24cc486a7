package tqtracereceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/assemble"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
)

// tqReceiver is the part shared by the handlers of one configured receiver.
type tqReceiver struct {
	*filereceiver.Receiver
	cfg     *Config
	zone    *time.Location
	tel     *metadata.TelemetryBuilder
	reasons [4]metric.MeasurementOption // by assemble.Fate: the attribute of the counter of unused lines

	batches filereceiver.Pool[functionBatch]
}

// newReceiver makes the receiver on its base, and the parts that the base needs of it.
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
		SpanLinks: cfg.SpanLinks, Shutdown: tel.Shutdown, Run: cfg.RunConfig, Zone: zone,
	}, nil
}

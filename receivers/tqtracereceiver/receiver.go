package tqtracereceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/assemble"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
)

// tqReceiver serves the traces and the metrics pipelines of one configured receiver.
type tqReceiver struct {
	cfg     *Config
	zone    *time.Location
	log     *zap.Logger
	version string
	tail    *tail.Tailer
	obs     *receiverhelper.ObsReport
	tel     *metadata.TelemetryBuilder
	traces  consumer.Traces  // nil: no such pipeline
	metrics consumer.Metrics // as above
	reasons [4]metric.MeasurementOption

	warnRepeated sync.Once

	mu   sync.Mutex
	runs map[string]bool // runs whose train.run span was sent
	free []*batch

	start, stop sync.Once
	err         error
}

func newReceiver(set receiver.Settings, cfg *Config) (*tqReceiver, error) {
	r, err := prepare(set, cfg)
	if err != nil {
		return nil, err
	}
	r.tail, err = tail.New(cfg.Config, tail.Settings{ID: set.ID, Kind: component.KindReceiver, Telemetry: set.TelemetrySettings}, r.newHandler)
	return r, err
}

// prepare makes everything but the tailer.
func prepare(set receiver.Settings, cfg *Config) (*tqReceiver, error) {
	zone, err := cfg.location()
	if err != nil {
		return nil, err
	}
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "file", ReceiverCreateSettings: set})
	if err != nil {
		return nil, err
	}
	tel, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	r := &tqReceiver{cfg: cfg, zone: zone, log: set.Logger, version: set.BuildInfo.Version, obs: obs, tel: tel, runs: make(map[string]bool)}
	for fate, reason := range map[assemble.Fate]string{assemble.Late: "late", assemble.Duplicate: "duplicate", assemble.TooMany: "too_many"} {
		r.reasons[fate] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", reason)))
	}
	return r, nil
}

// Start begins to read. The collector calls it once for each pipeline.
func (r *tqReceiver) Start(ctx context.Context, host component.Host) error {
	r.start.Do(func() { r.err = r.tail.Start(ctx, host) })
	return r.err
}

// Shutdown stops reading and flushes.
func (r *tqReceiver) Shutdown(ctx context.Context) error {
	var err error
	r.stop.Do(func() {
		forget(r.cfg)
		err = r.tail.Shutdown(ctx)
		r.tel.Shutdown()
	})
	return err
}

// firstOf says whether a run is met for the first time in this process.
func (r *tqReceiver) firstOf(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[run] {
		return false
	}
	r.runs[run] = true
	return true
}

// repeated counts n lines that Ray dropped.
func (r *tqReceiver) repeated(n int64, path string) {
	r.tel.TrainbridgeTqRepeatedLines.Add(context.Background(), n)
	r.warnRepeated.Do(func() {
		r.log.Warn("Ray's log deduplication drops TransferQueue records, so functions will be incomplete. Set RAY_DEDUP_LOGS=0 (or RAY_DEDUP_LOGS_ALLOW_REGEX='\\[TQ-') for the job, "+
			"or read the workers' own logs: include: [/tmp/ray/session_*/logs/worker-*.err]", zap.String("file", path))
	})
}

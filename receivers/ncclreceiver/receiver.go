package ncclreceiver

import (
	"context"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// ncclReceiver is the part shared by the handlers of one configured receiver.
type ncclReceiver struct {
	*filereceiver.Receiver
	cfg        *Config
	zone       *time.Location
	tel        *metadata.TelemetryBuilder
	operations map[string]bool                // canonical names; nil: all
	ranks      map[int32]bool                 // nil: all
	joiner     *collectives.Joiner[tail.Lent] // nil: records are joined elsewhere
	said       *collectives.Conclusions       // of joiner; nil: no storage
	unpaired   sync.Once                      // logs that records do not pair up
	batches    filereceiver.Pool[joined]
	writers    filereceiver.Pool[partial.Writer]
	host       string // host of the collector
}

// maxFreeBatches bounds the batches kept for reuse.
const maxFreeBatches = 64

// newParts returns the filereceiver.Make of nccl: files are read, or a Kafka topic in place of files, and with 'ras' the RAS server beside them, or alone.
func newParts(base *filereceiver.Receiver, config component.Config) (filereceiver.Parts, error) {
	r, err := newReceiver(base, config.(*Config))
	if err != nil {
		return filereceiver.Parts{}, err
	}
	var beside component.Component
	if a := r.cfg.RAS.Get(); a != nil {
		beside = newRASPoller(r, a)
	}
	noFiles := filereceiver.Parts{
		Source: beside, Redact: r.cfg.Redact, Scope: metadata.ScopeName, Series: r.cfg.CardinalityLimit, SpanLinks: r.cfg.SpanLinks, Shutdown: r.tel.Shutdown,
	}
	if k := r.cfg.Kafka.Get(); k != nil {
		t, err := newTopic(r, k)
		noFiles.Source, noFiles.Beside = t, beside
		return noFiles, err
	}
	if beside != nil && !r.cfg.hasFiles() {
		return noFiles, nil
	}
	parts := filereceiver.Parts{
		Beside: beside,
		Tail:   r.cfg.Config, IsDocument: r.cfg.isDump, Detect: r.detect, Redact: r.cfg.Redact,
		NewHandler:  func(s *tail.Stream) tail.Handler { return newHandler(r, s) },
		HoldTimeout: r.cfg.HangTimeout, Joint: true, Scope: metadata.ScopeName,
		InTurn: r.joiner == nil, // the receiver of packed records relies on the order of each log
		Series: r.cfg.CardinalityLimit, SpanLinks: r.cfg.SpanLinks, Shutdown: r.tel.Shutdown, Run: r.cfg.RunConfig, Zone: r.zone,
	}
	if r.said != nil {
		parts.Answers, parts.Keep = r.said, collectives.RememberedConclusions
	}
	return parts, nil
}

// newReceiver returns the part shared by the handlers, with a joiner if the records are joined here and not partition by partition of a topic.
func newReceiver(base *filereceiver.Receiver, cfg *Config) (*ncclReceiver, error) {
	tel, err := metadata.NewTelemetryBuilder(base.Set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	zone, err := cfg.Location()
	if err != nil {
		return nil, err
	}
	r := &ncclReceiver{Receiver: base, cfg: cfg, zone: zone, tel: tel}
	if len(cfg.Operations) > 0 {
		r.operations = make(map[string]bool)
		for _, name := range cfg.Operations {
			r.operations[op.Canonical(name)] = true
		}
	}
	if len(cfg.Ranks) > 0 {
		r.ranks = make(map[int32]bool)
		for _, rank := range cfg.Ranks {
			r.ranks[rank] = true
		}
	}
	if cfg.Join == joinRemote {
		r.host, err = os.Hostname()
		return r, err
	}
	if cfg.Kafka.HasValue() {
		return r, nil // each partition has a joiner of its own
	}
	settings := r.settings()
	if cfg.Storage != nil {
		r.said = new(collectives.Conclusions)
		settings.Conclusions = r.said
	}
	settings.OpenRun = func(file string, start int64, source spans.TimeSource) { r.OpenRun(cfg.Opens(file, start, source)) }
	r.joiner = collectives.New[tail.Lent](settings)
	err = tel.RegisterTrainbridgeNcclStateCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(r.joiner.Waiting())
		return nil
	})
	return r, err
}

// settings returns the settings of a joiner.
func (r *ncclReceiver) settings() collectives.Settings {
	return collectives.Settings{JoinConfig: r.cfg.JoinConfig, Ranks: r.cfg.Ranks, HideHosts: r.cfg.Redact.HashHosts, Series: r.cfg.CardinalityLimit}
}

// The reasons of records excluded by a setting.
const (
	reasonOperation = "operation"
	reasonRank      = "rank"
	reasonSize      = "size"
)

// unwanted returns the reason why the configuration ('operations', 'ranks', 'min_size', 'max_size') excludes a record; "": the record is wanted. A record of
// unknown size is not excluded by size, but a record of an unknown rank is by 'ranks'.
func (r *ncclReceiver) unwanted(o *op.Op) string {
	if r.operations != nil {
		name := o.Kind.String()
		if o.Kind == op.Other {
			name = string(o.Name)
		}
		if !r.operations[op.Canonical(name)] {
			return reasonOperation
		}
	}
	switch {
	case r.ranks != nil && !r.ranks[o.Rank]:
		return reasonRank
	case o.Size >= 0 && (o.Size < r.cfg.MinSize || r.cfg.MaxSize > 0 && o.Size > r.cfg.MaxSize):
		return reasonSize
	}
	return ""
}

var (
	outcomeOptions = options[collectives.Outcome](int(collectives.Outcomes), "outcome")
	foundOptions   = options[collectives.Found](int(collectives.Founds), "ranks")
)

// options are the attribute sets of a metric, by the number of the attribute's value.
func options[T interface {
	~uint8
	String() string
}](n int, key string) []metric.AddOption {
	out := make([]metric.AddOption, n)
	for i := range out {
		out[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String(key, T(i).String())))
	}
	return out
}

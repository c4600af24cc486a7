// Package filereceiver is what all receivers of log files share: one instance for traces and metrics, so that a file is
// read once, and the delivery of batches.
package filereceiver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap/zapcore"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/ending"
	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Parts are what makes one kind of receiver.
type Parts struct {
	Tail       tail.Config
	NewHandler tail.NewHandler
	// IsDocument is tail.Settings.IsDocument.
	IsDocument func(path string) bool
	// Detect is tail.Settings.Detect.
	Detect func(path string) tail.Detect
	Redact redact.Config
	// HoldTimeout is tail.Settings.HoldTimeout.
	HoldTimeout time.Duration
	// Joint and InTurn are those of tail.Settings.
	Joint, InTurn bool
	// Scope names the receiver in what it sends.
	Scope string
	// Series bounds the series of the metrics. 0: not at all.
	Series int
	// SpanLinks is spans.RunConfig.SpanLinks.
	SpanLinks bool
	// Answers are stored before the spans of which they were given are sent. nil: what is said of a record depends on nothing before.
	Answers storageclient.Answers
	// Keep is how many answers are kept at least.
	Keep int
	// Run names the job of the logs, Zone the zone of stamps that have none: for what stands between the records (bridge/events).
	// Events says that the log's records are its events.
	Events bool
	Run    spans.RunConfig
	Zone   *time.Location
	// Source is read in place of files, and delivers as they do. nil: files are read.
	Source component.Component
	// Beside runs beside the reading, with the same delivery. nil: nothing.
	Beside component.Component
	// Shutdown lets go of what Make took. nil: nothing.
	Shutdown func()
}

// Make makes the parts of a configured receiver.
type Make func(r *Receiver, cfg component.Config) (Parts, error)

// Receiver serves the traces and the metrics pipelines of one configured receiver.
type Receiver struct {
	Set   receiver.Settings
	parts Parts
	tail  *tail.Tailer
	obs   *receiverhelper.ObsReport

	series   *series
	redactor *redact.Redactor
	redacted redacted

	traces  consumer.Traces  // nil: no such pipeline
	metrics consumer.Metrics // as above

	gpus func(*spans.GPUValues) // takes Valued batches in place of metrics; nil: nobody does

	accepted atomic.Int64 // messages of spans
	locate   bool         // spans say where their records stand
	bare     bool         // without the spans of parts

	runs    *runs
	answers *storageclient.Memory // nil: none

	member *member
	said   sync.Map // the keys of what Once has logged

	start, stop sync.Once
	forget      func()
	err         error
}

// NewFactory makes a factory of traces and metrics receivers.
func NewFactory(typ component.Type, defaults component.CreateDefaultConfigFunc, traces, metrics component.StabilityLevel, mk Make) receiver.Factory {
	// One instance per configured receiver; the collector asks for it once per signal.
	var mu sync.Mutex
	instances := make(map[component.Config]*Receiver)
	instance := func(set receiver.Settings, cfg component.Config) (*Receiver, error) {
		mu.Lock()
		defer mu.Unlock()
		if r, ok := instances[cfg]; ok {
			return r, nil
		}
		r, err := Prepare(set, cfg, mk, nil, nil)
		if err != nil {
			return nil, err
		}
		r.runs = &processRuns
		if r.parts.Source == nil {
			settings := r.tailSettings()
			settings.Sorter, settings.Detect, settings.DetectAll = &sorter, r.parts.Detect, r.parts.Events
			r.tail, err = tail.New(r.parts.Tail, settings, r.parts.NewHandler)
		}
		if err != nil {
			return nil, err
		}
		r.forget = func() {
			mu.Lock()
			defer mu.Unlock()
			delete(instances, cfg)
		}
		instances[cfg] = r
		return r, nil
	}
	return &factory{mk, receiver.NewFactory(typ, defaults,
		receiver.WithTraces(func(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
			r, err := instance(set, cfg)
			if err == nil {
				r.traces = next
			}
			return r, err
		}, traces),
		receiver.WithMetrics(func(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			r, err := instance(set, cfg)
			if err == nil {
				r.metrics = next
			}
			return r, err
		}, metrics))}
}

// factory is also for programs that read files once, in process (cmd/trainbridge/internal/offline).
type factory struct {
	mk Make
	receiver.Factory
}

// Once makes a receiver that reads its files once, to their end; scope names it in what it sends. Release is called after the reading, and says where the runs
// of the logs begin: no log alone knows the first record of its run, so whoever reads all of them sends the spans. A consumer may be nil.
// What settings has of Sorter, Pace and Watch is taken; with locate, each record's first span says where the record stands in its log; bare leaves out the
// spans of spans.Batch.AddPart. Where gpus is not nil, it takes what training logs state of GPUs, and metrics has nothing of these logs.
func (f *factory) Once(
	set receiver.Settings, cfg component.Config, settings tail.Settings, locate, bare bool,
	traces consumer.Traces, metrics consumer.Metrics, gpus func(*spans.GPUValues),
) (once *tail.Once, scope string, release func() []spans.RunSpan, err error) {
	r, err := Prepare(set, cfg, f.mk, traces, metrics)
	if err != nil {
		return nil, "", nil, err
	}
	r.gpus, r.locate, r.bare, r.runs.began = gpus, locate, bare, make(map[string]spans.RunSpan)
	own := r.tailSettings()
	own.Sorter, own.Pace, own.Watch = settings.Sorter, settings.Pace, settings.Watch
	own.Detect, own.DetectAll = r.parts.Detect, r.parts.Events
	once, err = tail.NewOnce(r.parts.Tail, own, r.parts.NewHandler)
	return once, r.parts.Scope, func() []spans.RunSpan {
		_ = r.release(context.Background()) // it has no storage, and so no error
		return slices.Collect(maps.Values(r.runs.began))
	}, err
}

// Prepare makes everything but the tailer, with consumers that may be nil: for tests of a handler.
func Prepare(set receiver.Settings, cfg component.Config, mk Make, traces consumer.Traces, metrics consumer.Metrics) (*Receiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "file", ReceiverCreateSettings: set})
	if err != nil {
		return nil, err
	}
	r := &Receiver{Set: set, obs: obs, traces: traces, metrics: metrics, runs: new(runs)}
	if r.parts, err = mk(r, cfg); err != nil {
		return r, err
	}
	if r.parts.NewHandler != nil {
		r.parts.NewHandler = r.withEvents(r.parts.NewHandler)
	}
	if r.parts.Answers != nil {
		r.answers = &storageclient.Memory{Of: r.parts.Answers, Purpose: "conclusions", Ring: storageclient.Ring{Keep: r.parts.Keep}}
	}
	if r.redactor, err = redact.New(r.parts.Redact); err != nil {
		return r, err
	}
	if r.redacted, err = newRedacted(set); err != nil {
		return r, err
	}
	r.series, err = newSeries(r.parts.Series, set)
	return r, err
}

func (r *Receiver) tailSettings() tail.Settings {
	return tail.Settings{
		ID: r.Set.ID, Kind: component.KindReceiver, Telemetry: r.Set.TelemetrySettings, HoldTimeout: r.parts.HoldTimeout,
		Joint: r.parts.Joint, InTurn: r.parts.InTurn, IsDocument: r.parts.IsDocument, Sample: r.redactor.Sample, Redact: r.redactor.Line,
	}
}

// ReadAll reads all files once, as tail.ReadAll does, with the given clock (nil: time.Now). A consumer may be nil.
func ReadAll(
	ctx context.Context, set receiver.Settings, cfg component.Config, mk Make, clock func() time.Time, traces consumer.Traces, metrics consumer.Metrics,
) (tail.Counts, error) {
	r, err := Prepare(set, cfg, mk, traces, metrics)
	if err != nil {
		return tail.Counts{}, err
	}
	defer func() { _ = r.release(ctx) }() // it has no storage, and so no error
	settings := r.tailSettings()
	settings.Clock = clock
	return tail.ReadAll(ctx, r.parts.Tail, settings, r.parts.NewHandler)
}

// Start begins to read. The collector calls it once for each pipeline.
func (r *Receiver) Start(ctx context.Context, host component.Host) error {
	r.start.Do(func() {
		if b := r.parts.Beside; b != nil {
			defer func() {
				if r.err == nil {
					r.err = b.Start(ctx, host)
				}
			}()
		}
		if s := r.parts.Source; s != nil {
			r.err = s.Start(ctx, host)
			return
		}
		if id := r.parts.Tail.Storage; id != nil {
			if e, ok := host.GetExtensions()[*id].(storage.Extension); ok { // else the tailer says what is wrong with it
				if r.err = r.runs.remember(ctx, e, r); r.err != nil {
					return
				}
			}
		}
		if r.answers != nil {
			if r.err = r.answers.Open(ctx, host, r.parts.Tail.Storage, component.KindReceiver, r.Set.ID, r.Set.Logger); r.err != nil {
				return
			}
		}
		if r.err = r.tail.Start(ctx, host); r.err != nil {
			return
		}
		r.member = newMember(r)
		if id := r.parts.Tail.Storage; id != nil {
			if e, ok := host.GetExtensions()[*id].(interface{ Directory() string }); ok {
				r.member.state = e.Directory()
			}
		}
		together.add(r.member)
	})
	return r.err
}

// Shutdown stops reading and flushes.
func (r *Receiver) Shutdown(ctx context.Context) error {
	var err error
	r.stop.Do(func() {
		ctx, cancel := ending.Context(ctx)
		defer cancel()
		r.forget()
		if r.member != nil {
			together.remove(r.member)
		}
		if b := r.parts.Beside; b != nil {
			err = b.Shutdown(ctx)
		}
		if s := r.parts.Source; s != nil {
			err = errors.Join(err, s.Shutdown(ctx))
		} else {
			err = errors.Join(err, r.tail.Shutdown(ctx))
		}
		err = errors.Join(err, r.release(ctx))
	})
	return err
}

func (r *Receiver) release(ctx context.Context) error {
	err := r.runs.release(ctx, r)
	if r.answers != nil {
		err = errors.Join(err, r.answers.Close(ctx))
	}
	if r.parts.Shutdown != nil {
		r.parts.Shutdown()
	}
	return err
}

// Scope names the receiver in what it sends.
func (r *Receiver) Scope() string { return r.parts.Scope }

// Once says something of a receiver once in its life.
func (r *Receiver) Once(level zapcore.Level, key, text string) {
	if _, said := r.said.LoadOrStore(key, true); !said {
		r.Set.Logger.Log(level, r.Set.ID.String()+": "+text)
	}
}

// Said says whether Once has said it.
func (r *Receiver) Said(key string) bool {
	_, said := r.said.Load(key)
	return said
}

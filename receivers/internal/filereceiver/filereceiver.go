// Package filereceiver is the common part of all receivers of log files: one instance for traces and metrics, so that a file is read once, and the delivery of
// batches.
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

// Parts define one kind of receiver.
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
	// Scope is the receiver's name in the data.
	Scope string
	// Series bounds the series of the metrics. 0: not at all.
	Series int
	// SpanLinks is spans.RunConfig.SpanLinks.
	SpanLinks bool
	// Answers are stored before their spans are sent. nil: records do not depend on earlier answers.
	Answers storageclient.Answers
	// Keep is the number of answers kept at least.
	Keep int
	// Run names the job of the logs, Zone the zone of stamps without one: for the lines between the records (bridge/events). Events says that the log's records
	// are the events.
	Events bool
	Run    spans.RunConfig
	Zone   *time.Location
	// Source replaces the files, and delivers like them. nil: files are read.
	Source component.Component
	// Beside runs alongside the reading, with the same delivery. nil: nothing.
	Beside component.Component
	// Shutdown frees the resources of Make. nil: none.
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

	accepted atomic.Int64 // messages of spans, and parts of sifted messages
	locate   bool         // spans have the position of their records
	shares   bool         // logs that may hold records of another receiver, too, are looked at for these
	detail   spans.Detail

	runs    *runs
	answers *storageclient.Memory // nil: none

	member *member
	said   sync.Map // keys already logged by Once

	start, stop sync.Once
	forget      func() // the factory's map of instances loses the receiver
	err         error  // of Start, for the second call
}

// NewFactory returns the factory of a kind of receiver, for traces and metrics. Both pipelines of one configured receiver get the same Receiver, so each file
// is read once. mk turns the receiver's configuration into its Parts.
func NewFactory(typ component.Type, defaults component.CreateDefaultConfigFunc, traces, metrics component.StabilityLevel, mk Make) receiver.Factory {
	// The collector asks once per signal, with the same configuration: the configuration's pointer finds the instance.
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
		r.runs = &processRuns // a run's span is sent once, whichever receivers read its logs
		r.shares = true
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

// factory also serves programs that read files once, in process (cmd/trainbridge/internal/offline).
type factory struct {
	mk Make
	receiver.Factory
}

// Once makes a receiver that reads its files once, to their end, for the offline commands (trainbridge report, show); scope is the receiver's name in the data.
//
// The caller calls release after the reading, and gets the first span of each run: no log alone knows the first record of its run, so the caller, who reads all
// logs, sends the spans. A consumer may be nil. Of settings, Sorter, Pace and Watch are used. With locate, each record's first span has the position of the
// record in its log. With gpus, the GPU values of training logs go to gpus, and metrics gets nothing of training logs.
func (f *factory) Once(
	set receiver.Settings, cfg component.Config, settings tail.Settings, locate bool, detail spans.Detail,
	traces consumer.Traces, metrics consumer.Metrics, gpus func(*spans.GPUValues),
) (once *tail.Once, scope string, release func() []spans.RunSpan, err error) {
	r, err := Prepare(set, cfg, f.mk, traces, metrics)
	if err != nil {
		return nil, "", nil, err
	}
	r.gpus, r.locate, r.detail, r.runs.began = gpus, locate, detail, make(map[string]spans.RunSpan)
	own := r.tailSettings()
	own.Sorter, own.Pace, own.Watch = settings.Sorter, settings.Pace, settings.Watch
	own.Detect, own.DetectAll = r.parts.Detect, r.parts.Events
	once, err = tail.NewOnce(r.parts.Tail, own, r.parts.NewHandler)
	return once, r.parts.Scope, func() []spans.RunSpan {
		_ = r.release(context.Background()) // without storage, so no error
		return slices.Collect(maps.Values(r.runs.began))
	}, err
}

// Prepare returns a Receiver without the tailer that reads the files: the first step of NewFactory, Once and ReadAll, and alone enough for tests of a handler.
// A consumer may be nil.
func Prepare(set receiver.Settings, cfg component.Config, mk Make, traces consumer.Traces, metrics consumer.Metrics) (*Receiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "file", ReceiverCreateSettings: set})
	if err != nil {
		return nil, err
	}
	r := &Receiver{Set: set, obs: obs, traces: traces, metrics: metrics, runs: new(runs)}
	r.parts, err = mk(r, cfg)
	if err != nil {
		return r, err
	}
	if r.parts.NewHandler != nil {
		r.parts.NewHandler = r.withEvents(r.parts.NewHandler)
	}
	if r.parts.Answers != nil { // "conclusions" names the stored state: never change
		r.answers = &storageclient.Memory{Of: r.parts.Answers, Purpose: "conclusions", Ring: storageclient.Ring{Keep: r.parts.Keep}}
	}
	r.redactor, err = redact.New(r.parts.Redact)
	if err != nil {
		return r, err
	}
	r.redacted, err = newRedacted(set)
	if err != nil {
		return r, err
	}
	r.series, err = newSeries(r.parts.Series, set)
	return r, err
}

// tailSettings returns the settings common to all ways of reading the files.
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
	defer func() { _ = r.release(ctx) }() // without storage, so no error
	settings := r.tailSettings()
	settings.Clock = clock
	return tail.ReadAll(ctx, r.parts.Tail, settings, r.parts.NewHandler)
}

// Start begins to read, or starts the Source in place of the files. The collector calls Start once for each pipeline; the second call only returns the error of
// the first.
func (r *Receiver) Start(ctx context.Context, host component.Host) error {
	r.start.Do(func() {
		if b := r.parts.Beside; b != nil { // after the rest
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
		// What earlier processes sent is known before the first line is read.
		if id := r.parts.Tail.Storage; id != nil {
			if e, ok := host.GetExtensions()[*id].(storage.Extension); ok { // else the tailer reports the error
				r.err = r.runs.loadKnown(ctx, e, r)
				if r.err != nil {
					return
				}
			}
		}
		if r.answers != nil {
			r.err = r.answers.Open(ctx, host, r.parts.Tail.Storage, component.KindReceiver, r.Set.ID, r.Set.Logger)
			if r.err != nil {
				return
			}
		}
		r.err = r.tail.Start(ctx, host)
		if r.err != nil {
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

// Shutdown stops reading, sends what is read while ctx allows (tail.Tailer.Shutdown), and frees everything. The second call, for the other pipeline, does
// nothing.
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

// release frees what Start and Make have opened: the runs, the stored answers, the resources of the parts.
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

// Scope returns the receiver's name in the data.
func (r *Receiver) Scope() string { return r.parts.Scope }

// Once logs a text once in the life of a receiver.
func (r *Receiver) Once(level zapcore.Level, key, text string) {
	if _, said := r.said.LoadOrStore(key, true); !said {
		r.Set.Logger.Log(level, r.Set.ID.String()+": "+text)
	}
}

// Said reports whether Once has logged the key.
func (r *Receiver) Said(key string) bool {
	_, said := r.said.Load(key)
	return said
}

// Package offline reads logs from their first line to their last with the receivers, processors and connector of the collector, in process: what answers
// questions about finished logs (trainbridge report, check, compare, replay) has the same spans and numbers as a collector sends. It opens no port and leaves
// nothing on the disk.
package offline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver"
	"github.com/trainbridge/trainbridge/receivers/runeventsreceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// Options say how logs are read. The zero value reads all as it is.
type Options struct {
	Run     string // ml.run.id of all files; "": TRAINBRIDGE_RUN_ID, else by directory (jobs)
	Service string // service.name; "": that of each receiver
	Device  string // the GPUs that train, such as H100 SXM, for MFU

	Since, Until time.Time // only spans that end after and begin before; zero: no bound

	Patterns []string // of train_log, before those of a configuration

	Zones []Zone // of logs whose stamps have no zone; of several that match a log, the last

	Receivers []Receiver // who reads; nil: each file is read by the receiver that understands it

	Positions bool                        // spans say log.file.path and trainbridge.log.offset
	Progress  func(done, total int64)     // bytes; called a few times a second
	Watch     func(path string) LineWatch // sees each line of a file; called by several goroutines
	Log       *zap.Logger                 // nil: warnings are not wanted

	follow bool // logs are still written
}

func (o Options) withLog() Options {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return o
}

// Receiver is a receiver as a configuration has it.
type Receiver struct {
	ID   component.ID
	Conf map[string]any // its settings; what they say of files is not asked
	// Include are the files that it reads whatever they hold, Shared those that it reads if it is the first to understand them; of Input.Files.
	Include, Shared []string
}

// LineWatch sees a line of a file, where it begins (bytes), and what became of it. The text lives until it returns. It is called by one goroutine at a time.
type LineWatch = func(text []byte, begin int64, v tail.Verdict, reason string)

// Sink takes what the pipelines send. Its consumers are called by several goroutines at once. nil: not wanted.
type Sink struct {
	Traces  consumer.Traces
	Metrics consumer.Metrics // what logs state as values
	Derived consumer.Metrics // what train_metrics makes of spans, when all is read

	// GPUs takes what training logs state of GPUs. Metrics has nothing of these logs then. nil: Metrics has all.
	GPUs func(*spans.GPUValues)

	// NoParts: Traces sums up. It needs no spans of the stages of calls and of the parts of ranks' times, whose parents say the same as attributes, and whoever
	// sends to it does not wait for it.
	NoParts bool
	// NoJoins: Traces needs nothing that step_join adds: where the time of steps went, and which were slow.
	NoJoins bool
}

// reader is a receiver's factory that reads files once (receivers/internal/filereceiver).
type reader interface {
	receiver.Factory
	Once(
		set receiver.Settings, cfg component.Config, settings tail.Settings, locate, bare bool,
		traces consumer.Traces, metrics consumer.Metrics, gpus func(*spans.GPUValues),
	) (once *tail.Once, scope string, release func() []spans.RunSpan, err error)
}

func readers() []reader {
	return []reader{
		tqtracereceiver.NewFactory().(reader), flagscalereceiver.NewFactory().(reader), trainlogreceiver.NewFactory().(reader),
		zmqrpcreceiver.NewFactory().(reader), ncclreceiver.NewFactory().(reader),
		runeventsreceiver.NewFactory().(reader),
	}
}

const progressEvery = 200 * time.Millisecond

// Read reads all files, one job after the other, and returns when all is read, joined and judged.
func Read(ctx context.Context, in *Input, opt Options, to Sink) (*Reading, error) {
	opt = opt.withLog()
	out := newReading(in)
	out.zone = opt.location
	if err := out.sort(in, opt); err != nil {
		return nil, err
	}
	jobs := in.jobs(opt.Run, func(file string) string { return out.by[file].Receiver })
	var mu sync.Mutex
	var now []*tail.Once // that read, or have read
	if opt.Progress != nil {
		ticker := time.NewTicker(progressEvery)
		quit, done := make(chan struct{}), make(chan struct{})
		tell := func() {
			mu.Lock()
			defer mu.Unlock()
			bytes := int64(0)
			for _, o := range now {
				bytes += o.Counts().Bytes
			}
			opt.Progress(bytes, out.Bytes)
		}
		go func() {
			defer close(done)
			for {
				select {
				case <-ticker.C:
					tell()
				case <-quit:
					tell()
					return
				}
			}
		}()
		defer func() {
			ticker.Stop()
			close(quit)
			<-done
		}()
	}
	for _, j := range jobs {
		out.Runs = append(out.Runs, Run{ID: j.run, Files: j.files})
		err := readJob(ctx, j, opt, to, out, func(o *tail.Once) {
			mu.Lock()
			now = append(now, o)
			mu.Unlock()
		})
		if err != nil {
			return nil, err
		}
	}
	return out, ctx.Err()
}

// source is a receiver that reads some of the files.
type source struct {
	scope string
	*tail.Once
}

// sources makes the receivers of some files, of each zone its own. Each file is read by the one that understands it. Release returns where the logs that each
// has read begin.
func sources(files []string, run string, opt Options, settings tail.Settings, to Sink) (all []source, release func() []spans.RunSpan, err error) {
	var releases []func() []spans.RunSpan
	release = func() (began []spans.RunSpan) {
		for _, f := range releases {
			began = append(began, f()...)
		}
		return began
	}
	by := opt.zoned(slices.Sorted(slices.Values(files)))
	for _, zone := range slices.Sorted(maps.Keys(by)) {
		more, done, err := zoneSources(by[zone], zone, run, opt, settings, to)
		all, releases = append(all, more...), append(releases, done)
		if err != nil {
			return nil, release, err
		}
	}
	return all, release, nil
}

// zoneSources is sources of files, in order, of one zone; "": of each receiver's own.
func zoneSources(
	files []string, zone, run string, opt Options, settings tail.Settings, to Sink,
) (all []source, release func() []spans.RunSpan, err error) {
	var releases []func() []spans.RunSpan
	release = func() (began []spans.RunSpan) {
		for _, f := range releases {
			began = append(began, f()...)
		}
		return began
	}
	factories := readers()
	who := opt.Receivers
	if who == nil {
		for _, f := range factories {
			who = append(who, Receiver{ID: component.NewID(f.Type()), Shared: files})
		}
	}
	for _, r := range who {
		at := slices.IndexFunc(factories, func(f reader) bool { return f.Type() == r.ID.Type() })
		if at < 0 {
			return nil, release, fmt.Errorf("%s reads no files", r.ID)
		}
		own, shared := globs(r.Include, files), globs(r.Shared, files)
		if len(own)+len(shared) == 0 && opt.Receivers != nil {
			continue
		}
		conf := map[string]any{}
		maps.Copy(conf, r.Conf)
		for _, name := range []string{"exclude", "document", "storage", "dead_letter", "start_at"} {
			delete(conf, name)
		}
		conf["include"], conf["include_by_content"], conf["pending_timeout"] = own, shared, "24h"
		conf["follow_symlinks"] = true // the files are those of Input, which has followed them; a descriptor's path is such a link
		opt.identify(conf, run)
		if _, stamped := factories[at].CreateDefaultConfig().(interface {
			Location() (*time.Location, error)
		}); stamped && zone != "" {
			conf["timezone"] = zone
		}
		if len(opt.Patterns) > 0 && r.ID.Type() == trainLog {
			conf["patterns"] = opt.patterns(conf["patterns"])
		}
		cfg, err := configure(factories[at], conf)
		if err != nil {
			return nil, release, err
		}
		if c, ok := cfg.(*ncclreceiver.Config); ok {
			c.Collector = "" // what these files say is the same on every host
		}
		set := receiver.Settings{ID: r.ID, TelemetrySettings: telemetry(opt.Log), BuildInfo: component.NewDefaultBuildInfo()}
		o, scope, done, err := factories[at].Once(set, cfg, settings, opt.Positions, to.NoParts, to.Traces, to.Metrics, to.GPUs)
		if err != nil {
			return nil, release, err
		}
		all = append(all, source{scope, o})
		releases = append(releases, done)
	}
	return all, release, nil
}

// identify says in the settings of a receiver whose its logs are.
func (o *Options) identify(conf map[string]any, run string) {
	if run != "" {
		conf["run_id"] = run
	}
	if o.Service != "" {
		conf["service_name"] = o.Service
	}
}

// globs match those of a receiver's files that are wanted, which are sorted.
func globs(own, wanted []string) []any {
	list := make([]any, 0, len(own))
	for _, f := range own {
		if _, ok := slices.BinarySearch(wanted, f); ok {
			list = append(list, escape(f))
		}
	}
	return list
}

// configure makes a component's config of settings.
func configure(f component.Factory, conf map[string]any) (component.Config, error) {
	cfg := f.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(conf).Unmarshal(cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Type(), err)
	}
	if err := confmap.Validate(cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Type(), err)
	}
	return cfg, nil
}

func telemetry(log *zap.Logger) component.TelemetrySettings {
	return component.TelemetrySettings{
		Logger: log, TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: noopmetric.NewMeterProvider(), Resource: pcommon.NewResource(),
	}
}

var meta = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// escape makes a glob that matches one path.
func escape(path string) string { return meta.Replace(path) }

// sort finds out which receiver understands each file.
func (r *Reading) sort(in *Input, opt Options) error {
	sorter := new(tail.Sorter)
	all, release, err := sources(in.Files, "x", opt, tail.Settings{Sorter: sorter}, Sink{})
	defer release()
	if err != nil {
		return err
	}
	r.sample = func([]byte) string { return "" }
	if len(all) > 0 {
		r.sample = all[0].Sample
	}
	for _, f := range r.Files {
		if f.Binary = isBinary(f.Path); f.Binary {
			continue
		}
		if of, ok := sorter.Owner(f.Path); ok {
			f.Receiver = of.String()
			r.Bytes += f.Size
			continue
		}
		if f.Err = readable(f.Path); f.Err == nil {
			_, first := sorter.Head(f.Path)
			f.First = r.Sample(first)
		}
	}
	return nil
}

// readJob reads the files of a job through pipelines of its own.
func readJob(ctx context.Context, j job, opt Options, to Sink, out *Reading, met func(*tail.Once)) error {
	p, err := newPipeline(ctx, opt, to)
	if err != nil {
		return err
	}
	watch := out.watch
	if opt.Watch != nil {
		watch = func(path string) LineWatch {
			own, other := out.watch(path), opt.Watch(path)
			return func(text []byte, begin int64, v tail.Verdict, reason string) {
				own(text, begin, v, reason)
				other(text, begin, v, reason)
			}
		}
	}
	settings := tail.Settings{Sorter: new(tail.Sorter), Pace: new(tail.Pace), Watch: watch}
	first := p.first
	first.NoParts, first.GPUs = to.NoParts, gpusBetween(opt, to.GPUs)
	seen := new(extents)
	if opt.Positions {
		first.Traces = seen.before(first.Traces)
	}
	all, release, err := sources(j.files, j.run, opt, settings, first)
	if err != nil {
		release()
		return errors.Join(err, p.close(ctx))
	}
	for _, s := range all {
		met(s.Once)
	}
	var readers sync.WaitGroup
	errs := make(chan error, len(all))
	left := make(map[string]*atomic.Int32) // receivers of a scope that read
	for _, s := range all {
		if left[s.scope] == nil {
			left[s.scope] = new(atomic.Int32)
		}
		left[s.scope].Add(1)
	}
	for _, s := range all {
		readers.Go(func() {
			counts, err := s.Read(ctx)
			out.count(counts)
			if left[s.scope].Add(-1) == 0 {
				p.ended(s.scope)
			}
			errs <- err
		})
	}
	readers.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	out.shifts(j.run, seen, opt)
	return errors.Join(err, p.open(ctx, release()), p.close(ctx))
}

var trainLog = component.MustNewType("train_log")

// patterns are those of the options, and then those of a configuration.
func (o Options) patterns(configured any) (all []any) {
	for _, p := range o.Patterns {
		all = append(all, p)
	}
	if own, ok := configured.([]any); ok {
		all = append(all, own...)
	}
	return all
}

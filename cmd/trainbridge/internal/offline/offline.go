// Package offline reads logs from their first line to their last with the receivers, processors and connector of the collector, in process: the commands about
// finished logs (trainbridge report, check, compare, replay) see the same spans and numbers as a collector's backend. It opens no port and leaves nothing on
// the disk.
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

// Options of a reading. The zero value reads everything with defaults.
type Options struct {
	Run     string // ml.run.id of all files; "": TRAINBRIDGE_RUN_ID, else by directory (jobs)
	Service string // service.name; "": each receiver's own
	Device  string // the GPU model, such as H100 SXM, for MFU

	Since, Until time.Time // only spans that do not end before Since, and begin before Until; zero: no bound

	Patterns []string // of train_log, before a configuration's

	Zones []Zone // zones of logs with stamps without a zone; of several matches, the last

	Receivers []Receiver // nil: each file is read by the receiver that understands it

	Positions bool                        // spans say log.file.path and trainbridge.log.offset
	Progress  func(done, total int64)     // bytes; called a few times a second
	Watch     func(path string) LineWatch // sees each line of a file; called by several goroutines
	Log       *zap.Logger                 // nil: warnings are not wanted

	follow  bool     // logs are still written
	alone   bool     // the job has one log, of train_log
	reading *Reading // knows the receivers of files; nil: found out by the files' content
}

// withLog returns the options with a logger; the default one drops everything.
func (o Options) withLog() Options {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return o
}

// Receiver is a receiver of a configuration.
type Receiver struct {
	ID   component.ID
	Conf map[string]any // its settings, but for the settings of files
	// Include are the files it reads in any case, Shared the files it reads if the first to understand them; of Input.Files.
	Include, Shared []string
}

// LineWatch gets a line of a file, its offset in bytes, and its outcome. The text is valid during the call. Calls are not concurrent.
type LineWatch = func(text []byte, begin int64, v tail.Verdict, reason string)

// Sink takes the output of the pipelines. Its consumers are called by several goroutines at once. nil: not wanted.
type Sink struct {
	Traces  consumer.Traces
	Metrics consumer.Metrics // values in logs
	Derived consumer.Metrics // output of train_metrics, at the end

	// GPUs takes the values of GPUs in training logs, which are then missing in Metrics. nil: Metrics has all.
	GPUs func(*spans.GPUValues)

	// NoParts: Traces only sums up. It needs no spans of the stages of calls and of the parts of ranks' times, whose parents have the same values as attributes,
	// and senders do not wait for it.
	NoParts bool
	// Windows takes breakdowns of windows without known parts, not slow, which then are missing in Traces, with NoParts. It is called as Traces is. nil: Traces
	// has all.
	Windows func([]spans.Window)
	// OnlyEvents are the receivers of whose logs Traces needs only the events. Where a job has other logs too, Traces gets all spans.
	OnlyEvents []component.Type
	// NoJoins: Traces needs no output of step_join: breakdowns of steps, and slow ones.
	NoJoins bool
}

// detail returns the spans that Traces needs of a receiver's logs.
func (s *Sink) detail(receiver component.Type) spans.Detail {
	switch {
	case slices.Contains(s.OnlyEvents, receiver):
		return spans.OnlyEvents
	case s.NoParts:
		return spans.NoParts
	}
	return spans.All
}

// reader is the factory of a receiver that can read files once (receivers/internal/filereceiver).
type reader interface {
	receiver.Factory
	// Once makes a receiver for one reading. locate: spans say file and offset. scope is that of the spans; release ends the reading and returns the begin of
	// each log's run.
	Once(
		set receiver.Settings, cfg component.Config, settings tail.Settings, locate bool, detail spans.Detail,
		traces consumer.Traces, metrics consumer.Metrics, gpus func(*spans.GPUValues),
	) (once *tail.Once, scope string, release func() []spans.RunSpan, err error)
}

// readers returns the factories of all receivers of files.
func readers() []reader {
	return []reader{
		tqtracereceiver.NewFactory().(reader), flagscalereceiver.NewFactory().(reader), trainlogreceiver.NewFactory().(reader),
		zmqrpcreceiver.NewFactory().(reader), ncclreceiver.NewFactory().(reader),
		runeventsreceiver.NewFactory().(reader),
	}
}

// progressEvery is the interval of calls of Options.Progress.
const progressEvery = 200 * time.Millisecond

// Read reads all files, job by job, each job through a pipeline of its own, and returns when everything is read, joined and judged. An error of a job ends the
// reading, without a result. If ctx is canceled and no job failed, the result has what was read, and the error is ctx.Err().
func Read(ctx context.Context, in *Input, opt Options, to Sink) (*Reading, error) {
	opt = opt.withLog()
	out := newReading(in)
	out.zone = opt.zoneOf
	if err := out.findReceivers(in, opt); err != nil {
		return nil, err
	}
	jobs := in.jobs(opt.Run, func(file string) string { return out.by[file].Receiver })
	var mu sync.Mutex
	var started []*tail.Once // the readers of all jobs so far, finished or not; guarded by mu
	// Progress is reported by a goroutine, and a last time before Read returns.
	if opt.Progress != nil {
		ticker := time.NewTicker(progressEvery)
		quit, done := make(chan struct{}), make(chan struct{})
		report := func() {
			mu.Lock()
			defer mu.Unlock()
			bytes := int64(0)
			for _, o := range started {
				bytes += o.Counts().Bytes
			}
			opt.Progress(bytes, out.Bytes)
		}
		go func() {
			defer close(done)
			for {
				select {
				case <-ticker.C:
					report()
				case <-quit:
					report()
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
	defer out.addSeconds() // counts of files that two receivers read, after all jobs
	for _, j := range jobs {
		out.Runs = append(out.Runs, Run{ID: j.run, Files: j.files})
		err := readJob(ctx, j, opt, to, out, func(o *tail.Once) {
			mu.Lock()
			started = append(started, o)
			mu.Unlock()
		})
		if err != nil {
			return nil, err
		}
	}
	return out, ctx.Err()
}

// source is a receiver of one reading.
type source struct {
	scope string // of its spans
	*tail.Once
}

// newSources returns the receivers of some files, separate ones for each zone, as a receiver has one timezone for all of its files. Each file is read by the
// receiver that includes or understands the file. release must be called after the reading, also after an error: it stops the receivers, and returns the begins
// of the logs read.
func newSources(files []string, run string, opt Options, settings tail.Settings, to Sink) (all []source, release func() []spans.RunSpan, err error) {
	var releases []func() []spans.RunSpan
	release = func() (began []spans.RunSpan) {
		for _, f := range releases {
			began = append(began, f()...)
		}
		return began
	}
	by := opt.byZone(slices.Sorted(slices.Values(files)))
	for _, zone := range slices.Sorted(maps.Keys(by)) {
		more, done, err := newZoneSources(by[zone], zone, run, opt, settings, to)
		all, releases = append(all, more...), append(releases, done)
		if err != nil {
			return nil, release, err
		}
	}
	return all, release, nil
}

// newZoneSources is newSources for the sorted files of one zone; "": the timezone in the settings of each receiver. Receivers of a configuration without a file
// are not created, nor, once the owners of files are known, any receiver without a file.
func newZoneSources(
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
		own, byContent := among(r.Include, files), among(r.Shared, files) // read in any case, and read if understood
		// With the files sorted before, each receiver gets only its own files.
		if opt.reading != nil {
			others := func(f string) bool { return opt.reading.File(f).Receiver != r.ID.String() }
			own, byContent = slices.DeleteFunc(own, others), slices.DeleteFunc(byContent, others)
		}
		also := opt.secondFiles(files, r.ID)
		own = append(own, also...)
		if len(own)+len(byContent) == 0 && (opt.Receivers != nil || opt.reading != nil) {
			continue
		}
		conf := r.settings()
		conf["include"], conf["include_by_content"] = globsOf(own), globsOf(byContent)
		opt.setIdentity(conf, run)
		if _, stamped := factories[at].CreateDefaultConfig().(interface {
			Location() (*time.Location, error)
		}); stamped && zone != "" { // a receiver whose format has stamps
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
			c.Collector = "" // values of the files are the same on every host
		}
		set := receiver.Settings{ID: r.ID, TelemetrySettings: telemetry(opt.Log), BuildInfo: component.NewDefaultBuildInfo()}
		watched := settings
		if len(also) > 0 {
			watched.Watch = opt.watchSecond(also, settings.Watch)
		}
		o, scope, done, err := factories[at].Once(set, cfg, watched, opt.Positions, to.detail(r.ID.Type()), to.Traces, to.Metrics, to.GPUs)
		if err != nil {
			return nil, release, err
		}
		all = append(all, source{scope, o})
		releases = append(releases, done)
		if opt.reading != nil { // the files need no look for their receiver
			o.Claim(byContent)
		}
	}
	return all, release, nil
}

// settings returns the settings of the receiver for one reading: those configured, without the settings of files and of stored positions, and with a long wait
// for pending records.
func (r *Receiver) settings() map[string]any {
	conf := map[string]any{}
	maps.Copy(conf, r.Conf)
	for _, name := range []string{"exclude", "document", "storage", "dead_letter", "start_at"} {
		delete(conf, name)
	}
	conf["pending_timeout"] = "24h" // nothing is given up before the end
	conf["follow_symlinks"] = true  // the files are Input's, which has followed the links; a descriptor's path is a link
	return conf
}

// setIdentity sets the run and the service in the settings of a receiver.
func (o *Options) setIdentity(conf map[string]any, run string) {
	if run != "" {
		conf["run_id"] = run
	}
	if o.Service != "" {
		conf["service_name"] = o.Service
	}
}

// among returns a receiver's files that are among the wanted ones, which are sorted.
func among(own, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(own), func(f string) bool {
		_, ok := slices.BinarySearch(wanted, f)
		return !ok
	})
}

// globsOf returns globs that match exactly the files.
func globsOf(files []string) []any {
	list := make([]any, len(files))
	for i, f := range files {
		list[i] = escape(f)
	}
	return list
}

// configure returns a validated config of a component, from settings in the form of the YAML.
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

// telemetry returns the telemetry of components: a log, no traces and no metrics of their own.
func telemetry(log *zap.Logger) component.TelemetrySettings {
	return component.TelemetrySettings{
		Logger: log, TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: noopmetric.NewMeterProvider(), Resource: pcommon.NewResource(),
	}
}

// globEscaper escapes the special characters of globs.
var globEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// escape returns a glob that matches only the path.
func escape(path string) string { return globEscaper.Replace(path) }

// findReceivers sets File.Receiver to the receiver that understands the beginning of the file; for a file that none understands, it sets Binary, Err or First.
// Bytes becomes the size of all files with a receiver.
func (r *Reading) findReceivers(in *Input, opt Options) error {
	sorter := new(tail.Sorter)
	all, release, err := newSources(in.Files, "x", opt, tail.Settings{Sorter: sorter}, Sink{}) // "x": any run will do, as nothing is read
	defer release()
	if err != nil {
		return err
	}
	r.sample = func([]byte) string { return "" }
	if len(all) > 0 {
		r.sample = all[0].Sample
	}
	for _, f := range r.Files {
		f.Binary = isBinary(f.Path)
		if f.Binary {
			continue
		}
		if of, ok := sorter.Owner(f.Path); ok {
			f.Receiver = of.String()
			r.Bytes += f.Size
			f.findSecond(of, sorter)
			continue
		}
		f.Err = readError(f.Path)
		if f.Err == nil {
			_, first := sorter.Head(f.Path)
			f.First = r.Sample(first)
		}
	}
	return nil
}

// readJob reads the files of a job through a pipeline, all receivers in parallel, and adds counts and shifted zones to out. At the end the pipeline gets the
// spans of the runs (sendRuns), and is closed. met is called with each receiver before the reading begins, for the progress.
func readJob(ctx context.Context, j job, opt Options, to Sink, out *Reading, met func(*tail.Once)) error {
	opt.alone = len(j.files) == 1 && out.by[j.files[0]].Receiver == trainLog.String()
	p, err := newPipeline(ctx, opt, to)
	if err != nil {
		return err
	}
	watch := out.watch // the counts of files need to see each line, and the caller may want to
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
	other := func(f string) bool { return out.by[f].Receiver != out.by[j.files[0]].Receiver || out.by[f].Also != "" }
	if !slices.ContainsFunc(j.files, other) { // else findShifts compares their times
		first.OnlyEvents = to.OnlyEvents
	}
	seen := new(extents)
	if opt.Positions {
		first.Traces = seen.before(first.Traces)
	}
	opt.reading = out
	all, release, err := newSources(j.files, j.run, opt, settings, first)
	if err != nil {
		release()
		return errors.Join(err, p.close(ctx))
	}
	for _, s := range all {
		met(s.Once)
	}
	var readers sync.WaitGroup
	errs := make(chan error, len(all))
	// step_join is told of a scope's end when the last of its receivers has ended: there is one per zone.
	left := make(map[string]*atomic.Int32) // active receivers, by scope
	for _, s := range all {
		if left[s.scope] == nil {
			left[s.scope] = new(atomic.Int32)
		}
		left[s.scope].Add(1)
	}
	for _, s := range all {
		readers.Go(func() {
			counts, err := s.Read(ctx)
			out.addCounts(counts)
			if left[s.scope].Add(-1) == 0 {
				p.sourceEnded(s.scope)
			}
			errs <- err
		})
	}
	readers.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	out.findShifts(j.run, seen, opt)
	return errors.Join(err, p.sendRuns(ctx, release()), p.close(ctx))
}

// trainLog is the type of the receiver of trainers' logs.
var trainLog = component.MustNewType("train_log")

// patterns returns the patterns of the options, then those of a configuration.
func (o Options) patterns(configured any) (all []any) {
	for _, p := range o.Patterns {
		all = append(all, p)
	}
	if own, ok := configured.([]any); ok {
		all = append(all, own...)
	}
	return all
}

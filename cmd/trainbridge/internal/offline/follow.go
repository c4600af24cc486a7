package offline

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver"
)

// followWait is how long a step waits for the records of further logs: short, as a user is watching.
const followWait = "2s"

// followSample is how often the GPUs are sampled.
const followSample = "2s"

// Follow reads files from their beginning and on, while they grow, until the context ends. Later files of directories and globs are read too, if all is one
// job. Sink.Metrics gets the values of logs, and with GPUs in this host the values of NVML. Sink.Derived, and the options about positions, progress and lines,
// are not supported.
func Follow(ctx context.Context, in *Input, opt Options, to Sink) (err error) {
	opt = opt.withLog()
	if to.Derived != nil {
		return errors.New("Follow derives no metrics")
	}
	opt.follow = true
	known := newReading(in)
	if err := known.findReceivers(in, opt); err != nil {
		return err
	}
	p, err := newPipeline(ctx, opt, Sink{Traces: to.Traces})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	jobs := in.jobs(opt.Run, func(file string) string { return known.by[file].Receiver })
	// With a single job, or none yet, the files of the paths are all of that job, also those to come: the job has no list of files, and is read by globs.
	if len(jobs) < 2 {
		run := opt.Run
		for _, j := range jobs {
			run = j.run
		}
		jobs = []job{{run: run}}
	}
	var all, started []component.Component
	defer func() { // before the pipeline behind them
		for _, c := range slices.Backward(started) {
			err = errors.Join(err, c.Shutdown(context.WithoutCancel(ctx)))
		}
	}()
	for i, j := range jobs {
		globs := make([]any, 0, len(j.files))
		for _, f := range j.files {
			globs = append(globs, escape(f))
		}
		if len(globs) == 0 {
			globs = in.globs()
		}
		for _, f := range readers() {
			r, err := opt.newFollower(ctx, f, i, known.mixedGlobs(f.Type(), j.files), globs, j.run, p.first.Traces, to.Metrics)
			if err != nil {
				return err
			}
			all = append(all, r)
		}
	}
	if to.Metrics != nil {
		gpus, err := p.newGPUs(ctx, opt, to.Metrics)
		if err != nil {
			return err
		}
		all = append(all, gpus...)
	}
	// All receivers exist before the first one decides which files are its own.
	for _, c := range all {
		if err := c.Start(ctx, host{}); err != nil {
			return err
		}
		started = append(started, c)
	}
	<-ctx.Done()
	return nil
}

// newFollower returns a receiver for the i-th job. It reads the files of own, and of the files that globs match those that no receiver before understands.
func (o *Options) newFollower(
	ctx context.Context, f reader, i int, own, globs []any, run string, traces consumer.Traces, metrics consumer.Metrics,
) (component.Component, error) {
	conf := map[string]any{"include": own, "include_by_content": globs}
	o.setIdentity(conf, run)
	cfg, err := configure(f, conf)
	if err != nil {
		return nil, err
	}
	set := receiverSettings(f, i, *o)
	if metrics != nil { // of the same instance as the spans, by the same settings: a single Start begins both
		if _, err := f.CreateMetrics(ctx, set, cfg, metrics); err != nil {
			return nil, err
		}
	}
	return f.CreateTraces(ctx, set, cfg, traces)
}

// newGPUs returns two components, to be started: the metrics side of step_join, in front of the sink, which adds the state of the GPUs to the breakdown of a
// step, and the NVML receiver, which samples the GPUs of this host.
func (p *pipeline) newGPUs(ctx context.Context, opt Options, to consumer.Metrics) ([]component.Component, error) {
	cfg, err := configure(p.joins, nil)
	if err != nil {
		return nil, err
	}
	join, err := p.joins.CreateMetrics(ctx, processorSettings(opt, p.joins), cfg, to)
	if err != nil {
		return nil, err
	}
	f := nvmlreceiver.NewFactory()
	cfg, err = configure(f, map[string]any{"collection_interval": followSample})
	if err != nil {
		return nil, err
	}
	nvml, err := f.CreateMetrics(ctx, receiverSettings(f, 0, opt), cfg, join)
	return []component.Component{join, nvml}, err
}

// receiverSettings returns the settings of the receiver of the i-th job.
func receiverSettings(f component.Factory, i int, opt Options) receiver.Settings {
	return receiver.Settings{
		ID: component.NewIDWithName(f.Type(), strconv.Itoa(i)), TelemetrySettings: telemetry(opt.Log), BuildInfo: component.NewDefaultBuildInfo(),
	}
}

// globs returns globs that match the files of the paths as given, and later files: for a directory one with **, for a glob the glob itself.
func (in *Input) globs() (all []any) {
	for _, r := range in.roots {
		path, err := resolve(r.path)
		if err != nil { // a glob
			path, err = filepath.Abs(r.path)
			if err == nil {
				all = append(all, path)
			}
			continue
		}
		path = escape(path)
		if r.dir {
			path = filepath.Join(path, "**")
		}
		all = append(all, path)
	}
	return all
}

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

// followWait is for how long a step waits for what other logs say of it: somebody is looking on.
const followWait = "2s"

// Follow reads files from their beginning and on, as they are written, until the context ends. Of directories and globs, files that come later are read
// too, where all is one job. Sink.Metrics has what logs state as values, and where this host has GPUs, what NVML says of them. Sink.Derived, and what
// Options have of positions, progress and lines, are not for this.
func Follow(ctx context.Context, in *Input, opt Options, to Sink) (err error) {
	if opt = opt.withLog(); to.Derived != nil {
		return errors.New("Follow derives no metrics")
	}
	opt.follow = true
	known := newReading(in)
	if err := known.sort(in, opt); err != nil {
		return err
	}
	p, err := newPipeline(ctx, opt, Sink{Traces: to.Traces})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	jobs := in.jobs(opt.Run, func(file string) string { return known.by[file].Receiver })
	if len(jobs) < 2 {
		run := opt.Run
		for _, j := range jobs {
			run = j.run
		}
		jobs = []job{{run: run}}
	}
	var all, started []component.Component
	defer func() { // before the pipeline that they send to
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
			r, err := opt.follower(ctx, f, i, globs, j.run, p.first.Traces, to.Metrics)
			if err != nil {
				return err
			}
			all = append(all, r)
		}
	}
	if to.Metrics != nil {
		gpus, err := p.gpus(ctx, opt, to.Metrics)
		if err != nil {
			return err
		}
		all = append(all, gpus...)
	}
	// All receivers are there before the first begins to look whose a file is.
	for _, c := range all {
		if err := c.Start(ctx, host{}); err != nil {
			return err
		}
		started = append(started, c)
	}
	<-ctx.Done()
	return nil
}

// follower is a receiver that follows files.
func (o *Options) follower(
	ctx context.Context, f reader, i int, globs []any, run string, traces consumer.Traces, metrics consumer.Metrics,
) (component.Component, error) {
	conf := map[string]any{"include_by_content": globs}
	o.identify(conf, run)
	cfg, err := configure(f, conf)
	if err != nil {
		return nil, err
	}
	set := receiverSettings(f, i, *o)
	if metrics != nil { // of the same instance, which Start begins
		if _, err := f.CreateMetrics(ctx, set, cfg, metrics); err != nil {
			return nil, err
		}
	}
	return f.CreateTraces(ctx, set, cfg, traces)
}

// gpus are what samples the GPUs of this host, for step_join and for the sink.
func (p *pipeline) gpus(ctx context.Context, opt Options, to consumer.Metrics) ([]component.Component, error) {
	cfg, err := configure(p.joins, nil)
	if err != nil {
		return nil, err
	}
	join, err := p.joins.CreateMetrics(ctx, processorSettings(opt, p.joins), cfg, to)
	if err != nil {
		return nil, err
	}
	f := nvmlreceiver.NewFactory()
	if cfg, err = configure(f, map[string]any{"collection_interval": followWait}); err != nil {
		return nil, err
	}
	nvml, err := f.CreateMetrics(ctx, receiverSettings(f, 0, opt), cfg, join)
	return []component.Component{join, nvml}, err
}

func receiverSettings(f component.Factory, i int, opt Options) receiver.Settings {
	return receiver.Settings{
		ID: component.NewIDWithName(f.Type(), strconv.Itoa(i)), TelemetrySettings: telemetry(opt.Log), BuildInfo: component.NewDefaultBuildInfo(),
	}
}

// globs match what the paths name, and what comes there later.
func (in *Input) globs() (all []any) {
	for _, r := range in.roots {
		path, err := resolve(r.path)
		if err != nil { // a glob
			if path, err = filepath.Abs(r.path); err == nil {
				all = append(all, path)
			}
			continue
		}
		if path = escape(path); r.dir {
			path = filepath.Join(path, "**")
		}
		all = append(all, path)
	}
	return all
}

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/logfile"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/nccl"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/tq"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/train"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen/zmq"
)

// host is where ranks run.
type host struct {
	name  string // its IP address, by which all logs know it
	clock logfile.HostClock
	boot  int64 // what the clock showed when perf_counter began
}

// worker is the process of a rank.
type worker struct {
	pid    int
	prefix []byte
}

// event is what is still to be written about a true time.
type event struct {
	at    int64
	write func() error
}

// errStopped ends the simulation when the context does.
var errStopped = errors.New("stopped")

// job writes the logs of one job.
type job struct {
	opt     *Options
	hosts   []host
	workers []worker
	comm    string

	tq     logfile.Sink
	driver *logfile.Log
	stamp  logfile.Stamps
	events []event
	passes *zmq.Passes
	zmq    *zmq.Writer
	nccl   *nccl.Writer
	train  []*train.Writer
	truth  Truth
}

// Generate writes the logs and the truth of a job, or of two, and returns the truth about each. A context that ends stops it after a step without an error.
// Errors about the options wrap logfile.ErrOptions.
func Generate(ctx context.Context, opt Options) ([]Truth, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	return generate(ctx, &opt, logfile.RealClock)
}

func generate(ctx context.Context, opt *Options, clk logfile.Clock) ([]Truth, error) {
	if opt.Start.IsZero() {
		opt.Start = clk.Now()
		if !opt.Live {
			opt.Start = opt.Start.Add(-time.Duration(rehearse(opt)))
		}
	}
	opt.Start = opt.Start.Truncate(time.Millisecond)
	if !opt.clock(ClockTwoJobs) {
		truth, err := write(ctx, opt, clk)
		return []Truth{truth}, err
	}
	var truths []Truth
	for i := range 2 {
		one := *opt
		one.Out, one.job = filepath.Join(opt.Out, "job-"+strconv.Itoa(i)), i
		truth, err := write(ctx, &one, clk)
		if err != nil {
			return nil, err
		}
		truths = append(truths, truth)
	}
	return truths, nil
}

// simulate places the steps of a job one after the other, and tells each of them.
func simulate(opt *Options, start int64, passes *zmq.Passes, tell func(step told, next state) error) (end int64, err error) {
	p, s := &planner{opt: opt}, state{now: start}
	overlap := opt.clock(ClockOverlap)
	for n := 1; n <= opt.Steps && err == nil; n++ {
		t := p.next(n)
		passes.Next()
		took := passes.Took()
		line, next := s.place(t, nil, took, overlap)
		step := told{plan: t, timeline: line}
		if t.fault != nil {
			if t.fault.kind == FaultSerialize {
				took += passes.Slow(t.fault.by)
			}
			step.timeline, next = s.place(t, t.fault, took, overlap)
			step.extra = step.end - line.end
		}
		err = tell(step, next)
		s = next
	}
	return s.now, err
}

// rehearse says how long the logs are in ns, without writing them.
func rehearse(opt *Options) int64 {
	passes, _ := newPasses(opt)
	end, _ := simulate(opt, 0, passes, func(told, state) error { return nil }) // nothing fails
	return end
}

func write(ctx context.Context, opt *Options, clk logfile.Clock) (Truth, error) {
	passes, zmqOptions := newPasses(opt)
	j := newJob(ctx, opt, clk)
	if err := j.open(ctx, passes, zmqOptions); err != nil {
		return Truth{}, fmt.Errorf("%w: %w", logfile.ErrOptions, err)
	}
	var line []told
	end, err := simulate(opt, j.truth.Start, passes, func(step told, next state) error {
		j.step(&step)
		line = append(line, step)
		if !opt.clock(ClockNSteps) || step.step%nSteps == 0 {
			j.line(line)
			line = nil
		}
		until := next.now
		if next.rollout > 0 {
			until = next.rollout // from then on the next step has lines too
		}
		return j.flush(until)
	})
	if err == nil {
		err = j.flush(end)
	}
	if errors.Is(err, errStopped) {
		err = nil
	}
	if err = errors.Join(err, j.close()); err == nil {
		err = j.truth.write(opt.truthPath())
	}
	return j.truth, err
}

func (o *Options) truthPath() string { return filepath.Join(o.Out, "truth.json") }

// newJob draws hosts and workers. Jobs on the same hosts have the same clocks.
func newJob(ctx context.Context, opt *Options, clk logfile.Clock) *job {
	rng := rand.New(rand.NewPCG(opt.Seed, 0x686f_7374_73))
	start := opt.Start.UnixNano()
	j := &job{opt: opt, tq: logfile.Sink{Clock: clk, Paced: opt.Live, Ctx: ctx}, stamp: logfile.Stamps{Loc: time.UTC}}
	for i := range opt.hosts() {
		h := host{name: fmt.Sprintf("10.10.%d.%d", 1+i/200, 11+i%200), clock: logfile.HostClock{Start: start}}
		boot := rng.Int64N(40*24*3600*1000) + 1
		skew, drift := 2*rng.Float64()-1, 2*rng.Float64()-1
		if opt.clock(ClockSkew) && i > 0 {
			h.clock.Skew, h.clock.Drift = int64(skew*5e9), drift*50
		}
		h.boot = h.clock.Local(start) - boot*ms
		j.hosts = append(j.hosts, h)
	}
	pid := 20_000 + 200_000*opt.job + rng.IntN(20_000)
	for rank := range opt.Ranks {
		pid += 1 + rng.IntN(60)
		j.workers = append(j.workers, worker{pid: pid, prefix: logfile.RayPrefix(logfile.PrefixRay, "WorkerDict", pid, j.host(rank).name)})
	}
	ids := rand.New(rand.NewPCG(opt.Seed, 0x7275_6e00+uint64(opt.job)))
	j.truth = Truth{RunID: "run-" + uuid(ids), Seed: opt.Seed, Ranks: opt.Ranks, Clocks: opt.Clocks, Start: start, End: start, Steps: []Step{}}
	for i, h := range j.hosts {
		known := Host{Name: h.name, FirstRank: i * perHost, SkewNS: h.clock.Skew, DriftPPM: h.clock.Drift}
		for _, w := range j.workers[i*perHost : min(opt.Ranks, (i+1)*perHost)] {
			known.PIDs = append(known.PIDs, w.pid)
		}
		j.truth.Hosts = append(j.truth.Hosts, known)
	}
	return j
}

func (j *job) host(rank int) *host { return &j.hosts[rank/perHost] }

// open creates all logs.
func (j *job) open(ctx context.Context, passes *zmq.Passes, zmqOptions zmq.Options) (err error) {
	o, truth := j.opt, j.opt.truthPath()
	j.passes = passes
	if j.driver, err = j.tq.OpenLog(filepath.Join(o.Out, "tq"), true, "driver.log", truth, nil); err != nil {
		return err
	}
	zmqOptions.Out, zmqOptions.Truth = filepath.Join(o.Out, "zmq"), truth
	if j.zmq, err = zmq.NewWriter(ctx, zmqOptions, passes, o.ids(), o.Live); err != nil {
		return err
	}
	n := nccl.DefaultOptions()
	n.Format, n.Out, n.Truth = o.ncclFormat(), filepath.Join(o.Out, "nccl"), truth
	n.Ranks, n.Nodes, n.Seed, n.Channels, n.PerStep = o.Ranks, len(j.hosts), o.Seed+uint64(o.job), 1, o.Collectives
	n.Live = o.Live
	n.Verbose = !o.clock(ClockNoStart)
	if n.Format == nccl.FormatInspector {
		j.comm = n.CommName
	}
	where := &nccl.Job{}
	for _, h := range j.hosts {
		where.Hosts = append(where.Hosts, nccl.JobHost{Name: h.name, Clock: h.clock})
	}
	for _, w := range j.workers {
		where.PIDs = append(where.PIDs, w.pid)
	}
	if j.nccl, err = nccl.NewWriter(ctx, n, j.truth.Start, where); err != nil {
		return err
	}
	formats := []string{train.FormatJSONL}
	if o.Megatron {
		formats = append(formats, train.FormatMegatron)
	}
	for _, format := range formats {
		t := train.DefaultOptions(format)
		t.Out, t.Truth, t.Seed, t.Steps, t.WorldSize, t.Timezone = filepath.Join(o.Out, "train"), truth, o.Seed, o.Steps, o.Ranks, time.UTC
		t.Interval, t.Timers, t.Fields, t.WholeSeconds = 1, false, "full", o.clock(ClockSeconds)
		w, err := train.NewWriter(ctx, t, j.truth.Start, o.Live)
		if err != nil {
			return err
		}
		j.train = append(j.train, w)
	}
	return nil
}

// later has something written about a true time.
func (j *job) later(at int64, write func() error) { j.events = append(j.events, event{at, write}) }

// step prepares what the logs say of a step but its line.
func (j *job) step(t *told) {
	id := ""
	if j.opt.ids() {
		id = t.traceID
	}
	for fn := range t.functions {
		for rank := range t.functions[fn] {
			j.call(t, fn, rank)
		}
	}
	t.pass = j.zmq.Pass(t.timeline.pass.start)
	for i, end := range j.passes.Ends(t.timeline.pass.start) {
		j.later(end, func() error { return j.zmq.Row(id, i) })
	}
	flaky := -1
	if t.fault != nil && t.fault.kind == FaultLink {
		flaky = t.fault.rank
	}
	for k := range t.collectives {
		c := &t.collectives[k]
		j.later(c.end, func() error {
			return j.nccl.Write(&nccl.Event{
				Operation: collectives[k%len(collectives)].operation, Size: j.opt.size(k), Begun: c.begun, Arrive: c.arrive,
				Leave: slices.Repeat([]int64{c.end}, j.opt.Ranks), Flaky: flaky, TraceID: id,
			})
		})
	}
}

// call prepares the lines of a function.
func (j *job) call(t *told, fn, rank int) {
	c, h := &t.functions[fn][rank], j.host(rank)
	f := &tq.Function{TraceID: "N/A", Func: names[fn], PID: j.workers[rank].pid, BatchSize: t.samples}
	if j.opt.ids() && !j.opt.clock(ClockNA) {
		f.TraceID = t.traceID
	}
	start, got, computed, end := h.clock.Local(c.start), h.clock.Local(c.got), h.clock.Local(c.computed), h.clock.Local(c.end)
	f.Ratios = tq.NewRatios(got-start, computed-got, end-computed, end-start)
	for _, l := range []struct {
		at   int64
		kind tq.LineKind
		ns   int64 // the duration that it states
	}{
		{c.start, tq.LineStart, 0},
		{c.start, tq.LineGetStart, 0},
		{c.got, tq.LineGetEnd, got - start},
		{c.got, tq.LineComputeStart, 0},
		{c.computed, tq.LineComputeEnd, computed - got},
		{c.computed, tq.LinePutStart, 0},
		{c.end, tq.LinePutEnd, end - computed},
		{c.end, tq.LineEnd, end - start},
	} {
		j.later(l.at, func() error {
			at := h.clock.Local(l.at)
			b := append(j.tq.Text(string(j.workers[rank].prefix)), "INFO:"...)
			if j.opt.clock(ClockSeconds) {
				b = j.stamp.AppendSeconds(b, at)
			} else {
				b = j.stamp.Append(b, at)
			}
			j.tq.Line(j.driver, tq.AppendLine(append(b, ':'), l.kind, f, logfile.Micros(at-h.boot), l.ns, 0), logfile.Record)
			return j.tq.Err
		})
	}
}

// flush writes what is about times up to a true one, in their order. When the context ends it writes no more.
func (j *job) flush(until int64) error {
	slices.SortStableFunc(j.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	n := 0
	for ; n < len(j.events) && j.events[n].at <= until; n++ {
		e := &j.events[n]
		j.tq.Wait(e.at)
		if j.tq.Ctx.Err() != nil {
			return errStopped
		}
		if err := e.write(); err != nil {
			return err
		}
	}
	j.events = slices.Delete(j.events, 0, n)
	return nil
}

// parts are the parts of steps that their line has: those that no other log tells of.
func parts(steps []told) (all []train.Part) {
	for _, part := range []struct {
		name string
		of   func(*told) interval
	}{
		{"data_loading", func(t *told) interval { return t.timeline.loading }},
		{"save_checkpoint", func(t *told) interval { return t.timeline.checkpoint }},
		{"testing", func(t *told) interval { return t.timeline.evaluation }},
	} {
		sum := int64(0)
		for i := range steps {
			at := part.of(&steps[i])
			sum += at.end - at.start
		}
		if sum > 0 {
			all = append(all, train.Part{Name: part.name, Took: sum / int64(len(steps))})
		}
	}
	return all
}

// line prepares the line of the training log about these steps, which is written when they are over, and then is in the truth.
func (j *job) line(steps []told) {
	last := &steps[len(steps)-1]
	line := train.Step{N: int64(last.step), End: j.hosts[0].clock.Local(last.end), Took: (last.end - steps[0].start) / int64(len(steps)), Parts: parts(steps)}
	for i := range steps {
		line.Tokens += steps[i].tokens
	}
	if j.opt.ids() && len(steps) == 1 {
		line.TraceID = last.traceID
	}
	j.later(last.end, func() error {
		for _, w := range j.train {
			if err := w.Write(&line); err != nil {
				return err
			}
		}
		j.truth.Steps = append(j.truth.Steps, j.tell(steps))
		j.truth.End = last.end
		return nil
	})
}

// close ends all logs.
func (j *job) close() error {
	var files []logfile.File
	errs := []error{j.tq.Close(nil, &files, nil)}
	closers := []func() ([]logfile.File, error){j.zmq.Close, j.nccl.Close}
	for _, w := range j.train {
		closers = append(closers, w.Close)
	}
	for _, end := range closers {
		more, err := end()
		files = append(files, more...)
		errs = append(errs, err)
	}
	for _, f := range files {
		if rel, err := filepath.Rel(j.opt.Out, f.Path); err == nil {
			f.Path = filepath.ToSlash(rel)
		}
		j.truth.Files = append(j.truth.Files, f)
	}
	return errors.Join(errs...)
}

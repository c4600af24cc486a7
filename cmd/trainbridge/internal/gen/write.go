package gen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// host is where ranks run.
type host struct {
	name  string // its IP address, the host's name in all logs
	clock logfile.HostClock
	boot  int64 // its clock when perf_counter began
}

// event is a pending write about a true time.
type event struct {
	at    int64
	write func() error
}

// errStopped ends the simulation when the context does.
var errStopped = errors.New("stopped")

// job is a job whose logs are being written.
type job struct {
	opt    *Options
	hosts  []host
	pids   []int  // of the ranks' workers
	comm   string // name of the communicator in the log; VCCL has none
	logs   logfile.Sink
	events []event // lines prepared and not written yet
	tq     tqLog
	rpc    rpcLog
	nccl   ncclLogs
	train  trainLog
	truth  Truth
}

// Generate writes the logs and the truth of one job or two, and returns the truth of each. A context that ends stops the writing without an error. Errors about
// the options wrap logfile.ErrOptions.
func Generate(ctx context.Context, opt Options) ([]Truth, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	return generate(ctx, &opt, logfile.RealClock)
}

// generate is Generate of valid options. Without a start and without Live, the job is simulated once before, to know the start from which the logs end now.
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

// simulate places the steps of a job one after another, from a start, ns since 1970, and passes each to done, with what the step leaves to the next. A step
// with a fault is placed twice: without its fault too, to know what the fault costs. end is the end of the last step.
func simulate(opt *Options, start int64, passes *passes, done func(step doneStep, next state) error) (end int64, err error) {
	p, s := &planner{opt: opt}, state{now: start}
	overlap := opt.clock(ClockOverlap)
	for n := 1; n <= opt.Steps && err == nil; n++ {
		t := p.next(n)
		calls := passes.next()
		took := calls.sums()[whole]
		line, next := s.place(t, nil, took, overlap)
		step := doneStep{plan: t, timeline: line, rpcs: calls}
		if t.fault != nil {
			if t.fault.kind == FaultSerialize {
				took += calls.slow(t.fault.by)
			}
			step.timeline, next = s.place(t, t.fault, took, overlap)
			step.extra = step.end - line.end
		}
		err = done(step, next)
		s = next
	}
	return s.now, err
}

// rehearse is the length of the logs in ns, without writing.
func rehearse(opt *Options) int64 {
	end, _ := simulate(opt, 0, newPasses(opt), func(doneStep, state) error { return nil }) // nothing fails
	return end
}

// write writes the logs of a job, step by step, and at the end the truth. A stopped context is no error: the truth is about the steps written.
func write(ctx context.Context, opt *Options, clk logfile.Clock) (Truth, error) {
	passes, j := newPasses(opt), newJob(ctx, opt, clk)
	if err := errors.Join(j.openTQ(), j.openRPC(passes.session), j.openNCCL(), j.openTrain()); err != nil {
		return Truth{}, fmt.Errorf("%w: %w", logfile.ErrOptions, err)
	}
	var line []doneStep // the steps of the next line of the training log
	end, err := simulate(opt, j.truth.Start, passes, func(step doneStep, next state) error {
		j.step(&step)
		line = append(line, step)
		if !opt.clock(ClockNSteps) || step.step%nSteps == 0 {
			j.line(line)
			line = nil
		}
		until := next.now // lines up to here are known in whole
		if next.rollout > 0 {
			until = next.rollout // from then on the next step has lines too
		}
		return j.flush(until)
	})
	if err == nil { // lines behind the last begin of a rollout
		err = j.flush(end)
	}
	if errors.Is(err, errStopped) {
		err = nil
	}
	err = errors.Join(err, j.close())
	if err == nil {
		err = j.truth.write(opt.truthPath())
	}
	return j.truth, err
}

func (o *Options) truthPath() string { return filepath.Join(o.Out, "truth.json") }

// newJob draws hosts with their clocks, and workers. Hosts depend on the seed alone: two jobs on the same hosts (ClockTwoJobs) have the same clocks.
func newJob(ctx context.Context, opt *Options, clk logfile.Clock) *job {
	rng := rand.New(rand.NewPCG(opt.Seed, 0x686f_7374_73))
	start := opt.Start.UnixNano()
	j := &job{opt: opt, logs: logfile.Sink{Clock: clk, Paced: opt.Live, Ctx: ctx}}
	for i := range opt.hosts() {
		h := host{name: fmt.Sprintf("10.10.%d.%d", 1+i/200, 11+i%200), clock: logfile.HostClock{Start: start}}
		boot := rng.Int64N(40*24*3600*1000) + 1 // ms since the host's boot, up to 40 days
		skew, drift := 2*rng.Float64()-1, 2*rng.Float64()-1
		if opt.clock(ClockSkew) && i > 0 {
			h.clock.Skew, h.clock.Drift = int64(skew*5e9), drift*50
		}
		h.boot = h.clock.Local(start) - boot*ms
		j.hosts = append(j.hosts, h)
	}
	pid := 20_000 + 200_000*opt.job + rng.IntN(20_000)
	for range opt.Ranks {
		pid += 1 + rng.IntN(60)
		j.pids = append(j.pids, pid)
	}
	ids := rand.New(rand.NewPCG(opt.Seed, 0x7275_6e00+uint64(opt.job)))
	j.truth = Truth{RunID: "run-" + uuid(ids), Seed: opt.Seed, Ranks: opt.Ranks, Clocks: opt.Clocks, Start: start, End: start, Steps: []Step{}}
	for i, h := range j.hosts {
		known := Host{Name: h.name, FirstRank: i * perHost, SkewNS: h.clock.Skew, DriftPPM: h.clock.Drift}
		known.PIDs = j.pids[i*perHost : min(opt.Ranks, (i+1)*perHost)]
		j.truth.Hosts = append(j.truth.Hosts, known)
	}
	return j
}

// host is the host of a rank.
func (j *job) host(rank int) *host { return &j.hosts[rank/perHost] }

// create creates a log in a directory below Options.Out. buffer is in By.
func (j *job) create(dir, name string, f logfile.File, buffer int) (*logfile.Log, error) {
	dir = filepath.Join(j.opt.Out, dir)
	f.Path = filepath.Join(dir, name)
	l := &logfile.Log{File: f}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return l, j.logs.Create(l, j.opt.truthPath(), buffer)
}

// later has something written in the order of true times: at is the time that the line is about.
func (j *job) later(at int64, write func() error) { j.events = append(j.events, event{at, write}) }

// step prepares the log lines of a step, but for its line of the training log.
func (j *job) step(t *doneStep) {
	id := ""
	if j.opt.ids() {
		id = t.traceID
	}
	for fn := range t.functions {
		for rank := range t.functions[fn] {
			j.call(t, fn, rank)
		}
	}
	for i, end := range t.rpcs.ends(t.pass.start) {
		j.later(end, func() error { return j.row(id, &t.rpcs[i]) })
	}
	flaky := -1
	if t.fault != nil && t.fault.kind == FaultLink {
		flaky = t.fault.rank
	}
	for k := range t.collectives {
		e := &ncclEvent{collective: &t.collectives[k], kind: &collectives[k%len(collectives)], size: j.opt.size(k), flaky: flaky, traceID: id}
		j.later(e.end, func() error { return j.collect(e) })
	}
}

// flush writes the events up to a true time, in order; with Live each when its time has come. errStopped: the context has ended.
func (j *job) flush(until int64) error {
	slices.SortStableFunc(j.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	n := 0
	for ; n < len(j.events) && j.events[n].at <= until; n++ {
		e := &j.events[n]
		j.logs.Wait(e.at)
		if j.logs.Ctx.Err() != nil {
			return errStopped
		}
		if err := e.write(); err != nil {
			return err
		}
	}
	j.events = slices.Delete(j.events, 0, n)
	return nil
}

// parts are the parts of steps in their line of the training log, those in no other log, with the mean time over the steps.
func parts(steps []doneStep) (all []part) {
	for _, p := range []struct {
		name string
		of   func(*doneStep) interval
	}{
		{"data_loading", func(t *doneStep) interval { return t.timeline.loading }},
		{"save_checkpoint", func(t *doneStep) interval { return t.timeline.checkpoint }},
		{"testing", func(t *doneStep) interval { return t.timeline.evaluation }},
	} {
		sum := int64(0)
		for i := range steps {
			at := p.of(&steps[i])
			sum += at.end - at.start
		}
		if sum > 0 {
			all = append(all, part{p.name, sum / int64(len(steps))})
		}
	}
	return all
}

// line prepares the line of the training log about the steps. It is written, and added to the truth, when they are over.
func (j *job) line(steps []doneStep) {
	last, id := &steps[len(steps)-1], ""
	if j.opt.ids() && len(steps) == 1 {
		id = last.traceID
	}
	j.later(last.end, func() error {
		took := (last.end - steps[0].start) / int64(len(steps))
		stated := j.truthOf(steps)
		if err := j.record(last.step, j.hosts[0].clock.Local(last.end), took, stated.Tokens, id, parts(steps)); err != nil {
			return err
		}
		j.truth.Steps = append(j.truth.Steps, stated)
		j.truth.End = last.end
		j.truth.Tokens += stated.Tokens
		return nil
	})
}

// close writes what NCCL Inspector still holds, ends all logs, and notes the files in the truth.
func (j *job) close() error {
	j.dumpAll()
	files, err := j.logs.Close()
	for _, f := range files {
		if rel, err := filepath.Rel(j.opt.Out, f.Path); err == nil {
			f.Path = filepath.ToSlash(rel)
		}
		j.truth.Files = append(j.truth.Files, f)
	}
	return err
}

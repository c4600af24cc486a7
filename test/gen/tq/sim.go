package tq

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// Worker is a simulated process. Times are wall clock nanoseconds.
type Worker struct {
	index, Pid int
	ip         string
	id         string // Ray's Worker id
	boot       int64  // wall time of perf_counter's zero on this host
	now        int64  // current time of its event loop
	rayPrefix  []byte
	out        *logfile.Log
}

// call is a running function of a Worker.
type call struct {
	w     *Worker
	truth Function
	due   int64
	order int64 // ties break by age: the result never depends on the heap
	step  int

	get, compute, put   int64 // planned time in the client, the function, the client
	getBytes, putBytes  int64
	dieAfter            int // bursts printed before a crash; 0: none
	computeOnly         bool
	started, stage, cli int64 // clock readings not yet closed
	got, computed       int64 // durations until now
}

type sim struct {
	opt   Options
	rng   *rand.Rand
	scale float64
	hosts []string
	ws    []*Worker
	unit  *storage // nil without Options.Costs
	heap  []*call
	order int64
	now   int64
	// identified: the batch has printed its trace id.
	identified bool
	// sink is nil in a rehearsal, which counts lines and time only. The sink must draw no random numbers.
	sink   *tqSink
	counts Run
}

// newSim draws the workers. The same options give the same run, whatever start is.
func newSim(opt Options, start int64, scale float64, out *tqSink) *sim {
	s := &sim{opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 0x7452_6169_6e42_7269)), scale: scale, now: start, sink: out}
	s.hosts = append([]string{""}, opt.IPs...)
	boots := make([]int64, len(s.hosts))
	for i := range boots {
		boots[i] = start - int64(s.between(2, 40)*24*float64(time.Hour))
	}
	name := "WorkerDict"
	if len(opt.Functions) == 1 && opt.Functions[0] == "generate_sequences" {
		name = "AgentLoopWorker"
	}
	pid := 10000 + s.rng.IntN(2_000_000)
	for i := range opt.Workers {
		h := i % len(s.hosts)
		w := &Worker{index: i, Pid: pid, ip: s.hosts[h], boot: boots[h], now: start, id: s.hex(28)}
		pid += 1 + s.rng.IntN(60)
		w.rayPrefix = writer.RayPrefix(opt.Prefix, name, w.Pid, w.ip)
		s.ws = append(s.ws, w)
	}
	if opt.Costs {
		s.unit = &storage{Worker: Worker{Pid: pid, now: start, id: s.hex(28)}, unit: "TQ_STORAGE_UNIT_" + s.hex(4), reported: start}
		s.unit.rayPrefix = writer.RayPrefix(opt.Prefix, "SimpleStorageUnit", s.unit.Pid, s.unit.ip)
	}
	return s
}

func (s *sim) between(lo, hi float64) float64 { return lo + (hi-lo)*s.rng.Float64() }

func (s *sim) chance(p float64) bool { return s.rng.Float64() < p }

func (s *sim) hex(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	return hex.EncodeToString(b)
}

func (s *sim) uuid() string {
	var b [16]byte
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ns is a planned duration, from seconds.
func (s *sim) ns(seconds float64) int64 { return int64(seconds * s.scale * 1e9) }

// run simulates batches (all, or until the context ends).
func (s *sim) run(ctx context.Context, batches int) error {
	for m := 0; (batches == 0 || m < batches) && ctx.Err() == nil; m++ {
		if err := s.batch(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// typicalSeconds is the compute time of a function. Names unknown in verl get a time by hash.
func typicalSeconds(name string) float64 {
	switch name {
	case "generate_sequences", "rollout":
		return 6
	case "compute_log_prob", "compute_ref_log_prob", "compute_values":
		return 0.8
	case "update_actor", "update_critic":
		return 2.4
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return 0.3 + float64(h.Sum32()%2000)/1000
}

// batch runs every function on every Worker; a function begins when all workers have ended the one before.
func (s *sim) batch(ctx context.Context, m int) error {
	id := s.uuid()
	high := s.chance(s.opt.OverheadHigh)
	pace := s.between(0.8, 1.25)
	size := 8 << s.rng.IntN(4) // samples per call
	speed := 40 * math.Pow(40, s.rng.Float64()) * (1 << 20)
	s.identified = false
	s.counts.Batches++
	for _, name := range s.opt.Functions {
		typical := typicalSeconds(name) * pace
		for _, w := range s.ws {
			for range s.opt.Concurrency {
				c := &call{w: w, order: s.order, due: s.now + s.ns(s.between(0.001, 0.03))}
				s.order++
				c.truth = Function{TraceID: id, Batch: m, Func: name, Worker: w.index, PID: w.Pid, IP: w.ip, BatchSize: size}
				if s.chance(s.opt.NA) {
					c.truth.TraceID = "N/A"
				}
				seconds := typical * s.between(0.85, 1.15)
				getShare, putShare := s.between(0.01, 0.06), s.between(0.01, 0.07)
				if high { // together 0.55–1.05 of the computing time: 35–51 % of the whole
					getShare, putShare = s.between(0.30, 0.60), s.between(0.25, 0.45)
				}
				c.compute, c.get, c.put = s.ns(seconds), s.ns(seconds*getShare), s.ns(seconds*putShare)
				c.getBytes = max(10<<10, int64(float64(c.get)/1e9*speed*s.between(0.8, 1.2)))
				c.putBytes = max(10<<10, int64(float64(c.put)/1e9*speed*s.between(0.8, 1.2)))
				switch p := s.rng.Float64(); {
				case p < s.opt.Crash:
					c.dieAfter = 1 + s.rng.IntN(3)
				case p < s.opt.Crash+s.opt.ComputeOnly:
					c.computeOnly = true
				}
				s.push(c)
			}
		}
		for len(s.heap) > 0 {
			if ctx.Err() != nil {
				return s.stop()
			}
			c := s.pop()
			more, err := s.burst(c)
			if err != nil {
				return err
			}
			s.now = max(s.now, c.w.now)
			if more {
				s.push(c)
			}
		}
		s.now += s.ns(s.between(0.005, 0.02))
	}
	s.report()
	s.now += s.ns(s.between(0.02, 0.2))
	return s.failed()
}

// stop records the functions still running.
func (s *sim) stop() error {
	for len(s.heap) > 0 {
		c := s.pop()
		if c.step == 0 {
			continue
		}
		if err := s.finish(c, Open); err != nil {
			return err
		}
	}
	return nil
}

// Clock reads and log calls take a little time, which keeps the stamps of a process strictly increasing even at µs.
func (s *sim) read(w *Worker) int64 {
	w.now += 1000 + int64(s.rng.Uint32N(3000))
	return w.now
}

func (s *sim) logged(w *Worker) int64 {
	w.now += 2000 + int64(s.rng.Uint32N(9000))
	return w.now
}

// burst runs a coroutine up to its next await. It returns false at the end of the function.
func (s *sim) burst(c *call) (bool, error) {
	w := c.w
	w.now = max(w.now+1000, c.due)
	if s.sink != nil {
		s.sink.Wait(w.now)
	}
	if s.counts.Lines == 0 {
		s.counts.StartUnixNano = w.now
	}
	f := &c.truth
	detail := s.opt.Detail
	c.step++
	switch c.step {
	case 1:
		if f.TraceID != "N/A" && !s.identified {
			s.identified = true
			s.counts.TraceIDs++
		}
		c.started = s.read(w)
		f.PerfStart, f.StartUnixNano = s.perf(w, c.started), c.started
		s.line(w, lineStart, c, c.started, 0)
		if !s.opt.Costs {
			s.line(w, lineGetting, c, 0, 0)
		}
		c.stage = s.read(w)
		s.open(f, "get", w, c.stage)
		s.line(w, lineGetStart, c, c.stage, 0)
		if detail {
			c.cli = s.read(w)
			s.openClient(f, "client_get", w, c.cli)
			s.line(w, lineClientGetStart, c, c.cli, 0)
		}
		c.due = w.now + c.get
	case 2:
		if detail {
			t := s.read(w)
			s.closeClient(f, w, t, t-c.cli, c.getBytes)
			s.line(w, lineClientGetEnd, c, t, t-c.cli)
		}
		t := s.read(w)
		c.got = t - c.stage
		s.close(f, w, t, c.got)
		s.line(w, lineGetEnd, c, t, c.got)
		if s.opt.Costs {
			s.cost(w, c, false, c.got)
		}
		c.stage = s.read(w)
		s.open(f, "compute", w, c.stage)
		s.line(w, lineComputeStart, c, c.stage, 0)
		c.due = w.now + c.compute
	case 3:
		t := s.read(w)
		c.computed = t - c.stage
		s.close(f, w, t, c.computed)
		s.line(w, lineComputeEnd, c, t, c.computed)
		if c.computeOnly {
			f.PerfEnd, f.EndUnixNano = s.perf(w, t), t
			return false, s.finish(c, ComputeOnly)
		}
		c.stage = s.read(w)
		s.open(f, "put", w, c.stage)
		s.line(w, linePutStart, c, c.stage, 0)
		if !s.opt.Costs {
			s.line(w, linePutting, c, 0, 0)
		}
		if detail {
			c.cli = s.read(w)
			s.openClient(f, "client_put", w, c.cli)
			s.line(w, lineClientPutStart, c, c.cli, 0)
		}
		c.due = w.now + c.put
	case 4:
		if detail {
			t := s.read(w)
			s.closeClient(f, w, t, t-c.cli, c.putBytes)
			s.line(w, lineClientPutEnd, c, t, t-c.cli)
		}
		t := s.read(w)
		put := t - c.stage
		s.close(f, w, t, put)
		s.line(w, linePutEnd, c, t, put)
		if s.opt.Costs {
			s.cost(w, c, true, put)
		}
		total := t - c.started
		f.PerfEnd, f.EndUnixNano, f.DurationUS = s.perf(w, t), t, logfile.Micros(total)
		s.ratios(c, put, total)
		s.line(w, lineEnd, c, t, total)
		return false, s.finish(c, Complete)
	}
	if c.step == c.dieAfter {
		return false, s.finish(c, Open)
	}
	return true, s.failed()
}

func (s *sim) failed() error {
	if s.sink == nil {
		return nil
	}
	return s.sink.Err
}

// perf is the text of perf_counter at a wall time.
func (s *sim) perf(w *Worker, wall int64) string {
	if s.sink == nil {
		return ""
	}
	var b [24]byte
	return string(logfile.AppendSeconds(b[:0], logfile.Micros(wall-w.boot)))
}

func (s *sim) open(f *Function, stage string, w *Worker, t int64) {
	if s.sink != nil {
		f.Stages = append(f.Stages, Stage{Stage: stage, PerfStart: s.perf(w, t), StartUnixNano: t})
	}
}

func (s *sim) close(f *Function, w *Worker, t, ns int64) {
	if s.sink != nil {
		closeStage(&f.Stages[len(f.Stages)-1], s.perf(w, t), t, ns)
	}
}

func closeStage(st *Stage, perf string, t, ns int64) {
	st.PerfEnd, st.EndUnixNano, st.DurationUS, st.Done = perf, t, logfile.Micros(ns), true
}

func (s *sim) openClient(f *Function, stage string, w *Worker, t int64) {
	if s.sink != nil {
		f.Stages[len(f.Stages)-1].Client = &Stage{Stage: stage, PerfStart: s.perf(w, t), StartUnixNano: t}
	}
}

func (s *sim) closeClient(f *Function, w *Worker, t, ns, size int64) {
	if s.sink == nil {
		return
	}
	c := f.Stages[len(f.Stages)-1].Client
	closeStage(c, s.perf(w, t), t, ns)
	c.TrueBytes = size
	hundredths := mebiHundredths(size)
	c.DataSizeMB = string(logfile.AppendHundredths(nil, hundredths))
	c.DataSizeBytes = (hundredths*(1<<20) + 50) / 100
	if c.Stage == "client_put" {
		c.ThroughputMBps = string(appendThroughput(nil, size, ns))
	}
}

func (s *sim) ratios(c *call, put, total int64) {
	if s.sink == nil {
		return
	}
	c.truth.Ratios = newRatios(c.got, c.computed, put, total)
}

func (s *sim) finish(c *call, outcome string) error {
	s.counts.Functions++
	if outcome == Complete {
		s.counts.Complete++
	}
	s.counts.EndUnixNano = max(s.counts.EndUnixNano, c.w.now)
	if s.sink == nil {
		return nil
	}
	f := &c.truth
	f.Outcome, f.Spans = outcome, 1
	count := func(st *Stage) {
		if st.Done {
			f.Spans++
		} else {
			f.OpenSpans++
		}
	}
	for i := range f.Stages {
		count(&f.Stages[i])
		if f.Stages[i].Client != nil {
			count(f.Stages[i].Client)
		}
	}
	s.counts.Spans += int64(f.Spans)
	s.counts.OpenSpans += int64(f.OpenSpans)
	if err := s.sink.Truth(f); err != nil {
		return err
	}
	return s.sink.Err
}

// A binary heap by (due, order); container/heap costs an interface call per comparison.
func (s *sim) less(i, j int) bool {
	a, b := s.heap[i], s.heap[j]
	return a.due < b.due || a.due == b.due && a.order < b.order
}

func (s *sim) push(c *call) {
	s.heap = append(s.heap, c)
	for i := len(s.heap) - 1; i > 0; {
		p := (i - 1) / 2
		if !s.less(i, p) {
			break
		}
		s.heap[i], s.heap[p] = s.heap[p], s.heap[i]
		i = p
	}
}

func (s *sim) pop() *call {
	top := s.heap[0]
	last := len(s.heap) - 1
	s.heap[0], s.heap[last] = s.heap[last], nil
	s.heap = s.heap[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && s.less(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
}

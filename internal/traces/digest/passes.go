package digest

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// Pass is a forward pass over RPCs, or several groups of calls together. NaN: not known.
type Pass struct {
	At
	Incomplete bool
	Told       []string // the titles of the verdicts, in order
	Verdicts

	Ordinal                      float64 // number of the pass in its session, from 1
	Calls                        float64
	Duration                     float64 // s, of all calls
	Serialize, Transport, Server float64 // shares of the time
	Throughput                   float64 // By/s
}

// setFigures sets the figures of a pass from the span of a group of calls.
func (p *Pass) setFigures(v *view.Group) {
	p.Ordinal = math.NaN()
	if v.Ordinal.OK {
		p.Ordinal = float64(v.Ordinal.N)
	}
	p.Calls, p.Duration, p.Throughput = v.Calls, v.CallDuration, v.Throughput
	p.Serialize, p.Transport, p.Server = RPCShare(v, view.RPCSerialize), RPCShare(v, view.RPCTransport), RPCShare(v, view.RPCServer)
}

// RPCShare returns the share of a stage in the time of the calls of a group, 0 to 1: train_perf's share if available, else from the durations. NaN: unknown.
func RPCShare(v *view.Group, stage view.RPCStage) float64 {
	if !math.IsNaN(v.Share[stage]) {
		return v.Share[stage]
	}
	if v.CallDuration <= 0 {
		return math.NaN()
	}
	took := v.Duration[stage]
	if stage == view.RPCTransport {
		took = v.Duration[view.RPCSend] + v.Duration[view.RPCReceive]  // with the server's time
		if server := v.Duration[view.RPCServer]; !math.IsNaN(server) { // else the server said nothing
			took -= server
		}
	}
	return took / v.CallDuration
}

// Passes are the groups of RPCs, and the RPCs.
type Passes struct {
	Count, Incomplete int
	Complete          PassFigures // of the complete passes
	Calls             Calls       // all of the job
	newest            []*Pass     // the newest mostPasses passes, and up to as many others
	whole             logSums
	verdicts          Verdicts // of all passes
	repeats           repeats
	logs              table[string, CallLog]
	log               *CallLog   // of the last call, for addPart; nil: the call was of a warm-up
	stated            bool       // the last call has the times of its stages as attributes, so the stages' spans do not count
	v                 view.Group // read last
	c                 view.Call  // read last
}

// PassFigures are distributions over passes, as in [Pass].
type PassFigures struct{ Calls, Duration, Serialize, Transport, Server, Throughput Values }

// add adds the figures of a pass.
func (f *PassFigures) add(p *Pass) {
	f.Calls.Add(p.Calls)
	f.Duration.Add(p.Duration)
	f.Serialize.Add(p.Serialize)
	f.Transport.Add(p.Transport)
	f.Server.Add(p.Server)
	f.Throughput.Add(p.Throughput)
}

// addGroup adds the span of a group of calls to the sums of the log, and a pass also to the passes.
func (d *Digest) addGroup(s ptrace.Span, kind view.Kind, res *resource) {
	ps := &d.Passes
	v := &ps.v
	v.Read(s, &res.Resource)
	d.places.note(s, res, view.KindPass, v.Block.N)
	ps.whole.add(v)
	var counts []*Verdicts
	if kind == view.KindPass {
		p := &Pass{At: res.at(s), Incomplete: v.Incomplete}
		p.setFigures(v)
		for e := range view.Verdicts(s) {
			p.Told = append(p.Told, shortText(e.Title()))
		}
		counts = append(counts, &p.Verdicts, &ps.verdicts)
		ps.Count++
		if p.Incomplete {
			ps.Incomplete++
		} else {
			ps.Complete.add(p)
			ps.repeats.addPass(v, p.At)
		}
		ps.newest = append(ps.newest, p)
		if len(ps.newest) == 2*mostPasses { // Newest sorts, so only now and then
			ps.newest = slices.Clone(ps.Newest())
		}
	}
	d.countVerdicts(s, &v.Head, res, counts...)
}

// Newest sorts the kept passes by start, and returns the newest mostPasses.
func (d *Passes) Newest() []*Pass {
	slices.SortFunc(d.newest, func(a, b *Pass) int { return a.compare(&b.At) })
	return d.newest[max(0, len(d.newest)-mostPasses):]
}

// Middle returns the medians of the complete passes, as a pass.
func (d *Passes) Middle() *Pass {
	c := &d.Complete
	return &Pass{
		Ordinal: math.NaN(), Calls: c.Calls.Quantile(0.5), Duration: c.Duration.Quantile(0.5), Serialize: c.Serialize.Quantile(0.5),
		Transport: c.Transport.Quantile(0.5), Server: c.Server.Quantile(0.5), Throughput: c.Throughput.Quantile(0.5),
	}
}

// Sum returns how often each verdict was passed, over the passes.
func (d *Passes) Sum() Verdicts { return d.verdicts }

// Whole returns the sum of the passes, the set-up and the calls of no pass, as a pass: the figures that TSQP's analyze_zmq_performance.py prints for a file.
// nil: the log has fewer than two groups.
func (d *Passes) Whole() *Pass { return d.whole.asPass() }

// logSums adds up groups of calls. A sum is unknown if any group lacks the value; only for the number of calls and the time of the server are groups without it
// skipped.
type logSums struct {
	groups int
	calls  float64
	sum    view.Group // of durations and sizes
	server float64    // s, of the groups whose server told
	has    bool       // a server told
}

// add adds a group of calls.
func (w *logSums) add(v *view.Group) {
	if w.groups++; w.groups == 1 {
		w.sum = *v
		w.sum.Head = view.Head{} // refers to the span
		// A group's shares are not those of the sum.
		w.sum.Share = [view.RPCStages]float64{}
		for i := range w.sum.Share {
			w.sum.Share[i] = math.NaN()
		}
	} else {
		w.sum.CallDuration += v.CallDuration
		for i := range w.sum.Duration {
			w.sum.Duration[i] += v.Duration[i]
		}
		w.sum.RequestSize, w.sum.ResponseSize = w.sum.RequestSize+v.RequestSize, w.sum.ResponseSize+v.ResponseSize
		w.sum.Throughput += v.Throughput // NaN: the bytes of a group went through shared memory
	}
	if !math.IsNaN(v.Calls) {
		w.calls += v.Calls
	}
	if server := v.Duration[view.RPCServer]; !math.IsNaN(server) {
		w.server, w.has = w.server+server, true
	}
}

// asPass returns the sums as a pass; nil: fewer than two groups.
func (w *logSums) asPass() *Pass {
	if w.groups < 2 {
		return nil
	}
	v := w.sum
	v.Ordinal, v.Calls, v.Duration[view.RPCServer] = view.Int{}, w.calls, math.NaN()
	if w.has {
		v.Duration[view.RPCServer] = w.server
	}
	if math.IsNaN(v.Throughput) || v.CallDuration <= 0 { // the sum of throughputs only says whether all are known
		v.Throughput = math.NaN()
	} else {
		v.Throughput = (v.RequestSize + v.ResponseSize) / v.CallDuration
	}
	p := new(Pass)
	p.setFigures(&v)
	return p
}

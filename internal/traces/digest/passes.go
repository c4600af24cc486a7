package digest

import (
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// Pass is a forward pass over RPCs, or several groups of calls together. NaN: not known.
type Pass struct {
	Start      int64 // ns since 1970
	Incomplete bool
	Told       []string // the names of the verdicts that are not good, as they were passed
	Verdicts

	Ordinal                      float64 // number of the pass in its session, from 1
	Calls                        float64
	Duration                     float64 // s, of all calls
	Serialize, Transport, Server float64 // shares of the time
	Throughput                   float64 // By/s
}

func (p *Pass) figures(v *view.Group) {
	p.Ordinal = math.NaN()
	if v.Ordinal.OK {
		p.Ordinal = float64(v.Ordinal.N)
	}
	p.Calls, p.Duration, p.Throughput = v.Calls, v.CallDuration, v.Throughput
	p.Serialize, p.Transport, p.Server = RPCShare(v, view.RPCSerialize), RPCShare(v, view.RPCTransport), RPCShare(v, view.RPCServer)
}

// RPCShare is the share that a stage has of the time of a group's calls: train_perf's if it ran, else from the durations. NaN: not known.
func RPCShare(v *view.Group, stage view.RPCStage) float64 {
	if !math.IsNaN(v.Share[stage]) {
		return v.Share[stage]
	}
	if v.CallDuration <= 0 {
		return math.NaN()
	}
	took := v.Duration[stage]
	if stage == view.RPCTransport {
		took = v.Duration[view.RPCSend] + v.Duration[view.RPCReceive]
		if server := v.Duration[view.RPCServer]; !math.IsNaN(server) { // else the server said nothing
			took -= server
		}
	}
	return took / v.CallDuration
}

// Passes are the groups of RPCs.
type Passes struct {
	passes []*Pass
	whole  wholeLog
}

func (d *Passes) add(t *tree.Trace) {
	pass := false
	for _, s := range t.Spans {
		if !s.Kind.IsGroup() {
			continue
		}
		var v view.Group
		v.Read(s.Span, s.Resource)
		d.whole.add(&v)
		if s.Kind != view.KindPass || pass { // a trace is one pass
			continue
		}
		pass = true
		p := &Pass{Start: s.Start(), Incomplete: v.Incomplete, Verdicts: newVerdicts()}
		p.figures(&v)
		p.count(s)
		for e := range view.Verdicts(s.Span) {
			p.Told = append(p.Told, e.Name)
		}
		d.passes = append(d.passes, p)
	}
}

// Rows are the passes by start.
func (d *Passes) Rows() []*Pass { return d.passes }

// Complete are the passes that were seen to their end.
func (d *Passes) Complete() []*Pass {
	return slices.DeleteFunc(slices.Clone(d.passes), func(p *Pass) bool { return p.Incomplete })
}

// Sum is how often each verdict was passed on all passes.
func (d *Passes) Sum() Verdicts {
	all := newVerdicts()
	for _, p := range d.passes {
		for name, n := range p.Good {
			all.Good[name] += n
		}
		for name, n := range p.Bad {
			all.Bad[name] += n
		}
	}
	return all
}

// Whole is the sum of the passes, the set-up and the calls of no pass: the figures that TSQP's analyze_zmq_performance.py prints of a file. Nil: there is only
// one of these groups.
func (d *Passes) Whole() *Pass { return d.whole.pass() }

// wholeLog adds groups of calls up. A sum to which a group did not add is not known, but for the server's: servers that say nothing are passed over.
type wholeLog struct {
	groups int
	calls  float64
	sum    view.Group // of durations and sizes
	server float64
	has    bool // server
}

func (w *wholeLog) add(v *view.Group) {
	if w.groups++; w.groups == 1 {
		w.sum = *v
		w.sum.Head = view.Head{} // which refers to the span
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

func (w *wholeLog) pass() *Pass {
	if w.groups < 2 {
		return nil
	}
	v := w.sum
	v.Ordinal, v.Calls, v.Duration[view.RPCServer] = view.Int{}, w.calls, math.NaN()
	if w.has {
		v.Duration[view.RPCServer] = w.server
	}
	if math.IsNaN(v.Throughput) || v.CallDuration <= 0 {
		v.Throughput = math.NaN()
	} else {
		v.Throughput = (v.RequestSize + v.ResponseSize) / v.CallDuration
	}
	p := &Pass{Verdicts: newVerdicts()}
	p.figures(&v)
	return p
}

package digest

import (
	"cmp"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// highOverhead is the share of get and put above which a call waits for its data.
const highOverhead = 0.3

// FunctionSums are sums over the calls of one TransferQueue function. Times are of complete calls only.
type FunctionSums struct {
	Name                     string
	Calls, Incomplete        int
	WithoutID                int     // calls whose log names no trace id, of all
	Total, Get, Compute, Put float64 // s
}

// Ratio returns a time as a share of the total time, as in verl's analyser; NaN: the total is 0.
func (s *FunctionSums) Ratio(seconds float64) float64 { return seconds / s.Total }

// Mean returns the mean of a summed time per call, s; NaN: no call is complete.
func (s *FunctionSums) Mean(seconds float64) float64 { return seconds / float64(s.Calls) }

// add adds the sums of another function.
func (s *FunctionSums) add(o *FunctionSums) {
	s.Calls, s.Incomplete, s.WithoutID = s.Calls+o.Calls, s.Incomplete+o.Incomplete, s.WithoutID+o.WithoutID
	s.Total, s.Get, s.Compute, s.Put = s.Total+o.Total, s.Get+o.Get, s.Compute+o.Compute, s.Put+o.Put
}

// Function sums up the calls of a TransferQueue function.
type Function struct {
	Name                  string
	Incomplete, WithoutID int
	Took                  Values    // s, of complete calls
	Stages                [3]Values // s, by spans.TQGet, TQCompute and TQPut: of the complete calls with a known time of the stage
	Overhead              Values    // share of get and put, of complete calls
	Slowest               Top[view.Int]
	Verdicts
}

// Sums returns the sums over the calls of the function.
func (f *Function) Sums() FunctionSums {
	return FunctionSums{
		Name: f.Name, Calls: int(f.Took.Count()), Incomplete: f.Incomplete, WithoutID: f.WithoutID,
		Total: f.Took.Sum(), Get: f.Stages[spans.TQGet].Sum(), Compute: f.Stages[spans.TQCompute].Sum(), Put: f.Stages[spans.TQPut].Sum(),
	}
}

// Operation sums up the client operations of a kind.
type Operation struct {
	Stage      spans.TQStage
	Incomplete int
	Took       Values // s
	Size       Values // By
	Throughput Values // By/s
	moving     sum    // s, of the operations whose size is known
	Slowest    Top[view.Stage]
	Verdicts
}

// Overall returns the throughput: bytes by the time of the operations whose size is known, By/s; NaN: no size is known.
func (o *Operation) Overall() float64 { return o.Size.Sum() / o.moving.value() }

// Functions are the TransferQueue functions.
type Functions struct {
	Traces     int64 // with calls; 0 if the places of records are unknown
	by         table[string, Function]
	operations map[spans.TQStage]*Operation
	high       int                         // calls above highOverhead
	hosts      map[string]bool             // of all calls
	highHosts  map[string]bool             // of the calls above highOverhead
	unmeasured map[spanKey]*unmeasuredCall // calls that wait for their stages
	repeats    repeats
	v          view.Function // the call read last
	stage      view.Stage    // the stage read last
}

// spanKey identifies a span.
type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// unmeasuredCall is a call without train_perf's shares of all stages: its time is taken from the stages' spans.
type unmeasuredCall struct {
	f      *Function
	host   string
	took   float64 // s
	queue  float64 // s of get and put so far
	known  [3]bool // by stage: train_perf has given the share
	judged bool    // the overhead is known
}

// mostUnmeasured bounds the calls that wait for their stages.
const mostUnmeasured = 4096

// function returns a function by name, made if absent.
func (d *Functions) function(name string) *Function {
	return d.by.findOrMake(name, Other, mostDistributed, func(name string) (string, *Function) {
		name = shortText(name)
		return name, &Function{Name: name}
	})
}

// addFunction adds the span of a TransferQueue call. The time of a stage is train_perf's share, rounded to ns; for a stage without a share it is taken from the
// span of the stage, which comes later (measureStage).
func (d *Digest) addFunction(s ptrace.Span, res *resource) {
	fs := &d.Functions
	v := &fs.v
	v.Read(s)
	if d.places.note(s, res, view.KindFunction, 0) {
		fs.Traces++
	}
	f := fs.function(cmp.Or(v.Name, s.Name()))
	d.countVerdicts(s, &v.Head, res, &f.Verdicts)
	if v.TraceID != "" && spans.NoTraceID(v.TraceID) { // an empty text: the log's id is the span's trace id
		f.WithoutID++
	}
	host := cmp.Or(v.Host, res.Host)
	if fs.hosts == nil {
		fs.hosts, fs.highHosts = map[string]bool{}, map[string]bool{}
	}
	host = noteName(fs.hosts, host)
	if v.Overhead > highOverhead {
		fs.countHigh(host)
	}
	if v.Incomplete { // without a time
		f.Incomplete++
		return
	}
	took := spanSeconds(s)
	f.Took.Add(took)
	f.Overhead.Add(v.Overhead)
	if pid := f.Slowest.add(mostShown, took, s, res); pid != nil {
		*pid = v.PID
	}
	known := [3]bool{}
	for stage, share := range v.Share {
		known[stage] = !math.IsNaN(share)
		if known[stage] {
			f.Stages[stage].Add(math.Round(share*took*1e9) / 1e9)
		}
	}
	if known == [3]bool{true, true, true} {
		fs.repeats.addCall(s, v, f.Name, took, res)
		return
	}
	if fs.unmeasured == nil || len(fs.unmeasured) == mostUnmeasured { // full of calls that have their stages by now, or will not get any
		fs.unmeasured = map[spanKey]*unmeasuredCall{}
	}
	m := &unmeasuredCall{f: f, host: host, took: took, known: known, judged: !math.IsNaN(v.Overhead)}
	fs.unmeasured[spanKey{s.TraceID(), s.SpanID()}] = m
	for _, stage := range [...]spans.TQStage{spans.TQGet, spans.TQPut} {
		if known[stage] {
			fs.addQueueTime(m, v.Share[stage]*took)
		}
	}
}

// addQueueTime adds the time of a get or a put, s, to a call. The call counts as above highOverhead when get and put together first exceed the limit.
func (d *Functions) addQueueTime(m *unmeasuredCall, took float64) {
	limit := highOverhead * m.took
	wasHigh := m.queue > limit
	m.queue += took
	if !m.judged && !wasHigh && m.queue > limit {
		d.countHigh(m.host)
	}
}

// countHigh counts a call above highOverhead, and its host.
func (d *Functions) countHigh(host string) {
	d.high++
	noteName(d.highHosts, host)
}

// addStage adds the span of a stage of a call (get, compute, put), or of a client operation, with sums for each kind of operation. Other stages are ignored.
func (d *Digest) addStage(s ptrace.Span, res *resource) {
	fs := &d.Functions
	v := &fs.stage
	v.Read(s)
	switch v.Stage {
	case spans.TQGet, spans.TQCompute, spans.TQPut:
		if v.Verdicts.Len() > 0 {
			d.countVerdicts(s, &v.Head, res, &fs.function(v.Function).Verdicts)
		}
		if len(fs.unmeasured) > 0 {
			fs.measureStage(s, v.Stage)
		}
		return
	case spans.TQNone, spans.TQFunction:
		return
	}
	o := fs.operations[v.Stage]
	if o == nil {
		if fs.operations == nil {
			fs.operations = map[spans.TQStage]*Operation{}
		}
		o = &Operation{Stage: v.Stage}
		fs.operations[v.Stage] = o
	}
	if v.Verdicts.Len() > 0 {
		counts := []*Verdicts{&o.Verdicts}
		if f := fs.by.by[v.Function]; f != nil { // the function of the operation, if known
			counts = append(counts, &f.Verdicts)
		}
		d.countVerdicts(s, &v.Head, res, counts...)
	}
	if v.Incomplete {
		o.Incomplete++
		return
	}
	took := spanSeconds(s)
	o.Took.Add(took)
	fs.repeats.addOperation(s, v, took, res)
	if !math.IsNaN(v.Size) {
		o.Size.Add(v.Size)
		o.moving.add(took)
	}
	o.Throughput.Add(v.Throughput)
	if slowest := o.Slowest.add(mostShown, took, s, res); slowest != nil {
		*slowest = view.Stage{Stage: v.Stage, Function: shortText(v.Function), PID: v.PID, BatchSize: v.BatchSize, Size: v.Size, Throughput: v.Throughput}
	}
}

// measureStage adds the span of a stage to its call, if the call waits for this stage.
func (d *Functions) measureStage(s ptrace.Span, stage spans.TQStage) {
	m := d.unmeasured[spanKey{s.TraceID(), s.ParentSpanID()}]
	if m == nil || m.known[stage] {
		return
	}
	took := spanSeconds(s)
	m.f.Stages[stage].Add(took)
	if stage != spans.TQCompute {
		d.addQueueTime(m, took)
	}
}

// Rows returns the functions by name.
func (d *Functions) Rows() []*Function {
	return d.by.rows(func(a, b *Function) int { return cmp.Compare(a.Name, b.Name) })
}

// Operations returns the client operations.
func (d *Functions) Operations() (out []*Operation) {
	for stage := range spans.TQStages {
		if o := d.operations[stage]; o != nil {
			out = append(out, o)
		}
	}
	return out
}

// Sum returns the sums over every function.
func (d *Functions) Sum() *FunctionSums {
	all := new(FunctionSums)
	for _, f := range d.Rows() {
		sums := f.Sums()
		all.add(&sums)
	}
	return all
}

// High returns the number of calls with more than 30 % of their time in TransferQueue, and the host if all of them ran on one of several hosts; else "".
func (d *Functions) High() (calls int, host string) {
	if len(d.highHosts) == 1 && len(d.hosts) > 1 {
		for host = range d.highHosts { // the only one
		}
	}
	return d.high, host
}

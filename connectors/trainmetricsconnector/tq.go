package trainmetricsconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// transferQueue is the functions, stages and client operations of TransferQueue.
var transferQueue = family{
	kinds:  []view.Kind{view.KindFunction, view.KindStage},
	reader: func(family int8) reader { return &tqReader{family: family} },
	adder:  func(family int8) adder { return &tqAdder{groups[functionKey, tqSeries]{family: family}} },
}

var (
	functionDuration    = newMetric(spans.MetricTQFunctionDuration)
	stageDuration       = newMetric(spans.MetricTQStageDuration)
	functionTime        = newMetric(spans.MetricTQFunctionTime)
	stageTime           = newMetric(spans.MetricTQStageTime)
	stageUtilization    = newMetric(spans.MetricTQStageUtilization)
	overheadUtilization = newMetric(spans.MetricTQOverheadUtilization)
	clientThroughput    = newMetric(spans.MetricTQClientThroughput)
	disagreement        = newMetric(spans.MetricTQUtilizationDisagreement)
)

// functionKey is the label of a function, its stages and client operations: its name.
type functionKey struct{ name string }

// bare implements key.
func (k functionKey) bare() bool                { return k.name == "" }
func (k functionKey) code(c *codec) functionKey { return functionKey{c.text(k.name)} }

// labels implements key.
func (k functionKey) labels(m pcommon.Map, own label) {
	if k.name != "" {
		m.PutStr(spans.AttrTQFunction, k.name)
	}
	own.put(m)
}

// ofStage returns the label of a stage, for series of one stage.
func ofStage(stage spans.TQStage) label { return label{spans.AttrTQStage, stage.String()} }

// tqValues are the values of a span of TransferQueue. Unknown numbers are NaN.
type tqValues struct {
	key        functionKey
	stage      spans.TQStage
	shares     int32   // index in tqReader.shares, of a function
	throughput float64 // By/s, of a client operation
}

// functionShares are the values of functions only.
type functionShares struct {
	share                  [len(view.Function{}.Share)]float64
	overhead, disagreement float64
}

// tqReader reads the spans of TransferQueue.
type tqReader struct {
	family   int8
	values   []tqValues
	shares   []functionShares
	function view.Function
	stage    view.Stage
}

// reset implements reader.
func (r *tqReader) reset() {
	clear(r.values)
	r.values, r.shares = r.values[:0], r.shares[:0]
	r.function, r.stage = view.Function{}, view.Stage{}
}

// read records a function with its shares, or a stage or client operation with its throughput: the recomputed one, else the logged one. A span with an
// impossible length is invalid and not recorded; a span of no known stage is ignored.
func (r *tqReader) read(span ptrace.Span, kind view.Kind, s *scratch) {
	ns, ok := durationOf(span)
	if !ok {
		s.invalid++
		return
	}
	if kind == view.KindFunction {
		f := &r.function
		f.Read(span)
		s.note(span, r.family, &f.Head, len(r.values), ns)
		r.values = append(r.values, tqValues{key: functionKey{spans.Label(f.Name)}, stage: spans.TQFunction, shares: int32(len(r.shares)), throughput: math.NaN()})
		r.shares = append(r.shares, functionShares{share: f.Share, overhead: f.Overhead, disagreement: f.Disagreement})
		return
	}
	st := &r.stage
	st.Read(span)
	if st.Stage == spans.TQNone {
		return
	}
	v := tqValues{key: functionKey{spans.Label(st.Function)}, stage: st.Stage, throughput: st.Throughput}
	if math.IsNaN(v.throughput) {
		v.throughput = st.ThroughputReported
	}
	s.note(span, r.family, &st.Head, len(r.values), ns)
	r.values = append(r.values, v)
}

// tqSeries are the series of one function. Arrays by stage in place of a map by labels: one map look-up per span at most.
type tqSeries struct {
	duration     [spans.TQStages]*histogram[uint64] // [spans.TQFunction] is tq.function.duration, the others tq.stage.duration
	throughput   [spans.TQStages]*histogram[float64]
	incomplete   [spans.TQStages]*counter
	disagreement *histogram[float64]
	time         *counter                              // s, of functions whose shares are known
	stageTime    [len(functionShares{}.share)]*counter // of that, the time of each stage
	share        [len(functionShares{}.share)]*gauge
	overhead     *gauge
}

type tqAdder struct{ groups[functionKey, tqSeries] }

// add adds a span to the series of its function: durations, and for a function the shares of the stages. Overflow series have no labels: in the overflow group
// a single slot (spill) stands for every stage.
func (a *tqAdder) add(s *store, o *observation, from reader, in *scratch) {
	r := from.(*tqReader)
	v := &r.values[o.values]
	m, spill := stageDuration, spans.TQGet
	if v.stage == spans.TQFunction {
		m, spill = functionDuration, spans.TQFunction
	}
	g, ts, over := a.find(s, o, in, v.key, firstMetric(o, m))
	s.countVerdicts(g, o)
	var f *functionShares
	if v.stage == spans.TQFunction {
		f = &r.shares[v.shares]
		ts.addTime(s, g, over, o, f)
	}
	if o.incomplete {
		// The duration of an incomplete span covers only the part in the log.
		s.count(slot(s, incompleteCount, g, &ts.incomplete[v.stage], &s.overflow.incomplete), 1, o)
		return
	}
	s.observe(slot(s, m, g, &ts.duration[v.stage], &over.duration[spill]), o)
	// A throughput of 0 means an unknown size: the log counts tensors only.
	if v.throughput > 0 && (v.stage == spans.TQClientGet || v.stage == spans.TQClientPut) {
		s.record(slot(s, clientThroughput, g, &ts.throughput[v.stage], &over.throughput[spans.TQClientGet]), v.throughput, o)
	}
	if f == nil {
		return
	}
	for i, share := range f.share {
		if !math.IsNaN(share) {
			s.set(slot(s, stageUtilization, g, &ts.share[i], &over.share[spans.TQGet]), share, o)
		}
	}
	if !math.IsNaN(f.overhead) {
		s.set(slot(s, overheadUtilization, g, &ts.overhead, &over.overhead), f.overhead, o)
	}
	if !math.IsNaN(f.disagreement) {
		s.record(slot(s, disagreement, g, &ts.disagreement, &over.disagreement), f.disagreement, o)
	}
}

// addTime adds the time of a function to two counters: functionTime with all its time, and stageTime with the time of each stage. The growth of stageTime
// divided by that of functionTime is the share of a stage over any range of time. A function counts only if its overhead, the share of GET and PUT, is known.
//
// addTime is also called for an incomplete function: without the lines of a stage, its FUNCTION_END still has the durations of the stages. The overflow series
// have no labels, and only one slot takes the time of every stage: that of TQGet.
func (ts *tqSeries) addTime(s *store, g *group, over *tqSeries, o *observation, f *functionShares) {
	if math.IsNaN(f.overhead) { // its time, without that of GET or PUT, would lower the shares
		return
	}
	total := float64(o.ns) / 1e9
	s.count(slot(s, functionTime, g, &ts.time, &over.time), total, o)
	for i, share := range f.share {
		if !math.IsNaN(share) {
			s.count(slot(s, stageTime, g, &ts.stageTime[i], &over.stageTime[spans.TQGet]), share*total, o)
		}
	}
}

// emit writes the series of a function: histograms and counters by stage, the time and the share by stage of a function, and last the series without a stage.
func (a *tqAdder) emit(e *emitter, g *group) {
	ts, none := seriesOf[tqSeries](g, a.family), labels{of: g}
	for st := range spans.TQStages {
		l := labels{of: g, own: ofStage(st)}
		if st == spans.TQFunction {
			emit(e, functionDuration, none, &ts.duration[st], durationPoint)
		} else {
			emit(e, stageDuration, l, &ts.duration[st], durationPoint)
		}
		emit(e, clientThroughput, l, &ts.throughput[st], numberPoint)
		emit(e, incompleteCount, l, &ts.incomplete[st], counterPoint)
	}
	emit(e, functionTime, none, &ts.time, sumPoint)
	for st := range ts.stageTime {
		emit(e, stageTime, labels{of: g, own: ofStage(spans.TQStage(st))}, &ts.stageTime[st], sumPoint)
	}
	for st := range ts.share {
		emit(e, stageUtilization, labels{of: g, own: ofStage(spans.TQStage(st))}, &ts.share[st], gaugePoint)
	}
	emit(e, overheadUtilization, none, &ts.overhead, gaugePoint)
	emit(e, disagreement, none, &ts.disagreement, numberPoint)
}

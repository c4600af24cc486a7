package compare

import (
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// Bounds of a run.
const (
	mostSteps  = 100_000 // rows of a training log, or of windows of one kind
	mostCalls  = 20_000  // rows of a function, of passes, or of an operation of collectives
	mostNames  = 100     // functions, operations, training logs, facts: names made up by logs
	mostValues = 8       // of a fact
)

// The columns of training steps.
const (
	stepTime = iota
	stepTokens
	stepSamples
	stepFlopReported
	stepFlop
	stepMFU
	stepLoss
	stepCovered
	stepColumns
)

// The columns of collectives.
const (
	collectiveBandwidth = iota // bus bandwidth, By/s
	collectiveWait             // for the last rank, s
	collectiveTime             // s
)

// partNames are the columns of windows, the most usual first, before the windowColumns.
var partNames = []string{
	spans.PartCompute, spans.PartGet, spans.PartPut, spans.PartCollective, spans.PartWait, spans.PartRPCSerialize, spans.PartRPCSend,
	spans.PartRPCReceive, spans.PartRPCServer, spans.PartRPCDeserialize, spans.PartRPCUnattributed, spans.PartDataLoading, spans.PartCheckpoint,
	spans.PartEvaluation, spans.PartUnattributed,
}

// The columns of windows behind the parts.
const (
	windowOther = iota // of an unknown part
	windowWhole
	windowUsual // the whole without checkpoint and evaluation, which some steps have and others not
	windowColumns
)

// Run is the kept data of a run.
type Run struct {
	ID    string                     // ml.run.id
	facts map[string]map[string]bool // the values of each fact: world size, batch size, settings of the model

	steps       map[string]*sample // by the format of the log
	windows     map[string]*sample // by kind
	timers      map[string]*sample // of the trainer, by its own names, of parts that count as computing
	functions   map[string]*sample // of TransferQueue
	passes      *sample            // of RPCs
	collectives map[string]*sample // by operation and communicator
	partial     int                // windows that may be incomplete
	notFinite   int                // losses
	others      int                // spans of further names
	ranks       int64              // of the largest collective
	last        lateCosts          // who came last to collectives
	files       []string           // of the logs

	*book.Book
	digest.Ends
}

// newRun returns a run without data.
func newRun(id string) *Run {
	return &Run{
		ID: id, facts: map[string]map[string]bool{}, steps: map[string]*sample{}, windows: map[string]*sample{}, timers: map[string]*sample{},
		functions: map[string]*sample{}, passes: newSample(mostCalls), collectives: map[string]*sample{}, Book: new(book.Book),
	}
}

// runs is a consumer of spans that keeps the data to compare of each run.
type runs struct {
	mu sync.Mutex
	by map[string]*Run // by ml.run.id

	// The span that was read last.
	resource   view.Resource
	step       view.Step
	breakdown  view.Breakdown
	function   view.Function
	pass       view.Group
	collective view.Collective
	mark       view.Mark
}

// Capabilities implements consumer.Traces.
func (c *runs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces implements consumer.Traces. Details, such as the records of ranks below a collective, are in no figure and are skipped.
func (c *runs) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range td.ResourceSpans().All() {
		c.resource.Read(rs.Resource().Attributes())
		run := c.by[c.resource.Run]
		if run == nil {
			run = newRun(c.resource.Run)
			c.by[c.resource.Run] = run
		}
		for name, v := range rs.Resource().Attributes().All() {
			if strings.HasPrefix(name, spans.ModelPrefix) {
				run.addFact(name, v.AsString())
			}
		}
		run.addNumber(spans.AttrWorldSize, c.resource.WorldSize)
		run.addFact(spans.AttrDeviceModel, c.resource.DeviceModel)
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if !view.IsDetail(span) {
					c.addSpan(run, span)
				}
			}
		}
	}
	book.Fit(c.books(), book.MostSteps) // bounds the memory of all accounts together
	return nil
}

// books returns the books of all runs.
func (c *runs) books() iter.Seq[*book.Book] {
	return func(yield func(*book.Book) bool) {
		for _, run := range c.by {
			if !yield(run.Book) {
				return
			}
		}
	}
}

// addSpan adds a span to the data of its run, by its kind: a row of values to compare, and what the account (book) and the end of the run need.
func (c *runs) addSpan(run *Run, span ptrace.Span) {
	trace := span.TraceID()
	r := row{
		start: int64(span.StartTimestamp()), end: int64(span.EndTimestamp()), step: noStep,
		trace: binary.BigEndian.Uint64(trace[:]), order: orderOf(span.SpanID()),
	}
	kind := view.KindOf(span)
	run.AddEnd(span, kind, &c.resource)
	switch kind {
	case view.KindStep:
		c.step.Read(span, &c.resource)
		run.addStep(r, &c.step)
		e := book.Step(span, &c.step, &c.resource, spans.AttrText(span.Attributes(), spans.AttrLogFile), -1) // −1: no evidence is printed, so no place is needed
		run.Put(&e)
	case view.KindPart:
		name := spans.AttrText(span.Attributes(), spans.AttrStage)
		if e, ok := book.Part(span, name, &c.resource); ok {
			run.Put(&e)
		}
		if trainers.PartOf(name) == trainers.Computing { // others are parts of the breakdown by themselves
			run.sampleOf(run.timers, name, mostCalls).add(r, float64(r.end-r.start)/1e9)
		}
	case view.KindEvaluation:
		e := book.Evaluation(span, &c.resource, "")
		run.Put(&e)
	case view.KindBreakdown:
		c.breakdown.Read(span)
		run.addWindow(r, &c.breakdown)
	case view.KindFunction:
		if c.function.Read(span); !c.function.Incomplete {
			length := float64(r.end-r.start) / 1e9
			share := &c.function.Share
			run.sampleOf(run.functions, cmp.Or(c.function.Name, span.Name()), mostCalls).add(r, length,
				length*share[spans.TQGet], length*share[spans.TQCompute], length*share[spans.TQPut])
		}
	case view.KindPass:
		r.madeUp = c.isMadeUp(span)
		if c.pass.Read(span, &c.resource); !c.pass.Incomplete {
			// The columns: the stages, which are the values before RPCTransport; the time of all calls; throughput.
			run.passes.add(r, append(c.pass.Duration[:view.RPCTransport:view.RPCTransport], c.pass.CallDuration, c.pass.Throughput)...)
		}
	case view.KindCollective:
		r.madeUp = c.isMadeUp(span)
		if c.collective.Read(span); !c.collective.Incomplete {
			run.addCollective(r, &c.collective)
		}
	default:
	}
}

// isMadeUp reports whether the times of a span were reconstructed, from a log without a clock.
func (c *runs) isMadeUp(span ptrace.Span) bool {
	c.mark.Read(span, &c.resource)
	return c.mark.Time == spans.TimeSynthetic
}

// addStep adds a row for a training step, and the facts about the run in its record. An incomplete step is left out.
func (run *Run) addStep(r row, s *view.Step) {
	if s.Incomplete {
		return
	}
	if at := s.Step(); at.OK {
		r.step = at.N
	}
	run.addNumber(spans.AttrWorldSize, s.WorldSize)
	run.addFact(spans.AttrDeviceModel, s.DeviceModel)
	if !math.IsNaN(s.BatchSize) {
		run.addFact(spans.AttrBatchSize, strconv.FormatFloat(s.BatchSize, 'f', -1, 64))
	}
	if s.Loss.NotFinite() != "" {
		run.notFinite++
	}
	loss := s.Loss.Value
	if math.IsInf(loss, 0) { // an infinite loss would be the mean of all
		loss = math.NaN()
	}
	run.sampleOf(run.steps, s.Format, mostSteps).add(r, s.Duration, s.TokenThroughput, s.SampleThroughput, s.DeviceFlopThroughputReported,
		s.DeviceFlopThroughput, s.MFU, loss, s.Covered())
}

// addWindow adds a row for a window, with the seconds of each of its parts. A window that may lack something is counted and not compared.
func (run *Run) addWindow(r row, b *view.Breakdown) {
	if b.Lacks() {
		run.partial++
		return
	}
	if b.Iteration.OK {
		r.step = b.Iteration.N
	}
	values := make([]float64, len(partNames)+windowColumns)
	for i := range values {
		values[i] = math.NaN()
	}
	usual := b.Length()
	for _, p := range b.Times {
		if math.IsNaN(p.Seconds) {
			continue
		}
		at := slices.Index(partNames, p.Part)
		if at < 0 {
			at = len(partNames) + windowOther
		}
		values[at] = orZero(values[at]) + p.Seconds
		if p.Part == spans.PartCheckpoint || p.Part == spans.PartEvaluation {
			usual -= p.Seconds
		}
	}
	values[len(partNames)+windowWhole], values[len(partNames)+windowUsual] = b.Length(), usual
	run.sampleOf(run.windows, b.Window, mostSteps).add(r, values...)
}

// addCollective adds a row for a collective, under its operation and the name of its communicator.
func (run *Run) addCollective(r row, v *view.Collective) {
	run.ranks = max(run.ranks, v.CommSize.N, v.Ranks.N)
	run.last.add(v)
	length := v.Duration
	if math.IsNaN(length) {
		length = float64(r.end-r.start) / 1e9
	}
	name := v.Operation
	if v.CommName != "" && v.CommName != "unknown" { // NCCL Inspector's word for no name; ids of communicators differ from run to run
		name += " in " + v.CommName
	}
	run.sampleOf(run.collectives, name, mostCalls).add(r, v.BandwidthBus, v.Last.Late, length)
}

// sampleOf returns the sample of a name from the log, a new one for a new name. Beyond mostNames names the new sample is not kept: its row is lost, and counted
// in others.
func (run *Run) sampleOf(by map[string]*sample, name string, most int) *sample {
	s := by[name]
	if s == nil {
		if s = newSample(most); len(by) >= mostNames {
			run.others++
			return s
		}
		by[name] = s
	}
	return s
}

// addNumber adds a number, if known, as a fact.
func (run *Run) addNumber(name string, v view.Int) {
	if v.OK {
		run.addFact(name, strconv.FormatInt(v.N, 10))
	}
}

// addFact adds a value of a fact about the whole run, such as world_size 8: up to mostNames names with up to mostValues values each. "" is no value.
func (run *Run) addFact(name, value string) {
	if value == "" {
		return
	}
	values := run.facts[name]
	switch {
	case values[value]:
	case values == nil && len(run.facts) < mostNames:
		run.facts[name] = map[string]bool{value: true}
	case values != nil && len(values) < mostValues:
		values[value] = true
	}
}

// values returns all values of a fact, sorted.
func (run *Run) values(name string) []string { return slices.Sorted(maps.Keys(run.facts[name])) }

// orZero returns v, or 0 for NaN.
func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// countRows returns how many rows are kept, and how many were seen.
func (run *Run) countRows() (countRows, seen int) {
	add := func(s *sample) { countRows, seen = countRows+len(s.rows), seen+s.seen }
	for _, by := range []map[string]*sample{run.steps, run.windows, run.timers, run.functions, run.collectives} {
		for _, s := range by {
			add(s)
		}
	}
	add(run.passes)
	return countRows, seen
}

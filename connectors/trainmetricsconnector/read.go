package trainmetricsconnector

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

const shares = 3

// maxDuration is what no span of a job takes; a longer one has a start that was never set.
const maxDuration = 366 * 24 * time.Hour

// resourceKey is what the resource of the metrics is made of. Host and pid would make a series per worker.
type resourceKey struct{ service, run string }

// kind says what a span is, and so which list holds the values that only such spans have.
type kind uint8

const (
	tqSpan         kind = iota // scratch.shares: of functions only
	stepSpan                   // scratch.steps; parts of steps too
	callSpan                   // scratch.calls
	passSpan                   // scratch.passes; every group of calls
	collectiveSpan             // scratch.collectives
)

// observation is what one span says. Numbers that are not there are NaN.
type observation struct {
	resource   int32 // index in scratch.resources
	values     int32 // index in the list of its kind, −1 for none
	kind       kind
	stage      spans.TQStage
	incomplete bool
	judged     bool
	name       string // tq.function, or ml.train.stage
	verdicts   pcommon.Slice
	origin
	id         uint64 // idOf the span; 0 for a span without an id
	ns         uint64
	throughput float64 // By/s
}

// functionShares are the values that only function spans have.
type functionShares struct {
	share                  [shares]float64
	overhead, disagreement float64
}

// scratch is the memory of one ConsumeTraces call, reused by the next.
type scratch struct {
	resources    []resourceKey
	observations []observation
	shares       []functionShares
	steps        []stepValues
	calls        []callValues
	passes       []passValues
	collectives  []collectiveValues
	invalid      int64
}

// reset also lets go of the batch: the observations refer to its strings and slices.
func (s *scratch) reset() {
	clear(s.resources)
	clear(s.observations)
	clear(s.steps)
	clear(s.calls)
	clear(s.collectives)
	s.resources, s.observations, s.shares, s.steps, s.invalid = s.resources[:0], s.observations[:0], s.shares[:0], s.steps[:0], 0
	s.calls, s.passes, s.collectives = s.calls[:0], s.passes[:0], s.collectives[:0]
}

// read finds the spans that metrics are made of. It needs no lock.
func (s *scratch) read(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		attrs := rs.Resource().Attributes()
		s.resources = append(s.resources, resourceKey{service: spans.Label(spans.AttrText(attrs, spans.AttrServiceName)), run: spans.Label(spans.AttrText(attrs, spans.AttrRunID))})
		for _, ss := range rs.ScopeSpans().All() {
			list := ss.Spans()
			for i := range list.Len() {
				s.readSpan(list.At(i))
			}
		}
	}
}

func (s *scratch) readSpan(span ptrace.Span) {
	name := span.Name()
	if name == spans.SpanStep {
		s.readStep(span, "")
		return
	}
	if spans.IsNCCLPart(name) {
		return // thousands below each collective, whose root says what they add up to
	}
	if s.readRPC(span, name) {
		return
	}
	attrs := span.Attributes()
	o := observation{resource: int32(len(s.resources) - 1), values: -1, stage: spans.TQNone, throughput: math.NaN()}
	reported, part := math.NaN(), ""
	call, zeromq, aggregate, bad := callValues{request: math.NaN(), response: math.NaN()}, false, false, false
	// One pass: a look-up per name would scan the attributes a dozen times.
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrNCCLRanks:
			if v.Type() == pcommon.ValueTypeInt {
				s.readCollective(span)
				return
			}
		case spans.AttrTQStage:
			o.stage = spans.TQStageOf(v)
		case spans.AttrTQFunction:
			o.name = spans.Label(spans.ValueText(v))
		case spans.AttrIncomplete:
			o.incomplete = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case spans.AttrVerdict:
			if v.Type() == pcommon.ValueTypeSlice {
				o.verdicts, o.judged = v.Slice(), true
			}
		case spans.AttrTQThroughput:
			o.throughput = spans.ValueNumber(v)
		case spans.AttrTQThroughputReported:
			reported = spans.ValueNumber(v)
		case spans.AttrTQGetUtilization:
			s.sharesOf(&o).share[spans.TQGet] = spans.ValueNumber(v)
		case spans.AttrTQComputeUtilization:
			s.sharesOf(&o).share[spans.TQCompute] = spans.ValueNumber(v)
		case spans.AttrTQPutUtilization:
			s.sharesOf(&o).share[spans.TQPut] = spans.ValueNumber(v)
		case spans.AttrTQOverheadUtilization:
			s.sharesOf(&o).overhead = spans.ValueNumber(v)
		case spans.AttrTQUtilizationDisagreement:
			s.sharesOf(&o).disagreement = spans.ValueNumber(v)
		case spans.AttrStage:
			part = spans.Label(spans.ValueText(v))
		case spans.AttrRPCSystem:
			zeromq = span.Kind() == ptrace.SpanKindClient && spans.ValueText(v) == spans.RPCSystemZeroMQ
		case spans.AttrRPCMethod:
			call.key.method = spans.Label(spans.ValueText(v))
		case spans.AttrNetworkTransport:
			call.key.transport = spans.Label(spans.ValueText(v))
		case spans.AttrZMQRequestSize:
			call.request = countOf(v, &bad)
		case spans.AttrZMQResponseSize:
			call.response = countOf(v, &bad)
		case spans.AttrAggregateCount:
			aggregate = true
		}
	}
	if o.stage == spans.TQNone {
		switch {
		case part != "":
			s.readStep(span, part)
		case zeromq && !aggregate: // its length is not that of a call
			s.readCall(span, &o, &call, bad)
		}
		return
	}
	if !o.locate(span) {
		s.invalid++
		return
	}
	if math.IsNaN(o.throughput) {
		o.throughput = reported
	}
	if o.stage != spans.TQFunction {
		o.values = -1
	}
	s.observations = append(s.observations, o)
}

// locate notes which span it is and how long. It says false for a duration that is negative or above maxDuration.
func (o *observation) locate(span ptrace.Span) bool {
	o.trace, o.span, o.end = span.TraceID(), span.SpanID(), span.EndTimestamp()
	if !o.span.IsEmpty() {
		o.id = idOf(o.trace, o.span)
	}
	o.ns = uint64(o.end - span.StartTimestamp())
	return o.end >= span.StartTimestamp() && o.ns <= uint64(maxDuration)
}

// sharesOf makes room for the values of function spans when the first of them is met: most spans have none.
func (s *scratch) sharesOf(o *observation) *functionShares {
	if o.values < 0 {
		nan := math.NaN()
		o.values = int32(len(s.shares))
		s.shares = append(s.shares, functionShares{share: [shares]float64{nan, nan, nan}, overhead: nan, disagreement: nan})
	}
	return &s.shares[o.values]
}

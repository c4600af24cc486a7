package trainmetricsconnector

import (
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// sourceKey are the labels of training steps: the format of the log and the rank that wrote it. The zero value is a
// step with neither.
type sourceKey struct {
	name   string // trainbridge.source
	rank   int64  // dl.rank
	ranked bool
}

func (k sourceKey) put(m pcommon.Map) {
	if k.name != "" {
		m.PutStr(spans.AttrSource, k.name)
	}
	if k.ranked {
		m.PutInt(spans.AttrRank, k.rank)
	}
}

// stepValues are the values that only training steps have. Numbers that are not there are NaN.
type stepValues struct {
	source       sourceKey
	timed        bool       // observation.ns is the duration of one step
	covers       int64      // ns, of the whole span
	counts       [3]float64 // from stepCounts on
	gauges       [4]float64 // from stepGauges on
	disagreement float64
}

// maxCount is the most that one span can add to a counter: more than any job trains on, and a sum of such stays finite.
const maxCount = 1 << 53

// countOf reads a number that can be neither negative nor above maxCount: it is bad then, and NaN.
func countOf(v pcommon.Value, bad *bool) float64 {
	n := spans.ValueNumber(v)
	if n < 0 || n > maxCount {
		n, *bad = math.NaN(), true
	}
	return n
}

// readStep reads a training step, or a named part of one.
func (s *scratch) readStep(span ptrace.Span, part string) {
	nan := math.NaN()
	o := observation{resource: int32(len(s.resources) - 1), kind: stepSpan, values: int32(len(s.steps)), stage: spans.TQNone, name: part, throughput: nan}
	v := stepValues{counts: [...]float64{1, nan, nan}, gauges: [...]float64{nan, nan, nan, nan}, disagreement: nan}
	seconds, bad := nan, false
	for name, a := range span.Attributes().All() {
		switch name {
		case spans.AttrSource:
			v.source.name = spans.Label(spans.ValueText(a))
		case spans.AttrRank:
			if a.Type() == pcommon.ValueTypeInt {
				v.source.rank, v.source.ranked = a.Int(), true
			}
		case spans.AttrIncomplete:
			o.incomplete = a.Type() == pcommon.ValueTypeBool && a.Bool()
		case spans.AttrVerdict:
			if a.Type() == pcommon.ValueTypeSlice {
				o.verdicts, o.judged = a.Slice(), true
			}
		case spans.AttrStepDuration:
			seconds = spans.ValueNumber(a)
		case spans.AttrStepsCovered:
			if n := countOf(a, &bad); !math.IsNaN(n) {
				v.counts[0] = n
			}
		case spans.AttrSamples:
			v.counts[sampleCount-stepCounts] = countOf(a, &bad)
		case spans.AttrTokens:
			v.counts[tokenCount-stepCounts] = countOf(a, &bad)
		case spans.AttrFlopThroughput:
			v.gauges[0] = spans.ValueNumber(a)
		case spans.AttrDeviceFlopThroughput:
			v.gauges[deviceFlopThroughput-stepGauges] = spans.ValueNumber(a)
		case spans.AttrMFU:
			v.gauges[mfu-stepGauges] = spans.ValueNumber(a)
		case spans.AttrHFU:
			v.gauges[hfu-stepGauges] = spans.ValueNumber(a)
		case spans.AttrFlopDisagreement:
			v.disagreement = spans.ValueNumber(a)
		}
	}
	possible := o.locate(span)
	if possible {
		v.covers = int64(o.ns)
	}
	switch {
	case part != "":
		if !possible {
			s.invalid++
			return
		}
	case seconds >= 0 && seconds <= maxDuration.Seconds():
		o.ns, v.timed = uint64(math.Round(seconds*1e9)), true
	default:
		bad = bad || !math.IsNaN(seconds)
	}
	if bad { // what else the record says still counts
		s.invalid++
	}
	s.steps = append(s.steps, v)
	s.observations = append(s.observations, o)
}

// stepSeries are the series of a group that only training steps have.
type stepSeries struct {
	duration     *histogram[uint64]
	parts        []named[histogram[uint64]]
	disagreement *histogram[float64]
	counts       [len(stepValues{}.counts)]*counter
	gauges       [len(stepValues{}.gauges)]*gauge
	incomplete   *counter
	grace        int64 // ns; of the latest step
}

func (g *group) stepSeries() *stepSeries {
	if g.steps == nil {
		g.steps = new(stepSeries)
	}
	return g.steps
}

// source finds or makes the series of a source. Without room for its first metric it is the overflow.
func (s *store) source(key resourceKey, src sourceKey, first metricID) *group {
	if src == (sourceKey{}) {
		return s.function(key, "", first) // which has no labels either: two groups would make the same series
	}
	r := s.byKey[key]
	if r != nil {
		if g := r.bySource[src]; g != nil {
			return g
		}
	}
	g := s.newGroup(r, key, first)
	if g == &s.overflow {
		return g
	}
	src.name = strings.Clone(src.name)
	g.source = src
	g.resource.bySource[src] = g
	return g
}

// addStep puts a step, or a part of one, into the series of its source.
func (s *store) addStep(g *group, o *observation, v *stepValues) {
	ss, over := g.stepSeries(), s.overflow.stepSeries()
	// A log that writes every 100 steps, or whose steps take long, is not at its end when it says nothing for the time
	// that its last record covers; twice that leaves room for slower ones.
	if o.name == "" {
		ss.grace = 2 * v.covers
	}
	s.grace = ss.grace

	s.judge(g, o)
	switch {
	case o.incomplete:
		s.count(slot(s, incompleteCount, g, &ss.incomplete, &s.overflow.incomplete[spans.TQFunction]), 1, o)
		return
	case o.name != "":
		s.observe(byName(s, partDuration, g, &ss.parts, &over.parts, o.name), o)
		return
	case v.timed:
		s.observe(slot(s, stepDuration, g, &ss.duration, &over.duration), o)
	}
	for i, n := range v.counts {
		if !math.IsNaN(n) {
			s.count(slot(s, stepCounts+metricID(i), g, &ss.counts[i], &over.counts[i]), n, o)
		}
	}
	for i, x := range v.gauges {
		if !math.IsNaN(x) {
			s.set(slot(s, stepGauges+metricID(i), g, &ss.gauges[i], &over.gauges[i]), x, o)
		}
	}
	if x := v.disagreement; !math.IsNaN(x) {
		s.record(slot(s, flopDisagreement, g, &ss.disagreement, &over.disagreement), x, disagreementBounds, o)
	}
}

// steps writes the series of training steps of one group.
func (e *emitter) steps(g *group) {
	ss, l := g.steps, labels{of: g, stage: spans.TQNone}
	emit(e, stepDuration, l, &ss.duration, durationPoint)
	ss.parts = slices.DeleteFunc(ss.parts, func(p named[histogram[uint64]]) bool {
		l := l
		l.part = p.name
		emit(e, partDuration, l, &p.series, durationPoint)
		return p.series == nil
	})
	for i := range ss.counts {
		emit(e, stepCounts+metricID(i), l, &ss.counts[i], sumPoint)
	}
	for i := range ss.gauges {
		emit(e, stepGauges+metricID(i), l, &ss.gauges[i], gaugePoint)
	}
	emit(e, flopDisagreement, l, &ss.disagreement, disagreementPoint)
	emit(e, incompleteCount, l, &ss.incomplete, counterPoint)
}

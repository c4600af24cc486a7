package trainmetricsconnector

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// unnamed is the operation of a collective whose span names none: without a label its series would be those of functions.
const unnamed = "unknown"

// bandwidthKinds are the values of spans.AttrNCCLBandwidthKind and where they stand on the root, in the order of collectiveValues.bandwidth.
var bandwidthKinds = [...]string{"algbw", "busbw", "busbw_mean"}

// collectiveCounts are the metrics that count what happened, in the order of collectiveValues.counts.
const collectiveCounts = 3

// collectiveKey are the labels of a collective.
type collectiveKey struct {
	operation, algorithm, comm, name string
	size                             int64 // of the communicator; 0: not known
}

func (k *collectiveKey) put(m pcommon.Map) {
	m.PutStr(spans.AttrNCCLOperation, k.operation)
	for _, l := range [...]struct{ attr, value string }{
		{spans.AttrNCCLAlgorithm, k.algorithm}, {spans.AttrNCCLCommID, k.comm}, {spans.AttrNCCLCommName, k.name},
	} {
		if l.value != "" {
			m.PutStr(l.attr, l.value)
		}
	}
	if k.size > 0 {
		m.PutInt(spans.AttrNCCLCommSize, k.size)
	}
}

// collectiveValues are the values that only the root of a collective has. Numbers that are not there are NaN.
type collectiveValues struct {
	key         collectiveKey
	timed, late bool
	ns, lateNS  uint64
	cost, size  float64 // s, By
	bandwidth   [len(bandwidthKinds)]float64
	counts      [collectiveCounts]float64 // errors, retries, ranks missing; 0 where they are not there
}

// readCollective reads the root of a collective, or a Send or Recv. Its times are those that the root states: a span begins with the first rank's clock.
func (s *scratch) readCollective(span ptrace.Span) {
	nan := math.NaN()
	o := observation{resource: int32(len(s.resources) - 1), kind: collectiveSpan, values: int32(len(s.collectives)), stage: spans.TQNone, throughput: nan}
	v := collectiveValues{cost: nan, size: nan, bandwidth: [...]float64{nan, nan, nan}}
	bad := false
	for name, a := range span.Attributes().All() {
		switch name {
		case spans.AttrIncomplete:
			o.incomplete = a.Type() == pcommon.ValueTypeBool && a.Bool()
		case spans.AttrVerdict:
			if a.Type() == pcommon.ValueTypeSlice {
				o.verdicts, o.judged = a.Slice(), true
			}
		case spans.AttrNCCLOperation:
			v.key.operation = spans.Label(spans.ValueText(a))
		case spans.AttrNCCLAlgorithm:
			v.key.algorithm = spans.Label(spans.ValueText(a))
		case spans.AttrNCCLCommID:
			v.key.comm = spans.Label(spans.ValueText(a))
		case spans.AttrNCCLCommName:
			v.key.name = spans.Label(spans.ValueText(a))
		case spans.AttrNCCLCommSize:
			if a.Type() == pcommon.ValueTypeInt {
				v.key.size = max(a.Int(), 0)
			}
		case spans.AttrNCCLDuration:
			v.ns, v.timed = nanoseconds(a, &bad)
		case spans.AttrNCCLLateMax:
			v.lateNS, v.late = nanoseconds(a, &bad)
		case spans.AttrNCCLLateCost:
			v.cost = countOf(a, &bad)
		case spans.AttrNCCLDataSize:
			v.size = countOf(a, &bad)
		case spans.AttrNCCLBandwidthAlgorithm:
			v.bandwidth[0] = spans.ValueNumber(a)
		case spans.AttrNCCLBandwidthBus:
			v.bandwidth[1] = spans.ValueNumber(a)
		case spans.AttrNCCLBandwidthBusMean:
			v.bandwidth[2] = spans.ValueNumber(a)
		case spans.AttrNCCLErrors:
			v.counts[0] = orNone(countOf(a, &bad))
		case spans.AttrNCCLRetries:
			v.counts[1] = orNone(countOf(a, &bad))
		case spans.AttrNCCLRanksMissingCount:
			v.counts[2] = orNone(countOf(a, &bad))
		}
	}
	if v.key.operation == "" {
		v.key.operation = spans.Label(span.Name())
	}
	if v.key.operation == "" {
		v.key.operation = unnamed
	}
	o.locate(span)
	if bad { // what else it says still counts
		s.invalid++
	}
	s.collectives = append(s.collectives, v)
	s.observations = append(s.observations, o)
}

// nanoseconds reads a time in s. It is bad when it is negative or above maxDuration.
func nanoseconds(v pcommon.Value, bad *bool) (ns uint64, ok bool) {
	seconds := spans.ValueNumber(v)
	if seconds >= 0 && seconds <= maxDuration.Seconds() {
		return uint64(math.Round(seconds * 1e9)), true
	}
	*bad = *bad || !math.IsNaN(seconds)
	return 0, false
}

// orNone is 0 for what is not known: a log that tells of no errors had none.
func orNone(n float64) float64 {
	if math.IsNaN(n) {
		return 0
	}
	return n
}

// collectiveSeries are the series of a group that only collectives have.
type collectiveSeries struct {
	duration, late *histogram[uint64]
	cost, io       *counter
	bandwidth      [len(bandwidthKinds)]*gauge
	counts         [collectiveCounts]*counter
	incomplete     *counter
}

func (g *group) collectiveSeries() *collectiveSeries {
	if g.nccl == nil {
		g.nccl = new(collectiveSeries)
	}
	return g.nccl
}

// collectives finds or makes the series of the collectives with the same labels. Without room for their first metric it is the overflow.
func (s *store) collectives(key resourceKey, labels *collectiveKey, first metricID) *group {
	r := s.byKey[key]
	if r != nil {
		if g := r.byCollective[*labels]; g != nil {
			return g
		}
	}
	g := s.newGroup(r, key, first)
	if g == &s.overflow {
		return g
	}
	g.collective = collectiveKey{
		operation: strings.Clone(labels.operation), algorithm: strings.Clone(labels.algorithm), comm: strings.Clone(labels.comm), name: strings.Clone(labels.name),
		size: labels.size,
	}
	g.collectiveSeries()
	g.resource.byCollective[g.collective] = g
	return g
}

// addCollective puts a collective into the series of its labels. What happened counts always; what was measured only of collectives that are whole.
func (s *store) addCollective(g *group, o *observation, v *collectiveValues) {
	cs, over := g.collectiveSeries(), s.overflow.collectiveSeries()
	s.judge(g, o)
	for i, n := range v.counts {
		// From the first collective on, with 0: rate() does not see a counter that begins at 1.
		c := slot(s, collectiveErrors+metricID(i), g, &cs.counts[i], &over.counts[i])
		if n > 0 {
			s.count(c, n, o)
		} else {
			s.touch(&c.life)
		}
	}
	if o.incomplete {
		s.count(slot(s, incompleteCount, g, &cs.incomplete, &s.overflow.incomplete[spans.TQFunction]), 1, o)
		return
	}
	if v.timed {
		s.observeNS(slot(s, collectiveDuration, g, &cs.duration, &over.duration), v.ns, o)
	}
	if v.late {
		s.observeNS(slot(s, collectiveLate, g, &cs.late, &over.late), v.lateNS, o)
	}
	if !math.IsNaN(v.cost) {
		s.count(slot(s, collectiveLateCost, g, &cs.cost, &over.cost), v.cost, o)
	}
	if !math.IsNaN(v.size) {
		s.count(slot(s, collectiveIO, g, &cs.io, &over.io), v.size, o)
	}
	for i, x := range v.bandwidth {
		if !math.IsNaN(x) {
			s.set(slot(s, collectiveBandwidth, g, &cs.bandwidth[i], &over.bandwidth[0]), x, o)
		}
	}
}

// collectives writes the series of collectives of one group.
func (e *emitter) collectives(g *group) {
	cs, l := g.nccl, labels{of: g, stage: spans.TQNone}
	emit(e, collectiveDuration, l, &cs.duration, durationPoint)
	emit(e, collectiveLate, l, &cs.late, durationPoint)
	emit(e, collectiveLateCost, l, &cs.cost, sumPoint)
	emit(e, collectiveIO, l, &cs.io, sumPoint) // a busy job moves more than an int64 holds
	for i := range cs.bandwidth {
		l := l
		l.bandwidth = bandwidthKinds[i]
		emit(e, collectiveBandwidth, l, &cs.bandwidth[i], gaugePoint)
	}
	for i := range cs.counts {
		emit(e, collectiveErrors+metricID(i), l, &cs.counts[i], counterPoint)
	}
	emit(e, incompleteCount, l, &cs.incomplete, counterPoint)
}

package trainmetricsconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// collectives reads the roots of collectives only: a root has the sums of the thousands of spans below.
var collectives = family{
	kinds:  []view.Kind{view.KindCollective},
	reader: func(family int8) reader { return &collectiveReader{family: family} },
	adder: func(family int8) adder {
		return &collectiveAdder{groups[collectiveKey, collectiveSeries]{family: family}}
	},
}

var (
	collectiveDuration = newMetric(spans.MetricNCCLDuration)
	collectiveLate     = newMetric(spans.MetricNCCLLate)
	collectiveLateCost = newMetric(spans.MetricNCCLLateCost)
	collectiveIO       = newMetric(spans.MetricNCCLIO)
	// collectiveCounts count errors, retries and missing ranks, in the order of collectiveValues.counts.
	collectiveCounts = [...]metricID{
		newMetric(spans.MetricNCCLErrors),
		newMetric(spans.MetricNCCLRetries),
		newMetric(spans.MetricNCCLMissing),
	}
)

// unnamed is the operation of a collective whose span names none: without a label its series would equal a series of functions.
const unnamed = "unknown"

// bandwidthKinds are the values of spans.AttrNCCLBandwidthKind, in the order of collectiveValues.bandwidth.
var bandwidthKinds = [...]string{"algbw", "busbw", "busbw_mean"}

// collectiveKey are the labels of a collective.
type collectiveKey struct {
	operation, algorithm, comm, name string
	size                             int64 // of the communicator; 0: not known
}

// bare implements key.
func (collectiveKey) bare() bool { return false }

// code implements key.
func (k collectiveKey) code(c *codec) collectiveKey {
	return collectiveKey{c.text(k.operation), c.text(k.algorithm), c.text(k.comm), c.text(k.name), c.num(k.size)}
}

// labels implements key.
func (k collectiveKey) labels(m pcommon.Map, own label) {
	m.PutStr(spans.AttrNCCLOperation, k.operation)
	for _, l := range [...]label{{spans.AttrNCCLAlgorithm, k.algorithm}, {spans.AttrNCCLCommID, k.comm}, {spans.AttrNCCLCommName, k.name}} {
		if l.value != "" {
			l.put(m)
		}
	}
	if k.size > 0 {
		m.PutInt(spans.AttrNCCLCommSize, k.size)
	}
	own.put(m)
}

// collectiveValues are the values of a collective's root. Missing numbers are NaN.
type collectiveValues struct {
	key         collectiveKey
	timed, late bool                         // ns and lateNS are known
	ns, lateNS  uint64                       // the duration; how long after the first rank the last one came
	cost, size  float64                      // of the last rank's lateness, s of all ranks that waited; of the data, By
	bandwidth   [len(bandwidthKinds)]float64 // By/s
	last        view.Int                     // the last rank of the communicator to arrive, and its host
	host        string
	counts      [len(collectiveCounts)]float64 // errors, retries, missing ranks; 0 where the root has no such number
}

// collectiveReader reads the roots of collectives.
type collectiveReader struct {
	family     int8
	values     []collectiveValues
	collective view.Collective
}

// reset implements reader.
func (r *collectiveReader) reset() {
	clear(r.values)
	r.values, r.collective = r.values[:0], view.Collective{}
}

// read records the root of a collective, or a Send or Recv. Durations come from attributes, not from the length of the span, which begins by the clock of the
// first rank. Impossible values are unknown, and the span counts as invalid.
func (r *collectiveReader) read(span ptrace.Span, _ view.Kind, s *scratch) {
	c, bad := &r.collective, false
	c.Read(span)
	r.values = append(r.values, collectiveValues{}) // filled in place, for its size
	v := &r.values[len(r.values)-1]
	v.key.operation, v.key.algorithm = spans.Label(c.Operation), spans.Label(c.Algorithm)
	v.key.comm, v.key.name, v.key.size = spans.Label(c.CommID), spans.Label(c.CommName), c.CommSize.N
	v.last, v.host = c.Last.Rank, spans.Label(c.Last.Host)
	v.cost, v.size = countOf(c.Last.Cost, &bad), countOf(c.DataSize, &bad)
	v.bandwidth = [...]float64{countOf(c.BandwidthAlgorithm, &bad), countOf(c.BandwidthBus, &bad), countOf(c.BandwidthBusMean, &bad)}
	v.counts = [...]float64{zeroIfUnknown(countOf(c.Errors, &bad)), zeroIfUnknown(countOf(c.Retries, &bad)), zeroIfUnknown(countOf(c.MissingCount, &bad))}
	v.ns, v.timed = nanoseconds(c.Duration, &bad)
	v.lateNS, v.late = nanoseconds(c.Last.Late, &bad)
	if v.key.operation == "" {
		v.key.operation = unnamed
	}
	if bad { // the span's remaining values still count
		s.invalid++
	}
	const noLength = 0 // add takes v.ns
	s.note(span, r.family, &c.Head, len(r.values)-1, noLength)
}

// zeroIfUnknown returns n, or 0 for NaN: a log without errors had none.
func zeroIfUnknown(n float64) float64 {
	if math.IsNaN(n) {
		return 0
	}
	return n
}

// collectiveSeries are the series of the collectives with the same labels.
type collectiveSeries struct {
	duration, late *histogram[uint64]
	cost, io       *counter
	counts         [len(collectiveCounts)]*counter
}

type collectiveAdder struct {
	groups[collectiveKey, collectiveSeries]
}

// add adds a collective to the series of its labels. Errors, retries and missing ranks always count; measurements only of complete collectives.
func (a *collectiveAdder) add(s *store, o *observation, from reader, in *scratch) {
	v := &from.(*collectiveReader).values[o.values]
	g, cs, over := a.find(s, o, in, v.key, firstMetric(o, collectiveCounts[0]))
	s.countVerdicts(g, o)
	for i, n := range v.counts {
		// With 0 from the first collective on: rate() does not see a counter that begins at 1.
		c := slot(s, collectiveCounts[i], g, &cs.counts[i], &over.counts[i])
		if n > 0 {
			s.count(c, n, o)
		} else {
			s.touch(&c.life)
		}
	}
	if o.incomplete {
		s.countIncomplete(g, o)
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
	s.fabric.measure(s, o, v, in)
	s.fabric.addLateCost(s, o, v, in)
}

// emit writes the series of the collectives with the same labels.
func (a *collectiveAdder) emit(e *emitter, g *group) {
	cs, l := seriesOf[collectiveSeries](g, a.family), labels{of: g}
	emit(e, collectiveDuration, l, &cs.duration, durationPoint)
	emit(e, collectiveLate, l, &cs.late, durationPoint)
	emit(e, collectiveLateCost, l, &cs.cost, sumPoint)
	emit(e, collectiveIO, l, &cs.io, sumPoint) // a busy job moves more than an int64 holds
	for i := range cs.counts {
		emit(e, collectiveCounts[i], l, &cs.counts[i], counterPoint)
	}
}

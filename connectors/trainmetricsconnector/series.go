package trainmetricsconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// life is common to all series. Times are Unix ns.
type life struct {
	start   int64 // nothing was in the series before
	updated int64 // when the last value came
	newborn int   // flushes so far that reported a 0 (zeroFlushes)
}

// age returns the life of any series, which embeds life.
func (l *life) age() *life { return l }

// cover does nothing for a gauge or a counter; see histogram.cover.
func (*life) cover(*emitter) {}

// origin is the span that a value comes from.
type origin struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
	end   pcommon.Timestamp
}

// exemplar is a counted span.
type exemplar struct {
	value float64
	origin
}

// exemplars are the largest and the latest value since the last flush. Both are sent again until the next value: a training step may take minutes, longer than
// the flush and the scrape interval.
type exemplars struct {
	largest, latest exemplar
	any             bool // there is a value
	sent            bool // the values were sent: the next one begins anew
}

// add adds a counted value. Values of spans that no backend has are no exemplars.
func (e *exemplars) add(value float64, o *observation) {
	if o.recordOnly { // no backend has the span
		return
	}
	e.latest = exemplar{value: value, origin: o.origin}
	if !e.any || e.sent || value > e.largest.value {
		e.largest = e.latest
	}
	e.any, e.sent = true, false
}

// histogram counts values of one kind: durations in ns, with an exact sum, or numbers.
type histogram[T uint64 | float64] struct {
	life
	exemplars
	buckets
	count    uint64
	sum      T
	min, max T
}

// observe counts a value; x is the same value in the unit of the metric.
func (h *histogram[T]) observe(value T, x float64) {
	if h.count == 0 {
		h.min, h.max = value, value
	}
	h.buckets.add(x)
	h.count++
	h.sum += value
	h.min, h.max = min(h.min, value), max(h.max, value)
}

// cover adds the bounds of the buckets to those of the metric, for explicit histograms.
func (h *histogram[T]) cover(e *emitter) { h.buckets.cover(&e.s.bounds[e.id]) }

// gauge is the value of the last span to end.
type gauge struct {
	life
	value float64
	end   pcommon.Timestamp // of its span
}

// counter counts spans, or sums their values. A float64 is exact up to 2⁵³.
type counter struct {
	life
	exemplars
	n float64
}

// named is the series of a verdict, or of one value of a label.
type named[S any] struct {
	name   seriesName
	series *S
}

// seriesName is a verdict, or a value of a label in Name.
type seriesName view.Said

// code clones the name, or passes it through a codec.
func (n seriesName) code(c *codec) seriesName {
	return seriesName{c.text(n.Name), c.text(n.Severity), c.text(n.Cause), c.text(n.Stage)}
}

// put writes the labels of a verdict.
func (n seriesName) put(m pcommon.Map) {
	for _, label := range [...]struct{ name, value string }{
		{spans.AttrVerdictName, n.Name}, {spans.AttrVerdictSeverity, n.Severity}, {spans.AttrVerdictCause, n.Cause}, {spans.AttrTQStage, n.Stage},
	} {
		if label.value != "" {
			m.PutStr(label.name, label.value)
		}
	}
}

// group has all series with the same labels of one resource: of a function, a source of training steps, a method of ZeroMQ calls, …
type group struct {
	resource   *resource                      // nil: the overflow
	family     int8                           // the family that made the group
	labels     func(m pcommon.Map, own label) // writes the labels: key.labels
	code       func(c *codec)                 // of the key; nil: the overflow
	forget     func()                         // when all series have ended
	series     []any                          // by family: see seriesOf
	incomplete *counter
	verdicts   []named[counter]

	at      string // its key in the storage; "": never stored
	changed bool   // since it was stored
	gone    bool   // all series have ended
}

// resource is a run of a service: its groups of series.
type resource struct {
	key     resourceKey
	series  int   // as Prometheus counts them
	longest int64 // ns, of its steps and passes
	late    lateRanks
	job     []label  // spans.IsJobAttribute, by the resource of its spans
	groups  []*group // in order of arrival: output has a fixed order
	bare    *group   // the group without labels, common to all families
}

package trainmetricsconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// life is what every series has. Times are Unix ns.
type life struct {
	start   int64 // nothing was in the series before
	updated int64
}

func (l *life) age() *life { return l }

// origin is the span that a value comes from.
type origin struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
	end   pcommon.Timestamp
}

// exemplar is one span that a series counted.
type exemplar struct {
	value float64
	origin
}

// exemplars are the largest and the latest value since the last flush. They go on being sent until the next value
// comes: a training step may take minutes, longer than the flush and the scrape interval.
type exemplars struct {
	largest, latest exemplar
	any, sent       bool
}

func (e *exemplars) add(value float64, o *observation) {
	e.latest = exemplar{value: value, origin: o.origin}
	if !e.any || e.sent || value > e.largest.value {
		e.largest = e.latest
	}
	e.any, e.sent = true, false
}

// histogram counts values of one kind: durations in ns, whose sum then is exact, or numbers.
type histogram[T uint64 | float64] struct {
	life
	exemplars
	counts   []uint64 // one more than bounds: the last is for what is above
	count    uint64
	sum      T
	min, max T
}

// observe puts a value where bounds[i−1] < value ≤ bounds[i], as OTLP and Prometheus have it.
func (h *histogram[T]) observe(value T, bounds []T) {
	if h.counts == nil {
		h.counts = make([]uint64, len(bounds)+1)
		h.min, h.max = value, value
	}
	lo, hi := 0, len(bounds)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bounds[mid] < value {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	h.counts[lo]++
	h.count++
	h.sum += value
	h.min, h.max = min(h.min, value), max(h.max, value)
}

// gauge is the value of the span that ended last.
type gauge struct {
	life
	value float64
	end   pcommon.Timestamp // of that span
}

// counter counts spans, or sums what they say. A float64 counts without error up to 2⁵³.
type counter struct {
	life
	exemplars
	n float64
}

// named is the series of one value of a label, such as the name of a verdict.
type named[S any] struct {
	name   string
	series *S
}

// metricID indexes metrics.
type metricID uint8

const (
	functionDuration metricID = iota
	stageDuration
	functionTime
	stageTime
	stageUtilization
	overheadUtilization
	clientThroughput
	disagreement
	verdictCount
	incompleteCount
	stepDuration
	partDuration
	flopDisagreement
	stepCounts // the first of len(stepValues.counts)
	sampleCount
	tokenCount
	stepGauges // the first of len(stepValues.gauges)
	deviceFlopThroughput
	mfu
	hfu
	callDuration
	requestSize
	responseSize
	passDuration
	passCalls
	rpcUtilization
	rpcDisagreement
	collectiveDuration
	collectiveLate
	collectiveLateCost
	collectiveIO
	collectiveBandwidth
	collectiveErrors // the first of len(collectiveValues.counts)
	collectiveRetries
	collectiveMissing
	numMetrics
)

// group are all series of one function of one resource, of one source of training steps, of one method of ZeroMQ calls, of
// the groups of such calls, or of collectives with the same labels. Arrays by stage in place of a map by labels: one map look-up per span at most.
type group struct {
	resource     *resource // nil: the series that take what is above the limit
	name         string    // of the function
	source       sourceKey // of the steps
	steps        *stepSeries
	call         rpcKey     // of the calls
	rpc          *rpcSeries // nil in a group of functions or steps
	collective   collectiveKey
	nccl         *collectiveSeries                  // nil but in a group of collectives
	duration     [spans.TQStages]*histogram[uint64] // [spans.TQFunction] is tq.function.duration, the others tq.stage.duration
	throughput   [spans.TQStages]*histogram[float64]
	disagreement *histogram[float64]
	time         *counter         // s, of functions whose shares are known
	stageTime    [shares]*counter // of it
	share        [shares]*gauge
	overhead     *gauge
	incomplete   [spans.TQStages]*counter
	verdicts     []named[counter]
}

// resource holds the groups of one service and run.
type resource struct {
	key      resourceKey
	series   int      // as Prometheus counts them
	groups   []*group // in order of arrival, so that output has an order
	byName   map[string]*group
	bySource map[sourceKey]*group
	byCall   map[rpcKey]*group

	byCollective map[collectiveKey]*group
}

package trainmetricsconnector

import (
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// targetInfo stands behind the metrics: Prometheus has a series target_info for every resource.
const targetInfo = numMetrics

const (
	// keptShare: one in so many of all series is kept for the metrics, each as many points.
	keptShare = 4
	// minKept is how many points that are at least: the overflow and one more.
	minKept = 2
	// resourceShare is how many times of what stays free one resource may have: four fifths when it is alone.
	resourceShare = 4
	// maxNames bounds the values of one label in a group, such as names of verdicts: they are looked for one by one.
	maxNames = 256
)

// fixedBounds are the buckets of the histograms that do not have the configured ones.
var fixedBounds = map[metricID][]float64{
	clientThroughput: throughputBounds,
	disagreement:     disagreementBounds,
	flopDisagreement: disagreementBounds,
	requestSize:      sizeBounds,
	responseSize:     sizeBounds,
	passCalls:        callBounds,
	rpcDisagreement:  disagreementBounds,
}

// costs are the series of one point by metric, as Prometheus counts them: a histogram has one for each bucket, for +Inf, its sum and its count.
func costs(buckets []time.Duration) (cost [targetInfo + 1]int, sum int) {
	for m := range cost {
		cost[m] = 1
		if m < len(metrics) && metrics[m].Instrument == spans.Histogram {
			n := len(buckets)
			if fixed := fixedBounds[metricID(m)]; fixed != nil {
				n = len(fixed)
			}
			cost[m] = n + 3
		}
		sum += cost[m]
	}
	return cost, sum
}

// room shares out the series. Each metric has some that no other takes. The rest is for whoever comes first, as long as a resource
// has not more than resourceShare times of what then stays free: one with endless names always leaves a part to the next.
type room struct {
	limit int
	taken int                 // by points, and kept
	cost  [targetInfo + 1]int // of a point
	used  [targetInfo + 1]int // by points; that of the overflow always is
	kept  [targetInfo + 1]int // a multiple of cost
}

func newRoom(limit int, buckets []time.Duration) room {
	r := room{limit: limit}
	var sum int
	r.cost, sum = costs(buckets)
	points := max(minKept, limit/keptShare/sum)
	for m, cost := range r.cost {
		r.kept[m] = points * cost
		r.taken += r.kept[m]
	}
	r.used = r.cost
	return r
}

// fits says whether there is room for a point of a metric in a resource; nil: one that is not there yet.
func (r *room) fits(m metricID, of *resource) bool {
	cost := r.cost[m]
	if r.used[m] < r.kept[m] {
		return true
	}
	has := cost
	if of != nil {
		has += of.series
	}
	free := r.limit - r.taken - cost
	return free >= 0 && has <= resourceShare*free
}

// take notes a point that fits.
func (r *room) take(m metricID, of *resource) {
	if r.used[m] >= r.kept[m] {
		r.taken += r.cost[m]
	}
	r.used[m] += r.cost[m]
	of.series += r.cost[m]
}

// give takes note of a point that ended.
func (r *room) give(m metricID, of *resource) {
	r.used[m] -= r.cost[m]
	of.series -= r.cost[m]
	if r.used[m] >= r.kept[m] {
		r.taken -= r.cost[m]
	}
}

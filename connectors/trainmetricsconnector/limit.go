package trainmetricsconnector

import (
	"slices"

	"github.com/trainbridge/trainbridge/internal/bounds"
	"github.com/trainbridge/trainbridge/spans"
)

// targetInfo stands behind the metrics: Prometheus has a series target_info for every resource.
func targetInfo() metricID { return metricID(len(metrics)) }

const (
	// keptShare: 1/keptShare of all series is reserved for the metrics, the same number of points for each metric.
	keptShare = 4
	// minKept is the least number of points reserved for a metric: the overflow and one more.
	minKept = 2
	// resourceShare bounds a resource to this multiple of the free series: four fifths of all when alone.
	resourceShare = 4
	// maxNames bounds the values of one label in a group, for example names of verdicts: the search is linear.
	maxNames = 256
)

// costs returns how many series one point of each metric is, as Prometheus counts them, and their sum: a native histogram is one; an explicit one has a series
// per possible bound, for +Inf, its sum and its count.
func costs(t HistogramType) (cost []int, sum int) {
	for _, m := range metrics {
		if m.Instrument == spans.Histogram && t == Explicit {
			cost = append(cost, bounds.Most+3)
		} else {
			cost = append(cost, 1)
		}
	}
	cost = append(cost, 1) // targetInfo
	for _, n := range cost {
		sum += n
	}
	return cost, sum
}

// room shares out the series. Each metric has some of its own. The rest is first come, first served, as long as a resource has at most resourceShare times the
// series that then stay free: a resource with endless names always leaves a part to the next.
type room struct {
	limit int
	taken int   // series in use, or kept for a metric
	cost  []int // of one point, by metric
	used  []int // series in use, by metric, always with the overflow's point
	kept  []int // series kept for the metric alone, used or not: a multiple of cost
}

// newRoom returns the room of a number of series, of which each metric gets its own part.
func newRoom(limit int, t HistogramType) room {
	r := room{limit: limit}
	var sum int
	r.cost, sum = costs(t)
	points := max(minKept, limit/keptShare/sum)
	for _, cost := range r.cost {
		r.kept = append(r.kept, points*cost)
		r.taken += points * cost
	}
	r.used = slices.Clone(r.cost)
	return r
}

// fits reports whether there is room for one more point of a metric in a resource (nil: a new resource): in what is kept for the metric, or in the rest, as far
// as the share of the resource goes.
func (r *room) fits(m metricID, of *resource) bool {
	cost := r.cost[m]
	if r.used[m] < r.kept[m] {
		return true
	}
	has := cost // the resource's series with the point
	if of != nil {
		has += of.series
	}
	free := r.limit - r.taken - cost
	return free >= 0 && has <= resourceShare*free
}

// take takes the room of a point. Series within those kept for the metric are in taken already.
func (r *room) take(m metricID, of *resource) {
	if r.used[m] >= r.kept[m] {
		r.taken += r.cost[m]
	}
	r.used[m] += r.cost[m]
	of.series += r.cost[m]
}

// give returns the room of an ended point.
func (r *room) give(m metricID, of *resource) {
	r.used[m] -= r.cost[m]
	of.series -= r.cost[m]
	if r.used[m] >= r.kept[m] {
		r.taken -= r.cost[m]
	}
}

package trainmetricsconnector

import (
	"slices"

	"github.com/trainbridge/trainbridge/internal/bounds"
	"github.com/trainbridge/trainbridge/spans"
)

// targetInfo returns the id after the last metric: Prometheus has a series target_info for every resource.
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

// seriesPerPoint returns, by metric, how many series one point is, as Prometheus counts them, and the sum over the metrics. A native histogram is one series;
// an explicit one has a series for each possible bound, for +Inf, its sum and its count.
func seriesPerPoint(t HistogramType) (cost []int, sum int) {
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

// room divides the series. Each metric has some reserved. The others are first come, first served, as long as a resource has at most resourceShare times the
// series that then stay free: a resource with endless names always leaves a part to the next.
type room struct {
	limit int
	taken int   // series in use, or kept for a metric
	cost  []int // of one point, by metric
	used  []int // series in use, by metric, always with the overflow's point
	kept  []int // series kept for the metric alone, used or not: a multiple of cost
}

// newRoom returns the room for a number of series, with a reserved part for each metric.
func newRoom(limit int, t HistogramType) room {
	r := room{limit: limit}
	var sum int
	r.cost, sum = seriesPerPoint(t)
	points := max(minKept, limit/keptShare/sum)
	for _, cost := range r.cost {
		r.kept = append(r.kept, points*cost)
		r.taken += points * cost
	}
	r.used = slices.Clone(r.cost)
	return r
}

// fits reports whether there is room for one more point of a metric in a resource (nil: a new resource): among the series reserved for the metric, or among the
// others, up to the share of the resource.
func (r *room) fits(m metricID, res *resource) bool {
	cost := r.cost[m]
	if r.used[m] < r.kept[m] {
		return true
	}
	has := cost // the resource's series with the point
	if res != nil {
		has += res.series
	}
	free := r.limit - r.taken - cost
	return free >= 0 && has <= resourceShare*free
}

// take takes the room for a point. r.taken already includes the reserved series.
func (r *room) take(m metricID, res *resource) {
	if r.used[m] >= r.kept[m] {
		r.taken += r.cost[m]
	}
	r.used[m] += r.cost[m]
	res.series += r.cost[m]
}

// give returns the room of an ended point.
func (r *room) give(m metricID, res *resource) {
	r.used[m] -= r.cost[m]
	res.series -= r.cost[m]
	if r.used[m] >= r.kept[m] {
		r.taken -= r.cost[m]
	}
}

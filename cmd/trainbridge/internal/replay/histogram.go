package replay

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// train_metrics makes exponential histograms. They are sent with a series for each bucket: of the past, Prometheus takes native ones from version 3 on only.

const (
	// finest is the scale of bounds: buckets are 9 % wide.
	finest = 3
	// mostBounds is how many bounds a metric may have. Where its values need more, neighbours are put together.
	mostBounds = 64
	// zeros is the index of the bucket of 0 and below.
	zeros = math.MinInt
)

// bucket is one of an exponential histogram, whose base is 2^(2^-scale): it holds base^index < value ≤ base^(index+1).
type bucket struct{ scale, index int }

// upper is the bound above the bucket in its own scale or a coarser one: 2^(upper × 2^-scale), or 0 for zeros.
func (b bucket) upper(scale int) int {
	if b.index == zeros {
		return zeros
	}
	return b.index>>(b.scale-scale) + 1
}

// histogram is how much came in each bucket, at times of samples of the count.
type histogram struct {
	metric  string
	buckets map[bucket][]sample
}

// histogram puts a point into the series of its sum and count, and into the buckets.
func (t *table) histogram(name string, p pmetric.ExponentialHistogramDataPoint, at int64) {
	t.begin(p.Attributes())
	t.put(name+"_sum", true, sample{at, p.Sum()})
	count := t.put(name+"_count", true, sample{at, float64(p.Count())})
	if count.of == nil {
		count.of = &histogram{metric: name, buckets: map[bucket][]sample{}}
	}
	h, scale := count.of, int(p.Scale())
	h.put(bucket{finest, zeros}, at, p.ZeroCount())
	for i, n := range p.Positive().BucketCounts().All() {
		index := int(p.Positive().Offset()) + i
		if scale > finest {
			h.put(bucket{finest, index >> (scale - finest)}, at, n)
		} else {
			h.put(bucket{scale, index}, at, n)
		}
	}
}

func (h *histogram) put(b bucket, at int64, n uint64) {
	list := h.buckets[b]
	switch last := len(list) - 1; {
	case n == 0:
	case last >= 0 && list[last].at == at:
		list[last].value += float64(n)
	default:
		h.buckets[b] = append(list, sample{at, float64(n)})
	}
}

// grid is the bounds of a metric, ascending: see bucket.upper.
type grid struct {
	scale  int
	bounds []int
}

// gridsOf are the bounds of each metric with histograms, the same for all of its series: with bounds of their own, sum by (le) would be wrong.
func gridsOf(all []*series) map[string]grid {
	used := map[string]map[bucket]bool{}
	for _, s := range all {
		if s.of == nil {
			continue
		}
		if used[s.of.metric] == nil {
			used[s.of.metric] = map[bucket]bool{}
		}
		for b := range s.of.buckets {
			used[s.of.metric][b] = true
		}
	}
	grids := make(map[string]grid, len(used))
	for metric, buckets := range used {
		grids[metric] = gridOf(buckets)
	}
	return grids
}

// gridOf has the bounds below and above each bucket that is not empty, of the finest scale that all of them have.
func gridOf(buckets map[bucket]bool) grid {
	scale := finest
	for b := range buckets {
		scale = min(scale, b.scale)
	}
	for ; ; scale-- {
		bounds := map[int]bool{}
		for b := range buckets {
			upper := b.upper(scale)
			bounds[upper] = true
			if upper != zeros {
				bounds[upper-1] = true
			}
		}
		if len(bounds) <= mostBounds {
			return grid{scale, slices.Sorted(maps.Keys(bounds))}
		}
	}
}

// le writes a bound as OpenMetrics does, in which Prometheus reads those of a live collector.
func (g grid) le(bound int) string {
	value := 0.0
	if bound != zeros {
		exponent := math.Ldexp(float64(bound), -g.scale)
		value = math.Ldexp(math.Exp2(exponent-math.Floor(exponent)), int(math.Floor(exponent)))
	}
	text := strconv.FormatFloat(value, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// each gives a series, and after the count of a histogram its buckets. A bucket also counts the values of lower ones. All are there from the first count to the
// last: increase() does not see the first value of a counter that begins late.
func (s *series) each(grids map[string]grid) iter.Seq[*series] {
	return func(yield func(*series) bool) {
		if !yield(s) || s.of == nil {
			return
		}
		below := slices.Clone(s.samples)
		for i := range below {
			below[i].value = 0
		}
		g := grids[s.of.metric]
		for _, bound := range g.bounds {
			for b, came := range s.of.buckets {
				if b.upper(g.scale) != bound {
					continue
				}
				for _, x := range came {
					i, _ := slices.BinarySearchFunc(s.samples, x, func(a, b sample) int { return cmp.Compare(a.at, b.at) })
					below[i].value += x.value
				}
			}
			if !yield(&series{labels: s.bucketLabels(g.le(bound)), adds: true, samples: below}) {
				return
			}
		}
		yield(&series{labels: s.bucketLabels("+Inf"), adds: true, samples: s.samples})
	}
}

// bucketLabels are those of a bucket of the histogram whose count s is.
func (s *series) bucketLabels(le string) []label {
	labels := slices.Clone(s.labels)
	for i := range labels {
		if labels[i].name == metricName {
			labels[i].value = s.of.metric + "_bucket"
		}
	}
	i, _ := slices.BinarySearchFunc(labels, "le", func(l label, name string) int { return strings.Compare(l.name, name) })
	return slices.Insert(labels, i, label{"le", le})
}

package replay

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/internal/bounds"
)

// train_metrics makes exponential histograms. They are sent with a series for each bucket: Prometheus takes native ones with past times only from version 3 on.

// bucket is a bucket of an exponential histogram with base 2^(2^-scale), for base^index < value ≤ base^(index+1).
type bucket struct{ scale, index int }

// upper is the upper bound of the bucket in its own scale or a coarser one: 2^(upper × 2^-scale), or bounds.Zero.
func (b bucket) upper(scale int) int {
	if b.index == bounds.Zero {
		return bounds.Zero
	}
	return b.index>>(b.scale-scale) + 1
}

// histogram is how many values came in each bucket, at the times of the samples of the count.
type histogram struct {
	metric  string              // name in Prometheus, without _bucket
	buckets map[bucket][]sample // not cumulative over the bounds; over time as the points are
}

// histogram puts a point of a histogram into the series _sum and _count, and into the buckets behind the count. Buckets finer than bounds.Finest are put
// together, those of values of 0 are at bounds.Zero.
func (t *table) histogram(name string, p pmetric.ExponentialHistogramDataPoint, at int64) {
	t.begin(p.Attributes())
	t.put(name+"_sum", true, sample{at, p.Sum()})
	count := t.put(name+"_count", true, sample{at, float64(p.Count())})
	if count.of == nil {
		count.of = &histogram{metric: name, buckets: map[bucket][]sample{}}
	}
	h, scale := count.of, int(p.Scale())
	h.put(bucket{bounds.Finest, bounds.Zero}, at, p.ZeroCount())
	for i, n := range p.Positive().BucketCounts().All() {
		index := int(p.Positive().Offset()) + i
		if scale > bounds.Finest {
			h.put(bucket{bounds.Finest, index >> (scale - bounds.Finest)}, at, n)
		} else {
			h.put(bucket{scale, index}, at, n)
		}
	}
}

// put adds n values to a bucket at a time. Points of one time, which follow each other, are added up.
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

// boundsOf are the bounds of buckets of each metric with histograms, over all series of the metric and all times.
func boundsOf(all []*series) map[string]*bounds.Set {
	sets := map[string]*bounds.Set{}
	for _, s := range all {
		if s.of == nil {
			continue
		}
		set := sets[s.of.metric]
		if set == nil {
			set = new(bounds.Set)
			sets[s.of.metric] = set
		}
		for b := range s.of.buckets {
			if b.index == bounds.Zero {
				set.AddZero()
			} else {
				set.Add(b.scale, b.index)
			}
		}
	}
	return sets
}

// le writes a bound as OpenMetrics does: Prometheus reads the bounds of a live collector in the same form.
func le(bound float64) string {
	text := strconv.FormatFloat(bound, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// each yields a series, and after the count of a histogram the series of its buckets, which are cumulative over the bounds: values up to le. All buckets have
// samples at all times of the count: increase() does not see the first value of a counter that begins late. The series of a bucket is valid until the next.
func (s *series) each(sets map[string]*bounds.Set) iter.Seq[*series] {
	return func(yield func(*series) bool) {
		if !yield(s) || s.of == nil {
			return
		}
		below := slices.Clone(s.samples) // how many values came up to the bound, at each time of the count
		for i := range below {
			below[i].value = 0
		}
		set := sets[s.of.metric]
		for i, bound := range set.Uppers() {
			for b, came := range s.of.buckets {
				if b.upper(set.Scale()) != bound {
					continue
				}
				for _, x := range came {
					at, _ := slices.BinarySearchFunc(s.samples, x, func(a, b sample) int { return cmp.Compare(a.at, b.at) })
					below[at].value += x.value
				}
			}
			if !yield(&series{labels: s.bucketLabels(le(set.Values()[i])), adds: true, samples: below}) {
				return
			}
		}
		yield(&series{labels: s.bucketLabels("+Inf"), adds: true, samples: s.samples})
	}
}

// bucketLabels are the labels of a bucket of the histogram whose count is s.
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

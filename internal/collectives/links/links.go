// Package links sums up the traffic of links: between ranks, or between hosts.
package links

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
)

const (
	// MaxTracked is the number of pairs tracked separately.
	MaxTracked = 4096

	recent  = 32  // bandwidths per pair, for Slow …
	minSeen = 8   // … which judges a pair from this number on
	minHot  = 4   // pairs among which one can be hot, or slow
	top     = 10  // pairs listed
	hot     = 2   // times the mean of all pairs
	slow    = 0.5 // of the median of all pairs' medians
)

// Pair is the traffic from Src to Dst, two ranks or two hosts.
type Pair struct {
	Src, Dst int32
	Bytes    int64 // since the beginning
	Records  int64
	// Bandwidth is the latest bandwidth and Median the median of the last 32, By/s; NaN: none.
	Bandwidth, Median float64
}

// Links are all pairs. The zero value is ready; it is not safe for concurrent use.
type Links struct {
	index    map[[2]int32]int32 // index in pairs, by source and destination
	pairs    []pair             // in the order of appearance
	beyond   Pair               // the traffic of all pairs after the first MaxTracked
	list     []Pair             // scratch: the result of Hot or Slow
	medians  []float64          // scratch
	measured int                // pairs with minSeen bandwidths
}

// pair is a Pair with its latest bandwidths, a ring.
type pair struct {
	Pair
	last  [recent]float64
	n     int  // bandwidths in last
	next  int  // index in last of the next
	stale bool // Median is not yet the median of last
}

// Add counts bytes (By) sent from src to dst within ns. Unknown (≤ 0) bytes only count the record, and without ns there is no bandwidth.
func (l *Links) Add(src, dst int32, bytes, ns int64) {
	bandwidth := math.NaN()
	if bytes > 0 && ns > 0 {
		bandwidth = float64(bytes) / (float64(ns) / 1e9)
	}
	l.add(src, dst, bytes, bandwidth)
}

// AddBandwidth counts a record with only a bandwidth, By/s.
func (l *Links) AddBandwidth(src, dst int32, bytesPerSecond float64) {
	l.add(src, dst, 0, bytesPerSecond)
}

// add counts a record of a pair. A bandwidth that is no positive number only counts as a record. Pairs after the first MaxTracked are added up together.
func (l *Links) add(src, dst int32, bytes int64, bandwidth float64) {
	i, ok := l.index[[2]int32{src, dst}]
	if !ok {
		if len(l.pairs) == MaxTracked {
			l.beyond.count(bytes)
			return
		}
		if l.index == nil {
			l.index = make(map[[2]int32]int32)
		}
		i = int32(len(l.pairs))
		l.index[[2]int32{src, dst}] = i
		l.pairs = append(l.pairs, pair{Pair: Pair{Src: src, Dst: dst, Bandwidth: math.NaN(), Median: math.NaN()}})
	}
	p := &l.pairs[i]
	p.count(bytes)
	if !(bandwidth > 0) || math.IsInf(bandwidth, 1) { // NaN too: unknown
		return
	}
	p.Bandwidth, p.stale = bandwidth, true
	p.last[p.next] = bandwidth
	p.next = (p.next + 1) % recent
	if p.n < recent {
		if p.n++; p.n == minSeen {
			l.measured++
		}
	}
}

// count counts a record with bytes (≤ 0: unknown). The sum stays at the largest number rather than overflow.
func (p *Pair) count(bytes int64) {
	p.Records++
	if bytes > 0 {
		p.Bytes = min(p.Bytes, math.MaxInt64-bytes) + bytes
	}
}

// Len returns the number of pairs tracked separately.
func (l *Links) Len() int { return len(l.pairs) }

// Walk visits the first n pairs in order of appearance. Median is not set.
func (l *Links) Walk(n int, visit func(Pair)) {
	for i := range min(len(l.pairs), n) {
		p := l.pairs[i].Pair
		p.Median = math.NaN()
		visit(p)
	}
}

// Overflow returns the traffic of all but the first n pairs, together. Bandwidth and Median are NaN; Src and Dst −1.
func (l *Links) Overflow(n int) Pair {
	sum := l.beyond
	for i := n; i < len(l.pairs); i++ {
		sum.Records += l.pairs[i].Records
		sum.Bytes = min(sum.Bytes, math.MaxInt64-l.pairs[i].Bytes) + l.pairs[i].Bytes
	}
	sum.Src, sum.Dst, sum.Bandwidth, sum.Median = -1, -1, math.NaN(), math.NaN()
	return sum
}

// Hot returns the pairs that carry at least twice the mean of all pairs, at most 10, the pairs with the most bytes first; none among fewer than 4 pairs. The
// slice is valid until the next call of Hot or Slow.
func (l *Links) Hot() []Pair {
	l.list = l.list[:0]
	if len(l.pairs) < minHot {
		return nil
	}
	var sum float64
	for i := range l.pairs {
		sum += float64(l.pairs[i].Bytes)
	}
	limit := hot * sum / float64(len(l.pairs))
	for i := range l.pairs {
		if p := &l.pairs[i]; p.Bytes > 0 && float64(p.Bytes) >= limit {
			l.list = append(l.list, p.Pair)
		}
	}
	slices.SortFunc(l.list, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
	})
	return l.list[:min(len(l.list), top)]
}

// Slow returns the pairs whose median bandwidth is below half of the median of all pairs' medians, at most 10, the slowest first; only among at least 4 pairs
// with 8 bandwidths each. The slice is valid until the next call of Hot or Slow.
func (l *Links) Slow() []Pair {
	l.list = l.list[:0]
	if l.measured < minHot {
		return nil
	}
	l.medians = l.medians[:0]
	for i := range l.pairs {
		p := &l.pairs[i]
		if p.n < minSeen { // too few for a judgement
			continue
		}
		if p.stale { // has new bandwidths
			sorted := p.last
			slices.Sort(sorted[:p.n])
			p.Median, p.stale = stat.Median(sorted[:p.n]), false
		}
		l.medians = append(l.medians, p.Median)
	}
	slices.Sort(l.medians)
	limit := slow * stat.Median(l.medians)
	for i := range l.pairs {
		if p := &l.pairs[i]; p.n >= minSeen && p.Median < limit {
			l.list = append(l.list, p.Pair)
		}
	}
	slices.SortFunc(l.list, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Median, b.Median), cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
	})
	return l.list[:min(len(l.list), top)]
}

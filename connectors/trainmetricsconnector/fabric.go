package trainmetricsconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// fabric sums over all communicators of a run: bandwidths by operation and size, and the cost of late ranks. The family of collectives reads the spans.
var fabric = family{
	reader: func(int8) reader { return unread{} },
	adder: func(family int8) adder {
		return &fabricAdder{groups: groups[fabricKey, fabricSeries]{family: family}}
	},
}

var (
	collectiveBandwidth = newMetric(spans.MetricNCCLBandwidth)
	rankLateCost        = newMetric(spans.MetricNCCLRankLateCost)
)

const (
	// mostLateRanks bounds the ranks of a run with a series of their own.
	mostLateRanks = 64
	// lateShare is the share of the run's cost from which a rank gets a series, in communicators above mostLateRanks.
	lateShare = 0.01
	// mostUnnamed bounds the ranks of a run whose cost is known without a series.
	mostUnnamed = 1 << 14
)

// unread is the reader of a family without spans of its own.
type unread struct{}

// read implements reader.
func (unread) read(ptrace.Span, view.Kind, *scratch) {}
func (unread) reset()                                {}

// fabricKey are the labels of bandwidths, or of a rank. Without operation and rank: all ranks without a series of their own.
type fabricKey struct {
	operation, size string
	rank            view.Int // of the communicator
	host            string
}

// bare implements key.
func (fabricKey) bare() bool { return false }

// code implements key.
func (k fabricKey) code(c *codec) fabricKey {
	return fabricKey{c.text(k.operation), c.text(k.size), view.Int{N: c.num(k.rank.N), OK: c.flag(k.rank.OK)}, c.text(k.host)}
}

// labels writes the labels of an operation and size, or of a rank; without both, the overflow label, which stands for every rank without a series.
func (k fabricKey) labels(m pcommon.Map, own label) {
	for _, l := range [...]label{{spans.AttrNCCLOperation, k.operation}, {spans.AttrNCCLSizeClass, k.size}, {spans.AttrHostName, k.host}} {
		if l.value != "" {
			l.put(m)
		}
	}
	switch {
	case k.rank.OK:
		m.PutInt(spans.AttrNCCLCommRank, k.rank.N)
	case k.operation == "":
		m.PutBool(attrOverflow, true)
	}
	own.put(m)
}

// sizeClass returns the value of spans.AttrNCCLSizeClass for a size in bytes; "": unknown.
func sizeClass(size float64) string {
	switch {
	case math.IsNaN(size):
		return ""
	case size <= 64<<10:
		return "64KiB"
	case size <= 1<<20:
		return "1MiB"
	case size <= 16<<20:
		return "16MiB"
	case size <= 256<<20:
		return "256MiB"
	case size <= 4<<30:
		return "4GiB"
	}
	return "more"
}

// fabricSeries are the series of an operation and size, or of a rank.
type fabricSeries struct {
	bandwidth [len(bandwidthKinds)]*histogram[float64]
	late      *counter
	named     bool // late is of one rank
}

// lateRanks are the costs of the late ranks of a run. Costs are not stored: after a restart a rank without a series has to earn one anew.
type lateRanks struct {
	named   int                   // ranks with a series
	all     float64               // s, the cost of all ranks
	unnamed map[fabricKey]float64 // s, by rank, of ranks without a series
}

type fabricAdder struct {
	groups[fabricKey, fabricSeries]
}

// add does nothing: the family of collectives adds.
func (*fabricAdder) add(*store, *observation, reader, *scratch) {}

// measure adds the bandwidths of a complete collective to their series. In the overflow group, slot 0 stands for every kind of bandwidth.
func (a *fabricAdder) measure(s *store, o *observation, v *collectiveValues, in *scratch) {
	if math.IsNaN(v.bandwidth[0]) && math.IsNaN(v.bandwidth[1]) && math.IsNaN(v.bandwidth[2]) {
		return
	}
	g, fs, over := a.find(s, o, in, fabricKey{operation: v.key.operation, size: sizeClass(v.size)}, collectiveBandwidth)
	for i, x := range v.bandwidth {
		if !math.IsNaN(x) {
			s.record(slot(s, collectiveBandwidth, g, &fs.bandwidth[i], &over.bandwidth[0]), x, o)
		}
	}
}

// addLateCost adds the cost of the rank that came last in a collective to the series of the rank, or to the common series of ranks without one (getsSeries).
// Without a cost or a rank nothing is added.
func (a *fabricAdder) addLateCost(s *store, o *observation, v *collectiveValues, in *scratch) {
	if math.IsNaN(v.cost) || v.cost <= 0 || !v.last.OK {
		return
	}
	key := fabricKey{rank: v.last, host: v.host}
	if r := s.byKey[in.resources[o.resource]]; r == nil || !a.getsSeries(r, key, v) { // nil: the resource found no room, and find returns the overflow group
		key = fabricKey{}
	}
	g, fs, over := a.find(s, o, in, key, rankLateCost)
	if g.resource != nil && key.rank.OK && !fs.named { // a new series of a rank, and not the overflow, which has no resource
		fs.named = true
		g.resource.late.named++
	}
	s.count(slot(s, rankLateCost, g, &fs.late, &over.late), v.cost, o)
}

// getsSeries adds the cost of a late rank to the costs of its run, and reports whether the rank gets, or has, a series of its own. At most mostLateRanks ranks
// of a run do: in small communicators the first ones, in larger ones those with lateShare of the cost of the run.
func (a *fabricAdder) getsSeries(r *resource, key fabricKey, v *collectiveValues) bool {
	l := &r.late
	l.all += v.cost
	if a.by[groupKey[fabricKey]{r, key}] != nil {
		return true
	}
	if l.named >= mostLateRanks {
		return false
	}
	if v.key.size > mostLateRanks {
		cost, known := l.unnamed[key]
		cost += v.cost
		first := l.all == v.cost // the first cost of the run is all of the cost so far: no evidence against the rank
		if cost < lateShare*l.all || first {
			if l.unnamed == nil {
				l.unnamed = map[fabricKey]float64{}
			}
			if known || len(l.unnamed) < mostUnnamed {
				if !known {
					key = key.code(nil) // a clone: the key's texts belong to the batch
				}
				l.unnamed[key] = cost
			}
			return false
		}
		delete(l.unnamed, key)
	}
	return true
}

// emit writes the series of an operation and size, or of a rank. It also counts the ranks with a series: a restored one adds one, an expired one leaves room
// for another.
func (a *fabricAdder) emit(e *emitter, g *group) {
	fs := seriesOf[fabricSeries](g, a.family)
	for i := range fs.bandwidth {
		emit(e, collectiveBandwidth, labels{of: g, own: label{spans.AttrNCCLBandwidthKind, bandwidthKinds[i]}}, &fs.bandwidth[i], numberPoint)
	}
	emit(e, rankLateCost, labels{of: g}, &fs.late, sumPoint)
	fs.named = e.codec.flag(fs.named)
	if fs.named && e.codec.reading() {
		g.resource.late.named++
	}
	if fs.named && e.codec == nil && fs.late == nil { // the series ended
		fs.named = false
		g.resource.late.named--
	}
}

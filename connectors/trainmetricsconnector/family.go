package trainmetricsconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// families are the domains with metrics. A new domain is a file and a line here.
var families = [...]family{steps, rpc, collectives, fabric, transferQueue, breakdowns, accounts, runEvents}

// family is a domain: the kinds of spans read, and what makes the reader and the adder, with the family's index in families.
type family struct {
	kinds  []view.Kind
	reader func(family int8) reader
	adder  func(family int8) adder
}

// reader reads the spans of a family, without a lock. Each batch has its own readers.
type reader interface {
	// read notes a span with the values for the adder: see scratch.note.
	read(span ptrace.Span, kind view.Kind, s *scratch)
	// reset drops the references to the batch's strings.
	reset()
}

// adder has the series of a family.
type adder interface {
	// begin is called before the observations of a batch.
	begin()
	// add puts an observation into the series of its labels. from is the reader of the span.
	add(s *store, o *observation, from reader, in *scratch)
	// emit writes the family's series of a group, or has the emitter's codec go through all possible series: each by emit or emitNamed, in a fixed order.
	emit(e *emitter, g *group)
	// restore makes the group whose key a codec reads, or returns nil for a known key.
	restore(s *store, of resourceKey, c *codec) *group
}

// familyOf is the family of a kind of spans, −1 for kinds without metrics.
var familyOf = func() (of [256]int8) {
	for i := range of {
		of[i] = -1
	}
	for i, f := range families {
		for _, kind := range f.kinds {
			of[kind] = int8(i)
		}
	}
	return of
}()

// label is a label beside the group's own labels. The zero value is no label.
type label struct{ name, value string }

// put writes the label; the zero value writes nothing.
func (l label) put(m pcommon.Map) {
	if l.name != "" {
		m.PutStr(l.name, l.value)
	}
}

// key is the labels that all series of a group share. Its zero value may be a key too.
type key[K any] interface {
	comparable
	// labels writes the labels, and own, a label of only some series of the group, in a fixed order.
	labels(m pcommon.Map, own label)
	// bare reports that the key has no labels: families with bare keys share one group, or their series would exist twice.
	bare() bool
	// code clones a key, to outlive its batch. With a codec, the key's fields go through the codec.
	code(c *codec) K
}

// groups finds the groups of a family by their labels, and the family's series S in them. Neighbouring spans mostly have the same function, source, method or
// operation and communicator, and the methods of RPCs alternate: hence the cache of two groups.
type groups[K key[K], S any] struct {
	family int8
	by     map[groupKey[K]]*group // but for bare keys: resource.bare
	over   *S                     // the series of the overflow
	found  [2]foundGroup[K, S]    // the cache, of the batch being applied
	last   int                    // index in found of the group found last
}

// foundGroup is a cached group and its key. A nil group means an empty entry.
type foundGroup[K key[K], S any] struct {
	group  *group
	series *S
	in     int32 // index of the resource in the batch
	key    K
}

// matches reports whether the entry is for a resource (index in the batch) and a key.
func (f *foundGroup[K, S]) matches(in int32, key K) bool {
	return f.group != nil && f.in == in && f.key == key
}

// groupKey is the labels of a group with its resource.
type groupKey[K key[K]] struct {
	resource *resource
	key      K
}

// begin empties the cache: indices of resources are only valid within a batch.
func (gs *groups[K, S]) begin() { clear(gs.found[:]) }

// find returns the group of observation o with labels key, made if new, and the family's series in the group. Without room for the metric first, which every
// new group needs, find returns the overflow group. over is the family's series in the overflow group: slot uses over when a single metric of g finds no room.
// The two groups used last are cached (found).
func (gs *groups[K, S]) find(s *store, o *observation, in *scratch, key K, first metricID) (g *group, series, over *S) {
	f := &gs.found[gs.last]
	if !f.matches(o.resource, key) {
		gs.last ^= 1 // the other entry
		f = &gs.found[gs.last]
		if !f.matches(o.resource, key) {
			g = gs.findOrMake(s, in.resources[o.resource], key, first)
			s.markChanged(g) // also of a known group: each batch misses the cache once, as the cache is empty when a batch begins
			*f = foundGroup[K, S]{g, seriesOf[S](g, gs.family), o.resource, key}
			gs.over = seriesOf[S](&s.overflow, gs.family)
		}
	}
	s.spilled = s.spilled || f.group == &s.overflow
	return f.group, f.series, gs.over
}

// findOrMake returns the group of a resource with the labels key, made if absent. The group of a bare key is common to every family of the resource. Without
// room for the metric first, a new group is not made, and the overflow group is returned.
func (gs *groups[K, S]) findOrMake(s *store, of resourceKey, key K, first metricID) *group {
	r := s.byKey[of]
	if r != nil {
		if key.bare() {
			if r.bare != nil {
				return r.bare
			}
		} else if g := gs.by[groupKey[K]{r, key}]; g != nil {
			return g
		}
	}
	g := s.newGroup(r, of, first)
	if g == &s.overflow {
		return g
	}
	key = key.code(nil) // a clone: the key's texts belong to the batch
	g.labels, g.family = key.labels, gs.family
	g.code = func(c *codec) { key.code(c) }
	if key.bare() {
		g.resource.bare = g
		g.forget = func() { g.resource.bare = nil }
		return g
	}
	if gs.by == nil {
		gs.by = make(map[groupKey[K]]*group)
	}
	gs.by[groupKey[K]{g.resource, key}] = g
	g.forget = func() { delete(gs.by, groupKey[K]{g.resource, key}) }
	return g
}

// restore makes the group of a stored key; nil: the key was restored before.
func (gs *groups[K, S]) restore(s *store, of resourceKey, c *codec) *group {
	var none K
	g := gs.findOrMake(s, of, none.code(c), 0) // 0: any metric, since room is unlimited while restoring
	known := g.at != ""
	if g.code == nil || known { // without a code: the overflow
		return nil
	}
	return g
}

// metricID indexes metrics.
type metricID uint8

// metrics describe the output: the metrics of each family, declared by newMetric, and the common ones.
var metrics []spans.Metric

// newMetric declares a metric of package spans by its name, and returns its id.
func newMetric(name string) metricID {
	metrics = append(metrics, spans.MetricNamed(name))
	return metricID(len(metrics) - 1)
}

// The metrics of all families.
var (
	verdictCount    = newMetric(spans.MetricTQVerdicts)
	incompleteCount = newMetric(spans.MetricIncompleteSpans)
)

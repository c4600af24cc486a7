package trainmetricsconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// families are the domains whose spans metrics are made of. A new one is a file like these and a line here.
var families = [...]family{steps, rpc, collectives, fabric, transferQueue, breakdowns, accounts, runEvents}

// family makes metrics of the spans of one domain.
type family struct {
	kinds  []view.Kind
	reader func(family int8) reader
	adder  func(family int8) adder
}

// reader reads the spans of a family, without a lock. Each batch has its own.
type reader interface {
	// read notes a span with the values that the adder needs: see scratch.note.
	read(span ptrace.Span, kind view.Kind, s *scratch)
	// reset lets go of the batch: the values refer to its strings.
	reset()
}

// adder has the series of a family.
type adder interface {
	// begin is called before the observations of a batch.
	begin()
	// add puts an observation into the series of its labels. from is the reader that has read it.
	add(s *store, o *observation, from reader, in *scratch)
	// emit writes the family's series of a group, or has the emitter's codec go through all that there may be: each by emit or emitNamed, in one order.
	emit(e *emitter, g *group)
	// restore makes the group whose key a codec reads. It is nil where there is one already.
	restore(s *store, of resourceKey, c *codec) *group
}

// familyOf is which family reads a kind of spans, −1 for kinds that no metric is made of.
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

func (l label) put(m pcommon.Map) {
	if l.name != "" {
		m.PutStr(l.name, l.value)
	}
}

// key is what the series of a group have in common. Its zero value may be a key too.
type key[K any] interface {
	comparable
	// labels writes the labels, and own, a label that only some series of the group have, at its place among them.
	labels(m pcommon.Map, own label)
	// bare says that there are no labels: the families that have such series share one group, or they would make the same series twice.
	bare() bool
	// code makes a key that outlives the batch that it was read from. What is in it goes through the codec, if there is one.
	code(c *codec) K
}

// groups finds the groups of a family by their labels, and the family's series S in them. Spans come in runs of one function, one source, one method, or one
// operation of one communicator, and the methods of RPCs alternate: the two groups that were found last are remembered.
type groups[K key[K], S any] struct {
	family int8
	by     map[groupKey[K]]*group
	over   *S // of the overflow
	found  [2]foundGroup[K, S]
	last   int // in found
}

// foundGroup is a group, and the key it was asked for by. group is nil where there is none.
type foundGroup[K key[K], S any] struct {
	group  *group
	series *S
	in     int32
	key    K
}

func (f *foundGroup[K, S]) is(in int32, key K) bool {
	return f.group != nil && f.in == in && f.key == key
}

type groupKey[K key[K]] struct {
	resource *resource
	key      K
}

func (gs *groups[K, S]) begin() { clear(gs.found[:]) }

// find finds or makes the group of an observation, and its series. Without room for the first metric of a new group it is the overflow, whose series it
// returns too.
func (gs *groups[K, S]) find(s *store, o *observation, in *scratch, key K, first metricID) (g *group, series, over *S) {
	f := &gs.found[gs.last]
	if !f.is(o.resource, key) {
		gs.last ^= 1
		if f = &gs.found[gs.last]; !f.is(o.resource, key) {
			g := gs.look(s, in.resources[o.resource], key, first)
			s.change(g) // each batch comes by here first: found is empty when it begins
			*f = foundGroup[K, S]{g, seriesOf[S](g, gs.family), o.resource, key}
			gs.over = seriesOf[S](&s.overflow, gs.family)
		}
	}
	s.spilled = s.spilled || f.group == &s.overflow
	return f.group, f.series, gs.over
}

func (gs *groups[K, S]) look(s *store, of resourceKey, key K, first metricID) *group {
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
	key = key.code(nil)
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

func (gs *groups[K, S]) restore(s *store, of resourceKey, c *codec) *group {
	var none K
	g := gs.look(s, of, none.code(c), 0)
	if g.code == nil || g.at != "" {
		return nil
	}
	return g
}

// metricID indexes metrics.
type metricID uint8

// metrics describe what is sent: the metrics of each family, and the ones that all families share. The families declare theirs by newMetric.
var metrics []spans.Metric

// newMetric declares a metric of the registry.
func newMetric(name string) metricID {
	metrics = append(metrics, spans.MetricNamed(name))
	return metricID(len(metrics) - 1)
}

// The metrics that all families have.
var (
	verdictCount    = newMetric(spans.MetricTQVerdicts)
	incompleteCount = newMetric(spans.MetricIncompleteSpans)
)

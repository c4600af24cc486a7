package trainmetricsconnector

import (
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/bounds"
	"github.com/trainbridge/trainbridge/internal/seen"
	"github.com/trainbridge/trainbridge/spans"
)

// warmChunk is how many spans have their slots of seen ids read into the CPU's cache at a time (seen.Warm).
const warmChunk = 256

// store has the series. It is not safe for concurrent use.
type store struct {
	collector  string       // Config.Collector
	bounds     []bounds.Set // by metric; nil: histograms are exponential
	expiration int64        // ns, 0 for never
	room       room

	seen      seen.Seen
	adders    []adder       // by family
	accounts  *accountAdder // an adder
	fabric    *fabricAdder  // another
	resources []*resource   // in order of arrival
	byKey     map[resourceKey]*resource
	overflow  group // of all that has found no room
	lastFlush int64 // Unix ns
	zeros     int   // flushes in which a new counter or histogram is 0
	journal   journal
	past      []string // runs that ended long before they were read, to be logged

	// Of the batch being applied.
	now       int64 // Unix ns
	spilled   bool  // the current span found no room, in whole or in part
	spills    int64 // spans without room
	full      int   // the first metric without room; −1: none
	duplicate int64 // spans counted before
}

// newStore returns a store without series.
func newStore(cfg *Config, now time.Time) *store {
	s := &store{
		collector: spans.Label(cfg.Collector), expiration: int64(cfg.MetricsExpiration), room: newRoom(cfg.CardinalityLimit, cfg.Histogram.Type),
		seen:      seen.New(cfg.DedupWindow, now),
		byKey:     make(map[resourceKey]*resource),
		lastFlush: now.UnixNano(), journal: journal{layout: layoutOf()},
	}
	if cfg.Histogram.Type == Explicit {
		s.bounds = make([]bounds.Set, len(metrics))
	}
	for i, f := range families {
		s.adders = append(s.adders, f.adder(int8(i)))
		switch a := s.adders[i].(type) {
		case *accountAdder:
			s.accounts = a
		case *fabricAdder:
			s.fabric = a
		}
	}
	s.overflow.series = make([]any, len(families))
	return s
}

// apply adds the observations of one batch, each through the adder of its family, except spans counted before. s.spills and s.duplicate count this batch only.
func (s *store) apply(in *scratch, now time.Time) {
	s.now, s.spills, s.duplicate, s.full = now.UnixNano(), 0, 0, -1
	if s.journal.taken { // the window begins with the first batch, however late
		s.journal.taken = false
		s.seen.Begin(s.now)
	}
	s.seen.Advance(s.now)
	for _, a := range s.adders {
		a.begin()
	}
	for i := range in.observations {
		if i%warmChunk == 0 {
			chunk := in.observations[i:min(i+warmChunk, len(in.observations))]
			for j := range chunk {
				s.seen.Warm(chunk[j].id)
			}
		}
		o := &in.observations[i]
		// A span without an id always counts: its duplicates cannot be recognised.
		if o.id != 0 && s.seen.Known(o.id, s.now) {
			s.duplicate++
			continue
		}
		s.spilled = false // set by find, slot and newGroup
		s.journal.note(o.id)
		s.adders[o.family].add(s, o, in.readers[o.family], in)
		if o.entry > 0 {
			s.accounts.enter(s, o, in)
		}
		if s.spilled {
			s.spills++
		}
	}
	s.noteJobs(in)
	s.accounts.limitSteps()
}

// noteJobs keeps the attributes of the job (for example from SLURM) of each resource, from the first batch that has some.
func (s *store) noteJobs(in *scratch) {
	if len(in.jobs) == 0 {
		return
	}
	from := int32(0)
	for i, end := range in.jobsEnd {
		if end > from {
			if r := s.byKey[in.resources[i]]; r != nil && r.job == nil {
				for _, l := range in.jobs[from:end] {
					r.job = append(r.job, label{l.name, strings.Clone(l.value)})
				}
			}
		}
		from = end
	}
}

// firstMetric returns the metric that a new group is certain to need, and whose room decides whether the group is made: whole for a complete span.
func firstMetric(o *observation, whole metricID) metricID {
	if o.incomplete {
		return incompleteCount
	}
	return whole
}

// newGroup makes a group of the resource r; r nil: of a new resource with a key, cloned to outlive the batch. Without room for the first metric of the group,
// the overflow group is returned: groups without series would be unbounded.
func (s *store) newGroup(r *resource, key resourceKey, first metricID) *group {
	if !s.room.fits(first, r) || r == nil && !s.room.fits(targetInfo(), nil) {
		s.spill(first)
		return &s.overflow
	}
	if r == nil {
		key.service, key.run = strings.Clone(key.service), strings.Clone(key.run)
		r = &resource{key: key}
		s.byKey[key] = r
		s.resources = append(s.resources, r)
		s.room.take(targetInfo(), r)
	}
	g := &group{resource: r, series: make([]any, len(s.adders))}
	r.groups = append(r.groups, g)
	return g
}

// seriesOf returns the series of a family in a group, made if absent.
func seriesOf[S any](g *group, family int8) *S {
	if g.series[family] == nil {
		g.series[family] = new(S)
	}
	return g.series[family].(*S)
}

// slot returns the series in a slot (at) of a group. For an empty slot the series is made, if there is room; else the series in the overflow slot is returned.
func slot[S any](s *store, m metricID, g *group, at, overflow **S) *S {
	if *at != nil {
		return *at
	}
	if g.resource != nil && s.room.fits(m, g.resource) {
		s.room.take(m, g.resource)
	} else {
		s.spill(m)
		at = overflow
	}
	if *at == nil {
		*at = new(S)
	}
	return *at
}

// spill records that a metric found no room: for the span at hand, for the warning, and for storing the overflow group.
func (s *store) spill(m metricID) {
	s.markChanged(&s.overflow)
	s.spilled = true
	if s.full < 0 {
		s.full = int(m)
	}
}

// touch marks a series as updated. A new series starts at the last flush, when it was 0: an earlier start could overlap an expired series of the same name.
func (s *store) touch(l *life) {
	if l.start == 0 {
		l.start = s.lastFlush
	}
	l.updated = max(l.updated, s.now)
}

// observe adds the duration of a span.
func (s *store) observe(h *histogram[uint64], o *observation) { s.observeNS(h, o.ns, o) }

// observeNS adds a duration, ns.
func (s *store) observeNS(h *histogram[uint64], ns uint64, o *observation) {
	s.touch(&h.life)
	seconds := float64(ns) / 1e9
	h.observe(ns, seconds)
	h.exemplars.add(seconds, o)
}

// record adds a number to a histogram.
func (s *store) record(h *histogram[float64], value float64, o *observation) {
	s.touch(&h.life)
	h.observe(value, value)
	h.exemplars.add(value, o)
}

// count adds n to a counter.
func (s *store) count(c *counter, n float64, o *observation) {
	s.touch(&c.life)
	c.n += n
	c.add(n, o)
}

// set sets a gauge to the value of a span, unless the span ended before the span of the current value: logs are read concurrently, and late. Such an older span
// does not keep the gauge alive, so that an end in the future cannot hold the gauge for ever.
func (s *store) set(g *gauge, value float64, o *observation) {
	if o.end < g.end {
		return
	}
	s.touch(&g.life)
	g.value, g.end = value, o.end
}

// countVerdicts counts the verdicts about a span.
func (s *store) countVerdicts(g *group, o *observation) {
	for _, name := range o.verdicts {
		s.count(byName(s, verdictCount, g, &g.verdicts, &s.overflow.verdicts, name), 1, o)
	}
}

// countIncomplete counts an incomplete span.
func (s *store) countIncomplete(g *group, o *observation) {
	s.count(slot(s, incompleteCount, g, &g.incomplete, &s.overflow.incomplete), 1, o)
}

// byName returns the series of a name in a list of a group, made if absent. Beyond maxNames names, or without room, the series of the overflow group is
// returned.
func byName[S any](s *store, m metricID, g *group, list, overflow *[]named[S], name seriesName) *S {
	for i := range *list {
		if (*list)[i].name == name {
			return (*list)[i].series
		}
	}
	// The overflow has one series, without a name.
	if len(*overflow) == 0 {
		*overflow = make([]named[S], 1)
	}
	if len(*list) >= maxNames {
		g = &s.overflow // slot then returns the series of the overflow group
	}
	var made *S
	series := slot(s, m, g, &made, &(*overflow)[0].series)
	if made != nil {
		*list = append(*list, named[S]{name: name.code(nil), series: made})
	}
	return series
}

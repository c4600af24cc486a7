package trainmetricsconnector

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

const mib = 1 << 20

// warmChunk is how many spans have their slots in the cache at a time.
const warmChunk = 256

var (
	// throughputBounds are By/s. The thresholds of the mission, 100 and 500 MiB/s, are edges, so that their shares can be read off exactly.
	throughputBounds = []float64{
		1 * mib, 2 * mib, 5 * mib, 10 * mib, 20 * mib, 50 * mib, 100 * mib, 200 * mib, 300 * mib, 400 * mib, 500 * mib,
		1000 * mib, 2000 * mib, 5000 * mib, 10_000 * mib, 20_000 * mib, 50_000 * mib,
	}
	// disagreementBounds are shares. The log prints two decimals of a percent and rounds them either way: up to 0.0002 is agreement.
	disagreementBounds = []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}
)

// store holds the series. It is not safe for concurrent use.
type store struct {
	bounds     []uint64 // ns
	expiration int64    // ns, 0 for never
	room       room

	seen      seen
	resources []*resource // in order of arrival
	byKey     map[resourceKey]*resource
	overflow  group
	lastFlush int64

	// Of the batch being applied.
	now       int64
	grace     int64 // ns that a series touched now lives beyond the expiration
	spilled   bool
	spills    int64
	full      metricID // the first that found no room; numMetrics: none
	duplicate int64
}

func newStore(cfg *Config, now time.Time) *store {
	s := &store{
		expiration: int64(cfg.MetricsExpiration), room: newRoom(cfg.CardinalityLimit, cfg.Histogram.Buckets),
		seen:      seen{window: int64(cfg.DedupWindow), since: now.UnixNano(), max: maxSeen},
		byKey:     make(map[resourceKey]*resource),
		lastFlush: now.UnixNano(),
	}
	for _, b := range cfg.Histogram.Buckets {
		s.bounds = append(s.bounds, uint64(b))
	}
	return s
}

// apply adds the observations of one batch. It leaves spills and duplicate as the counts of this batch.
func (s *store) apply(in *scratch, now time.Time) {
	s.now, s.spills, s.duplicate, s.full = now.UnixNano(), 0, 0, numMetrics
	s.seen.advance(s.now)
	// Spans come in runs of one function, one source, one method, or one operation of one communicator.
	var fs, src, method, operation *group
	var name string
	var key sourceKey
	var call rpcKey
	var collective collectiveKey
	last, lastStep, lastCall, lastCollective := int32(-1), int32(-1), int32(-1), int32(-1)
	for i := range in.observations {
		if i%warmChunk == 0 {
			s.seen.warm(in.observations[i:min(i+warmChunk, len(in.observations))])
		}
		o := &in.observations[i]
		// A span without an id cannot be told from another; it is counted.
		if o.id != 0 && s.seen.known(o.id, s.now) {
			s.duplicate++
			continue
		}
		switch o.kind {
		case tqSpan:
			if o.resource != last || o.name != name {
				fs, last, name = s.function(in.resources[o.resource], o.name, primary(o)), o.resource, o.name
			}
			s.spilled = fs == &s.overflow
			s.add(fs, o, in)
		case stepSpan:
			v := &in.steps[o.values]
			if o.resource != lastStep || v.source != key {
				src, lastStep, key = s.source(in.resources[o.resource], v.source, primary(o)), o.resource, v.source
			}
			s.spilled = src == &s.overflow
			s.addStep(src, o, v)
			s.grace = 0
		case callSpan:
			v := &in.calls[o.values]
			if o.resource != lastCall || v.key != call {
				method, lastCall, call = s.calls(in.resources[o.resource], v.key, primary(o)), o.resource, v.key
			}
			s.spilled = method == &s.overflow
			s.addCall(method, o, v)
		case passSpan: // rare
			g := s.calls(in.resources[o.resource], rpcKey{}, primary(o))
			s.spilled = g == &s.overflow
			s.addPass(g, o, &in.passes[o.values])
			s.grace = 0
		case collectiveSpan:
			v := &in.collectives[o.values]
			if o.resource != lastCollective || v.key != collective {
				operation, lastCollective, collective = s.collectives(in.resources[o.resource], &v.key, primary(o)), o.resource, v.key
			}
			s.spilled = operation == &s.overflow
			s.addCollective(operation, o, v)
		}
		if s.spilled {
			s.spills++
		}
	}
}

// primary is the metric that a span of a new name adds to for certain, of which so depends whether there is room for the name.
func primary(o *observation) metricID {
	switch {
	case o.incomplete:
		return incompleteCount
	case o.kind == stepSpan && o.name != "":
		return partDuration
	case o.kind == stepSpan:
		return stepCounts
	case o.kind == callSpan:
		return callDuration
	case o.kind == passSpan:
		return passDuration
	case o.kind == collectiveSpan:
		return collectiveErrors
	case o.stage == spans.TQFunction:
		return functionDuration
	}
	return stageDuration
}

// function finds or makes the series of a function. Without room for its first metric it is the overflow.
func (s *store) function(key resourceKey, name string, first metricID) *group {
	r := s.byKey[key]
	if r != nil {
		if g := r.byName[name]; g != nil {
			return g
		}
	}
	g := s.newGroup(r, key, first)
	if g == &s.overflow {
		return g
	}
	g.name = strings.Clone(name)
	g.resource.byName[g.name] = g
	return g
}

// newGroup makes a group of r, or of a new resource where that is nil. The names outlive the batch they were read from. Without room for
// its first metric it is the overflow: groups without series would be unbounded.
func (s *store) newGroup(r *resource, key resourceKey, first metricID) *group {
	if !s.room.fits(first, r) || r == nil && !s.room.fits(targetInfo, nil) {
		s.spill(first)
		return &s.overflow
	}
	if r == nil {
		key.service, key.run = strings.Clone(key.service), strings.Clone(key.run)
		r = &resource{
			key: key, byName: make(map[string]*group), bySource: make(map[sourceKey]*group), byCall: make(map[rpcKey]*group),
			byCollective: make(map[collectiveKey]*group),
		}
		s.byKey[key] = r
		s.resources = append(s.resources, r)
		s.room.take(targetInfo, r)
	}
	g := &group{resource: r}
	r.groups = append(r.groups, g)
	return g
}

// slot makes the series in a slot when there is none, or gives the one that overflows.
func slot[S any](s *store, m metricID, fs *group, at, overflow **S) *S {
	if *at != nil {
		return *at
	}
	if fs.resource != nil && s.room.fits(m, fs.resource) {
		s.room.take(m, fs.resource)
	} else {
		s.spill(m)
		at = overflow
	}
	if *at == nil {
		*at = new(S)
	}
	return *at
}

// spill notes that there was no room for a series of a metric.
func (s *store) spill(m metricID) {
	s.spilled = true
	if s.full == numMetrics {
		s.full = m
	}
}

// touch marks a series as updated. A new one starts at the last flush: it held nothing then, and after a series of
// the same name that expired.
func (s *store) touch(l *life) {
	if l.start == 0 {
		l.start = s.lastFlush
	}
	l.updated = max(l.updated, s.now+s.grace)
}

// add puts one span into the series of its function. Overflow series have no labels, so one slot stands for all stages.
func (s *store) add(fs *group, o *observation, in *scratch) {
	over := &s.overflow
	s.judge(fs, o)
	s.addTime(fs, o, in)
	if o.incomplete {
		// Its duration is only what was seen of it.
		s.count(slot(s, incompleteCount, fs, &fs.incomplete[o.stage], &over.incomplete[spans.TQFunction]), 1, o)
		return
	}

	m, spill := stageDuration, spans.TQGet
	if o.stage == spans.TQFunction {
		m, spill = functionDuration, spans.TQFunction
	}
	h := slot(s, m, fs, &fs.duration[o.stage], &over.duration[spill])
	s.observe(h, o)

	// A throughput of 0 stands for a size that is not known: the log counts tensors only.
	if o.throughput > 0 && (o.stage == spans.TQClientGet || o.stage == spans.TQClientPut) {
		s.record(slot(s, clientThroughput, fs, &fs.throughput[o.stage], &over.throughput[spans.TQClientGet]), o.throughput, throughputBounds, o)
	}
	if o.values < 0 {
		return
	}
	f := &in.shares[o.values]
	for i, share := range f.share {
		if !math.IsNaN(share) {
			s.set(slot(s, stageUtilization, fs, &fs.share[i], &over.share[spans.TQGet]), share, o)
		}
	}
	if !math.IsNaN(f.overhead) {
		s.set(slot(s, overheadUtilization, fs, &fs.overhead, &over.overhead), f.overhead, o)
	}
	if !math.IsNaN(f.disagreement) {
		s.record(slot(s, disagreement, fs, &fs.disagreement, &over.disagreement), f.disagreement, disagreementBounds, o)
	}
}

// addTime adds a function whose shares are known to the counters that TransferQueue's share of the time is made of. One that lost the lines of a stage is
// incomplete, but its FUNCTION_END says what they took.
func (s *store) addTime(fs *group, o *observation, in *scratch) {
	if o.values < 0 || math.IsNaN(in.shares[o.values].overhead) {
		return
	}
	over, total := &s.overflow, float64(o.ns)/1e9
	s.count(slot(s, functionTime, fs, &fs.time, &over.time), total, o)
	for i, share := range in.shares[o.values].share {
		if !math.IsNaN(share) {
			s.count(slot(s, stageTime, fs, &fs.stageTime[i], &over.stageTime[spans.TQGet]), share*total, o)
		}
	}
}

// observe adds the duration of a span.
func (s *store) observe(h *histogram[uint64], o *observation) { s.observeNS(h, o.ns, o) }

// observeNS adds a time that a span states.
func (s *store) observeNS(h *histogram[uint64], ns uint64, o *observation) {
	s.touch(&h.life)
	h.observe(ns, s.bounds)
	h.add(float64(ns)/1e9, o)
}

// record adds a number that a span states.
func (s *store) record(h *histogram[float64], value float64, bounds []float64, o *observation) {
	s.touch(&h.life)
	h.observe(value, bounds)
	h.add(value, o)
}

func (s *store) count(c *counter, n float64, o *observation) {
	s.touch(&c.life)
	c.n += n
	c.add(n, o)
}

// set ignores a span that ended before the one whose value the gauge has: logs are read side by side, and late. Nor does
// such a span keep the gauge alive, so that one end in the future cannot hold it for ever.
func (s *store) set(g *gauge, value float64, o *observation) {
	if o.end < g.end {
		return
	}
	s.touch(&g.life)
	g.value, g.end = value, o.end
}

// judge counts the verdicts about a span.
func (s *store) judge(g *group, o *observation) {
	if !o.judged {
		return
	}
	for i := range o.verdicts.Len() {
		if name := o.verdicts.At(i); name.Type() == pcommon.ValueTypeStr {
			s.count(byName(s, verdictCount, g, &g.verdicts, &s.overflow.verdicts, spans.Label(name.Str())), 1, o)
		}
	}
}

// byName finds or makes the series of a name in a list.
func byName[S any](s *store, m metricID, g *group, list, overflow *[]named[S], name string) *S {
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
		g = &s.overflow
	}
	var made *S
	series := slot(s, m, g, &made, &(*overflow)[0].series)
	if made != nil {
		*list = append(*list, named[S]{name: strings.Clone(name), series: made})
	}
	return series
}

package ncclreceiver

import (
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/internal/collectives/links"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// point is a value of a metric.
type point struct {
	metric            string
	run               string
	host              string
	pid               int64
	start, at         int64 // start: of a count; 0: a gauge
	value             float64
	comm, operation   string
	statistic, record string
	file              string
	rank              int32
	src, dst          int32
	srcHost, dstHost  string
	overflow          bool
}

// units and what the metrics say.
var described = map[string]struct{ unit, text string }{
	spans.MetricNCCLLinkIO:           {spans.UnitBytes, "What went from rank to rank, as far as records name both."},
	spans.MetricNCCLLinkBandwidth:    {spans.UnitBytesPerSecond, "Bandwidth from rank to rank, of the last record."},
	spans.MetricNCCLNodeIO:           {spans.UnitBytes, "What went from host to host, as far as records name both ranks."},
	spans.MetricNCCLDeviceBandwidth:  {spans.UnitBytesPerSecond, "Bandwidth of a NIC as VCCL logs it."},
	spans.MetricNCCLDeviceAbnormal:   {spans.UnitStatus, "VCCL's status of a NIC: 1 is abnormal."},
	spans.MetricNCCLRecordsDropped:   {spans.UnitRecord, "Records that NCCL Inspector itself dropped, since the process began."},
	spans.MetricNCCLRankScore:        {spans.UnitOne, "The best rank's time between collectives over this rank's, over the window."},
	spans.MetricNCCLClockOffset:      {spans.UnitSeconds, "How much a host's clock is ahead of the reference host's."},
	spans.MetricNCCLClockUncertainty: {spans.UnitSeconds, "± of nccl.clock.offset."},
}

// sample takes a value that the log states.
func (h *handler) sample(s *parse.Sample) {
	p := point{
		metric: s.Metric, run: h.run, pid: s.PID, at: s.At, value: s.Value, statistic: s.Statistic, record: s.Record, rank: s.Rank, src: s.Source, dst: s.Destination,
	}
	names := &h.names
	p.host, p.comm = names.Text(s.Host), names.Text(s.Comm)
	if s.HasKind {
		p.operation = s.Kind.String()
	}
	switch {
	case s.FromEnd:
		p.at = h.words.at(h, s.At)
	case p.at == 0:
		p.at = h.modTime
	}
	if s.Cumulative {
		p.start = h.since(countKey{p.host, p.comm, p.record, p.pid, p.rank}, p.at)
		p.at = max(p.at, p.start)
	}
	if s.Metric == spans.MetricNCCLDeviceBandwidth || s.Metric == spans.MetricNCCLDeviceAbnormal {
		p.file = h.stream.Path()
	}
	h.batch.points = append(h.batch.points, p)
}

// countKey is a count that a log states.
type countKey struct {
	host, comm, record string
	pid                int64
	rank               int32
}

// since is when a count was first seen: when it began is not in the log, and a new time would say that it began anew.
func (h *handler) since(key countKey, at int64) int64 {
	first, ok := h.counted[key]
	if !ok {
		if h.counted == nil || len(h.counted) >= maxCounted {
			h.counted = make(map[countKey]int64)
		}
		first = at
		h.counted[key] = at
	}
	return first
}

// maxCounted bounds the counts of a file: communicators × kinds of records.
const maxCounted = 4096

// metricShare is how much of the series of a run each metric of ranks, links and hosts may have, one in so many: what comes first. Links beyond that
// are summed in one series.
const metricShare = 5

// estimates adds what the assembler has learned, for the runs in a batch.
func (a *assembler) estimates(b *batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var done *run
	for _, c := range b.collectives {
		r, at := c.run, c.end
		if !c.dropped && !r.opened { // which also others' handlers may let go
			r.opened, c.opensRun = true, true
		}
		if r != done {
			done = r
			a.linkPoints(b, r, at)
		}
		if c.comm.reported == c.comm.closed || c.comm.closed < minWindow || c.comm.closed-c.comm.reported < a.r.cfg.WindowSize && c.comm.reported > 0 {
			continue
		}
		c.comm.reported = c.comm.closed
		if !c.comm.scored && r.scores+len(c.comm.hosts) <= a.r.cfg.CardinalityLimit/metricShare {
			r.scores += len(c.comm.hosts)
			c.comm.scored = true
		}
		for rank := range c.comm.hosts {
			if !c.comm.scored {
				break
			}
			if score, ok := c.comm.window.Score(int32(rank)); ok {
				b.points = append(b.points, point{metric: spans.MetricNCCLRankScore, run: r.id, at: at, value: score, comm: c.comm.id, rank: int32(rank), src: op.Unknown, dst: op.Unknown})
			}
		}
		for _, o := range c.offsets {
			src := r.hosts[o.clock]
			p := point{metric: spans.MetricNCCLClockOffset, run: r.id, host: src.host, at: at, value: o.offset / 1e9, rank: op.Unknown, src: op.Unknown, dst: op.Unknown}
			if src.name != src.host { // the clock of what wrote a file
				p.file = src.name
			}
			b.points = append(b.points, p)
			p.metric, p.value = spans.MetricNCCLClockUncertainty, o.uncertainty/1e9
			b.points = append(b.points, p)
		}
	}
}

// linkPoints adds what changed of the links of a run.
func (a *assembler) linkPoints(b *batch, r *run, at int64) {
	if !r.moved {
		return
	}
	r.moved = false
	if r.since == 0 {
		r.since = at
	}
	r.toldAt = max(at, r.toldAt, r.since)
	at = r.toldAt // what is counted later is not older
	add := func(metric string, l links.Pair, overflow bool) point {
		return point{metric: metric, run: r.id, start: r.since, at: at, value: float64(l.Bytes), rank: op.Unknown, src: l.Src, dst: l.Dst, overflow: overflow}
	}
	each := func(l links.Pair) {
		key := [2]int32{l.Src, l.Dst}
		if r.told[key] == l.Records {
			return
		}
		r.told[key] = l.Records
		if l.Bytes > 0 {
			b.points = append(b.points, add(spans.MetricNCCLLinkIO, l, false))
		}
		if !math.IsNaN(l.Bandwidth) {
			p := add(spans.MetricNCCLLinkBandwidth, l, false)
			p.start, p.value = 0, l.Bandwidth
			b.points = append(b.points, p)
		}
	}
	n := a.r.cfg.CardinalityLimit / metricShare
	r.links.Walk(n, each)
	if o := r.links.Overflow(n); o.Bytes > 0 {
		o.Src, o.Dst = op.Unknown, op.Unknown
		b.points = append(b.points, add(spans.MetricNCCLLinkIO, o, true))
	}
	node := func(l links.Pair, overflow bool) {
		p := add(spans.MetricNCCLNodeIO, l, overflow)
		if !overflow {
			p.srcHost, p.dstHost = r.nodeNames[l.Src], r.nodeNames[l.Dst]
		}
		p.src, p.dst = op.Unknown, op.Unknown
		b.points = append(b.points, p)
	}
	r.between.Walk(n, func(l links.Pair) { node(l, false) })
	if o := r.between.Overflow(n); o.Bytes > 0 {
		node(o, true)
	}
}

// overflowAttribute marks the series of what has none of its own, as in the SDK's specification of cardinality limits.
const overflowAttribute = "otel.metric.overflow"

// Metrics makes points of what the logs state and of what was learned.
func (b *batch) Metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	if len(b.points) == 0 {
		return md
	}
	type key struct{ run, metric string }
	scopes := map[string]pmetric.MetricSlice{}
	lists := map[key]pmetric.NumberDataPointSlice{}
	for i := range b.points {
		p := &b.points[i]
		list, ok := lists[key{p.run, p.metric}]
		if !ok {
			metrics, ok := scopes[p.run]
			if !ok {
				rm := md.ResourceMetrics().AppendEmpty()
				attrs := rm.Resource().Attributes()
				spans.Resource{Service: b.r.cfg.ServiceName, RunID: p.run}.Put(attrs)
				attrs.PutStr(spans.AttrServiceInstanceID, p.run) // Prometheus' instance: two runs of a job are two series
				sm := rm.ScopeMetrics().AppendEmpty()
				sm.Scope().SetName(metadata.ScopeName)
				sm.Scope().SetVersion(b.r.Set.BuildInfo.Version)
				metrics = sm.Metrics()
				scopes[p.run] = metrics
			}
			m := metrics.AppendEmpty()
			m.SetName(p.metric)
			m.SetUnit(described[p.metric].unit)
			m.SetDescription(described[p.metric].text)
			if p.start != 0 {
				sum := m.SetEmptySum()
				sum.SetIsMonotonic(true)
				sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				list = sum.DataPoints()
			} else {
				list = m.SetEmptyGauge().DataPoints()
			}
			lists[key{p.run, p.metric}] = list
		}
		dp := list.AppendEmpty()
		dp.SetTimestamp(spans.Timestamp(p.at))
		if p.start != 0 {
			dp.SetStartTimestamp(spans.Timestamp(p.start))
			dp.SetIntValue(int64(p.value))
		} else {
			dp.SetDoubleValue(p.value)
		}
		p.describe(dp.Attributes())
	}
	return md
}

func (p *point) describe(m pcommon.Map) {
	// Not of the resource: these would be no labels in Prometheus, and the series of several processes one.
	putText(m, spans.AttrHostName, p.host)
	if p.pid != 0 {
		m.PutInt(spans.AttrProcessPID, p.pid)
	}
	putText(m, spans.AttrNCCLCommID, p.comm)
	putText(m, spans.AttrNCCLOperation, p.operation)
	putText(m, spans.AttrNCCLStatistic, p.statistic)
	putText(m, spans.AttrNCCLRecordKind, p.record)
	putText(m, spans.AttrLogFile, spans.Name(p.file))
	putIndex(m, spans.AttrNCCLCommRank, int64(p.rank))
	putIndex(m, spans.AttrNCCLSource, int64(p.src))
	putIndex(m, spans.AttrNCCLDestination, int64(p.dst))
	putText(m, spans.AttrNCCLSourceHost, p.srcHost)
	putText(m, spans.AttrNCCLDestHost, p.dstHost)
	if p.overflow {
		m.PutBool(overflowAttribute, true)
	}
}

// words finds when VCCL's packed words were written: they count from a base that is not in the log, and the newest was written when the file was.
type words struct {
	file   int
	base   int64
	known  bool
	newest int64
}

func (w *words) at(h *handler, word int64) int64 {
	if !w.known || w.file != h.file || word < w.newest-int64(maxBack) {
		last := word
		h.stream.Ahead(func(text []byte) bool {
			if word, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
				last = max(last, int64(word&(1<<54-1)))
			}
			return true
		})
		*w = words{file: h.file, base: h.modTime - last, known: true}
	}
	w.newest = max(w.newest, word)
	return w.base + word
}

// maxBack is how far words may lie back behind the newest: VCCL writes what it kept of the time around an anomaly.
const maxBack = 1_000_000_000

package collectives

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/internal/collectives/links"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// Point is a value of a metric: learned from collectives, or stated by a log. Empty texts are unknown.
type Point struct {
	Metric              string // spans.MetricNCCL…
	Run                 string
	Host                string
	PID                 int64 // 0: not known
	Start, At           int64 // Unix ns. Start is of a count; 0: the value is a gauge
	Value               float64
	Comm, Operation     string
	Statistic, Record   string // spans.AttrNCCLStatistic and spans.AttrNCCLRecordKind
	File                string // the log whose writer's clock the value is of
	Rank                int32  // op.Unknown, as Source and Destination
	Source, Destination int32
	sourceHost          string // of traffic between nodes
	destinationHost     string
	overflow            bool   // the traffic of all links without a series of their own
	collector           string // of learned values; values of a log are the same for every reader
}

// MetricShare divides a run's series: each metric of ranks, links and hosts may have 1/MetricShare of them, first come, first served. Further links are summed
// in one series.
const MetricShare = 5

// learned appends the points of a batch of collectives: for each run the changed links, for each communicator, once per window, the scores of ranks and the
// offsets of clocks. The first drawn collective of a run, and each later one with an earlier start, opens the span of the run (Settings.OpenRun).
func (j *joiner) learned(points []Point, batch []*Collective) []Point {
	var done *run // its links are in points; collectives of a run mostly follow each other
	first := len(points)
	for _, c := range batch {
		r := c.run
		if !c.undrawn && c.start < r.began { // the batches of other inputs may have an earlier one
			r.began = c.start
			if j.set.OpenRun != nil {
				j.set.OpenRun(r.file, c.start, c.parts[0].how.time)
			}
		}
		if r != done {
			done = r
			points = r.linkPoints(points, c.end, j.set.Series/MetricShare)
		}
		if c.comm.isReportDue(j.set.WindowSize) {
			c.comm.reported = c.comm.closed
			points = j.scorePoints(points, c)
			points = c.clockPoints(points)
		}
	}
	for i := range points[first:] {
		points[first+i].collector = j.set.Collector
	}
	return points
}

// isReportDue reports whether ranks and clocks are to be reported: first after MinWindow collectives, then once per window.
func (comm *communicator) isReportDue(window int) bool {
	since := comm.closed - comm.reported
	return since > 0 && comm.closed >= MinWindow && (since >= window || comm.reported == 0)
}

// scorePoints appends the scores of the ranks of a communicator, if the run has series left for all of them; a communicator that got series keeps them.
func (j *joiner) scorePoints(points []Point, c *Collective) []Point {
	comm, r := c.comm, c.run
	if !comm.scored && r.scores+len(comm.hosts) <= j.set.Series/MetricShare {
		r.scores += len(comm.hosts)
		comm.scored = true
	}
	if !comm.scored {
		return points
	}
	for rank := range comm.hosts {
		if score, ok := comm.window.Score(int32(rank)); ok {
			points = append(points, Point{
				Metric: spans.MetricNCCLRankScore, Run: r.id, At: c.end, Value: score, Comm: comm.id, Host: comm.hostOf(int32(rank)),
				Rank: int32(rank), Source: op.Unknown, Destination: op.Unknown,
			})
		}
	}
	return points
}

// clockPoints appends the offsets of the clocks in a collective and their uncertainties, s.
func (c *Collective) clockPoints(points []Point) []Point {
	for _, o := range c.offsets {
		src := c.run.hosts[o.clock]
		p := Point{
			Metric: spans.MetricNCCLClockOffset, Run: c.run.id, Host: src.host, At: c.end, Value: o.offset / 1e9,
			Rank: op.Unknown, Source: op.Unknown, Destination: op.Unknown,
		}
		if src.name != src.host { // the clock of the writer of a file
			p.File = src.name
		}
		points = append(points, p)
		p.Metric, p.Value = spans.MetricNCCLClockUncertainty, o.uncertainty/1e9
		points = append(points, p)
	}
	return points
}

// linkPoints appends points for the changed links of a run between ranks, and for all links between nodes, at a time, Unix ns. most is the number of links of
// each kind with a series of their own; further links share one.
func (r *run) linkPoints(points []Point, at int64, most int) []Point {
	if !r.moved {
		return points
	}
	r.moved = false
	if r.since == 0 {
		r.since = at
	}
	r.reportedAt = max(at, r.reportedAt, r.since)         // a later count must not have an older time
	addOverflow := func(metric string, rest links.Pair) { // appends the point of the links without a series
		if rest.Bytes > 0 {
			p := r.linkPoint(metric, rest)
			p.overflow = true
			points = append(points, p)
		}
	}
	r.links.Walk(most, func(l links.Pair) { points = r.rankLink(points, l) })
	addOverflow(spans.MetricNCCLLinkIO, r.links.Overflow(most))
	r.between.Walk(most, func(l links.Pair) {
		p := r.linkPoint(spans.MetricNCCLNodeIO, l)
		p.sourceHost, p.destinationHost = r.nodeNames[l.Src], r.nodeNames[l.Dst]
		p.Source, p.Destination = op.Unknown, op.Unknown
		points = append(points, p)
	})
	addOverflow(spans.MetricNCCLNodeIO, r.between.Overflow(most))
	return points
}

// rankLink appends the points of a link between two ranks, if the link had records since the last report: its bytes so far, and the latest bandwidth.
func (r *run) rankLink(points []Point, l links.Pair) []Point {
	key := [2]int32{l.Src, l.Dst}
	if r.reportedRecords[key] == l.Records {
		return points
	}
	r.reportedRecords[key] = l.Records
	if l.Bytes > 0 {
		points = append(points, r.linkPoint(spans.MetricNCCLLinkIO, l))
	}
	if !math.IsNaN(l.Bandwidth) {
		p := r.linkPoint(spans.MetricNCCLLinkBandwidth, l)
		p.Start, p.Value = 0, l.Bandwidth
		points = append(points, p)
	}
	return points
}

// linkPoint returns the point for the bytes of a link since the first traffic of the run.
func (r *run) linkPoint(metric string, l links.Pair) Point {
	return Point{Metric: metric, Run: r.id, Start: r.since, At: r.reportedAt, Value: float64(l.Bytes), Rank: op.Unknown, Source: l.Src, Destination: l.Dst}
}

// overflowAttribute marks the series of all links without one of their own, as in the SDK's specification of cardinality limits.
const overflowAttribute = "otel.metric.overflow"

// Metrics makes metrics of points: one resource per run, one metric per run and name. service is the service.name of the resources; scope and version name the
// component.
func Metrics(points []Point, service, scope, version string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	if len(points) == 0 {
		return md
	}
	type key struct{ run, metric string }
	scopes := map[string]pmetric.MetricSlice{}
	lists := map[key]pmetric.NumberDataPointSlice{}
	for i := range points {
		p := &points[i]
		list, ok := lists[key{p.Run, p.Metric}]
		if !ok {
			metrics, ok := scopes[p.Run]
			if !ok {
				rm := md.ResourceMetrics().AppendEmpty()
				spans.Resource{Service: service, RunID: p.Run}.PutInstance(rm.Resource().Attributes())
				sm := rm.ScopeMetrics().AppendEmpty()
				sm.Scope().SetName(scope)
				sm.Scope().SetVersion(version)
				metrics = sm.Metrics()
				scopes[p.Run] = metrics
			}
			list = p.begin(metrics.AppendEmpty())
			lists[key{p.Run, p.Metric}] = list
		}
		p.put(list.AppendEmpty())
	}
	return md
}

// begin declares the metric of the point in m, as registered under its name, and returns the list for its points.
func (p *Point) begin(m pmetric.Metric) pmetric.NumberDataPointSlice {
	d := spans.MetricNamed(p.Metric)
	d.Declare(m)
	if d.Instrument == spans.Counter {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

// put writes the point: a count (with a start) as an integer, a gauge as a float.
func (p *Point) put(dp pmetric.NumberDataPoint) {
	dp.SetTimestamp(spans.Timestamp(p.At))
	if p.Start != 0 {
		dp.SetStartTimestamp(spans.Timestamp(p.Start))
		dp.SetIntValue(int64(p.Value))
	} else {
		dp.SetDoubleValue(p.Value)
	}
	p.describe(dp.Attributes())
}

// describe writes the known attributes of the point.
func (p *Point) describe(m pcommon.Map) {
	// Not on the resource: Prometheus would have no labels, and a single series for several collectors and processes.
	putText(m, spans.AttrCollector, p.collector)
	putText(m, spans.AttrHostName, p.Host)
	if p.PID != 0 {
		m.PutInt(spans.AttrProcessPID, p.PID)
	}
	putText(m, spans.AttrNCCLCommID, p.Comm)
	putText(m, spans.AttrNCCLOperation, p.Operation)
	putText(m, spans.AttrNCCLStatistic, p.Statistic)
	putText(m, spans.AttrNCCLRecordKind, p.Record)
	putText(m, spans.AttrLogFile, spans.Name(p.File))
	putIndex(m, spans.AttrNCCLCommRank, int64(p.Rank))
	putIndex(m, spans.AttrNCCLSource, int64(p.Source))
	putIndex(m, spans.AttrNCCLDestination, int64(p.Destination))
	putText(m, spans.AttrNCCLSourceHost, p.sourceHost)
	putText(m, spans.AttrNCCLDestHost, p.destinationHost)
	if p.overflow {
		m.PutBool(overflowAttribute, true)
	}
}

package tqtracereceiver

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/assemble"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

const reasonNoMetrics = "no_metrics_pipeline"

// readNeighbour reads a line of verl or TransferQueue without a [TQ-…] tag: a cost time and the lines of a [Performance] record become points; other lines are
// ignored, because the tagged records have their content. mine is false for a line of another program.
func (h *handler) readNeighbour(b []byte, l *tail.Line) (v tail.Verdict, reason string, mine bool) {
	kind := tqline.Classify(b)
	switch kind {
	case tqline.TaskGetting:
		return tail.Ignored, "task_getting", true
	case tqline.TaskPutting:
		return tail.Ignored, "task_putting", true
	case tqline.TensordictKeys:
		return tail.Ignored, "tensordict_keys", true
	case tqline.TaskCost:
		v, reason = h.readCost(b, l)
		return v, reason, true
	case tqline.PerfHeader, tqline.PerfRange, tqline.PerfOperations:
		if !h.r.HasMetrics() {
			return tail.Ignored, reasonNoMetrics, true
		}
		v, reason = h.perf.line(h, kind, b, l)
		return v, reason, true
	case tqline.Other:
	}
	return tail.Ignored, "", false
}

// metricTime returns the time of a metric, ns: the stamp of its line, else about the time of writing.
func (h *handler) metricTime(l *tail.Line) int64 {
	if ns, _, ok := h.stampTime(); ok {
		return ns
	}
	return h.arrivalTime(l).UnixNano()
}

// readCost reads a "cost time" line of a task: the point is how long getting from or writing to TransferQueue took, s.
func (h *handler) readCost(b []byte, l *tail.Line) (tail.Verdict, string) {
	c, ok := tqline.ParseCost(b)
	switch {
	case !ok:
		return tail.Rejected, "bad_cost_time"
	case !h.r.HasMetrics():
		return tail.Ignored, reasonNoMetrics
	}
	who := h.process().Who
	who.PID = c.PID
	p := point{metric: taskDuration, who: who, at: h.metricTime(l), value: float64(c.Duration) / 1e9, function: h.names.Text(c.Func), direction: "get"}
	if c.Put {
		p.direction = "put"
	}
	h.batch.points = append(h.batch.points, p)
	return tail.Record, ""
}

// perfRecords are the [Performance] records with some of their three lines missing; other lines may stand between.
type perfRecords struct{ open []*perfRecord }

// perfRecord is a [Performance] record of which the first line was read.
type perfRecord struct {
	head     point   // process, time and storage unit
	requests float64 // the values of tqline.Perf
	rate     float64
	average  float64
	ranged   bool        // the line with the time range was read
	since    int64       // when the first line was read, ns
	held     []tail.Held // its lines, acknowledged when the record leaves
}

const (
	maxPerfRecords = 64
	badPerformance = "bad_performance"
)

// line takes a line of a [Performance] record: the first opens the record, the time range completes its head, the operations end it. After an unreadable line,
// which is rejected, the record stays open.
//
//	UNIT: [Performance] Total success requests: 1840, …
//	Time range: last 5.00 minutes;
//	Per-operation statistics: PUT_DATA: req_count=…
func (p *perfRecords) line(h *handler, kind tqline.Neighbour, b []byte, l *tail.Line) (tail.Verdict, string) {
	who := h.process().Who
	if kind == tqline.PerfHeader {
		return p.begin(h, who, b, l)
	}
	// The oldest record of the process that still lacks the line.
	for i, r := range p.open {
		switch {
		case r.head.who != who || kind == tqline.PerfRange && r.ranged:
			continue
		case kind == tqline.PerfRange:
			ns, ok := tqline.ParseRange(b)
			if !ok {
				return tail.Rejected, badPerformance
			}
			r.ranged = true
			r.head.start = r.head.at - ns
			r.held = append(r.held, h.stream.Hold())
			return tail.Record, ""
		case !h.operations(r.head, b):
			return tail.Rejected, badPerformance
		}
		p.leave(h, i)
		return tail.Record, ""
	}
	if kind == tqline.PerfRange { // other software may print a line like it
		return tail.Ignored, "not_tq"
	}
	return tail.Rejected, "no_performance_header"
}

// begin opens a record with its first line. With too many open records the oldest leaves.
func (p *perfRecords) begin(h *handler, who assemble.Who, b []byte, l *tail.Line) (tail.Verdict, string) {
	head, ok := tqline.ParsePerf(b)
	if !ok {
		return tail.Rejected, badPerformance
	}
	if len(p.open) == maxPerfRecords {
		p.leave(h, 0)
	}
	p.open = append(p.open, &perfRecord{
		head:     point{who: who, at: h.metricTime(l), unit: h.names.Text(head.Unit)},
		requests: float64(head.Requests), rate: head.Rate, average: head.Average, since: l.Observed.UnixNano(), held: []tail.Held{h.stream.Hold()},
	})
	return tail.Record, ""
}

// operations adds the points of all operations of a line, or none: false if one is unreadable.
func (h *handler) operations(head point, b []byte) bool {
	first := len(h.batch.points)
	for rest := b; ; {
		op, after, ok := tqline.NextOp(rest)
		if !ok {
			h.batch.points = h.batch.points[:first]
			return false
		}
		if op.Name == nil { // the end of the line
			return true
		}
		h.operation(head, op)
		rest = after
	}
}

// operation adds the points of an operation: p with its name and each of its values.
func (h *handler) operation(p point, op tqline.PerfOp) {
	p.operation = h.names.Text(bytes.TrimSpace(op.Name))
	for i, v := range [...]float64{float64(op.Requests), op.Rate, op.Avg, op.Max, op.Min} {
		p.metric, p.value = operationRequests+metricID(i), v
		h.batch.points = append(h.batch.points, p)
	}
}

// leave sends the totals of the i-th open record, from its first line, and acknowledges its lines.
func (p *perfRecords) leave(h *handler, i int) {
	r := p.open[i]
	p.open = append(p.open[:i], p.open[i+1:]...)
	for i, v := range [...]float64{r.requests, r.rate, r.average} {
		q := r.head
		q.metric, q.value = storageRequests+metricID(i), v
		h.batch.points = append(h.batch.points, q)
	}
	for _, held := range r.held {
		h.stream.Release(held)
	}
}

// expire sends the records whose first line was read before a time (Unix ns).
func (p *perfRecords) expire(h *handler, before int64) {
	for len(p.open) > 0 && p.open[0].since < before {
		p.leave(h, 0)
	}
}

// metricID numbers the metrics of this receiver.
type metricID uint8

// storage… and operation… are in the order of the values in perfRecords.leave and handler.operation.
const (
	taskDuration metricID = iota
	storageRequests
	storageRate
	storageAvg
	operationRequests
	operationRate
	operationAvg
	operationMax
	operationMin
	metricIDs
)

var metricInfo = [metricIDs]spans.Metric{
	taskDuration:      spans.MetricNamed(spans.MetricTQTaskDuration),
	storageRequests:   spans.MetricNamed(spans.MetricTQStorageRequests),
	storageRate:       spans.MetricNamed(spans.MetricTQStorageRate),
	storageAvg:        spans.MetricNamed(spans.MetricTQStorageDurationAvg),
	operationRequests: spans.MetricNamed(spans.MetricTQOperationRequests),
	operationRate:     spans.MetricNamed(spans.MetricTQOperationRate),
	operationAvg:      spans.MetricNamed(spans.MetricTQOperationDurationAvg),
	operationMax:      spans.MetricNamed(spans.MetricTQOperationDurationMax),
	operationMin:      spans.MetricNamed(spans.MetricTQOperationDurationMin),
}

// point is one value. Times in wall ns.
type point struct {
	metric                               metricID
	who                                  assemble.Who
	at, start                            int64 // start: of the measured range; 0: none
	value                                float64
	function, direction, unit, operation string
}

package top

import (
	"context"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// watcher fills a model with spans, and with the figures of GPUs from logs and from NVML.
type watcher struct {
	*model
	now func() time.Time

	// Reused from span to span, under the model's lock.
	resource  view.Resource
	step      view.Step
	breakdown view.Breakdown
}

func (w *watcher) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces puts spans into the model, and keeps the books of all jobs together within book.MostSteps steps.
func (w *watcher) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	w.change(func() {
		for _, rs := range td.ResourceSpans().All() {
			w.resource.Read(rs.Resource().Attributes())
			j := w.job(w.resource.Run, w.now())
			if v, ok := rs.Resource().Attributes().Get(spans.AttrIterations); ok {
				j.of = max(j.of, view.IntOf(v).N)
			}
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if !view.IsDetail(span) {
						w.read(j, span)
					}
				}
			}
		}
		book.Fit(w.books(), book.MostSteps)
	})
	return nil
}

// enter puts a span's times into the book of its job.
func (w *watcher) enter(j *job, e *book.Entry) {
	if j.book == nil {
		j.book = new(book.Book)
	}
	j.book.Put(e)
	j.stale = true
}

// read puts a span into the job of its run: a step, a breakdown of a step's time, times for the account of the run, and verdicts. An incomplete step is for the
// account alone.
func (w *watcher) read(j *job, span ptrace.Span) {
	kind := view.KindOf(span)
	where := span.Name()
	switch kind {
	case view.KindJoined: // a copy of a span that was read before
		return
	case view.KindStep:
		s := &w.step
		s.Read(span, &w.resource)
		e := book.Step(span, s, &w.resource, spans.AttrText(span.Attributes(), spans.AttrLogFile), -1) // −1: the screen has no evidence, so no place is needed
		w.enter(j, &e)
		if s.Incomplete {
			return
		}
		w.addStep(j, stepOf(span, s))
		if at := s.Step(); at.OK {
			where = "step " + strconv.FormatInt(at.N, 10)
		}
	case view.KindPart:
		if e, ok := book.Part(span, spans.AttrText(span.Attributes(), spans.AttrStage), &w.resource); ok {
			w.enter(j, &e)
		}
	case view.KindEvent:
		if span.Status().Code() == ptrace.StatusCodeError {
			w.addVerdict(j, eventOf(span))
		}
		return
	case view.KindEvaluation:
		e := book.Evaluation(span, &w.resource, "")
		w.enter(j, &e)
	case view.KindBreakdown:
		b := &w.breakdown
		b.Read(span)
		if b.Window != spans.WindowStep && len(j.steps) > 0 { // a batch or a pass within a step: shown only for jobs without steps
			break
		}
		out := window{n: b.Iteration.Or(-1), end: int64(span.EndTimestamp()), whole: b.Length(), parts: map[string]float64{}}
		for _, p := range b.Times {
			if p.Seconds > 0 && len(out.parts) < mostParts {
				out.parts[p.Part] = p.Seconds
			}
		}
		j.addWindow(out)
		if where = b.Window; b.Iteration.OK {
			where += " " + strconv.FormatInt(b.Iteration.N, 10)
		}
	default:
	}
	if span.Events().Len() == 0 {
		return
	}
	for v := range view.Verdicts(span) {
		w.addVerdict(j, verdict{int64(span.EndTimestamp()), where, v.Title(), v.Severity, v.Reason})
	}
}

// eventOf is a line about the end of the run (an error, such as CUDA out of memory), as a bad verdict.
func eventOf(span ptrace.Span) verdict {
	var e view.Event
	e.Read(span)
	v := verdict{int64(span.EndTimestamp()), span.Name(), e.Class, spans.SeverityBad, e.Text}
	if e.Rank.OK {
		v.where = "rank " + strconv.FormatInt(e.Rank.N, 10)
	}
	return v
}

// stepOf is a step's span as a step of the model; FLOP/s per GPU are the recomputed ones, else the log's.
func stepOf(span ptrace.Span, s *view.Step) step {
	flop := s.DeviceFlopThroughput
	if math.IsNaN(flop) {
		flop = s.DeviceFlopThroughputReported
	}
	return step{
		n: s.Step().Or(-1), end: int64(span.EndTimestamp()), time: s.Duration, tokens: s.TokenThroughput, sample: s.SampleThroughput, flop: flop, mfu: s.MFU,
		loss: s.Loss.Value, odd: s.Loss.NotFinite(),
	}
}

// ConsumeMetrics takes the figures of GPUs, from logs and from NVML.
func (w *watcher) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	w.change(func() {
		for _, rm := range md.ResourceMetrics().All() {
			host := spans.AttrText(rm.Resource().Attributes(), spans.AttrHostName)
			for _, sm := range rm.ScopeMetrics().All() {
				for _, metric := range sm.Metrics().All() {
					for _, p := range spans.Points(metric).All() {
						w.addGPU(host, metric.Name(), spans.PointNumber(p), func(name string) string { return spans.AttrText(p.Attributes(), name) })
					}
				}
			}
		}
	})
	return nil
}

// addGPU notes a value of a GPU, if the screen shows the metric. attribute returns an attribute of the point, "": absent. Of metrics with several points for a
// GPU, the one about the whole GPU counts. A cause of throttling stays until the same cause is reported as over, or another as active; an idle GPU (gpu_idle)
// is not held down.
func (m *model) addGPU(host, metric string, value float64, attribute func(name string) string) {
	id := attribute(spans.AttrHardwareID)
	if id == "" {
		return
	}
	to := func(f func(*gpu)) { // changes the GPU, with its names
		if g := m.gpuOf(host, id, attribute(spans.AttrSource) != ""); g != nil {
			if model := attribute(spans.AttrDeviceModel); model != "" {
				g.model = model
			}
			if name := attribute(spans.AttrHardwareName); name != "" {
				g.name = name
			}
			f(g)
		}
	}
	switch metric {
	case spans.MetricGPUUtilization:
		if task := attribute(spans.AttrGPUTask); task == "" || task == "general" {
			to(func(g *gpu) { g.busy = value })
		}
	case "hw.gpu.memory.usage":
		to(func(g *gpu) { g.memory = value })
	case spans.MetricGPUMemoryLimit:
		to(func(g *gpu) { g.memoryLimit = value })
	case spans.MetricHardwarePower:
		to(func(g *gpu) { g.power = value })
	case spans.MetricHardwareTemperature:
		if at := attribute(spans.AttrSensorLocation); at == "" || at == "gpu" {
			to(func(g *gpu) { g.temperature = value })
		}
	case spans.MetricGPUThrottleActive:
		if reason := attribute(spans.AttrGPUThrottleReason); reason != "gpu_idle" {
			to(func(g *gpu) {
				switch {
				case value > 0:
					g.throttled = reason
				case g.throttled == reason:
					g.throttled = ""
				}
			})
		}
	}
}

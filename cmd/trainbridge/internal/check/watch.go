package check

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// watch sees lines and spans, and keeps the facts for the rules.
type watch struct {
	mu    sync.Mutex
	files map[string]*signs
	runs  map[string]*facts
	jobs  *digest.Jobs
}

// sight is how often something was seen, and where in the file first (By).
type sight struct {
	n  int64
	at int64
}

func (s *sight) see(n, at int64) {
	if s.n == 0 {
		s.at = at
	}
	s.n += n
}

// signs are the facts in the lines of a file.
type signs struct {
	trace, detail sight // [TQ-TRACE], [TQ-DETAIL]
	neighbour     sight // records of TransferQueue without trace and detail
	queue         sight // TransferQueue is named
	ids, noID     sight
	collapsed     sight // lines that Ray dropped as repeated
	tcp           sight // ZeroMQ's transport
	summary, call int64 // of ZeroMQ: the last ones, By; −1: none
	record        int64 // the last one, By
	sessionDone   bool  // of perf_monitor
}

// facts are the facts in the spans of a run.
type facts struct {
	steps, rated, timeless         sights // without FLOP/s, with FLOP/s, with made-up times
	utilized                       int64
	collectives, unconfirmed, made sights  // made: with made-up times
	apart                          float64 // s, largest difference of its hosts' clocks
	apartIn                        sights
}

// sights are sights by file.
type sights map[string]*sight

func (s *sights) see(file string, at int64) {
	if *s == nil {
		*s = make(sights)
	}
	of := (*s)[file]
	if of == nil {
		(*s)[strings.Clone(file)] = &sight{1, at}
		return
	}
	of.n++
	of.at = min(of.at, at) // spans do not come in the order of the file
}

func (s sights) count() (n int64) {
	for _, of := range s {
		n += of.n
	}
	return n
}

// add adds the sights of another run.
func (s *sights) add(more sights) {
	for file, of := range more {
		s.see(file, of.at)
		(*s)[file].n += of.n - 1
	}
}

func newWatch() *watch {
	return &watch{files: make(map[string]*signs), runs: make(map[string]*facts), jobs: digest.Ending()}
}

// file is offline.Options.Watch.
func (w *watch) file(path string) offline.LineWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &signs{summary: -1, call: -1}
	w.files[path] = s
	return s.line
}

var (
	tqMark     = []byte("[TQ-")
	traceMark  = []byte("[TQ-TRACE]")
	detailMark = []byte("[TQ-DETAIL]")
	idMark     = []byte("trace_id=")
	noIDMark   = []byte("trace_id=N/A")
	queueMark  = []byte("TransferQueue")
	repeated   = []byte("[repeated ")
	transport  = []byte("Transport: TCP")
	completed  = []byte("Performance Monitor Session Completed")
)

// line is an offline.LineWatch.
func (s *signs) line(text []byte, at int64, v tail.Verdict, reason string) {
	switch {
	case v == tail.Record:
		s.record = at
		if t := bytes.TrimLeft(text, " \t"); len(t) > 0 && t[0]-'0' <= 9 { // lines of a summary begin with a name
			s.call = at
		}
	case reason == "summary": // of zmq_rpc
		s.summary = at
	case reason == "title" && bytes.Contains(text, transport):
		s.tcp.see(1, at)
	}
	i := bytes.Index(text, tqMark)
	if i < 0 {
		if bytes.Contains(text, queueMark) {
			s.queue.see(1, at)
		}
		if !s.sessionDone && bytes.HasPrefix(text, completed) {
			s.sessionDone = true
		}
		if v == tail.Record {
			s.neighbour.see(1, at)
		}
		return
	}
	switch rest := text[i:]; {
	case bytes.HasPrefix(rest, traceMark):
		s.trace.see(1, at)
	case bytes.HasPrefix(rest, detailMark):
		s.detail.see(1, at)
	}
	if v == tail.Record && bytes.Contains(text, idMark) {
		s.ids.see(1, at)
		if bytes.Contains(text, noIDMark) {
			s.noID.see(1, at)
		}
	}
	if i := bytes.LastIndex(text, repeated); i >= 0 {
		if n, _, ok := bytes.Cut(text[i+len(repeated):], []byte("x across cluster]")); ok {
			if n, err := strconv.ParseInt(string(n), 10, 64); err == nil && n > 1 {
				s.collapsed.see(n-1, at) // minus the present line
			}
		}
	}
}

// sink takes the spans. Metrics are consumed to have lines of values count as records.
func (w *watch) sink() offline.Sink {
	traces, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error { w.traces(td); return nil })
	metrics, _ := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
	return offline.Sink{Traces: traces, Metrics: metrics, GPUs: func(*spans.GPUValues) {}, NoParts: true, NoJoins: true}
}

func (w *watch) traces(td ptrace.Traces) {
	w.jobs.Batch(td)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, rs := range td.ResourceSpans().All() {
		res := rs.Resource().Attributes()
		run := w.run(spans.AttrText(res, spans.AttrRunID))
		made := spans.AttrText(res, spans.AttrTimeSource) == string(spans.TimeSynthetic)
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if view.IsDetail(span) {
					continue
				}
				switch view.KindOf(span) {
				case view.KindStep:
					run.step(span, res, made)
				case view.KindCollective:
					run.collective(span, made)
				default:
				}
			}
		}
	}
}

func (w *watch) run(id string) *facts {
	f := w.runs[id]
	if f == nil {
		f = new(facts)
		w.runs[id] = f
	}
	return f
}

func (f *facts) step(span ptrace.Span, res pcommon.Map, made bool) {
	utilized, rated := false, false
	file, at := "", int64(0)
	for _, m := range [...]pcommon.Map{res, span.Attributes()} {
		for name, v := range m.All() {
			switch name {
			case spans.AttrLogFile:
				file = v.Str()
			case spans.AttrLogOffset:
				at = v.Int()
			case spans.AttrTimeSource:
				made = v.Str() == string(spans.TimeSynthetic)
			case spans.AttrMFU, spans.AttrMFUReported:
				utilized = true
			case spans.AttrFlopThroughput, spans.AttrDeviceFlopThroughput, spans.AttrFlopThroughputReported, spans.AttrDeviceFlopThroughputReported:
				rated = true
			default: // verl's perf/mfu/actor and the like
				field, ok := strings.CutPrefix(name, spans.AttrTrainFieldPrefix)
				utilized = utilized || ok && strings.Contains(field, "mfu")
			}
		}
	}
	if made {
		f.timeless.see(file, at)
	}
	switch {
	case utilized:
		f.utilized++
	case rated:
		f.rated.see(file, at)
	default:
		f.steps.see(file, at)
	}
}

func (f *facts) collective(span ptrace.Span, made bool) {
	file, at, unconfirmed, apart := "", int64(0), false, 0.0
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrLogFile:
			file = v.Str()
		case spans.AttrLogOffset:
			at = v.Int()
		case spans.AttrNCCLUnconfirmed:
			unconfirmed = true
		case spans.AttrNCCLClockOffset:
			apart = v.Double()
		case spans.AttrTimeSource:
			made = v.Str() == string(spans.TimeSynthetic)
		}
	}
	f.collectives.see(file, at)
	if apart > 0 {
		f.apart = max(f.apart, apart)
		f.apartIn.see(file, at)
	}
	if unconfirmed {
		f.unconfirmed.see(file, at)
	}
	if made {
		f.made.see(file, at)
	}
}

package check

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/component"
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

// watch sees lines and spans while logs are read, and keeps the facts for the rules.
type watch struct {
	mu    sync.Mutex
	files map[string]*signs // by path
	runs  map[string]*facts // by ml.run.id
	jobs  *digest.Jobs      // how runs ended, and which ranks have no log
}

// sight is how often something was seen in a file, and where first.
type sight struct {
	n  int64
	at int64 // offset of the line, By
}

// see counts n more, in the line at an offset; lines come in the order of the file.
func (s *sight) see(n, at int64) {
	if s.n == 0 {
		s.at = at
	}
	s.n += n
}

// signs are the facts in the lines of a file.
type signs struct {
	trace, detail sight // [TQ-TRACE], [TQ-DETAIL]
	total         sight // records without a [TQ-: in logs of TransferQueue, lines with the time of a whole call
	queue         sight // lines without a [TQ- that name TransferQueue
	idField       sight // [TQ- records with a trace_id
	noID          sight // those of idField with trace_id=N/A
	collapsed     sight // lines that Ray dropped as repeated
	tcp           sight // sessions of ZeroMQ over TCP
	summary, call int64 // offsets of ZeroMQ's last SUMMARY and last call, By; −1: none
	record        int64 // offset of the last record, By
	sessionDone   bool  // perf_monitor says that its session is completed
}

// facts are the facts in the spans of a run.
type facts struct {
	steps       sights  // steps with neither MFU nor FLOP/s
	rated       sights  // steps with FLOP/s and no MFU
	utilized    int64   // steps with MFU
	timeless    sights  // steps with synthetic times
	collectives sights  // all
	unconfirmed sights  // collectives without a number that ranks share
	made        sights  // collectives with synthetic times
	apart       float64 // s, largest difference of the hosts' clocks
	apartIn     sights  // collectives with a difference of clocks
}

// sights are sights by file.
type sights map[string]*sight

// see counts a record in a file, at an offset.
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

// count is the number in all files.
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
		(*s)[file].n += of.n - 1 // see has counted one
	}
}

func newWatch() *watch {
	return &watch{files: make(map[string]*signs), runs: make(map[string]*facts), jobs: digest.Ending()}
}

// file is offline.Options.Watch: begins the signs of a file, and returns what sees the file's lines.
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
	across     = []byte("x across cluster]")
	transport  = []byte("Transport: TCP")
	completed  = []byte("Performance Monitor Session Completed")
)

// line is an offline.LineWatch: notes what a line of the file at an offset shows, by its text and by the outcome of the receiver that reads the file. A line
// with [TQ- is of verl's TransferQueue; the rest are looked at for all other signs.
func (s *signs) line(text []byte, at int64, v tail.Verdict, reason string) {
	switch {
	case v == tail.Record:
		s.record = at
		// A row of a ZeroMQ call begins with its number, a line of the summary with a name.
		if t := bytes.TrimLeft(text, " \t"); len(t) > 0 && '0' <= t[0] && t[0] <= '9' {
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
			s.total.see(1, at)
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
		s.idField.see(1, at)
		if bytes.Contains(text, noIDMark) {
			s.noID.see(1, at)
		}
	}
	// Ray's suffix: "… [repeated 3x across cluster]".
	if before, _, ok := bytes.Cut(text, across); ok {
		if i := bytes.LastIndex(before, repeated); i >= 0 {
			if n, err := strconv.ParseInt(string(before[i+len(repeated):]), 10, 64); err == nil && n > 1 {
				s.collapsed.see(n-1, at) // minus the present line
			}
		}
	}
}

// only are the receivers of whose records no rule needs the spans.
var only = []component.Type{component.MustNewType("tq_trace"), component.MustNewType("zmq_rpc")}

// sink takes the spans for the rules. Values are taken and dropped: without a consumer, lines with values alone would not count as records.
func (w *watch) sink() offline.Sink {
	traces, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error { w.traces(td); return nil })
	metrics, _ := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
	return offline.Sink{Traces: traces, Metrics: metrics, GPUs: func(*spans.GPUValues) {}, NoParts: true, NoJoins: true, OnlyEvents: only}
}

// traces notes the facts in spans: ends of runs, steps and collectives. Called by several receivers at once.
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
					run.step(span, res)
				case view.KindCollective:
					run.collective(span, made)
				default:
				}
			}
		}
	}
}

// run is the facts of a run. Called under w.mu.
func (w *watch) run(id string) *facts {
	f := w.runs[id]
	if f == nil {
		f = new(facts)
		w.runs[id] = f
	}
	return f
}

// step notes whether a training step has an MFU, else FLOP/s, and whether its times are synthetic. Attributes of the span override those of the resource.
func (f *facts) step(span ptrace.Span, res pcommon.Map) {
	utilized, rated, made := false, false, false
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

// collective notes whether a collective could be matched between ranks, how far the clocks of its hosts are apart, and whether its times are synthetic. made is
// whether the resource says synthetic; the span's own source has priority.
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

package view

import (
	"cmp"
	"iter"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Head has the values that a span of any kind may have. The other views embed it.
type Head struct {
	Incomplete bool   // its end or its start was never seen
	Reason     string // why, where it is incomplete: one of the Incomplete… values
	Judged     bool   // a train_perf has seen it
	Verdicts   List   // their names
	Severity   string // of the worst verdict
}

// Read reads a span of any kind.
func (h *Head) Read(span ptrace.Span) {
	*h = Head{}
	for name, v := range span.Attributes().All() {
		h.take(name, v)
	}
}

// take notes an attribute, if it is one that a span of any kind may have.
func (h *Head) take(name string, v pcommon.Value) {
	switch name {
	case spans.AttrIncomplete:
		h.Incomplete = flagOf(v)
	case spans.AttrIncompleteReason:
		h.Reason = spans.ValueText(v)
	case spans.AttrVerdict:
		h.Judged, h.Verdicts = true, listOf(v)
	case spans.AttrVerdictSeverity:
		h.Severity = spans.ValueText(v)
	}
}

// Said tells verdicts apart. "": not said.
type Said struct {
	Name, Severity string
	Cause          string // of several that the name stands for
	Stage          string // of TransferQueue, where the verdict is about one of several
}

// Title is the name, with the cause or the stage where there is one: "nccl_link (slow)".
func (s *Said) Title() string {
	if of := cmp.Or(s.Cause, s.Stage); of != "" {
		return s.Name + " (" + of + ")"
	}
	return s.Name
}

// Verdict is an event about one verdict.
type Verdict struct {
	Said
	Reason           string  // a sentence
	Value, Threshold float64 // in the unit of the value that is judged; NaN: not given
	Time             pcommon.Timestamp
}

// Told are the verdicts of a span: those that events explain, and those that only its list names.
func (h *Head) Told(span ptrace.Span) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		for i := range h.Verdicts.Len() {
			name := h.Verdicts.Text(i)
			explained := name == ""
			for v := range Verdicts(span) {
				if v.Name != name {
					continue
				}
				explained = true
				if v.Severity = cmp.Or(v.Severity, h.Severity); !yield(v) {
					return
				}
			}
			if explained {
				continue
			}
			known, _ := spans.VerdictNamed(name, "")
			if !yield(Verdict{Said: Said{Name: name, Severity: cmp.Or(known.Severity, h.Severity)}, Value: absent, Threshold: absent}) {
				return
			}
		}
	}
}

// Verdicts are the events of a span that explain its verdicts.
func Verdicts(span ptrace.Span) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		for _, e := range span.Events().All() {
			if e.Name() == spans.EventVerdict && !yield(verdictOf(e)) {
				return
			}
		}
	}
}

func verdictOf(e ptrace.SpanEvent) Verdict {
	out := Verdict{Value: absent, Threshold: absent, Time: e.Timestamp()}
	for name, v := range e.Attributes().All() {
		switch name {
		case spans.AttrVerdictName:
			out.Name = spans.ValueText(v)
		case spans.AttrVerdictSeverity:
			out.Severity = spans.ValueText(v)
		case spans.AttrVerdictCause:
			out.Cause = spans.ValueText(v)
		case spans.AttrTQStage:
			out.Stage = spans.ValueText(v)
		case spans.AttrVerdictReason:
			out.Reason = spans.ValueText(v)
		case spans.AttrVerdictValue:
			out.Value = spans.ValueNumber(v)
		case spans.AttrVerdictThreshold:
			out.Threshold = spans.ValueNumber(v)
		}
	}
	if out.Severity == "" { // of another writer
		known, _ := spans.VerdictNamed(out.Name, out.Cause)
		out.Severity = known.Severity
	}
	return out
}

// Job is which run of which job a resource is.
type Job struct{ Service, Run string }

// Read reads the attributes of a resource.
func (j *Job) Read(attrs pcommon.Map) {
	j.Service, j.Run = spans.AttrText(attrs, spans.AttrServiceName), spans.AttrText(attrs, spans.AttrRunID)
}

// Resource is who did the work of spans, and what holds for each of them that says nothing else. Some logs name a host or a device per record: the span's own
// are in its view then.
type Resource struct {
	Job
	Host            string
	PID             Int
	DeviceModel     string
	Rank, WorldSize Int

	joinBy          string           // how its spans came into their traces
	time            spans.TimeSource // of its spans
	format          string           // of the log
	system, network string           // of calls
	transport       string
	sharedMemory    bool
	step            Step // what it says of steps, where it does
	ofSteps         bool
}

// Read reads the attributes of a resource.
func (r *Resource) Read(attrs pcommon.Map) {
	*r = Resource{}
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrServiceName:
			r.Service = spans.ValueText(v)
		case spans.AttrRunID:
			r.Run = spans.ValueText(v)
		case spans.AttrHostName:
			r.Host = spans.ValueText(v)
		case spans.AttrProcessPID:
			r.PID = IntOf(v)
		case spans.AttrDeviceModel:
			r.DeviceModel = spans.ValueText(v)
		case spans.AttrRank:
			r.Rank = IntOf(v)
		case spans.AttrWorldSize:
			r.WorldSize = IntOf(v)
		case spans.AttrJoinBy:
			r.joinBy = spans.ValueText(v)
		case spans.AttrTimeSource:
			r.time = spans.TimeSource(spans.ValueText(v))
		case spans.AttrSource:
			r.format = spans.ValueText(v)
		case spans.AttrRPCSystem:
			r.system = spans.ValueText(v)
		case spans.AttrNetworkTransport:
			r.network = spans.ValueText(v)
		case spans.AttrZMQTransport:
			r.transport = spans.ValueText(v)
		case spans.AttrZMQSharedMemory:
			r.sharedMemory = flagOf(v)
		case spans.AttrStepsCovered, spans.AttrStepDurationKind, spans.AttrBatchSize, spans.AttrSamples, spans.AttrTokens,
			spans.AttrFlopFormula, spans.AttrFlopUnsupported:
			if !r.ofSteps {
				r.step, r.ofSteps = noStep, true
			}
			r.step.note(name, v)
		}
	}
}

// Aggregate stands for many spans of one name.
type Aggregate struct {
	Count         Int
	Sum, P50, Max float64 // s

	// Of spans that step_join has joined.
	JoinBy   string  // one of the JoinBy… values; "": not joined
	CommName string  // of collectives
	Wait     float64 // s, from the first rank's arrival to the last's, summed
}

// Read reads a span of KindAggregate.
func (a *Aggregate) Read(span ptrace.Span) {
	*a = Aggregate{Sum: absent, P50: absent, Max: absent, Wait: absent}
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrAggregateCount:
			a.Count = IntOf(v)
		case spans.AttrAggregateSum:
			a.Sum = spans.ValueNumber(v)
		case spans.AttrAggregateP50:
			a.P50 = spans.ValueNumber(v)
		case spans.AttrAggregateMax:
			a.Max = spans.ValueNumber(v)
		case spans.AttrJoinBy:
			a.JoinBy = spans.ValueText(v)
		case spans.AttrNCCLCommName:
			a.CommName = spans.ValueText(v)
		case spans.AttrAggregateWait:
			a.Wait = spans.ValueNumber(v)
		}
	}
}

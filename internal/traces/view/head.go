package view

import (
	"cmp"
	"iter"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Said distinguishes verdicts. "": absent.
type Said struct {
	Name, Severity string
	Cause          string // of several under the same name
	Stage          string // of TransferQueue, for a verdict about a stage
}

// Title returns the name, with the cause or the stage if any: "nccl_link (slow)".
func (s *Said) Title() string {
	if of := cmp.Or(s.Cause, s.Stage); of != "" {
		return s.Name + " (" + of + ")"
	}
	return s.Name
}

// Told returns the verdicts in a span's list, in order: each with the events that explain the verdict, one after another, else with its name alone and the
// severity that the registry gives to the name. Without a severity of its own a verdict has the span's.
func (h *Head) Told(span ptrace.Span) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		for i := range h.Verdicts.Len() {
			name := h.Verdicts.Text(i)
			explained := name == "" // no text: left out
			for v := range Verdicts(span) {
				if v.Name != name {
					continue
				}
				explained = true
				v.Severity = cmp.Or(v.Severity, h.Severity)
				if !yield(v) {
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

// Verdicts returns the events of a span that explain its verdicts.
func Verdicts(span ptrace.Span) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		for _, e := range span.Events().All() {
			if e.Name() == spans.EventVerdict && !yield(verdictOf(e)) {
				return
			}
		}
	}
}

// verdictOf reads the event of a verdict.
func verdictOf(e ptrace.SpanEvent) Verdict {
	out := noVerdict
	out.Time = e.Timestamp()
	out.take(e.Attributes())
	if out.Severity == "" { // of another writer
		known, _ := spans.VerdictNamed(out.Name, out.Cause)
		out.Severity = known.Severity
	}
	return out
}

// Job identifies the run and the job of a resource.
type Job struct{ Service, Run string }

// Read reads the attributes of a resource.
func (j *Job) Read(attrs pcommon.Map) {
	j.Service, j.Run = spans.AttrText(attrs, spans.AttrServiceName), spans.AttrText(attrs, spans.AttrRunID)
}

// Read reads the attributes of a resource.
func (r *Resource) Read(attrs pcommon.Map) {
	*r = noResource
	r.read = true
	r.take(attrs)
}

package verdictlogsconnector

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/connectors/verdictlogsconnector/internal/metadata"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// kept are the span's attributes in a record: place, object and accused. Attributes of the whole process (service, run, mostly host and rank) are on the
// resource, which is copied too.
var kept = map[string]bool{
	spans.AttrKind: true, spans.AttrSource: true, spans.AttrHostName: true, spans.AttrProcessPID: true, spans.AttrRank: true,
	spans.AttrIteration: true, spans.AttrStepWindow: true, spans.AttrStepPart: true, spans.AttrStage: true, spans.AttrRankSlowest: true,
	spans.AttrTQFunction: true, spans.AttrTQStage: true, spans.AttrTQTraceID: true,
	spans.AttrRPCSystem: true, spans.AttrRPCMethod: true,
	spans.AttrNCCLOperation: true, spans.AttrNCCLCommName: true, spans.AttrNCCLCommID: true, spans.AttrNCCLSequence: true,
	spans.AttrNCCLLateRank: true, spans.AttrNCCLLateHost: true, spans.AttrNCCLStragglerRank: true, spans.AttrNCCLStragglerHost: true,
}

// levels maps severities of verdicts to severities of logs.
var levels = map[string]struct {
	number plog.SeverityNumber
	text   string
}{
	spans.SeverityBad:     {plog.SeverityNumberError, "ERROR"},
	spans.SeverityWarning: {plog.SeverityNumberWarn, "WARN"},
}

// recorder makes the records of one batch. A resource without records is left out.
type recorder struct {
	logs     plog.Logs
	now      pcommon.Timestamp
	resource int // the resource at hand; −1: none yet
	records  plog.LogRecordSlice

	recordOnly bool // the spans of the resource at hand are not drawn
}

// newRecorder begins the records of a batch, observed now.
func newRecorder(now time.Time) *recorder {
	return &recorder{logs: plog.NewLogs(), now: pcommon.NewTimestampFromTime(now), resource: -1}
}

// add makes the record of a verdict or an event, on a copy of the span's resource. Verdicts arrive grouped by resource, so the copy is made when the resource
// changes. The body is the verdict's sentence, attributes say on what; the severity is the verdict's, else the span's worst.
func (r *recorder) add(td ptrace.Traces, f *found) {
	if f.resource != r.resource {
		from, to := td.ResourceSpans().At(f.resource), r.logs.ResourceLogs().AppendEmpty()
		from.Resource().CopyTo(to.Resource())
		r.recordOnly = to.Resource().Attributes().Remove(spans.AttrRecordOnly)
		to.SetSchemaUrl(from.SchemaUrl())
		scope := to.ScopeLogs().AppendEmpty()
		scope.Scope().SetName(metadata.ScopeName)
		r.resource, r.records = f.resource, scope.LogRecords()
	}
	if f.event {
		r.addEvent(f.span)
		return
	}
	v, record := &f.verdict, r.records.AppendEmpty()
	record.SetEventName(spans.EventVerdict)
	record.SetTimestamp(v.Time)
	if v.Time == 0 { // of another writer
		record.SetTimestamp(f.span.EndTimestamp())
	}
	record.SetObservedTimestamp(r.now)
	if !r.recordOnly { // else no backend has the trace
		record.SetTraceID(f.span.TraceID())
		record.SetSpanID(f.span.SpanID())
	}
	record.Body().SetStr(v.Reason)

	attrs := record.Attributes()
	attrs.EnsureCapacity(16)
	known, _ := spans.VerdictNamed(v.Name, v.Cause)
	attrs.PutStr(spans.AttrVerdictName, v.Name)
	if v.Cause != "" {
		attrs.PutStr(spans.AttrVerdictCause, v.Cause)
	}
	spans.PutFinite(attrs, spans.AttrVerdictValue, v.Value)
	spans.PutFinite(attrs, spans.AttrVerdictThreshold, v.Threshold)
	if known.Unit != "" {
		attrs.PutStr(spans.AttrVerdictUnit, known.Unit)
	}
	worst := ""
	for name, value := range f.span.Attributes().All() {
		switch {
		case kept[name]:
			value.CopyTo(attrs.PutEmpty(name))
		case name == spans.AttrVerdictSeverity:
			worst = spans.ValueText(value)
		}
	}
	if v.Stage != "" {
		attrs.PutStr(spans.AttrTQStage, v.Stage)
	}
	severity := cmp.Or(v.Severity, worst)
	if level, ok := levels[severity]; ok {
		attrs.PutStr(spans.AttrVerdictSeverity, severity)
		record.SetSeverityNumber(level.number)
		record.SetSeverityText(level.text)
	}
}

// addEvent makes the record of an event of a run, an error: find takes errors only.
func (r *recorder) addEvent(span ptrace.Span) {
	record := r.records.AppendEmpty()
	record.SetEventName(spans.SpanEvent)
	record.SetTimestamp(span.StartTimestamp())
	record.SetObservedTimestamp(r.now)
	record.SetTraceID(span.TraceID())
	record.SetSpanID(span.SpanID())
	record.Body().SetStr(span.Status().Message())
	level := levels[spans.SeverityBad]
	record.SetSeverityNumber(level.number)
	record.SetSeverityText(level.text)
	span.Attributes().CopyTo(record.Attributes())
	record.Attributes().Remove(spans.AttrEventText) // the body
}

// found is a verdict about a span, or an event.
type found struct {
	resource int // index in the batch
	span     ptrace.Span
	verdict  view.Verdict
	id       uint64 // of the verdict about this span; 0: the span has no id
	event    bool   // the span is an event of a run, see find
}

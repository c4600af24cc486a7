// Package verdict writes verdicts to spans: a name, a severity, the value with its threshold, and a sentence for people.
package verdict

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Severity orders verdicts.
type Severity uint8

// The severities, whose texts are the values of spans.AttrVerdictSeverity.
const (
	Warning Severity = iota
	Bad
)

var severityText = [...]string{Warning: spans.SeverityWarning, Bad: spans.SeverityBad}

// Verdict is a verdict that a domain may give about a T.
type Verdict[T any] struct {
	kind     kind
	episode  string // see Episode
	sentence sentence[T]
}

// kind is the part of a verdict that does not depend on the T.
type kind struct {
	name, tag    string // the attribute set only by verdicts of this name
	cause, stage string // values of spans.AttrVerdictCause and spans.AttrTQStage; "": none
	severity     Severity
}

// kindOf is a verdict of the registry, by name and cause, with the usual severity. It panics on an unknown name.
func kindOf(name, cause string) kind {
	known, _ := spans.VerdictNamed(name, cause)
	severity := slices.Index(severityText[:], known.Severity)
	if severity < 0 {
		panic("verdict: the registry has no severity of " + name)
	}
	return kind{name: name, tag: spans.AttrVerdictPrefix + name, cause: cause, severity: Severity(severity)}
}

// New makes a verdict; see sentence for the template. The severity is the registry's. New panics on a name missing in the registry, and on a place missing in
// Places.
func New[T any](name, text string, places *Places[T]) *Verdict[T] {
	return NewCause(name, "", text, places)
}

// NewCause makes the verdict of one cause where a name has several.
func NewCause[T any](name, cause, text string, places *Places[T]) *Verdict[T] {
	v := &Verdict[T]{kind: kindOf(name, cause), sentence: compile(text, places)}
	return v.As(v.kind.severity)
}

// As gives the verdict another severity, and returns the verdict.
func (v *Verdict[T]) As(severity Severity) *Verdict[T] {
	v.kind.severity, v.episode = severity, v.kind.name+v.kind.cause+severityText[severity]
	return v
}

// In makes the verdict one about a stage, and returns the verdict.
func (v *Verdict[T]) In(stage spans.TQStage) *Verdict[T] {
	v.kind.stage = stage.String()
	return v
}

// Episode is the key of the verdict's episodes: name, cause and severity.
func (v *Verdict[T]) Episode() string { return v.episode }

// Say gives the verdict about of. The value and the threshold are in the unit of the judged attribute; NaN: none.
func (v *Verdict[T]) Say(sheet *Sheet, of *T, value, threshold float64) {
	said := given{value: value, threshold: threshold}
	sheet.text, _ = v.sentence.write(sheet.text[:0], of, said)
	sheet.said = append(sheet.said, judgement{kind: &v.kind, reason: string(sheet.text), given: said})
}

// Tell gives a verdict of the registry with a sentence of the caller's.
func (s *Sheet) Tell(name, sentence string, value, threshold float64) {
	k := kindOf(name, "")
	s.said = append(s.said, judgement{kind: &k, reason: sentence, given: given{value: value, threshold: threshold}})
}

// Text is a sentence of its own, beside a verdict or as a part of another sentence.
type Text[T any] struct{ sentence sentence[T] }

// NewText compiles a template as New does.
func NewText[T any](text string, places *Places[T]) *Text[T] { return &Text[T]{compile(text, places)} }

// Append writes the sentence.
func (t *Text[T]) Append(b []byte, of *T) []byte {
	b, _ = t.sentence.write(b, of, given{})
	return b
}

// Sheet collects the verdicts about one span before they are written. The memory is reused.
type Sheet struct {
	Status  bool    // a bad verdict sets the status of its span
	Memory  *Memory // verdicts of spans that are judged again; nil: none
	settled bool    // see Settle
	said    []judgement
	text    []byte // of the sentence at hand
}

// judgement is a verdict about a span.
type judgement struct {
	kind   *kind
	reason string // the sentence
	given
}

// Begin starts the sheet of the next span.
func (s *Sheet) Begin() { s.said, s.settled = s.said[:0], false }

// Settle closes the sheet: a span judged before gets its first verdicts again. Put calls Settle.
func (s *Sheet) Settle(span ptrace.Span) {
	if s.Memory != nil && !s.settled {
		s.Memory.settle(s, span)
	}
	s.settled = true
}

// Empty says whether the sheet has no verdict.
func (s *Sheet) Empty() bool { return len(s.said) == 0 }

// Attributes is how many attributes Put will add at most: their number is known before the map has to grow.
func (s *Sheet) Attributes() int {
	if len(s.said) == 0 {
		return 0
	}
	return len(s.said) + 2
}

// Reset empties the sheet, and drops the sentences that its memory still refers to.
func (s *Sheet) Reset() {
	clear(s.said[:cap(s.said)])
	s.said = s.said[:0]
}

// Put writes the verdicts to their span: the names as a list and as a tag each, since Jaeger searches only tags; the worst severity; and an event at the span's
// end per verdict. With Status, the sentence of the first bad verdict becomes the span's status, unless the span's status is an error already.
func (s *Sheet) Put(span ptrace.Span) {
	s.Settle(span)
	if len(s.said) == 0 {
		return
	}
	attrs := span.Attributes()
	attrs.EnsureCapacity(attrs.Len() + s.Attributes())
	names := attrs.PutEmptySlice(spans.AttrVerdict)
	names.EnsureCapacity(len(s.said))
	worst := Warning
	for i := range s.said {
		v := &s.said[i]
		worst = max(worst, v.kind.severity)
		if !slices.ContainsFunc(s.said[:i], func(before judgement) bool { return before.kind.name == v.kind.name }) {
			names.AppendEmpty().SetStr(v.kind.name)
			attrs.PutBool(v.kind.tag, true)
		}
		if status := span.Status(); v.kind.severity == Bad && s.Status && status.Code() != ptrace.StatusCodeError {
			status.SetCode(ptrace.StatusCodeError)
			status.SetMessage(v.reason)
		}
		v.putEvent(span)
	}
	attrs.PutStr(spans.AttrVerdictSeverity, severityText[worst])
}

// putEvent adds the event of one verdict to a span, with what a program needs: name, severity, cause, stage, sentence, value and threshold.
func (v *judgement) putEvent(span ptrace.Span) {
	e := span.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.SetTimestamp(span.EndTimestamp())
	attrs := e.Attributes()
	attrs.EnsureCapacity(6)
	attrs.PutStr(spans.AttrVerdictName, v.kind.name)
	attrs.PutStr(spans.AttrVerdictSeverity, severityText[v.kind.severity])
	if v.kind.cause != "" {
		attrs.PutStr(spans.AttrVerdictCause, v.kind.cause)
	}
	if v.kind.stage != "" {
		attrs.PutStr(spans.AttrTQStage, v.kind.stage)
	}
	attrs.PutStr(spans.AttrVerdictReason, v.reason)
	spans.PutFinite(attrs, spans.AttrVerdictValue, v.value)
	spans.PutFinite(attrs, spans.AttrVerdictThreshold, v.threshold)
}

// Package verdict says what processors have found out about spans, and writes it to them: a name, a severity, the value with the threshold that it is
// held against, and a sentence for people.
package verdict

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Severity orders verdicts from good to bad.
type Severity uint8

// The severities, whose texts are the values of spans.AttrVerdictSeverity.
const (
	Good Severity = iota
	Warning
	Bad
)

var severityText = [...]string{Good: spans.SeverityGood, Warning: spans.SeverityWarning, Bad: spans.SeverityBad}

// Verdict is a verdict that a domain may give about a T.
type Verdict[T any] struct {
	kind     kind
	sentence sentence[T]
}

// kind is the part of a verdict that does not depend on the T.
type kind struct {
	name, tag string // tag is the attribute that only this verdict sets
	severity  Severity
}

// New makes a verdict with its sentence; see sentence for how one is written. The registry has its severity. New panics on a name that is not in the
// registry, and on a sentence with a place that is not in Places. Good verdicts have no sentence: the value that is good stands beside them.
func New[T any](name, text string, places *Places[T]) *Verdict[T] {
	known, ok := spans.VerdictNamed(name)
	severity := slices.Index(severityText[:], known.Severity)
	if !ok || severity < 0 {
		panic("verdict: the registry has no severity of " + name)
	}
	return &Verdict[T]{kind: kind{name: name, tag: spans.AttrVerdictPrefix + name, severity: Severity(severity)}, sentence: compile(text, places)}
}

// As is the verdict with another severity than the usual one.
func (v *Verdict[T]) As(severity Severity) *Verdict[T] {
	v.kind.severity = severity
	return v
}

// Name is the name that spans have for the verdict.
func (v *Verdict[T]) Name() string { return v.kind.name }

// Say gives the verdict about of, which fills its sentence. The value and the threshold are in the unit of the attribute that is judged; NaN: there is none.
func (v *Verdict[T]) Say(sheet *Sheet, of *T, value, threshold float64) {
	said := given{value: value, threshold: threshold}
	reason := ""
	if len(v.sentence) > 0 {
		sheet.text, _ = v.sentence.write(sheet.text[:0], of, said)
		reason = string(sheet.text)
	}
	sheet.said = append(sheet.said, judgement{kind: &v.kind, reason: reason, given: said})
}

// Tell gives a verdict of the registry with a sentence of the caller's.
func (s *Sheet) Tell(name, sentence string, value, threshold float64) {
	known, _ := spans.VerdictNamed(name)
	k := &kind{name: name, tag: spans.AttrVerdictPrefix + name, severity: Severity(max(slices.Index(severityText[:], known.Severity), 0))}
	s.said = append(s.said, judgement{kind: k, reason: sentence, given: given{value: value, threshold: threshold}})
}

// Text appends a sentence that stands beside a verdict, or is part of another one's.
type Text[T any] struct{ sentence sentence[T] }

// NewText compiles a template as New does.
func NewText[T any](text string, places *Places[T]) *Text[T] { return &Text[T]{compile(text, places)} }

// Append writes the sentence.
func (t *Text[T]) Append(b []byte, of *T) []byte {
	b, _ = t.sentence.write(b, of, given{})
	return b
}

// Sheet holds the verdicts about one span until they are written to it. Its memory is used again.
type Sheet struct {
	Status  bool    // a bad verdict sets the status of its span
	Memory  *Memory // of what was said of spans that come again; nil: none
	settled bool
	said    []judgement
	text    []byte
}

type judgement struct {
	kind   *kind
	reason string
	given
}

// Begin starts the sheet of the next span.
func (s *Sheet) Begin() { s.said, s.settled = s.said[:0], false }

// Settle ends what is said of a span: where it comes again, that is what was said of it before. Put does so, too.
func (s *Sheet) Settle(span ptrace.Span) {
	if s.Memory != nil && !s.settled {
		s.Memory.settle(s, span)
	}
	s.settled = true
}

// Empty says whether there is no verdict.
func (s *Sheet) Empty() bool { return len(s.said) == 0 }

// Attributes is how many attributes Put will add: their number is known before the map has to grow.
func (s *Sheet) Attributes() int {
	if len(s.said) == 0 {
		return 0
	}
	return len(s.said) + 2
}

// Reset lets go of the sentences.
func (s *Sheet) Reset() {
	clear(s.said[:cap(s.said)])
	s.said = s.said[:0]
}

// Put writes the verdicts to the span they are about: the names as a list and each as a tag of its own, which is all that Jaeger can search, the worst
// severity, and for each that is not good an event at the span's end that explains it. Good verdicts have no event, to keep healthy traces small. The
// sentence of the first bad one is the span's status, where it has none that says more.
func (s *Sheet) Put(span ptrace.Span) {
	s.Settle(span)
	if len(s.said) == 0 {
		return
	}
	attrs := span.Attributes()
	attrs.EnsureCapacity(attrs.Len() + s.Attributes())
	names := attrs.PutEmptySlice(spans.AttrVerdict)
	names.EnsureCapacity(len(s.said))
	worst := Good
	for i := range s.said {
		worst = max(worst, s.said[i].kind.severity)
	}
	for i := range s.said {
		v := &s.said[i]
		if v.kind.severity == Good && worst > Good { // a good verdict is left out beside one that is not
			continue
		}
		names.AppendEmpty().SetStr(v.kind.name)
		attrs.PutBool(v.kind.tag, true)
		if v.kind.severity == Good {
			continue
		}
		if status := span.Status(); v.kind.severity == Bad && s.Status && status.Code() != ptrace.StatusCodeError {
			status.SetCode(ptrace.StatusCodeError)
			status.SetMessage(v.reason)
		}
		v.putEvent(span)
	}
	attrs.PutStr(spans.AttrVerdictSeverity, severityText[worst])
}

func (v *judgement) putEvent(span ptrace.Span) {
	e := span.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.SetTimestamp(span.EndTimestamp())
	attrs := e.Attributes()
	attrs.EnsureCapacity(4)
	attrs.PutStr(spans.AttrVerdictName, v.kind.name)
	attrs.PutStr(spans.AttrVerdictReason, v.reason)
	spans.PutFinite(attrs, spans.AttrVerdictValue, v.value)
	spans.PutFinite(attrs, spans.AttrVerdictThreshold, v.threshold)
}

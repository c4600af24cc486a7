package trainperfprocessor

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// severity orders verdicts from good to bad.
type severity uint8

const (
	good severity = iota
	warning
	bad
)

var severityText = [...]string{good: spans.SeverityGood, warning: spans.SeverityWarning, bad: spans.SeverityBad}

// verdict is one judgement about one span. Good ones have no reason: the value that is good stands beside them.
type verdict struct {
	name             string
	severity         severity
	reason           string
	value, threshold float64
}

// put writes the verdicts of the scratch to the span they are about: the names as a list and each as a tag of its own, which is all that Jaeger can search, the worst
// severity, and for each that is not good an event at the span's end that explains it. Good verdicts have no event, to keep healthy traces small. The
// sentence of the first bad one is the span's status, where it has none that says more.
func (s *scratch) put(span ptrace.Span) {
	vs := s.verdicts
	if len(vs) == 0 {
		return
	}
	attrs := span.Attributes()
	names := attrs.PutEmptySlice(spans.AttrVerdict)
	names.EnsureCapacity(len(vs))
	worst := good
	for i := range vs {
		worst = max(worst, vs[i].severity)
	}
	for i := range vs {
		v := &vs[i]
		if v.severity == good && worst > good { // what is good is no answer to what is not
			continue
		}
		names.AppendEmpty().SetStr(v.name)
		attrs.PutBool(spans.AttrVerdictPrefix+v.name, true)
		if v.severity == good {
			continue
		}
		if status := span.Status(); v.severity == bad && s.status && status.Code() != ptrace.StatusCodeError {
			status.SetCode(ptrace.StatusCodeError)
			status.SetMessage(v.reason)
		}
		e := span.Events().AppendEmpty()
		e.SetName(spans.EventVerdict)
		e.SetTimestamp(span.EndTimestamp())
		ea := e.Attributes()
		ea.EnsureCapacity(4)
		ea.PutStr(spans.AttrVerdictName, v.name)
		ea.PutStr(spans.AttrVerdictReason, v.reason)
		spans.PutFinite(ea, spans.AttrVerdictValue, v.value)
		spans.PutFinite(ea, spans.AttrVerdictThreshold, v.threshold)
	}
	attrs.PutStr(spans.AttrVerdictSeverity, severityText[worst])
}

// appendPercent writes a share as a percentage with one decimal, without a trailing ".0": thresholds are mostly round.
func appendPercent(b []byte, share float64) []byte {
	return append(appendDecimal(b, 100*share, 1), '%')
}

// appendDecimal writes x with at most the given decimals.
func appendDecimal(b []byte, x float64, decimals int) []byte {
	b = strconv.AppendFloat(b, x, 'f', decimals, 64)
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	if b[len(b)-1] == '.' {
		b = b[:len(b)-1]
	}
	return b
}

// appendShort writes x with at most six digits.
func appendShort(b []byte, x float64) []byte { return strconv.AppendFloat(b, x, 'g', 6, 64) }

// say adds a verdict with its reason.
func (s *scratch) say(v verdict, reason func([]byte) []byte) {
	s.text = reason(s.text[:0])
	v.reason = string(s.text)
	s.verdicts = append(s.verdicts, v)
}

// tell adds a verdict with its reason where it is to be said.
func (s *scratch) tell(said told, v verdict, reason func([]byte) []byte) {
	if said.say {
		s.say(v, reason)
	}
}

// sayOnce adds a verdict about a step that may hold for step after step: not on each, but as its episode has it.
func (s *scratch) sayOnce(v verdict, reason func([]byte) []byte) {
	said := s.recentBy.episodes.holds(v.name)
	s.tell(said, v, func(b []byte) []byte { return said.appendShare(reason(b), "records") })
}

// sayMostly adds a verdict about what a step did itself: on each such step, until it is true of nearly all.
func (s *scratch) sayMostly(v verdict, reason func([]byte) []byte) {
	said := s.recentBy.episodes.mostly(v.name)
	s.tell(said, v, func(b []byte) []byte { return said.appendShare(reason(b), "records") })
}

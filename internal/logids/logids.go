// Package logids knows the ids by which a record of a log says which trace it belongs to. spans.Carried decides by them.
package logids

// Field is an id that a record may carry.
type Field uint8

// The ids.
const (
	None        Field = iota
	Trace             // the trace: a UUID, 32 hex digits, a W3C traceparent, or any other text
	TraceParent       // W3C Trace Context: the trace and the parent
	Parent            // the parent span: 16 hex digits
	Span              // the span in which the record was written, likewise: the parent, where no other is named
	fields
)

// DefaultTrace is the name of the field that has the trace, where nothing else is configured.
const DefaultTrace = "trace_id"

// Named is the id that a field of a name holds. The name is in small letters; parts are joined by underscores or not at all, as OTLP's JSON has them.
func Named(name string) Field {
	switch name {
	case DefaultTrace, "traceid":
		return Trace
	case "traceparent":
		return TraceParent
	case "parent_id", "parent_span_id", "parentspanid":
		return Parent
	case "span_id", "spanid":
		return Span
	}
	return None
}

// Names are the names that Named knows.
var Names = [...]string{DefaultTrace, "traceid", "traceparent", "parent_id", "parent_span_id", "parentspanid", "span_id", "spanid"}

// IDs are the ids that a record carries, as logged: parts of its line. The zero value has none.
type IDs [fields][]byte

// Set takes an id. Setting None does nothing.
func (ids *IDs) Set(f Field, text []byte) {
	if f != None {
		ids[f] = text
	}
}

// Any says whether the record may name a trace.
func (ids *IDs) Any() bool { return ids[Trace] != nil || ids[TraceParent] != nil }

// Own moves the ids into other memory: what copy returns.
func (ids *IDs) Own(copied func([]byte) []byte) {
	for f, text := range ids {
		if text != nil {
			ids[f] = copied(text)
		}
	}
}

// IsUUID says whether an id text is a UUID as it is mostly written, with dashes and in small letters, so that the trace id says it all.
func IsUUID(text []byte) bool {
	if len(text) != 36 {
		return false
	}
	zeros := true
	for i, c := range text {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
			continue
		case c-'0' > 9 && c-'a' > 5:
			return false
		}
		zeros = zeros && c == '0'
	}
	return !zeros
}

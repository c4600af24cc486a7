// Package logids knows the ids that assign a log record to a trace. spans.Carried decides by them.
package logids

// Field is a kind of id in a record.
type Field uint8

// The ids.
const (
	None        Field = iota
	Trace             // the trace: a UUID, 32 hex digits, a W3C traceparent, or any other text
	TraceParent       // W3C Trace Context: the trace and the parent
	Parent            // the parent span: 16 hex digits
	Span              // the span in which the record was written, in the same forms: the parent, if no other is named
	fields
)

// DefaultTrace is the default name of the field with the trace.
const DefaultTrace = "trace_id"

// Named is the kind of id in a field, by its name. The name is in small letters; parts are joined by underscores or not at all, as in OTLP's JSON.
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

// Names are the names known to Named.
var Names = [...]string{DefaultTrace, "traceid", "traceparent", "parent_id", "parent_span_id", "parentspanid", "span_id", "spanid"}

// IDs are the ids of a record, as logged: parts of its line. The zero value has none.
type IDs [fields][]byte

// Set takes an id. Setting None does nothing.
func (ids *IDs) Set(f Field, text []byte) {
	if f != None {
		ids[f] = text
	}
}

// Any says whether the record may name a trace.
func (ids *IDs) Any() bool { return ids[Trace] != nil || ids[TraceParent] != nil }

// Own moves the ids into other memory, the results of copied.
func (ids *IDs) Own(copied func([]byte) []byte) {
	for f, text := range ids {
		if text != nil {
			ids[f] = copied(text)
		}
	}
}

// IsUUID says whether an id text is a UUID in the usual form, with dashes and in small letters: then the trace id has all of the text. A UUID of zeros is no
// trace id.
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
		case c-'0' > 9 && c-'a' > 5: // neither 0 to 9 nor a to f: bytes below wrap to large numbers
			return false
		}
		zeros = zeros && c == '0'
	}
	return !zeros
}

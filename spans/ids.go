package spans

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/logids"
)

// maxIDText is the number of significant bytes of an id text.
const maxIDText = 256

// TraceID returns the trace id of an id text found in a log. A UUID (with dashes, or 32 hex digits) is used as its 16 bytes, likewise the trace of a W3C
// traceparent; of any other text the first 256 bytes are hashed together with the run id, so two runs never share a trace. The same arguments always give the
// same id, never all zero.
func TraceID(runID string, text []byte) pcommon.TraceID {
	if id, ok := parseUUID(text); ok {
		return id
	}
	if id, _, ok := parseTraceParent(text); ok {
		return id
	}
	return KeyTraceID(runID, "id", text[:min(len(text), maxIDText)])
}

// Carried returns the trace named by the ids of a record, and the parent, empty if not named. ok is false if no trace is named. A trace id comes before the
// trace of a traceparent; the parent is the one named as such, else the record's span, else the traceparent's, if of the same trace.
func Carried(runID string, ids *logids.IDs) (trace pcommon.TraceID, parent pcommon.SpanID, ok bool) {
	if !ids.Any() {
		return trace, parent, false
	}
	above, aboveParent, hasAbove := parseTraceParent(ids[logids.TraceParent]) // the trace and span of the caller
	switch text := ids[logids.Trace]; {
	case !NoTraceID(string(text)):
		trace = TraceID(runID, text)
		if of, span, ok := parseTraceParent(text); ok { // some writers log a traceparent as the trace id
			above, aboveParent = of, span
		}
	case hasAbove:
		trace = above
	default:
		return trace, parent, false
	}
	for _, f := range [...]logids.Field{logids.Parent, logids.Span} {
		if id, ok := parseSpanID(ids[f]); ok {
			return trace, id, true
		}
	}
	if above == trace {
		parent = aboveParent
	}
	return trace, parent, true
}

// IsUUID reports whether an id text is the UUID of a trace id as mostly written, with dashes, in lower case: then the text need not be kept beside the trace
// id.
func IsUUID(text string, id pcommon.TraceID) bool {
	if len(text) != 36 {
		return false
	}
	var hexes [32]byte
	hex.Encode(hexes[:], id[:])
	at := 0
	for i := range len(text) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if text[i] != '-' {
				return false
			}
			continue
		}
		if text[i] != hexes[at] {
			return false
		}
		at++
	}
	return true
}

// NoTraceID reports whether an id text stands for no id: an empty text, a text that Python, verl or JSON have for none, or only zeros, with dashes or without,
// which OpenTelemetry's loggers print outside a span.
func NoTraceID(text string) bool {
	switch text {
	case "", "N/A", "None", "none", "null":
		return true
	}
	return len(text) <= maxNone && strings.Trim(text, "0-") == ""
}

// maxNone is the length of the longest text of zeros that is no id: a traceparent.
const maxNone = 55

// KeyTraceID returns the trace id of a record without an id of its own: a 128-bit hash (XXH3) of the run id, the source (such as "tq") and a natural key of raw
// log values (such as pid, function and start).
func KeyTraceID(runID, source string, key ...[]byte) pcommon.TraceID {
	var buf [192]byte
	b := appendPart(buf[:0], runID)
	b = appendPart(b, source)
	for _, k := range key {
		b = appendPart(b, k)
	}
	return traceID(b)
}

// traceID hashes a key to a trace id that is not zero.
func traceID(key []byte) pcommon.TraceID {
	h := xxh3.Hash128(key)
	if h.Hi == 0 && h.Lo == 0 {
		h.Lo = 1
	}
	return pcommon.TraceID(h.Bytes())
}

// StepTraceID returns the trace of one training iteration of a run. It depends on nothing else: all logs and ranks of a run, and services that know the
// iteration, share the trace. A job that returns to a checkpoint under the same run id adds the repeated iterations to their traces.
func StepTraceID(runID string, iteration int64) pcommon.TraceID {
	var buf [20]byte
	return KeyTraceID(runID, SpanStep, strconv.AppendInt(buf[:0], iteration, 10))
}

// RunIDs returns the ids of a run: its own trace, and the span id to which steps link. No span has that span id: no collector knows the run's beginning for all
// collectors.
func RunIDs(runID string) (pcommon.TraceID, pcommon.SpanID) {
	trace := KeyTraceID(runID, SpanRun)
	return trace, SpanID(trace, SpanRun)
}

// RootID returns the id of the span that step_join adds to a trace with several roots, as their parent.
func RootID(trace pcommon.TraceID) pcommon.SpanID { return SpanID(trace, "root") }

// ClocklessTraceID returns the trace of records without a time that are tied to a trace by an id: step_join writes them there, and a copy within the step to
// the trace of the id.
func ClocklessTraceID(trace pcommon.TraceID) pcommon.TraceID {
	var buf [32]byte
	return traceID(appendPart(append(buf[:0], trace[:]...), "clockless"))
}

// StepIDs makes the trace ids of one run's iterations, as StepTraceID does, without rebuilding the key for each.
type StepIDs struct {
	key []byte
	n   int // how many bytes of key are the same for all

	last  int64
	trace pcommon.TraceID
}

// NewStepIDs returns a StepIDs, not safe for concurrent use.
func NewStepIDs(runID string) *StepIDs {
	key := appendPart(appendPart(nil, runID), SpanStep)
	return &StepIDs{key: key, n: len(key)}
}

// Trace returns the trace id of an iteration.
func (s *StepIDs) Trace(iteration int64) pcommon.TraceID {
	if s.trace.IsEmpty() || iteration != s.last { // the ranks of a job log the same iteration in succession
		var digits [20]byte
		s.key = appendPart(s.key[:s.n], strconv.AppendInt(digits[:0], iteration, 10))
		s.last, s.trace = iteration, traceID(s.key)
	}
	return s.trace
}

// SpanID returns the id of a span: a 64-bit hash (XXH3) of its trace, its role (such as "tq.get") and a natural key of raw log values. It is never all zero.
func SpanID(trace pcommon.TraceID, role string, key ...[]byte) pcommon.SpanID {
	var buf [192]byte
	b := append(buf[:0], trace[:]...)
	b = appendPart(b, role)
	for _, k := range key {
		b = appendPart(b, k)
	}
	h := xxh3.Hash(b)
	if h == 0 {
		h = 1
	}
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], h)
	return id
}

// IDHash returns a hash of a span's ids, never 0, the key under which components store verdicts of the span. Without a span, of its trace.
func IDHash(trace pcommon.TraceID, span pcommon.SpanID) uint64 {
	var key [24]byte
	copy(key[:], trace[:])
	copy(key[16:], span[:])
	return max(xxh3.Hash(key[:]), 1)
}

// ShortKey hashes a long key, such as a whole line, to 16 bytes.
func ShortKey(key []byte) []byte {
	h := shortKey(key) // allocated in the caller's frame, where this function is inlined
	return h[:]
}

// shortKey is ShortKey, but returns an array.
func shortKey(key []byte) [16]byte { return xxh3.Hash128(key).Bytes() }

// Digest is a running hash of parts, such as the lines of a record. The zero value is ready.
type Digest struct{ hi, lo uint64 }

// Add adds a part to the hash. Both halves depend on the order: lo seeds the hash of the next part, hi is multiplied before the sum.
func (d *Digest) Add(part []byte) {
	h := xxh3.Hash128Seed(part, d.lo)
	d.hi, d.lo = d.hi*0x9e3779b97f4a7c15+h.Hi, h.Lo
}

// Key returns the hash of the parts added, 16 bytes.
func (d *Digest) Key() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, d.hi), d.lo)
}

// appendPart prefixes the length, so ("a", "bc") and ("ab", "c") differ.
func appendPart[T string | []byte](b []byte, part T) []byte {
	b = binary.AppendUvarint(b, uint64(len(part)))
	return append(b, part...)
}

// parseUUID reads the two spellings of a UUID in logs: RFC 9562 text and its 32 digits without dashes. The nil UUID is refused: in OpenTelemetry, it means "no
// trace".
func parseUUID(text []byte) (pcommon.TraceID, bool) {
	var digits [32]byte
	switch len(text) {
	case 32:
		copy(digits[:], text)
	case 36:
		if text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
			return pcommon.TraceID{}, false
		}
		n := copy(digits[:], text[:8])
		n += copy(digits[n:], text[9:13])
		n += copy(digits[n:], text[14:18])
		n += copy(digits[n:], text[19:23])
		copy(digits[n:], text[24:])
	default:
		return pcommon.TraceID{}, false
	}
	var id pcommon.TraceID
	if _, err := hex.Decode(id[:], digits[:]); err != nil || id.IsEmpty() {
		return pcommon.TraceID{}, false
	}
	return id, true
}

// parseTraceParent reads "00-<trace: 32 hex digits>-<parent: 16>-<flags: 2>" of W3C Trace Context. Later versions may have more text after; version ff does
// not exist, and an id of zeros is invalid.
func parseTraceParent(text []byte) (trace pcommon.TraceID, parent pcommon.SpanID, ok bool) {
	const whole = 55
	if len(text) < whole || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return trace, parent, false
	}
	var version, flags [1]byte
	if _, err := hex.Decode(version[:], text[:2]); err != nil || version[0] == 0xff {
		return trace, parent, false
	}
	if _, err := hex.Decode(flags[:], text[53:whole]); err != nil {
		return trace, parent, false
	}
	if more := text[whole:]; len(more) > 0 && (version[0] == 0 || more[0] != '-') {
		return trace, parent, false
	}
	trace, ok = parseUUID(text[3:35])
	if ok {
		parent, ok = parseSpanID(text[36:52])
	}
	if !ok {
		return pcommon.TraceID{}, parent, false
	}
	return trace, parent, true
}

// parseSpanID returns the id in a text of 16 hex digits; false for another text, and for zeros only.
func parseSpanID(text []byte) (id pcommon.SpanID, ok bool) {
	if len(text) != 2*len(id) {
		return id, false
	}
	if _, err := hex.Decode(id[:], text); err != nil || id.IsEmpty() {
		return pcommon.SpanID{}, false
	}
	return id, true
}

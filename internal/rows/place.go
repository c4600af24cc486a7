package rows

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Place is where the record of a span stands in a log. Only the first span of a record has attributes that say so; the further spans of its trace follow at
// once. The zero value is of no span yet.
type Place struct {
	File   string // "": not known
	Offset int64
	of     pcommon.TraceID
}

// Next goes on to the next span of a resource. A span without the attributes keeps the place of the span before if both are of one trace, else has none.
func (p *Place) Next(s ptrace.Span) {
	id := s.TraceID()
	if path, ok := s.Attributes().Get(spans.AttrLogFile); ok {
		if at, ok := s.Attributes().Get(spans.AttrLogOffset); ok {
			*p = Place{path.Str(), at.Int(), id}
		}
	}
	if id != p.of {
		*p = Place{}
	}
}

// Key appends a key to dst; keys in the order of their bytes are in the order of run, time, trace and span.
func Key(dst []byte, run string, at pcommon.Timestamp, trace pcommon.TraceID, span pcommon.SpanID) []byte {
	dst = binary.BigEndian.AppendUint64(append(append(dst, run...), 0), uint64(at))
	return append(append(dst, trace[:]...), span[:]...)
}

package format

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Place is where the spans of a resource stand in logs: only the first span of a record in its trace says so. The zero value is of no span yet.
type Place struct {
	File   string // "": not known
	Offset int64
	of     pcommon.TraceID
}

// Next goes on to a span.
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

// Key orders rows by run, time, trace and span.
func Key(dst []byte, run string, at pcommon.Timestamp, trace pcommon.TraceID, span pcommon.SpanID) []byte {
	dst = binary.BigEndian.AppendUint64(append(append(dst, run...), 0), uint64(at))
	return append(append(dst, trace[:]...), span[:]...)
}

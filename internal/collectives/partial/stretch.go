package partial

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/spans"
)

// Stretch is a section of one log's records of one communicator. A log is identified by its run, the host of its reader, and its path.
type Stretch struct {
	// From is the origin of the records, complete for collectives.Input.
	From collectives.From
	// Service is the service.name of the job.
	Service string
	// Host is the host of the collector that read the log.
	Host string
	// Comm is the id of the communicator, as a name: spans.Name of op.Op.Comm.
	Comm string
	// Count is the number of records. 0: a heartbeat, sent while the log has no unsent records; ReadTo is the time for which this holds at least.
	Count int
	// Records are the packed records, for Read.
	Records []byte
	// ReadTo says what came before, Unix ns. Of a heartbeat: all of the log until then was read and sent. Of records: all operations of the log that began
	// before were sent in earlier batches; of the same batch, a span of another communicator may still be on its way.
	ReadTo int64
	// Start and End are the times of the earliest and of the latest record, Unix ns.
	Start, End int64

	key [16]byte // of the first record, for the id of the span
}

// Add adds the span of a stretch, with its records, or of a heartbeat. All stretches of a communicator of a run have one trace id, because an exporter that
// keys messages by trace id keeps them together and in order. The spans are not a trace to look at.
func (s *Stretch) Add(out *spans.Batch) {
	trace := spans.KeyTraceID(s.From.Run, spans.SpanNCCLPartial, []byte(s.Comm))
	key := s.key
	start, end := s.Start, s.End
	if s.Count == 0 {
		start, end = s.ReadTo, s.ReadTo
		binary.BigEndian.PutUint64(key[:], uint64(s.ReadTo))
	}
	span := out.Add(spans.Resource{Service: s.Service, RunID: s.From.Run, Host: s.Host}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, spans.SpanNCCLPartial, []byte(s.Host), []byte(s.From.Path), key[:]), Name: spans.SpanNCCLPartial,
		Kind: ptrace.SpanKindInternal, Start: start, End: end, Attributes: 8,
	})
	m := span.Attributes()
	m.PutStr(spans.AttrLogFile, spans.Text(s.From.Path))
	m.PutStr(spans.AttrNCCLCommID, s.Comm)
	m.PutStr(spans.AttrNCCLPartialFamily, s.From.Family)
	m.PutInt(spans.AttrNCCLPartialCount, int64(s.Count))
	if s.From.OwnClock {
		m.PutBool(spans.AttrNCCLPartialOwnClock, true)
	}
	if s.From.Coarse {
		m.PutBool(spans.AttrNCCLPartialCoarse, true)
	}
	m.PutInt(spans.AttrNCCLPartialReadTo, s.ReadTo)
	if s.Count == 0 {
		return
	}
	m.PutEmptyBytes(spans.AttrNCCLPartialRecords).FromRaw(s.Records)
}

var errNoRecords = errors.New("a span nccl.partial has no records: it was not written by trainbridge, or attributes were taken from it on the way")

// FromSpan reads back the stretch of a span that Add wrote, with the attributes of the resource of the span. ok is false for a span of another name. err:
// attributes are missing or contradict the records, or the records are of another version. Damage within the records is found later, by Read.
func FromSpan(res pcommon.Map, span ptrace.Span) (s Stretch, ok bool, err error) {
	if span.Name() != spans.SpanNCCLPartial {
		return s, false, nil
	}
	m := span.Attributes()
	s = Stretch{
		From: collectives.From{
			Run: spans.AttrText(res, spans.AttrRunID), Path: spans.AttrText(m, spans.AttrLogFile), Family: spans.AttrText(m, spans.AttrNCCLPartialFamily),
			OwnClock: isTrue(m, spans.AttrNCCLPartialOwnClock), Coarse: isTrue(m, spans.AttrNCCLPartialCoarse),
		},
		Service: spans.AttrText(res, spans.AttrServiceName), Host: spans.AttrText(res, spans.AttrHostName), Comm: spans.AttrText(m, spans.AttrNCCLCommID),
		Count: int(integer(m, spans.AttrNCCLPartialCount)), ReadTo: integer(m, spans.AttrNCCLPartialReadTo),
		Start: int64(span.StartTimestamp()), End: int64(span.EndTimestamp()),
	}
	if s.Count == 0 && s.ReadTo > 0 { // a heartbeat
		return s, true, nil
	}
	if _, has := m.Get(spans.AttrNCCLPartialReadTo); !has { // of an agent before version 0.9, which said so only in heartbeats
		s.ReadTo = s.Start
	}
	v, has := m.Get(spans.AttrNCCLPartialRecords)
	if !has || v.Type() != pcommon.ValueTypeBytes || s.Count <= 0 {
		return s, true, errNoRecords
	}
	s.Records = v.Bytes().AsRaw()
	if len(s.Records) > 0 && s.Records[0] != version {
		return s, true, errVersion
	}
	if n := count(s.Records); n != s.Count {
		return s, true, fmt.Errorf("a span nccl.partial says that it has %d records and has %d: it was changed on the way", s.Count, n)
	}
	return s, true, nil
}

// isTrue reports whether an attribute is true; absent is false.
func isTrue(m pcommon.Map, name string) bool {
	v, ok := m.Get(name)
	return ok && v.Type() == pcommon.ValueTypeBool && v.Bool()
}

// integer returns the value of an integer attribute; 0: absent.
func integer(m pcommon.Map, name string) int64 {
	if v, ok := m.Get(name); ok && v.Type() == pcommon.ValueTypeInt {
		return v.Int()
	}
	return 0
}

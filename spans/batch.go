package spans

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Resource says who did the work of a span. Fields left zero are not known and not sent.
type Resource struct {
	Service string // service.name: the job
	RunID   string // ml.run.id
	Host    string // host.name
	PID     int64  // process.pid
	Model   *Model // ml.model.*; resources are the same only when they share the pointer
}

// Put writes the resource's attributes.
func (r Resource) Put(m pcommon.Map) {
	m.EnsureCapacity(4)
	if r.Service != "" {
		m.PutStr(AttrServiceName, Name(r.Service))
	}
	if r.RunID != "" {
		m.PutStr(AttrRunID, r.RunID)
	}
	if r.Host != "" {
		m.PutStr(AttrHostName, r.Host)
	}
	if r.PID != 0 {
		m.PutInt(AttrProcessPID, r.PID)
	}
	if r.Model != nil {
		r.Model.Put(m)
	}
}

// Span is what every span has. Times are nanoseconds since the Unix epoch.
type Span struct {
	Trace      pcommon.TraceID
	ID, Parent pcommon.SpanID // an empty Parent makes a root
	Name       string
	Kind       ptrace.SpanKind
	Start, End int64
	Source     TimeSource
	Attributes int // how many attributes the caller will add: saves growing the map
}

// Timestamp is a time in OTLP, which has none before 1970: such a time, as a clock that was never set gives when a duration is taken from it, is 1970.
// OTLP would read the bits of a negative number as a time after 2554.
func Timestamp(ns int64) pcommon.Timestamp { return pcommon.Timestamp(max(ns, 0)) }

// Batch builds a ptrace.Traces span by span, one ResourceSpans per distinct Resource.
// It is not safe for concurrent use.
type Batch struct {
	traces  ptrace.Traces
	scope   string
	version string
	groups  map[Resource]ptrace.SpanSlice
	// Spans come in runs of one resource: remembering the last saves the map look-up.
	last   Resource
	lastOK bool
	slice  ptrace.SpanSlice
	n      int
	room   int
}

// NewBatch starts an empty batch. scope and version name the component that writes it.
func NewBatch(scope, version string) *Batch {
	return &Batch{traces: ptrace.NewTraces(), scope: scope, version: version, groups: make(map[Resource]ptrace.SpanSlice), room: 64}
}

// Grow makes room for n spans, which are expected to be of one resource for the most part.
func (b *Batch) Grow(n int) { b.room = max(b.room, n) }

// Len is the number of spans added.
func (b *Batch) Len() int { return b.n }

// Add appends a span and returns it, for the caller's own attributes, links and events.
func (b *Batch) Add(res Resource, s Span) ptrace.Span {
	if !b.lastOK || res != b.last {
		slice, ok := b.groups[res]
		if !ok {
			rs := b.traces.ResourceSpans().AppendEmpty()
			res.Put(rs.Resource().Attributes())
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(b.scope)
			ss.Scope().SetVersion(b.version)
			slice = ss.Spans()
			slice.EnsureCapacity(b.room) // growing from nothing would cost as much again
			b.room = 64
			b.groups[res] = slice
		}
		b.last, b.lastOK, b.slice = res, true, slice
	}
	b.n++
	out := b.slice.AppendEmpty()
	out.SetTraceID(s.Trace)
	out.SetSpanID(s.ID)
	out.SetParentSpanID(s.Parent)
	out.SetName(s.Name)
	out.SetKind(s.Kind)
	if s.Start < 0 || s.End < 0 {
		s.Source = TimeSynthetic // it is not what the log says
	}
	out.SetStartTimestamp(Timestamp(s.Start))
	out.SetEndTimestamp(Timestamp(s.End))
	attrs := out.Attributes()
	attrs.EnsureCapacity(s.Attributes + 1)
	attrs.PutStr(AttrTimeSource, string(s.Source))
	return out
}

// Traces returns what was built. The batch must not be used afterwards.
func (b *Batch) Traces() ptrace.Traces { return b.traces }

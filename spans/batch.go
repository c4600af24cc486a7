package spans

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Span has the fields of every span. Times are nanoseconds since the Unix epoch.
type Span struct {
	Trace      pcommon.TraceID
	ID, Parent pcommon.SpanID // an empty Parent makes a root
	Name       string
	Is         string // one of the Kind… values
	Kind       ptrace.SpanKind
	State      string // tracestate; empty: none
	Start, End int64
	Source     TimeSource // where the times come from
	Attributes int        // how many attributes the caller will add: saves growing the map
}

// Timestamp converts a time to OTLP, which starts at 1970. An earlier time, as from an unset clock minus a duration, becomes 1970: OTLP would read the bits of
// a negative number as a time centuries ahead, up to 2554.
func Timestamp(ns int64) pcommon.Timestamp { return pcommon.Timestamp(max(ns, 0)) }

// The limits of one message. A default OTLP/gRPC receiver (Jaeger, Tempo, the collector) takes 4 MiB. Up to 1 MiB, pdata's codec takes the buffer of a message
// from a pool of that size; above, it clears 4 MiB per message.
const (
	MaxMessageSpans = 8192
	MaxMessageBytes = 1_000_000 // a larger span is a message of its own
	perSpanRoom     = 64        // room in each span for attributes of processors
	perGroupRoom    = 1024      // likewise in each resource
	forPlace        = 2         // attributes that a place in a log takes, of spans with an origin
)

// Batch builds messages span by span, with one ResourceSpans per distinct Resource in each. It is not safe for concurrent use.
type Batch struct {
	messages []Message
	scope    string
	version  string
	groups   map[Resource]int // groups of the last message
	// Consecutive spans mostly share a resource: remembering the last saves the map look-up.
	last   Resource
	lastOK bool
	group  int              // index of the last resource in the message
	slice  ptrace.SpanSlice // the spans of the last resource
	span   ptrace.Span      // added last
	begun  bool             // the last span is not measured yet
	n      int              // spans of the last message
	bytes  int              // OTLP bytes of the last message, but for span
	sizer  ptrace.ProtoMarshaler
	origin int64             // From
	traced bool              // Keep
	links  bool              // KeepLinks
	bare   bool              // LeaveParts
	onSpan func(ptrace.Span) // Edit
	onRes  func(pcommon.Map) // Edit
}

// Message is the content of one request.
type Message struct {
	Traces ptrace.Traces
	// Origins are the origins of the spans (Batch.From), by ResourceSpans, if the batch keeps them.
	Origins [][]int64
}

// NewBatch starts an empty batch. scope and version name the writing component.
func NewBatch(scope, version string) *Batch {
	return &Batch{scope: scope, version: version}
}

// Keep has the messages say where their spans come from.
func (b *Batch) Keep() { b.traced = true }

// KeepLinks reports whether Link adds links (RunConfig.SpanLinks).
func (b *Batch) KeepLinks(links bool) { b.links = links }

// Edit registers functions that are called with the attributes of each resource, and with each span but parts, complete with its attributes and not yet
// measured.
func (b *Batch) Edit(resource func(pcommon.Map), span func(ptrace.Span)) {
	b.onRes, b.onSpan = resource, span
}

// NoOrigin is the origin of spans made from no record.
const NoOrigin = -1

// From sets the origin of the spans added next, in the caller's own numbers.
func (b *Batch) From(origin int64) { b.origin = origin }

// Len returns the number of spans in the current message.
func (b *Batch) Len() int { return b.n }

// Add appends a span and returns it, for the caller's own attributes, links and events, to be set before the next span is added.
func (b *Batch) Add(res Resource, s Span) ptrace.Span {
	b.measure()
	if len(b.messages) == 0 || b.n >= MaxMessageSpans || b.bytes >= MaxMessageBytes {
		b.next()
	}
	out := b.put(&res, b.origin)
	b.span, b.begun = out, true
	if b.traced && s.Attributes > 0 {
		s.Attributes += forPlace
	}
	Make(out, &res, s)
	return out
}

// Take moves a span made by Make into the batch.
func (b *Batch) Take(res Resource, made ptrace.Span) {
	b.measure()
	if len(b.messages) == 0 || b.n >= MaxMessageSpans || b.bytes >= MaxMessageBytes {
		b.next()
	}
	out := b.put(&res, b.origin)
	b.span, b.begun = out, true
	made.MoveTo(out)
}

// Make writes the fields of a span, and the attributes derived from the fields and the resource: the kind, first, and the source of the times if not the
// resource's.
func Make(out ptrace.Span, res *Resource, s Span) {
	fill(out, &s)
	if s.Start < 0 || s.End < 0 {
		s.Source = TimeSynthetic // fill wrote 0 instead
	}
	ownTime := s.Source != res.Time
	for _, has := range [...]bool{s.Is != "", ownTime} {
		if has {
			s.Attributes++
		}
	}
	attrs := out.Attributes()
	attrs.EnsureCapacity(s.Attributes)
	if s.Is != "" {
		attrs.PutStr(AttrKind, s.Is)
	}
	if ownTime {
		attrs.PutStr(AttrTimeSource, string(s.Source))
	}
}

// Detail is the spans that a reader of logs needs: All; NoParts, without those of AddPart; OnlyEvents, none of the logs' records.
type Detail int

// All is the default.
const (
	All Detail = iota
	NoParts
	OnlyEvents
)

// LeaveParts turns AddPart off, and the limit of bytes, for readers that only sum up: the parent's attributes already contain the parts, and no message leaves
// the process.
func (b *Batch) LeaveParts() { b.bare = true }

// AddPart appends a span without attributes to the resource of the span before, which must exist. Its name is ours, not the log's, so Edit does not see the
// span. Parts far outnumber spans with attributes, so a part costs no look-up and no measurement by pdata.
func (b *Batch) AddPart(s *Span) {
	if b.bare {
		return
	}
	b.measure()
	size := partBytes + len(s.Name) + len(s.State) + perSpanRoom
	if b.n >= MaxMessageSpans || b.bytes >= MaxMessageBytes || b.n > 0 && b.bytes+size > MaxMessageBytes {
		b.next()
	}
	fill(b.put(&b.last, b.origin), s)
	b.bytes += size
}

// partBytes are the OTLP bytes of a span without attributes, except its name: two ids of 8 bytes and one of 16, two times, the kind, an empty status, and the
// name's tag and length.
const partBytes = 18 + 10 + 10 + 9 + 9 + 2 + 2 + 2

// fill writes the fields of a span.
func fill(out ptrace.Span, s *Span) {
	out.SetTraceID(s.Trace)
	out.SetSpanID(s.ID)
	out.SetParentSpanID(s.Parent)
	out.SetName(s.Name)
	out.SetKind(s.Kind)
	if s.State != "" {
		out.TraceState().FromRaw(s.State)
	}
	out.SetStartTimestamp(Timestamp(s.Start))
	// Jaeger calls a span of no length a negative duration.
	out.SetEndTimestamp(max(Timestamp(s.End), out.StartTimestamp()+1))
}

// Link links a span to another, for instance a step or batch to its run, if the batch has links.
func (b *Batch) Link(s ptrace.Span, trace pcommon.TraceID, id pcommon.SpanID) {
	if !b.links {
		return
	}
	link := s.Links().AppendEmpty()
	link.SetTraceID(trace)
	link.SetSpanID(id)
}

// PutIncomplete marks a span whose record was not read whole, with the reason; an empty reason marks nothing.
func PutIncomplete(m pcommon.Map, reason string) {
	if reason != "" {
		m.PutBool(AttrIncomplete, true)
		m.PutStr(AttrIncompleteReason, reason)
	}
}

// next begins a message, after the last one is full.
func (b *Batch) next() {
	b.messages = append(b.messages, Message{Traces: ptrace.NewTraces()})
	b.groups, b.lastOK, b.n, b.bytes = make(map[Resource]int), false, 0, 0
}

// put appends an empty span to the spans of a resource in the last message, returns the span, and records its origin if the batch keeps origins.
func (b *Batch) put(res *Resource, origin int64) ptrace.Span {
	m := &b.messages[len(b.messages)-1]
	if !b.lastOK || res != &b.last && *res != b.last { // the pointer first: a Resource is large to compare
		group, ok := b.groups[*res]
		if !ok {
			group = m.Traces.ResourceSpans().Len()
			b.begin(m, *res)
			b.groups[*res] = group
		}
		b.last, b.lastOK, b.group = *res, true, group
		b.slice = m.Traces.ResourceSpans().At(group).ScopeSpans().At(0).Spans()
	}
	b.n++
	if b.traced {
		m.Origins[b.group] = append(m.Origins[b.group], origin)
	}
	return b.slice.AppendEmpty()
}

// measure ends the span added last, whose attributes are complete only when the next span comes: Edit's function sees the span, and the size is added. A span
// that does not fit into its message moves to the next.
func (b *Batch) measure() {
	if !b.begun {
		return
	}
	b.begun = false
	if b.onSpan != nil {
		b.onSpan(b.span)
	}
	if b.bare { // a message that is never encoded has no limit of bytes
		return
	}
	size := b.sizer.SpanSize(b.span) + perSpanRoom
	if b.n > 1 && b.bytes+size > MaxMessageBytes {
		b.move()
	}
	b.bytes += size
}

// move moves the span added last from the end of its message into a new message, with its origin. A resource that came with the span leaves the old message.
func (b *Batch) move() {
	m, group, from, origin := len(b.messages)-1, b.group, b.slice, int64(0)
	if b.traced {
		list := b.messages[m].Origins[group]
		origin = list[len(list)-1]
		b.messages[m].Origins[group] = list[:len(list)-1]
	}
	b.next()
	b.span.MoveTo(b.put(&b.last, origin))
	i, last := 0, from.Len()
	from.RemoveIf(func(ptrace.Span) bool { // the last one: pdata has no other way to shorten a slice
		i++
		return i == last
	})
	if from.Len() > 0 {
		return
	}
	// Its resource, the last, came with the span.
	i = 0
	b.messages[m].Traces.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool {
		i++
		return i == group+1
	})
	if b.traced {
		b.messages[m].Origins = b.messages[m].Origins[:group]
	}
}

// begin adds a resource, without spans yet, to a message.
func (b *Batch) begin(m *Message, res Resource) {
	rs := m.Traces.ResourceSpans().AppendEmpty()
	res.Put(rs.Resource().Attributes())
	if b.onRes != nil {
		b.onRes(rs.Resource().Attributes())
	}
	b.bytes += b.sizer.ResourceSpansSize(rs) + perGroupRoom
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(b.scope)
	ss.Scope().SetVersion(b.version)
	if b.traced {
		m.Origins = append(m.Origins, nil)
	}
}

// Messages returns the messages. The batch must not be used afterwards.
func (b *Batch) Messages() []Message {
	b.measure()
	return b.messages
}

// Traces returns all spans as one message, for tests and for small batches.
func (b *Batch) Traces() ptrace.Traces {
	messages := b.Messages()
	if len(messages) == 1 {
		return messages[0].Traces
	}
	out := ptrace.NewTraces()
	for _, m := range messages {
		m.Traces.ResourceSpans().MoveAndAppendTo(out.ResourceSpans())
	}
	return out
}

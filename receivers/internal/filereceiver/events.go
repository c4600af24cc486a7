package filereceiver

import (
	"bytes"
	"hash/maphash"
	"path/filepath"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/spans"
)

// A line that is no record of its log is offered to bridge/events: the lines about the end of a run stand between the records of any log.

// withEvents makes handlers that offer lines without a record.
func (r *Receiver) withEvents(newHandler tail.NewHandler) tail.NewHandler {
	return func(s *tail.Stream) tail.Handler {
		h := newHandler(s)
		if s.IsDocument() {
			return h
		}
		e := &eventful{Handler: h, r: r, stream: s, run: r.parts.Run.Run(s.Path())}
		switch h := h.(type) {
		case tail.InOrder:
			return &inOrder{e, h}
		case idler:
			return &idle{e, h}
		case tail.Forgetter, tail.Idler:
			panic("filereceiver: a handler that is a Forgetter or an Idler is both")
		}
		return e
	}
}

// inOrder and idle keep the optional interfaces of a handler.
type (
	inOrder struct {
		*eventful
		of tail.InOrder
	}
	idle struct {
		*eventful
		of idler
	}
	idler interface {
		tail.Forgetter
		tail.Idler
	}
)

func (h *inOrder) InOrder()        { h.of.InOrder() }
func (h *idle) Forget()            { h.of.Forget() }
func (h *idle) Idle(now time.Time) { h.of.Idle(now) }

// eventful is a handler whose log is scanned for events.
type eventful struct {
	tail.Handler
	r      *Receiver
	stream *tail.Stream
	run    string
	scan   *events.Scanner // nil until the first line
	places map[int64]tail.Place
	found  []event
	seen   map[uint64]bool      // raw lines
	counts map[*events.Form]int // spans of a form
	last   time.Time            // when the last line came
}

// event is an event with the position of its line.
type event struct {
	events.Event
	place  tail.Place
	placed bool
	wrote  int64 // ns: when the log was written
	live   bool
}

const (
	// mostOfForm bounds the spans of one form in a log: the first of a repeated warning are enough.
	mostOfForm = 200
	mostSeen   = 4096
	repeated   = "event_repeated"
)

var seed = maphash.MakeSeed()

// Line passes the line to the handler, and offers lines without a record.
func (h *eventful) Line(l *tail.Line) (tail.Verdict, string) {
	v, reason := h.Handler.Line(l)
	if h.scan == nil {
		h.scan = events.NewScanner(h.stream.Path(), h.r.parts.Zone, l.Written())
	}
	text := l.Text
	if v == tail.Record {
		text = events.Glued(text)
		if text == nil {
			h.scan.Record(l.Text)
			return v, reason
		}
	}
	found := h.scan.Line(text)
	if h.scan.Busy() {
		h.last = l.Observed
		if h.places == nil {
			h.places = make(map[int64]tail.Place)
		}
		h.places[h.scan.Lines()] = h.stream.Place()
	}
	if len(found) == 0 {
		return v, reason
	}
	switch n := h.take(found, l); {
	case v == tail.Record:
		return v, reason
	case n > 0 && h.r.parts.Events:
		return tail.Record, ""
	case n > 0:
		return tail.Ignored, "event" // no record of its log
	case found[0].Class != events.ClassWarning:
		return tail.Ignored, repeated
	}
	return v, reason
}

// take keeps the new events, and returns their number.
func (h *eventful) take(found []events.Event, l *tail.Line) (n int) {
	for i := range found {
		e := &found[i]
		if e.Class == events.ClassWarning {
			continue
		}
		key := maphash.String(seed, e.Form.Name+"\x00"+e.Text) ^ uint64(e.Rank)<<32 ^ uint64(e.Local)
		if e.Own {
			key ^= uint64(e.Time)
		}
		if h.seen == nil {
			h.seen, h.counts = make(map[uint64]bool), make(map[*events.Form]int)
		}
		if h.seen[key] || h.counts[e.Form] >= mostOfForm {
			continue
		}
		if len(h.seen) < mostSeen {
			h.seen[key] = true
		}
		h.counts[e.Form]++
		ev := event{Event: *e}
		if l != nil {
			ev.wrote, ev.live = l.Written().UnixNano(), l.Live
			if ev.live {
				ev.wrote = l.Observed.UnixNano()
			}
		}
		ev.place, ev.placed = h.places[e.Line]
		if !ev.placed && l != nil {
			ev.place, ev.placed = h.stream.Place(), true
		}
		h.found = append(h.found, ev)
		n++
	}
	return n
}

// Expire ends events whose remaining lines did not come.
func (h *eventful) Expire(before time.Time) {
	h.Handler.Expire(before)
	if h.scan != nil && h.scan.Busy() && h.last.Before(before) {
		h.take(h.scan.Flush(), nil)
	}
}

// Cut adds the events to the handler's batch.
func (h *eventful) Cut() tail.Delivery {
	d := h.Handler.Cut()
	clear(h.places)
	if len(h.found) == 0 {
		return d
	}
	b := &eventBatch{of: h, found: h.found}
	h.found = nil
	of, ok := d.(*delivery)
	if !ok { // no stamp
		return h.r.Deliver(b)
	}
	b.Batch = of.batches[0]
	of.batches[0] = b
	return of
}

// eventBatch is a batch with events.
type eventBatch struct {
	Batch // nil: only events
	of    *eventful
	found []event
}

// Texts is as in Texter.
func (b *eventBatch) Texts() (onSpans, onPoints bool) { return true, false }

// Places is as in Spread: events know the places of their own lines.
func (b *eventBatch) Places(n tail.Place) []tail.Place {
	if s, ok := b.Batch.(Spread); ok {
		return s.Places(n)
	}
	return []tail.Place{n}
}

// Done is as in Batch.
func (b *eventBatch) Done() {
	if b.Batch != nil {
		b.Batch.Done()
	}
}

// Metrics is as in Batch.
func (b *eventBatch) Metrics() pmetric.Metrics {
	if b.Batch != nil {
		return b.Batch.Metrics()
	}
	return pmetric.NewMetrics()
}

// eventLength is the length of an event's span, ns: a line has no length, and stores keep microseconds.
const eventLength = int64(time.Millisecond)

// Traces adds a span for each event.
func (b *eventBatch) Traces(out *spans.Batch, from From) {
	if b.Batch != nil {
		b.Batch.Traces(out, from)
	}
	run := &b.of.r.parts.Run
	trace, _ := spans.RunIDs(b.of.run)
	file := []byte(filepath.Base(b.of.stream.Path()))
	for i := range b.found {
		e := &b.found[i]
		at, source := e.Time, spans.TimeDerived
		switch {
		case e.Own:
			source = spans.TimeLogged
		case at == 0 && e.live:
			at, source = e.wrote, spans.TimeObserved
		case at == 0:
			at, source = e.wrote, spans.TimeSynthetic
		}
		if e.placed {
			from(e.place)
		} else {
			out.From(spans.NoOrigin)
		}
		rank, local := strconv.AppendInt(nil, e.Rank, 10), strconv.AppendInt(nil, e.Local, 10)
		id := spans.SpanID(trace, spans.SpanEvent, file, []byte(e.Form.Name), rank, local, []byte(e.Text), stampKey(e))
		s := out.Add(spans.Resource{Service: run.ServiceName, RunID: b.of.run, Host: e.Host, PID: e.PID, Time: source}, spans.Span{
			Trace: trace, ID: id, Name: spans.SpanEvent, Is: spans.KindEvent, Kind: ptrace.SpanKindInternal, Start: at,
			End: at + eventLength, Source: source, Attributes: 8,
		})
		put(s, &e.Event)
	}
}

// stampKey is the time of an event with a stamp on its own line.
func stampKey(e *event) []byte {
	if !e.Own {
		return nil
	}
	return strconv.AppendInt(nil, e.Time, 10)
}

func put(s ptrace.Span, e *events.Event) {
	m := s.Attributes()
	m.PutStr(spans.AttrEventClass, string(e.Class))
	m.PutStr(spans.AttrEventForm, e.Form.Name)
	text := spans.Text(bytes.TrimSpace([]byte(e.Text)))
	m.PutStr(spans.AttrEventText, text)
	if e.Rank >= 0 {
		m.PutInt(spans.AttrRank, e.Rank)
	}
	if e.Local >= 0 {
		m.PutInt(spans.AttrLocalRank, e.Local)
	}
	if e.Exception != "" {
		m.PutStr(spans.AttrExceptionType, e.Exception)
		m.PutStr(spans.AttrExceptionMessage, e.What)
	}
	if e.Last.File != "" {
		m.PutStr(spans.AttrCodeFile, e.Last.File)
		m.PutInt(spans.AttrCodeLine, e.Last.Line)
		m.PutStr(spans.AttrCodeFunction, e.Last.Func)
	}
	if e.Class.Fatal() {
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage(text)
	}
}

package filereceiver

import (
	"bytes"
	"hash/maphash"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/mixed"
	"github.com/trainbridge/trainbridge/spans"
)

// A line that is no record of its log is offered to bridge/events: the lines about the end of a run (a traceback, a timeout of NCCL, a process killed) stand
// between the records of any log. Each such event becomes a span.

// withEvents returns newHandler with its handlers wrapped in eventful ones. Handlers of documents, which are rewritten whole and have no lines between records,
// stay as they are. The wrapper has the same optional interfaces as the handler, because tail asks for them by type.
func (r *Receiver) withEvents(newHandler tail.NewHandler) tail.NewHandler {
	return func(s *tail.Stream) tail.Handler {
		h := newHandler(s)
		if s.IsDocument() {
			return h
		}
		e := &eventful{Handler: h, r: r, stream: s, run: r.parts.Run.Run(s.Path())}
		if r.shares && !s.IsSecond() {
			e.beside = mixed.With(r.Set.ID.Type())
		}
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

// inOrder and idle are eventful handlers with the optional interfaces of the wrapped handler: tail.InOrder, or tail.Forgetter and tail.Idler.
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
	beside *mixed.Kind          // records of another receiver that the log may hold too; nil: none, or answered
	scan   *events.Scanner      // nil until the first line
	places map[int64]tail.Place // by line number (Scanner.Lines): lines of events that are not complete yet
	found  []event              // events for the next batch
	seen   map[uint64]bool      // keys of the events found, at most mostSeen: take
	counts map[*events.Form]int // spans of a form

	// round is the number of times that the run went on behind events, at most mostRounds: the same error of a later attempt is another event.
	round   int64
	records int64 // since the last event

	// Of the last line that came while an event waited for more lines: when it came, and its writing, for events that no line ends.
	last        time.Time
	lastWriting writing

	// The first line of an event that waits is held, so that the stream keeps the handler and expires the event: the words of a dying process are often the
	// last of the log.
	holds    bool
	held     tail.Held
	heldLine int64 // number, as in places
}

// event is an event with the position of its line.
type event struct {
	events.Event
	place  tail.Place // of the event's first line; valid if placed
	placed bool
	round  int64 // eventful.round
	writing
}

// writing is when a line was written, for an event without a time of its own.
type writing struct {
	at   int64 // ns: of the log, as good as known
	live bool  // the line was read as it was written: at is the time of reading
}

// writingOf returns when a line was written.
func writingOf(l *tail.Line) writing {
	if l.Live {
		return writing{l.Observed.UnixNano(), true}
	}
	return writing{l.Written().UnixNano(), false}
}

const (
	// mostOfForm bounds the spans of one form in a log: the first of a repeated warning are enough.
	mostOfForm = 200
	// mostRounds bounds the times that one error is told again: a program that prints an error at each step, and goes on, is not heard for ever.
	mostRounds = 100
	goesOn     = 3 // records that prove that the run went on, as for its end (digest.Ends.WentOn)
	// mostSeen bounds the memory of eventful.seen. A repeated event beyond is sent again: its span has the same id.
	mostSeen = 4096
	repeated = "event_repeated" // reason of an ignored line
)

var seed = maphash.MakeSeed()

// Line passes the line to the wrapped handler. A line without a record, and text glued after a record without a line end, goes to the scanner of events. A line
// that completes an event is a record if the log's records are events (Parts.Events), else an ignored line with the reason "event", or "event_repeated" for an
// event that take leaves out. A warning changes no verdict, nor does text after a record.
func (h *eventful) Line(l *tail.Line) (tail.Verdict, string) {
	v, reason := h.Handler.Line(l)
	if v != tail.Record && h.beside != nil && h.beside.Maybe(l.Text) && h.stream.ShareWith(h.beside.Receiver, l.Text) {
		h.beside = nil
	}
	if h.stream.IsSecond() { // the first receiver tells the events
		return v, reason
	}
	if h.scan == nil {
		h.scan = events.NewScanner(h.stream.Path(), h.r.parts.Zone, l.Written())
	}
	text := l.Text
	if v == tail.Record {
		h.records++
		text = events.Glued(text)
		if text == nil { // nothing but the record
			h.scan.Record(l.Text)
			return v, reason
		}
	}
	found := h.scan.Line(text)
	ends := func(e events.Event) bool { return e.Line == h.heldLine }
	if h.holds && (!h.scan.Busy() || slices.ContainsFunc(found, ends)) {
		h.release()
	}
	if h.scan.Busy() { // the line may belong to an event that ends later, in need of this place
		h.last, h.lastWriting = l.Observed, writingOf(l)
		if !h.holds && v != tail.Record && !h.stream.Holds() { // a line that the wrapped handler holds is its to release, and records are its to hold
			h.held, h.heldLine, h.holds = h.stream.Hold(), h.scan.Lines(), true
		} else {
			h.notePlace(h.scan.Lines())
		}
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

// release puts the held line into the batch, and keeps its place for the event.
func (h *eventful) release() {
	h.stream.Release(h.held)
	h.holds = false
	h.notePlace(h.heldLine)
}

// notePlace keeps the place of a line of an event that is not complete yet, by the line's number.
func (h *eventful) notePlace(line int64) {
	if h.places == nil {
		h.places = make(map[int64]tail.Place)
	}
	h.places[line] = h.stream.Place()
}

// take keeps the new events for the next batch, and returns their number. Warnings, events already seen and events beyond mostOfForm are left out. l is the
// line just read, nil where events end without a line (Expire).
func (h *eventful) take(found []events.Event, l *tail.Line) (n int) {
	for i := range found {
		e := &found[i]
		if e.Class == events.ClassWarning {
			continue
		}
		if h.records >= goesOn {
			h.beginRound(false)
		}
		h.records = 0
		// Equal text of another rank, or with another stamp on the line itself, is another event.
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
		ev := event{Event: *e, writing: h.lastWriting}
		if l != nil {
			ev.writing = writingOf(l)
		}
		// An event of several lines has the place of its first line, noted by Line.
		ev.place, ev.placed = h.places[e.Line]
		if !ev.placed && l != nil { // an event of the line just read alone, or one begun before the last Cut, which forgets the places
			ev.place, ev.placed = h.stream.Place(), true
		}
		ev.round = h.round
		h.found = append(h.found, ev)
		n++
		if e.Class == events.ClassBegan {
			h.beginRound(true)
		}
	}
	return n
}

// beginRound begins a round in which events seen before count as new events. In a new attempt of the run, the number of events of each form is counted anew,
// too.
func (h *eventful) beginRound(attempt bool) {
	if len(h.seen) == 0 || h.round >= mostRounds {
		return
	}
	h.round++
	clear(h.seen)
	if attempt {
		clear(h.counts)
	}
}

// Expire passes the call to the wrapped handler, and ends an unfinished event if no line came since before.
func (h *eventful) Expire(before time.Time) {
	h.Handler.Expire(before)
	if h.scan != nil && h.scan.Busy() && h.last.Before(before) {
		if h.holds {
			h.release()
		}
		h.take(h.scan.Flush(), nil)
	}
}

// Cut returns the wrapped handler's batch with the found events, or a batch of the events alone; nil without both.
func (h *eventful) Cut() tail.Delivery {
	d := h.Handler.Cut()
	clear(h.places)
	if len(h.found) == 0 {
		return d
	}
	b := &eventBatch{of: h, found: h.found}
	h.found = nil
	records, ok := d.(*delivery)
	if !ok { // the handler has no batch
		return h.r.Deliver(b)
	}
	b.Batch = records.batches[0] // a delivery just cut has a single batch
	records.batches[0] = b
	return records
}

// eventBatch is a batch of records with events.
type eventBatch struct {
	Batch // of the records; nil: only events
	of    *eventful
	found []event
}

// Texts implements Texter: the spans of events have texts of the log; the points are those of the records.
func (b *eventBatch) Texts() (onSpans, onPoints bool) {
	return true, b.Batch != nil && hasLabels(b.Batch)
}

// Places implements Spread. The numbers of events are places, which any Spread returns as they are.
func (b *eventBatch) Places(n tail.Place) []tail.Place {
	if s, ok := b.Batch.(Spread); ok {
		return s.Places(n)
	}
	return []tail.Place{n}
}

// Done implements Batch.
func (b *eventBatch) Done() {
	if b.Batch != nil {
		b.Batch.Done()
	}
}

// Metrics implements Batch.
func (b *eventBatch) Metrics() pmetric.Metrics {
	if b.Batch != nil {
		return b.Batch.Metrics()
	}
	return pmetric.NewMetrics()
}

// eventLength is the length of an event's span, ns: a line has no length, and stores keep microseconds.
const eventLength = int64(time.Millisecond)

// Traces implements Batch: it adds the spans of the records and of the events.
func (b *eventBatch) Traces(out *spans.Batch, from From) {
	if b.Batch != nil {
		b.Batch.Traces(out, from)
	}
	b.events(out, from)
}

// events adds a span for each event, in the trace of the run (spans.RunIDs). The span's time is the event's: by the stamp of its own line (logged) or of a line
// before (derived); else the time when the line was read as written (observed), or when the log was written (synthetic). The span's id follows from the log's
// file name and the event, so that reading the log again gives the same span.
func (b *eventBatch) events(out *spans.Batch, from From) {
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
			at, source = e.at, spans.TimeObserved
		case at == 0:
			at, source = e.at, spans.TimeSynthetic
		}
		if e.placed {
			from(e.place)
		} else { // ended by Expire, after a Cut has forgotten the place of the first line
			out.From(spans.NoOrigin)
		}
		rank, local := strconv.AppendInt(nil, e.Rank, 10), strconv.AppendInt(nil, e.Local, 10)
		id := spans.SpanID(trace, spans.SpanEvent, file, []byte(e.Form.Name), rank, local, []byte(e.Text), stampKey(e))
		s := out.Add(spans.Resource{Service: run.ServiceName, RunID: b.of.run, Host: e.Host, PID: e.PID, Time: source}, spans.Span{
			Trace: trace, ID: id, Name: spans.SpanEvent, Is: spans.KindEvent, Kind: ptrace.SpanKindInternal, Start: at,
			End: at + eventLength, Source: source, Attributes: 8,
		})
		putEvent(s, &e.Event)
	}
}

// stampKey returns the part of a span's id for the event's time. The time of an event without a stamp on its own line may differ at the next reading: then the
// part is the event's round, nil in the first round.
func stampKey(e *event) []byte {
	switch {
	case e.Own:
		return strconv.AppendInt(nil, e.Time, 10)
	case e.round > 0:
		return strconv.AppendInt(nil, e.round, 10)
	}
	return nil
}

// putEvent writes the event's attributes on its span: class, form and text always, the rest as far as the line states them. A fatal event makes the span an
// error.
func putEvent(s ptrace.Span, e *events.Event) {
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

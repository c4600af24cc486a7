package digest

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Event is a line about the end of a run.
type Event struct {
	view.Event
	At
	Time int64 // ns since 1970; 0: nobody knows when the line was written
	Own  bool  // the time is in the line itself
	Host string
	PID  int64 // 0: unknown
}

// Ends are the lines of a run about its end. The zero value has none.
type Ends struct {
	Events     []Event // in no order
	EventsLeft int64   // number of events beyond mostEvents

	latest   latest // of all logs
	latestOf map[string]*latest
}

// AddEnd adds a span's evidence of the end of its run: an event, or a later step.
func (d *Ends) AddEnd(s ptrace.Span, kind view.Kind, res *view.Resource) {
	if kind != view.KindEvent && kind != view.KindStep {
		return
	}
	r := resource{Resource: *res, offset: -1}
	r.locate(s)
	if kind == view.KindEvent {
		d.event(s, &r)
		return
	}
	d.stepped(s, &r, res.TimeSource == spans.TimeSynthetic)
}

// mostEvents bounds the events of a job: of 10,000 ranks that die of one cause, each has a few lines.
const mostEvents = 100_000

// event keeps an event with its place, and its time if that is not made up. Events beyond mostEvents are only counted.
func (d *Ends) event(s ptrace.Span, res *resource) {
	if len(d.Events) >= mostEvents {
		d.EventsLeft++
		return
	}
	e := Event{At: res.at(s), Time: int64(s.StartTimestamp()), Host: res.Host, PID: res.PID.Or(0)}
	e.Read(s)
	source := spans.TimeSource(spans.AttrText(s.Attributes(), spans.AttrTimeSource))
	if source == "" {
		source = res.TimeSource
	}
	e.Own = source == spans.TimeLogged
	if source == spans.TimeSynthetic {
		e.Time = 0
	}
	d.Events = append(d.Events, e)
}

// goesOn is the number of steps behind an event that prove that the run went on: ranks unaware of an end may finish a step, and log another.
const goesOn = 3

// latest are the places and times of the last steps of a log, the last one first.
type latest struct{ offsets, times [goesOn]int64 }

// note puts a value into a list of the largest.
func (l *latest) note(list *[goesOn]int64, v int64) {
	for i, old := range list {
		if v > old { // the others move on by one
			v, list[i] = old, v
		}
	}
}

// stepped takes note of a step: of its time, unless made up, and of its place in its log.
func (d *Ends) stepped(s ptrace.Span, res *resource, madeUp bool) {
	if !madeUp {
		d.latest.note(&d.latest.times, int64(s.StartTimestamp()))
	}
	if res.file == "" || res.offset < 0 {
		return
	}
	of := d.latestOf[res.file]
	if of == nil {
		if d.latestOf == nil {
			d.latestOf = make(map[string]*latest)
		}
		of = new(latest)
		d.latestOf[res.file] = of
	}
	of.note(&of.offsets, res.offset)
}

// Tell notes in a ledger that the job was ended from outside: later steps are of another attempt.
func (d *Ends) Tell(l *account.Ledger) {
	for i := range d.Events {
		switch e := &d.Events[i]; events.Class(e.Class) {
		case events.ClassCancelled, events.ClassTimeLimit, events.ClassSummary:
			if e.Time != 0 {
				l.Ended(e.Time)
			}
		}
	}
}

// WentOn reports whether goesOn steps came after an event: by their places where the event's log has as many, else by the times of the steps of all logs.
func (d *Ends) WentOn(e *Event) bool {
	if of := d.latestOf[e.File]; of != nil && e.Offset >= 0 && of.offsets[goesOn-1] > 0 {
		return of.offsets[goesOn-1] > e.Offset
	}
	return e.Time != 0 && d.latest.times[goesOn-1] > e.Time
}

package digest

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Event is a line that tells how a run ends.
type Event struct {
	view.Event
	At
	Time int64 // ns since 1970; 0: nobody knows when the line was written
	Own  bool  // the line says its time itself
	Host string
	PID  int64 // 0: not told
}

// Ends are the lines of one run that tell how it ends. The zero value has none.
type Ends struct {
	Events     []Event // in no order
	EventsLeft int64   // events beyond these

	latest   latest // of all logs
	latestOf map[string]*latest
}

// AddEnd takes what a span says of the end of its run: an event, or a step, after which the run has gone on.
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

// mostEvents bounds the events of a job: of 10,000 ranks that die of one cause, each says so in a few lines.
const mostEvents = 100_000

// event keeps an event.
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
	if e.Own = source == spans.TimeLogged; source == spans.TimeSynthetic {
		e.Time = 0
	}
	d.Events = append(d.Events, e)
}

// goesOn is how many steps must come after an event until the run has gone on: ranks that do not know yet of an end may finish one, and write of one more.
const goesOn = 3

// latest are the places of the last steps of a log, and their times; the last one first.
type latest struct{ offsets, times [goesOn]int64 }

func (l *latest) note(list *[goesOn]int64, v int64) {
	for i, old := range list {
		if v > old {
			v, list[i] = old, v
		}
	}
}

// stepped takes note of a step.
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

// WentOn says whether steps came after an event: in its log, or, where its line has a time, in any log.
func (d *Ends) WentOn(e *Event) bool {
	if of := d.latestOf[e.File]; of != nil && e.Offset >= 0 && of.offsets[goesOn-1] > 0 {
		return of.offsets[goesOn-1] > e.Offset
	}
	return e.Time != 0 && d.latest.times[goesOn-1] > e.Time
}

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

	ranks    map[int64]string // the ranks with steps, each with its first log; at most mostStepping
	latest   lastSteps        // of all logs
	latestOf map[string]*lastSteps
	summary  *summary // the latest; nil: no log has one
	worked   int64    // ns since 1970, the latest end of a collective or a call that was completed; 0: no log has one with a time
}

// summary is what a trainer logs of the whole run once training has ended: HF Trainer's train_runtime, perf_monitor's summary.
type summary struct {
	At
	end    int64 // ns since 1970
	madeUp bool
}

// AddEnd adds what a span says about the end of its run: an event, a summary, or a later step. Other spans are ignored.
func (d *Ends) AddEnd(s ptrace.Span, kind view.Kind, res *view.Resource) {
	if kind != view.KindEvent && kind != view.KindStep && kind != view.KindSummary && !isWork(kind) {
		return
	}
	r := resource{Resource: *res, offset: -1}
	r.locate(s)
	madeUp := res.TimeSource == spans.TimeSynthetic
	switch kind {
	case view.KindEvent:
		d.addEvent(s, &r)
	case view.KindStep:
		d.noteStep(s, &r, madeUp)
	case view.KindSummary:
		d.noteSummary(s, &r, madeUp)
	default:
		d.noteWork(s, madeUp)
	}
}

// isWork reports whether spans of a kind are collectives or calls: what a job does within its steps.
func isWork(kind view.Kind) bool { return kind == view.KindCollective || kind == view.KindFunction }

// noteWork records the end of a collective or a call, unless it was not completed, or its time is not from a clock (madeUp).
func (d *Ends) noteWork(s ptrace.Span, madeUp bool) {
	if end := int64(s.EndTimestamp()); !madeUp && end > d.worked {
		if v, ok := s.Attributes().Get(spans.AttrIncomplete); !ok || !v.Bool() {
			d.worked = end
		}
	}
}

// noteSummary records the latest summary that a trainer wrote about the whole run. madeUp: its time is not from a clock.
func (d *Ends) noteSummary(s ptrace.Span, res *resource, madeUp bool) {
	if end := int64(s.EndTimestamp()); d.summary == nil || end > d.summary.end {
		d.summary = &summary{res.at(s), end, madeUp}
	}
}

// Finished returns the place of the summary of the whole run that its trainer logged at the end of training. false: no log has one, or steps came after.
func (d *Ends) Finished() (at At, ok bool) {
	if d.summary == nil {
		return At{}, false
	}
	at = d.summary.At
	if steps := d.latestOf[at.File]; steps != nil && at.Offset >= 0 { // a document has all its records at one place
		return at, steps.offsets[0] < at.Offset || steps.offsets[0] == at.Offset && steps.times[0] <= d.summary.end
	}
	return at, !d.summary.madeUp && d.latest.times[0] > 0 && d.latest.times[0] <= d.summary.end
}

// Stepped reports whether any log of the run has a step.
func (d *Ends) Stepped() bool { return d.latest.times[0] > 0 || len(d.latestOf) > 0 }

// mostEvents bounds the events of a job: of 10,000 ranks that die of one cause, each has a few lines.
const mostEvents = 100_000

// addEvent keeps an event with its place, and its time unless made up. Events beyond mostEvents are only counted.
func (d *Ends) addEvent(s ptrace.Span, res *resource) {
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

// stepsAfterEnd is the number of steps behind an event that prove that the run went on: ranks unaware of an end may finish a step, and log another.
const stepsAfterEnd = 3

// lastSteps are the places and times of the last steps of a log, the last one first.
type lastSteps struct{ offsets, times [stepsAfterEnd]int64 }

// insert puts a value into a list of the largest, in order.
func (l *lastSteps) insert(list *[stepsAfterEnd]int64, v int64) {
	for i, old := range list {
		if v > old { // the others move on by one
			v, list[i] = old, v
		}
	}
}

// noteStep records a step: its time, unless made up, its rank, and its place in its log.
func (d *Ends) noteStep(s ptrace.Span, res *resource, madeUp bool) {
	if !madeUp {
		d.latest.insert(&d.latest.times, int64(s.StartTimestamp()))
	}
	if res.file == "" || res.offset < 0 {
		return
	}
	d.noteRank(s, res)
	steps := d.latestOf[res.file]
	if steps == nil {
		if d.latestOf == nil {
			d.latestOf = make(map[string]*lastSteps)
		}
		steps = new(lastSteps)
		d.latestOf[res.file] = steps
	}
	steps.insert(&steps.offsets, res.offset)
	steps.insert(&steps.times, int64(s.StartTimestamp()))
}

// mostStepping bounds the ranks with steps.
const mostStepping = 20_000

// noteRank records the rank of a step, with its log.
func (d *Ends) noteRank(s ptrace.Span, res *resource) {
	rank := res.Rank
	if v, ok := s.Attributes().Get(spans.AttrRank); ok {
		rank = view.IntOf(v)
	}
	if !rank.OK || len(d.ranks) >= mostStepping || d.ranks[rank.N] != "" {
		return
	}
	if d.ranks == nil {
		d.ranks = make(map[int64]string)
	}
	d.ranks[rank.N] = res.file
}

// Ranks returns the ranks with steps, each with its log; empty: the logs do not name ranks. The caller must not change the map.
func (d *Ends) Ranks() map[int64]string { return d.ranks }

// Tell records in a ledger that the job was ended from outside: later steps are of another attempt.
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

// workAfterEnd is how long after an event (ns) collectives or calls must be completed to prove that the run went on: groups without the rank that died may go
// on until the end of their step.
const workAfterEnd = 10 * 60e9

// WentOn reports whether stepsAfterEnd steps came after an event: by their offsets, if the log of the event has as many steps, else by the times of the steps
// of every log. Collectives and calls that were completed long after the event (workAfterEnd) prove as much.
func (d *Ends) WentOn(e *Event) bool {
	if steps := d.latestOf[e.File]; steps != nil && e.Offset >= 0 && steps.offsets[stepsAfterEnd-1] > 0 {
		return steps.offsets[stepsAfterEnd-1] > e.Offset
	}
	return e.Time != 0 && (d.latest.times[stepsAfterEnd-1] > e.Time || d.worked > e.Time+workAfterEnd)
}

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

// mostEvents bounds the events of a job: of 10,000 ranks that die of one cause, each says so in a few lines.
const mostEvents = 100_000

// event keeps an event.
func (j *Job) event(s ptrace.Span, res *resource) {
	if len(j.Events) >= mostEvents {
		j.EventsLeft++
		return
	}
	e := Event{At: res.at(s), Time: int64(s.StartTimestamp()), Host: res.Host, PID: res.PID.Or(0)}
	e.Read(s)
	source := spans.TimeSource(spans.AttrText(s.Attributes(), spans.AttrTimeSource))
	if source == "" {
		source = spans.TimeSource(res.TimeSource)
	}
	if e.Own = source == spans.TimeLogged; source == spans.TimeSynthetic {
		e.Time = 0
	}
	j.Events = append(j.Events, e)
}

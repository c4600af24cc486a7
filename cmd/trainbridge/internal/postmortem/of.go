package postmortem

import (
	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Of is how a job ended, by the events in its logs. ranks is how many it has; 0: not known. lastStep is the number of its last step; -1: it has none.
func Of(job *digest.Job, ranks, lastStep int64) End {
	c := &Case{WorldSize: ranks, LastStep: lastStep, Events: make([]Event, 0, len(job.Events))}
	for i := range job.Events {
		c.Events = append(c.Events, eventOf(&job.Events[i]))
	}
	return Judge(c)
}

func eventOf(d *digest.Event) Event {
	e := events.Again(d.Form, events.Class(d.Class), d.Text)
	e.Time, e.Own = d.Time, d.Own
	if d.Host != "" {
		e.Host = d.Host
	}
	if d.PID != 0 {
		e.PID = d.PID
	}
	if d.Rank.OK {
		e.Rank = d.Rank.N
	}
	if d.Local.OK {
		e.Local = d.Local.N
	}
	if e.Exception = d.ExceptionType; e.Exception != "" {
		e.What = d.ExceptionMessage
	}
	e.Last = events.Frame{File: d.CodeFile, Line: d.CodeLine.Or(0), Func: d.CodeFunction}
	return Event{Event: e, At: d.At}
}

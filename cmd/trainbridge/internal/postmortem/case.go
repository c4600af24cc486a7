// Package postmortem says how a run ended: who died first, who only waited, and what is not told. It reads events (bridge/events) of all logs of a job, and
// what PyTorch's Flight Recorder has dumped. What each class of evidence may claim is events.Claims: a name that the evidence does not carry is not said.
package postmortem

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Event is an event and the log that it stands in.
type Event struct {
	events.Event
	At     digest.At
	wentOn bool // steps came after it
	order  int
}

// Case is all that is known of the end of a job.
type Case struct {
	Events    []Event
	WorldSize int64 // ranks of the job; 0: not told
	LastStep  int64 // -1: the logs have no step
	Groups    []flightrecorder.Group
}

// End is how a run ended.
type End struct {
	Kind     string     // one of Kinds
	Sentence string     // what is told of it
	Certain  bool       // the evidence is of one cause, and of whose it is
	Ranks    []int64    // global ranks that the evidence names as the cause; none: it names none
	Hosts    []string   // likewise
	Heard    int64      // ranks that told of it
	Of       int64      // ranks of the job, or of the group; 0: not known
	Waited   float64    // GPU-seconds for which ranks stood in a collective; 0: not told
	Advice   string     // what to do
	Evidence []Evidence // at most maxEvidence lines, the first cause first
	Time     int64      // ns, of the first cause; 0: not told
}

// Evidence is a line of a log.
type Evidence struct {
	At   digest.At
	Text string
}

// The kinds of ends beside the classes of events.
const (
	KindSilent        = "silent"         // the log ends without a word
	KindHealthy       = "healthy"        // training says that it is done
	KindAfterEnd      = "after_end"      // errors behind the end of training
	KindSIGKILL       = "sigkill"        // of ClassSignal
	KindSIGTERM       = "sigterm"        // of ClassSignal
	KindNotUnderstood = "not_understood" // a fatal line that no rule knows
	KindStuck         = "stuck_in_flight"
)

// Failed says whether the run ended in an error that its logs tell of.
func (e *End) Failed() bool {
	return e.Kind != KindSilent && e.Kind != KindHealthy && e.Kind != KindAfterEnd
}

// sorted returns the events in the order in which they happened. Within a log that is the order of its lines; between logs their times decide, where both
// have some. A line without a stamp has the time of the one before.
func (c *Case) sorted() []*Event {
	all := make([]*Event, len(c.Events))
	for i := range c.Events {
		all[i] = &c.Events[i]
	}
	slices.SortStableFunc(all, func(a, b *Event) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Offset, b.At.Offset))
	})
	at := make(map[*Event]int64, len(all))
	latest, file := int64(0), ""
	for _, e := range all {
		if e.At.File != file {
			latest, file = 0, e.At.File
		}
		latest = max(latest, e.Time)
		at[e] = latest
	}
	slices.SortStableFunc(all, func(a, b *Event) int { return cmp.Compare(at[a], at[b]) })
	for i, e := range all {
		e.order = i
	}
	return all
}

// Package postmortem says how a run ended: who died first, who only waited, and what remains unknown. Its input is the events (bridge/events) of all logs of a
// job, and dumps of PyTorch's Flight Recorder. events.Claims bounds the claims of each class of evidence: a name that the evidence lacks is not said.
package postmortem

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Event is an event and its place in a log.
type Event struct {
	events.Event
	At     digest.At
	wentOn bool  // steps came after it
	moved  int64 // ns added to its time, since its log's clock is of another zone
	order  int   // place among all events of the case, in the order of Case.sorted
}

// Case is everything known of the end of a job.
type Case struct {
	Events    []Event
	WorldSize int64                  // ranks of the job; 0: unknown
	LastStep  int64                  // -1: the logs have no step
	Stepped   bool                   // some log has a step, of a number or without
	Planned   int64                  // steps of the job; 0: unknown
	Finished  *digest.At             // the trainer's record of the whole run, which ends it; nil: none, or steps came after
	Groups    []flightrecorder.Group // from the dumps of ranks; empty without dumps
	Stepping  map[int64]string       // the ranks with steps in the logs, each with its log; empty: no log tells ranks
}

// End is how a run ended.
type End struct {
	Kind     string     // a class of events, or a constant below
	Sentence string     // for the reader
	Certain  bool       // the evidence leaves a single explanation; its rank may be unknown
	Ranks    []int64    // global ranks that the evidence names as the cause; of a mismatch both sides
	Hosts    []string   // likewise
	Heard    int64      // ranks with a line about a wait, or with a dump; 0: no rank waited
	Of       int64      // of how many: ranks of the job, or of the groups in dumps; 0: not known
	Waited   float64    // GPU-seconds for which ranks stood in a collective; 0: unknown
	Advice   string     // for the reader
	Evidence []Evidence // at most maxEvidence lines, the first cause first
	Time     int64      // ns, of the first cause; 0: unknown
	Remark   string     // of a log that just stops: what the kernel says that need not be why, a sentence; "": nothing

	// InFlight is the group whose ranks all stood in Stuck when they wrote their dumps, though no log tells of a wait: a hang, or dumps of a job that ran; nil:
	// none.
	InFlight *flightrecorder.Group
}

// Evidence is a line of a log.
type Evidence struct {
	At   digest.At
	Text string
}

// The kinds of ends beside the classes of events.
const (
	KindSilent        = "silent"          // the log just stops
	KindWaiting       = "waiting"         // for other ranks or nodes, before the first step
	KindHealthy       = "healthy"         // training logged its end
	KindAfterEnd      = "after_end"       // errors behind the end of training
	KindSIGKILL       = "sigkill"         // of ClassSignal
	KindSIGTERM       = "sigterm"         // of ClassSignal
	KindNotUnderstood = "not_understood"  // a fatal line without a rule
	KindStuck         = "stuck_in_flight" // all ranks are in a collective, and none returns
)

// Failed reports whether the run ended in an error, by its logs.
func (e *End) Failed() bool {
	return e.Kind != KindSilent && e.Kind != KindWaiting && e.Kind != KindHealthy && e.Kind != KindAfterEnd
}

// sorted returns the events in the order of happening, and numbers the events: within a log by lines, between logs by times. An event without a time takes the
// latest time above in the same log, else 0: before all events of other logs.
func (c *Case) sorted() []*Event {
	all := make([]*Event, len(c.Events))
	for i := range c.Events {
		all[i] = &c.Events[i]
	}
	slices.SortStableFunc(all, func(a, b *Event) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Offset, b.At.Offset))
	})
	// Times that never go back within a log: the second sort then keeps the order of the log's lines.
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

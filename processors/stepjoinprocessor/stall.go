package stepjoinprocessor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/pulse"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/spans"
)

// silentAfter is the gap between two sweeps, normally a second, after which stalls are not judged: the process cannot have received anything meanwhile.
const silentAfter = 30 * time.Second

// suspendedAfter is the gap between two sweeps from which on the process counts as suspended; a sweep may also have waited for its spans to be accepted.
const suspendedAfter = 5 * time.Second

// noteInput is called with each sweep, and records outages: silentUntil, until when nothing could be received (while batches are refused, logs are not read),
// and resumed, the end of the last suspension. p.mu is held.
func (p *stepJoin) noteInput(now time.Time) {
	if p.refused || now.Sub(p.swept) > silentAfter { // so, too, at the first sweep
		p.silentUntil = now
	}
	if !p.swept.IsZero() && now.Sub(p.swept) > suspendedAfter {
		p.resumed = now
	}
	p.swept = now
}

// stalls adds to p.unsent an event for each run whose steps have stopped, once per stall. p.mu is held.
func (p *stepJoin) stalls(now time.Time) {
	p.noteInput(now)
	out := spans.NewBatch(scopeName, p.set.BuildInfo.Version)
	for _, r := range p.runs {
		if s, ok := r.Pulse.Stalls(now, p.silentUntil); ok {
			addStallEvent(out, r, s, now)
		}
	}
	for _, m := range out.Messages() {
		p.unsent = append(p.unsent, m.Traces)
	}
}

// addStallEvent adds the event of a run whose steps have stopped: "No step for 60 s, where one usually comes after 2 s; the last was step 20; AllReduce of
// communicator DP Group 0 has no record of rank 3: it hangs, …".
func addStallEvent(out *spans.Batch, r *facts.Run, s pulse.Stall, now time.Time) {
	trace, _ := spans.RunIDs(r.ID)
	at := now.UnixNano() // a moment; spans of events last a millisecond
	span := out.Add(spans.Resource{Service: r.Pulse.Service, RunID: r.ID, Time: spans.TimeObserved}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, spans.SpanEvent, []byte(events.ClassStalled), strconv.AppendInt(nil, s.Since, 10)), Name: spans.SpanEvent,
		Is: spans.KindEvent, Kind: ptrace.SpanKindInternal, Start: at, End: at + int64(time.Millisecond), Source: spans.TimeObserved, Attributes: 5,
	})
	text := fmt.Sprintf("No step for %s, where one usually comes after %s", human.Nanoseconds(s.Quiet), human.Nanoseconds(s.Usual))
	m := span.Attributes()
	if r.Pulse.Number >= 0 {
		text += "; the last was step " + strconv.FormatInt(r.Pulse.Number, 10)
		m.PutInt(spans.AttrIteration, r.Pulse.Number)
	}
	if r.Pulse.Behind != "" {
		text += "; " + r.Pulse.Behind
	}
	text += ": it hangs, saves, evaluates, or has ended without a word"
	m.PutStr(spans.AttrEventClass, string(events.ClassStalled))
	m.PutStr(spans.AttrEventForm, events.Stalled)
	m.PutStr(spans.AttrEventText, text)
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage(text)
}

// missingRanks returns a text about the ranks missing in a collective: "AllReduce of communicator DP Group 0 has no record of rank 3 and holds ranks 5, 7". A
// collective holds ranks (Stuck) with a record that did not complete.
func missingRanks(c *view.Collective) string {
	text := cmp.Or(c.Operation, "a collective")
	if name := cmp.Or(c.CommName, c.CommID); name != "" {
		text += " of communicator " + name
	}
	missing, stuck := ranksText(c.Missing), ranksText(c.Stuck)
	if missing != "" {
		text += " has no record of " + missing
	}
	if missing != "" && stuck != "" {
		text += " and"
	}
	if stuck != "" {
		text += " holds " + stuck
	}
	return text
}

// ranksText returns a list of ranks for a sentence; "": the list is empty.
func ranksText(list view.List) string {
	var numbers []int64
	for i := range list.Len() {
		if n := list.Int(i); n.OK {
			numbers = append(numbers, n.N)
		}
	}
	if len(numbers) == 0 {
		return ""
	}
	slices.Sort(numbers)
	return human.Ranks(numbers)
}

// planned returns the planned number of steps of the run, from the attributes of a step's span, else of its resource; 0: not logged.
func (r *reader) planned(span ptrace.Span) int64 {
	for _, m := range []pcommon.Map{span.Attributes(), r.attrs} {
		if v, ok := m.Get(spans.AttrIterations); ok {
			return v.Int()
		}
	}
	return 0
}

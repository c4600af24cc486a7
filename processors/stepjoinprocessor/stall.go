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

// noInput is the gap between two sweeps, normally a second, beyond which nothing was received meanwhile.
const noInput = 30 * time.Second

// still is the gap between two sweeps beyond which the process was suspended, or a sweep waited for its spans to be accepted.
const still = 5 * time.Second

// noteInput is called with each sweep, and notes outages: until when nothing could be received (silentUntil; while batches are refused, logs are not read), and
// when the process last went on after a suspension (resumed). p.mu is held.
func (p *stepJoin) noteInput(now time.Time) {
	if p.refused || now.Sub(p.swept) > noInput { // so, too, at the first sweep
		p.silentUntil = now
	}
	if !p.swept.IsZero() && now.Sub(p.swept) > still {
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
			stalled(out, r, s, now)
		}
	}
	for _, m := range out.Messages() {
		p.unsent = append(p.unsent, m.Traces)
	}
}

// stalled adds the event of a run whose steps have stopped: "No step for 60 s, where one usually comes after 2 s; the last was step 20; AllReduce of
// communicator DP Group 0 has no record of rank 3: it hangs, …".
func stalled(out *spans.Batch, r *facts.Run, s pulse.Stall, now time.Time) {
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

// lacks describes the ranks missing in a collective: "AllReduce of communicator DP Group 0 has no record of rank 3 and holds ranks 5, 7". The ranks held have a
// record, of a collective that had not completed.
func lacks(c *view.Collective) string {
	text := cmp.Or(c.Operation, "a collective")
	if name := cmp.Or(c.CommName, c.CommID); name != "" {
		text += " of communicator " + name
	}
	missing, stuck := ranks(c.Missing), ranks(c.Stuck)
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

// ranks returns a list of ranks for a sentence; "": none.
func ranks(list view.List) string {
	var of []int64
	for i := range list.Len() {
		if n := list.Int(i); n.OK {
			of = append(of, n.N)
		}
	}
	if len(of) == 0 {
		return ""
	}
	slices.Sort(of)
	return human.Ranks(of)
}

// planned returns how many steps the run is to have, by the step's span or resource; 0: not known.
func (r *reader) planned(span ptrace.Span) int64 {
	for _, m := range []pcommon.Map{span.Attributes(), r.attrs} {
		if v, ok := m.Get(spans.AttrIterations); ok {
			return v.Int()
		}
	}
	return 0
}

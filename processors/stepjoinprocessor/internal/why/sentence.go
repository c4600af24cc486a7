package why

import (
	"fmt"
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/cause"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/spans"
)

// subject returns the subject of the sentence: the given Subject, else a text made from name, kind and number.
func (w *Window) subject() string {
	switch {
	case w.Subject != "":
		return w.Subject
	case w.Name != "":
		return w.Name
	case w.Of == Pass:
		return "The pass"
	case w.Of == Batch:
		return "The batch"
	case w.Steps > 1 && w.Number >= 0:
		return fmt.Sprintf("Steps %d to %d", w.Number-w.Steps+1, w.Number)
	case w.Number >= 0:
		return "Step " + strconv.FormatInt(w.Number, 10)
	}
	return "The step"
}

// sentence returns the text of a verdict: "Step 17 took 3.2 s, 1.1 s more than usual (2.1 s): 1 s waiting for rank 3, 200 ms loading data; other parts took 100
// ms less." Without causes it names the missing log. less is by how much other parts were shorter, s; more has the parts that were longer, the longest first.
//
// All numbers are rounded to the digits of the duration before subtraction, so that the printed numbers add up.
func sentence(w *window, v *Verdict, less float64, more []change) string {
	s := grid(human.LastDigit(v.Value))
	b := append([]byte(w.subject()), " took "...)
	b = append(s.appendTime(b, v.Value), ", "...)
	excess := s.units(v.Value) - s.units(v.Usual)
	b = append(s.appendUnits(b, excess), " more than usual"...)
	switch time := &w.time; {
	case time[breakdown.Checkpoint] > 0 && time[breakdown.Evaluation] > 0:
		b = append(b, " with a checkpoint and an evaluation"...)
	case time[breakdown.Checkpoint] > 0:
		b = append(b, " with a checkpoint"...)
	case time[breakdown.Evaluation] > 0:
		b = append(b, " with an evaluation"...)
	}
	b = append(b, " ("...)
	b = append(s.appendTime(b, v.Usual), ')')
	if len(v.Causes) == 0 {
		if len(more) > 0 && more[0].kind != breakdown.Unattributed {
			b = append(s.appendTime(append(b, ": "...), more[0].seconds), ' ')
			b = appendWhat(b, more[0].kind, breakdown.Who{})
		}
		b = append(b, "; the logs do not say why: "...)
		b = v.Reason.Append(b, false)
		return string(append(b, '.'))
	}
	// rest is the excess without the causes, plus the shorter parts: printed as unexplained, or, if only from rounding, added to the first cause.
	shown := make([]int64, len(v.Causes))
	rest := excess
	for i := range v.Causes {
		shown[i] = s.units(v.Causes[i].Seconds)
		rest -= shown[i]
	}
	shorter := int64(0)
	if less > nothing*v.Excess {
		shorter = s.units(less)
	}
	rest += shorter
	unexplained := v.Unexplained > nothing*v.Excess && rest > 0
	if !unexplained {
		shown[0] += rest // a rest from rounding, or too small to mention
	}
	between := ": "
	for i := range v.Causes {
		b = v.Causes[i].append(append(b, between...), s, shown[i])
		between = ", "
	}
	if shorter > 0 {
		b = append(b, "; other parts took "...)
		b = append(s.appendUnits(b, shorter), " less"...)
	}
	if unexplained {
		b = append(b, "; "...)
		b = append(s.appendUnits(b, rest), " unexplained"...)
	}
	return string(append(b, '.'))
}

// append appends a cause, such as "1 s waiting for rank 3 on node-0 (its GPU 3 was held down by heat for 900 ms)". shown is the time of the cause in units of
// s.
func (c *Cause) append(b []byte, s grid, shown int64) []byte {
	b = append(s.appendUnits(b, shown), ' ')
	b = appendWhat(b, c.Kind, c.Who)
	if c.Note.Text == "" {
		return b
	}
	b = append(b, " ("...)
	switch { // whose GPU: of the rank named before, of another rank, or of a host
	case c.Who.HasRank:
		b = append(b, "its "...)
	case c.Note.Who.HasRank:
		b = append(appendRank(b, c.Note.Who), ": "...)
	case c.Note.Who.Host != "":
		b = append(append(b, c.Note.Who.Host...), ": "...)
	}
	b = append(append(b, c.Note.Text...), " for "...)
	return append(human.AppendSeconds(b, c.Note.Seconds), ')')
}

// appendWhat appends the activity and its origin, such as "waiting for rank 3 on node-0".
func appendWhat(b []byte, k breakdown.Kind, who breakdown.Who) []byte {
	return cause.Append(b, who.Part(k), whoOf(who), false)
}

// appendRank appends a rank, with the host if known.
func appendRank(b []byte, who breakdown.Who) []byte { return cause.AppendRank(b, whoOf(who), false) }

// whoOf converts an origin to the form of package cause.
func whoOf(who breakdown.Who) cause.Who {
	return cause.Who{Rank: who.Rank, HasRank: who.HasRank, Host: who.Host, Operation: who.Operation, Comm: who.Comm}
}

// reasonOf returns the reason why the logs do not explain the largest change.
func reasonOf(w *window, more []change) cause.Reason {
	r := cause.Reason{Of: missingLogOf(w, more), Trainer: w.Trainer}
	if r.Of == spans.ReasonClocksApart {
		r.Apart = w.Apart
	}
	return r
}

// missingLogOf returns the reason, as in spans.AttrCauseReason: by the largest change without detail, else by the first thing that the logs of the window do
// not contain; ReasonProfile: everything is known that logs can contain.
func missingLogOf(w *window, more []change) string {
	known := &w.known
	largest := breakdown.Unattributed
	for _, c := range more {
		if !c.detailed {
			largest = c.kind
			break
		}
	}
	switch largest {
	case breakdown.Wait, breakdown.Collective:
		return spans.ReasonSomeArrivals
	case breakdown.RPCReceive:
		return spans.ReasonServerTime
	case breakdown.RPCUnattributed:
		return spans.ReasonStageTime
	case breakdown.Compute:
		if known[breakdown.Wait] && w.Apart == 0 { // no rank was late: the devices themselves
			return spans.ReasonDevices
		}
	}
	switch {
	case w.Apart > 0:
		return spans.ReasonClocksApart
	case w.Of == Pass:
		return spans.ReasonStageTime
	case !known[breakdown.Wait] && w.World != 1:
		return spans.ReasonArrivals
	case w.Of == Step && !known[breakdown.DataLoading] && !known[breakdown.Compute]:
		return spans.ReasonTimers
	case w.Of == Batch && !known[breakdown.DataLoading] && !known[breakdown.Checkpoint] && !known[breakdown.Evaluation]:
		return spans.ReasonStepTimers
	default:
		return spans.ReasonProfile
	}
}

// grid is the unit, s, to which all times of a sentence are rounded before addition, such as 0.01: so the printed numbers add up.
type grid float64

// units returns a time, rounded, as a number of units.
func (g grid) units(seconds float64) int64 { return int64(math.Round(seconds / float64(g))) }

// appendUnits appends a time given as a number of units.
func (g grid) appendUnits(b []byte, pieces int64) []byte {
	return human.AppendSeconds(b, float64(pieces)*float64(g))
}

// appendTime appends a time in s, rounded to the unit.
func (g grid) appendTime(b []byte, seconds float64) []byte { return g.appendUnits(b, g.units(seconds)) }

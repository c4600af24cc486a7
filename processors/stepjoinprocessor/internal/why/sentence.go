package why

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/cause"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// arrivals is what NCCL Inspector writes for the asking: without its event traces it says no times.
const arrivals = "which rank was late cannot be said; set NCCL_INSPECTOR_ENABLE=1 and NCCL_INSPECTOR_DUMP_VERBOSE=1"

// sentence says what a verdict means. Without causes it says what is missing.
func sentence(w *window, v *Verdict, less float64, more []change) string {
	s := grid(human.LastDigit(v.Value))
	b := append([]byte(w.Subject), " took "...)
	b = append(s.append(b, v.Value), ", "...)
	excess := s.round(v.Value) - s.round(v.Usual)
	b = append(s.put(b, excess), " more than usual"...)
	switch time := &w.time; {
	case time[breakdown.Checkpoint] > 0 && time[breakdown.Evaluation] > 0:
		b = append(b, " with a checkpoint and an evaluation"...)
	case time[breakdown.Checkpoint] > 0:
		b = append(b, " with a checkpoint"...)
	case time[breakdown.Evaluation] > 0:
		b = append(b, " with an evaluation"...)
	}
	b = append(b, " ("...)
	b = append(s.append(b, v.Usual), ')')
	if len(v.Causes) == 0 {
		b = append(b, ", which its logs do not explain"...)
		if len(more) > 0 {
			b = append(b, ": "...)
			b = append(s.append(b, more[0].seconds), ' ')
			if more[0].kind == breakdown.Unattributed {
				b = append(b, "in what no log tells of"...)
			} else {
				b = appendWhat(b, more[0].kind, breakdown.Who{})
			}
		}
		b = append(b, "; "...)
		b = append(b, missing(w, more)...)
		return string(append(b, '.'))
	}
	shown := make([]int64, len(v.Causes))
	rest := excess
	for i := range v.Causes {
		shown[i] = s.round(v.Causes[i].Seconds)
		rest -= shown[i]
	}
	shorter := int64(0)
	if less > nothing*v.Excess {
		shorter = s.round(less)
	}
	rest += shorter
	unexplained := v.Unexplained > nothing*v.Excess && rest > 0
	if !unexplained {
		shown[0] += rest // what is left by rounding, or is not worth a word
	}
	between := ": "
	for i := range v.Causes {
		b = v.Causes[i].append(append(b, between...), s, shown[i])
		between = ", "
	}
	if shorter > 0 {
		b = append(b, "; other parts took "...)
		b = append(s.put(b, shorter), " less"...)
	}
	if unexplained {
		b = append(b, "; "...)
		b = append(s.put(b, rest), " unexplained"...)
	}
	return string(append(b, '.'))
}

func (c *Cause) append(b []byte, s grid, shown int64) []byte {
	b = append(s.put(b, shown), ' ')
	b = appendWhat(b, c.Kind, c.Who)
	if c.Note.Text == "" {
		return b
	}
	b = append(b, " ("...)
	switch {
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

// appendWhat says what went on, and who was behind it.
func appendWhat(b []byte, k breakdown.Kind, who breakdown.Who) []byte {
	return cause.Append(b, who.Part(k), whoOf(who), false)
}

func appendRank(b []byte, who breakdown.Who) []byte { return cause.AppendRank(b, whoOf(who), false) }

func whoOf(who breakdown.Who) cause.Who {
	return cause.Who{Rank: who.Rank, HasRank: who.HasRank, Host: who.Host, Operation: who.Operation, Comm: who.Comm}
}

// missing says which log would explain the change that is largest.
func missing(w *window, more []change) string {
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
		return "no log says when every rank came to its collectives: " + arrivals
	case breakdown.RPCReceive:
		return "no column of the server's time: waiting for it cannot be told from the transport; log the server's time"
	case breakdown.RPCUnattributed:
		return "no column of the pass tells of the rest; log the time of each stage"
	case breakdown.Compute:
		if known[breakdown.Wait] && w.Apart == 0 {
			return "no rank alone was late: profile such a window, and look at the clocks of the GPUs"
		}
	}
	switch {
	case w.Apart > 0:
		return "the clocks of its hosts are " + human.Seconds(w.Apart) + " apart, so that their logs cannot be laid over one another: set the clocks by NTP or PTP"
	case w.Of == Pass:
		return "no column of the pass tells of the rest; log the time of each stage"
	case !known[breakdown.Wait]:
		return "no log says when ranks came to their collectives: " + arrivals
	case w.Of == Step && !known[breakdown.DataLoading] && !known[breakdown.Compute]:
		return "no timers of the step: loading data cannot be told from computing; set --timing-log-level 2 in Megatron"
	case w.Of == Batch && !known[breakdown.DataLoading] && !known[breakdown.Checkpoint] && !known[breakdown.Evaluation]:
		return "no timers of its step: loading data, a checkpoint and an evaluation cannot be told apart; log each training step with its timers"
	default:
		return "every log that could tell was read: profile such a window"
	}
}

// grid is what all times of a sentence are rounded to, s, before they are added: those that are read add up.
type grid float64

// round is a time in pieces of the grid.
func (g grid) round(seconds float64) int64 { return int64(math.Round(seconds / float64(g))) }

func (g grid) put(b []byte, pieces int64) []byte {
	return human.AppendSeconds(b, float64(pieces)*float64(g))
}

func (g grid) append(b []byte, seconds float64) []byte { return g.put(b, g.round(seconds)) }

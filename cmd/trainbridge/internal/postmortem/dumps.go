package postmortem

import (
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/internal/human"
)

// dumps concludes from the dumps of PyTorch's Flight Recorder why ranks waited in a collective. First choice is the rank behind: a rank whose dump lacks a
// collective enqueued by the rest of its group, and that waits in no other group. Failing a rank behind: groups called in different orders, different
// collectives, the only rank without a dump, or a collective from which nobody returns. e is the event of the wait; nil: no log tells of a wait, and the last
// two are not concluded. false: the dumps do not tell, or none exist.
func (j *judge) dumps(e *Event) (end End, ok bool) {
	// Taken from all groups together.
	var behind, elsewhere, missing, ranks []int64
	var of *flightrecorder.Group // the smallest group with ranks behind, whose collective the sentence names
	var stuck, mismatch *flightrecorder.Collective
	for i := range j.Groups {
		g := &j.Groups[i]
		ranks = merge(ranks, g.Ranks)
		missing = merge(missing, g.Missing)
		elsewhere = merge(elsewhere, g.Elsewhere)
		if len(g.Behind) > 0 && len(g.Ranks) > 1 && !apart(g) {
			behind = merge(behind, g.Behind)
			if of == nil || len(g.Ranks) < len(of.Ranks) {
				of = g
			}
		}
		if g.Mismatch != nil && mismatch == nil {
			mismatch = g.Mismatch
		}
		if g.Stuck != nil && stuck == nil {
			stuck = g.Stuck
		}
	}
	if len(ranks) == 0 {
		return End{}, false
	}
	end = End{Heard: int64(len(ranks) - len(missing)), Of: int64(len(ranks))}
	found := "dumps of " + human.Thousands(end.Heard) + " of " + human.Thousands(end.Of) + " ranks"
	culprits := slices.DeleteFunc(slices.Clone(behind), func(r int64) bool { return slices.Contains(elsewhere, r) })
	// The rank of a missing dump may be the furthest behind: only the case of a single missing dump allows for a missing dump.
	switch {
	case len(culprits) > 0 && len(missing) == 0:
		end.Kind, end.Ranks, end.Certain = string(events.ClassBehind), culprits, true
		end.Sentence = capital(human.Ranks(culprits)) + " did not finish enqueueing " + operation(of) + ", in which the others waited (" + found + ")."
		end.Advice = "Look at what that rank did last: its own log, a stack trace (py-spy dump)."
	case len(behind) > 0 && len(missing) == 0: // each rank behind waits in another group
		end.Kind = string(events.ClassMismatch)
		end.Sentence = capital(human.Ranks(behind)) + " wait for each other in groups that they call in different orders (" + found +
			"); no log says which of them is wrong."
		end.Advice = "Compare the order in which these ranks call their groups."
	case mismatch != nil && len(missing) == 0:
		end.Kind = string(events.ClassMismatch)
		var differ []int64
		for i := range mismatch.Differ {
			if mismatch.Differ[i].What != flightrecorder.State { // how far a rank has come is no other call
				differ = append(differ, int64(mismatch.Differ[i].Rank))
			}
		}
		slices.Sort(differ)
		end.Sentence = "Ranks called different collectives at number " + human.Thousands(mismatch.Seq) + ": " +
			human.Ranks([]int64{int64(mismatch.Reference)}) + " " + name(&mismatch.Operation) + ", " + human.Ranks(differ) + " " + other(mismatch) +
			" (" + found + "); no log says which of them is wrong."
		end.Advice = "Compare what both sides do in that step: a branch, a shape, a data type."
	case len(missing) == 1 && len(behind) == 0 && e != nil && len(ranks) > 2: // with two ranks, the wait of one says nothing of the other
		end.Kind, end.Ranks = string(events.ClassTimeout), missing
		end.Sentence = "Ranks waited in a collective, perhaps for " + human.Ranks(missing) + ", the only one without a dump (" + found + ")."
		end.Advice = "Look at what that rank did last: its own log, a stack trace (py-spy dump)."
	case len(missing) == 0 && stuck != nil && e != nil:
		end.Kind = KindStuck
		end.Sentence = "All ranks have enqueued " + name(&stuck.Operation) + " and none returned (" + found + "): no rank is behind, so the network or a GPU hangs."
		end.Advice = "Look at the links and the GPUs of these ranks: NCCL's log, ibstat, the kernel log."
	default:
		return End{}, false
	}
	return end, true
}

// apart reports whether the ranks of a group called different collectives before a rank lacked one, and never the same again: then numbers count different
// calls, and a lower number says nothing. NCCL completes small collectives that differ.
func apart(g *flightrecorder.Group) bool {
	return g.Mismatch != nil && !g.WentOn && (g.Stuck == nil || g.Mismatch.Seq <= g.Stuck.Seq)
}

// other says how the operation of the first differing rank differs from the reference's.
func other(c *flightrecorder.Collective) string {
	for i := range c.Differ {
		switch d := &c.Differ[i]; {
		case d.What == flightrecorder.Type && name(&d.Entry) != name(&c.Operation):
			return name(&d.Entry)
		case d.What == flightrecorder.Sizes:
			return "with other sizes"
		case d.What == flightrecorder.Dtypes:
			return "with other data types"
		}
	}
	return "another"
}

// dumpsAlone is the conclusion from dumps where no log has an error: ranks that are behind. All else in dumps is said only if a log tells of a wait.
func (j *judge) dumpsAlone() (End, bool) {
	end, ok := j.dumps(nil)
	return end, ok && end.Kind == string(events.ClassBehind)
}

// inFlight is the largest group of which all ranks enqueued the same collective and none completed the call; nil: none.
func (j *judge) inFlight() (of *flightrecorder.Group) {
	for i := range j.Groups {
		g := &j.Groups[i]
		all := g.Stuck != nil && !g.Stateless && len(g.Missing)+len(g.Behind) == 0 && g.Mismatch == nil && len(g.Ranks) > 1
		if all && len(g.Stuck.Enqueued) == len(g.Ranks) && len(g.Stuck.Completed) == 0 && (of == nil || len(g.Ranks) > len(of.Ranks)) {
			of = g
		}
	}
	return of
}

// Operation describes the collective in which the ranks of InFlight stood.
func (e *End) Operation() string { return operation(e.InFlight) }

// merge adds ranks to a sorted set of ranks.
func merge(all []int64, more []int32) []int64 {
	for _, r := range more {
		all = append(all, int64(r))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// operation describes the collective in which the ranks of a group wait: "all_reduce 17 of group 1 tensor_parallel".
func operation(g *flightrecorder.Group) string {
	c := g.Stuck
	if c == nil {
		c = g.Latest
	}
	if c == nil {
		return "a collective"
	}
	return name(&c.Operation) + " " + human.Thousands(c.Seq) + " of group " + strings.TrimSpace(g.Name+" "+g.Desc)
}

// name is the name of an operation without its backend: "all_reduce" of "nccl:all_reduce".
func name(o *flightrecorder.Operation) string {
	_, n, ok := strings.Cut(o.Name, ":")
	if !ok {
		n = o.Name
	}
	return n
}

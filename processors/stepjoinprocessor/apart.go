package stepjoinprocessor

import (
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
)

// clearRatio is how many times longer than the clock offset of hosts a wait must be to count. The length of a wait comes from durations, independent of clocks;
// only the assignment to a window needs clocks. The middle of a wait this long is in the same window by any of the clocks.
const clearRatio = 4

// clocksApart reports whether the clocks of the run's hosts differ too much (Config.Tolerance) to place an event of another host within a window.
func (d *deriver) clocksApart(r *facts.Run) bool { return r.Apart > int64(d.p.cfg.Tolerance) }

// reach returns how far, ns, a leaf may begin outside of its window: slack; with clocks apart r.Apart, if longer, but no more than 1/clearRatio of the window:
// a wait counts only if longer than clearRatio × r.Apart (addLongWait), and no shorter window has such a wait.
func (d *deriver) reach(r *facts.Run, w *facts.Window) int64 {
	if !d.clocksApart(r) {
		return slack
	}
	return max(slack, min(r.Apart, (w.End-w.Start)/clearRatio))
}

// slack is the largest distance of a leaf's beginning from a window with synchronized clocks, ns: some logs have whole seconds.
const slack = int64(1e9)

// addLongWait adds what is certain about a collective although the clocks of hosts are apart: a wait for the last rank that is long enough to be in window w,
// of group g, by any of the clocks. Of a collective with a shorter wait, only the absence of a long wait is known. inside: the collective is known to belong to
// g.
func (d *deriver) addLongWait(r *facts.Run, g *facts.Group, w *facts.Window, l *facts.Leaf, inside bool) {
	d.unsure = true
	arrivalsKnown := l.Kind == breakdown.Collective && l.Late >= 0 && !l.Flags.Has(facts.Timeless)
	if !arrivalsKnown {
		return
	}
	if l.Late <= clearRatio*r.Apart {
		d.pieces = append(d.pieces, breakdown.Piece{Kind: breakdown.Wait}) // of length 0: no rank was late
		return
	}
	if !inside {
		// The middle of the wait decides: twice the clocks' difference is cut off on either side.
		at := facts.Place{Start: l.Start + clearRatio/2*r.Apart, End: l.Start + l.Late - clearRatio/2*r.Apart, Name: l.Name, Host: l.Host, PID: l.PID}
		if owner, _, _ := d.resolver.Resolve(r, at); !d.liesIn(r, owner, g) {
			return
		}
	}
	moved := *l // into the window, where the wait is by the clock of the window's log
	moved.Start = max(min(l.Start, w.End-l.Late), w.Start)
	moved.End = min(moved.Start+l.Late, w.End)
	p := pieceOf(l.Kind, moved.Start, moved.End, l.Flags)
	p.Who = breakdown.Who{Comm: r.Text(l.Comm), Operation: r.Text(l.Name)}
	d.addWait(r, &moved, p)
}

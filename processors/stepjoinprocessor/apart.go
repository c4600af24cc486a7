package stepjoinprocessor

import (
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
)

// clearly is how many times the difference of the hosts' clocks a wait lasts at least, where the clocks are apart. How long a rank was waited for is told by
// durations, and needs no clock that agrees with another; only the window needs one. The middle of a wait as long lies in one window by any of the clocks.
const clearly = 4

// apart says whether the clocks of the run's hosts differ so much that it is not known at which moment of a window something on another host went on.
func (d *deriver) apart(r *facts.Run) bool { return r.Apart > int64(d.p.cfg.Tolerance) }

// reach is how far from a window its leaves may begin, ns. A wait that is told fits in its window, whatever the clocks are.
func (d *deriver) reach(r *facts.Run, w *facts.Window) int64 {
	if !d.apart(r) {
		return slack
	}
	return max(slack, min(r.Apart, (w.End-w.Start)/clearly))
}

// slack is how far from a window its leaves may begin where clocks agree, ns: some logs have whole seconds.
const slack = int64(1e9)

// despite adds what is known of a collective although clocks are apart: the wait for its last rank, where that is long enough. That nobody was waited for as
// long is known of the others. within says that the collective is known to be of the window's group.
func (d *deriver) despite(r *facts.Run, g *facts.Group, w *facts.Window, l *facts.Leaf, within bool) {
	if !d.apart(r) || l.Kind != breakdown.Collective || l.Late < 0 || l.Flags.Has(facts.Timeless) {
		return
	}
	if l.Late <= clearly*r.Apart {
		d.pieces = append(d.pieces, breakdown.Piece{Kind: breakdown.Wait})
		return
	}
	if !within {
		at := facts.Place{Start: l.Start + clearly/2*r.Apart, End: l.Start + l.Late - clearly/2*r.Apart, Name: l.Name, Host: l.Host, PID: l.PID}
		if owner, _, _ := d.resolver.Resolve(r, at); !d.within(r, owner, g) {
			return
		}
	}
	moved := *l // into the window: by the clock of the window's log the wait is there
	moved.Start = max(min(l.Start, w.End-l.Late), w.Start)
	moved.End = min(moved.Start+l.Late, w.End)
	p := pieceOf(l.Kind, moved.Start, moved.End, l.Flags)
	p.Who = breakdown.Who{Comm: r.Text(l.Comm), Operation: r.Text(l.Name)}
	d.wait(r, &moved, p)
}

package facts

import (
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// Approximate sizes in bytes; groupBytes without content.
const (
	LeafBytes   = 136
	groupBytes  = 360
	windowBytes = 96
	ownBytes    = 128
	stageBytes  = 40
	plainBytes  = 160

	unplacedBytes = 56
)

// Bytes returns the approximate size of the group.
func (g *Group) Bytes() int64 {
	return groupBytes + int64(len(g.Windows))*windowBytes + int64(len(g.Own))*ownBytes + g.staged*stageBytes + int64(len(g.Unplaced))*unplacedBytes
}

// Bytes returns the approximate size of the run.
func (r *Run) Bytes() int64 {
	return r.bytes + int64(len(r.shares))*128 + int64(len(r.names))*64 + int64(len(r.plain))*plainBytes + int64(len(r.processes))*processBytes
}

// Forget drops groups closed before a time, and leaves and plain steps that came before.
func (r *Run) Forget(before time.Time) {
	for len(r.done) > 0 && r.done[0].Last.Before(before) {
		r.forgetGroup()
	}
	// Of leaves only the number that came before is known: as many of the oldest are dropped.
	n := 0
	for len(r.arrived) > 0 && r.arrived[0].at.Before(before) {
		n += r.arrived[0].n
		r.arrived = r.arrived[1:]
	}
	r.lose(n)
	old := slices.IndexFunc(r.plain, func(p plain) bool { return !p.at.Before(before) })
	if old < 0 {
		old = len(r.plain)
	}
	r.plain = slices.Delete(r.plain, 0, old)
}

// forgetGroup drops the group closed first.
func (r *Run) forgetGroup() {
	g := r.done[0]
	r.done[0] = nil
	r.done = r.done[1:]
	g.gone, r.sorted = true, false
	r.forgetShares(g.Own)
	delete(r.Groups, g.ID)
	r.bytes -= g.Bytes()
}

// ShedGroups drops the groups closed first, for lack of room, until over bytes are free, and marks the windows that may have needed them.
func (r *Run) ShedGroups(over int64) (freed int64) {
	for freed < over && len(r.done) > 0 {
		g := r.done[0]
		freed += g.Bytes()
		r.Loses(g.End, spans.PartialRoom)
		r.forgetGroup()
	}
	return freed
}

// Loses records that facts up to end are lost, and why.
func (r *Run) Loses(end int64, why string) {
	if end > r.Lost {
		r.Lost, r.LostBy = end, why
	}
}

// Shed drops the oldest leaves, for lack of room.
func (r *Run) Shed(n int) {
	n = min(n, len(r.leaves))
	// The dropped leaves are no longer counted as arrived: Forget would drop as many again.
	for left := n; left > 0 && len(r.arrived) > 0; {
		take := min(left, r.arrived[0].n)
		r.arrived[0].n -= take
		if left -= take; r.arrived[0].n == 0 {
			r.arrived = r.arrived[1:]
		}
	}
	r.lose(n)
}

// lose drops the n leaves that begin first, which are about those that came first. Windows that may need them, those of late steps, become partial (Loses).
func (r *Run) lose(n int) {
	if n <= 0 {
		return
	}
	r.Sort()
	n = min(n, len(r.leaves))
	for i := range r.leaves[:n] {
		r.Loses(r.leaves[i].End, spans.PartialRoom)
	}
	r.forgetShares(r.leaves[:n])
	r.leaves = r.leaves[:copy(r.leaves, r.leaves[n:])]
	r.ordered = len(r.leaves)
	r.bytes -= int64(n) * LeafBytes
}

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
	// When a single leaf came is unknown; only how many came by then. As many of the oldest are dropped.
	n := 0
	for len(r.arrived) > 0 && r.arrived[0].at.Before(before) {
		n += r.arrived[0].n
		r.arrived = r.arrived[1:]
	}
	r.dropLeaves(n)
	old := slices.IndexFunc(r.plain, func(p plain) bool { return !p.at.Before(before) })
	if old < 0 {
		old = len(r.plain)
	}
	r.plain = slices.Delete(r.plain, 0, old)
}

// forgetGroup drops the group that was closed first.
func (r *Run) forgetGroup() {
	g := r.done[0]
	r.done[0] = nil
	r.done = r.done[1:]
	g.gone, r.sorted = true, false
	r.forgetShares(g.Own)
	delete(r.Groups, g.ID)
	r.bytes -= g.Bytes()
}

// ShedGroups drops the groups closed first, for lack of memory, until wanted bytes are free, and marks windows that may have needed them as partial (MarkLost).
// It returns the number of freed bytes.
func (r *Run) ShedGroups(wanted int64) (freed int64) {
	for freed < wanted && len(r.done) > 0 {
		g := r.done[0]
		freed += g.Bytes()
		r.MarkLost(g.End, spans.PartialRoom)
		r.forgetGroup()
	}
	return freed
}

// MarkLost records that facts that end up to end, ns, may be lost, and the reason: windows that begin earlier are partial.
func (r *Run) MarkLost(end int64, why string) {
	if end > r.Lost {
		r.Lost, r.LostBy = end, why
	}
}

// Shed drops the n oldest leaves, for lack of memory.
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
	r.dropLeaves(n)
}

// dropLeaves drops the n leaves that begin first, which are about the leaves that came first. Windows that may have needed them, late ones, become partial
// (MarkLost).
func (r *Run) dropLeaves(n int) {
	if n <= 0 {
		return
	}
	r.Sort()
	n = min(n, len(r.leaves))
	for i := range r.leaves[:n] {
		r.MarkLost(r.leaves[i].End, spans.PartialRoom)
	}
	r.forgetShares(r.leaves[:n])
	r.leaves = r.leaves[:copy(r.leaves, r.leaves[n:])]
	r.ordered = len(r.leaves)
	r.bytes -= int64(n) * LeafBytes
}

package flightrecorder

import (
	"cmp"
	"iter"
	"slices"
)

// end is a send or a receive.
type end struct {
	record
	rank     int32 // global
	src, dst int   // ranks of the group
}

// messages yields the sends and receives of a group whose other end was not recorded or differs, in the order of their numbers. The n-th send from one rank to
// another and the n-th receive there are one message. A pair with a dump that is missing or lost its first entries is left out, for the count would be
// wrong, and so is a receive from any rank.
func (a *analysis) messages(g *group) iter.Seq[*Collective] {
	type pair struct{ src, dst int }
	sends, receives := map[pair][]end{}, map[pair][]end{}
	for _, rank := range g.ranks {
		m := g.members[rank]
		if m == nil {
			continue
		}
		for _, rec := range m.entries[1] {
			sig := &a.all[rec.sig]
			if sig.src < 0 || sig.dst < 0 || sig.src >= len(g.ranks) || sig.dst >= len(g.ranks) {
				continue
			}
			e, p := end{rec, rank, sig.src, sig.dst}, pair{sig.src, sig.dst}
			switch {
			case sig.op == "send" && g.ranks[sig.src] == rank:
				sends[p] = append(sends[p], e)
			case sig.op == "recv" && g.ranks[sig.dst] == rank:
				receives[p] = append(receives[p], e)
			}
		}
	}
	var odd []*Collective
	for _, both := range [2][2]map[pair][]end{{sends, receives}, {receives, sends}} { // the sends with their receives, and the other way round
		for p, own := range both[0] {
			other := both[1][p]
			peer := g.ranks[p.dst] // the rank of the other end
			if own[0].rank == peer {
				peer = g.ranks[p.src]
			}
			m := g.members[peer]
			if m == nil || m.dropped || g.members[own[0].rank].dropped {
				continue
			}
			for i, e := range own {
				if i >= len(other) {
					c := a.message(e)
					c.Lacking = []int32{peer}
					odd = append(odd, c)
				} else if e.rank == g.ranks[p.src] && p.src != p.dst { // compared once, from the sender's side; a rank's messages to itself are not
					if what := a.all[e.sig].pairs(&a.all[other[i].sig]); what != Same {
						c := a.message(e)
						c.came(peer, other[i].record)
						c.Differ = []Difference{{Rank: peer, What: what, Entry: a.all[other[i].sig].operation(other[i].state)}}
						odd = append(odd, c)
					}
				}
			}
		}
	}
	slices.SortFunc(odd, func(x, y *Collective) int {
		return cmp.Or(cmp.Compare(x.Seq, y.Seq), cmp.Compare(x.Reference, y.Reference), cmp.Compare(x.Name, y.Name))
	})
	return slices.Values(odd)
}

// message makes the Collective of a send or a receive.
func (a *analysis) message(e end) *Collective {
	c := &Collective{Seq: e.seq, P2P: true, Reference: e.rank, Operation: a.all[e.sig].operation(e.state), TimeoutMS: a.all[e.sig].timeoutMS}
	c.came(e.rank, e.record)
	return c
}

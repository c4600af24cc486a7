package breakdown

import "github.com/trainbridge/trainbridge/spans"

// Part returns the value of spans.AttrStepPart for time of a kind with this origin: the trainer's own name of the part, or the kind; for a collective that
// lacks a rank's record a name of its own, because the time may be the network's or the rank's.
func (w Who) Part(k Kind) string {
	if w.Timer != "" {
		return w.Timer
	}
	if k == Collective && w.Unrecorded {
		return spans.PartCollectiveUnheard
	}
	return k.String()
}

// LacksRanks reports whether most of the time in collectives of a communicator and operation, or in all if who names none, is of collectives that lack a rank.
func (b *Breakdown) LacksRanks(who Who) bool {
	all, lacking := 0.0, 0.0
	for _, p := range b.Collectives {
		isAnother := p.Who.Comm != who.Comm || p.Who.Operation != who.Operation
		if (who.Comm != "" || who.Operation != "") && isAnother {
			continue
		}
		all += p.Seconds
		if p.Who.Unrecorded {
			lacking += p.Seconds
		}
	}
	return lacking > all/2
}

package breakdown

import "github.com/trainbridge/trainbridge/spans"

// Part returns the value of spans.AttrStepPart for time of a kind with this origin: the trainer's name of the part if known, else the kind. A collective
// without a record of every rank has a name of its own, because the time may be of the network or of the missing rank.
func (w Who) Part(k Kind) string {
	if w.Timer != "" {
		return w.Timer
	}
	if k == Collective && w.Unrecorded {
		return spans.PartCollectiveUnheard
	}
	return k.String()
}

// LacksRanks reports whether most of the time in collectives is of collectives without a record of every rank. who selects the communicator and operation; with
// neither, every collective counts.
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

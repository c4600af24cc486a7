package breakdown

import "github.com/trainbridge/trainbridge/spans"

// Part is the value of spans.AttrStepPart of a cause: time in a collective is the network's, or of a rank without a log.
func (w Who) Part(k Kind) string {
	if w.Timer != "" {
		return w.Timer
	}
	if k == Collective && w.Unrecorded {
		return spans.PartCollectiveUnheard
	}
	return k.String()
}

// LacksRanks says whether most of the time in collectives of a communicator and operation, or in all if who names none, is of collectives that lack a rank.
func (b *Breakdown) LacksRanks(who Who) bool {
	all, lacking := 0.0, 0.0
	for _, p := range b.Collectives {
		if (who.Comm != "" || who.Operation != "") && (p.Who.Comm != who.Comm || p.Who.Operation != who.Operation) {
			continue
		}
		all += p.Seconds
		if p.Who.Unrecorded {
			lacking += p.Seconds
		}
	}
	return lacking > all/2
}

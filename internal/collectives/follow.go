package collectives

import (
	"strconv"

	"github.com/trainbridge/trainbridge/internal/collectives/links"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// linksEvery is how many collectives of a run lie between two looks at its links.
const linksEvery = 64

// follow adds up the data that went from rank to rank.
func (r *run) follow(c *Collective) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.rank >= 0 && p.rank <= MaxRank {
			r.ranks[p.rank] = p.src.node
		}
		if p.more != nil {
			r.followPart(c, p)
		}
	}
	if r.closed%linksEvery == 0 {
		r.hot, r.slow = nameLinks(r.links.Hot()), nameLinks(r.links.Slow())
		c.hotLinks, c.slowLinks = r.hot, r.slow
	}
}

// followPart adds a record's traffic to the link between two ranks, if it has any, and to the link between their hosts.
func (r *run) followPart(c *Collective, p *part) {
	m := p.more
	src, dst := m.sourceRank, m.destRank
	if src < 0 && m.peer >= 0 && c.kind == op.Send {
		src, dst = p.rank, m.peer
	}
	if src < 0 || dst < 0 || c.proxy && src != p.rank || p.state != op.Completed { // both ends of a transfer have a proxy
		return
	}
	switch {
	case c.size > 0 && p.duration > 0:
		r.links.Add(src, dst, c.size, p.duration)
	case m.sends > 0:
		r.links.AddBandwidth(src, dst, m.linkBandwidth)
	default:
		return
	}
	r.moved = true
	if c.size <= 0 {
		return
	}
	from := p.src.node
	if at, ok := r.ranks[src]; ok {
		from = at
	}
	if to, ok := r.ranks[dst]; ok && from >= 0 && to >= 0 {
		r.between.Add(from, to, c.size, max(p.duration, 0))
	}
}

func nameLinks(pairs []links.Pair) (names []string) {
	for _, l := range pairs {
		names = append(names, strconv.Itoa(int(l.Src))+"→"+strconv.Itoa(int(l.Dst)))
	}
	return names
}

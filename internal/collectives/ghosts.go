package collectives

// ghosts remembers collectives that left without all their ranks, so that records that come later join their traces instead of making new ones.
// The oldest are forgotten.
type ghosts struct {
	set    map[ghost]bool // whether it was sent
	ring   []ghost
	next   int
	tracks trackKey
}

// trackKey is the number of a track.
type trackKey uint32

type ghost struct {
	track trackKey
	seq   uint64
}

const maxGhosts = 1 << 16

func newGhosts() ghosts { return ghosts{set: make(map[ghost]bool)} }

// track makes the key of a sequence.
func (g *ghosts) track() trackKey {
	g.tracks++
	return g.tracks
}

func (g *ghosts) has(track trackKey, seq uint64) (sent, ok bool) {
	if len(g.set) == 0 {
		return false, false
	}
	sent, ok = g.set[ghost{track, seq}]
	return sent, ok
}

func (g *ghosts) put(track trackKey, seq uint64, sent bool) {
	e := ghost{track, seq}
	_, ok := g.set[e]
	g.set[e] = sent
	if ok {
		return
	}
	if len(g.ring) < maxGhosts {
		g.ring = append(g.ring, e)
		return
	}
	delete(g.set, g.ring[g.next])
	g.ring[g.next] = e
	g.next = (g.next + 1) % maxGhosts
}

package ncclreceiver

// ghosts remembers collectives that left without all their ranks, so that what comes later joins their traces instead of making new ones.
// The oldest are forgotten.
type ghosts struct {
	set    map[ghost]bool // whether it was sent
	ring   []ghost
	next   int
	tracks ghostTrack
}

type ghostTrack uint32

type ghost struct {
	track ghostTrack
	seq   uint64
}

const maxGhosts = 1 << 16

func newGhosts() ghosts { return ghosts{set: make(map[ghost]bool)} }

// track makes the key of a sequence.
func (g *ghosts) track() ghostTrack {
	g.tracks++
	return g.tracks
}

func (g *ghosts) has(track ghostTrack, seq uint64) (sent, ok bool) {
	if len(g.set) == 0 {
		return false, false
	}
	sent, ok = g.set[ghost{track, seq}]
	return sent, ok
}

func (g *ghosts) put(track ghostTrack, seq uint64, sent bool) {
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

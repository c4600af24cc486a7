package collectives

import (
	"fmt"
	"sync"

	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/spans"
)

// Settings are the settings of a Joiner.
type Settings struct {
	JoinConfig
	// Ranks are the ranks whose records come. Empty: all ranks.
	Ranks []int32
	// HideHosts keeps hosts out of the names of spans.
	HideHosts bool
	// Series bounds the series of a run's metrics.
	Series int
}

// Joiner joins the ranks' records of collectives. H is what a record came by, and is given back when its collective leaves: a lent line, an offset. Its methods
// and the methods of its inputs are safe for concurrent use, but not two methods of one Input.
type Joiner[H any] struct {
	mu sync.Mutex // guards all below, and all that this reaches: runs, communicators, collectives that wait
	joiner
	held holds[H]
	came []H // scratch: the H values of the collective that leaves
}

// New makes a Joiner.
func New[H any](s Settings) *Joiner[H] {
	return &Joiner[H]{joiner: newJoiner(s)}
}

// Waiting is the memory of the collectives that wait, in bytes, about.
func (j *Joiner[H]) Waiting() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes
}

// Learned appends the points that a batch of collectives taught: scores of ranks, offsets of clocks, traffic of links. It is called once for each batch,
// when the batch is whole and before its spans are made: the first collective of a run that is sent opens the run.
func (j *Joiner[H]) Learned(points []Point, batch []*Collective) []Point {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.learned(points, batch)
}

// Free lets collectives that were taken be used again.
func (j *Joiner[H]) Free(batch []*Collective) {
	for _, c := range batch {
		if cap(c.parts) <= usualParts {
			c.reset()
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range batch {
		if cap(c.parts) <= usualParts {
			j.keep(c)
		}
	}
}

// Leftover returns an error that says what waits or is held; nil: nothing, as it must be when all records have left.
func (j *Joiner[H]) Leftover() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	tracks := 0
	for _, r := range j.runs {
		for _, c := range r.comms {
			for _, t := range append(c.tracks[:], c.all) {
				if t != nil {
					tracks += len(t.open) + len(t.seqs)
				}
			}
		}
	}
	if j.bytes == 0 && j.oldest == nil && j.newest == nil && j.again == nil && j.begun == 0 && j.held.used == 0 && tracks == 0 {
		return nil
	}
	return fmt.Errorf("%d bytes, %d in sequences, %d held, %d begun; oldest %p, newest %p, again %p",
		j.bytes, tracks, j.held.used, j.begun, j.oldest, j.newest, j.again)
}

// leave hands over the collectives that leave.
func (j *Joiner[H]) leave(take func(c *Collective, came []H)) {
	if len(j.leaving) == 0 {
		return
	}
	for _, c := range j.leaving {
		j.came = j.came[:0]
		for i := range c.parts {
			j.came = j.held.take(j.came, c.parts[i].held)
		}
		take(c, j.came)
	}
	clear(j.came)
	clear(j.leaving)
	j.leaving = j.leaving[:0]
}

// joiner is the part of a Joiner that does not depend on H. Its methods are called with Joiner.mu held; collectives that they let go of are in leaving.
type joiner struct {
	set   Settings
	ranks map[int32]bool // nil: all

	names  spans.Interner
	runs   map[string]*run
	rows   map[rowKey]string
	ghosts ghosts

	hows    map[how]*how // each how once
	lastHow *how

	waiting
	remembered int64         // the memory of the communicators, in bytes
	leaving    []*Collective // in the order in which they are closed
	free       []*Collective

	silent int // inputs that have said nothing: their ranks are not known yet
	begun  int // inputs with a record that goes on

	arrivals []late.Arrival // scratch, as all below
	lateness []int64
	ends     []clocks.End
	next     []int32
}

func newJoiner(s Settings) joiner {
	j := joiner{set: s, runs: make(map[string]*run), rows: make(map[rowKey]string), hows: make(map[how]*how), ghosts: newGhosts()}
	if len(s.Ranks) > 0 {
		j.ranks = make(map[int32]bool)
		for _, rank := range s.Ranks {
			j.ranks[rank] = true
		}
	}
	return j
}

// ranksOf is how many ranks of a communicator of so many have records that come.
func (j *joiner) ranksOf(size int32) int {
	if j.ranks == nil {
		return int(size)
	}
	n := 0
	for rank := range j.ranks {
		if rank < size {
			n++
		}
	}
	return n
}

const (
	maxFree    = 2048 // collectives
	usualParts = 64
)

// get returns an empty collective.
func (j *joiner) get() *Collective {
	n := len(j.free)
	if n == 0 {
		return new(Collective)
	}
	c := j.free[n-1]
	j.free = j.free[:n-1]
	return c
}

// keep has a collective that was reset used again.
func (j *joiner) keep(c *Collective) {
	if len(j.free) < maxFree {
		j.free = append(j.free, c)
	}
}

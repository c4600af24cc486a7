// Package ras compares the answers of NCCL's RAS about a job, and says where nobody advances.
//
// A count of RAS is of launches, not of completions, and leaves out Send, Recv and CUDA graphs (NVIDIA/nccl b91894bd, src/plugin/profiler.cc,
// ncclProfilerStartTaskEvents). A single answer accuses nobody: ranks are read in turn, and a process may be busy with uncounted work. Who is
// after is said only where all processes of a communicator have launched nothing, in any communicator, over two answers.
package ras

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/internal/ncclras"
)

// Watch remembers the last answers of a job. Not safe for concurrent use.
type Watch struct {
	// Patience is the time without a launch after which ranks after are a hang (Finding.Hang), and Still is reported if all counts are equal.
	Patience time.Duration

	answer     int64    // number of the current answer, from 1
	operations []string // names of the counted operations, in the order of each rank's counts
	gpus       map[ncclras.Process]*gpu
	comms      map[string]*comm // by key
	kept       int              // ranks remembered in comms
}

const (
	// stillAnswers is the number of answers in a row without a launch after which a process counts as still.
	stillAnswers = 2
	// forget is the number of answers after which an absent communicator or process is forgotten. Two jobs of a user share a port, and answer in turns.
	forget = 8
	// maxKept bounds the remembered ranks of all communicators.
	maxKept = 1 << 20
	// maxFindings bounds the findings about one answer: an absent host is missing in all of its communicators.
	maxFindings = 32
)

// gpu is a process on a GPU, in all of its communicators.
type gpu struct {
	seen  int64     // number of the last answer with the process
	moved int64     // number of the last answer with a new launch of the process
	still int       // answers in a row without a launch
	since time.Time // time of the last answer with a launch
}

// comm is a communicator as remembered from earlier answers, with the findings reported about it.
type comm struct {
	seen     int64         // number of the last answer with the communicator
	ranks    []rank        // by number
	silent   map[int32]int // by rank: answers in a row without its process
	advanced bool          // a count has changed while watched
	reported [kinds]uint64 // the current finding of each kind, as a hash of its ranks (judge.news); 0: none
	stood    time.Time     // since when nobody has launched anything, as reported
}

// rank is a rank of a communicator in the last answer.
type rank struct {
	number int32
	gpu    *gpu
	counts []uint64 // launches of each operation
}

// current is a communicator of the current answer: Ranks are of the answer, ranks are remembered.
type current struct {
	*ncclras.Communicator
	*comm
	moved bool // a count has changed since the answer before
}

// See records an answer with its time, and returns the changes since the answer before, at most maxFindings, and the state of the job. Counts of other
// operations than before, as of another NCCL, cannot be compared: then everything is forgotten, as beyond maxKept.
func (w *Watch) See(at time.Time, a *ncclras.Answer) ([]Finding, Summary) {
	otherCounts := len(a.Operations) > 0 && !slices.Equal(a.Operations, w.operations)
	if w.gpus == nil || w.kept > maxKept || otherCounts {
		w.gpus, w.comms, w.kept, w.operations = make(map[ncclras.Process]*gpu), make(map[string]*comm), 0, a.Operations
	}
	w.answer++
	list := w.settled(a)
	for _, c := range list {
		w.take(at, c)
	}
	// A process has launched something if any of its communicators shows it: so after all communicators.
	for _, g := range w.gpus {
		switch {
		case g.seen != w.answer:
		case g.moved == w.answer:
			g.still, g.since = 0, at
		default:
			g.still++
		}
	}
	j := judge{at: at, version: a.Version, operations: w.operations, patience: w.Patience}
	j.surveyJob(list)
	for _, c := range list {
		j.comm(c)
	}
	j.findHungJob(list)
	w.forget()
	return j.most(), j.sum
}

// settled returns the communicators of an answer that can be compared, each with what is remembered of it: not empty, listed once, with each rank once and no
// more ranks than its size. While a communicator is created, NCCL 2.29 to 2.31 may list empty communicators, and halves (nccl#2346).
func (w *Watch) settled(a *ncclras.Answer) []*current {
	times := make(map[string]int)
	for i := range a.Communicators {
		times[key(&a.Communicators[i])]++
	}
	var list []*current
	for i := range a.Communicators {
		c := &a.Communicators[i]
		slices.SortFunc(c.Ranks, func(a, b ncclras.Rank) int { return cmp.Compare(a.Rank, b.Rank) })
		if len(c.Ranks) == 0 || int64(len(c.Ranks)) > c.Size || times[key(c)] > 1 || hasDuplicate(c.Ranks) {
			continue
		}
		known := w.comms[key(c)]
		if known == nil {
			known = new(comm)
			w.comms[key(c)] = known
		}
		list = append(list, &current{Communicator: c, comm: known})
	}
	return list
}

// key returns the identity of a communicator across answers.
func key(c *ncclras.Communicator) string { return c.Hash + "/" + c.Secondary }

// hasDuplicate reports whether a rank occurs twice in ranks sorted by their number.
func hasDuplicate(ranks []ncclras.Rank) bool {
	for i := 1; i < len(ranks); i++ {
		if ranks[i-1].Rank == ranks[i].Rank {
			return true
		}
	}
	return false
}

// take compares the counts of a communicator with those of the answer before, and remembers the new ones. A process with a changed count has launched
// something; so has a new rank, or a rank in another process than before, as nothing is known of the time before.
func (w *Watch) take(at time.Time, c *current) {
	old, i := c.ranks, 0 // i runs along with n: both lists are sorted by number
	now := make([]rank, len(c.Ranks))
	for n := range now {
		r := &c.Ranks[n]
		g := w.gpus[r.Process]
		if g == nil {
			g = &gpu{moved: w.answer, since: at}
			w.gpus[r.Process] = g
		}
		g.seen = w.answer
		for i < len(old) && old[i].number < r.Rank {
			i++
		}
		switch {
		case i >= len(old) || old[i].number != r.Rank || old[i].gpu != g:
			g.moved = w.answer
		case !slices.Equal(old[i].counts, r.Counts):
			g.moved = w.answer
			c.moved, c.advanced = true, true
		}
		now[n] = rank{r.Rank, g, r.Counts}
	}
	w.kept += len(now) - len(old)
	c.ranks, c.seen = now, w.answer
	// Processes that do not answer: how often in a row.
	silent := make(map[int32]int)
	for i := range c.Missing {
		if m := &c.Missing[i]; m.Unresponsive && !m.Dead && m.Known() {
			silent[m.Rank] = c.silent[m.Rank] + 1
		}
	}
	c.silent = silent
}

// forget drops communicators and processes that were in none of the last answers.
func (w *Watch) forget() {
	for k, c := range w.comms {
		if w.answer-c.seen >= forget {
			w.kept -= len(c.ranks)
			delete(w.comms, k)
		}
	}
	for k, g := range w.gpus {
		if w.answer-g.seen >= forget {
			delete(w.gpus, k)
		}
	}
}

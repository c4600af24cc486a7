package facts

// communicator is of how many ranks one is, and from when to when it was in use.
type communicator struct {
	ranks       int64
	first, last int64 // ns
}

// maxCommunicators bounds how many of a run are known by their ids.
const maxCommunicators = 4096

// Communicates notes that a communicator of so many ranks was in use. id is the number of its id.
func (r *Run) Communicates(id uint32, ranks, start, end int64) {
	r.Ranks = max(r.Ranks, ranks)
	if i, ok := r.communicator[id]; ok {
		c := &r.communicators[i]
		c.ranks, c.first, c.last = max(c.ranks, ranks), min(c.first, start), max(c.last, end)
		return
	}
	if len(r.communicators) == maxCommunicators {
		return
	}
	if r.communicator == nil {
		r.communicator, r.together = map[uint32]int{}, map[int64]int64{}
	}
	r.communicator[id] = len(r.communicators)
	r.communicators = append(r.communicators, communicator{ranks, start, end})
}

// RanksAt is how many ranks the job had in a window; 0: not known. A job that goes on with fewer has communicators of its own for them: it has as many ranks
// then as the communicators of one size in use have together. Where no communicator was ever as large as the job, as the log of the training says, its ranks
// are in groups, and how many logged collectives then says nothing of the job.
func (r *Run) RanksAt(w *Window) int64 {
	all := r.Ranks
	if all < w.World {
		return w.World
	}
	most := int64(0)
	clear(r.together)
	for i := range r.communicators {
		c := &r.communicators[i]
		if c.first > w.End || c.last < w.Start {
			continue
		}
		r.together[c.ranks] += c.ranks
		if most = max(most, r.together[c.ranks]); most >= all {
			return all
		}
	}
	if most == 0 {
		return all
	}
	return most
}

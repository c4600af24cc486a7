package facts

// communicator has the number of ranks of a communicator, and the time of use.
type communicator struct {
	ranks       int64
	first, last int64 // ns
}

// maxCommunicators bounds the communicators of a run that are known by their ids.
const maxCommunicators = 4096

// Communicates records the use of a communicator with so many ranks from start to end, ns. id is the text number of its id. Beyond maxCommunicators only the
// largest number of ranks is kept (Ranks).
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

// RanksAt returns the number of ranks of the job in a window; 0: unknown.
//
// If the training log says that the job is larger than any communicator (World), the number in the log counts: the ranks are in groups. Otherwise the sizes of
// communicators in use in the window are added up by size (8 communicators of 4 ranks are 32), and the largest sum counts, at most the size of the largest
// communicator: a job that continues with fewer ranks has new communicators. If none was in use, the largest size ever counts.
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
		most = max(most, r.together[c.ranks])
		if most >= all {
			return all
		}
	}
	if most == 0 {
		return all
	}
	return most
}

package facts

import "math"

// Process is a process of a run.
type Process struct {
	Host uint32 // a number of [Run.Text]
	PID  int32
}

const (
	maxProcesses = 16_384 // of a run
	processBytes = 64
)

// stretch is when a process was at work, from the first to the last of its spans, ns.
type stretch struct{ first, last int64 }

// Process notes that a process was at work. Where a run has too many, the one that worked last the longest ago is forgotten.
func (r *Run) Process(p Process, first, last int64) {
	if s, ok := r.processes[p]; ok {
		r.processes[p] = stretch{min(s.first, first), max(s.last, last)}
		return
	}
	if len(r.processes) >= maxProcesses {
		oldest, at := Process{}, int64(math.MaxInt64)
		for p, s := range r.processes {
			if s.last < at {
				oldest, at = p, s.last
			}
		}
		delete(r.processes, oldest)
	}
	if r.processes == nil {
		r.processes = map[Process]stretch{}
	}
	r.processes[p] = stretch{first, last}
}

// Processes calls f with those that were at work at some time from start to end, in no order.
func (r *Run) Processes(start, end int64, f func(Process)) {
	for p, s := range r.processes {
		if s.first <= end && s.last >= start {
			f(p)
		}
	}
}

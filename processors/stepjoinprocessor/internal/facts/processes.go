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

// period is the working time of a process, from the first to the last span, ns.
type period struct{ first, last int64 }

// Process records that a process worked from first to last, ns. Beyond maxProcesses the least recently active process of the run is dropped.
func (r *Run) Process(p Process, first, last int64) {
	if s, ok := r.processes[p]; ok {
		r.processes[p] = period{min(s.first, first), max(s.last, last)}
		return
	}
	if len(r.processes) >= maxProcesses {
		oldest, oldestLast := Process{}, int64(math.MaxInt64)
		for p, s := range r.processes {
			if s.last < oldestLast {
				oldest, oldestLast = p, s.last
			}
		}
		delete(r.processes, oldest)
	}
	if r.processes == nil {
		r.processes = map[Process]period{}
	}
	r.processes[p] = period{first, last}
}

// Processes calls f with the processes active at some time from start to end, in any order.
func (r *Run) Processes(start, end int64, f func(Process)) {
	for p, s := range r.processes {
		if s.first <= end && s.last >= start {
			f(p)
		}
	}
}

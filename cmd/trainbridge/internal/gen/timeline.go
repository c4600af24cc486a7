package gen

// interval is an interval of true time, in ns.
type interval struct{ start, end int64 }

// call is a function in a worker, with the consecutive stages get, compute and put, and the true times between them, ns.
type call struct{ start, got, computed, end int64 }

// collective is a collective of all ranks, who leave it together, in true times, ns.
type collective struct {
	arrive     []int64 // by rank
	begun, end int64   // when the last rank came, and when all left
}

// first is when the first rank came.
func (c *collective) first() int64 {
	at := c.begun
	for _, t := range c.arrive {
		at = min(at, t)
	}
	return at
}

// last is the rank that came last.
func (c *collective) last() int {
	for rank, at := range c.arrive {
		if at == c.begun {
			return rank
		}
	}
	return -1
}

// timeline is the place of a step in time. Intervals of absent parts are empty.
type timeline struct {
	interval
	loading, checkpoint, evaluation interval
	functions                       [functions][]call // by rank
	pass                            interval          // of RPCs, in the first rank's generation of sequences
	collectives                     []collective
}

// state is what a step leaves to the next.
type state struct {
	now     int64 // when the step ended, ns
	rollout int64 // when the generation of sequences for the next step began, ns; 0: not yet
}

// wholeMS is a time rounded up to whole ms: all times of workers are, as the package says.
func wholeMS(at int64) int64 { return (at + ms - 1) / ms * ms }

// place places a step in time, after the step that left s, and returns what the step leaves to the next. f may be nil: the same step without its fault. pass is
// the duration of the RPC pass, ns. With overlap, sequences of the next step are generated while the actor is updated (ClockOverlap).
func (s *state) place(t *plan, f *fault, pass int64, overlap bool) (*timeline, state) {
	if f == nil {
		f = &fault{}
	}
	slow := func(kind string) int64 { // the extra time, if the fault is of the kind
		if f.kind == kind {
			return f.by
		}
		return 0
	}
	l := &timeline{interval: interval{start: s.now}}
	l.loading = interval{s.now, s.now + t.loading + slow(FaultData)}
	now := l.loading.end + t.gaps[0]
	from := now        // when the workers may begin the next function
	if s.rollout > 0 { // with overlap the step before has begun this step's sequences
		from = s.rollout
	}
	next := state{}
	for i := range l.functions {
		if i == update && overlap {
			next.rollout = now
		}
		calls := make([]call, len(t.work[i]))
		for rank, d := range t.work[i] {
			c := call{start: from + d.late}
			c.got = c.start + d.get
			if f.at == i {
				c.got += slow(FaultGet)
			}
			c.computed = c.got + d.compute
			if i == sequences && rank == 0 { // the first rank's computing has the pass of RPCs in the middle
				l.pass = interval{c.got + t.before, c.got + t.before + pass}
				c.computed = wholeMS(l.pass.end + t.after)
			}
			calls[rank] = c
		}
		if i == update { // sets when the calls have computed
			l.collect(t, f, calls)
		}
		for rank := range calls {
			c := &calls[rank]
			c.end = c.computed + t.work[i][rank].put
			if f.at == i {
				c.end += slow(FaultPut)
			}
			now = max(now, c.end)
		}
		l.functions[i] = calls
		now += t.gaps[1+i]
		from = now
	}
	if t.checkpoint > 0 {
		l.checkpoint = interval{now, now + t.checkpoint + slow(FaultCheckpoint)}
		now = l.checkpoint.end + t.gaps[4]
	}
	if t.evaluation > 0 {
		l.evaluation = interval{now, now + t.evaluation}
		now = l.evaluation.end + t.gaps[5]
	}
	l.end = now + t.gaps[6]
	next.now = l.end
	return l, next
}

// collect places the collectives in the actor's update, whose calls have begun: all ranks compute a chunk, meet in a collective, and so on. calls get the ends
// of their computing. The fault (without a kind: none) may delay a rank before one collective (straggler) or before all (GPU), or all transfers (link).
func (l *timeline) collect(t *plan, f *fault, calls []call) {
	sum := int64(0) // of all transfers
	for _, d := range t.transfers {
		sum += d
	}
	free := make([]int64, len(calls)) // when each rank has left the collective before
	for rank := range calls {
		free[rank] = calls[rank].got
	}
	for k, transfer := range t.transfers {
		c := collective{arrive: make([]int64, len(calls))}
		for rank := range c.arrive {
			at := free[rank] + t.chunks[k][rank]
			if rank == f.rank {
				switch {
				case f.kind == FaultStraggler && f.at == k:
					at += f.by
				case f.kind == FaultGPU:
					at += f.by / int64(len(t.transfers)) / us * us // an equal part before each collective, in whole µs
				}
			}
			c.arrive[rank] = at
			c.begun = max(c.begun, at)
		}
		if f.kind == FaultLink { // each transfer is longer in proportion
			transfer += int64(float64(f.by)*float64(transfer)/float64(sum)) / us * us
		}
		c.end = c.begun + transfer
		for rank := range free {
			free[rank] = c.end
		}
		l.collectives = append(l.collectives, c)
	}
	for rank := range calls {
		calls[rank].computed = wholeMS(free[rank] + t.tail)
	}
}

package gen

// interval is an interval of true time, in ns.
type interval struct{ start, end int64 }

// call is a function in a worker, with consecutive stages.
type call struct{ start, got, computed, end int64 }

// collective is a collective of all ranks, who leave it together.
type collective struct {
	arrive     []int64
	begun, end int64 // when the last rank came, and when all left
}

// first is when the first rank came.
func (c *collective) first() int64 {
	at := c.begun
	for _, t := range c.arrive {
		at = min(at, t)
	}
	return at
}

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
	pass                            interval
	collectives                     []collective
}

// state is the input of the next step.
type state struct {
	now     int64 // when the step ended
	rollout int64 // when the next generation of sequences began; 0: not yet
}

func wholeMS(at int64) int64 { return (at + ms - 1) / ms * ms }

// place places a step in time, with or without a fault. pass is the duration of its pass.
func (s *state) place(t *plan, f *fault, pass int64, overlap bool) (*timeline, state) {
	if f == nil {
		f = &fault{}
	}
	slow := func(kind string) int64 {
		if f.kind == kind {
			return f.by
		}
		return 0
	}
	l := &timeline{interval: interval{start: s.now}}
	l.loading = interval{s.now, s.now + t.loading + slow(FaultData)}
	now := l.loading.end + t.gaps[0]
	from := now
	if s.rollout > 0 {
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
			if i == sequences && rank == 0 {
				l.pass = interval{c.got + t.before, c.got + t.before + pass}
				c.computed = wholeMS(l.pass.end + t.after)
			}
			calls[rank] = c
		}
		if i == update {
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

// collect lets the ranks compute and communicate in turn.
func (l *timeline) collect(t *plan, f *fault, calls []call) {
	sum := int64(0)
	for _, d := range t.transfers {
		sum += d
	}
	free := make([]int64, len(calls))
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
					at += f.by / int64(len(t.transfers)) / us * us
				}
			}
			c.arrive[rank] = at
			c.begun = max(c.begun, at)
		}
		if f.kind == FaultLink {
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

package gpus

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
)

// Process is a process on a host.
type Process struct {
	Host string
	PID  int32
}

// Mean is a mean over the time of a window and over GPUs, with the lowest and the highest GPU's; NaN without samples.
type Mean struct{ Mean, Min, Max float64 }

// Held is the least time that one GPU was throttled within a window.
type Held struct {
	*GPU

	Since   int64 // ns: first seen throttled
	Seconds [causes]float64
}

// Longest returns the longest cause of throttling, without causes normal on a healthy machine; false: none.
func (h *Held) Longest() (c Cause, ok bool) {
	for of := range Cause(causes) {
		if of.Unexpected() && h.Seconds[of] > 0 && (!ok || h.Seconds[of] > h.Seconds[c]) {
			c, ok = of, true
		}
	}
	return c, ok
}

// Most returns the time of the longest cause, except the power limit, reached by GPUs at full load.
func (h *Held) Most() float64 { return slices.Max(h.Seconds[:Power]) }

// Error is an XID error of a GPU.
type Error struct {
	*GPU
	XID
}

// Window is the state of a window's GPUs. Its slices are valid until the next call of Within.
type Window struct {
	GPUs    int  // with a sample within the window
	Samples int  // of these GPUs
	Stated  bool // the GPUs are those of the window's processes, not all of its hosts

	Utilization, Power, Temperature, Clock Mean // 1, W, °C (Max is the hottest moment), MHz

	Throttled [causes]float64 // s, by cause: of the GPU throttled the longest
	Held      []Held          // the throttled GPUs, in order of host and name
	Errors    []Error         // in order of time
}

// Scratch is the memory of Within. The zero value is ready. One goroutine may use it.
type Scratch struct {
	gpus   []*GPU
	held   []Held
	errors []Error
}

// Within summarizes the GPUs from start to end, ns: those on which any of the processes ran (Window.Stated); if no such GPU is known, all GPUs of
// the hosts. false: no sample within.
func (g *GPUs) Within(s *Scratch, start, end int64, processes []Process, hosts []string) (w Window, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.gpus, s.held, s.errors = s.gpus[:0], s.held[:0], s.errors[:0]
	for _, p := range processes {
		s.gpus = g.of(s.gpus, p, start, end)
	}
	w.Stated = len(s.gpus) > 0
	if !w.Stated {
		for _, host := range hosts {
			s.gpus = slices.AppendSeq(s.gpus, maps.Values(g.hosts[host]))
		}
	}
	slices.SortFunc(s.gpus, func(a, b *GPU) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), natural(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	s.gpus = slices.Compact(s.gpus)
	var all [values]over
	for _, u := range s.gpus {
		u.within(s, &w, &all, start, end)
	}
	w.Utilization, w.Power, w.Temperature, w.Clock = all[utilization].mean(), all[power].mean(), all[temperature].mean(), all[clock].mean()
	w.Temperature.Max = all[temperature].peak()
	slices.SortStableFunc(s.errors, func(a, b Error) int { return cmp.Compare(a.At, b.At) })
	w.Held, w.Errors = s.held, s.errors
	return w, w.GPUs > 0
}

// natural puts GPU 2 before GPU 10.
func natural(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// idle is the share of a process's memory on another GPU below which the process does no work on this GPU: frameworks needlessly open a context on the first
// GPU, of some 500 MB.
const idle = 0.25

// Of appends the GPUs on which a process worked at some time from start to end, by the driver's process lists, without GPUs with little of its memory (idle).
func (g *GPUs) Of(to []*GPU, p Process, start, end int64) []*GPU {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of(to, p, start, end)
}

// of is Of, with g.mu held.
func (g *GPUs) of(to []*GPU, p Process, start, end int64) []*GPU {
	most := -1.0 // the process's memory on the GPU with the most of it
	for _, u := range g.hosts[p.Host] {
		if of := u.runs(p.PID, start, end); of != nil {
			most = max(most, of.memory)
		}
	}
	if most < 0 {
		return to
	}
	for _, u := range g.hosts[p.Host] {
		if of := u.runs(p.PID, start, end); of != nil && of.memory >= idle*most {
			to = append(to, u)
		}
	}
	return to
}

// runs returns the process, if on the GPU at some time from start to end; else nil. A process counts as on the GPU from one usual gap before the first scrape
// that saw the process, to farthest gaps after the last.
func (u *GPU) runs(pid int32, start, end int64) *process {
	for i := range u.procs {
		p := &u.procs[i]
		beganBefore, endedAfter := p.first-u.every <= end, p.last+farthest*u.every >= start
		if p.pid == pid && beganBefore && endedAfter {
			return p
		}
	}
	return nil
}

// over adds up a value of several GPUs.
type over struct {
	n              int     // of GPUs
	sum            float64 // of their means
	least, most    float64 // of their means
	highest        float64 // of any sample
	highestIsKnown bool
}

// add adds the mean of one GPU.
func (o *over) add(mean float64) {
	if o.n == 0 {
		o.least, o.most = mean, mean
	}
	o.n++
	o.sum += mean
	o.least, o.most = min(o.least, mean), max(o.most, mean)
}

func (o *over) mean() Mean {
	if o.n == 0 {
		return Mean{math.NaN(), math.NaN(), math.NaN()}
	}
	return Mean{round(o.sum / float64(o.n)), round(o.least), round(o.most)}
}

func (o *over) peak() float64 {
	if !o.highestIsKnown {
		return math.NaN()
	}
	return round(o.highest)
}

// round removes the digits made up by float32.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// within adds the state of one GPU from start to end to w, all and s. A sample is of the time since the sample before: a value counts by the part of this time
// within the window, and of throttled seconds only those count that cannot lie outside.
func (u *GPU) within(s *Scratch, w *Window, all *[values]over, start, end int64) {
	first := sort.Search(len(u.samples), func(i int) bool { return u.samples[i].at > start })
	if first == len(u.samples) || u.samples[first].at > end {
		return // no sample was taken within
	}
	w.GPUs++
	var sum, weight [values]float64
	held := Held{GPU: u}
	for i := first; i < len(u.samples) && u.samples[i].from < end; i++ {
		x := &u.samples[i]
		from, to := max(x.from, start), min(x.at, end)
		if x.at <= end {
			w.Samples += int(x.scrapes)
		}
		for v, of := range x.value {
			if of != of { // NaN: not measured
				continue
			}
			covered := float64(max(to-max(from, x.at-u.far(x)), 0)) // ns: a value is not taken for longer than far before its scrape
			sum[v] += float64(of) * covered
			weight[v] += covered
			if o := &all[v]; x.at <= end && (!o.highestIsKnown || float64(of) > o.highest) {
				o.highest, o.highestIsKnown = float64(of), true
			}
		}
		outside := float64(x.at-x.from-(to-from)) / 1e9 // s of the sample's time
		for c := range x.held {
			if sure := u.heldIn(i, Cause(c)) - outside; sure > 0 {
				if held.Since == 0 {
					held.Since = from
				}
				held.Seconds[c] += sure
			}
		}
	}
	for v := range sum {
		if weight[v] > 0 {
			all[v].add(sum[v] / weight[v])
		}
	}
	for c := range held.Seconds {
		held.Seconds[c] = round(held.Seconds[c])
		w.Throttled[c] = max(w.Throttled[c], held.Seconds[c])
	}
	if held.Since != 0 {
		s.held = append(s.held, held)
	}
	for _, x := range u.xids {
		if x.At > start && x.At <= end {
			s.errors = append(s.errors, Error{u, x})
		}
	}
}

// heldIn returns the time that a cause held within a sample: by its counter, else the whole sample if flagged at its beginning and at its end.
func (u *GPU) heldIn(i int, c Cause) float64 {
	x := &u.samples[i]
	if x.held[c] >= 0 {
		return float64(x.held[c])
	}
	if i == 0 || u.samples[i-1].at != x.from || x.at-x.from > u.far(x) { // no scrape at its beginning, or too long ago
		return 0
	}
	if x.flags&(1<<c) == 0 || u.samples[i-1].flags&(1<<c) == 0 {
		return 0
	}
	return float64(x.at-x.from) / 1e9
}

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

// Held is how long one GPU was throttled within a window: the time that is certain.
type Held struct {
	*GPU

	Since   int64 // ns: first seen throttled
	Seconds [causes]float64
}

// Longest returns the cause with the longest time among the unexpected causes; false: the GPU was not throttled for any.
func (h *Held) Longest() (c Cause, ok bool) {
	for i := range Cause(causes) {
		if i.Unexpected() && h.Seconds[i] > 0 && (!ok || h.Seconds[i] > h.Seconds[c]) {
			c, ok = i, true
		}
	}
	return c, ok
}

// Most returns the time of the longest cause, s, without the power limit, which GPUs reach at full load.
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

// Within summarizes the GPUs from start to end, ns: those on which any of the processes ran (Window.Stated); if no such GPU is known, all GPUs of the hosts.
// false: no sample in that time.
func (g *GPUs) Within(s *Scratch, start, end int64, processes []Process, hosts []string) (w Window, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.gpus, s.held, s.errors = s.gpus[:0], s.held[:0], s.errors[:0]
	for _, p := range processes {
		s.gpus = g.gpusOf(s.gpus, p, start, end)
	}
	w.Stated = len(s.gpus) > 0
	if !w.Stated {
		for _, host := range hosts {
			s.gpus = slices.AppendSeq(s.gpus, maps.Values(g.hosts[host]))
		}
	}
	slices.SortFunc(s.gpus, func(a, b *GPU) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), compareNames(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	s.gpus = slices.Compact(s.gpus)
	var all [values]overGPUs
	for _, u := range s.gpus {
		u.summarize(s, &w, &all, start, end)
	}
	w.Utilization, w.Power, w.Temperature, w.Clock = all[utilization].mean(), all[power].mean(), all[temperature].mean(), all[clock].mean()
	w.Temperature.Max = all[temperature].peak()
	slices.SortStableFunc(s.errors, func(a, b Error) int { return cmp.Compare(a.At, b.At) })
	w.Held, w.Errors = s.held, s.errors
	return w, w.GPUs > 0
}

// compareNames orders names by length first, so GPU 2 comes before GPU 10.
func compareNames(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// minMemoryShare decides whether a process works on a GPU: its memory there must be this share of its memory on the GPU where it has the most. Frameworks
// needlessly open a context on the first GPU, of some 500 MB.
const minMemoryShare = 0.25

// Of appends the GPUs on which a process worked at some time from start to end, ns, by the process lists of the driver. GPUs with little memory of the process
// are left out (minMemoryShare).
func (g *GPUs) Of(to []*GPU, p Process, start, end int64) []*GPU {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gpusOf(to, p, start, end)
}

// gpusOf is Of, with g.mu held.
func (g *GPUs) gpusOf(to []*GPU, p Process, start, end int64) []*GPU {
	most := -1.0 // bytes on the GPU where the process has the most memory
	for _, u := range g.hosts[p.Host] {
		if proc := u.processAt(p.PID, start, end); proc != nil {
			most = max(most, proc.memory)
		}
	}
	if most < 0 {
		return to
	}
	for _, u := range g.hosts[p.Host] {
		if proc := u.processAt(p.PID, start, end); proc != nil && proc.memory >= minMemoryShare*most {
			to = append(to, u)
		}
	}
	return to
}

// processAt returns the process with an id if it was on the GPU at some time from start to end, ns; else nil. It counts as on the GPU from one usual gap before
// the first scrape that saw it, to farthest gaps after the last.
func (u *GPU) processAt(pid int32, start, end int64) *process {
	for i := range u.procs {
		p := &u.procs[i]
		beganBefore, endedAfter := p.first-u.every <= end, p.last+farthest*u.every >= start
		if p.pid == pid && beganBefore && endedAfter {
			return p
		}
	}
	return nil
}

// overGPUs adds up a value of several GPUs.
type overGPUs struct {
	n              int     // of GPUs
	sum            float64 // of their means
	least, most    float64 // of their means
	highest        float64 // of any sample
	highestIsKnown bool
}

// add adds the mean of one GPU.
func (o *overGPUs) add(mean float64) {
	if o.n == 0 {
		o.least, o.most = mean, mean
	}
	o.n++
	o.sum += mean
	o.least, o.most = min(o.least, mean), max(o.most, mean)
}

// mean returns the mean over the GPUs, and the lowest and highest; NaN: no GPU has the value.
func (o *overGPUs) mean() Mean {
	if o.n == 0 {
		return Mean{math.NaN(), math.NaN(), math.NaN()}
	}
	return Mean{round(o.sum / float64(o.n)), round(o.least), round(o.most)}
}

// peak returns the highest value of any sample; NaN: none.
func (o *overGPUs) peak() float64 {
	if !o.highestIsKnown {
		return math.NaN()
	}
	return round(o.highest)
}

// round removes the digits made up by the conversion from float32.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// summarize adds the state of one GPU from start to end, ns, to w, all and s. A sample is about the time since the sample before: a value is weighted by the
// part of this time within the window, and of throttled seconds only those count that cannot lie outside the window.
func (u *GPU) summarize(s *Scratch, w *Window, all *[values]overGPUs, start, end int64) {
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
		for v, number := range x.value {
			if number != number { // NaN: not measured
				continue
			}
			covered := float64(max(to-max(from, x.at-u.maxCovered(x)), 0)) // ns: a value is not taken for longer than far before its scrape
			sum[v] += float64(number) * covered
			weight[v] += covered
			if o := &all[v]; x.at <= end && (!o.highestIsKnown || float64(number) > o.highest) {
				o.highest, o.highestIsKnown = float64(number), true
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

// heldIn returns how long a cause throttled the GPU within sample i, s: by its counter, else the whole time of the sample if flagged at its start and its end.
func (u *GPU) heldIn(i int, c Cause) float64 {
	x := &u.samples[i]
	if x.held[c] >= 0 {
		return float64(x.held[c])
	}
	if i == 0 || u.samples[i-1].at != x.from || x.at-x.from > u.maxCovered(x) { // no scrape at its beginning, or too long ago
		return 0
	}
	if x.flags&(1<<c) == 0 || u.samples[i-1].flags&(1<<c) == 0 {
		return 0
	}
	return float64(x.at-x.from) / 1e9
}

// Package gpus keeps the nvml metrics of GPUs, in small samples in event time, and summarizes them over a window.
package gpus

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// Cause is a reason of throttling, of low clocks against demand. Idle clocks, or clocks set by someone, are no throttling.
type Cause uint8

// The causes, in the order in which people should look at them.
const (
	Thermal     Cause = iota // heat
	PowerBrake               // requested by the host's power supply
	Slowdown                 // the hardware, without saying why
	Reliability              // voltage limits
	BoardLimit               // the board's limit
	SyncBoost                // the slowest GPU of its group
	Power                    // its own power limit, reached by GPUs at full load on any healthy machine

	causes = int(Power) + 1
)

// Unexpected reports whether a healthy machine at full load is never throttled for the cause. An unexpected cause may explain a slow window.
func (c Cause) Unexpected() bool { return c <= Slowdown }

var (
	policies = [causes]string{Thermal: "thermal", Reliability: "reliability", BoardLimit: "board_limit", SyncBoost: "sync_boost", Power: "power"}
	phrases  = [causes]string{
		Thermal: "by heat", PowerBrake: "by the power brake of its host", Slowdown: "by its hardware", Reliability: "for its reliability",
		BoardLimit: "by the limit of its board", SyncBoost: "by sync boost", Power: "by its power limit",
	}
	attributes = [causes]string{
		Thermal: spans.GPUThrottleTimePrefix + "thermal", PowerBrake: spans.GPUThrottleTimePrefix + "power_brake",
		Slowdown: spans.GPUThrottleTimePrefix + "hw_slowdown", Reliability: spans.GPUThrottleTimePrefix + "reliability",
		BoardLimit: spans.GPUThrottleTimePrefix + "board_limit", SyncBoost: spans.GPUThrottleTimePrefix + "sync_boost",
		Power: spans.GPUThrottleTimePrefix + "power",
	}
)

// Attribute returns the name of the attribute for the seconds of the cause.
func (c Cause) Attribute() string { return attributes[c] }

// Phrase returns the cause for a sentence, after "was held down": "by heat".
func (c Cause) Phrase() string { return phrases[c] }

// causeOfPolicy returns the cause of a counter of nvml by its policy; false: the counter is of idle GPUs, or the sum of others.
func causeOfPolicy(policy string) (Cause, bool) {
	for c, name := range policies {
		if name == policy && name != "" {
			return Cause(c), true
		}
	}
	return 0, false
}

// causeOfReason returns the cause of a flag of nvml by its reason; false: no throttling.
func causeOfReason(reason string) (Cause, bool) {
	switch reason {
	case "sw_thermal_slowdown", "hw_thermal_slowdown":
		return Thermal, true
	case "hw_power_brake_slowdown":
		return PowerBrake, true
	case "hw_slowdown":
		return Slowdown, true
	case "sync_boost":
		return SyncBoost, true
	case "sw_power_cap":
		return Power, true
	}
	return 0, false
}

// value is a kind of value in a sample: a share, W, °C, MHz.
type value uint8

const (
	utilization value = iota
	power
	temperature
	clock
	values = int(clock) + 1
)

// sample is the state of a GPU since the sample before, 64 bytes.
type sample struct {
	from, at int64 // ns: the sample is of (from, at]
	value    [values]float32
	held     [causes]float32 // s within it; negative: unknown
	scrapes  uint16          // number of scrapes in it
	flags    uint8           // the causes active at the moment of the scrape
	flagged  uint8           // the causes known in flags
}

// MaxBytes bounds all samples: 64 hosts of 8 GPUs, one sample a second, 15 minutes. Beyond, the older samples become coarser.
const (
	MaxBytes    = 32 << 20
	sampleBytes = 64 // of one sample
	maxGPUs     = 16_384
	maxText     = 256
	maxProcs    = 64 // of a GPU
	maxXIDs     = 32 // remembered per GPU; and codes counted
	usual       = 8  // the usual gap moves by 1/usual of the way to each new gap: about the mean of as many
	farthest    = 2  // the longest time of a sample, in usual gaps
)

// process is a process with device memory.
type process struct {
	pid         int32
	memory      float64 // By
	first, last int64   // ns: first and last seen
}

// XID is a driver error, at the time of the scrape that found it.
type XID struct {
	Code  string // xid_79
	At    int64  // ns
	Count int64  // new ones since the scrape before
}

// GPU is one GPU.
type GPU struct {
	Host, ID, Name string // Name is "GPU 3"

	samples []sample // in order of time
	every   int64    // the usual gap between scrapes, ns
	procs   []process
	xids    []XID
	codes   []code
	held    [causes]counter
	used    time.Time // time of its last metric
}

// code is the last count of an error code.
type code struct {
	name  string
	count int64
	at    int64 // ns
}

// counter is the last value of a counter of throttled seconds.
type counter struct {
	value float64
	at    int64 // ns
}

// GPUs are all GPUs in metrics. The metrics instance of a component writes, the traces instance reads.
type GPUs struct {
	now func() time.Time

	known atomic.Bool

	mu     sync.Mutex
	hosts  map[string]map[string]*GPU // by host and id
	count  int                        // of GPUs
	room   int                        // allocated samples
	most   int                        // limit of room
	swept  time.Time
	points lastPoint

	workers map[Process]*worker
	found   []seen // workers that the metrics at hand name on a GPU
	// Memory of infos.
	infoList []Info
	on       []*GPU
}

// New returns empty GPUs.
func New() *GPUs {
	return &GPUs{now: time.Now, hosts: map[string]map[string]*GPU{}, workers: map[Process]*worker{}, most: MaxBytes / sampleBytes}
}

// Known reports whether any GPU was seen. Otherwise nothing needs to be recorded for GPUs.
func (g *GPUs) Known() bool { return g.known.Load() }

// gpu returns the GPU with an id on a host, made if absent; nil: beyond maxGPUs or maxText.
func (g *GPUs) gpu(host, id, name string, now time.Time) *GPU {
	u := g.hosts[host][id]
	if u == nil {
		if g.count >= maxGPUs || len(host) > maxText || len(id) > maxText || len(name) > maxText {
			return nil
		}
		if name == "" {
			name = id
		}
		u = &GPU{Host: strings.Clone(host), ID: strings.Clone(id), Name: strings.Clone(name)} // the names outlive the batch
		if g.hosts[u.Host] == nil {
			g.hosts[u.Host] = map[string]*GPU{}
		}
		g.hosts[u.Host][u.ID] = u
		g.known.Store(true)
		g.count++
	}
	u.used = now
	return u
}

// sample returns the sample of u for a scrape at a time, ns: a new sample without values after the latest sample; at the time of the latest, the latest;
// before, nil.
//
// A time more than keep before the latest means that the clock was set back, and all samples of the GPU are forgotten. Samples older than keep are dropped. If
// the memory of all samples is beyond the limit, all become coarser.
func (g *GPUs) sample(u *GPU, at int64, keep time.Duration) *sample {
	n := len(u.samples)
	if n > 0 && at <= u.samples[n-1].at {
		if s := &u.samples[n-1]; s.at == at {
			return s
		}
		if u.samples[n-1].at-at <= int64(keep) {
			return nil
		}
		u.reset() // the clock was set back: earlier samples cannot be placed
		n = 0
	}
	s := sample{from: at, at: at, scrapes: 1}
	for v := range s.value {
		s.value[v] = float32(math.NaN())
	}
	for c := range s.held {
		s.held[c] = -1
	}
	if n > 0 {
		gap := min(at-u.samples[n-1].at, int64(time.Hour))
		if u.every == 0 {
			u.every = gap
		}
		// A long gap, of an outage, counts as farthest usual ones.
		u.every += (min(gap, farthest*u.every) - u.every) / usual
		s.from = u.samples[n-1].at
	}
	g.dropBefore(u, at-int64(keep))
	before := cap(u.samples)
	u.samples = append(u.samples, s)
	g.room += cap(u.samples) - before
	for g.room > g.most && g.coarsen() {
	}
	return &u.samples[len(u.samples)-1]
}

// dropBefore drops the samples before a time, ns, with errors and processes of that time, once they are at least a quarter of all samples: moving the rest then
// costs little per dropped sample.
func (g *GPUs) dropBefore(u *GPU, before int64) {
	// The index of the first sample not before: never equal, so that the search ends there.
	old, _ := slices.BinarySearchFunc(u.samples, before, func(s sample, t int64) int {
		if s.at < t {
			return -1
		}
		return 1
	})
	if old*4 < len(u.samples) || old == 0 {
		return
	}
	u.samples = u.samples[:copy(u.samples, u.samples[old:])]
	u.xids = slices.DeleteFunc(u.xids, func(x XID) bool { return x.At < before })
	u.procs = slices.DeleteFunc(u.procs, func(p process) bool { return p.last < before })
}

// reset forgets everything with a time, after the clock was set back.
func (u *GPU) reset() {
	u.samples, u.xids, u.procs, u.codes, u.every, u.held = u.samples[:0], nil, nil, nil, 0, [causes]counter{}
}

// maxCovered returns for how long before its scrape, ns, the values of a sample count; earlier the values are unknown. Counters of the driver are valid for any
// time.
func (u *GPU) maxCovered(s *sample) int64 { return farthest * u.every * int64(s.scrapes) }

// coarsen frees memory: of each GPU with more than 4 samples, pairs of consecutive samples are merged, except the latest, which still gets values; unused
// capacity of all GPUs is freed. false: nothing was freed.
func (g *GPUs) coarsen() bool {
	before := g.room
	g.room = 0
	for _, host := range g.hosts {
		for _, u := range host {
			if n := len(u.samples); n > 4 {
				kept := make([]sample, 0, n/2+2)
				for i := 0; i+1 < n-1; i += 2 {
					kept = append(kept, u.merge(&u.samples[i], &u.samples[i+1]))
				}
				u.samples = append(kept, u.samples[(n-1)&^1:]...) // the last one or two: not merged
			} else {
				u.samples = slices.Clip(slices.Clone(u.samples))
			}
			g.room += cap(u.samples)
		}
	}
	return g.room < before
}

// merge returns the merged sample of two consecutive ones: means weighted by time, the highest temperature, sums of throttled seconds. The first, a, weighs no
// more than the time it covers (maxCovered). A cause known only from flags counts for b if set at both scrapes.
func (u *GPU) merge(a, b *sample) sample {
	out := *b
	out.from = a.from
	x, y := float64(min(a.at-a.from, u.maxCovered(a))), float64(b.at-b.from) // ns: the weights
	for v := range out.value {
		switch p, q := float64(a.value[v]), float64(b.value[v]); {
		case p != p: // NaN: b's is kept
		case q != q:
			out.value[v] = a.value[v]
		case value(v) == temperature:
			out.value[v] = max(a.value[v], b.value[v])
		case x+y > 0:
			out.value[v] = float32((p*x + q*y) / (x + y))
		}
	}
	for c := range Cause(causes) {
		p, q := a.held[c], b.held[c]                  // s; −1: not known
		if q < 0 && (a.flagged&b.flagged)>>c&1 == 1 { // no counter, but flags at the beginning and the end of b
			q = 0
			if (a.flags&b.flags)>>c&1 == 1 && b.at-b.from <= u.maxCovered(b) {
				q = float32(y / 1e9)
			}
		}
		out.held[c] = max(p, q) // the known one, or −1
		if p >= 0 && q >= 0 {
			out.held[c] = p + q
		}
	}
	out.scrapes = a.scrapes + min(b.scrapes, math.MaxUint16-a.scrapes)
	return out
}

// forgetAfter is the time for which a GPU stays known after its last metric.
const forgetAfter = time.Hour

// sweep drops GPUs without a metric for forgetAfter, and processes without a span or metric for as long. It does so at most once a minute.
func (g *GPUs) sweep(now time.Time) {
	if now.Sub(g.swept) < time.Minute {
		return
	}
	g.swept = now
	for name, host := range g.hosts {
		for id, u := range host {
			if now.Sub(u.used) > forgetAfter {
				g.room -= cap(u.samples)
				g.count--
				delete(host, id)
			}
		}
		if len(host) == 0 {
			delete(g.hosts, name)
		}
	}
	for p, w := range g.workers {
		if now.Sub(w.used) > forgetAfter {
			delete(g.workers, p)
		}
	}
}

// Bytes returns the memory of all samples, in bytes.
func (g *GPUs) Bytes() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(g.room) * sampleBytes
}

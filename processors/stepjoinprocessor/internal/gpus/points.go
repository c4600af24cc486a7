package gpus

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/spans"
)

// lastPoint is the place of the last point: the points of one GPU and one scrape are mostly consecutive.
type lastPoint struct {
	host, id string
	gpu      *GPU
}

// labels are the labels of a point.
type labels struct {
	host, id, name, parent string
	which                  string // the task, the sensor, the clock, the policy, the reason, the type of the error
	pid                    int64
}

// kind is the meaning of a metric.
type kind uint8

const (
	none kind = iota
	ofUtilization
	ofPower
	ofTemperature
	ofClock
	ofThrottleTime
	ofThrottleActive
	ofErrors
	ofProcess
)

// kindOf returns the meaning of a metric by its name; none: the metric is not used.
func kindOf(metric string) kind {
	switch metric {
	case spans.MetricGPUUtilization:
		return ofUtilization
	case spans.MetricHardwarePower:
		return ofPower
	case spans.MetricHardwareTemperature:
		return ofTemperature
	case spans.MetricGPUClock:
		return ofClock
	case spans.MetricGPUThrottleTime:
		return ofThrottleTime
	case spans.MetricGPUThrottleActive:
		return ofThrottleActive
	case spans.MetricHardwareErrors:
		return ofErrors
	case spans.MetricGPUProcessMemory:
		return ofProcess
	}
	return none
}

// Notice reads the GPU metrics in md, and keeps the values for the time keep. It returns the number of unusable points of GPUs: without host, device, time or
// valid value, earlier than the known samples, or beyond a limit.
//
// Then report gets the runs of the processes that the metrics name. The list is valid during the call, and report may append to md. g.mu is held, also during
// report; without GPU metrics neither is g.mu locked nor report called.
func (g *GPUs) Notice(md pmetric.Metrics, keep time.Duration, report func([]Info)) (ignored int64) {
	locked := false
	var now time.Time
	for _, rm := range md.ResourceMetrics().All() {
		host, known := "", false
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				k := kindOf(m.Name())
				if k == none {
					continue
				}
				if !locked {
					g.mu.Lock()
					locked = true
					now = g.now()
					g.sweep(now)
				}
				if !known {
					host, known = spans.AttrText(rm.Resource().Attributes(), spans.AttrHostName), true
				}
				ignored += g.takeMetric(k, host, m, now, keep)
			}
		}
	}
	if locked {
		if list := g.infos(); len(list) > 0 {
			report(list)
		}
		g.points = lastPoint{} // it points into the batch
		g.mu.Unlock()
	}
	return ignored
}

// takeMetric reads the points of one metric, and returns the number of unusable points: all of them for a sum of throttled seconds that is not cumulative.
// Metrics that are neither gauge nor sum are ignored, and count as 0.
func (g *GPUs) takeMetric(k kind, host string, m pmetric.Metric, now time.Time, keep time.Duration) (ignored int64) {
	var list pmetric.NumberDataPointSlice
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		list = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		if k == ofThrottleTime && m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
			return int64(m.Sum().DataPoints().Len())
		}
		list = m.Sum().DataPoints()
	default:
		return 0
	}
	for _, p := range list.All() {
		l := labels{host: host}
		if !l.read(k, p.Attributes()) {
			continue // of no GPU, or another value of a GPU
		}
		if !g.takePoint(k, &l, p, now, keep) {
			ignored++
		}
	}
	return ignored
}

// read reads the labels of a point; false: the point is not used, because it is not of a GPU, not from nvml, or not the value that is kept of its metric.
func (l *labels) read(k kind, attrs pcommon.Map) bool {
	gpu := k != ofPower && k != ofErrors && k != ofTemperature // also reported by other hardware
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrSource:
			return false // of a log that numbers GPUs by index
		case spans.AttrHostName:
			l.host = v.Str()
		case spans.AttrHardwareID:
			l.id = v.Str()
		case spans.AttrHardwareName:
			l.name = v.Str()
		case spans.AttrHardwareParent:
			l.parent = v.Str()
		case spans.AttrHardwareType:
			gpu = v.Str() == spans.HardwareTypeGPU
		case spans.AttrProcessPID:
			l.pid = v.Int()
		case spans.AttrGPUTask, spans.AttrSensorLocation, spans.AttrGPUClockDomain, spans.AttrGPUThrottlePolicy, spans.AttrGPUThrottleReason, spans.AttrErrorType:
			l.which = v.Str()
		}
	}
	switch k {
	case ofUtilization:
		return l.which == "general" || l.which == ""
	case ofTemperature:
		return l.which == "gpu"
	case ofClock:
		return l.which == "sm"
	case ofErrors:
		return gpu && strings.HasPrefix(l.which, "xid_")
	case ofProcess:
		if l.parent != "" { // of a part of a GPU
			l.id, l.name = l.parent, ""
		}
		return true
	default:
		return gpu
	}
}

// takePoint records a point in the samples, processes or errors of its GPU; false: unusable. Points about a cause of throttling that is not kept are usable,
// and change nothing.
func (g *GPUs) takePoint(k kind, l *labels, p pmetric.NumberDataPoint, now time.Time, keep time.Duration) bool {
	v, at := spans.PointNumber(p), int64(p.Timestamp())
	if l.host == "" || l.id == "" || at <= 0 {
		return false
	}
	if !(v >= 0) || v > math.MaxFloat32 || p.Flags().NoRecordedValue() { // NaN, too
		return false
	}
	last := &g.points // mostly of the same GPU
	if last.gpu == nil || last.id != l.id || last.host != l.host {
		*last = lastPoint{l.host, l.id, g.gpu(l.host, l.id, l.name, now)}
	}
	u := last.gpu
	if u == nil {
		return false
	}
	switch k {
	case ofProcess:
		if !u.recordProcess(l.pid, v, at) {
			return false
		}
		if g.workers[Process{u.Host, int32(l.pid)}] != nil {
			g.found = append(g.found, seen{u, int32(l.pid), at})
		}
		return true
	case ofErrors:
		return u.recordXID(l.which, int64(v), at)
	}
	if k == ofThrottleTime || k == ofThrottleActive {
		if _, ok := l.cause(k); !ok { // no sample is made for it
			return true
		}
	}
	s := g.sample(u, at, keep)
	if s == nil {
		return false
	}
	switch k {
	case ofUtilization:
		s.value[utilization] = float32(v)
	case ofPower:
		s.value[power] = float32(v)
	case ofTemperature:
		s.value[temperature] = float32(v)
	case ofClock:
		s.value[clock] = float32(v / 1e6) // Hz to MHz
	case ofThrottleTime:
		c, _ := l.cause(k)
		u.takeCounter(s, c, v)
	case ofThrottleActive:
		c, _ := l.cause(k)
		u.takeFlag(s, c, v > 0)
	}
	return true
}

// cause returns the cause of throttling named by the labels of a counter or a flag; false: the cause is not kept.
func (l *labels) cause(k kind) (Cause, bool) {
	if k == ofThrottleTime {
		return causeOfPolicy(l.which)
	}
	return causeOfReason(l.which)
}

// takeCounter records a counter of throttled seconds. The sample gets the growth since the last value, if that value is of the sample before and the counter
// was not reset.
func (u *GPU) takeCounter(s *sample, c Cause, v float64) {
	last := u.held[c]
	if last.at == s.at {
		return // a duplicate
	}
	u.held[c] = counter{v, s.at}
	n := len(u.samples)
	nothingBefore := last.at == 0 || n < 2 || s.from != last.at
	if nothingBefore || v < last.value {
		return
	}
	s.held[c] = float32(min(v-last.value, float64(s.at-last.at)/1e9)) // no more than the time between the scrapes
}

// takeFlag records whether a GPU was throttled at the moment of a scrape, on for one reason. Several reasons may map to one cause.
func (u *GPU) takeFlag(s *sample, c Cause, on bool) {
	s.flagged |= 1 << c
	if on {
		s.flags |= 1 << c
	}
}

// recordProcess records a process with memory of the GPU (bytes), as seen at a time, ns. Beyond maxProcs it replaces the process not seen for the longest time.
// false: invalid process id.
func (u *GPU) recordProcess(pid int64, memory float64, at int64) bool {
	if pid <= 0 || pid > math.MaxInt32 {
		return false
	}
	oldest := 0
	for i := range u.procs {
		p := &u.procs[i]
		if p.pid == int32(pid) {
			if at >= p.last {
				p.last, p.memory = at, memory
			}
			p.first = min(p.first, at)
			return true
		}
		if p.last < u.procs[oldest].last {
			oldest = i
		}
	}
	p := process{int32(pid), memory, at, at}
	if len(u.procs) < maxProcs {
		u.procs = append(u.procs, p)
	} else {
		u.procs[oldest] = p
	}
	return true
}

// recordXID takes the count of an error code at a time, ns, and records the errors that are new since the last count. The first count of a code counts as new
// only if the GPU was scraped shortly before without it. false: earlier than the known count, or beyond the limits.
func (u *GPU) recordXID(name string, count, at int64) bool {
	known := (*code)(nil)
	for i := range u.codes {
		if u.codes[i].name == name {
			known = &u.codes[i]
		}
	}
	before, fresh := int64(0), u.scrapedBefore(at) // fresh: the difference is of errors since the scrape before
	switch {
	case known == nil:
		if len(u.codes) >= maxXIDs || len(name) > maxText {
			return false
		}
		u.codes = append(u.codes, code{name: strings.Clone(name)})
		known = &u.codes[len(u.codes)-1]
	case at <= known.at: // a duplicate, or too early
		return at == known.at
	default:
		before, fresh = known.count, true
		if count < before {
			before = 0 // the counter restarted
		}
	}
	known.count, known.at = count, at
	if fresh && count > before {
		if len(u.xids) >= maxXIDs { // the oldest makes room
			u.xids = u.xids[:copy(u.xids, u.xids[1:])]
		}
		u.xids = append(u.xids, XID{known.name, at, count - before})
	}
	return true
}

// scrapedBefore reports whether the GPU was scraped shortly before a time, ns: within two usual gaps, or a minute.
func (u *GPU) scrapedBefore(at int64) bool {
	for i := len(u.samples) - 1; i >= 0; i-- {
		if s := &u.samples[i]; s.at < at {
			return at-s.at <= max(farthest*u.every, int64(time.Minute))
		}
	}
	return false
}

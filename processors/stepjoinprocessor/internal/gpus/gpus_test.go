package gpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	second = int64(time.Second)
	base   = 1_700_000_000 * second
	keep   = 15 * time.Minute
)

// scrape makes the nvml metrics of a host at a time.
type scrape struct {
	md   pmetric.Metrics
	list pmetric.MetricSlice
	host string
	at   int64
}

func newScrape(host string, at int64) *scrape {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(spans.AttrHostName, host)
	return &scrape{md, rm.ScopeMetrics().AppendEmpty().Metrics(), host, at}
}

func (s *scrape) point(metric string, sum bool, gpu int, v float64, labels ...string) pmetric.NumberDataPoint {
	m := s.list.AppendEmpty()
	m.SetName(metric)
	var p pmetric.NumberDataPoint
	if sum {
		m.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p = m.Sum().DataPoints().AppendEmpty()
	} else {
		p = m.SetEmptyGauge().DataPoints().AppendEmpty()
	}
	p.SetTimestamp(pcommon.Timestamp(s.at))
	p.SetDoubleValue(v)
	a := p.Attributes()
	a.PutStr(spans.AttrHostName, s.host)
	a.PutStr(spans.AttrHardwareID, fmt.Sprintf("GPU-%d", gpu))
	a.PutStr(spans.AttrHardwareName, fmt.Sprintf("GPU %d", gpu))
	a.PutStr(spans.AttrHardwareType, spans.HardwareTypeGPU)
	for i := 0; i+1 < len(labels); i += 2 {
		a.PutStr(labels[i], labels[i+1])
	}
	return p
}

// gpu adds the nvml values of a GPU at each scrape.
func (s *scrape) gpu(n int, util, watts, celsius, hertz float64) *scrape {
	s.point(spans.MetricGPUUtilization, false, n, util, spans.AttrGPUTask, "general")
	s.point(spans.MetricHardwarePower, false, n, watts)
	s.point(spans.MetricHardwareTemperature, false, n, celsius, spans.AttrSensorLocation, "gpu")
	s.point(spans.MetricGPUClock, false, n, hertz, spans.AttrGPUClockDomain, "sm")
	return s
}

func (s *scrape) throttle(n int, policy string, seconds float64) *scrape {
	s.point(spans.MetricGPUThrottleTime, true, n, seconds, spans.AttrGPUThrottlePolicy, policy)
	return s
}

func (s *scrape) process(n int, pid int64, bytes float64) *scrape {
	s.point(spans.MetricGPUProcessMemory, true, n, bytes).Attributes().PutInt(spans.AttrProcessPID, pid)
	return s
}

func (s *scrape) into(t *testing.T, g *GPUs) {
	t.Helper()
	before := pmetric.NewMetrics()
	s.md.CopyTo(before)
	assert.Zero(t, g.Notice(s.md, keep, nil))
	assert.Equal(t, before, s.md, "metrics pass as they are")
}

func within(g *GPUs, start, end int64, processes ...Process) (Window, bool) {
	return g.Within(new(Scratch), base+start, base+end, processes, []string{"a", "b"})
}

// A sample is of the time since the sample before: the window takes the overlap.
func TestMeans(t *testing.T) {
	g := New()
	for i := range int64(10) { // the scrape at 4 s is of (3 s, 4 s]
		newScrape("a", base+i*second).gpu(0, float64(i)/10, 100*float64(i), 50+float64(i), 1e9).gpu(1, 0.5, 300, 60, 2e9).into(t, g)
	}
	for name, tt := range map[string]struct {
		start, end int64
		util, low  float64
		samples    int
		celsius    float64
	}{
		"whole intervals":     {2 * second, 5 * second, (0.4 + 0.5) / 2, 0.4, 6, 60},
		"halves at both ends": {5 * second / 2, 9 * second / 2, ((0.3*0.5+0.4+0.5*0.5)/2 + 0.5) / 2, 0.4, 4, 60},
		"beyond the last":     {7 * second, 20 * second, (0.85 + 0.5) / 2, 0.5, 4, 60},
	} {
		w, ok := within(g, tt.start, tt.end)
		require.True(t, ok, name)
		assert.InDelta(t, tt.util, w.Utilization.Mean, 1e-6, name)
		assert.InDelta(t, tt.low, w.Utilization.Min, 1e-6, name)
		assert.Equal(t, tt.samples, w.Samples, name)
		assert.Equal(t, 2, w.GPUs, name)
		assert.InDelta(t, tt.celsius, w.Temperature.Max, 1e-6, name)
		assert.InDelta(t, 1500, w.Clock.Mean, 1e-6, name)
		assert.InDelta(t, 1000, w.Clock.Min, 1e-6, name)
		assert.Empty(t, w.Held)
	}
	for _, none := range [][2]int64{{second/10 + 3*second, 4*second - second/10}, {20 * second, 30 * second}, {-5 * second, -second}} {
		_, ok := within(g, none[0], none[1])
		assert.False(t, ok, "no scrape within %v", none)
	}
}

// Unscraped values are not invented: a sample covers at most twice the usual gap. Driver counters cover all of it.
func TestGap(t *testing.T) {
	g := New()
	for _, i := range []int64{0, 1, 2, 3, 63} {
		s := newScrape("a", base+i*second).gpu(0, map[bool]float64{true: 1, false: 0.5}[i == 63], 1, 1, 1).throttle(0, "thermal", float64(i))
		s.point(spans.MetricGPUThrottleActive, false, 0, 1, spans.AttrGPUThrottleReason, "hw_slowdown")
		s.into(t, g)
	}
	w, ok := within(g, second, 40*second)
	require.True(t, ok)
	assert.Equal(t, 2, w.Samples)
	assert.InDelta(t, 0.5, w.Utilization.Mean, 1e-6)
	assert.InDelta(t, 39, w.Throttled[Thermal], 1e-6)
	assert.InDelta(t, 2, w.Throttled[Slowdown], 1e-6)
	w, ok = within(g, second, 63*second)
	require.True(t, ok)
	every := float64(g.hosts["a"]["GPU-0"].every) / 1e9
	assert.InDelta(t, (2*0.5+2*every)/(2+2*every), w.Utilization.Mean, 1e-6)
	assert.Less(t, every, 2.0)
}

// Seconds are the least possible within the window, by the driver's counters.
func TestHeld(t *testing.T) {
	g := New()
	for i, total := range []float64{5, 5, 5.4, 6.4, 6.4} {
		s := newScrape("a", base+int64(i)*second).gpu(3, 1, 1, 1, 1).throttle(3, "thermal", total).throttle(3, "power", 2*float64(i)/4)
		s.throttle(3, "low_utilization", float64(i)).throttle(3, "total_base_clocks", float64(i)).into(t, g)
	}
	for name, tt := range map[string]struct {
		start, end     int64
		thermal, power float64
	}{
		"all of it":              {0, 4 * second, 1.4, 2},
		"where it is not sure":   {0, 3 * second / 2, 0, 0.5},
		"a part that must be in": {0, 19 * second / 10, 0.3, 0.5 + 0.4},
		"half of a whole":        {2 * second, 5 * second / 2, 0.5, 0},
	} {
		w, _ := g.Within(new(Scratch), base+tt.start, base+tt.end, nil, []string{"a"})
		if w.GPUs == 0 { // no scrape within: asked for a little more
			w, _ = g.Within(new(Scratch), base+tt.start-1, base+tt.end, nil, []string{"a"})
		}
		assert.InDelta(t, tt.thermal, w.Throttled[Thermal], 1e-6, name)
		assert.InDelta(t, tt.power, w.Throttled[Power], 1e-6, name)
		if tt.thermal > 0 && assert.Len(t, w.Held, 1, name) {
			c, ok := w.Held[0].Longest()
			assert.True(t, ok)
			assert.Equal(t, Thermal, c)
			assert.Equal(t, "GPU 3", w.Held[0].Name)
		}
	}
}

// Without counters, an interval counts if the flag was set at both of its ends.
func TestFlags(t *testing.T) {
	g := New()
	for i, on := range []float64{0, 1, 1, 1, 0, 1} {
		s := newScrape("a", base+int64(i)*second).gpu(0, 1, 1, 1, 1)
		s.point(spans.MetricGPUThrottleActive, false, 0, on, spans.AttrGPUThrottleReason, "hw_thermal_slowdown")
		s.point(spans.MetricGPUThrottleActive, false, 0, 0, spans.AttrGPUThrottleReason, "sw_thermal_slowdown")
		s.point(spans.MetricGPUThrottleActive, false, 0, 1, spans.AttrGPUThrottleReason, "gpu_idle")
		s.into(t, g)
	}
	w, ok := within(g, 0, 5*second)
	require.True(t, ok)
	assert.InDelta(t, 2, w.Throttled[Thermal], 1e-6)
	require.True(t, g.coarsen())
	w, ok = within(g, 0, 5*second)
	require.True(t, ok)
	assert.LessOrEqual(t, w.Throttled[Thermal], 2+1e-6, "never more than was seen")
}

// The GPUs of a window are those of its processes; of the hosts only if no process is known on any GPU.
func TestWhose(t *testing.T) {
	g := New()
	for i := range int64(4) {
		for _, host := range []string{"a", "b", "c"} {
			s := newScrape(host, base+i*second)
			for n := range 4 {
				s.gpu(n, float64(n)/4, 1, 1, 1).process(n, int64(100+n), 40e9)
			}
			s.process(0, 103, 5e8) // a context without work
			s.process(2, 200, 30e9).process(3, 200, 20e9).into(t, g)
		}
	}
	for name, tt := range map[string]struct {
		processes []Process
		gpus      int
		stated    bool
		util      float64
	}{
		"one process":                      {[]Process{{"a", 103}}, 1, true, 0.75},
		"the same pid on two hosts":        {[]Process{{"a", 101}, {"b", 101}}, 2, true, 0.25},
		"a process with two GPUs":          {[]Process{{"a", 200}}, 2, true, 0.625},
		"two processes of one GPU":         {[]Process{{"a", 200}, {"a", 102}}, 2, true, 0.625},
		"a process of no GPU beside one":   {[]Process{{"a", 7}, {"b", 102}}, 1, true, 0.5},
		"no process of a GPU":              {[]Process{{"a", 7}}, 8, false, 0.375},
		"nothing but hosts":                {nil, 8, false, 0.375},
		"a host of which nothing is known": {[]Process{{"z", 100}}, 8, false, 0.375},
	} {
		w, ok := within(g, 0, 3*second, tt.processes...)
		require.True(t, ok, name)
		assert.Equal(t, tt.gpus, w.GPUs, name)
		assert.Equal(t, tt.stated, w.Stated, name)
		assert.InDelta(t, tt.util, w.Utilization.Mean, 1e-6, name)
	}
	_, ok := g.Within(new(Scratch), base, base+3*second, []Process{{"z", 1}}, []string{"z"})
	assert.False(t, ok)
	_, ok = g.Within(new(Scratch), base+60*second, base+90*second, []Process{{"a", 101}}, nil)
	assert.False(t, ok, "long after")
	assert.Empty(t, g.Of(nil, Process{"a", 101}, base+60*second, base+90*second), "the pid may be another's by now")
}

func TestXIDs(t *testing.T) {
	g := New()
	for i, count := range []float64{-1, 1, 1, 4, 1} { // the driver's process began anew before the last
		s := newScrape("a", base+int64(i)*second).gpu(0, 1, 1, 1, 1)
		s.point(spans.MetricHardwareErrors, true, 0, 9, spans.AttrErrorType, "corrected")
		if count >= 0 {
			s.point(spans.MetricHardwareErrors, true, 0, count, spans.AttrErrorType, "xid_79")
		}
		s.into(t, g)
	}
	w, ok := within(g, 0, 4*second)
	require.True(t, ok)
	require.Len(t, w.Errors, 3)
	for i, want := range []XID{{"xid_79", base + second, 1}, {"xid_79", base + 3*second, 3}, {"xid_79", base + 4*second, 1}} {
		assert.Equal(t, want, w.Errors[i].XID)
	}
	w, _ = within(g, second, 2*second)
	assert.Empty(t, w.Errors, "each is in one of the windows that follow each other")

	g = New() // the first metric of a GPU: the time of its errors is unknown
	s := newScrape("a", base).gpu(0, 1, 1, 1, 1)
	s.point(spans.MetricHardwareErrors, true, 0, 5, spans.AttrErrorType, "xid_79")
	s.into(t, g)
	w, _ = within(g, -second, second)
	assert.Empty(t, w.Errors)
}

// Unusable points are counted, and change nothing.
func TestBadPoints(t *testing.T) {
	g := New()
	newScrape("a", base).gpu(0, 0.5, 1, 1, 1).into(t, g)
	newScrape("a", base+second).gpu(0, 0.5, 1, 1, 1).into(t, g)
	newScrape("a", base+second).gpu(0, 0.5, 1, 1, 1).into(t, g) // a duplicate
	bad := newScrape("", base+2*second)
	bad.point(spans.MetricHardwarePower, false, 0, 1)
	bad.host = "a"
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		bad.point(spans.MetricHardwarePower, false, 0, v)
	}
	bad.point(spans.MetricHardwarePower, false, 0, 1).SetTimestamp(0)
	bad.point(spans.MetricHardwarePower, false, 0, 1).SetTimestamp(math.MaxUint64)
	bad.point(spans.MetricHardwarePower, false, 0, 1).SetTimestamp(pcommon.Timestamp(base + second/2)) // between two known samples
	bad.point(spans.MetricHardwarePower, false, 0, 1, spans.AttrHardwareID, "")
	bad.point(spans.MetricHardwarePower, false, 0, 1).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	bad.process(0, 0, 1).process(0, math.MaxInt64, 1)
	n := bad.list.Len()
	// Of other hardware, or another value of a GPU: not used, and not counted.
	bad.point(spans.MetricHardwarePower, false, 0, 1, spans.AttrHardwareType, "fan")
	bad.point(spans.MetricHardwareTemperature, false, 0, 1, spans.AttrSensorLocation, "memory")
	bad.point(spans.MetricGPUClock, false, 0, 1, spans.AttrGPUClockDomain, "video")
	bad.list.AppendEmpty().SetName(spans.MetricHardwarePower)
	bad.list.AppendEmpty().SetEmptyHistogram()
	assert.Equal(t, int64(n), g.Notice(bad.md, keep, nil))
	assert.Len(t, g.hosts["a"]["GPU-0"].samples, 2)
	w, ok := within(g, 0, second)
	require.True(t, ok)
	assert.InDelta(t, 0.5, w.Utilization.Mean, 1e-6)
	assert.Equal(t, 1, w.Samples)

	newScrape("a", base-3600*second).gpu(0, 0.25, 1, 1, 1).into(t, g) // its clock was set back
	assert.Len(t, g.hosts["a"]["GPU-0"].samples, 1)
}

// Whatever comes, samples stay within their bound; the older ones become coarser, and their means stay.
func TestBounded(t *testing.T) {
	g := New()
	g.most = 600
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range int64(400) {
		s := newScrape("a", base+i*second)
		for n := range 4 {
			s.gpu(n, 0.5, float64(rng.IntN(700)), float64(i%90), 1e9).throttle(n, "thermal", float64(i)/2)
		}
		s.into(t, g)
		assert.LessOrEqual(t, g.Bytes(), int64(600*sampleBytes))
	}
	w, ok := within(g, 100*second, 399*second)
	require.True(t, ok)
	assert.InDelta(t, 0.5, w.Utilization.Mean, 1e-6)
	assert.InDelta(t, 89, w.Temperature.Max, 1e-6)
	assert.InDelta(t, 149.5, w.Throttled[Thermal], 40, "less only at the beginning")
	assert.InDelta(t, 4*299, w.Samples, 4*70)

	g = New()
	for i := range 3 * maxGPUs / 2 { // GPUs, processes and codes without end
		g.Notice(newScrape(fmt.Sprint("host", i), base).throttle(0, "power", 1).md, keep, nil)
		s := newScrape("b", base+int64(i)*second)
		s.process(0, int64(i+1), 1)
		s.point(spans.MetricHardwareErrors, true, 0, 1, spans.AttrErrorType, fmt.Sprint("xid_", i))
		g.Notice(s.md, keep, nil)
	}
	assert.Equal(t, maxGPUs, g.count)
	u := g.hosts["b"]["GPU-0"]
	assert.LessOrEqual(t, len(u.procs), maxProcs)
	assert.LessOrEqual(t, len(u.codes), maxXIDs)
	assert.LessOrEqual(t, len(u.xids), maxXIDs)
	long := newScrape(string(make([]byte, maxText+1)), base).gpu(0, 1, 1, 1, 1)
	assert.Equal(t, int64(4), g.Notice(long.md, keep, nil))
}

// 64 hosts of 8 GPUs at a sample a second have room for 15 minutes without becoming coarser.
func TestRoom(t *testing.T) {
	assert.GreaterOrEqual(t, New().most, 64*8*15*60)
	assert.LessOrEqual(t, MaxBytes, 32<<20)
}

// Vanished GPUs are dropped, and samples older than kept.
func TestForgotten(t *testing.T) {
	g := New()
	now := time.Unix(1_700_000_000, 0)
	g.now = func() time.Time { return now }
	newScrape("a", base).gpu(0, 1, 1, 1, 1).into(t, g)
	now = now.Add(forgetAfter + time.Minute)
	for i := range int64(3000) {
		newScrape("b", base+i*second).gpu(0, 1, 1, 1, 1).into(t, g)
	}
	assert.NotContains(t, g.hosts, "a")
	assert.Equal(t, 1, g.count)
	assert.LessOrEqual(t, len(g.hosts["b"]["GPU-0"].samples), 1300)
	assert.Equal(t, cap(g.hosts["b"]["GPU-0"].samples), g.room)
}

// BenchmarkNotice is an nvml scrape of a host of 8 GPUs, and as many points of other metrics.
func BenchmarkNotice(b *testing.B) {
	for _, of := range []string{"gpu", "other"} {
		b.Run(of, func(b *testing.B) {
			g := New()
			s := newScrape("node-1", base)
			for n := range 8 {
				s.gpu(n, 0.9, 650, 70, 1.98e9).process(n, int64(1000+n), 40e9)
				for _, policy := range []string{"power", "thermal", "sync_boost", "board_limit", "low_utilization", "reliability"} {
					s.throttle(n, policy, 1)
				}
				for _, reason := range []string{"gpu_idle", "sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown"} {
					s.point(spans.MetricGPUThrottleActive, false, n, 0, spans.AttrGPUThrottleReason, reason)
				}
			}
			points := s.md.DataPointCount()
			if of == "other" {
				for _, m := range s.list.All() {
					m.SetName("ml.train.loss.of.something")
				}
			}
			at := base
			b.ReportAllocs()
			for b.Loop() {
				at += second
				if of == "gpu" {
					for _, m := range s.list.All() {
						if m.Type() == pmetric.MetricTypeGauge {
							m.Gauge().DataPoints().At(0).SetTimestamp(pcommon.Timestamp(at))
						} else {
							m.Sum().DataPoints().At(0).SetTimestamp(pcommon.Timestamp(at))
						}
					}
				}
				g.Notice(s.md, keep, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*points), "ns/point")
		})
	}
}

// A GPU works for the run whose spans its process (by the driver) wrote, as the rank in these spans; for none if they name several.
func TestWorkers(t *testing.T) {
	g := New()
	now := time.Unix(0, base)
	g.now = func() time.Time { return now }
	told := func(host string) (list []string) {
		s := newScrape(host, now.UnixNano()).process(0, 100, 1e9).process(1, 101, 1e9).process(2, 102, 1e9).process(3, 103, 1e9).process(0, 101, 2e8)
		assert.Zero(t, g.Notice(s.md, keep, func(infos []Info) {
			for _, i := range infos {
				list = append(list, fmt.Sprint(i.Host, " ", i.ID, " ", i.Service, " ", i.Run, " ", i.Rank, " ", i.At-now.UnixNano()))
			}
		}))
		return list
	}
	assert.Empty(t, told("node-0"))
	g.Work(Process{"node-0", 100}, "train", "run-1", -1)
	g.Work(Process{"node-0", 101}, "train", "run-1", -1)
	g.Work(Process{"node-0", 101}, "nccl", "run-1", 5)
	g.Work(Process{"node-0", 101}, "nccl", "run-1", -1)
	g.Work(Process{"node-0", 102}, "train", "run-1", 6)
	g.Work(Process{"node-0", 102}, "train", "run-1", 7)
	g.Work(Process{"node-0", 102}, "train", "run-1", 6)
	g.Work(Process{"node-1", 103}, "train", "run-2", 9)
	assert.Equal(t, []string{"node-0 GPU-0 train run-1 -1 0", "node-0 GPU-1 train run-1 5 0", "node-0 GPU-2 train run-1 -1 0"}, told("node-0"))
	assert.Equal(t, []string{"node-1 GPU-3 train run-2 9 0"}, told("node-1"))
	g.Work(Process{"node-0", 100}, "train", "run-3", 0) // the pid was given anew
	assert.Equal(t, "node-0 GPU-0 train run-3 0 0", told("node-0")[0])
	now = now.Add(forgetAfter + time.Minute)
	told("node-2")
	assert.Empty(t, told("node-0"))
	for pid := range int32(maxWorkers + 10) {
		g.Work(Process{"node-9", pid + 1}, "train", "run-1", -1)
	}
	assert.Len(t, g.workers, maxWorkers)
}

// A log numbers GPUs by their index in a list: these are none of nvml's.
func TestGPUsOfLogs(t *testing.T) {
	g := New()
	s := newScrape("node-0", base)
	s.point(spans.MetricGPUUtilization, false, 0, 0.5, spans.AttrSource, "jsonl", spans.AttrGPUTask, "general")
	s.into(t, g)
	assert.False(t, g.Known())
}

//go:build linux && cgo

package nvmlreceiver

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

// A driver that hangs when NVML starts does not hold up the collector's start.
func TestStartHangs(t *testing.T) {
	h := newHost(1)
	release := make(chan struct{})
	init := h.InitFunc
	h.InitFunc = func() nvml.Return {
		<-release
		return init()
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	b := newBed(t, h)
	require.NoError(t, b.start(over, componenttest.NewNopHost()))
	_, err := b.scrape(over)
	require.ErrorIs(t, err, errNoAnswer)

	p := newBed(t, h, func(c *Config) { c.ErrorMode = errorPropagate })
	require.ErrorIs(t, p.start(over, componenttest.NewNopHost()), errNoAnswer)
	p = newBed(t, h, func(c *Config) { c.ErrorMode, c.Timeout = errorPropagate, 1 })
	require.ErrorIs(t, p.start(context.Background(), componenttest.NewNopHost()), errNoAnswer, "not longer than a scrape waits")
	close(release)
	md, err := b.scrape(context.Background())
	require.NoError(t, err)
	assert.Contains(t, pointsOf(md), "hw.power id=GPU-0")
}

// Ending NVML may hang as well.
func TestEndHangs(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h, func(c *Config) { c.Timeout = 1 }).begin(t)
	release, ended := make(chan struct{}), make(chan struct{})
	h.ShutdownFunc = func() nvml.Return {
		defer close(ended)
		<-release
		return nvml.SUCCESS
	}
	require.NoError(t, b.shutdown(context.Background()))
	close(release)
	<-ended
}

// NVML counts its users: when a receiver stops while the driver hangs, NVML is ended as soon as the driver answers.
func TestStopWhileItHangs(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h).begin(t)
	release, ended := make(chan struct{}), make(chan struct{})
	h.gpus[0].GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
		<-release
		return 50, nvml.SUCCESS
	}
	h.ShutdownFunc = func() nvml.Return {
		defer close(ended) // panics if called twice
		select {
		case <-release:
		default:
			t.Error("a call is still in NVML")
		}
		return h.call("Shutdown")
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.scrape(over)
	require.ErrorIs(t, err, errNoAnswer)
	require.NoError(t, b.shutdown(over))
	runtime.Gosched()
	close(release)
	<-ended
	assert.Equal(t, h.called("Init"), h.called("Shutdown"))
}

// vanish removes a GPU, as a reset of the bus does: NVML renumbers the others. Its calls keep the old number in their names.
func (h *host) vanish(i int) { h.gpus = append(h.gpus[:i:i], h.gpus[i+1:]...) }

// lose makes the host report the GPU as lost, whatever its index.
func (h *host) lose(d *mock.Device) {
	byIndex := h.DeviceGetHandleByIndexFunc
	h.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if h.gpus[i] == d {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return byIndex(i)
	}
}

// The GPU that takes the index of a lost GPU is a different GPU: found, and lost, by its own name.
func TestIndicesMove(t *testing.T) {
	h := newHost(3)
	b := newBed(t, h).begin(t)
	last := h.gpus[2]
	h.set("1/DeviceGetSamples", nvml.ERROR_GPU_IS_LOST)
	_, err := b.next()
	require.ErrorContains(t, err, "GPU 1 (GPU-1) is lost")
	h.vanish(1)
	b.at = b.at.Add(lookAgain)
	got, err := b.next()
	require.NoError(t, err)
	assert.InDelta(t, 1, got["hw.status id=GPU-1 state=failed"], 0, "no longer there at all")
	assert.InDelta(t, 1, got["hw.status id=GPU-2 state=ok"], 0)
	assert.Contains(t, got, "hw.power id=GPU-2")
	assert.Empty(t, b.log.FilterMessage("A GPU is back.").All())

	h.set("2/DeviceGetSamples", nvml.ERROR_GPU_IS_LOST)
	_, err = b.next()
	require.ErrorContains(t, err, "GPU 1 (GPU-2) is lost")
	h.lose(last)
	b.at = b.at.Add(lookAgain)
	got, err = b.next()
	require.NoError(t, err)
	for _, uuid := range []string{"GPU-1", "GPU-2"} {
		assert.InDelta(t, 1, got["hw.status id="+uuid+" state=failed"], 0, uuid)
	}
	assert.NotContains(t, fmt.Sprint(got), "index-1", "it is GPU-2")
	assert.InDelta(t, 1, got["hw.status id=GPU-0 state=ok"], 0)
	assert.Len(t, b.warnings(), 2)
}

// A GPU lost before the start is not confused with a known GPU that moves to its index.
func TestNamelessIndexMoves(t *testing.T) {
	h := newHost(3)
	h.lose(h.gpus[1])
	b := newBed(t, h).begin(t)
	got, err := b.next()
	require.NoError(t, err)
	assert.InDelta(t, 1, got["hw.status id=index-1 state=failed"], 0)
	h.vanish(1)
	b.at = b.at.Add(lookAgain)
	got, err = b.next()
	require.NoError(t, err)
	assert.InDelta(t, 1, got["hw.status id=index-1 state=failed"], 0)
	assert.InDelta(t, 1, got["hw.status id=GPU-2 state=ok"], 0)
	assert.Empty(t, b.log.FilterMessage("A GPU is back.").All())
}

// A GPU lost before the start reports its name and is lost again, both in one start of NVML: still one lost GPU.
func TestNamelessGetsName(t *testing.T) {
	h := newHost(2)
	h.set("0/DeviceGetHandleByIndex", nvml.ERROR_GPU_IS_LOST)
	b := newBed(t, h).begin(t)
	_, err := b.next()
	require.NoError(t, err)
	h.set("0/DeviceGetHandleByIndex", nvml.SUCCESS)
	h.set("0/DeviceGetMigMode", nvml.ERROR_GPU_IS_LOST)
	b.at = b.at.Add(lookAgain)
	got, err := b.next()
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprint(got), "index-0")
	assert.InDelta(t, 1, got["hw.status id=GPU-0 state=failed"], 0)
	assert.Len(t, b.warnings(), 1)
}

// A lost GPU that reported its name in a failed start of NVML, and not in the next, is one lost GPU.
func TestLostAgain(t *testing.T) {
	h := newHost(2)
	b := newBed(t, h).begin(t)
	h.set("1/DeviceGetSamples", nvml.ERROR_GPU_IS_LOST)
	_, err := b.next()
	require.ErrorContains(t, err, "GPU 1 (GPU-1) is lost")
	h.set("0/DeviceGetSamples", nvml.ERROR_UNINITIALIZED)
	b.at = b.at.Add(lookAgain)
	_, err = b.next()
	require.NoError(t, err)
	h.set("0/DeviceGetSamples", nvml.SUCCESS)
	h.set("1/DeviceGetHandleByIndex", nvml.ERROR_GPU_IS_LOST)
	got, err := b.next()
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprint(got), "index-1")
	assert.InDelta(t, 1, got["hw.status id=GPU-1 state=failed"], 0)
}

// Two GPUs with one UUID stay two.
func TestOneUUID(t *testing.T) {
	h := newHost(3)
	h.gpus[1].GetUUIDFunc = h.gpus[0].GetUUIDFunc
	b := newBed(t, h).begin(t)
	h.set("2/DeviceGetSamples", nvml.ERROR_GPU_IS_LOST)
	for range 3 {
		md, _ := b.scrape(context.Background())
		names := make(map[string]bool)
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "hw.power" {
				for _, dp := range m.Gauge().DataPoints().All() {
					name, _ := dp.Attributes().Get("hw.name")
					names[name.Str()] = true
				}
			}
		}
		assert.Equal(t, map[string]bool{"GPU 0": true, "GPU 1": true}, names)
		b.at = b.at.Add(lookAgain)
	}
	assert.Equal(t, 3, h.called("Init"))
}

// The only GPU is lost: NVML works.
func TestLastLost(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h).begin(t)
	h.each("", nvml.ERROR_GPU_IS_LOST)
	h.set("DeviceGetSamples", nvml.ERROR_GPU_IS_LOST)
	_, err := b.next()
	require.ErrorContains(t, err, "GPU 0 (GPU-0) is lost")
	for range 3 {
		got, err := b.next()
		require.NoError(t, err)
		assert.Equal(t, points{"hw.status id=GPU-0 state=ok": 0, "hw.status id=GPU-0 state=degraded": 0, "hw.status id=GPU-0 state=failed": 1}, got)
		b.at = b.at.Add(lookAgain)
	}
	assert.Len(t, b.warnings(), 1)
	assert.Equal(t, 3, h.called("Init"))
}

// A GPU may turn out lost in the very scrape that restarts NVML for another GPU, and a lost GPU may report its name at a new index.
func TestLostByRestart(t *testing.T) {
	h := newHost(3)
	zero, one := h.gpus[0], h.gpus[1]
	b := newBed(t, h).begin(t)
	h.set("1/DeviceGetSamples", nvml.ERROR_GPU_IS_LOST)
	_, err := b.next()
	require.ErrorContains(t, err, "GPU 1 (GPU-1) is lost")
	h.lose(zero)
	failed := func(uuids ...string) {
		t.Helper()
		b.at = b.at.Add(lookAgain)
		got, err := b.next()
		require.NoError(t, err)
		for _, uuid := range uuids {
			assert.InDelta(t, 1, got["hw.status id="+uuid+" state=failed"], 0, uuid)
		}
		assert.InDelta(t, 1, got["hw.status id=GPU-2 state=ok"], 0)
		assert.NotContains(t, fmt.Sprint(got), "index-")
	}
	failed("GPU-0", "GPU-1")
	h.vanish(0)
	failed("GPU-0", "GPU-1")
	h.lose(one)
	failed("GPU-0", "GPU-1")
	assert.Len(t, b.warnings(), 2)
}

// Looking for a lost GPU once a minute changes nothing for the others: no gap in a rate, no sample twice, no line again.
func TestRestartKeepsTheOthers(t *testing.T) {
	h := newHost(2)
	h.set("DeviceGetRemappedRows", nvml.ERROR_NOT_SUPPORTED)
	b := newBed(t, h).begin(t)
	h.samples[nvml.TOTAL_POWER_SAMPLES] = []nvml.Sample{sample(10, 100_000)}
	_, err := b.next()
	require.NoError(t, err)
	h.set("1/DeviceGetClockInfo", nvml.ERROR_GPU_IS_LOST)
	before, err := b.next()
	require.Error(t, err)
	h.samples[nvml.TOTAL_POWER_SAMPLES] = []nvml.Sample{sample(10, 100_000), sample(20, 300_000)}
	h.fields[[2]uint32{nvml.FI_DEV_PCIE_COUNT_RX_BYTES, 0}] += 59_000
	b.at = b.at.Add(lookAgain - 2*time.Second)
	got, err := b.next()
	require.NoError(t, err)
	assert.Equal(t, 2, h.called("Init"))
	assert.Len(t, got.of("GPU-0"), len(before.of("GPU-0")))
	assert.InDelta(t, 1000, got["trainbridge.gpu.pcie.throughput direction=receive id=GPU-0"], 1e-9, "in 59 s")
	assert.InDelta(t, 300, got["hw.power id=GPU-0"], 1e-9)
	assert.Len(t, b.log.FilterMessageSnippet("does not have some fields").All(), 2)
	assert.Equal(t, 1, h.called("0/DeviceGetRemappedRows"))
}

// A GPU whose answers are all errors has failed, whatever its state before.
func TestSilent(t *testing.T) {
	h := newHost(2)
	b := newBed(t, h).begin(t)
	_, err := b.next()
	require.NoError(t, err)
	h.each("1/", nvml.ERROR_UNKNOWN)
	for range 5 {
		got, _ := b.next()
		assert.InDelta(t, 1, got["hw.status id=GPU-1 state=failed"], 0)
		assert.Len(t, got.of("GPU-1"), 3)
		assert.InDelta(t, 1, got["hw.status id=GPU-0 state=ok"], 0)
	}
	h.each("1/", nvml.SUCCESS)
	b.at = b.at.Add(lookAgain)
	got, err := b.next()
	require.NoError(t, err)
	assert.InDelta(t, 1, got["hw.status id=GPU-1 state=ok"], 0)
	assert.Len(t, got.of("GPU-1"), len(got.of("GPU-0")))
	assert.Empty(t, b.warnings())
}

// each sets the answer of all functions of a GPU ("1/") called before, or of all GPUs ("").
func (h *host) each(gpu string, ret nvml.Return) {
	for name := range h.calls {
		if i := strings.IndexByte(name, '/'); i > 0 && strings.HasPrefix(name, gpu) {
			h.set(gpu+name[i+1:], ret)
		}
	}
}

// A field that fails for good does not log an error at every scrape.
func TestFailsForever(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	h := newHost(2)
	h.set("1/DeviceGetTemperature", nvml.ERROR_UNKNOWN)
	b := newBed(t, h).begin(t)
	errs := 0
	for range 3600 {
		got, err := b.next()
		if err != nil {
			errs++
		}
		assert.Contains(t, got, "hw.temperature id=GPU-1 sensor_location=memory")
		assert.InDelta(t, 1, got["hw.status id=GPU-1 state=ok"], 0)
	}
	assert.InDelta(t, 61, errs, 1)
	assert.Equal(t, errs, h.called("1/DeviceGetTemperature"))
	h.set("1/DeviceGetTemperature", nvml.SUCCESS)
	b.at = b.at.Add(lookAgain)
	for range 2 {
		got, err := b.next()
		require.NoError(t, err)
		assert.Contains(t, got, "hw.temperature id=GPU-1 sensor_location=gpu")
	}
}

// A known field is not dropped when the driver denies support: an error that may pass.
func TestNoLongerSupported(t *testing.T) {
	for _, ret := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_NO_PERMISSION} {
		t.Run(ret.Error(), func(t *testing.T) {
			h := newHost(1)
			b := newBed(t, h).begin(t)
			_, err := b.next()
			require.NoError(t, err)
			h.set("0/DeviceGetTotalEnergyConsumption", ret)
			_, err = b.next()
			require.ErrorContains(t, err, "GPU 0: hw.energy: "+ret.Error())
			h.set("0/DeviceGetTotalEnergyConsumption", nvml.SUCCESS)
			got, err := b.next()
			require.NoError(t, err)
			assert.Contains(t, got, "hw.energy id=GPU-0")
		})
	}
	t.Run("all", func(t *testing.T) { // invalid handles
		h := newHost(2)
		b := newBed(t, h).begin(t)
		_, err := b.next()
		require.NoError(t, err)
		h.each("", nvml.ERROR_INVALID_ARGUMENT)
		_, err = b.next()
		require.NoError(t, err)
		require.Len(t, b.warnings(), 1)
		h.each("", nvml.SUCCESS)
		got, err := b.next()
		require.NoError(t, err)
		assert.Contains(t, got, "hw.energy id=GPU-1")
	})
}

// A driver without any of the wanted metrics still counts as working.
func TestNothingSupported(t *testing.T) {
	h := newHost(1)
	h.set("DeviceGetTotalEccErrors", nvml.ERROR_NOT_SUPPORTED)
	b := newBed(t, h, func(c *Config) {
		on := c.Metrics.HwErrors
		off(&c.Metrics)
		c.Metrics.HwErrors = on
	}).begin(t)
	for range 3 {
		_, err := b.next()
		require.NoError(t, err)
	}
	assert.Empty(t, b.warnings())
	assert.Equal(t, 1, h.called("Init"))
}

// A GPU outside the configured devices may be lost.
func TestUnwantedLost(t *testing.T) {
	h := newHost(2)
	b := newBed(t, h, func(c *Config) { c.Devices = []Device{"0"} }).begin(t)
	h.set("1/DeviceGetMigMode", nvml.ERROR_GPU_IS_LOST)
	for range 3 {
		_, err := b.next()
		require.NoError(t, err)
	}
	b.at = b.at.Add(lookAgain)
	got, err := b.next()
	require.NoError(t, err)
	assert.Empty(t, got.of("GPU-1"))
	assert.Empty(t, b.warnings())
	assert.Equal(t, 1, h.called("Init"))
	assert.Zero(t, h.called("1/DeviceRegisterEvents"))
}

// While NVML as a whole does not work, the devices have no metrics.
func TestBrokenSaysNothing(t *testing.T) {
	h := newHost(2)
	b := newBed(t, h).begin(t)
	_, err := b.next()
	require.NoError(t, err)
	h.set("1/DeviceGetClockInfo", nvml.ERROR_UNINITIALIZED)
	got, err := b.next()
	require.NoError(t, err)
	assert.Empty(t, got)
	h.set("1/DeviceGetClockInfo", nvml.SUCCESS)
	got, err = b.next()
	require.NoError(t, err)
	assert.NotEmpty(t, got)
	for k := range got {
		assert.NotContains(t, k, "throughput", "NVML began anew, so its counters may have")
	}
}

// PCIe counters of 32 bits, as of an A100, wrap within a second and are no counters. A type of 64 bits is no proof.
func TestNarrowCounters(t *testing.T) {
	rx, tx := [2]uint32{nvml.FI_DEV_PCIE_COUNT_RX_BYTES, 0}, [2]uint32{nvml.FI_DEV_PCIE_COUNT_TX_BYTES, 0}
	const counter, rate = "hw.gpu.io direction=receive id=GPU-0", "trainbridge.gpu.pcie.throughput direction=receive id=GPU-0"
	t.Run("by type", func(t *testing.T) {
		h := newHost(1)
		h.valueType = nvml.VALUE_TYPE_UNSIGNED_INT
		b := newBed(t, h).begin(t)
		for range 2 {
			got, err := b.next()
			require.NoError(t, err)
			assert.NotContains(t, got, counter)
			assert.InDelta(t, 11_000, got[rate], 1e-9, "NVML's reading")
		}
		assert.Equal(t, 4, h.called("0/DeviceGetPcieThroughput"))
	})
	t.Run("by wrapping", func(t *testing.T) {
		h := newHost(1)
		b := newBed(t, h).begin(t)
		h.fields[rx], h.fields[tx] = math.MaxUint32, 5
		got, err := b.next()
		require.NoError(t, err)
		assert.InDelta(t, math.MaxUint32, got[counter], 0)
		h.fields[rx] = 7
		for range 3 {
			got, err = b.next()
			require.NoError(t, err)
			assert.NotContains(t, got, counter)
			assert.InDelta(t, 11_000, got[rate], 1e-9)
			h.fields[rx]++
		}
		assert.Len(t, b.log.FilterMessageSnippet("another takes its place").All(), 1)
	})
	t.Run("only as a counter", func(t *testing.T) {
		h := newHost(1)
		b := newBed(t, h, func(c *Config) { c.Metrics.TrainbridgeGpuPcieThroughput.Enabled = false }).begin(t)
		for _, bytes := range []uint64{10, 5, 6} {
			h.fields[rx] = bytes
			got, err := b.next()
			require.NoError(t, err)
			assert.Equal(t, bytes == 10, got[counter] > 0)
		}
		assert.Zero(t, h.called("0/DeviceGetPcieThroughput"))
	})
	t.Run("wide", func(t *testing.T) { // the GPU was reset
		h := newHost(1)
		b := newBed(t, h).begin(t)
		for _, bytes := range []uint64{math.MaxUint32 + 1, 5, 6} {
			h.fields[rx] = bytes
			got, err := b.next()
			require.NoError(t, err)
			assert.InDelta(t, bytes, got[counter], 0)
		}
	})
}

// The bytes of an NVLink that goes down stay in the sum, a counter.
func TestLinkGoesDown(t *testing.T) {
	h := newHost(1)
	delete(h.fields, [2]uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, math.MaxUint32})
	for link := range uint32(4) {
		h.fields[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, link}] = 100
		h.fields[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, link}] = 200
	}
	b := newBed(t, h).begin(t)
	for range 3 {
		got, err := b.next()
		require.NoError(t, err)
		assert.InDelta(t, 400, got["trainbridge.gpu.nvlink.io direction=receive id=GPU-0"], 0)
		assert.InDelta(t, 800, got["trainbridge.gpu.nvlink.io direction=transmit id=GPU-0"], 0)
		delete(h.fields, [2]uint32{nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, 2})
		delete(h.fields, [2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 2})
	}
}

// After the host's clock was set back, the time of a sample is taken as given, not compared with samples before.
func TestClockSetBack(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h).begin(t)
	stamp := func(age time.Duration) uint64 { return uint64(b.at.Add(-age).UnixMicro()) }
	h.samples[nvml.TOTAL_POWER_SAMPLES] = []nvml.Sample{sample(stamp(0), 100_000)}
	got, err := b.next()
	require.NoError(t, err)
	assert.InDelta(t, 100, got["hw.power id=GPU-0"], 1e-9)
	b.at = b.at.Add(-time.Hour)
	for _, milliwatts := range []uint32{200_000, 300_000} {
		b.at = b.at.Add(time.Second)
		h.samples[nvml.TOTAL_POWER_SAMPLES] = append(h.samples[nvml.TOTAL_POWER_SAMPLES][:0], sample(stamp(0), milliwatts))
		got, err = b.next()
		require.NoError(t, err)
		assert.InDelta(t, float64(milliwatts)/1e3, got["hw.power id=GPU-0"], 1e-9)
	}
}

// A value of an unknown type is not supported, rather than 0 or NaN.
func TestUnknownValueType(t *testing.T) {
	h := newHost(1)
	h.valueType = 99
	b := newBed(t, h).begin(t)
	for range 2 {
		got, err := b.next()
		require.NoError(t, err)
		assert.NotContains(t, got, "hw.temperature id=GPU-0 sensor_location=memory")
		assert.NotContains(t, fmt.Sprint(got), "nvlink")
		assert.NotContains(t, fmt.Sprint(got), "hw.gpu.io")
		assert.Contains(t, got, "hw.temperature id=GPU-0 sensor_location=gpu")
	}
}

// Numbers too large for a point are never negative.
func TestHugeNumbers(t *testing.T) {
	h := newHost(1)
	for k := range h.fields {
		h.fields[k] = math.MaxUint64 - 5
	}
	h.fields[[2]uint32{nvml.FI_DEV_MEMORY_TEMP, 0}] = 60
	d := h.gpus[0]
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
		return math.MaxUint64, nvml.SUCCESS
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: math.MaxUint32, UsedGpuMemory: math.MaxUint64 - 1}}, nvml.SUCCESS
	}
	totals := []uint64{math.MaxUint64, 100}
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		total := totals[0]
		totals = totals[1:]
		return nvml.Memory_v2{Total: total, Used: math.MaxUint64}, nvml.SUCCESS
	}
	b := newBed(t, h).begin(t)
	for range 2 {
		got, err := b.next()
		require.ErrorContains(t, err, "GPU 0: hw.gpu.memory")
		for k, v := range got {
			assert.GreaterOrEqual(t, v, 0.0, k)
		}
		assert.NotContains(t, fmt.Sprint(got), "hw.gpu.memory")
	}
}

// A field with samples stays after a scrape without a new sample and a current reading.
func TestNoSampleNoReading(t *testing.T) {
	h := newHost(1)
	h.set("DeviceGetPowerUsage", nvml.ERROR_NOT_SUPPORTED)
	b := newBed(t, h).begin(t)
	for i, watts := range []uint32{100, 0, 300} {
		if watts > 0 {
			h.samples[nvml.TOTAL_POWER_SAMPLES] = []nvml.Sample{sample(uint64(i+1), watts*1e3)}
		}
		got, err := b.next()
		require.NoError(t, err)
		assert.InDelta(t, float64(watts), got["hw.power id=GPU-0"], 1e-9)
	}
	h = newHost(1) // no samples
	h.set("DeviceGetPowerUsage", nvml.ERROR_NOT_SUPPORTED)
	h.set("DeviceGetSamples", nvml.ERROR_NOT_FOUND)
	b = newBed(t, h, func(c *Config) { c.Metrics.TrainbridgeGpuFieldSupported.Enabled = true }).begin(t)
	got, err := b.next()
	require.NoError(t, err)
	assert.NotContains(t, got, "hw.power id=GPU-0")
	assert.Zero(t, got["trainbridge.gpu.field.supported field=hw.power id=GPU-0"])
}

// The status is of the last successful reading, not the leftover of a failed call.
func TestStatusStays(t *testing.T) {
	h := newHost(1)
	h.gpus[0].GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, true, nvml.SUCCESS }
	b := newBed(t, h).begin(t)
	_, err := b.next()
	require.NoError(t, err)
	h.gpus[0].GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, nvml.ERROR_UNKNOWN }
	got, err := b.next()
	require.Error(t, err)
	assert.InDelta(t, 1, got["hw.status id=GPU-0 state=failed"], 0)

	h = newHost(1)
	h.gpus[0].GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
	b = newBed(t, h).begin(t)
	_, err = b.next()
	require.NoError(t, err)
	h.gpus[0].GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	got, err = b.next()
	require.Error(t, err)
	assert.InDelta(t, 1, got["hw.status id=GPU-0 state=degraded"], 0)
}

// A failing list of MIG devices is a partial error, once a minute.
func TestMIGFails(t *testing.T) {
	h := newHost(2)
	h.gpus[0].GetMigModeFunc = func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_ENABLE, nvml.DEVICE_MIG_ENABLE, nvml.SUCCESS }
	h.gpus[0].GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	b := newBed(t, h).begin(t)
	errs := 0
	for range 120 {
		got, err := b.next()
		if err != nil {
			require.ErrorContains(t, err, "GPU 0: MIG devices: "+nvml.ERROR_UNKNOWN.Error())
			errs++
		}
		assert.Contains(t, got, "hw.power id=GPU-0")
	}
	assert.InDelta(t, 3, errs, 1)
}

// A GPU whose list fails now and then is read at every scrape.
func TestMIGFailsOnce(t *testing.T) {
	h := newHost(1)
	h.gpus[0].GetMigModeFunc = func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_ENABLE, nvml.DEVICE_MIG_ENABLE, nvml.SUCCESS }
	h.gpus[0].GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 0, h.call("GetMaxMigDeviceCount") }
	b := newBed(t, h).begin(t)
	for i := range 10 {
		h.set("GetMaxMigDeviceCount", []nvml.Return{nvml.ERROR_TIMEOUT, nvml.SUCCESS}[i%2])
		_, err := b.next()
		assert.Equal(t, i%2 == 0, err != nil, i)
		assert.Equal(t, i+1, h.called("GetMaxMigDeviceCount"))
	}
}

// Events that come faster than the scrape reads them do not hold up the scrape.
func TestEventFlood(t *testing.T) {
	h := newHost(1)
	h.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{
			FreeFunc: func() nvml.Return { return nvml.SUCCESS },
			WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
				return nvml.EventData{Device: h.gpus[0], EventType: nvml.EventTypeXidCriticalError, EventData: 31}, nvml.SUCCESS
			},
		}, nvml.SUCCESS
	}
	b := newBed(t, h).begin(t)
	for i := range 2 {
		got, err := b.next()
		require.NoError(t, err)
		assert.InDelta(t, (i+1)*maxEvents, got["hw.errors id=GPU-0 type=xid_31"], 0)
	}
	assert.Len(t, b.warnings(), 1)
}

// sample is a sample with an unsigned int.
func sample(at uint64, v uint32) nvml.Sample {
	s := nvml.Sample{TimeStamp: at}
	binary.NativeEndian.PutUint32(s.SampleValue[:], v)
	return s
}

// The error of NVML as a whole may change from scrape to scrape: each error is logged once.
func TestAwayInTurns(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h)
	h.set("DeviceGetUUID", nvml.ERROR_UNINITIALIZED)
	for i := range 30 {
		h.set("Init", []nvml.Return{nvml.ERROR_UNKNOWN, nvml.ERROR_DRIVER_NOT_LOADED, nvml.SUCCESS}[i%3])
		_, err := b.next()
		require.NoError(t, err)
	}
	assert.Len(t, b.warnings(), 3)
}

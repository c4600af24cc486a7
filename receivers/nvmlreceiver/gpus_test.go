//go:build linux && cgo

package nvmlreceiver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/scraper/scrapererror"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver/internal/metadata"
)

// bed is a scraper with its own clock and an observed log.
type bed struct {
	*gpus
	log *observer.ObservedLogs
	at  time.Time
}

func newBed(t *testing.T, lib nvml.Interface, change ...func(*Config)) *bed {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	for _, c := range change {
		c(cfg)
	}
	require.NoError(t, cfg.Validate())
	core, log := observer.New(zapcore.DebugLevel)
	set := receivertest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	b := &bed{gpus: newGPUs(cfg, set, lib), log: log, at: time.Unix(1_700_000_000, 0)}
	b.clock = func() time.Time { return b.at }
	t.Cleanup(func() { require.NoError(t, b.shutdown(context.Background())) })
	return b
}

func (b *bed) begin(t *testing.T) *bed {
	t.Helper()
	require.NoError(t, b.start(context.Background(), componenttest.NewNopHost()))
	if !b.connected { // otherwise the first scrape connects
		if err := b.connect(nil); err != nil {
			require.NoError(t, b.sayAway(err))
		}
	}
	return b
}

// next scrapes a second later.
func (b *bed) next() (points, error) {
	b.at = b.at.Add(time.Second)
	md, err := b.scrape(context.Background())
	return pointsOf(md), err
}

// warnings are the messages of level warn and above.
func (b *bed) warnings() []string {
	var list []string
	for _, e := range b.log.FilterLevelExact(zapcore.WarnLevel).All() {
		list = append(list, e.Message)
	}
	return list
}

// points are values by metric and attributes: "hw.power hw.id=GPU-0".
type points map[string]float64

// pointsOf leaves out the attributes that all points share.
func pointsOf(md pmetric.Metrics) points {
	all := points{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var dps pmetric.NumberDataPointSlice
				if m.Type() == pmetric.MetricTypeSum {
					dps = m.Sum().DataPoints()
				} else {
					dps = m.Gauge().DataPoints()
				}
				for _, dp := range dps.All() {
					var labels []string
					for k, v := range dp.Attributes().All() {
						switch k {
						case "host.name", "hw.name", "hw.model", "hw.type", "hw.vendor", "hw.driver_version":
						default:
							labels = append(labels, k[strings.LastIndexByte(k, '.')+1:]+"="+v.AsString())
						}
					}
					slices.Sort(labels)
					key := m.Name() + " " + strings.Join(labels, " ")
					if _, twice := all[key]; twice {
						panic("two points of " + key)
					}
					all[key] = dp.DoubleValue()
					if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
						all[key] = float64(dp.IntValue())
					}
				}
			}
		}
	}
	return all
}

// of are the points of one device.
func (p points) of(uuid string) points {
	some := points{}
	for k, v := range p {
		if strings.Contains(k+" ", " id="+uuid+" ") {
			some[strings.TrimSpace(strings.Replace(k, " id="+uuid, "", 1))] = v
		}
	}
	return some
}

func TestValues(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h).begin(t)
	_, err := b.next()
	require.NoError(t, err)
	h.fields[[2]uint32{nvml.FI_DEV_PCIE_COUNT_RX_BYTES, 0}] = 1500
	h.fields[[2]uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0xffffffff}] = 14
	got, err := b.next()
	require.NoError(t, err)
	want := points{
		"hw.gpu.utilization task=general": 0.91, "hw.gpu.utilization task=encoder": 0.11, "hw.gpu.utilization task=decoder": 0.12,
		"hw.gpu.memory.usage": 25, "hw.gpu.memory.limit": 100, "hw.gpu.memory.utilization": 0.25,
		"hw.gpu.io direction=receive": 1500, "hw.gpu.io direction=transmit": 2000,
		"trainbridge.gpu.pcie.throughput direction=receive": 500, "trainbridge.gpu.pcie.throughput direction=transmit": 0,
		"trainbridge.gpu.nvlink.io direction=receive": 3 * 1024, "trainbridge.gpu.nvlink.io direction=transmit": 14 * 1024,
		"trainbridge.gpu.nvlink.throughput direction=receive": 0, "trainbridge.gpu.nvlink.throughput direction=transmit": 10 * 1024,
		"hw.power": 700.5, "hw.energy": 5.5,
		"hw.temperature sensor_location=gpu": 65, "hw.temperature sensor_location=memory": 71,
		"hw.errors type=corrected": 7, "hw.errors type=uncorrected": 8,
		"hw.status state=ok": 1, "hw.status state=degraded": 0, "hw.status state=failed": 0,
		"trainbridge.gpu.clock.frequency domain=graphics": 1000e6, "trainbridge.gpu.clock.frequency domain=sm": 1001e6,
		"trainbridge.gpu.clock.frequency domain=memory": 1002e6, "trainbridge.gpu.clock.frequency domain=video": 1003e6,
		"trainbridge.gpu.throttle.active reason=gpu_idle": 0, "trainbridge.gpu.throttle.active reason=applications_clocks_setting": 0,
		"trainbridge.gpu.throttle.active reason=sw_power_cap": 1, "trainbridge.gpu.throttle.active reason=hw_slowdown": 0,
		"trainbridge.gpu.throttle.active reason=sync_boost": 0, "trainbridge.gpu.throttle.active reason=sw_thermal_slowdown": 0,
		"trainbridge.gpu.throttle.active reason=hw_thermal_slowdown": 0, "trainbridge.gpu.throttle.active reason=hw_power_brake_slowdown": 0,
		"trainbridge.gpu.throttle.active reason=display_clock_setting": 0,
		"trainbridge.gpu.throttle.time policy=power":                   0.5, "trainbridge.gpu.throttle.time policy=thermal": 1,
		"trainbridge.gpu.throttle.time policy=sync_boost": 1.5, "trainbridge.gpu.throttle.time policy=board_limit": 2,
		"trainbridge.gpu.throttle.time policy=low_utilization": 2.5, "trainbridge.gpu.throttle.time policy=reliability": 3,
		"trainbridge.gpu.throttle.time policy=total_application_clocks": 5.5, "trainbridge.gpu.throttle.time policy=total_base_clocks": 6,
		"trainbridge.gpu.process.memory.usage pid=42": 17,
	}
	assert.Equal(t, want, got.of("GPU-0"))
	assert.Empty(t, b.warnings())
}

// A field that a driver or GPU lacks is read once, then in the second way if the field has one.
func TestUnsupported(t *testing.T) {
	for _, tt := range []struct {
		function string
		gone     string // missing metrics
		instead  points // or their replacement
		asked    int    // calls on the GPU without the field
	}{
		{"GetSamples", "", points{"hw.power": 700.5, "hw.gpu.utilization task=general": 0.91}, 4},
		{"GetUtilizationRates", "hw.gpu.utilization task=general", nil, 1},
		{"GetEncoderUtilization", "hw.gpu.utilization task=encoder", nil, 1},
		{"GetDecoderUtilization", "hw.gpu.utilization task=decoder", nil, 1},
		{"GetPowerUsage", "hw.power", nil, 1},
		{"GetMemoryInfo_v2", "", points{"hw.gpu.memory.usage": 30}, 1},
		{
			"GetFieldValues", "trainbridge.gpu.nvlink|hw.gpu.io|hw.temperature sensor_location=memory",
			points{"trainbridge.gpu.pcie.throughput direction=transmit": 10e3},
			4,
		},
		{"GetTotalEnergyConsumption", "hw.energy", nil, 1},
		{"GetTemperature", "hw.temperature sensor_location=gpu", nil, 1},
		{"GetTotalEccErrors", "hw.errors", nil, 2},
		{"GetRemappedRows", "", points{"hw.status state=ok": 1}, 1},
		{"GetRetiredPagesPendingStatus", "", points{"hw.status state=ok": 1}, 1},
		{"GetCurrentClocksEventReasons", "", points{"trainbridge.gpu.throttle.active reason=hw_slowdown": 1}, 1},
		{"GetClockInfo", "trainbridge.gpu.clock", nil, 4},
		{"GetViolationStatus", "trainbridge.gpu.throttle.time", nil, 8},
		{"GetComputeRunningProcesses", "trainbridge.gpu.process", nil, 1},
		{"GetMigMode", "", points{"hw.power": 700.5}, 1},
		{"RegisterEvents", "", points{"hw.power": 700.5}, 1},
		{"GetName", "", points{"hw.power": 700.5}, 1},
	} {
		for _, ret := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_FUNCTION_NOT_FOUND} {
			t.Run(fmt.Sprint(tt.function, ret), func(t *testing.T) {
				h := newHost(2)
				h.set("1/Device"+tt.function, ret)
				if tt.gone != "" && strings.HasPrefix(tt.gone, "hw.gpu.utilization") || tt.gone == "hw.power" {
					h.set("DeviceGetSamples", ret) // the second way is tried at once only if this call fails too
				}
				b := newBed(t, h).begin(t)
				for range 3 {
					got, err := b.next()
					require.NoError(t, err)
					whole, less := got.of("GPU-0"), got.of("GPU-1")
					for k := range whole {
						_, there := less[k]
						gone := tt.gone != "" && slices.ContainsFunc(strings.Split(tt.gone, "|"), func(name string) bool { return strings.HasPrefix(k, name) })
						assert.Equal(t, !gone, there, k)
					}
					for k, v := range tt.instead {
						assert.InDelta(t, v, less[k], 1e-9, k)
					}
				}
				assert.Equal(t, tt.asked, h.called("1/Device"+tt.function))
				assert.Empty(t, b.warnings())
			})
		}
	}
}

// A function that the driver's library lacks must not be called: the call would end the process.
func TestOldDriver(t *testing.T) {
	h := newHost(1)
	for _, name := range []string{"Samples", "FieldValues", "ViolationStatus", "RemappedRows", "CurrentClocksEventReasons", "MemoryInfo_v2", "MigMode"} {
		h.lacks["nvmlDeviceGet"+name] = true
		h.set("DeviceGet"+name, nvml.ERROR_UNKNOWN)
	}
	h.lacks["nvmlEventSetCreate"] = true
	b := newBed(t, h, func(c *Config) { c.Metrics.TrainbridgeGpuFieldSupported.Enabled = true }).begin(t)
	got, err := b.next()
	require.NoError(t, err)
	for name := range h.lacks {
		assert.Zero(t, h.called("0/"+strings.TrimPrefix(name, "nvml")), name)
	}
	for k, want := range (points{
		"hw.gpu.memory.usage id=GPU-0": 30, "hw.power id=GPU-0": 700.5, "trainbridge.gpu.throttle.active id=GPU-0 reason=hw_slowdown": 1,
		"trainbridge.gpu.field.supported field=hw.power id=GPU-0": 1, "trainbridge.gpu.field.supported field=trainbridge.gpu.nvlink.io id=GPU-0": 0,
		"trainbridge.gpu.field.supported field=trainbridge.gpu.throttle.time/power id=GPU-0": 0,
		"trainbridge.gpu.field.supported field=hw.temperature/gpu id=GPU-0":                  1, "hw.status id=GPU-0 state=degraded": 1,
	}) {
		assert.InDelta(t, want, got[k], 1e-9, k)
	}
	_, err = b.next()
	require.NoError(t, err)
	said := b.log.FilterMessageSnippet("does not have some fields").All()
	require.Len(t, said, 1, "once per GPU")
	assert.Contains(t, fmt.Sprint(said[0].ContextMap()["fields"]), "trainbridge.gpu.nvlink.io")
}

// Any other error is an error of the scrape; the next attempts are at the next scrape and a minute later.
func TestPartialErrors(t *testing.T) {
	h := newHost(2)
	h.set("1/DeviceGetTemperature", nvml.ERROR_TIMEOUT)
	h.set("0/DeviceGetPowerUsage", nvml.ERROR_UNKNOWN)
	b := newBed(t, h).begin(t)
	for i := range 3 {
		if i == 2 {
			got, err := b.next()
			require.NoError(t, err)
			assert.NotContains(t, got, "hw.temperature id=GPU-1 sensor_location=gpu")
			b.at = b.at.Add(lookAgain - 2*time.Second)
		}
		got, err := b.next()
		var partial scrapererror.PartialScrapeError
		require.ErrorAs(t, err, &partial)
		assert.Equal(t, 2, partial.Failed)
		require.ErrorContains(t, err, "GPU 1: hw.temperature/gpu: "+nvml.ERROR_TIMEOUT.Error())
		require.ErrorContains(t, err, "GPU 0: hw.power: "+nvml.ERROR_UNKNOWN.Error())
		assert.Equal(t, i+1, h.called("1/DeviceGetTemperature"))
		assert.Contains(t, got, "hw.temperature id=GPU-0 sensor_location=gpu")
		assert.Contains(t, got, "hw.temperature id=GPU-1 sensor_location=memory")
	}
	h.set("1/DeviceGetTemperature", nvml.SUCCESS)
	h.set("0/DeviceGetPowerUsage", nvml.SUCCESS)
	b.at = b.at.Add(lookAgain)
	got, err := b.next()
	require.NoError(t, err)
	assert.Contains(t, got, "hw.temperature id=GPU-1 sensor_location=gpu")
}

// A GPU that falls off the bus is reported and the others go on, whichever call finds the loss; after a reset the GPU is read again.
func TestLost(t *testing.T) {
	for _, function := range []string{"GetSamples", "GetMemoryInfo_v2", "GetFieldValues", "GetClockInfo", "GetComputeRunningProcesses", "GetRemappedRows"} {
		t.Run(function, func(t *testing.T) {
			h := newHost(3)
			b := newBed(t, h).begin(t)
			before, err := b.next()
			require.NoError(t, err)
			h.set("1/Device"+function, nvml.ERROR_GPU_IS_LOST)
			got, err := b.next()
			require.True(t, scrapererror.IsPartialScrapeError(err))
			require.ErrorContains(t, err, "GPU 1 (GPU-1) is lost")
			asked := h.called("1/Device" + function)
			for range 3 {
				assert.InDelta(t, before.of("GPU-0")["hw.power"], got.of("GPU-0")["hw.power"], 0)
				assert.InDelta(t, before.of("GPU-2")["hw.power"], got.of("GPU-2")["hw.power"], 0)
				assert.InDelta(t, 1, got["hw.status id=GPU-1 state=failed"], 0)
				assert.Zero(t, got["hw.status id=GPU-1 state=ok"])
				got, err = b.next()
				require.NoError(t, err, "said once")
				assert.Len(t, got.of("GPU-1"), 3, "the status only")
			}
			assert.Equal(t, asked, h.called("1/Device"+function), "not asked again before NVML was started anew")
			assert.Equal(t, []string{"A GPU is lost. The others go on; dmesg has its Xid errors."}, b.warnings())

			h.set("1/DeviceGetHandleByIndex", nvml.ERROR_GPU_IS_LOST)
			b.at = b.at.Add(lookAgain)
			got, err = b.next()
			require.NoError(t, err)
			assert.Equal(t, 2, h.called("Init"))
			assert.InDelta(t, 1, got["hw.status id=GPU-1 state=failed"], 0, "still lost")
			assert.Len(t, b.warnings(), 1)

			h.set("1/DeviceGetHandleByIndex", nvml.SUCCESS)
			h.set("1/Device"+function, nvml.SUCCESS)
			b.at = b.at.Add(lookAgain)
			got, err = b.next()
			require.NoError(t, err)
			assert.InDelta(t, 1, got["hw.status id=GPU-1 state=ok"], 0)
			assert.Len(t, got.of("GPU-1"), len(before.of("GPU-1")))
			assert.Len(t, b.log.FilterMessage("A GPU is back.").All(), 1)
			assert.Equal(t, h.called("Init")-1, h.called("Shutdown"))
		})
	}
}

// A GPU lost before the start has only an index as its name.
func TestLostAtStart(t *testing.T) {
	h := newHost(2)
	h.set("0/DeviceGetHandleByIndex", nvml.ERROR_GPU_IS_LOST)
	b := newBed(t, h).begin(t)
	got, err := b.next()
	require.NoError(t, err)
	assert.InDelta(t, 1, got["hw.status id=index-0 state=failed"], 0)
	assert.Contains(t, got, "hw.power id=GPU-1")
	h.set("0/DeviceGetHandleByIndex", nvml.SUCCESS)
	b.at = b.at.Add(lookAgain)
	got, err = b.next()
	require.NoError(t, err)
	assert.NotContains(t, got, "hw.status id=index-0 state=failed")
	assert.Contains(t, got, "hw.power id=GPU-0")
	assert.Len(t, b.log.FilterMessage("A GPU is back.").All(), 1)
}

// A GPU without permission for the container does not count as a GPU.
func TestNoPermission(t *testing.T) {
	h := newHost(2)
	h.set("0/DeviceGetHandleByIndex", nvml.ERROR_NO_PERMISSION)
	b := newBed(t, h).begin(t)
	got, err := b.next()
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprint(got), "index-0")
	assert.Contains(t, got, "hw.power id=GPU-1")
	assert.Empty(t, b.warnings())
}

func TestNoDriver(t *testing.T) {
	for ret, says := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND:       "libnvidia-ml.so.1 was not found",
		nvml.ERROR_DRIVER_NOT_LOADED:       "NVML does not work: " + nvml.ERROR_DRIVER_NOT_LOADED.Error(),
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "restart the collector",
	} {
		t.Run(ret.Error(), func(t *testing.T) {
			h := newHost(1)
			h.set("Init", ret)
			b := newBed(t, h).begin(t)
			for range 5 {
				got, err := b.next()
				require.NoError(t, err)
				assert.Empty(t, got)
			}
			said := b.log.FilterMessageSnippet("nvml is idle").All()
			require.Len(t, said, 1, "one line")
			assert.Contains(t, said[0].Message, says)
			assert.Equal(t, ret != nvml.ERROR_LIBRARY_NOT_FOUND, said[0].Level == zapcore.WarnLevel, "a host without a GPU is no trouble")
			h.set("Init", nvml.SUCCESS)
			got, err := b.next()
			require.NoError(t, err)
			assert.Contains(t, got, "hw.power id=GPU-0")
		})
		t.Run(ret.Error()+" propagate", func(t *testing.T) {
			h := newHost(1)
			h.set("Init", ret)
			b := newBed(t, h, func(c *Config) { c.ErrorMode = errorPropagate })
			err := b.start(context.Background(), componenttest.NewNopHost())
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, err, "'error_mode: ignore'")
		})
	}
	t.Run("no count", func(t *testing.T) {
		h := newHost(1)
		h.set("DeviceGetCount", nvml.ERROR_UNKNOWN)
		b := newBed(t, h).begin(t)
		got, err := b.next()
		require.NoError(t, err)
		assert.Empty(t, got)
		assert.Equal(t, h.called("Init"), h.called("Shutdown"))
	})
}

// The driver goes away while the receiver runs, and comes back.
func TestDriverGoes(t *testing.T) {
	for _, ret := range []nvml.Return{nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_UNKNOWN} {
		for _, mode := range []string{errorIgnore, errorPropagate} {
			t.Run(ret.Error()+" "+mode, func(t *testing.T) {
				h := newHost(2)
				b := newBed(t, h, func(c *Config) { c.ErrorMode = mode }).begin(t)
				_, err := b.next()
				require.NoError(t, err)
				functions := []string{"Init"} // then, of all functions of all GPUs
				for name := range h.calls {
					if i := strings.IndexByte(name, '/'); i > 0 {
						functions = append(functions, name[i+1:])
					}
				}
				for _, name := range functions {
					h.set(name, ret)
				}
				for range 4 {
					_, err = b.next()
					if mode == errorPropagate {
						require.Error(t, err)
					}
				}
				if mode == errorIgnore {
					require.NoError(t, err)
					assert.Len(t, b.warnings(), 1)
				}
				assert.Equal(t, 1, h.called("Shutdown"))
				h.set("Init", nvml.SUCCESS) // starts, but does not work
				for range 3 {
					_, err = b.next()
					if mode == errorIgnore {
						require.NoError(t, err)
					}
				}
				assert.LessOrEqual(t, len(b.warnings()), 2)
				assert.Equal(t, h.called("Init")-3, h.called("Shutdown"), "but for the three that failed")
				for _, name := range functions {
					h.set(name, nvml.SUCCESS)
				}
				got, err := b.next()
				require.NoError(t, err)
				assert.Contains(t, got, "hw.power id=GPU-0")
				assert.Contains(t, got, "hw.power id=GPU-1")
				if mode == errorIgnore {
					assert.Len(t, b.log.FilterMessage("NVML is there again.").All(), 1)
				} else {
					assert.Empty(t, b.log.All()[1:], "the errors say it")
				}
			})
		}
	}
}

// A driver that hangs does not hold up later scrapes.
func TestHang(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h).begin(t)
	release := make(chan struct{})
	h.gpus[0].GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
		<-release
		return 50, nvml.SUCCESS
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.scrape(over)
	require.ErrorIs(t, err, errNoAnswer)
	for range 3 {
		md, err := b.scrape(over)
		require.NoError(t, err, "said once")
		assert.Zero(t, md.DataPointCount())
	}
	close(release)
	md, err := b.scrape(context.Background())
	require.NoError(t, err)
	assert.InDelta(t, 50, pointsOf(md)["hw.temperature id=GPU-0 sensor_location=gpu"], 0, "what it was busy with")
	require.NoError(t, b.shutdown(context.Background()))
	assert.Equal(t, 1, h.called("Shutdown"))
}

func TestXIDs(t *testing.T) {
	h := newHost(2)
	b := newBed(t, h).begin(t)
	xid := func(gpu int, code uint64) {
		h.events = append(h.events, nvml.EventData{Device: h.gpus[gpu], EventType: nvml.EventTypeXidCriticalError, EventData: code})
	}
	got, err := b.next()
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprint(got), "xid_")
	xid(1, 31)
	xid(1, 31)
	xid(0, 79)
	h.events = append(
		h.events, nvml.EventData{Device: h.gpus[0], EventType: nvml.EventTypePState},
		nvml.EventData{Device: &mock.Device{}, EventType: nvml.EventTypeXidCriticalError},
	)
	got, err = b.next()
	require.NoError(t, err)
	want := func(got points, n31, n79 float64) {
		t.Helper()
		assert.InDelta(t, n31, got["hw.errors id=GPU-1 type=xid_31"], 0)
		assert.InDelta(t, n79, got["hw.errors id=GPU-0 type=xid_79"], 0)
		assert.Len(t, slices.DeleteFunc(slices.Collect(keys(got)), func(k string) bool { return !strings.Contains(k, "xid_") }), 2)
	}
	want(got, 2, 1)
	h.set("0/DeviceGetSamples", nvml.ERROR_GPU_IS_LOST) // the message of XID 79
	xid(1, 31)
	got, err = b.next()
	require.Error(t, err)
	want(got, 3, 1)
	b.at = b.at.Add(lookAgain) // NVML restarted: the counts stay
	h.set("0/DeviceGetSamples", nvml.SUCCESS)
	got, err = b.next()
	require.NoError(t, err)
	want(got, 3, 1)
	assert.Len(t, b.log.FilterMessage("A GPU reported an XID error.").All(), 2)
	assert.Equal(t, 1, h.called("EventSetFree"))
}

func keys(p points) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range p {
			if !yield(k) {
				return
			}
		}
	}
}

// The mean is of the samples since the last scrape; samples that a driver keeps for longer do not count twice.
func TestSamples(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h).begin(t)
	for i, tt := range []struct {
		samples []nvml.Sample
		want    float64
	}{
		{[]nvml.Sample{sample(10, 10), sample(20, 20), sample(30, 60)}, 0.30},
		{[]nvml.Sample{sample(20, 20), sample(30, 60), sample(40, 100), {}}, 1.00},
		{[]nvml.Sample{sample(40, 100)}, 0.91}, // none is new: the current reading
		{nil, 0.91},
		{[]nvml.Sample{sample(50, 0), sample(60, 1)}, 0.005},
	} {
		h.samples[nvml.GPU_UTILIZATION_SAMPLES] = tt.samples
		got, err := b.next()
		require.NoError(t, err)
		assert.InDelta(t, tt.want, got["hw.gpu.utilization id=GPU-0 task=general"], 1e-12, i)
	}
	h.set("DeviceGetSamples", nvml.ERROR_NOT_FOUND)
	got, err := b.next()
	require.NoError(t, err)
	assert.InDelta(t, 0.91, got["hw.gpu.utilization id=GPU-0 task=general"], 1e-12)
	h.set("DeviceGetSamples", nvml.SUCCESS)
	h.samples[nvml.TOTAL_POWER_SAMPLES] = []nvml.Sample{sample(70, 100_000), sample(80, 300_000)}
	got, err = b.next()
	require.NoError(t, err)
	assert.InDelta(t, 200, got["hw.power id=GPU-0"], 1e-9)
}

func TestCounters(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h).begin(t)
	rx := [2]uint32{nvml.FI_DEV_PCIE_COUNT_RX_BYTES, 0}
	const rate = "trainbridge.gpu.pcie.throughput direction=receive id=GPU-0"
	for i, tt := range []struct {
		bytes uint64
		want  float64
		ok    bool
	}{{1 << 60, 0, false}, {1<<60 + 1000, 1000, true}, {5, 0, false}, {25, 20, true}} {
		h.fields[rx] = tt.bytes
		got, err := b.next()
		require.NoError(t, err)
		v, ok := got[rate]
		assert.Equal(t, tt.ok, ok, i)
		assert.InDelta(t, tt.want, v, 1e-9, i)
	}
	// NVLink 5 counts per link.
	h = newHost(1)
	b = newBed(t, h).begin(t)
	delete(h.fields, [2]uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 0xffffffff})
	for link := range uint32(18) {
		h.fields[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, link}] = 100
		h.fields[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, link}] = 200
	}
	got, err := b.next()
	require.NoError(t, err)
	assert.InDelta(t, 1800.0, got["trainbridge.gpu.nvlink.io direction=receive id=GPU-0"], 0)
	assert.InDelta(t, 3600.0, got["trainbridge.gpu.nvlink.io direction=transmit id=GPU-0"], 0)
}

func TestStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*mock.Device)
		want   string
	}{
		"remap failed": {func(d *mock.Device) {
			d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 1, true, true, nvml.SUCCESS }
		}, "failed"},
		"remap pending": {func(d *mock.Device) {
			d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 1, true, false, nvml.SUCCESS }
		}, "degraded"},
		"retire pending": {func(d *mock.Device) {
			d.GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
		}, "degraded"},
		"hot": {func(d *mock.Device) {
			d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return nvml.ClocksThrottleReasonHwThermalSlowdown, nvml.SUCCESS }
		}, "degraded"},
		"power cap": {func(*mock.Device) {}, "ok"}, // the mock's default: at the power limit, as a busy GPU is
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(1)
			tt.change(h.gpus[0])
			got, err := newBed(t, h).begin(t).next()
			require.NoError(t, err)
			for _, state := range []string{"ok", "degraded", "failed"} {
				assert.Equal(t, state == tt.want, got["hw.status id=GPU-0 state="+state] == 1, state)
			}
		})
	}
}

// MIG devices come and go while the driver runs.
func TestMIG(t *testing.T) {
	h := newHost(2)
	m := cut(h)
	b := newBed(t, h).begin(t)
	m.parts = []*mock.Device{m.part(1), nil, m.part(2)}
	got, err := b.next()
	require.NoError(t, err)
	for _, tt := range []struct{ uuid, parent string }{{"MIG-1", " parent=GPU-0"}, {"MIG-2", " parent=GPU-0"}} {
		of := got.of(tt.uuid)
		assert.Contains(t, of, "hw.gpu.memory.usage"+tt.parent)
		assert.Contains(t, of, "trainbridge.gpu.process.memory.usage"+tt.parent+" pid=42")
		assert.Len(t, of, 4, "memory and processes only: the rest is of the whole GPU")
	}
	assert.InDelta(t, 2.0, got["hw.gpu.memory.usage id=MIG-2 parent=GPU-0"], 0)
	assert.Contains(t, got, "hw.power id=GPU-0")
	assert.NotContains(t, got, "trainbridge.gpu.process.memory.usage id=GPU-0 pid=42", "they are the MIG devices'")
	assert.Contains(t, got, "trainbridge.gpu.process.memory.usage id=GPU-1 pid=42")
	m.parts = m.parts[:1]
	got, err = b.next()
	require.NoError(t, err)
	assert.NotEmpty(t, got.of("MIG-1"))
	assert.Empty(t, got.of("MIG-2"))

	t.Run("switched off and on", func(t *testing.T) {
		on := m.gpu.GetMigModeFunc
		m.gpu.GetMigModeFunc = func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_DISABLE, nvml.DEVICE_MIG_ENABLE, nvml.SUCCESS }
		got, err := b.next()
		require.NoError(t, err)
		assert.Empty(t, got.of("MIG-1"))
		assert.Contains(t, got, "trainbridge.gpu.process.memory.usage id=GPU-0 pid=42")
		m.gpu.GetMigModeFunc = on
		got, err = b.next()
		require.NoError(t, err)
		assert.NotEmpty(t, got.of("MIG-1"))
		assert.NotContains(t, got, "trainbridge.gpu.process.memory.usage id=GPU-0 pid=42")
	})
	t.Run("one of them is asked for", func(t *testing.T) {
		m.parts = []*mock.Device{m.part(1), m.part(2)}
		got, err := newBed(t, h, func(c *Config) { c.Devices = []Device{"MIG-2"} }).begin(t).next()
		require.NoError(t, err)
		assert.NotEmpty(t, got.of("MIG-2"))
		assert.Empty(t, got.of("MIG-1"))
		assert.Empty(t, got.of("GPU-0"))
	})
	t.Run("their GPU is lost", func(t *testing.T) {
		h.set("GetMaxMigDeviceCount", nvml.ERROR_GPU_IS_LOST)
		got, err := b.next()
		require.ErrorContains(t, err, "GPU 0 (GPU-0) is lost")
		var partial scrapererror.PartialScrapeError
		require.ErrorAs(t, err, &partial)
		assert.Equal(t, 1, partial.Failed)
		assert.InDelta(t, 1, got["hw.status id=GPU-0 state=failed"], 0)
		assert.Zero(t, got["hw.status id=GPU-0 state=ok"])
		assert.Empty(t, got.of("MIG-1"))
		assert.NotEmpty(t, got.of("GPU-1"))
	})
}

// mig is the first GPU of a host, cut into parts.
type mig struct {
	h     *host
	gpu   *mock.Device
	parts []*mock.Device
}

func cut(h *host) *mig {
	m := &mig{h: h, gpu: h.gpus[0]}
	m.gpu.GetMigModeFunc = func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_ENABLE, nvml.DEVICE_MIG_ENABLE, nvml.SUCCESS }
	m.gpu.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, h.call("GetMaxMigDeviceCount") }
	m.gpu.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i >= len(m.parts) || m.parts[i] == nil {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return m.parts[i], nvml.SUCCESS
	}
	return m
}

func (m *mig) part(i int) *mock.Device {
	d := m.h.gpu(10 + i)
	d.GetUUIDFunc = func() (string, nvml.Return) { return fmt.Sprintf("MIG-%d", i), nvml.SUCCESS }
	d.GetNameFunc = func() (string, nvml.Return) { return "NVIDIA H200 MIG 1g.18gb", nvml.SUCCESS }
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{Total: 10, Used: uint64(i)}, nvml.SUCCESS }
	return d
}

func TestDevices(t *testing.T) {
	for _, tt := range []struct {
		devices []Device
		want    []string
		warning string
	}{
		{nil, []string{"GPU-0", "GPU-1", "GPU-2"}, ""},
		{[]Device{"1"}, []string{"GPU-1"}, ""},
		{[]Device{"gpu-2", "0"}, []string{"GPU-0", "GPU-2"}, ""},
		{[]Device{"h200"}, []string{"GPU-0", "GPU-1"}, ""},
		{[]Device{"A100"}, []string{"GPU-2"}, ""},
		{[]Device{"B200", "1"}, []string{"GPU-1"}, "No GPU is what 'devices' asks for."},
		{[]Device{"7"}, nil, "No GPU is what 'devices' asks for."},
	} {
		t.Run(fmt.Sprint(tt.devices), func(t *testing.T) {
			h := newHost(3)
			h.gpus[2].GetNameFunc = func() (string, nvml.Return) { return "NVIDIA A100-SXM4-80GB", nvml.SUCCESS }
			b := newBed(t, h, func(c *Config) { c.Devices = tt.devices }).begin(t)
			got, err := b.next()
			require.NoError(t, err)
			for _, uuid := range []string{"GPU-0", "GPU-1", "GPU-2"} {
				assert.Equal(t, slices.Contains(tt.want, uuid), len(got.of(uuid)) > 0, uuid)
			}
			if tt.warning != "" {
				assert.Equal(t, []string{tt.warning}, b.warnings())
			} else {
				assert.Empty(t, b.warnings())
			}
		})
	}
}

// off switches all metrics off.
func off(m *metadata.MetricsConfig) {
	for _, enabled := range []*bool{
		&m.HwEnergy.Enabled, &m.HwErrors.Enabled, &m.HwGpuIo.Enabled, &m.HwGpuMemoryLimit.Enabled, &m.HwGpuMemoryUsage.Enabled, &m.HwGpuMemoryUtilization.Enabled,
		&m.HwGpuUtilization.Enabled, &m.HwPower.Enabled, &m.HwStatus.Enabled, &m.HwTemperature.Enabled, &m.TrainbridgeGpuClockFrequency.Enabled,
		&m.TrainbridgeGpuNvlinkIo.Enabled, &m.TrainbridgeGpuNvlinkThroughput.Enabled, &m.TrainbridgeGpuPcieThroughput.Enabled,
		&m.TrainbridgeGpuProcessMemoryUsage.Enabled, &m.TrainbridgeGpuThrottleActive.Enabled, &m.TrainbridgeGpuThrottleTime.Enabled,
	} {
		*enabled = false
	}
}

// A metric that is off costs no call.
func TestSwitchedOff(t *testing.T) {
	h := newHost(1)
	b := newBed(t, h, func(c *Config) {
		on := c.Metrics.HwTemperature
		off(&c.Metrics)
		c.Metrics.HwTemperature = on
	}).begin(t)
	got, err := b.next()
	require.NoError(t, err)
	assert.Equal(t, points{"hw.temperature id=GPU-0 sensor_location=gpu": 65, "hw.temperature id=GPU-0 sensor_location=memory": 71}, got)
	for name, n := range h.calls {
		switch strings.TrimPrefix(name, "0/") {
		case "Init", "DeviceGetCount", "SystemGetDriverVersion", "DeviceGetHandleByIndex", "DeviceGetUUID", "DeviceGetName", "DeviceGetMigMode",
			"DeviceGetTemperature", "DeviceGetFieldValues":
		default:
			assert.Failf(t, "called", "%s %d times", name, n)
		}
	}
}

func TestErrorText(t *testing.T) {
	assert.ErrorIs(t, startError(nvml.ERROR_UNKNOWN), nvml.ERROR_UNKNOWN)
}

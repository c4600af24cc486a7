//go:build linux && cgo

package nvmlreceiver

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver/internal/metadata"
)

// field is a value that NVML has of a device, with its metrics. Names and units are those of nvml.h.
type field struct {
	name   string
	symbol string // function of NVML
	mig    bool   // MIG devices have the field too
	whole  bool   // a GPU with MIG devices still has the field for the whole GPU
	// enabled says whether any metric of the field is on.
	enabled func(*metadata.MetricsConfig) bool
	read    func(*gpus, *device) nvml.Return // reads and records the field of a device, and returns NVML's answer
	other   *field                           // second way, for devices or drivers without this one
}

// The indices of counters and of samples.
const (
	receive = iota
	transmit
	directions
)

// The kinds of values of which NVML keeps samples.
const (
	sampledPower = iota
	sampledGPU
	sampledEncoder
	sampledDecoder
	sampleKinds
)

var samplings = [sampleKinds]nvml.SamplingType{
	sampledPower: nvml.TOTAL_POWER_SAMPLES, sampledGPU: nvml.GPU_UTILIZATION_SAMPLES,
	sampledEncoder: nvml.ENC_UTILIZATION_SAMPLES, sampledDecoder: nvml.DEC_UTILIZATION_SAMPLES,
}

var directionNames = [directions]metadata.AttributeNetworkIoDirection{
	receive: metadata.AttributeNetworkIoDirectionReceive, transmit: metadata.AttributeNetworkIoDirectionTransmit,
}

type config = metadata.MetricsConfig

// fields are all fields, in the order of reading.
var fields = concat(
	utilization("general", metadata.AttributeHwGpuTaskGeneral, sampledGPU, "nvmlDeviceGetUtilizationRates", func(d nvml.Device) (uint32, nvml.Return) {
		u, ret := d.GetUtilizationRates()
		return u.Gpu, ret
	}),
	utilization("encoder", metadata.AttributeHwGpuTaskEncoder, sampledEncoder, "nvmlDeviceGetEncoderUtilization", func(d nvml.Device) (uint32, nvml.Return) {
		u, _, ret := d.GetEncoderUtilization()
		return u, ret
	}),
	utilization("decoder", metadata.AttributeHwGpuTaskDecoder, sampledDecoder, "nvmlDeviceGetDecoderUtilization", func(d nvml.Device) (uint32, nvml.Return) {
		u, _, ret := d.GetDecoderUtilization()
		return u, ret
	}),
	sampled("hw.power", sampledPower, "nvmlDeviceGetPowerUsage", func(c *config) bool { return c.HwPower.Enabled }, nvml.Device.GetPowerUsage, recordPower),
	[]field{
		{
			name: "hw.gpu.memory.usage", symbol: "nvmlDeviceGetMemoryInfo_v2", mig: true, whole: true, enabled: memoryEnabled,
			// Unlike version 1, version 2 does not count the driver's reserved memory as used.
			read: func(g *gpus, d *device) nvml.Return {
				m, ret := d.handle.GetMemoryInfo_v2()
				return g.memory(d, m.Used, m.Total, ret)
			},
			other: &field{
				name: "hw.gpu.memory.usage", symbol: "nvmlDeviceGetMemoryInfo",
				read: func(g *gpus, d *device) nvml.Return {
					m, ret := d.handle.GetMemoryInfo()
					return g.memory(d, m.Used, m.Total, ret)
				},
			},
		},
		{
			name: "hw.gpu.io", symbol: "nvmlDeviceGetFieldValues", read: (*gpus).pcieCounters,
			enabled: func(c *config) bool { return c.HwGpuIo.Enabled || c.TrainbridgeGpuPcieThroughput.Enabled },
			other:   &field{name: "trainbridge.gpu.pcie.throughput", symbol: "nvmlDeviceGetPcieThroughput", read: (*gpus).pcieThroughput},
		},
		{
			name: "hw.energy", symbol: "nvmlDeviceGetTotalEnergyConsumption", enabled: func(c *config) bool { return c.HwEnergy.Enabled },
			read: func(g *gpus, d *device) nvml.Return {
				v, ret := d.handle.GetTotalEnergyConsumption() // mJ
				if ret == nvml.SUCCESS {
					g.mb.RecordHwEnergyDataPoint(g.now, float64(v)/1e3, g.host, d.uuid, d.name, d.model, metadata.AttributeHwTypeGpu)
				}
				return ret
			},
		},
		{
			name: "hw.temperature/gpu", symbol: "nvmlDeviceGetTemperature", enabled: temperatureEnabled,
			read: func(g *gpus, d *device) nvml.Return {
				v, ret := d.handle.GetTemperature(nvml.TEMPERATURE_GPU)
				return g.temperature(d, float64(v), metadata.AttributeHwSensorLocationGpu, ret)
			},
		},
		{
			name: "hw.temperature/memory", symbol: "nvmlDeviceGetFieldValues", enabled: temperatureEnabled,
			read: func(g *gpus, d *device) nvml.Return {
				v := []nvml.FieldValue{{FieldId: nvml.FI_DEV_MEMORY_TEMP}}
				ret := fieldValues(d, v)
				return g.temperature(d, number(v[0]), metadata.AttributeHwSensorLocationMemory, ret)
			},
		},
	},
	eccErrors("corrected", nvml.MEMORY_ERROR_TYPE_CORRECTED),
	eccErrors("uncorrected", nvml.MEMORY_ERROR_TYPE_UNCORRECTED),
	[]field{
		{
			name: "hw.status/remapped_rows", symbol: "nvmlDeviceGetRemappedRows", enabled: statusEnabled,
			read: func(_ *gpus, d *device) nvml.Return {
				_, _, pending, failed, ret := d.handle.GetRemappedRows()
				if ret == nvml.SUCCESS {
					d.remapPending, d.remapFailed = pending, failed
				}
				return ret
			},
		},
		{
			name: "hw.status/retired_pages", symbol: "nvmlDeviceGetRetiredPagesPendingStatus", enabled: statusEnabled,
			read: func(_ *gpus, d *device) nvml.Return {
				pending, ret := d.handle.GetRetiredPagesPendingStatus()
				if ret == nvml.SUCCESS {
					d.retirePending = pending == nvml.FEATURE_ENABLED
				}
				return ret
			},
		},
		{
			name: "trainbridge.gpu.throttle.active", symbol: "nvmlDeviceGetCurrentClocksEventReasons",
			enabled: func(c *config) bool { return c.TrainbridgeGpuThrottleActive.Enabled || c.HwStatus.Enabled },
			read: func(g *gpus, d *device) nvml.Return {
				reasons, ret := d.handle.GetCurrentClocksEventReasons()
				return g.throttled(d, reasons, ret)
			},
			other: &field{ // the name before driver 535
				name: "trainbridge.gpu.throttle.active", symbol: "nvmlDeviceGetCurrentClocksThrottleReasons",
				read: func(g *gpus, d *device) nvml.Return {
					reasons, ret := d.handle.GetCurrentClocksThrottleReasons()
					return g.throttled(d, reasons, ret)
				},
			},
		},
	},
	clock("graphics", metadata.AttributeClockDomainGraphics, nvml.CLOCK_GRAPHICS),
	clock("sm", metadata.AttributeClockDomainSm, nvml.CLOCK_SM),
	clock("memory", metadata.AttributeClockDomainMemory, nvml.CLOCK_MEM),
	clock("video", metadata.AttributeClockDomainVideo, nvml.CLOCK_VIDEO),
	throttleTime("power", metadata.AttributeThrottlePolicyPower, nvml.PERF_POLICY_POWER),
	throttleTime("thermal", metadata.AttributeThrottlePolicyThermal, nvml.PERF_POLICY_THERMAL),
	throttleTime("sync_boost", metadata.AttributeThrottlePolicySyncBoost, nvml.PERF_POLICY_SYNC_BOOST),
	throttleTime("board_limit", metadata.AttributeThrottlePolicyBoardLimit, nvml.PERF_POLICY_BOARD_LIMIT),
	throttleTime("low_utilization", metadata.AttributeThrottlePolicyLowUtilization, nvml.PERF_POLICY_LOW_UTILIZATION),
	throttleTime("reliability", metadata.AttributeThrottlePolicyReliability, nvml.PERF_POLICY_RELIABILITY),
	throttleTime("total_application_clocks", metadata.AttributeThrottlePolicyTotalApplicationClocks, nvml.PERF_POLICY_TOTAL_APP_CLOCKS),
	throttleTime("total_base_clocks", metadata.AttributeThrottlePolicyTotalBaseClocks, nvml.PERF_POLICY_TOTAL_BASE_CLOCKS),
	[]field{
		{
			name: "trainbridge.gpu.nvlink.io", symbol: "nvmlDeviceGetFieldValues", read: (*gpus).nvlinkSum,
			enabled: func(c *config) bool {
				return c.TrainbridgeGpuNvlinkIo.Enabled || c.TrainbridgeGpuNvlinkThroughput.Enabled
			},
			other: &field{name: "trainbridge.gpu.nvlink.io", symbol: "nvmlDeviceGetFieldValues", read: (*gpus).nvlinkEach},
		},
		{
			name: "trainbridge.gpu.process.memory.usage", symbol: "nvmlDeviceGetComputeRunningProcesses", mig: true, read: (*gpus).processes,
			enabled: func(c *config) bool { return c.TrainbridgeGpuProcessMemoryUsage.Enabled },
		},
	},
)

func concat(lists ...[]field) (all []field) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func memoryEnabled(c *config) bool {
	return c.HwGpuMemoryUsage.Enabled || c.HwGpuMemoryLimit.Enabled || c.HwGpuMemoryUtilization.Enabled
}
func temperatureEnabled(c *config) bool { return c.HwTemperature.Enabled }
func statusEnabled(c *config) bool      { return c.HwStatus.Enabled }

// utilization is the field of a kind of work, general, encoder or decoder, with the function for the current reading in percent.
func utilization(task string, attr metadata.AttributeHwGpuTask, kind int, symbol string, current func(nvml.Device) (uint32, nvml.Return)) []field {
	record := func(g *gpus, d *device, percent float64) {
		g.mb.RecordHwGpuUtilizationDataPoint(g.now, percent/100, g.host, d.uuid, d.name, d.model, attr)
	}
	return sampled("hw.gpu.utilization/"+task, kind, symbol, func(c *config) bool { return c.HwGpuUtilization.Enabled }, current, record)
}

// recordPower takes mW.
func recordPower(g *gpus, d *device, milliwatts float64) {
	g.mb.RecordHwPowerDataPoint(g.now, milliwatts/1e3, g.host, d.uuid, d.name, d.model, metadata.AttributeHwTypeGpu)
}

// sampled is a field of which NVML keeps samples: record gets their mean since the last scrape, in NVML's unit (mean). Where NVML has no new sample, and where
// the device has none of the kind, the value is the current reading, from the function called symbol.
func sampled(
	name string, kind int, symbol string, enabled func(*config) bool, current func(nvml.Device) (uint32, nvml.Return), record func(*gpus, *device, float64),
) []field {
	now := func(g *gpus, d *device) nvml.Return {
		v, ret := current(d.handle)
		if ret == nvml.SUCCESS {
			record(g, d, float64(v))
		}
		return ret
	}
	return []field{{
		name: name, symbol: "nvmlDeviceGetSamples", enabled: enabled,
		read: func(g *gpus, d *device) nvml.Return {
			mean, n, ret := g.mean(d, kind)
			switch {
			case ret != nvml.SUCCESS:
				return ret
			case n > 0:
				record(g, d, mean)
				return ret
			}
			// No new sample: utilisation is sampled only every sixth of a second to every second.
			ret = now(g, d)
			if unsupported(ret) && d.seen[kind] > 0 { // samples exist, if not at every scrape
				ret = nvml.SUCCESS
			}
			return ret
		},
		other: &field{name: name, symbol: symbol, read: now},
	}}
}

// mean is the mean of the n samples of a kind since the last scrape, mW of power and percent of utilisation; the first scrape takes all samples of NVML's
// buffer. Without new samples n is 0, the mean NaN, and the answer SUCCESS.
func (g *gpus) mean(d *device, kind int) (mean float64, n int, ret nvml.Return) {
	last := d.seen[kind]
	if last > uint64(g.began.UnixMicro()) { // the host's clock was set back, or the samples have another clock
		last = 0
	}
	valueType, samples, ret := d.handle.GetSamples(samplings[kind], last)
	if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_FOUND {
		return 0, 0, ret
	}
	sum, newest := 0.0, last
	for _, s := range samples {
		if s.TimeStamp <= last { // also the empty entries where the slice is longer than the samples
			continue
		}
		if v := value(uint32(valueType), s.SampleValue); !math.IsNaN(v) {
			sum += v
			n++
			newest = max(newest, s.TimeStamp)
		}
	}
	d.seen[kind] = newest
	return sum / float64(n), n, nvml.SUCCESS
}

// memory records the memory of a GPU or MIG device, By, if ret, NVML's answer, is SUCCESS.
func (g *gpus) memory(d *device, used, total uint64, ret nvml.Return) nvml.Return {
	if ret != nvml.SUCCESS {
		return ret
	}
	if used > total || total > math.MaxInt64 { // NVML_VALUE_NOT_AVAILABLE is all ones
		return nvml.ERROR_NO_DATA
	}
	options := d.options()
	g.mb.RecordHwGpuMemoryUsageDataPoint(g.now, int64(used), g.host, d.uuid, d.name, d.model, options...)
	g.mb.RecordHwGpuMemoryLimitDataPoint(g.now, int64(total), g.host, d.uuid, d.name, d.model, options...)
	if total > 0 {
		g.mb.RecordHwGpuMemoryUtilizationDataPoint(g.now, float64(used)/float64(total), g.host, d.uuid, d.name, d.model, options...)
	}
	return ret
}

// temperature records the temperature at a sensor, if ret, NVML's answer, is SUCCESS.
func (g *gpus) temperature(d *device, celsius float64, at metadata.AttributeHwSensorLocation, ret nvml.Return) nvml.Return {
	if ret == nvml.SUCCESS {
		g.mb.RecordHwTemperatureDataPoint(g.now, celsius, g.host, d.uuid, d.name, d.model, at)
	}
	return ret
}

// eccErrors is the count of a kind of memory errors since the driver was loaded.
func eccErrors(name string, kind nvml.MemoryErrorType) []field {
	return []field{{
		name: "hw.errors/" + name, symbol: "nvmlDeviceGetTotalEccErrors", enabled: func(c *config) bool { return c.HwErrors.Enabled },
		read: func(g *gpus, d *device) nvml.Return {
			v, ret := d.handle.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
			if ret == nvml.SUCCESS {
				g.mb.RecordHwErrorsDataPoint(g.now, count(v), g.host, d.uuid, d.name, d.model, metadata.AttributeHwTypeGpu, name)
			}
			return ret
		},
	}}
}

// clock is the current frequency of a clock.
func clock(name string, attr metadata.AttributeClockDomain, kind nvml.ClockType) []field {
	return []field{{
		name: "trainbridge.gpu.clock.frequency/" + name, symbol: "nvmlDeviceGetClockInfo",
		enabled: func(c *config) bool { return c.TrainbridgeGpuClockFrequency.Enabled },
		read: func(g *gpus, d *device) nvml.Return {
			v, ret := d.handle.GetClockInfo(kind) // MHz
			if ret == nvml.SUCCESS {
				g.mb.RecordTrainbridgeGpuClockFrequencyDataPoint(g.now, int64(v)*1e6, g.host, d.uuid, d.name, d.model, attr)
			}
			return ret
		},
	}}
}

// throttleTime is the time for which a policy has held the clocks down, since the driver was loaded.
func throttleTime(name string, attr metadata.AttributeThrottlePolicy, policy nvml.PerfPolicyType) []field {
	return []field{{
		name: "trainbridge.gpu.throttle.time/" + name, symbol: "nvmlDeviceGetViolationStatus",
		enabled: func(c *config) bool { return c.TrainbridgeGpuThrottleTime.Enabled },
		read: func(g *gpus, d *device) nvml.Return {
			v, ret := d.handle.GetViolationStatus(policy) // ns
			if ret == nvml.SUCCESS {
				g.mb.RecordTrainbridgeGpuThrottleTimeDataPoint(g.now, float64(v.ViolationTime)/1e9, g.host, d.uuid, d.name, d.model, attr)
			}
			return ret
		},
	}}
}

// reasons are nvmlClocksEventReasons, in the order of their bits.
var reasons = [...]metadata.AttributeThrottleReason{
	metadata.AttributeThrottleReasonGpuIdle, metadata.AttributeThrottleReasonApplicationsClocksSetting, metadata.AttributeThrottleReasonSwPowerCap,
	metadata.AttributeThrottleReasonHwSlowdown, metadata.AttributeThrottleReasonSyncBoost, metadata.AttributeThrottleReasonSwThermalSlowdown,
	metadata.AttributeThrottleReasonHwThermalSlowdown, metadata.AttributeThrottleReasonHwPowerBrakeSlowdown, metadata.AttributeThrottleReasonDisplayClockSetting,
}

// hardwareSlowdown are the throttle reasons of a machine with a fault: too hot, too little power, or the power brake of the host's power supply.
const hardwareSlowdown = nvml.ClocksThrottleReasonHwSlowdown | nvml.ClocksThrottleReasonHwThermalSlowdown | nvml.ClocksThrottleReasonHwPowerBrakeSlowdown

// throttled records which reasons hold the clocks down at the moment, a bit each, if ret, NVML's answer, is SUCCESS; and for the state of the GPU, whether a
// fault of the machine is among them.
func (g *gpus) throttled(d *device, bits uint64, ret nvml.Return) nvml.Return {
	if ret != nvml.SUCCESS {
		return ret
	}
	d.slowed = bits&hardwareSlowdown != 0
	for i, reason := range reasons {
		g.mb.RecordTrainbridgeGpuThrottleActiveDataPoint(g.now, int64(bits>>i&1), g.host, d.uuid, d.name, d.model, reason)
	}
	return ret
}

// pcieCounters reads the bytes over PCIe in both directions. Some GPUs have counters of 32 bits (A100, by reports), which wrap several times between scrapes
// and are useless, whatever type NVML gives them: the answer DEPRECATED, by the type or by the first wrap seen, makes pcieThroughput take over. A restart below
// 4 GiB looks like a wrap: pcieThroughput serves then, too.
func (g *gpus) pcieCounters(d *device) nvml.Return {
	v := []nvml.FieldValue{receive: {FieldId: nvml.FI_DEV_PCIE_COUNT_RX_BYTES}, transmit: {FieldId: nvml.FI_DEV_PCIE_COUNT_TX_BYTES}}
	if ret := fieldValues(d, v); ret != nvml.SUCCESS {
		return ret
	}
	for i := range v {
		last := d.pcie[i].value
		wrapped := integer(v[i]) < last && last <= math.MaxUint32
		if nvml.ValueType(v[i].ValueType) == nvml.VALUE_TYPE_UNSIGNED_INT || wrapped {
			return nvml.ERROR_DEPRECATED
		}
	}
	for i, direction := range directionNames {
		bytes := integer(v[i])
		g.mb.RecordHwGpuIoDataPoint(g.now, count(bytes), g.host, d.uuid, d.name, d.model, direction)
		if rate, ok := d.pcie[i].add(bytes, g.at(v[i])); ok {
			g.mb.RecordTrainbridgeGpuPcieThroughputDataPoint(g.now, rate, g.host, d.uuid, d.name, d.model, direction)
		}
	}
	return nvml.SUCCESS
}

// pcieThroughput has NVML watch PCIe for 20 ms in each direction, the second way where counters are missing. The scrape waits meanwhile, so nothing is read for
// a metric that is off.
func (g *gpus) pcieThroughput(d *device) nvml.Return {
	if !g.cfg.Metrics.TrainbridgeGpuPcieThroughput.Enabled {
		return nvml.ERROR_NOT_SUPPORTED
	}
	for i, kind := range [directions]nvml.PcieUtilCounter{receive: nvml.PCIE_UTIL_RX_BYTES, transmit: nvml.PCIE_UTIL_TX_BYTES} {
		v, ret := d.handle.GetPcieThroughput(kind) // KB/s
		if ret != nvml.SUCCESS {
			return ret
		}
		g.mb.RecordTrainbridgeGpuPcieThroughputDataPoint(g.now, float64(v)*1e3, g.host, d.uuid, d.name, d.model, directionNames[i])
	}
	return nvml.SUCCESS
}

// nvlinkSum reads the data bytes over all links at once (NVLink 2 to 4), in KiB.
func (g *gpus) nvlinkSum(d *device) nvml.Return {
	v := []nvml.FieldValue{
		receive:  {FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: math.MaxUint32},
		transmit: {FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: math.MaxUint32},
	}
	if ret := fieldValues(d, v); ret != nvml.SUCCESS {
		return ret
	}
	for i := range v {
		g.nvlink(d, i, integer(v[i])<<10, g.at(v[i]))
	}
	return nvml.SUCCESS
}

// nvlinkEach reads the bytes over each link, and adds them up (NVLink 5). Links that the GPU does not have answer that they are not supported.
func (g *gpus) nvlinkEach(d *device) nvml.Return {
	v := make([]nvml.FieldValue, 0, directions*nvml.NVLINK_MAX_LINKS)
	for link := range uint32(nvml.NVLINK_MAX_LINKS) {
		v = append(
			v, nvml.FieldValue{FieldId: nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, ScopeId: link}, nvml.FieldValue{FieldId: nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, ScopeId: link},
		)
	}
	if ret := d.handle.GetFieldValues(v); ret != nvml.SUCCESS {
		return ret
	}
	var sum [directions]uint64 // v has both directions of a link side by side, in the order of directions
	var last nvml.FieldValue   // for the time
	ret := nvml.ERROR_NOT_SUPPORTED
	for i := range v {
		switch r := answer(v[i]); {
		case r == nvml.SUCCESS:
			d.links[i] = integer(v[i])
			last, ret = v[i], r
		case !unsupported(r):
			return r
		}
		sum[i%directions] += d.links[i] // also of a link that is down: otherwise the sum would decrease
	}
	if ret == nvml.SUCCESS {
		for i := range sum {
			g.nvlink(d, i, sum[i], g.at(last))
		}
	}
	return ret
}

// nvlink records the bytes over all links in a direction, and the rate since the last reading.
func (g *gpus) nvlink(d *device, direction int, bytes uint64, at time.Time) {
	g.mb.RecordTrainbridgeGpuNvlinkIoDataPoint(g.now, count(bytes), g.host, d.uuid, d.name, d.model, directionNames[direction])
	if rate, ok := d.nvlink[direction].add(bytes, at); ok {
		g.mb.RecordTrainbridgeGpuNvlinkThroughputDataPoint(g.now, rate, g.host, d.uuid, d.name, d.model, directionNames[direction])
	}
}

// processes reports the memory of each process. A process may have several contexts.
func (g *gpus) processes(d *device) nvml.Return {
	list, ret := d.handle.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		return ret
	}
	used := make(map[uint32]uint64, len(list))
	for _, p := range list {
		if p.UsedGpuMemory <= math.MaxInt64 { // else NVML_VALUE_NOT_AVAILABLE
			used[p.Pid] += p.UsedGpuMemory
		}
	}
	options := d.options()
	for pid, bytes := range used {
		g.mb.RecordTrainbridgeGpuProcessMemoryUsageDataPoint(g.now, int64(bytes), g.host, d.uuid, d.name, d.model, int64(pid), options...)
	}
	return ret
}

// fieldValues reads several values, each with its own answer, and returns the first answer other than SUCCESS.
func fieldValues(d *device, v []nvml.FieldValue) nvml.Return {
	ret := d.handle.GetFieldValues(v)
	for i := range v {
		if ret == nvml.SUCCESS {
			ret = answer(v[i])
		}
	}
	return ret
}

// answer is NVML's answer for one value. A value of an unknown type is not supported.
func answer(v nvml.FieldValue) nvml.Return {
	if ret := nvml.Return(v.NvmlReturn); ret != nvml.SUCCESS || !math.IsNaN(number(v)) {
		return ret
	}
	return nvml.ERROR_NOT_SUPPORTED
}

// at is the time of a value in NVML, else of the pass.
func (g *gpus) at(v nvml.FieldValue) time.Time {
	if v.Timestamp > 0 {
		return time.UnixMicro(v.Timestamp)
	}
	return g.now.AsTime()
}

// number is a value as a float; NaN: of an unknown type.
func number(v nvml.FieldValue) float64 { return value(v.ValueType, v.Value) }

// integer is a counter's value; 0 for a value below zero.
func integer(v nvml.FieldValue) uint64 {
	if nvml.ValueType(v.ValueType) == nvml.VALUE_TYPE_UNSIGNED_LONG_LONG { // exact beyond 2⁵³
		return binary.NativeEndian.Uint64(v.Value[:])
	}
	if f := number(v); f > 0 {
		return uint64(f)
	}
	return 0
}

// count turns a counter into the value of a point. Beyond 2⁶³ the value restarts at 0: after 8 months of NVLink at full speed.
func count(v uint64) int64 { return int64(v & math.MaxInt64) }

// value reads nvmlValue_t, a union. NaN is an unknown type.
func value(valueType uint32, b [8]byte) float64 {
	switch nvml.ValueType(valueType) {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(binary.NativeEndian.Uint64(b[:]))
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(binary.NativeEndian.Uint32(b[:]))
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG: // long is 64 bits on Linux
		return float64(binary.NativeEndian.Uint64(b[:]))
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(binary.NativeEndian.Uint64(b[:])))
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(binary.NativeEndian.Uint32(b[:])))
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return float64(binary.NativeEndian.Uint16(b[:]))
	}
	return math.NaN()
}

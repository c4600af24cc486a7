//go:build linux && cgo

package nvmlreceiver

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// host is NVML with GPUs whose answers a test sets. A failing function has its name of nvml.h without the prefix: DeviceGetName, or 1/DeviceGetName for GPU 1
// alone.
type host struct {
	mock.Interface
	mu        sync.Mutex
	fail      map[string]nvml.Return
	calls     map[string]int
	lacks     map[string]bool // symbols
	samples   map[nvml.SamplingType][]nvml.Sample
	fields    map[[2]uint32]uint64 // by field and scope; others are not supported
	valueType nvml.ValueType       // of the fields
	events    []nvml.EventData
	gpus      []*mock.Device
}

func newHost(count int) *host {
	h := &host{
		valueType: nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, fail: map[string]nvml.Return{}, calls: map[string]int{}, lacks: map[string]bool{},
		samples: map[nvml.SamplingType][]nvml.Sample{},
		fields: map[[2]uint32]uint64{
			{nvml.FI_DEV_MEMORY_TEMP, 0}: 71, {nvml.FI_DEV_PCIE_COUNT_RX_BYTES, 0}: 1000, {nvml.FI_DEV_PCIE_COUNT_TX_BYTES, 0}: 2000,
			{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, math.MaxUint32}: 3, {nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, math.MaxUint32}: 4,
		},
	}
	for i := range count {
		h.gpus = append(h.gpus, h.gpu(i))
	}
	h.InitFunc = func() nvml.Return { return h.call("Init") }
	h.ShutdownFunc = func() nvml.Return { return h.call("Shutdown") }
	h.DeviceGetCountFunc = func() (int, nvml.Return) { return len(h.gpus), h.call("DeviceGetCount") }
	h.SystemGetDriverVersionFunc = func() (string, nvml.Return) { return "570.1", h.call("SystemGetDriverVersion") }
	h.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		return h.gpus[i], h.call(fmt.Sprintf("%d/DeviceGetHandleByIndex", i))
	}
	h.ExtensionsFunc = func() nvml.ExtendedInterface {
		return &mock.ExtendedInterface{LookupSymbolFunc: func(name string) error {
			if h.lacks[name] {
				return fmt.Errorf("undefined symbol: %s", name)
			}
			return nil
		}}
	}
	h.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{
			FreeFunc: func() nvml.Return { return h.call("EventSetFree") },
			WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
				h.mu.Lock()
				defer h.mu.Unlock()
				if len(h.events) == 0 {
					return nvml.EventData{}, nvml.ERROR_TIMEOUT
				}
				e := h.events[0]
				h.events = h.events[1:]
				return e, nvml.SUCCESS
			},
		}, h.call("EventSetCreate")
	}
	return h
}

// call counts the call and returns its answer.
func (h *host) call(name string) nvml.Return {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[name]++
	if ret, ok := h.fail[name]; ok {
		return ret
	}
	for i := range name {
		if name[i] == '/' {
			return h.fail[name[i+1:]]
		}
	}
	return nvml.SUCCESS
}

func (h *host) set(name string, ret nvml.Return) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail[name] = ret
}

func (h *host) called(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[name]
}

// gpu is a GPU with all features.
func (h *host) gpu(i int) *mock.Device {
	call := func(name string) nvml.Return { return h.call(fmt.Sprintf("%d/Device%s", i, name)) }
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) { return fmt.Sprintf("GPU-%d", i), call("GetUUID") },
		GetNameFunc: func() (string, nvml.Return) { return "NVIDIA H200", call("GetName") },
		GetMigModeFunc: func() (int, int, nvml.Return) {
			return nvml.DEVICE_MIG_DISABLE, nvml.DEVICE_MIG_DISABLE, call("GetMigMode")
		},
		GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 91}, call("GetUtilizationRates") },
		GetEncoderUtilizationFunc: func() (uint32, uint32, nvml.Return) {
			return 11, 0, call("GetEncoderUtilization")
		},
		GetDecoderUtilizationFunc: func() (uint32, uint32, nvml.Return) { return 12, 0, call("GetDecoderUtilization") },
		GetPowerUsageFunc:         func() (uint32, nvml.Return) { return 700_500, call("GetPowerUsage") },
		GetSamplesFunc: func(kind nvml.SamplingType, _ uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
			return nvml.VALUE_TYPE_UNSIGNED_INT, h.samples[kind], call("GetSamples")
		},
		GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
			return nvml.Memory_v2{Total: 100, Used: 25, Reserved: 5}, call("GetMemoryInfo_v2")
		},
		GetMemoryInfoFunc:             func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 100, Used: 30}, call("GetMemoryInfo") },
		GetTotalEnergyConsumptionFunc: func() (uint64, nvml.Return) { return 5_500, call("GetTotalEnergyConsumption") },
		GetTemperatureFunc:            func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 65, call("GetTemperature") },
		GetTotalEccErrorsFunc: func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
			return 7 + uint64(kind), call("GetTotalEccErrors")
		},
		GetRemappedRowsFunc: func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, call("GetRemappedRows") },
		GetRetiredPagesPendingStatusFunc: func() (nvml.EnableState, nvml.Return) {
			return nvml.FEATURE_DISABLED, call("GetRetiredPagesPendingStatus")
		},
		GetCurrentClocksEventReasonsFunc:    func() (uint64, nvml.Return) { return 4, call("GetCurrentClocksEventReasons") },
		GetCurrentClocksThrottleReasonsFunc: func() (uint64, nvml.Return) { return 8, call("GetCurrentClocksThrottleReasons") },
		GetClockInfoFunc:                    func(kind nvml.ClockType) (uint32, nvml.Return) { return 1000 + uint32(kind), call("GetClockInfo") },
		GetViolationStatusFunc: func(policy nvml.PerfPolicyType) (nvml.ViolationTime, nvml.Return) {
			return nvml.ViolationTime{ViolationTime: uint64(policy+1) * 500_000_000}, call("GetViolationStatus")
		},
		GetPcieThroughputFunc: func(kind nvml.PcieUtilCounter) (uint32, nvml.Return) {
			return 10 + uint32(kind), call("GetPcieThroughput")
		},
		GetFieldValuesFunc: func(values []nvml.FieldValue) nvml.Return {
			for j := range values {
				v := &values[j]
				n, ok := h.fields[[2]uint32{v.FieldId, v.ScopeId}]
				v.ValueType, v.NvmlReturn = uint32(h.valueType), uint32(nvml.SUCCESS)
				if !ok {
					v.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
				}
				binary.NativeEndian.PutUint64(v.Value[:], n)
			}
			return call("GetFieldValues")
		},
		GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			// One process with two contexts, and one with unknown memory.
			return []nvml.ProcessInfo{
				{Pid: 42, UsedGpuMemory: 10}, {Pid: 43, UsedGpuMemory: math.MaxUint64}, {Pid: 42, UsedGpuMemory: 7},
			}, call("GetComputeRunningProcesses")
		},
		RegisterEventsFunc: func(uint64, nvml.EventSet) nvml.Return { return call("RegisterEvents") },
	}
}

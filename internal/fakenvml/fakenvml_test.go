//go:build linux && cgo

package fakenvml

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const gib = 1 << 30

// built is the folder of the one library for this process.
var built string

func TestMain(m *testing.M) {
	if os.Getenv("FAKENVML_PROCESS") != "" {
		process(os.Args[1:])
		return
	}
	dir, err := os.MkdirTemp("", "fakenvml")
	if err == nil {
		err = BuildDir(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// process is a program that finds the library by LD_LIBRARY_PATH. Its output is the number of devices, the processes of the first, and the symbols present in
// the library.
func process(symbols []string) {
	library := nvml.New()
	fmt.Println("init:", library.Init())
	count, ret := library.DeviceGetCount()
	fmt.Println("devices:", count, ret)
	device, _ := library.DeviceGetHandleByIndex(0)
	processes, ret := device.GetComputeRunningProcesses()
	fmt.Println("processes:", processes, ret)
	for _, symbol := range symbols {
		fmt.Printf("%s: %t\n", symbol, library.Extensions().LookupSymbol(symbol) == nil)
	}
}

// load initialises the library for the test.
func load(tb testing.TB, text string) (nvml.Interface, *State) {
	tb.Helper()
	state := Use(tb, text)
	library := nvml.New(nvml.WithLibraryPath(filepath.Join(built, Library)))
	require.Equal(tb, nvml.SUCCESS, library.Init())
	tb.Cleanup(func() {
		assert.NoError(tb, state.Set(""))
		assert.Equal(tb, nvml.SUCCESS, library.Shutdown())
	})
	return library, state
}

// device is the handle of an existing GPU.
func device(tb testing.TB, library nvml.Interface, index int) nvml.Device {
	tb.Helper()
	d, ret := library.DeviceGetHandleByIndex(index)
	require.Equal(tb, nvml.SUCCESS, ret)
	return d
}

// ok is the value of a successful call: ok[string](t)(device.GetName()).
func ok[T any](tb testing.TB) func(T, nvml.Return) T {
	tb.Helper()
	return func(value T, ret nvml.Return) T {
		tb.Helper()
		require.Equal(tb, nvml.SUCCESS, ret)
		return value
	}
}

func set(tb testing.TB, state *State, text string) {
	tb.Helper()
	require.NoError(tb, state.Set(text))
}

func TestDevices(t *testing.T) {
	library, state := load(t, "devices 8\nmodel NVIDIA B200\ndriver 999.1\nname 1 NVIDIA  A100\nuuid 1 GPU-other")
	assert.Equal(t, 8, ok[int](t)(library.DeviceGetCount()))
	assert.Equal(t, "999.1", ok[string](t)(library.SystemGetDriverVersion()))
	assert.Equal(t, "12.999.1", ok[string](t)(library.SystemGetNVMLVersion()))
	for i := range 8 {
		d := device(t, library, i)
		name, uuid := "NVIDIA B200", fmt.Sprintf("GPU-00000000-0000-0000-0000-00000000000%d", i)
		if i == 1 {
			name, uuid = "NVIDIA  A100", "GPU-other"
		}
		assert.Equal(t, i, ok[int](t)(d.GetIndex()))
		assert.Equal(t, name, ok[string](t)(d.GetName()))
		assert.Equal(t, uuid, ok[string](t)(d.GetUUID()))
	}
	_, ret := library.DeviceGetHandleByIndex(8)
	assert.Equal(t, nvml.ERROR_INVALID_ARGUMENT, ret)

	last := device(t, library, 7)
	set(t, state, "devices 0")
	assert.Zero(t, ok[int](t)(library.DeviceGetCount()))
	_, ret = last.GetName()
	assert.Equal(t, nvml.ERROR_INVALID_ARGUMENT, ret)
}

// The package's doc comment has the formulas of the numbers; here for GPU 2.
func TestDefaults(t *testing.T) {
	library, _ := load(t, "devices 3")
	assert.Equal(t, "570.124.06", ok[string](t)(library.SystemGetDriverVersion()))
	d := device(t, library, 2)
	assert.Equal(t, "NVIDIA H200", ok[string](t)(d.GetName()))
	assert.Equal(t, nvml.Utilization{Gpu: 47, Memory: 37}, ok[nvml.Utilization](t)(d.GetUtilizationRates()))
	utilization, period, ret := d.GetEncoderUtilization()
	assert.Equal(t, []any{uint32(57), uint32(200000), nvml.SUCCESS}, []any{utilization, period, ret})
	utilization, period, ret = d.GetDecoderUtilization()
	assert.Equal(t, []any{uint32(67), uint32(200000), nvml.SUCCESS}, []any{utilization, period, ret})
	assert.Equal(t, uint32(325000), ok[uint32](t)(d.GetPowerUsage()))
	assert.Equal(t, uint64(1002000), ok[uint64](t)(d.GetTotalEnergyConsumption()))
	assert.Equal(t, nvml.Memory{Total: 80 * gib, Free: 67 * gib, Used: 13 * gib}, ok[nvml.Memory](t)(d.GetMemoryInfo()))
	memory := ok[nvml.Memory_v2](t)(d.GetMemoryInfo_v2())
	assert.Equal(t, []uint64{80 * gib, 1 * gib, 67 * gib, 12 * gib}, []uint64{memory.Total, memory.Reserved, memory.Free, memory.Used})
	assert.Equal(t, uint32(52), ok[uint32](t)(d.GetTemperature(nvml.TEMPERATURE_GPU)))
	for clock, mhz := range map[nvml.ClockType]uint32{
		nvml.CLOCK_GRAPHICS: 1720, nvml.CLOCK_SM: 1620, nvml.CLOCK_MEM: 2620, nvml.CLOCK_VIDEO: 1520,
	} {
		assert.Equal(t, mhz, ok[uint32](t)(d.GetClockInfo(clock)))
	}
	assert.Equal(t, uint32(1002), ok[uint32](t)(d.GetPcieThroughput(nvml.PCIE_UTIL_TX_BYTES)))
	assert.Equal(t, uint32(2002), ok[uint32](t)(d.GetPcieThroughput(nvml.PCIE_UTIL_RX_BYTES)))
	assert.Equal(t, uint64(4), ok[uint64](t)(d.GetCurrentClocksEventReasons()))
	assert.Equal(t, uint64(4), ok[uint64](t)(d.GetCurrentClocksThrottleReasons()))
	for policy, ns := range map[nvml.PerfPolicyType]uint64{
		nvml.PERF_POLICY_POWER: 1_002_000_000, nvml.PERF_POLICY_THERMAL: 2_004_000_000, nvml.PERF_POLICY_TOTAL_BASE_CLOCKS: 12_024_000_000,
	} {
		assert.Equal(t, ns, ok[nvml.ViolationTime](t)(d.GetViolationStatus(policy)).ViolationTime)
	}
	current, pending, ret := d.GetEccMode()
	assert.Equal(t, []any{nvml.FEATURE_ENABLED, nvml.FEATURE_ENABLED, nvml.SUCCESS}, []any{current, pending, ret})
	assert.Equal(t, uint64(4), ok[uint64](t)(d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)))
	assert.Equal(t, uint64(0), ok[uint64](t)(d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)))
	assert.Equal(t, uint64(104), ok[uint64](t)(d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC)))
	assert.Equal(t, uint64(100), ok[uint64](t)(d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)))
	corrected, uncorrected, isPending, failed, ret := d.GetRemappedRows()
	assert.Equal(t, []any{3, 0, false, false, nvml.SUCCESS}, []any{corrected, uncorrected, isPending, failed, ret})
	assert.Equal(t, nvml.FEATURE_DISABLED, ok[nvml.EnableState](t)(d.GetRetiredPagesPendingStatus()))
	assert.Equal(t, uint64(11), ok[uint64](t)(d.GetSupportedEventTypes()))
	assert.Equal(t, 7, ok[int](t)(d.GetMaxMigDeviceCount()))
	assert.Equal(t, nvml.FEATURE_ENABLED, ok[nvml.EnableState](t)(d.GetNvLinkState(17)))
	_, ret = d.GetNvLinkState(18)
	assert.Equal(t, nvml.ERROR_INVALID_ARGUMENT, ret)
	assert.Equal(t, []nvml.ProcessInfo{{Pid: 1002, UsedGpuMemory: 10 * gib, GpuInstanceId: math.MaxUint32, ComputeInstanceId: math.MaxUint32}},
		ok[[]nvml.ProcessInfo](t)(d.GetComputeRunningProcesses()))
}

func TestSamples(t *testing.T) {
	library, state := load(t, "now 10123456")
	d := device(t, library, 0)
	// samples returns the times, and checks that all values are the same.
	samples := func(kind nvml.SamplingType, last uint64, value byte) (times []uint64) {
		valueType, list, ret := d.GetSamples(kind, last)
		require.Equal(t, nvml.SUCCESS, ret)
		require.Equal(t, nvml.VALUE_TYPE_UNSIGNED_INT, valueType)
		require.Len(t, list, 120) // go-nvml keeps the driver's buffer size, and zeroes
		for _, sample := range list {
			if sample.TimeStamp != 0 {
				assert.Equal(t, value, sample.SampleValue[0])
				times = append(times, sample.TimeStamp)
			}
		}
		return times
	}
	times := samples(nvml.GPU_UTILIZATION_SAMPLES, 0, 40)
	assert.Len(t, times, 50) // of 10 s, each 200 ms
	assert.Equal(t, []uint64{200000, 400000}, times[:2])
	assert.Equal(t, []uint64{9800000, 10000000}, samples(nvml.GPU_UTILIZATION_SAMPLES, 9600000, 40))
	assert.Equal(t, []uint64{10000000}, samples(nvml.ENC_UTILIZATION_SAMPLES, 9999999, 50))
	assert.Equal(t, []uint64{10000000}, samples(nvml.DEC_UTILIZATION_SAMPLES, 9999999, 60))
	assert.Equal(t, []uint64{10000000}, samples(nvml.MEMORY_UTILIZATION_SAMPLES, 9999999, 30))
	assert.Equal(t, []uint64{10100000, 10120000}, samples(nvml.TOTAL_POWER_SAMPLES, 10080000, 300000&0xff))
	assert.Len(t, samples(nvml.TOTAL_POWER_SAMPLES, 0, 300000&0xff), 120)

	_, _, ret := d.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, 10000000)
	assert.Equal(t, nvml.ERROR_NOT_FOUND, ret)
	_, _, ret = d.GetSamples(nvml.PROCESSOR_CLK_SAMPLES, 0)
	assert.Equal(t, nvml.ERROR_NOT_SUPPORTED, ret)

	set(t, state, "samples 0 gpu_util 1000=10 2000=20 3000=30\nsamples 0 enc_util")
	_, list, ret := d.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, 1000)
	require.Equal(t, nvml.SUCCESS, ret)
	assert.Equal(t, []nvml.Sample{{TimeStamp: 2000, SampleValue: [8]byte{20}}, {TimeStamp: 3000, SampleValue: [8]byte{30}}, {}}, list[:3])
	_, _, ret = d.GetSamples(nvml.ENC_UTILIZATION_SAMPLES, 0)
	assert.Equal(t, nvml.ERROR_NOT_FOUND, ret)
}

func TestFields(t *testing.T) {
	library, _ := load(t, "now 5000000\nfield 0 139 4\nvalue 0 pcie_value_type 1")
	fields := []nvml.FieldValue{
		{FieldId: nvml.FI_DEV_MEMORY_TEMP},
		{FieldId: nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION},
		{FieldId: nvml.FI_DEV_NVLINK_LINK_COUNT},
		{FieldId: nvml.FI_DEV_PCIE_COUNT_TX_BYTES},
		{FieldId: nvml.FI_DEV_PCIE_COUNT_RX_BYTES},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: math.MaxUint32},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: 17},
		{FieldId: nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, ScopeId: 17},
		{FieldId: nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, ScopeId: 0},
		{FieldId: nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, ScopeId: math.MaxUint32},
		{FieldId: nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, ScopeId: 18},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: math.MaxUint32},
		{FieldId: nvml.FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT},
	}
	require.Equal(t, nvml.SUCCESS, device(t, library, 0).GetFieldValues(fields))
	want := []struct {
		kind   nvml.ValueType
		value  uint64
		result nvml.Return
	}{
		{nvml.VALUE_TYPE_UNSIGNED_INT, 60, nvml.SUCCESS},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 1000000, nvml.SUCCESS},
		{nvml.VALUE_TYPE_UNSIGNED_INT, 18, nvml.SUCCESS},
		{nvml.VALUE_TYPE_UNSIGNED_INT, 1000000000, nvml.SUCCESS},
		{nvml.VALUE_TYPE_UNSIGNED_INT, 2000000000, nvml.SUCCESS},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 1800000, nvml.SUCCESS},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 100000, nvml.SUCCESS},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 102400000, nvml.SUCCESS},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 204800000, nvml.SUCCESS},
		{result: nvml.ERROR_INVALID_ARGUMENT},
		{result: nvml.ERROR_INVALID_ARGUMENT},
		{result: nvml.ERROR_NO_PERMISSION},
		{result: nvml.ERROR_NOT_SUPPORTED},
	}
	for i, field := range fields {
		assert.Equal(t, want[i].result, nvml.Return(field.NvmlReturn), i)
		assert.Equal(t, int64(5000000), field.Timestamp, i)
		if want[i].result == nvml.SUCCESS {
			assert.Equal(t, want[i].kind, nvml.ValueType(field.ValueType), i)
			value := uint64(0)
			for b := 7; b >= 0; b-- {
				value = value<<8 | uint64(field.Value[b])
			}
			assert.Equal(t, want[i].value, value, i)
		}
	}
}

func TestFailures(t *testing.T) {
	temperature := func(d nvml.Device) nvml.Return { _, ret := d.GetTemperature(nvml.TEMPERATURE_GPU); return ret }
	memory := func(d nvml.Device) nvml.Return { _, ret := d.GetMemoryInfo(); return ret }
	memory2 := func(d nvml.Device) nvml.Return { _, ret := d.GetMemoryInfo_v2(); return ret }
	sm := func(d nvml.Device) nvml.Return { _, ret := d.GetClockInfo(nvml.CLOCK_SM); return ret }
	video := func(d nvml.Device) nvml.Return { _, ret := d.GetClockInfo(nvml.CLOCK_VIDEO); return ret }
	ecc := func(d nvml.Device) nvml.Return {
		_, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
		return ret
	}
	for _, test := range []struct {
		text        string
		call        func(nvml.Device) nvml.Return
		first, next nvml.Return
	}{
		{"device 0 nvmlDeviceGetTemperature 3", temperature, nvml.ERROR_NOT_SUPPORTED, nvml.SUCCESS},
		{"device 0 nvmlDeviceGetTemperature 3", memory, nvml.SUCCESS, nvml.SUCCESS},
		{"device * nvmlDeviceGetTemperature 3", temperature, nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NOT_SUPPORTED},
		{"function nvmlDeviceGetTemperature 999", temperature, nvml.ERROR_UNKNOWN, nvml.ERROR_UNKNOWN},
		{"device 1 nvmlDeviceGetMemoryInfo 4", memory, nvml.SUCCESS, nvml.ERROR_NO_PERMISSION},
		{"device 1 nvmlDeviceGetMemoryInfo 4", memory2, nvml.SUCCESS, nvml.ERROR_NO_PERMISSION},
		{"device 1 nvmlDeviceGetMemoryInfo_v2 4", memory, nvml.SUCCESS, nvml.SUCCESS},
		{"device 1 nvmlDeviceGetMemoryInfo_v2 4", memory2, nvml.SUCCESS, nvml.ERROR_NO_PERMISSION},
		{"device 0 nvmlDeviceGetClockInfo/3 3", video, nvml.ERROR_NOT_SUPPORTED, nvml.SUCCESS},
		{"device 0 nvmlDeviceGetClockInfo/3 3", sm, nvml.SUCCESS, nvml.SUCCESS},
		{"value 0 ecc_mode 0", ecc, nvml.ERROR_NOT_SUPPORTED, nvml.SUCCESS},
		{"lost 1", temperature, nvml.SUCCESS, nvml.ERROR_GPU_IS_LOST},
		{"all 9", temperature, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_DRIVER_NOT_LOADED},
	} {
		t.Run(test.text, func(t *testing.T) {
			library, state := load(t, "devices 2")
			first, next := device(t, library, 0), device(t, library, 1)
			set(t, state, "devices 2\n# a comment\n\n"+test.text)
			assert.Equal(t, test.first, test.call(first))
			assert.Equal(t, test.next, test.call(next))
			set(t, state, "devices 2")
			assert.Equal(t, nvml.SUCCESS, test.call(first))
			assert.Equal(t, nvml.SUCCESS, test.call(next))
		})
	}
}

func TestLost(t *testing.T) {
	library, state := load(t, "devices 2")
	lost := device(t, library, 1)
	set(t, state, "devices 2\nlost 1")
	assert.Equal(t, 2, ok[int](t)(library.DeviceGetCount()))
	_, ret := library.DeviceGetHandleByIndex(1)
	assert.Equal(t, nvml.ERROR_GPU_IS_LOST, ret)
	assert.Equal(t, "GPU is lost", ret.Error())
	_, ret = lost.GetUUID()
	assert.Equal(t, nvml.ERROR_GPU_IS_LOST, ret)
	device(t, library, 0)
}

func TestDriverGoesAndComesBack(t *testing.T) {
	library, state := load(t, "")
	before := device(t, library, 0)
	set(t, state, "all 15\ninit 9")
	_, ret := library.DeviceGetCount()
	assert.Equal(t, nvml.ERROR_GPU_IS_LOST, ret)
	require.Equal(t, nvml.SUCCESS, library.Shutdown())
	assert.Equal(t, nvml.ERROR_DRIVER_NOT_LOADED, library.Init())
	set(t, state, "")
	_, ret = before.GetName()
	assert.Equal(t, nvml.ERROR_UNINITIALIZED, ret)
	require.Equal(t, nvml.SUCCESS, library.Init())
	_, ret = before.GetName()
	assert.Equal(t, nvml.ERROR_INVALID_ARGUMENT, ret) // the handle of another initialisation
	assert.Equal(t, "NVIDIA H200", ok[string](t)(device(t, library, 0).GetName()))
}

func TestEvents(t *testing.T) {
	library, state := load(t, "devices 3\nxid 0 1") // nobody has registered yet
	first, second := device(t, library, 0), device(t, library, 1)
	events := ok[nvml.EventSet](t)(library.EventSetCreate())
	require.Equal(t, nvml.SUCCESS, first.RegisterEvents(nvml.EventTypeXidCriticalError, events))
	require.Equal(t, nvml.SUCCESS, second.RegisterEvents(nvml.EventTypeXidCriticalError, events))
	assert.Equal(t, nvml.ERROR_NOT_SUPPORTED, first.RegisterEvents(nvml.EventTypePState, events))
	_, ret := events.Wait(0)
	assert.Equal(t, nvml.ERROR_TIMEOUT, ret)
	_, ret = events.Wait(2)
	assert.Equal(t, nvml.ERROR_TIMEOUT, ret)

	set(t, state, "devices 3\nmig 0 2\nxid 1 79\nxid 2 13\nxid 0/1 94\nxid 1 79")
	for _, want := range []struct {
		device   nvml.Device
		code     uint64
		instance uint32
		compute  uint32
	}{
		{second, 79, math.MaxUint32, math.MaxUint32}, {first, 94, 2, 0}, {second, 79, math.MaxUint32, math.MaxUint32},
	} {
		event, ret := events.Wait(0)
		require.Equal(t, nvml.SUCCESS, ret)
		assert.Equal(t, nvml.EventData{
			Device: event.Device, EventType: nvml.EventTypeXidCriticalError, EventData: want.code,
			GpuInstanceId: want.instance, ComputeInstanceId: want.compute,
		}, event)
		assert.Equal(t, ok[string](t)(want.device.GetUUID()), ok[string](t)(event.Device.GetUUID()))
	}
	_, ret = events.Wait(0)
	assert.Equal(t, nvml.ERROR_TIMEOUT, ret)
	require.Equal(t, nvml.SUCCESS, events.Free())
	_, ret = events.Wait(0)
	assert.Equal(t, nvml.ERROR_INVALID_ARGUMENT, ret)
}

func TestMIG(t *testing.T) {
	library, _ := load(t, "devices 2\nmig 1 2\nvalue 1/1 mem_used 1024\nprocess 1/1 77 512\ndevice 1/0 nvmlDeviceGetName 3")
	plain, gpu := device(t, library, 0), device(t, library, 1)
	mode, pending, ret := plain.GetMigMode()
	assert.Equal(t, []any{nvml.DEVICE_MIG_DISABLE, nvml.DEVICE_MIG_DISABLE, nvml.SUCCESS}, []any{mode, pending, ret})
	_, ret = plain.GetMigDeviceHandleByIndex(0)
	assert.Equal(t, nvml.ERROR_NOT_FOUND, ret)
	mode, pending, ret = gpu.GetMigMode()
	assert.Equal(t, []any{nvml.DEVICE_MIG_ENABLE, nvml.DEVICE_MIG_ENABLE, nvml.SUCCESS}, []any{mode, pending, ret})
	_, ret = gpu.GetMigDeviceHandleByIndex(2)
	assert.Equal(t, nvml.ERROR_NOT_FOUND, ret)
	_, ret = gpu.GetMigDeviceHandleByIndex(7)
	assert.Equal(t, nvml.ERROR_INVALID_ARGUMENT, ret)
	_, ret = gpu.GetUtilizationRates()
	assert.Equal(t, nvml.ERROR_NOT_SUPPORTED, ret)
	_, _, ret = gpu.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, 0)
	assert.Equal(t, nvml.ERROR_NOT_SUPPORTED, ret)
	_, _, ret = gpu.GetSamples(nvml.TOTAL_POWER_SAMPLES, 0)
	assert.Equal(t, nvml.SUCCESS, ret)

	zero, one := ok[nvml.Device](t)(gpu.GetMigDeviceHandleByIndex(0)), ok[nvml.Device](t)(gpu.GetMigDeviceHandleByIndex(1))
	assert.True(t, ok[bool](t)(one.IsMigDeviceHandle()))
	assert.False(t, ok[bool](t)(gpu.IsMigDeviceHandle()))
	assert.Equal(t, gpu, ok[nvml.Device](t)(one.GetDeviceHandleFromMigDeviceHandle()))
	assert.Equal(t, 1, ok[int](t)(one.GetIndex()))
	assert.Equal(t, "MIG-00000000-0000-0000-0001-000000000001", ok[string](t)(one.GetUUID()))
	assert.Equal(t, "NVIDIA H200 MIG 1g.10gb", ok[string](t)(one.GetName()))
	_, ret = zero.GetName()
	assert.Equal(t, nvml.ERROR_NOT_SUPPORTED, ret)
	assert.Equal(t, nvml.Memory{Total: 10 * gib, Free: 9 * gib, Used: 1 * gib}, ok[nvml.Memory](t)(zero.GetMemoryInfo()))
	assert.Equal(t, uint64(1024), ok[nvml.Memory](t)(one.GetMemoryInfo()).Used)
	_, ret = one.GetPowerUsage()
	assert.Equal(t, nvml.ERROR_NOT_SUPPORTED, ret)
	ofOne := nvml.ProcessInfo{Pid: 77, UsedGpuMemory: 512, GpuInstanceId: 2}
	assert.Equal(t, []nvml.ProcessInfo{ofOne}, ok[[]nvml.ProcessInfo](t)(one.GetComputeRunningProcesses()))
	assert.Equal(t, []nvml.ProcessInfo{{Pid: 2010, UsedGpuMemory: gib / 2, GpuInstanceId: 1}, ofOne},
		ok[[]nvml.ProcessInfo](t)(gpu.GetComputeRunningProcesses()))
}

func TestProcesses(t *testing.T) {
	library, _ := load(t, "devices 2\nprocess 0 12345 1073741824\nprocess 0 12346 1\nprocess 0 12347 2\nprocess 1")
	processes := ok[[]nvml.ProcessInfo](t)(device(t, library, 0).GetComputeRunningProcesses())
	require.Len(t, processes, 3)
	for i, process := range processes {
		assert.Equal(t, uint32(12345+i), process.Pid)
		assert.Equal(t, []uint64{1 << 30, 1, 2}[i], process.UsedGpuMemory)
	}
	assert.Empty(t, ok[[]nvml.ProcessInfo](t)(device(t, library, 1).GetComputeRunningProcesses()))
}

// A call never sees half of a text: in each text used memory is half of the total.
func TestTextsAreWhole(t *testing.T) {
	library, state := load(t, "value 0 mem_reserved 0\nvalue 0 mem_total 2\nvalue 0 mem_used 1")
	d := device(t, library, 0)
	var stop atomic.Bool
	torn := make(chan nvml.Memory)
	go func() {
		defer close(torn)
		for !stop.Load() {
			if memory, _ := d.GetMemoryInfo(); memory.Total != 2*memory.Used {
				torn <- memory
				return
			}
		}
	}()
	for used := range 200 {
		padding := strings.Repeat("# ", 2000)
		set(t, state, fmt.Sprintf("value 0 mem_reserved 0\nvalue 0 mem_total %d\n%s\nvalue 0 mem_used %d", 2*used, padding, used))
	}
	stop.Store(true)
	memory, isTorn := <-torn
	assert.False(t, isTorn, memory)
	assert.Equal(t, uint64(199), ok[nvml.Memory](t)(d.GetMemoryInfo()).Used)
}

func TestHang(t *testing.T) {
	library, state := load(t, "")
	d := device(t, library, 0)
	set(t, state, "hang 1\nvalue 0 power_now_mw 1")
	read := make(chan uint32, 1)
	go func() {
		power, _ := d.GetPowerUsage()
		read <- power
	}()
	out, err := run(t, built, "") // another process has another state; the call above has time to return meanwhile
	require.NoError(t, err, out)
	select {
	case power := <-read:
		t.Fatal("it did not hang, power", power)
	default:
	}
	set(t, state, "value 0 power_now_mw 2")
	assert.Equal(t, uint32(2), <-read)
}

func TestTextTooLong(t *testing.T) {
	state, err := New(filepath.Join(t.TempDir(), "state"), strings.Repeat("\n", stateSize-9))
	require.NoError(t, err)
	defer state.Close()
	assert.EqualError(t, state.Set(strings.Repeat("\n", stateSize-8)), "state of 65528 bytes")
}

// run starts this test binary as process, with the library in dir.
func run(t *testing.T, dir, statePath string, symbols ...string) (output string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], symbols...)
	command.Env = append(os.Environ(), "FAKENVML_PROCESS=1", "LD_LIBRARY_PATH="+dir, Env+"="+statePath)
	out, err := command.CombinedOutput()
	return string(out), err
}

func TestProcessWithoutState(t *testing.T) {
	out, err := run(t, built, "")
	require.NoError(t, err, out)
	assert.Equal(t, "init: Success\ndevices: 1 Success\nprocesses: [{1000 8589934592 4294967295 4294967295}] Success\n", out)
}

// A driver from before version 3 of the processes, and before samples.
func TestOldDriver(t *testing.T) {
	dir := Build(t, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetSamples")
	out, err := run(t, dir, "", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetSamples", "nvmlInit_v2",
		"set_defaults")
	require.NoError(t, err, out)
	assert.Equal(t, `init: Success
devices: 1 Success
processes: [{1000 8589934592 4294967295 4294967295}] Success
nvmlDeviceGetComputeRunningProcesses_v3: false
nvmlDeviceGetComputeRunningProcesses: true
nvmlDeviceGetSamples: false
nvmlInit_v2: true
set_defaults: false
`, out)
}

func TestMistakesAbort(t *testing.T) {
	for text, want := range map[string]string{
		"devices 17":                         "number too large: 17",
		"devices":                            "number expected: ",
		"device 0 nvmlDeviceGetTemperatur 3": "no such function: nvmlDeviceGetTemperatur",
		"device 0 nvmlDeviceGetTemperature":  "number expected: ",
		"value 0 power 3":                    "no such value: power",
		"lost 1/9":                           "number too large: 9",
		"samples 0 gpu_util 3":               "up to 120 µs=value expected: 3",
		"samples 0 power 3=4":                "no samples of: power",
		"broken 3":                           "no such directive: broken",
		"process 0 12 many":                  "number expected: many",
		"samples 0 gpu_util" + strings.Repeat(" 1=1", 121): "up to 120 µs=value expected: 1=1",
	} {
		state, err := New(filepath.Join(t.TempDir(), "state"), text)
		require.NoError(t, err)
		defer state.Close()
		out, err := run(t, built, state.Path())
		require.Error(t, err, text)
		assert.Contains(t, out, "fake NVML: "+want+"\n")
	}
	out, err := run(t, built, filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
	assert.Contains(t, out, "fake NVML: cannot open: ")
}

func BenchmarkGetPowerUsage(b *testing.B) {
	library, _ := load(b, "devices 8")
	d := device(b, library, 7)
	for b.Loop() {
		if _, ret := d.GetPowerUsage(); ret != nvml.SUCCESS {
			b.Fatal(ret)
		}
	}
}

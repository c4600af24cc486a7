//go:build linux && cgo

package nvmlreceiver

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
)

// code is a random answer of NVML. Answers for a failure of NVML as a whole come only if ill; the answer that makes go-nvml allocate without end for a list
// never comes.
func code(r *rand.Rand, ill bool) nvml.Return {
	for {
		ret := nvml.Return(r.IntN(31))
		if ret == 30 {
			ret = nvml.ERROR_UNKNOWN
		}
		if ret != nvml.ERROR_INSUFFICIENT_SIZE && (ill || !broken(ret)) {
			return ret
		}
	}
}

// check checks the invariants of each scrape, whatever NVML answers. pointsOf has checked that no series is there twice.
func check(t *testing.T, got points) {
	t.Helper()
	states := map[string]float64{}
	for k, v := range got {
		if math.IsNaN(v) || v < 0 {
			t.Fatalf("%s is %v", k, v)
		}
		if id, is := strings.CutPrefix(k, "hw.status id="); is {
			id, _, _ = strings.Cut(id, " ")
			states[id] += v
		}
	}
	for id, n := range states {
		require.InDelta(t, 1, n, 0, "states of "+id)
	}
}

// Random answers of any function of all GPUs but the first, scrape for scrape: the first GPU is not affected.
func TestRandom(t *testing.T) {
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			h := newHost(4)
			partOfLast(h)
			b := newBed(t, h, func(c *Config) { c.Metrics.TrainbridgeGpuFieldSupported.Enabled = true }).begin(t)
			first, err := b.next()
			require.NoError(t, err)
			want, err := b.next()
			require.NoError(t, err)
			require.Less(t, len(first), len(want), "rates from the second scrape on")
			scrape := func() points { return scrapeLater(t, b, h, r) }
			stayHealthy(t, scrape, h, r, want.of("GPU-0"))
			require.Empty(t, b.log.FilterMessageSnippet("idle").All())
			for range 200 { // now the first GPU and the library as well
				for _, name := range slices.Sorted(maps.Keys(h.calls)) {
					if h.set(name, nvml.SUCCESS); name != "Shutdown" && r.IntN(60) == 0 { // counts its users
						h.set(name, code(r, true))
					}
				}
				scrape()
			}
			for _, name := range slices.Sorted(maps.Keys(h.calls)) {
				h.set(name, nvml.SUCCESS)
			}
			scrape()
			b.at = b.at.Add(lookAgain)
			for _, uuid := range []string{"GPU-0", "GPU-1", "GPU-2", "GPU-3"} {
				failed, there := scrape()["hw.status id="+uuid+" state=failed"]
				assert.True(t, there, uuid)
				assert.Zero(t, failed, uuid) // may be degraded: the older API of throttle reasons reports a slowdown
			}
		})
	}
}

// partOfLast cuts the last GPU into MIG devices, or not, in turn.
func partOfLast(h *host) {
	part := h.gpu(9)
	part.GetUUIDFunc = func() (string, nvml.Return) { return "MIG-1", h.call("3/part/GetUUID") }
	h.gpus[3].GetMigModeFunc = func() (int, int, nvml.Return) {
		return h.called("3/DeviceGetMigMode") / 20 % 2, 0, h.call("3/DeviceGetMigMode")
	}
	h.gpus[3].GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 2, h.call("3/DeviceGetMaxMigDeviceCount") }
	h.gpus[3].GetMigDeviceHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) {
		return part, h.call("3/DeviceGetMigDeviceHandleByIndex")
	}
}

// scrapeLater scrapes after a while in which counters increased and events came.
func scrapeLater(t *testing.T, b *bed, h *host, r *rand.Rand) points {
	t.Helper()
	b.at = b.at.Add(time.Duration(r.IntN(20)) * time.Second)
	for k := range h.fields {
		h.fields[k] += uint64(r.IntN(1000))
	}
	for range r.IntN(3) {
		h.events = append(h.events, nvml.EventData{Device: h.gpus[1], EventType: nvml.EventTypeXidCriticalError, EventData: r.Uint64N(3)})
	}
	got, _ := b.next()
	check(t, got)
	return got
}

// stayHealthy scrapes while all GPUs but the first fail now and then: the first GPU keeps all its points.
func stayHealthy(t *testing.T, scrape func() points, h *host, r *rand.Rand, last points) {
	t.Helper()
	for range 200 {
		for _, name := range slices.Sorted(maps.Keys(h.calls)) {
			if i := strings.IndexByte(name, '/'); i > 0 && name[0] != '0' && name[0] != '9' {
				h.set(name, nvml.SUCCESS)
				if r.IntN(30) == 0 {
					h.set(name, code(r, false))
				}
			}
		}
		got := scrape().of("GPU-0")
		for k := range last {
			require.Contains(t, got, k)
			if strings.Contains(k, ".io ") {
				require.GreaterOrEqual(t, got[k], last[k], k)
			}
		}
		require.InDelta(t, 1, got["hw.status state=ok"], 0)
		last = got
	}
}

// The same through cgo: lost GPUs, a changing number of GPUs, MIG, failing functions and fields, and a driver that comes and goes.
func testNVMLRandom(t *testing.T, lib nvml.Interface) {
	t.Helper()
	r := rand.New(rand.NewPCG(6, 0))
	state := fakenvml.Use(t, "devices 4\n")
	b := newBed(t, lib, func(c *Config) { c.Metrics.TrainbridgeGpuFieldSupported.Enabled = true }).begin(t)
	const healthy = "GPU-00000000-0000-0000-0000-000000000000"
	_, err := b.next()
	require.NoError(t, err)
	want, err := b.next()
	require.NoError(t, err)
	for range 300 {
		require.NoError(t, state.Set(ill(r, 1, false)))
		b.at = b.at.Add(time.Duration(r.IntN(20)) * time.Second)
		got, _ := b.next()
		check(t, got)
		for k, v := range want.of(healthy) {
			now, there := got.of(healthy)[k]
			require.True(t, there, k)
			require.InDelta(t, v, now, 1e-9, k)
		}
	}
	for range 300 {
		require.NoError(t, state.Set(ill(r, 0, true)))
		b.at = b.at.Add(time.Duration(r.IntN(20)) * time.Second)
		got, _ := b.next()
		check(t, got)
	}
	require.NoError(t, state.Set("all 1\n")) // NVML sees a changed number of GPUs only after a restart
	_, err = b.next()
	require.NoError(t, err)
	require.NoError(t, state.Set("devices 4\n"))
	for range 2 {
		b.at = b.at.Add(lookAgain)
		_, _ = b.next()
	}
	got, err := b.next()
	require.NoError(t, err)
	for i := range 4 {
		assert.InDelta(t, 1, got[fmt.Sprintf("hw.status id=GPU-00000000-0000-0000-0000-00000000000%d state=ok", i)], 0, i)
	}
}

// failing are functions of NVML that may fail without the library.
var failing = []string{
	"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetMigMode", "nvmlDeviceGetSamples", "nvmlDeviceGetUtilizationRates",
	"nvmlDeviceGetPowerUsage", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTemperature", "nvmlDeviceGetTotalEccErrors",
	"nvmlDeviceGetRemappedRows", "nvmlDeviceGetRetiredPagesPendingStatus", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetClockInfo",
	"nvmlDeviceGetViolationStatus", "nvmlDeviceGetFieldValues", "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMaxMigDeviceCount",
	"nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceRegisterEvents",
}

// ill is a state of fakenvml in which the GPUs from first on fail; with all the library fails too.
func ill(r *rand.Rand, first int, all bool) string {
	var s strings.Builder
	fmt.Fprintf(&s, "devices %d\n", 2+r.IntN(3))
	for gpu := first; gpu < 4; gpu++ {
		for range r.IntN(3) {
			fmt.Fprintf(&s, "device %d %s %d\n", gpu, failing[r.IntN(len(failing))], code(r, all))
		}
		if r.IntN(10) == 0 {
			fmt.Fprintf(&s, "lost %d\n", gpu)
		}
		if r.IntN(5) == 0 {
			fmt.Fprintf(&s, "mig %d %d\n", gpu, r.IntN(8))
		}
		fmt.Fprintf(
			&s, "field %d %d %d\nxid %d %d\nvalue %d pcie_value_type %d\n", gpu, []int{82, 197, 138, 139, 202}[r.IntN(5)], code(r, all), gpu, r.IntN(3), gpu, r.IntN(8),
		)
	}
	if all && r.IntN(10) == 0 {
		fmt.Fprintf(&s, "all %d\n", code(r, all))
	}
	if all && r.IntN(10) == 0 {
		fmt.Fprintf(&s, "init %d\n", code(r, all))
	}
	return s.String()
}

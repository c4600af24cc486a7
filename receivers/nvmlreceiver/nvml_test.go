//go:build linux && cgo

package nvmlreceiver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/scraper"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver/internal/metadata"
)

// The whole way through cgo, go-nvml and the dynamic linker, to a fake library. The linker never unloads a library, so all tests share one.
func TestNVML(t *testing.T) {
	lib := nvml.New(nvml.WithLibraryPath(filepath.Join(fakenvml.Build(t), fakenvml.Library)))
	for name, test := range map[string]func(*testing.T, nvml.Interface){
		"golden": testGolden, "controller": testController, "samples": testNVMLSamples, "lost": testNVMLLost, "driver": testNVMLDriver,
		"hang": testNVMLHang, "errors": testNVMLErrors, "two": testNVMLTwo, "random": testNVMLRandom,
	} {
		t.Run(name, func(t *testing.T) { test(t, lib) })
	}
}

// Two GPUs, the second with MIG, by the collector's controller and a ticker of the test.
func testController(t *testing.T, lib nvml.Interface) {
	t.Helper()
	fakenvml.Use(t, "devices 2\nmig 1 2\nxid 0 63\n")
	cfg := createDefaultConfig().(*Config)
	cfg.InitialDelay = 0
	cfg.Metrics.TrainbridgeGpuFieldSupported.Enabled = true
	set := receivertest.NewNopSettings(metadata.Type)
	g := newGPUs(cfg, set, lib)
	s, err := scraper.NewMetrics(g.scrape, scraper.WithStart(g.start), scraper.WithShutdown(g.shutdown))
	require.NoError(t, err)
	tick, sink := make(chan time.Time), new(consumertest.MetricsSink)
	r, err := scraperhelper.NewMetricsController(
		&cfg.ControllerConfig, set, sink, scraperhelper.AddMetricsScraper(metadata.Type, s), scraperhelper.WithTickerChannel(tick),
	)
	require.NoError(t, err)
	require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
	for range 3 {
		tick <- time.Now() // taken when the scrape before is done
	}
	require.NoError(t, r.Shutdown(context.Background()))
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, host, g.host)
	assert.GreaterOrEqual(t, len(sink.AllMetrics()), 3)
	want, err := golden.ReadMetrics(goldenFile)
	require.NoError(t, err)
	require.NoError(
		t, pmetrictest.CompareMetrics(names(want), names(sink.AllMetrics()[2]), pmetrictest.IgnoreMetricsOrder()), "the controller's scrapes have the same metrics",
	)
}

var goldenFile = filepath.Join("testdata", "golden.yaml")

// testGolden scrapes without the controller, so that the state at each scrape is known.
func testGolden(t *testing.T, lib nvml.Interface) {
	t.Helper()
	state := fakenvml.Use(t, "devices 2\nmig 1 2\nxid 0 63\n")
	b := newBed(t, lib, func(c *Config) { c.Metrics.TrainbridgeGpuFieldSupported.Enabled = true })
	require.NoError(t, state.Set("devices 2\nmig 1 2\nnow 1000000000\n"))
	b.begin(t)
	b.host = "gpu-node-1"
	require.NoError(t, state.Set("devices 2\nmig 1 2\nnow 1000000000\nxid 0 63\n"))
	_, err := b.scrape(context.Background())
	require.NoError(t, err)
	require.NoError(
		t,
		state.Set("devices 2\nmig 1 2\nnow 1002000000\nvalue 0 pcie_tx_bytes 1000004000\nvalue 0 nvlink_rx_kib 3600064\nsamples 0 power_mw 1001000000=400000 "+
			"1002000000=500000\n"),
	)
	md, err := b.scrape(context.Background())
	require.NoError(t, err)
	got := pointsOf(md)
	for k, want := range (points{ // by hand, from fakenvml's documentation
		"hw.gpu.utilization id=GPU-00000000-0000-0000-0000-000000000000 task=general": 0.40,
		// of two samples
		"hw.power id=GPU-00000000-0000-0000-0000-000000000000":                                                                                      450,
		"hw.power id=GPU-00000000-0000-0000-0000-000000000001":                                                                                      310,
		"hw.energy id=GPU-00000000-0000-0000-0000-000000000001":                                                                                     1001,
		"hw.gpu.memory.usage id=GPU-00000000-0000-0000-0000-000000000000":                                                                           10 << 30,
		"hw.gpu.memory.limit id=GPU-00000000-0000-0000-0000-000000000000":                                                                           80 << 30,
		"hw.gpu.memory.utilization id=GPU-00000000-0000-0000-0000-000000000000":                                                                     0.125,
		"hw.gpu.memory.usage id=MIG-00000000-0000-0000-0001-000000000001 parent=GPU-00000000-0000-0000-0000-000000000001":                           2 << 30,
		"trainbridge.gpu.process.memory.usage id=MIG-00000000-0000-0000-0001-000000000000 parent=GPU-00000000-0000-0000-0000-000000000001 pid=2010": 512 << 20,
		"trainbridge.gpu.process.memory.usage id=GPU-00000000-0000-0000-0000-000000000000 pid=1000":                                                 8 << 30,
		"hw.gpu.io direction=transmit id=GPU-00000000-0000-0000-0000-000000000000":                                                                  1_000_004_000,
		"trainbridge.gpu.pcie.throughput direction=transmit id=GPU-00000000-0000-0000-0000-000000000000":                                            2000, // in 2 s
		"trainbridge.gpu.nvlink.throughput direction=receive id=GPU-00000000-0000-0000-0000-000000000000":                                           32 << 10,
		"hw.errors id=GPU-00000000-0000-0000-0000-000000000000 type=xid_63":                                                                         1,
		"hw.errors id=GPU-00000000-0000-0000-0000-000000000001 type=corrected":                                                                      3,
		"hw.temperature id=GPU-00000000-0000-0000-0000-000000000001 sensor_location=memory":                                                         61,
		"trainbridge.gpu.throttle.time id=GPU-00000000-0000-0000-0000-000000000000 policy=total_base_clocks":                                        12,
		"trainbridge.gpu.clock.frequency domain=sm id=GPU-00000000-0000-0000-0000-000000000001":                                                     1610e6,
	}) {
		assert.InDelta(t, want, got[k], 1e-9, k)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, golden.WriteMetricsToFile(goldenFile, md))
	}
	want, err := golden.ReadMetrics(goldenFile)
	require.NoError(t, err)
	require.NoError(t, pmetrictest.CompareMetrics(want, md, pmetrictest.IgnoreStartTimestamp(), pmetrictest.IgnoreTimestamp(),
		pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
}

// names keeps only the names of the metrics.
func names(md pmetric.Metrics) pmetric.Metrics {
	to := pmetric.NewMetrics()
	list := to.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		n := list.AppendEmpty()
		n.SetName(m.Name())
		n.SetUnit(m.Unit())
		n.SetDescription(m.Description())
	}
	return to
}

func testNVMLSamples(t *testing.T, lib nvml.Interface) {
	t.Helper()
	state := fakenvml.Use(t, "now 1000000\nsamples 0 gpu_util 100=10 200=30\n")
	b := newBed(t, lib).begin(t)
	const general = "hw.gpu.utilization id=GPU-00000000-0000-0000-0000-000000000000 task=general"
	for _, tt := range []struct {
		text string
		want float64
	}{
		{"now 1000000\nsamples 0 gpu_util 100=10 200=30\n", 0.20},
		{"now 2000000\nsamples 0 gpu_util 100=10 200=30 300=80 400=90\n", 0.85},
		{"now 3000000\nsamples 0 gpu_util 100=10 200=30 300=80 400=90\n", 0.45}, // none is new: the current reading
		{"now 4000000\nsamples 0 gpu_util\n", 0.45},
		{"now 4000000\nfunction nvmlDeviceGetSamples 3\n", 0.45}, // from the start
	} {
		require.NoError(t, state.Set(tt.text))
		if tt.text[len(tt.text)-2:] == "3\n" {
			b = newBed(t, lib).begin(t)
		}
		got, err := b.next()
		require.NoError(t, err)
		assert.InDelta(t, tt.want, got[general], 1e-12, tt.text)
	}
}

func testNVMLLost(t *testing.T, lib nvml.Interface) {
	t.Helper()
	state := fakenvml.Use(t, "devices 3\n")
	b := newBed(t, lib).begin(t)
	const first, lost, third = "GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000002"
	before, err := b.next()
	require.NoError(t, err)
	require.NoError(t, state.Set("devices 3\nxid 1 79\n"))
	require.NoError(t, state.Set("devices 3\nlost 1\n")) // the event may be lost with the first text: the fake sees the last only
	got, err := b.next()
	require.ErrorContains(t, err, "GPU 1 ("+lost+") is lost")
	assert.InDelta(t, 1, got["hw.status id="+lost+" state=failed"], 0)
	for _, uuid := range []string{first, third} {
		assert.Len(t, got.of(uuid), len(before.of(uuid))+4, "as before, and rates") // pcie and nvlink, two directions
	}
	require.NoError(t, state.Set("devices 3\nlost 1\nxid 0 31\n")) // seen first by the scrape that restarts NVML
	b.at = b.at.Add(lookAgain)
	got, err = b.next()
	require.NoError(t, err)
	assert.InDelta(t, 1, got["hw.errors id="+first+" type=xid_31"], 0)
	require.NoError(t, state.Set("devices 3\n"))
	b.at = b.at.Add(lookAgain)
	got, err = b.next()
	require.NoError(t, err)
	assert.InDelta(t, 1, got["hw.status id="+lost+" state=ok"], 0)
	assert.Len(t, got.of(lost), len(before.of(lost)))
}

func testNVMLDriver(t *testing.T, lib nvml.Interface) {
	t.Helper()
	state := fakenvml.Use(t, "init 9\n")
	b := newBed(t, lib).begin(t)
	got, err := b.next()
	require.NoError(t, err)
	assert.Empty(t, got)
	for _, away := range []string{"all 1\n", "all 999\ninit 999\n", "init 9\nall 9\n"} {
		require.NoError(t, state.Set("devices 2\n"))
		got, err = b.next()
		require.NoError(t, err)
		assert.NotEmpty(t, got, away)
		require.NoError(t, state.Set(away))
		for range 3 {
			_, err = b.next()
			require.NoError(t, err)
		}
	}
	assert.Len(t, b.warnings(), 4)
}

func testNVMLHang(t *testing.T, lib nvml.Interface) {
	t.Helper()
	state := fakenvml.Use(t, "")
	b := newBed(t, lib).begin(t)
	require.NoError(t, state.Set("hang 1\n"))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.scrape(over)
	require.ErrorIs(t, err, errNoAnswer)
	require.NoError(t, state.Set(""))
	md, err := b.scrape(context.Background())
	require.NoError(t, err)
	assert.NotEmpty(t, pointsOf(md))
}

func testNVMLErrors(t *testing.T, lib nvml.Interface) {
	t.Helper()
	state := fakenvml.Use(t, "devices 2\ndevice 1 nvmlDeviceGetTemperature 3\nfield 0 82 3\nfield * 138 3\nfield 1 202 3\ndevice 0 nvmlDeviceGetMemoryInfo_v2 3\n")
	b := newBed(t, lib).begin(t)
	_, err := b.next()
	require.NoError(t, err)
	got, err := b.next()
	require.NoError(t, err)
	const first, second = "GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001"
	assert.Contains(t, got, "hw.temperature id="+first+" sensor_location=gpu")
	assert.NotContains(t, got, "hw.temperature id="+second+" sensor_location=gpu")
	assert.NotContains(t, got, "hw.temperature id="+first+" sensor_location=memory")
	assert.Contains(t, got, "hw.temperature id="+second+" sensor_location=memory")
	assert.InDelta(t, 11<<30, got["hw.gpu.memory.usage id="+first], 0, "the first version counts what is reserved")
	assert.InDelta(t, 1_800_000<<10, got["trainbridge.gpu.nvlink.io direction=transmit id="+first], 0, "by the links' own counters")
	require.NoError(t, state.Set("devices 2\ndevice 1 nvmlDeviceGetClockInfo/1 10\n"))
	_, err = b.next()
	require.ErrorContains(t, err, "GPU 1: trainbridge.gpu.clock.frequency/sm: ")
}

// Two receivers in one collector share the library; one is started and stopped while the other scrapes.
func testNVMLTwo(t *testing.T, lib nvml.Interface) {
	t.Helper()
	fakenvml.Use(t, "devices 2\n")
	one := newBed(t, lib).begin(t)
	want, err := one.next()
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		defer close(done)
		for range 50 {
			two := newGPUs(createDefaultConfig().(*Config), receivertest.NewNopSettings(metadata.Type), lib)
			if md, err := two.scrape(context.Background()); err != nil || len(pointsOf(md)) != len(want) {
				done <- fmt.Errorf("%w, %d points", err, md.DataPointCount())
			}
			_ = two.shutdown(context.Background())
		}
	}()
	for i := 0; ; i++ {
		got, err := one.next()
		require.NoError(t, err)
		assert.Len(t, got, len(want)+8, "as at first, and rates: pcie and nvlink of two devices")
		if i%10 == 0 { // a restart of NVML while the other receiver uses the library
			_ = one.shutdown(context.Background())
			one = newBed(t, lib).begin(t)
			_, err = one.next()
			require.NoError(t, err)
		}
		select {
		case err, more := <-done:
			require.False(t, more, "%v", err)
			return
		default:
		}
	}
}

// An old driver's library lacks functions. Calling one would end the process, so the test runs in its own process.
func TestOldLibrary(t *testing.T) {
	if dir := os.Getenv("TEST_OLD_LIBRARY"); dir != "" {
		b := newBed(t, nvml.New(nvml.WithLibraryPath(filepath.Join(dir, fakenvml.Library)))).begin(t)
		for range 2 {
			got, err := b.next()
			require.NoError(t, err)
			assert.InDelta(t, 305, got["hw.power id=GPU-00000000-0000-0000-0000-000000000000"], 1e-9)
			assert.InDelta(t, 11<<30, got["hw.gpu.memory.usage id=GPU-00000000-0000-0000-0000-000000000000"], 0)
			assert.NotContains(t, got, "hw.temperature id=GPU-00000000-0000-0000-0000-000000000000 sensor_location=memory")
			assert.Contains(t, got, "trainbridge.gpu.throttle.active id=GPU-00000000-0000-0000-0000-000000000000 reason=sw_power_cap")
		}
		return
	}
	dir := fakenvml.Build(t, "nvmlDeviceGetFieldValues", "nvmlDeviceGetSamples", "nvmlDeviceGetViolationStatus", "nvmlDeviceGetRemappedRows",
		"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMigMode", "nvmlEventSetCreate")
	cmd := exec.Command(os.Args[0], "-test.run=^TestOldLibrary$", "-test.v")
	cmd.Env = append(os.Environ(), "TEST_OLD_LIBRARY="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "--- PASS: TestOldLibrary")
}

// BenchmarkScrape is a scrape of 8 GPUs. At one scrape a second, 5 ms would be 0.5 % of a core.
func BenchmarkScrape(b *testing.B) {
	lib := nvml.New(nvml.WithLibraryPath(filepath.Join(fakenvml.Build(b), fakenvml.Library)))
	fakenvml.Use(b, "devices 8\n")
	g := newGPUs(createDefaultConfig().(*Config), receivertest.NewNopSettings(metadata.Type), lib)
	require.NoError(b, g.start(context.Background(), componenttest.NewNopHost()))
	points := 0
	b.ReportAllocs()
	for b.Loop() {
		md, err := g.scrape(context.Background())
		require.NoError(b, err)
		points = md.DataPointCount()
	}
	b.ReportMetric(float64(points), "points")
	require.NoError(b, g.shutdown(context.Background()))
}

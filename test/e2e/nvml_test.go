//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
)

// fakeGPU has fakenvml's documented values of a GPU, and the XID injected by TestNVML.
var fakeGPU = map[string]float64{
	`hw_gpu_utilization_ratio{hw_id="%s",hw_gpu_task="general",hw_name="GPU 0",hw_model="NVIDIA A100-SXM4-80GB"}`: 0.40,
	`hw_gpu_utilization_ratio{hw_id="%s",hw_gpu_task="encoder"}`:                                                  0.50,
	`hw_gpu_memory_usage_bytes{hw_id="%s",hw_parent=""}`:                                                          10 << 30,
	`hw_gpu_memory_limit_bytes{hw_id="%s"}`:                                                                       80 << 30,
	`hw_gpu_memory_utilization_ratio{hw_id="%s"}`:                                                                 0.125,
	`hw_gpu_io_bytes_total{hw_id="%s",network_io_direction="receive"}`:                                            2e9,
	`hw_power_watts{hw_id="%s",hw_type="gpu"}`:                                                                    300,
	`hw_energy_joules_total{hw_id="%s",hw_type="gpu"}`:                                                            1000,
	`hw_temperature_celsius{hw_id="%s",hw_sensor_location="gpu"}`:                                                 50,
	`hw_temperature_celsius{hw_id="%s",hw_sensor_location="memory"}`:                                              60,
	`hw_errors_total{hw_id="%s",error_type="corrected"}`:                                                          2,
	`hw_errors_total{hw_id="%s",error_type="uncorrected"}`:                                                        0,
	`hw_errors_total{hw_id="%s",error_type="xid_63"}`:                                                             1,
	`hw_status{hw_id="%s",hw_state="ok",hw_vendor="NVIDIA",hw_driver_version="570.124.06"}`:                       1,
	`trainbridge_gpu_clock_frequency_hertz{hw_id="%s",trainbridge_gpu_clock_domain="sm"}`:                         1600e6,
	`trainbridge_gpu_throttle_active{hw_id="%s",trainbridge_gpu_throttle_reason="sw_power_cap"}`:                  1,
	`trainbridge_gpu_throttle_time_seconds_total{hw_id="%s",trainbridge_gpu_throttle_policy="thermal"}`:           2,
	`trainbridge_gpu_pcie_throughput_bytes_per_second{hw_id="%s",network_io_direction="transmit"}`:                0,
	`trainbridge_gpu_nvlink_io_bytes_total{hw_id="%s",network_io_direction="transmit"}`:                           1_800_000 << 10,
	`trainbridge_gpu_nvlink_throughput_bytes_per_second{hw_id="%s",network_io_direction="receive"}`:               0,
	`trainbridge_gpu_process_memory_usage_bytes{hw_id="%s",process_pid="1000"}`:                                   8 << 30,
}

// Both binaries load NVML (our fake: this machine has no GPU) with the shipped config, and Prometheus has each metric of nvml's README. Then a GPU falls off
// the bus, the driver goes and comes back, and a training log gets its MFU from the detected GPU model.
func TestNVML(t *testing.T) {
	t.Parallel()
	dir := fakenvml.Build(t)
	for name, bin := range map[string]string{"trainbridge": trainbridgeBin(t), "ocb": ocbBin(t)} {
		t.Run(name, func(t *testing.T) { testNVML(t, bin, dir) })
	}
}

func testNVML(t *testing.T, bin, dir string) {
	t.Helper()
	const gpus = "devices 2\nmodel NVIDIA A100-SXM4-80GB\n"
	state, err := fakenvml.New(filepath.Join(t.TempDir(), "state"), gpus)
	require.NoError(t, err)
	defer state.Close()
	j := startJaeger(t)
	logs := t.TempDir()
	c := newCollector(t, bin, filepath.Join(t.TempDir(), "none"), j.otlp, "receivers: {nvml: {collection_interval: 1s, initial_delay: 0s}}")
	c.env = append(c.env, "LD_LIBRARY_PATH="+dir, fakenvml.Env+"="+state.Path(), "TRAINBRIDGE_TRAIN_LOGS="+logs+"/*")
	prom := startPrometheus(t, c.scrape...)
	c.up(t)

	const gpu, other, mig = "GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001", "MIG-00000000-0000-0000-0001-000000000000"
	is := func(query string, want float64) {
		t.Helper()
		prom.awaitValues(t, map[string]float64{query: want})
	}
	is(`count(hw_power_watts)`, 2)
	require.NoError(t, state.Set(gpus+"xid 0 63\n")) // the first scrape has registered for events
	host, err := os.Hostname()
	require.NoError(t, err)
	for query, want := range fakeGPU {
		is(fmt.Sprintf(query, gpu), want)
	}
	is(fmt.Sprintf(`hw_power_watts{hw_id=%q,host_name=%q}`, gpu, host), 300)
	// README's query for errors finds the first XID of its kind: a counter that begins at 1 has no increase.
	is(
		`count(sum by (host_name, hw_name, error_type) (increase(hw_errors_total{error_type!="corrected"}[1h])) > 0 or hw_errors_total{error_type=~"xid_.*"} `+
			`unless hw_errors_total offset 1h)`,
		1,
	)
	checkPromtool(t, c.metrics)

	// The log names no device, nor does the environment.
	l := generateTrain(t, "megatron", "train_log", "--steps", "20")
	require.NoError(t, os.CopyFS(logs, os.DirFS(l.dir)))
	is(`max(ml_train_flop_utilization_ratio) > bool 0`, 1)

	require.NoError(t, state.Set(gpus+"lost 0\nvalue 1 temperature 77\n"))
	is(fmt.Sprintf(`hw_status{hw_id=%q,hw_state="failed"}`, gpu), 1)
	is(fmt.Sprintf(`hw_temperature_celsius{hw_id=%q,hw_sensor_location="gpu"}`, other), 77)
	require.NoError(t, state.Set(gpus+"init 9\nall 9\n"))
	eventually(t, func() error {
		if !strings.Contains(strings.Join(c.complaints(t), "\n")+c.output(t), "ERROR_DRIVER_NOT_LOADED") && !strings.Contains(c.output(t), "NVML does not work") {
			return errors.New("nothing is said of the driver")
		}
		return nil
	})
	require.NoError(t, state.Set(gpus+"mig 1 1\nvalue 0 temperature 33\n"))
	is(fmt.Sprintf(`hw_temperature_celsius{hw_id=%q,hw_sensor_location="gpu"}`, gpu), 33)
	is(fmt.Sprintf(`hw_status{hw_id=%q,hw_state="ok"}`, gpu), 1)
	is(fmt.Sprintf(`hw_gpu_memory_usage_bytes{hw_id=%q,hw_parent=%q,hw_name="GPU 1 MIG 0"}`, mig, other), 1<<30)
	c.stop(t)
	for _, line := range c.complaints(t) {
		assert.Regexp(t, `A GPU reported an XID error|nvml is idle until there is a driver|A GPU is lost|GPU 0 \(\S+\) is lost`, line)
	}
}

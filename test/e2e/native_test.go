//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Megatron's own metrics (core/telemetry, FORMATS 1.8) come out under the names that its log gives, in base units.
func TestNativeMetrics(t *testing.T) {
	j := startJaeger(t)
	in := freeAddr(t)
	c := newCollector(t, trainbridgeBin(t), filepath.Join(t.TempDir(), "none"), j.otlp, fmt.Sprintf("receivers: {otlp: {protocols: {http: {endpoint: %q}}}}", in))
	prom := startPrometheus(t, c.scrape...)
	c.up(t)
	now := time.Now().UnixNano()
	gauge := func(name, unit string, v float64) string {
		return fmt.Sprintf(`{"name": "megatron.training.%s", "unit": %q, "gauge": {"dataPoints": [{"timeUnixNano": "%d", "asDouble": %v}]}}`, name, unit, now, v)
	}
	body := fmt.Sprintf(`{"resourceMetrics": [{
  "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "megatron"}}, {"key": "service.instance.id", "value": {"stringValue": "run-9"}}]},
  "scopeMetrics": [{"scope": {"name": "megatron.core.telemetry"}, "metrics": [%s, %s, %s,
    {"name": "megatron.training.step_duration_ms", "unit": "ms", "histogram": {"aggregationTemporality": 2, "dataPoints": [
      {"startTimeUnixNano": "%d", "timeUnixNano": "%d", "count": "3", "sum": 4500, "explicitBounds": [1000, 2000], "bucketCounts": ["0", "2", "1"]}]}}
  ]}]}]}`, gauge("loss", "1", 2.5), gauge("throughput_tflops", "TFLOP/s", 412.5), gauge("tokens_per_sec", "tokens/s", 8000), now-int64(time.Minute), now)
	resp, err := http.Post("http://"+in+"/v1/metrics", "application/json", bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	for name, want := range map[string]float64{
		"ml_train_loss_ratio": 2.5, "ml_train_device_flop_throughput_reported_per_second": 412.5e12, "ml_train_token_throughput_per_second": 8000,
		"ml_train_step_duration_seconds_sum": 4.5, `ml_train_step_duration_seconds_bucket{le="2.0"}`: 2,
	} {
		eventually(t, time.Minute, func() error {
			got, err := prom.query(name)
			if err != nil {
				return err
			}
			if len(got) != 1 || !same(got[0].Value, want) || got[0].Metric["job"] != "megatron" {
				return fmt.Errorf("%s is %v, want %v", name, got, want)
			}
			return nil
		})
	}
	checkPromtool(t, c.metrics)
	c.stop(t)
	c.assertQuiet(t)
}

//go:build e2e

package e2e

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Both binaries run the shipped config, on the ports and with the defaults that it has: validate passes, a log becomes traces, and the
// collector finds nothing to complain about.
func TestShippedConfig(t *testing.T) {
	for _, tt := range []struct {
		name string
		bin  func(testing.TB) string
		args func(testing.TB) []string
	}{
		{"trainbridge", trainbridgeBin, func(testing.TB) []string { return nil }}, // the config that is embedded
		{"ocb", ocbBin, func(t testing.TB) []string { return []string{"--config", shippedConfig(t)} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bin, args, logs := tt.bin(t), tt.args(t), t.TempDir()
			for _, addr := range []string{"127.0.0.1:4317", "127.0.0.1:4318", "127.0.0.1:8888", "127.0.0.1:8889", "127.0.0.1:13133"} {
				l, err := net.Listen("tcp", addr)
				require.NoErrorf(t, err, "this test needs the default ports; stop what listens there (another collector?)")
				require.NoError(t, l.Close())
			}
			j := startJaeger(t)
			tr := generate(t, logs, "--workers", "2", "--batches", "5", "--seed", "7")
			env := []string{"TRAINBRIDGE_TQ_LOGS=" + globOf(logs), "TRAINBRIDGE_OTLP_ENDPOINT=" + j.otlp, "TRAINBRIDGE_STATE_DIR=" + t.TempDir()}
			run(t, env, bin, append([]string{"validate"}, args...)...)

			c := &collector{process: start(t, tt.name, bin, env, args...)}
			c.ready(t, "http://127.0.0.1:13133")
			tr.await(t, time.Minute, func() (ptrace.Traces, error) { return j.find("") })
			eventually(t, time.Minute, func() error {
				page, err := get("http://127.0.0.1:8889/metrics", "")
				if err == nil && !strings.Contains(string(page), "tq_stage_duration_seconds_bucket{") {
					err = errors.New("no tq.stage.duration on the page for Prometheus")
				}
				return err
			})
			c.stop(t)
			c.assertQuiet(t)
		})
	}
}

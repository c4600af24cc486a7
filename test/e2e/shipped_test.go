//go:build e2e

package e2e

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Both binaries run the shipped config, on the ports and with the defaults that it has: validate passes, a log becomes traces, and the
// collector finds nothing to complain about.
func TestShippedConfig(t *testing.T) {
	t.Parallel()
	takeShippedPorts(t)
	for _, tt := range []struct {
		name string
		bin  func(testing.TB) string
		args []string
	}{
		{"trainbridge", trainbridgeBin, nil}, // the config that is embedded
		{"ocb", ocbBin, []string{"--config", shippedConfig(t), "--config", verdictsConfig(t)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bin, args, logs := tt.bin(t), tt.args, t.TempDir()
			requireFree(t, collectorPorts...)
			j := startJaeger(t)
			tr := generate(t, logs, "--workers", "2", "--batches", "5", "--seed", "7")
			mega, perf := generateTrain(t, "megatron", "train_log", "--steps", "20"), generateTrain(t, "flagscale", "flagscale", "--steps", "20")
			zmq := generateZMQ(t, filepath.Join(t.TempDir(), "zmq_performance.log"), "zeromq", "--passes", "2", "--layers", "2", "--seed", "7")
			nccl := generateNCCL(t, "nccl", "--ranks", "4", "--steps", "10", "--seed", "7")
			anomalies := filepath.Join(t.TempDir(), "anomalies.log")
			env := []string{
				"TRAINBRIDGE_NCCL_LOGS=" + nccl.dir + "/*", "TRAINBRIDGE_ZMQ_LOGS=" + zmq.path, "TRAINBRIDGE_TRAIN_LOGS=" + mega.dir + "/*",
				"TRAINBRIDGE_FLAGSCALE_LOGS=" + perf.dir + "/*", "TRAINBRIDGE_DEVICE=" + mega.run.Device, "TRAINBRIDGE_TQ_LOGS=" + globOf(logs),
				"TRAINBRIDGE_OTLP_ENDPOINT=" + j.otlp, "TRAINBRIDGE_STATE_DIR=" + t.TempDir(), "TRAINBRIDGE_VERDICTS=" + anomalies,
			}
			run(t, env, bin, append([]string{"validate"}, args...)...)

			c := &collector{process: start(t, tt.name, bin, env, args...)}
			c.ready(t, "http://127.0.0.1:13133")
			tr.await(t, func() (ptrace.Traces, error) { return j.find("verl") })
			zmq.await(t, j)
			nccl.await(t, j)
			for service, l := range map[string]*trainLog{"train": mega, "flagscale": perf} {
				eventually(t, func() error {
					td, err := j.find(service)
					if err != nil {
						return err
					}
					a := l.check(td)
					if err := a.err(); err != nil || service != "train" {
						return err
					}
					checkMFU(t, l, a) // by the model in Megatron's log and the device in the environment
					return nil
				})
			}
			eventually(t, func() error {
				page, err := get("http://127.0.0.1:8889/metrics", "")
				if err == nil && !strings.Contains(string(page), "tq_stage_duration_seconds_bucket{") {
					err = errors.New("no tq.stage.duration on the page for Prometheus")
				}
				return err
			})
			assert.Equal(t, 2, c.inotify(t), "instances of inotify, of which a user has 128")
			c.stop(t)
			c.assertQuiet(t)
			_, n, err := recordsIn(anomalies)
			require.NoError(t, err)
			assert.Positive(t, n, "verdicts in the file")
		})
	}
}

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Both binaries run the shipped config, with its ports and defaults: validate passes, a log becomes traces, and the collector logs no complaint.
func TestShippedConfig(t *testing.T) {
	t.Parallel()
	takeShippedPorts(t)
	for _, tt := range []struct {
		name string
		bin  func(testing.TB) string
		args []string
	}{
		{"trainbridge", trainbridgeBin, nil}, // the embedded config
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

// freePorts has a collector with the shipped config choose free ports.
var freePorts = []string{
	"TRAINBRIDGE_OTLP_PORT=0", "TRAINBRIDGE_OTLP_HTTP_PORT=0", "TRAINBRIDGE_METRICS_PORT=0", "TRAINBRIDGE_TELEMETRY_PORT=0", "TRAINBRIDGE_HEALTH_PORT=0",
}

// portsOf are the ports reported by a collector with freePorts, by the name in the variable.
func portsOf(tb testing.TB, p *process) map[string]string {
	tb.Helper()
	ports := map[string]string{}
	eventually(tb, func() error {
		for _, m := range regexp.MustCompile(`TRAINBRIDGE_(\w+)_PORT=(\d+)`).FindAllStringSubmatch(p.output(tb), -1) {
			ports[m[1]] = m[2]
		}
		if len(ports) != len(freePorts) {
			return fmt.Errorf("ports %v", ports)
		}
		return nil
	})
	return ports
}

// Jobs on a shared host have a collector each, with the built-in configuration: one on its own ports, the others on free ports, and all answer.
func TestCollectorsOfOneHost(t *testing.T) {
	t.Parallel()
	takeShippedPorts(t)
	requireFree(t, collectorPorts...)
	j := startJaeger(t)
	logs, ports := make([]*trainLog, 3), make([]map[string]string, 3)
	service := func(i int) string { return fmt.Sprintf("job%d", i) }
	for i := range logs {
		logs[i] = generateTrain(t, "megatron", "train_log", "--steps", "20")
		env := []string{
			"TRAINBRIDGE_LOGS=" + logs[i].dir + "/*", "TRAINBRIDGE_SERVICE=" + service(i), "TRAINBRIDGE_RUN_ID=" + service(i),
			"TRAINBRIDGE_OTLP_ENDPOINT=" + j.otlp, "TRAINBRIDGE_STATE_DIR=" + t.TempDir(),
		}
		ports[i] = map[string]string{"OTLP": "4317", "OTLP_HTTP": "4318", "METRICS": "8889", "TELEMETRY": "8888", "HEALTH": "13133"}
		if i > 0 {
			env = append(env, freePorts...)
		}
		p := start(t, service(i), trainbridgeBin(t), env)
		if i > 0 {
			ports[i] = portsOf(t, p)
		}
		p.ready(t, "http://127.0.0.1:"+ports[i]["HEALTH"])
		t.Cleanup(func() { p.stop(t) })
		require.NoError(t, send(t, "127.0.0.1:"+ports[i]["OTLP"], pcommon.TraceID{byte(i + 1)}))
		_, err := get("http://127.0.0.1:"+ports[i]["OTLP_HTTP"], "")
		require.ErrorContains(t, err, "HTTP 404")
	}
	for i, l := range logs {
		eventually(t, func() error {
			td, err := j.find(service(i))
			if err != nil {
				return err
			}
			return l.check(td).err()
		})
		for port, text := range map[string]string{"METRICS": `ml_train_steps_total{`, "TELEMETRY": "otelcol_process_uptime"} {
			eventually(t, func() error {
				page, err := get("http://127.0.0.1:"+ports[i][port]+"/metrics", "")
				if err == nil && !strings.Contains(string(page), text) {
					err = fmt.Errorf("no %s on the page of %s", text, port)
				}
				return err
			})
		}
	}
	eventually(t, func() error { return holds(j.find("harness"))(len(logs)) })
}

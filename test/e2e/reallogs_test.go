//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Logs from third parties, if present beside the checkout: every file becomes spans, or metrics if it has no spans, and every line is accounted for.
func TestRealLogs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(repoRoot, "../shared/logs/verl_tq")
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Logf("no logs in %s: nothing to check", dir)
		return
	}
	bin, j := trainbridgeBin(t), startJaeger(t)
	for i, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(file)
			require.NoError(t, err)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			service := fmt.Sprintf("real-%d", i)
			c := newCollector(t, bin, path, j.otlp, fmt.Sprintf("receivers: {tq_trace: {service_name: %q, pending_timeout: 2s}}", service))
			c.up(t)
			sum := accounts(t, c, int64(bytes.Count(data, []byte("\n"))))
			assert.Zero(t, sum["refused"])
			assert.Zero(t, sum["rejected"])
			if strings.Contains(name, "upstream") { // only totals, which become metrics
				awaitOutput(t, j, service, c, "tq_storage_operation")
				own, err := ownSpans(j, service)
				require.NoError(t, err)
				assert.Zero(t, own)
			} else {
				awaitOutput(t, j, service, c, "")
			}
			c.stop(t)
		})
	}
}

// The same for training logs: each folder is one job. Only the samples' deliberately broken lines are rejected.
func TestRealTrainingLogs(t *testing.T) {
	t.Parallel()
	broken := map[string]int64{"jsonl_seed004": 1} // the half-written last line
	receivers := map[string]string{"flagscale_perf_monitor": "flagscale", "megatron_flagscale_stdout": "flagscale"}
	bin, j := trainbridgeBin(t), startJaeger(t)
	for _, name := range []string{
		"flagscale_perf_monitor", "megatron_flagscale_stdout", "jsonl_seed004", "hf_trainer", "deepspeed", "torchtitan", "nemo", "verl_console",
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.Abs(filepath.Join(repoRoot, "../shared/logs", name))
			require.NoError(t, err)
			if _, err := os.Stat(dir); err != nil {
				t.Logf("no logs in %s: nothing to check", dir)
				return
			}
			receiver := receivers[name]
			if receiver == "" {
				receiver = "train_log"
			}
			c := newCollector(t, bin, filepath.Join(t.TempDir(), "none"), j.otlp, fmt.Sprintf("receivers: {%s: {include: [%q], exclude: [%q, %q], service_name: "+
				"%q, pending_timeout: 2s}}",
				receiver, dir+"/**/*", dir+"/SOURCE.txt", dir+"/flops_golden.json", name))
			lines := int64(0)
			require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
				switch filepath.Ext(path) {
				case ".json": // a document
					if !strings.HasSuffix(path, "flops_golden.json") {
						lines++
					}
				case ".log", ".jsonl":
					text, err := os.ReadFile(path)
					lines += int64(bytes.Count(text, []byte("\n")))
					return err
				}
				return err
			}))
			c.up(t)
			var sum map[string]int64
			eventually(t, func() error { // a last line without a newline counts as a line after pending_timeout
				sum = accountsOf(t, c, receiver, lines)
				if sum["rejected"] != broken[name] {
					return fmt.Errorf("%v, want %d rejected", sum, broken[name])
				}
				return nil
			})
			assert.Zero(t, sum["refused"])
			awaitOutput(t, j, name, c, "")
			c.stop(t)
		})
	}
}

// awaitOutput waits until a service has spans in Jaeger, which finds accepted spans after a delay, or the page has the metric, if named.
func awaitOutput(t *testing.T, j *jaeger, service string, c *collector, metric string) {
	t.Helper()
	eventually(t, func() error {
		own, err := ownSpans(j, service)
		if err != nil || own > 0 {
			return err
		}
		page, err := get(c.metrics, "")
		if err == nil && (metric == "" || !bytes.Contains(page, []byte(metric))) {
			err = fmt.Errorf("no spans of %s, and no %q", service, metric)
		}
		return err
	})
}

// ownSpans counts the spans of a service. Logs of one run have the same trace ids, so a trace may have spans of several services.
func ownSpans(j *jaeger, service string) (n int, err error) {
	td, err := j.find(service)
	if err != nil {
		return 0, err
	}
	for _, rs := range td.ResourceSpans().All() {
		if v, _ := rs.Resource().Attributes().Get("service.name"); v.AsString() != service {
			continue
		}
		for _, ss := range rs.ScopeSpans().All() {
			n += ss.Spans().Len()
		}
	}
	return n, nil
}

// Logs of ZeroMQ clients likewise: each row is a call.
func TestRealZMQLogs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repoRoot, "../shared/logs/zmq_tsqp/*.log"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Log("no logs of ZeroMQ clients: nothing to check")
		return
	}
	rows := regexp.MustCompile(`(?m)^\d+ +[A-Z]\w+ +[\d.]+ `)
	bin, j := trainbridgeBin(t), startJaeger(t)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(file)
			require.NoError(t, err)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			c := newCollector(
				t, bin, filepath.Join(t.TempDir(), "none"), j.otlp,
				fmt.Sprintf("receivers: {zmq_rpc: {include: [%q], service_name: %q, run_id: %q, pending_timeout: 2s}}", path, name, name),
			)
			c.up(t)
			sum := accountsOf(t, c, "zmq_rpc", int64(bytes.Count(data, []byte("\n"))))
			assert.Zero(t, sum["refused"]+sum["rejected"])
			want := len(rows.FindAll(data, -1))
			eventually(t, func() error {
				td, err := j.find(name)
				if err != nil {
					return err
				}
				calls := 0
				for _, trace := range read(td).traces {
					for _, n := range trace {
						if n.Kind() == ptrace.SpanKindClient {
							calls++
						}
					}
				}
				if calls != want {
					return fmt.Errorf("%d calls, want %d", calls, want)
				}
				return nil
			})
			c.stop(t)
		})
	}
}

// The same for NCCL and its relatives: every file becomes spans or metrics. Only the samples' deliberately broken lines are rejected.
func TestRealNCCLLogs(t *testing.T) {
	t.Parallel()
	broken := map[string]int64{
		"GENERATED_v4.4_orphan_lines_rotated_away_marker.log": 3, "README_proxy_flat_step_and_op_v4.4.jsonl": 2, // records without their marker
		"readme_allreduce_2gpu_v2.30.7.json.txt": 2, // a curly quote and "truncated for brevity"
	}
	var files []string
	for _, dir := range []string{"vccl_flow", "nccl_inspector", "nccl_example_profiler", "pytorch_flight_recorder"} {
		list, err := filepath.Glob(filepath.Join(repoRoot, "../shared/logs", dir, "*_*"))
		require.NoError(t, err)
		files = append(files, list...)
	}
	if len(files) == 0 {
		t.Log("no logs of NCCL: nothing to check")
		return
	}
	bin, j := trainbridgeBin(t), startJaeger(t)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(file)
			require.NoError(t, err)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			lines := int64(bytes.Count(data, []byte("\n")))
			if strings.Contains(name, "nccl_trace_rank_") {
				lines = 1 // a document
			}
			c := newCollector(t, bin, filepath.Join(t.TempDir(), "none"), j.otlp,
				fmt.Sprintf("receivers: {nccl: {include: [%q], service_name: %q, run_id: %q, pending_timeout: 1s, hang_timeout: 1s}}", path, name, name))
			c.up(t)
			sum := accountsOf(t, c, "nccl", lines)
			assert.Zero(t, sum["refused"])
			assert.Equal(t, broken[name], sum["rejected"], "%v", sum)
			if broken[name] != lines && sum["ignored"] != lines { // all lines of Inspector's metrics are ignored: they are for the prometheus receiver
				awaitOutput(t, j, name, c, "nccl_device_bandwidth")
			}
			c.stop(t)
		})
	}
}

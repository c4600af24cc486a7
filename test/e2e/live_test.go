//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// A log written and rotated while the collector tails it arrives whole, and Prometheus shows rates.
func TestLive(t *testing.T) {
	t.Parallel()
	j, logs := startJaeger(t), t.TempDir()
	c := newCollector(t, trainbridgeBin(t), globOf(logs), j.otlp, `
receivers: {tq_trace: {run_id: live, service_name: verl}}
connectors: {train_metrics: {metrics_flush_interval: 1s}}
`)
	prom := startPrometheus(t, c.scrape...)
	c.up(t)
	gen := start(t, "gen", genBin(t), nil, "tq", "--out", logs, "--seed", "5", "--workers", "2", "--batches", "60", "--concurrency", "2",
		"--rate", "900", "--rotate-every", "400")
	code, _ := gen.end(t)
	require.Zero(t, code, "exit code of gen")
	tr := readTruth(t, filepath.Join(logs, "truth.json"))
	a := tr.await(t, func() (ptrace.Traces, error) { return j.find("verl") })
	assert.Zero(t, a.copies, "spans delivered twice without need")

	want := tr.durations()
	eventually(t, func() error {
		p95, err := prom.query("histogram_quantile(0.95, sum by (tq_function, tq_stage) (rate(tq_stage_duration_seconds[5m])))")
		if err == nil && len(p95) != len(want) {
			err = fmt.Errorf("p95 of %d functions and stages, want %d", len(p95), len(want))
		}
		return err
	})
	checkAccounts(t, c, tr)
	c.stop(t)
	c.assertQuiet(t)
}

// Jaeger and Tempo accept zstd, at a third of gzip's CPU. A server without zstd would answer UNIMPLEMENTED, and no span would arrive.
func TestZstdAcrossTheNetwork(t *testing.T) {
	t.Parallel()
	j, s, id := startJaeger(t), startTempo(t), uuid.New()
	logs := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(logs, "worker-1.err"), []byte(waterfall(id.String(), time.Now())), 0o600))
	c := newCollector(t, trainbridgeBin(t), globOf(logs), j.otlp, fmt.Sprintf(toTempo, s.otlp),
		"exporters: {otlp_acked: {compression: zstd}, otlp_acked/tempo: {compression: zstd}}")
	c.up(t)
	for name, trace := range map[string]func(pcommon.TraceID) (ptrace.Traces, error){"Jaeger": j.trace, "Tempo": s.trace} {
		eventually(t, func() error {
			td, err := trace(pcommon.TraceID(id))
			if err == nil && td.SpanCount() == 0 {
				err = errors.New("no span in " + name)
			}
			return err
		})
	}
	c.stop(t)
}

// The time from the last line of a function in its log to its spans in Jaeger's answer, with the shipped config. Printed, not asserted.
func BenchmarkLineToJaeger(b *testing.B) {
	bin, j, logs := trainbridgeBin(b), startJaeger(b), b.TempDir()
	c := newCollector(b, bin, globOf(logs), j.otlp)
	f, err := os.Create(filepath.Join(logs, "worker-1.err"))
	require.NoError(b, err)
	defer f.Close()
	c.up(b)
	var took []time.Duration
	for b.Loop() {
		id := uuid.New()
		_, err := f.WriteString(waterfall(id.String(), time.Now()))
		require.NoError(b, err)
		written := time.Now()
		for {
			td, err := j.trace(pcommon.TraceID(id))
			require.NoError(b, err)
			if td.SpanCount() > 0 {
				break
			}
			require.Less(b, time.Since(written), time.Minute, "no span in Jaeger")
			time.Sleep(time.Millisecond)
		}
		took = append(took, time.Since(written))
	}
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))]) / 1e6 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.95), "p95-ms")
	b.ReportMetric(0, "ns/op")
}

// waterfall is one short function in verl's format, ended at a wall time.
func waterfall(id string, end time.Time) string {
	var out strings.Builder
	for _, l := range []struct {
		before time.Duration
		text   string
	}{
		{9000 * time.Microsecond, "pid=4711 | stage=FUNCTION_START"},
		{8900 * time.Microsecond, "stage=GET_START | batch_size=32"},
		{8000 * time.Microsecond, "stage=GET_END | duration=0.000900s"},
		{7900 * time.Microsecond, "stage=COMPUTE_START"},
		{1000 * time.Microsecond, "stage=COMPUTE_END | duration=0.006900s"},
		{900 * time.Microsecond, "stage=PUT_START"},
		{0, "stage=PUT_END | duration=0.000900s"},
		{0, "stage=FUNCTION_END | total_duration=0.009000s | get_ratio=10.00% | compute_ratio=76.67% | put_ratio=10.00%"},
	} {
		at := end.Add(-l.before)
		perf := at.UnixMicro() - 1_700_000_000_000_000
		fmt.Fprintf(&out, "INFO:%s,%03d:[TQ-TRACE] trace_id=%s | func=rollout | %s | timestamp=%d.%06d\n",
			at.Local().Format("2006-01-02 15:04:05"), at.Nanosecond()/1e6, id, l.text, perf/1e6, perf%1e6)
	}
	return out.String()
}

// Logs rotated before any reader started: a function may begin in one file and end in the next.
func TestRotatedBefore(t *testing.T) {
	t.Parallel()
	j, logs := startJaeger(t), t.TempDir()
	tr := generate(t, logs, "--seed", "6", "--workers", "2", "--batches", "20", "--concurrency", "2", "--na", "0.2", "--rotate-every", "100")
	c := newCollector(t, trainbridgeBin(t), globOf(logs), j.otlp, `receivers: {tq_trace: {run_id: rotated, service_name: verl}}`)
	c.up(t)
	tr.await(t, func() (ptrace.Traces, error) { return j.find("verl") })
	checkAccounts(t, c, tr)
}

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxSeries bounds the series stored by Prometheus of a target with the shipped config, for any names in the logs.
const maxSeries = 10_000

// renamed are the records of the torture campaign, each with names of its own.
var renamed = []struct {
	format  string
	records int
	rename  func(text string, n int) string
}{
	{"tq_trace", 7000, func(text string, n int) string {
		return strings.ReplaceAll(text, "func=rollout", fmt.Sprint("func=rollout_", n))
	}},
	{"flagscale", 5000, func(text string, n int) string {
		return strings.Replace(text, "[default7]", fmt.Sprintf("[default%d]", n), 1)
	}},
	{"train_log", 5000, func(text string, n int) string {
		return strings.TrimSuffix(text, "}") + fmt.Sprintf(
			`, "rank": %d, "lr": 0.1, "grad_norm": 1.5, "tokens_per_sec": 7, "power_w": 300, "timing_s/part_%d": 0.01, "layer_%d/norm": 2}`, n, n, n,
		)
	}},
	{"zmq_rpc", 5000, func(text string, n int) string { return strings.Replace(text, "Matmul", fmt.Sprint("Matmul", n), 1) }},
	{"nccl", 5000, func(text string, n int) string {
		text = strings.Replace(text, "0xc80a4db2fce237f6", fmt.Sprintf("0xc80a4db2%08x", n/12), 1) // a rank is rated after ten
		return strings.Replace(text, "DP Group 0", fmt.Sprint("DP Group ", n/12), 1)
	}},
}

// writeRenamed writes logs of all receivers for several runs, and returns the variables that name the logs and the number of lines for each receiver.
func writeRenamed(t *testing.T, runs int) (env []string, lines map[string]int64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	logs := t.TempDir()
	lines = make(map[string]int64)
	for _, x := range renamed {
		for _, f := range logFormats {
			if f.receiver != x.format {
				continue
			}
			env = append(env, f.env+"="+logs+"/"+f.receiver+"/*/*")
			for run := range runs {
				dir := filepath.Join(logs, f.receiver, strconv.Itoa(run))
				require.NoError(t, os.MkdirAll(dir, 0o750))
				text := [2]strings.Builder{}
				for i := range text {
					text[i].WriteString(f.head)
				}
				for n := range x.records {
					r := f.make(rng, 0, n)
					for i, all := range r.lines {
						for _, line := range all {
							text[i].WriteString(x.rename(line, run*x.records+n) + "\n")
							lines[f.receiver]++
						}
					}
				}
				for i := range text {
					require.NoError(t, os.WriteFile(filepath.Join(dir, f.names[i]), []byte(text[i].String()), 0o600))
				}
			}
		}
	}
	return env, lines
}

// Logs of all receivers, in several directories and so of several runs, with a new name in each record: the series stay few.
func TestSeriesOfTheWholeTarget(t *testing.T) {
	t.Parallel()
	env, lines := writeRenamed(t, 3)
	c := newCollector(t, trainbridgeBin(t), "", startSink(t).addr, "connectors: {train_metrics: {metrics_flush_interval: 1s}}")
	c.env = append(c.env, env...)
	c.up(t)
	for receiver, n := range lines {
		sum := accountsOf(t, c, receiver, n)
		require.Zero(t, sum["refused"], "%s: %v", receiver, sum)
	}
	// The sums over the series are exact: values without room are summed in a series of their own.
	want := map[string]float64{
		"tq_function_duration_seconds_count": 21_000, "ml_train_step_duration_seconds_count": 30_000,
		"rpc_client_call_duration_seconds_count": 45_003, "nccl_collective_duration_seconds_count": 15_000,
	}
	eventually(t, func() error {
		list, err := metricsOf(c.metrics)
		if err != nil {
			return err
		}
		series, sums, overflows := make(map[string]int), make(map[string]float64), make(map[string]bool)
		total := 0
		for _, m := range list {
			if !strings.HasSuffix(m.name, "_bucket") && !strings.HasSuffix(m.name, "_sum") { // the text has three lines of a native histogram
				total++
			}
			series[m.name]++
			if want[m.name] > 0 {
				sums[m.name] += m.value
				overflows[m.name] = overflows[m.name] || m.labels["otel_metric_overflow"] == "true"
			}
		}
		if total > maxSeries {
			return fatal(fmt.Errorf("%d series: %v", total, series))
		}
		if !maps.Equal(sums, want) {
			return fmt.Errorf("%d series: %v, want %v", total, sums, want)
		}
		t.Logf("%d series, overflows %v", total, overflows)
		for name := range want {
			assert.Truef(t, overflows[name], "there is room for all of %s", name)
		}
		return nil
	})
	c.stop(t)
}

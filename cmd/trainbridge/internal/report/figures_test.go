package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quantile is numpy.percentile's.
func percentile(of []float64, q float64) float64 {
	of = slices.Sorted(slices.Values(of))
	at := q * float64(len(of)-1)
	low := int(at)
	if low+1 == len(of) {
		return of[low]
	}
	return of[low] + (at-float64(low))*(of[low+1]-of[low])
}

func sum(of []float64) (s float64) {
	for _, x := range of {
		s += x
	}
	return s
}

func mean(of []float64) float64 { return sum(of) / float64(len(of)) }

// value is a named value of a report, "" if absent.
func value(text, name string) string {
	m := regexp.MustCompile(`(?m)^ *` + regexp.QuoteMeta(name) + `: +(.*)$`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

// row are the cells of a table's row.
func row(t *testing.T, text, first string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(first) + ` +\S.*$`).FindString(text)
	require.NotEmpty(t, m, "%s in %s", first, text)
	return strings.Fields(m)[len(strings.Fields(first)):]
}

// The figures of TSQP's analyze_zmq_performance.py, which begin anew where the ids do.
func TestFiguresOfRPCs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zmq.log")
	generate(t, "zmq", "--out", file, "--passes", "4", "--warmup", "2", "--truth", "none", "--start", testStart)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	var all, block [][]string
	for line := range strings.Lines(string(body)) {
		if f := strings.Fields(line); len(f) == 10 && f[0][0] >= '0' && f[0][0] <= '9' {
			if f[0] == "1" {
				block = nil
			}
			all, block = append(all, f), append(block, f)
		}
	}
	require.Greater(t, len(all), len(block))
	text := textOf(t, file)
	parts := strings.Split(text, "OVERALL STATISTICS")
	require.Len(t, parts, 3)
	assert.Contains(t, parts[0], fmt.Sprintf("without the warm-up (%d calls before the numbers began anew)", len(all)-len(block)))
	for i, rows := range [][][]string{block, all} {
		part := parts[i+1]
		column := func(n int, method string) (out []float64) {
			for _, r := range rows {
				if method == "" || r[1] == method {
					x, err := strconv.ParseFloat(r[n], 64)
					require.NoError(t, err)
					out = append(out, x)
				}
			}
			return out
		}
		total := sum(column(6, ""))
		assert.Equal(t, strconv.Itoa(len(rows)), value(part, "Total RPC Calls"))
		assert.Equal(t, fmt.Sprintf("%.2f ms", total), value(part, "Total Time"))
		assert.Equal(t, fmt.Sprintf("%.3f ms", total/float64(len(rows))), value(part, "Average Time/Call"))
		for n, name := range map[int]string{2: "Serialize", 3: "Send", 4: "Receive", 5: "Deserialize"} {
			s := sum(column(n, ""))
			assert.Equal(t, strings.Fields(fmt.Sprintf("%.3f ms (%5.1f%%)", s/float64(len(rows)), 100*s/total)), strings.Fields(value(part, name)), name)
		}
		moved := sum(column(7, "")) + sum(column(8, ""))
		assert.InEpsilon(t, moved/1024/(total/1e3), number(t, value(part, "Throughput")), 1e-4)
		for _, method := range []string{"Matmul", "BatchLinear", "Embedding", "LMHead"} {
			cells, took := row(t, part, method), column(6, method)
			want := []float64{float64(len(took)), mean(took), sum(took), mean(column(7, method)), mean(column(8, method)), 100 * sum(took) / total}
			require.Len(t, cells, len(want))
			for i, x := range want {
				assert.InDelta(t, x, number(t, cells[i]), []float64{0, 0.00051, 0.0051, 0.0101, 0.0101, 0.051}[i], "%s, column %d", method, i)
			}
		}
		slowest := slices.MaxFunc(rows, func(a, b []string) int { return int(1e3 * (number(t, a[6]) - number(t, b[6]))) })
		_, top, _ := strings.Cut(part, "Slowest Calls\n")
		assert.Equal(t, []string{slowest[1], slowest[0], slowest[6], slowest[2], slowest[3], slowest[4], slowest[5]}, strings.Fields(strings.Split(top, "\n")[1]))
	}
	assert.Contains(t, text, "analyze_zmq_performance.py stops at the second rule")
}

// The advice speaks of a transport only where all logs name theirs: an export of CSV has no title.
func TestAdviceOfTransports(t *testing.T) {
	testdata := "../../../../receivers/zmqrpcreceiver/testdata/"
	assert.Contains(t, textOf(t, testdata+"v1.log"), "it is not TCP")
	unknown := textOf(t, testdata+"export.csv")
	assert.Contains(t, unknown, "look at the server first")
	assert.NotContains(t, unknown, "TCP")
}

// number is the first number of a text.
func number(t *testing.T, text string) float64 {
	t.Helper()
	fields := strings.Fields(text)
	require.NotEmpty(t, fields)
	x, err := strconv.ParseFloat(strings.TrimRight(strings.ReplaceAll(fields[0], ",", ""), "s%"), 64)
	require.NoError(t, err)
	return x
}

// The figures of verl's analyze_tq_logs.py, with each call counted.
func TestFiguresOfTransferQueue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "driver.log")
	generate(t, "tq", "--out", file, "--workers", "3", "--batches", "20", "--na", "0.3", "--truth", "none", "--start", testStart)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	field := func(line, name string) string {
		m := regexp.MustCompile(name + `=([^ \x1b\n]+)`).FindStringSubmatch(line)
		if m == nil {
			return ""
		}
		return m[1]
	}
	took := map[string][]float64{} // of each function and stage
	for line := range strings.Lines(string(body)) {
		if !strings.Contains(line, "[TQ-TRACE]") {
			continue
		}
		function, stage := field(line, "func"), field(line, "stage")
		name := "duration"
		if stage == "FUNCTION_END" {
			name = "total_duration"
		}
		if text := field(line, name); text != "" {
			x, err := strconv.ParseFloat(strings.TrimSuffix(text, "s"), 64)
			require.NoError(t, err, line)
			took[function+" "+stage] = append(took[function+" "+stage], x)
		}
	}
	text := textOf(t, file)
	total, queue := 0.0, 0.0
	for _, function := range []string{"generate_sequences", "compute_log_prob", "update_actor"} {
		_, part, ok := strings.Cut(text, "Function: "+function+"\n")
		require.True(t, ok, text)
		all, get, compute, put := took[function+" FUNCTION_END"], took[function+" GET_END"], took[function+" COMPUTE_END"], took[function+" PUT_END"]
		require.Len(t, all, 60)
		n := float64(len(all))
		total, queue = total+sum(all), queue+sum(get)+sum(put)
		assert.Equal(t, "60", value(part, "Calls"))
		assert.Equal(t, fmt.Sprintf("%.6fs", mean(all)), value(part, "Mean total time"))
		for name, of := range map[string][]float64{"Mean GET time": get, "Mean COMPUTE time": compute, "Mean PUT time": put} {
			assert.Equal(t, fmt.Sprintf("%.6fs (%.2f%%)", sum(of)/n, 100*sum(of)/sum(all)), value(part, name), name)
		}
		assert.Equal(t, fmt.Sprintf("%.2f%%", 100*(sum(get)+sum(put))/sum(all)), value(part, "TQ overhead"))
	}
	assert.Equal(t, fmt.Sprintf("%.6fs", total), value(text, "Total execution time"))
	assert.Equal(t, fmt.Sprintf("%.6fs", queue), value(text, "Total TQ time"))
	assert.Equal(t, fmt.Sprintf("%.2f%%", 100*queue/total), value(text, "TQ overhead of all"))
}

// Average, P95 and P99 of bandwidth and latency, per operation, of the records as seen by a script that reads line by line.
func TestFiguresOfCollectives(t *testing.T) {
	dir := t.TempDir()
	generate(t, "nccl", "--out", dir, "--format", "vccl_json", "--ranks", "4", "--nodes", "2", "--steps", "20", "--truth", "none", "--start", testStart)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	bandwidth, latency := map[string][]float64{}, map[string][]float64{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(body)) {
			var r struct {
				Operation string  `json:"operation"`
				Gbps      float64 `json:"bandwidth_gbps"`
				Us        float64 `json:"duration_us"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			op := strings.ToLower(r.Operation)
			bandwidth[op], latency[op] = append(bandwidth[op], r.Gbps/8), append(latency[op], r.Us)
		}
	}
	require.NotEmpty(t, bandwidth)
	text := textOf(t, dir)
	for op, b := range bandwidth {
		name := regexp.MustCompile(`(?mi)^  (` + op + `) `).FindStringSubmatch(text)
		require.NotNil(t, name, op)
		cells, us := row(t, text, name[1]), latency[op]
		want := []float64{float64(len(b)), mean(b), percentile(b, 0.95), percentile(b, 0.99), mean(us), percentile(us, 0.95), percentile(us, 0.99), slices.Max(us)}
		require.Len(t, cells, len(want))
		for i, x := range want {
			assert.InDelta(t, x, number(t, cells[i]), 0.0051+1e-6*x, "%s, column %d", op, i)
		}
	}
}

// perf_monitor's statistics and TensorBoard series, from its rows.
func TestFiguresOfFlagScale(t *testing.T) {
	dir := t.TempDir()
	body := `================================================================================
Performance Monitor Session Started: 2024-01-29 10:30:00
================================================================================
Timestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    Tokens/s     Time(ms)   Memory(GB)
--------------------------------------------------------------------------------
2024-01-29 10:30:15  10       125.34       1002.72    512.0        1048576      235.5      42.50
2024-01-29 10:30:30  20       128.12       1024.96    520.0        1064960      230.2      42.75
2024-01-29 10:30:45  30       127.00       1016.00    516.0        1056768      232.0      42.60
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "perf_metrics_20240129_103000.log"), []byte(body), 0o600))
	text := textOf(t, dir)
	for name, want := range map[string]string{
		"total_iterations": "3", "avg_step_time_ms": "232.6", "min_step_time_ms": "230.2", "max_step_time_ms": "235.5", "avg_throughput_tokens": "1056768",
		"avg_tflops_per_gpu": "126.82", "max_tflops_per_gpu": "128.12", "min_tflops_per_gpu": "125.34", "peak_memory_gb": "42.75",
	} {
		assert.Equal(t, want, value(text, name), name)
	}
	for series, want := range map[string]string{
		"performance/tflops_per_gpu": "TFLOPS 3 126.82 125.34 125.67 127.00 128.12 127.00", "performance/tflops_total": "TFLOPS 3 1014.56 1002.72 1005.38 1016.00 1024.96 1016.00",
		"performance/samples_per_second": "samples/s 3 516.00 512.00 512.80 516.00 520.00 516.00",
		"performance/tokens_per_second":  "tokens/s 3 1056768 1048576 1050214 1056768 1064960 1056768", "memory/current_gb": "GiB 3 42.62 42.50 42.52 42.60 42.75 42.60",
	} {
		assert.Equal(t, want, strings.Join(row(t, text, series), " "), series)
	}
}

//go:build e2e

package perfetto

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
)

// The perfetto package of PyPI reads all slices and counters back unchanged, and the file is small.
func TestPerfettoPackage(t *testing.T) {
	const slicesWanted = 200_000 // the job of 1,000,000 slices is the benchmark's
	path := filepath.Join(t.TempDir(), "run.pftrace")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()

	var want []string
	in := newWorkload(func(process, track, name string, start, length int64) {
		want = append(want, fmt.Sprintf("slice\t%s\t%s\t%s\t%d\t%d", process, track, name, start, length))
	})
	w := New(file)
	for in.n < slicesWanted {
		require.NoError(t, w.ConsumeTraces(t.Context(), in.message()))
		require.NoError(t, w.ConsumeMetrics(t.Context(), in.points(func(process, track string, at int64, v float64) {
			want = append(want, fmt.Sprintf("counter\t%s\t%s\t\t%d\t%s", process, track, at, strconv.FormatFloat(v, 'g', -1, 64)))
		})))
	}
	require.NoError(t, w.Close())
	info, err := file.Stat()
	require.NoError(t, err)
	t.Logf("%d slices: %.1f MB, %.1f B each", in.n, float64(info.Size())/1e6, float64(info.Size())/float64(in.n))
	assert.Less(t, float64(info.Size())/float64(in.n), 50.0, "B per slice")

	got, flows := rows(t, readBack(t, path))
	slices.Sort(want)
	slices.Sort(got)
	require.Len(t, got, len(want))
	require.True(t, slices.Equal(want, got), "the first that differs: %s", first(want, got))
	assert.Equal(t, []string{"AllReduce", "rank 0 node-0", "rank 1 node-0", "rank 2 node-0"}, flows[:4])
}

// readBack is the package's view of a trace.
func readBack(t *testing.T, path string) []byte {
	t.Helper()
	python, err := filepath.Abs(filepath.Join(root, "bin/tools/perfetto/bin/python"))
	require.NoError(t, err)
	require.FileExists(t, python, "run: make perfetto")
	cmd := exec.CommandContext(t.Context(), python, "testdata/decode.py", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return out
}

const root = "../../../../.."

// The output of trainbridge report for a job's logs is the output of the pipeline.
func TestPerfettoReportFile(t *testing.T) {
	bin, err := filepath.Abs(filepath.Join(root, "bin/trainbridge"))
	require.NoError(t, err)
	require.FileExists(t, bin, "run: make build")
	dir := t.TempDir()
	job, path := filepath.Join(dir, "job"), filepath.Join(dir, "job.pftrace")
	for _, args := range [][]string{
		{"gen", "run", "--ranks", "16", "--steps", "40", "--faults", "straggler,get", "--clocks", "skew", "--nccl", "nccl_inspector", job},
		{"report", job, "--run", "r1", "--service", "grpo", "-o", path},
	} {
		out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	in, err := offline.Open([]string{job}, nil)
	require.NoError(t, err)
	defer in.Close()
	var h heard
	to := h.between(t, Open(format.Request{Out: io.Discard}).Sink())
	_, err = offline.Read(t.Context(), in, offline.Options{Positions: true, Run: "r1", Service: "grpo"}, to)
	require.NoError(t, err)
	var got, points []string
	said := make(map[string]int)
	for line := range strings.Lines(string(readBack(t, path))) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch fields[0] {
		case "slice":
			got = append(got, strings.Join(fields[3:6], " "))
		case "counter":
			v, err := strconv.ParseFloat(fields[5], 64)
			require.NoError(t, err)
			points = append(points, fmt.Sprint(fields[4], " ", v))
		case "instant":
			said[fields[2]]++
		case "flow":
			said["flow"]++
		}
	}
	slices.Sort(h.slices)
	slices.Sort(h.points)
	slices.Sort(got)
	slices.Sort(points)
	assert.Equal(t, h.slices, got)
	assert.Equal(t, h.points, points)
	assert.Greater(t, len(got), 10_000)
	assert.Greater(t, len(points), 500)
	assert.GreaterOrEqual(t, said["flow"], 40*6, "a flow for each collective")
	assert.Greater(t, said["clock"], 1)
	assert.Positive(t, said["verdicts"])
}

// rows are the lines of decode.py without the depth of slices, and the names along the first flow of a collective.
func rows(t *testing.T, out []byte) (got, flow []string) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		switch fields[0] {
		case "slice":
			got = append(got, strings.Join(fields[:6], "\t"))
		case "counter":
			v, err := strconv.ParseFloat(fields[5], 64)
			require.NoError(t, err)
			got = append(got, strings.Join(fields[:5], "\t")+"\t"+strconv.FormatFloat(v, 'g', -1, 64))
		case "flow":
			if flow == nil && strings.HasPrefix(fields[2], "AllReduce@") {
				for s := range strings.SplitSeq(fields[2], ",") {
					name, _, _ := strings.Cut(s, "@")
					flow = append(flow, name)
				}
			}
		default:
			require.Fail(t, "an unexpected line", lines.Text())
		}
	}
	require.NoError(t, lines.Err())
	return got, flow
}

func first(want, got []string) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return want[i] + " ≠ " + got[i]
		}
	}
	return "none"
}

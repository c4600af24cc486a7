//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
	ncclgen "github.com/trainbridge/trainbridge/test/gen/nccl"
)

// The runs of TestHistory: some two a day, from September on.
const (
	historyRuns    = 420
	historySteps   = 30
	historyNewAt   = 250 // from this run on the image is new, and steps take 6 % longer
	historyFallAt  = 300 // from this run on the bus bandwidth is 150, not 200 GB/s
	historySlowest = 77

	historyCollectives = 8 // of a run
)

var historyTeams = []string{"speech", "text", "vision"}

// historyRun is a run with its truth.
type historyRun struct {
	n      int
	dir    string
	team   string
	image  string
	start  time.Time
	step   float64   // s
	stall  float64   // s, between two steps
	late   string    // the host whose ranks come last to every collective
	end    string    // end_kind
	host   string    // named by the end
	nan    bool      // a loss
	loaded int       // the step that waits for data, by 3 s; 0: none
	took   []float64 // s, of the steps as logged
}

func planHistory(dir string) (all []historyRun) {
	for n := range historyRuns {
		r := historyRun{
			n: n, dir: filepath.Join(dir, fmt.Sprintf("job%03d", n)), team: historyTeams[n%3], image: "nemo:25.09", step: 1, end: "silent",
			start: time.Date(2026, 9, 1, 6, 0, 0, 0, time.UTC).Add(time.Duration(n) * 5 * time.Hour), late: []string{"gpu-004", "gpu-017"}[n/20%2],
		}
		if n >= historyNewAt {
			r.image, r.step = "nemo:25.11", 1.06
		}
		if n == historySlowest {
			r.step = 1.3
		}
		if r.team == "vision" {
			r.stall = 90
		}
		switch {
		case n%20 == 7:
			r.end = "cuda_oom"
		case n%35 == 3:
			r.end, r.host = "xid", "gpu-017"
		}
		r.nan = n%60 == 11
		if r.team == "speech" {
			r.loaded = 20
		}
		all = append(all, r)
	}
	return all
}

// write writes the logs of the run: steps as JSON lines, collectives as NCCL Inspector has them.
func (r *historyRun) write(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(r.dir, 0o700))
	var log strings.Builder
	at := r.start
	for n := range historySteps {
		step, data, loss := r.step+0.001*float64(n%7), 0.01, "2.5"
		if n+1 == r.loaded {
			step, data = step+3, data+3
		}
		if r.nan && n == 25 {
			loss = "NaN"
		}
		r.took = append(r.took, step)
		at = at.Add(time.Duration(step * 1e9))
		if n == 12 {
			at = at.Add(time.Duration(r.stall * 1e9))
		}
		fmt.Fprintf(&log, `{"step": %d, "time": %q, "loss": %s, "step_time": %.3f, "data_time": %.3f, "world_size": 8, "batch_size": 64}`+"\n",
			n+1, at.Format("2006-01-02T15:04:05.000Z"), loss, step, data)
	}
	switch r.end {
	case "cuda_oom":
		log.WriteString("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n")
	case "xid":
		fmt.Fprintf(&log, "%s %s kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.\n", at.Format(time.Stamp), r.host)
	}
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "train.log"), []byte(log.String()), 0o600))

	opt := ncclgen.DefaultOptions()
	opt.Out, opt.Truth, opt.Ranks, opt.Nodes, opt.Steps, opt.PerStep, opt.Seed = r.dir, "none", 8, 2, historyCollectives, 1, uint64(r.n)
	opt.Start, opt.Operations, opt.Sizes, opt.SlowRank, opt.SlowBy, opt.Verbose = r.start, []string{"AllReduce"}, []int64{64 << 20}, 5, 0.1, true
	if r.n >= historyFallAt {
		opt.BusBandwidth = 150
	}
	_, err := ncclgen.Generate(t.Context(), opt)
	require.NoError(t, err)
	logs, err := filepath.Glob(filepath.Join(r.dir, "gpu-node-*.log"))
	require.NoError(t, err)
	require.Len(t, logs, 8)
	for _, path := range logs { // ranks 4 to 7 are on the late host
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("gpu-node-1"), []byte(r.late)), []byte("gpu-node-0"), []byte("gpu-001"))
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
}

var sqlBlock = regexp.MustCompile("(?ms)^```sql\n(.*?)^```")

// historyAnswers are the rows of each question of docs/history.md, asked by an engine.
func historyAnswers(t *testing.T, engine, dir string) (answers [][][]any) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repoRoot, "docs/history.md"))
	require.NoError(t, err)
	var blocks []string
	for _, m := range sqlBlock.FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, m[1])
	}
	require.Len(t, blocks, 2+10, "the views of two engines, ten questions")
	views := map[string]string{"duckdb": blocks[0], "chdb": blocks[1]}[engine]
	input, err := json.Marshal(append([]string{views}, blocks[2:]...))
	require.NoError(t, err)
	python, err := filepath.Abs(filepath.Join(repoRoot, "bin/tools/lake/bin/python"))
	require.NoError(t, err)
	require.FileExists(t, python, "run: make lake")
	script, err := filepath.Abs("testdata/history.py")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, script, engine)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	t.Log(stderr.String()) // how long each took
	require.NoError(t, json.Unmarshal(out, &answers))
	require.Len(t, answers, 10)
	return answers
}

// The questions of docs/history.md have the answers of the truth, asked by DuckDB and by ClickHouse.
func TestHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs := planHistory(dir)
	groups := map[[2]string][]string{}
	for i := range runs {
		r := &runs[i]
		r.write(t)
		groups[[2]string{r.team, r.image}] = append(groups[[2]string{r.team, r.image}], r.dir)
	}
	for labels, dirs := range groups {
		cmd := exec.CommandContext(t.Context(), fullBin(t), append([]string{"report", "--format", "parquet", "-o", filepath.Join(dir, "lake")}, dirs...)...)
		cmd.Env = append(os.Environ(), "OTEL_RESOURCE_ATTRIBUTES=team="+labels[0]+",image="+labels[1])
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	for n, want := range map[int]string{
		historySlowest:  "step time 1.3 s, longest of 78 (median 1 s)",
		historyNewAt:    "250 of 251",
		historyRuns - 1: "Nothing unusual",
	} {
		out, err := exec.CommandContext(t.Context(), fullBin(t), "compare", filepath.Join(dir, "lake"), "--run", runs[n].id()).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), want)
	}
	for _, engine := range []string{"duckdb", "chdb"} {
		t.Run(engine, func(t *testing.T) { checkHistory(t, runs, historyAnswers(t, engine, dir)) })
	}
}

func (r *historyRun) id() string { return spans.DirectoryRun(filepath.Join(r.dir, "train.log")) }

func (r *historyRun) wall() (sum float64) {
	for _, s := range r.took {
		sum += s
	}
	return sum + r.stall
}

// goodput is the wall clock without the stall and the wait for data, s.
func (r *historyRun) goodput() float64 {
	if r.loaded > 0 {
		return r.wall() - r.stall - 3
	}
	return r.wall() - r.stall
}

// week is the Monday of the day.
func week(t time.Time) string {
	return t.AddDate(0, 0, -(int(t.Weekday())+6)%7).Format(time.DateOnly)
}

// answered compares a number of an answer, by a share.
func answered(t *testing.T, want float64, got any, share float64, what string) {
	t.Helper()
	x, ok := got.(float64)
	require.True(t, ok, "%s: %v", what, got)
	assert.InDelta(t, want, x, share*math.Abs(want)+1e-9, what)
}

// historyTruth is what was planted in the runs, by what the questions group by.
type historyTruth struct {
	times, ends, used, named map[any]float64 // by host, end, end and host
	teams                    map[[2]any][2]float64
	months                   map[any][2]float64
	images                   map[any][]float64
	notFinite, loaded        float64
}

func truthOf(runs []historyRun) *historyTruth {
	h := &historyTruth{
		times: map[any]float64{"gpu-001": 0}, ends: map[any]float64{}, used: map[any]float64{}, named: map[any]float64{},
		teams: map[[2]any][2]float64{}, months: map[any][2]float64{}, images: map[any][]float64{},
	}
	for i := range runs {
		r := &runs[i]
		if r.start.Month() == time.November {
			h.times[r.late] += historyCollectives
		}
		team := [2]any{r.team, week(r.start)}
		h.teams[team] = [2]float64{h.teams[team][0] + r.goodput(), h.teams[team][1] + r.wall()}
		month := r.start.Format("2006-01") + "-01"
		h.months[month] = [2]float64{h.months[month][0] + r.wall() - r.stall, h.months[month][1] + r.wall()}
		h.ends[r.end]++
		h.used[r.end] += r.wall() * 8 / 3600
		h.images[r.image] = append(h.images[r.image], median(r.took))
		if r.host != "" {
			h.named[r.host]++
		}
		if r.nan {
			h.notFinite++
		}
		if r.loaded > 0 {
			h.loaded++
		}
	}
	return h
}

func checkHistory(t *testing.T, runs []historyRun, answers [][][]any) {
	t.Helper()
	h := truthOf(runs)
	late := answers[0]
	require.Len(t, late, len(h.times))
	for _, row := range late {
		answered(t, h.times[row[0]], row[1], 0, "how often a host was late")
	}
	assert.Greater(t, late[0][1], late[1][1])
	require.Len(t, answers[1], 2)
	for _, row := range answers[1] {
		assert.Equal(t, []any{"jsonl", 8.0}, row[:2])
		answered(t, float64(len(h.images[row[2]])), row[3], 0, "runs of an image")
		answered(t, median(h.images[row[2]]), row[4], 1e-6, "their step time")
	}
	require.Len(t, answers[2], len(h.teams))
	for _, row := range answers[2] {
		of := h.teams[[2]any{row[0], row[1]}]
		answered(t, of[0]/of[1], row[2], 0.01, fmt.Sprint("goodput of ", row[:2]))
	}
	require.Len(t, answers[3], 1)
	assert.Equal(t, runs[historyFallAt].id(), answers[3][0][0], "where the bandwidth fell")
	require.Len(t, answers[4], len(h.ends))
	for _, row := range answers[4] {
		answered(t, h.ends[row[0]], row[1], 0, fmt.Sprint("runs that ended by ", row[0]))
		answered(t, h.used[row[0]], row[2], 0.01, "their GPU hours")
	}
	assert.Equal(t, [][]any{{"gpu-017", "xid", h.named["gpu-017"]}}, answers[5])
	require.Len(t, answers[6], 3)
	for _, row := range answers[6] {
		of := h.months[row[0]]
		answered(t, of[0]/of[1], row[1], 0.01, fmt.Sprint("steps of ", row[0]))
		answered(t, 0, row[2], 0, "checkpoints")
		answered(t, 1-of[0]/of[1], row[3], 0.01, "nothing")
	}
	assert.Equal(t, []any{"data_loading", h.loaded}, answers[7][0][:2])
	answered(t, 3*h.loaded, answers[7][0][2], 0.02, "time lost to data")
	assert.Contains(t, answers[8], []any{"step_slow", "warning", h.loaded})
	assert.Contains(t, answers[8], []any{"train_loss_not_finite", "bad", h.notFinite})
	assert.Contains(t, answers[8], []any{"nccl_late", "warning", float64(len(runs))})
	require.Len(t, answers[9], 3)
	assert.Equal(t, runs[historySlowest].id(), answers[9][0][0])
	answered(t, 1.3, answers[9][0][2], 0.01, "the slowest run")
	answered(t, 1, answers[9][1][2], 0.01, "the next")
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// A gateway's lake has the rows that `report` has of the same logs. Gateways know no ends of runs.
func TestRunLake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, lake, reported := filepath.Join(dir, "job"), filepath.Join(dir, "lake"), filepath.Join(dir, "reported")
	run(t, nil, trainbridgeBin(t), "gen", "run", job)
	require.NoError(t, os.Mkdir(lake, 0o700))
	p := start(t, "trainbridge-full", fullBin(t), nil, "--config", write(t, "lake.yaml", fmt.Sprintf(`
receivers:
  train_log: {include: [%[1]s/train/*], run_id: job, start_at: beginning}
  tq_trace: {include: [%[1]s/tq/*], run_id: job, start_at: beginning}
  zmq_rpc: {include: [%[1]s/zmq/*], run_id: job, start_at: beginning}
  nccl: {include: [%[1]s/nccl/*], run_id: job, start_at: beginning}
processors: {train_perf: {}, step_join: {wait: 2s}}
exporters: {run_lake: {directory: %[2]s}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [train_log, tq_trace, zmq_rpc, nccl], processors: [train_perf, step_join], exporters: [run_lake]}}
`, job, lake)))
	eventually(t, func() error {
		if !strings.Contains(p.output(t), "All is read") {
			return errors.New("the logs are not read yet")
		}
		return nil
	})
	p.stop(t) // what has come is written then
	run(t, []string{"TRAINBRIDGE_RUN_ID=job"}, fullBin(t), "report", "--format", "parquet", "-o", reported, job)
	const summary = `SELECT (SELECT (step_time_s_p50, steps, ranks, round(goodput, 6)) FROM '%[1]s/runs/**/*.parquet'),
		(SELECT (count(*), round(sum(step_time_s), 6)) FROM '%[1]s/steps/**/*.parquet'),
		(SELECT (count(*), round(sum(duration_us), 3)) FROM '%[1]s/collectives/**/*.parquet'),
		(SELECT (count(*), sum(times_last)) FROM '%[1]s/lateness/**/*.parquet'),
		(SELECT (count(DISTINCT verdict), count(*)) FROM '%[1]s/verdicts/**/*.parquet')`
	python := filepath.Join(repoRoot, "bin/tools/lake/bin/python")
	ask := func(lake string) string {
		out, err := exec.CommandContext(t.Context(), python, "-c", "import duckdb, sys; print(duckdb.sql(sys.argv[1]).fetchall())", fmt.Sprintf(summary, lake)).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	want := ask(reported)
	assert.Contains(t, want, "(16, ") // ranks of lateness
	assert.Equal(t, want, ask(lake))
	assert.Empty(t, complaint.FindAllString(p.output(t), -1))
}

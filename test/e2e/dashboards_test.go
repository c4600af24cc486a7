//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/fakenvml"
	"github.com/trainbridge/trainbridge/spans"
)

// board has the tested parts of a file of deploy/grafana/dashboards.
type board struct {
	UID, Title, Description string
	Tags                    []string
	Links                   []struct{ URL string }
	Templating              struct {
		List []struct {
			Name, Type, AllValue string
			Query                any
		}
	}
	Panels []*panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               struct{ Type, UID string }
	Targets                  []*panelTarget
}

type panelTarget struct {
	RefID, Expr, Query, Interval string
	Instant, Exemplar            bool
}

// boards are the dashboards by their uid, with their texts.
func boards(tb testing.TB) (all map[string]*board, texts map[string]string) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(repoRoot, "deploy/grafana/dashboards/*.json"))
	require.NoError(tb, err)
	all, texts = map[string]*board{}, map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		b := &board{}
		require.NoError(tb, json.Unmarshal(text, b), file)
		require.NotContains(tb, all, b.UID)
		all[b.UID], texts[b.UID] = b, string(text)
	}
	require.Len(tb, all, 4)
	return all, texts
}

// panel is the panel of a title.
func (b *board) panel(tb testing.TB, title string) *panel {
	tb.Helper()
	i := slices.IndexFunc(b.Panels, func(p *panel) bool { return p.Title == title })
	require.GreaterOrEqual(tb, i, 0, "%s has a panel %q", b.UID, title)
	return b.Panels[i]
}

var (
	variable = regexp.MustCompile(`\$(?:\{(\w+)(?::\w+)?\}|(\w+))`)
	ofDocs   = regexp.MustCompile(`docs/((?:reference/)?[a-z-]+\.md)(?:#([a-z-]+))?`)
)

// A dashboard's panels have unique ids, texts and places; its variables are defined, and its references exist.
func TestDashboardFiles(t *testing.T) {
	t.Parallel()
	all, texts := boards(t)
	for uid, b := range all {
		assert.NotEmpty(t, b.Description, uid)
		assert.Equal(t, []string{"trainbridge"}, b.Tags, uid)
		defined := map[string]bool{}
		for _, v := range b.Templating.List {
			assert.False(t, defined[v.Name], "%s: variable %s twice", uid, v.Name)
			defined[v.Name] = true
		}
		for _, m := range variable.FindAllStringSubmatch(texts[uid], -1) {
			name := cmp.Or(m[1], m[2])
			assert.True(t, defined[name] || strings.HasPrefix(name, "__"), "%s: variable %s", uid, name)
		}
		for _, m := range ofDocs.FindAllStringSubmatch(texts[uid], -1) {
			page, err := os.ReadFile(filepath.Join(repoRoot, "docs", m[1]))
			require.NoError(t, err, uid)
			heading := regexp.MustCompile(`(?im)^#+ ` + strings.ReplaceAll(m[2], "-", "[- ]") + `$`)
			assert.True(t, m[2] == "" || heading.Match(page), "%s: %s has no section %s", uid, m[1], m[2])
		}
		ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
		for _, p := range b.Panels {
			at := fmt.Sprintf("%s: %q", uid, p.Title)
			assert.False(t, ids[p.ID] || titles[p.Title], "%s: id and title are its own", at)
			ids[p.ID], titles[p.Title] = true, true
			assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, at)
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					assert.Empty(t, taken[[2]int{x, y}], "%s lies on it", at)
					taken[[2]int{x, y}] = at
				}
			}
			if p.Type == "row" {
				continue
			}
			assert.NotEmpty(t, p.Description, at)
			require.NotEmpty(t, p.Targets, at)
			assert.Equal(t, map[string]string{"prometheus": "${datasource}", "tempo": "${tempo}"}[p.Datasource.Type], p.Datasource.UID, at)
			for i, target := range p.Targets {
				assert.Equal(t, string(rune('A'+i)), target.RefID, at)
				assert.NotEqual(t, target.Expr == "", target.Query == "", at)
				if defined["step"] && strings.Contains(target.Expr, "$__rate_interval") {
					assert.Equal(t, "$step", target.Interval, at)
				}
			}
		}
	}
}

// viewer is somebody who looks at a dashboard: at servers, with values of variables, at a time.
type viewer struct {
	prom       *prometheus
	tempo      *tempo
	vars       map[string]string
	start, end time.Time
	step       string
}

// asked is a query with the values of its variables, as sent by Grafana.
func (v *viewer) asked(tb testing.TB, query string) string {
	tb.Helper()
	return variable.ReplaceAllStringFunc(query, func(name string) string {
		m := variable.FindStringSubmatch(name)
		name = cmp.Or(m[1], m[2])
		value, ok := v.vars[name]
		switch {
		case ok:
		case name == "__range":
			value, ok = fmt.Sprintf("%.0fs", v.end.Sub(v.start).Seconds()), true
		case name == "__interval":
			value, ok = v.step, true
		}
		require.True(tb, ok, "variable %s of %s", name, query)
		return value
	})
}

// with is the viewer with another value of a variable.
func (v *viewer) with(name, value string) *viewer {
	w := *v
	w.vars = map[string]string{name: value}
	for k, x := range v.vars {
		if k != name {
			w.vars[k] = x
		}
	}
	return &w
}

// line is a query's answer for one series.
type line struct {
	labels map[string]string
	points []float64
}

// has says whether a line has these labels.
func (l line) has(labels map[string]string) bool {
	for k, v := range labels {
		if l.labels[k] != v {
			return false
		}
	}
	return true
}

func (l line) last() float64 { return l.points[len(l.points)-1] }

// lines are the answer of a Prometheus target: for a panel over time at each step, for a table at the end. Points that are no numbers are left out, and lines
// without points.
func (v *viewer) lines(tb testing.TB, target *panelTarget) (all []line, err error) {
	tb.Helper()
	start := v.start
	if target.Instant {
		start = v.end
	}
	graph, err := v.prom.graph(v.asked(tb, target.Expr), start, v.end, v.step)
	for labels, points := range graph {
		var l line
		require.NoError(tb, json.Unmarshal([]byte(labels), &l.labels))
		for _, p := range points {
			if !math.IsNaN(p.value) && !math.IsInf(p.value, 0) {
				l.points = append(l.points, p.value)
			}
		}
		if len(l.points) > 0 {
			all = append(all, l)
		}
	}
	return all, err
}

// found are the traces found by a Tempo target.
func (v *viewer) found(tb testing.TB, target *panelTarget) (map[pcommon.TraceID]bool, error) {
	tb.Helper()
	return v.tempo.searchIn(v.start.Add(-time.Minute), v.end.Add(time.Minute), v.asked(tb, target.Query))
}

// empty are the targets without an answer, even with other values of the variable run.
func (v *viewer) empty(tb testing.TB, b *board, runs ...string) (none []string, err error) {
	tb.Helper()
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			n := 0
			for _, run := range runs {
				if n > 0 {
					break
				}
				w := v.with("run", run)
				if p.Datasource.Type == "tempo" {
					found, e := w.found(tb, target)
					n, err = len(found), cmp.Or(err, e)
					continue
				}
				lines, e := w.lines(tb, target)
				n, err = len(lines), cmp.Or(err, e)
			}
			if n == 0 {
				none = append(none, p.Title+" "+target.RefID)
			}
		}
	}
	return none, err
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// choices are the values offered by a variable.
func (v *viewer) choices(tb testing.TB, query any) (values []string, err error) {
	tb.Helper()
	text, _ := query.(map[string]any)["query"].(string)
	m := labelValues.FindStringSubmatch(text)
	require.NotNil(tb, m, text)
	err = v.prom.ask("/api/v1/label/"+m[2]+"/values", url.Values{
		"match[]": {v.asked(tb, m[1])}, "start": {strconv.FormatInt(v.start.Unix(), 10)}, "end": {strconv.FormatInt(v.end.Unix(), 10)},
	}, &values)
	return values, err
}

// Every panel of the dashboards shows true data: of replayed logs with known truth, and of a live collector.
func TestDashboards(t *testing.T) {
	t.Parallel()
	all, _ := boards(t)
	t.Run("replayed", func(t *testing.T) {
		t.Parallel()
		testReplayedBoards(t, all)
	})
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		testLiveBoards(t, all)
	})
}

const (
	boardRuns, boardRun, boardGPUs, boardCollector = "trainbridge-runs", "trainbridge-run", "trainbridge-gpus", "trainbridge-collector"

	healthy   = "healthy"
	parts     = "Parts of a step"
	lateRanks = "GPUs lost to late ranks"
	getAndPut = "GET and PUT, 95th percentile"
)

type labels = map[string]string

// risen are lines of a run's dashboard that rise by a fault.
type risen struct {
	panel  string
	labels labels
}

// faultPanels has the lines that rise by each fault of `gen run`, beside the lines common to all faults.
var faultPanels = map[string][]risen{
	"straggler":     {{parts, labels{"ml_step_part": "collective.wait"}}, {lateRanks, nil}},
	"gpu":           {{parts, labels{"ml_step_part": "collective.wait"}}, {lateRanks, nil}},
	"link":          {{parts, labels{"ml_step_part": "collective"}}, {"Collectives, 95th percentile", nil}},
	"data_loading":  {{parts, labels{"ml_step_part": "data_loading"}}},
	"checkpoint":    {{parts, labels{"ml_step_part": "checkpoint"}}},
	"get":           {{parts, labels{"ml_step_part": "get"}}, {getAndPut, labels{"tq_stage": "get"}}, {"TransferQueue's share", nil}},
	"put":           {{parts, labels{"ml_step_part": "put"}}, {getAndPut, labels{"tq_stage": "put"}}, {"TransferQueue's share", nil}},
	"rpc.serialize": {{parts, labels{"ml_step_part": "rpc.serialize"}}},
}

// peak is the highest value of a panel's lines.
func (v *viewer) peak(tb testing.TB, b *board, of risen) float64 {
	tb.Helper()
	top := math.Inf(-1)
	for _, target := range b.panel(tb, of.panel).Targets {
		lines, err := v.lines(tb, target)
		require.NoError(tb, err)
		for _, l := range lines {
			if l.has(of.labels) {
				top = max(top, slices.Max(l.points))
			}
		}
	}
	return top
}

// notReplayed are panels about the present, or about logs without a clock.
var notReplayed = []string{
	"Time since the last step", "Runs that have ended", "Lines that tell how runs end", "Time lost", "Calls, 95th percentile", "Time of calls by stage", "Passes, 95th percentile",
}

func testReplayedBoards(t *testing.T, all map[string]*board) {
	t.Helper()
	start := time.Now().Add(-26 * time.Hour).Truncate(time.Hour)
	s := startTempoWith(t, tempoSlack, tempoAtOnce)
	p := startPrometheusWith(t, oldSamples, []string{takesSamples, "--storage.tsdb.retention.time=90d"}) // no scrape targets: no sample is of the present
	send := func(dir, run string, more ...string) {
		out, err := replay(t, append([]string{dir, "--run", run, "--service", "gpt", "--metrics", p.api}, more...)...)
		require.NoError(t, err, out)
	}
	const toTempo = "get" // alone: the steps of all these runs have the same ids
	jobs := map[string]*jobTruth{}
	v := &viewer{
		prom: p, tempo: s, start: start, step: "15s",
		vars: labels{"job": "gpt", "run": healthy, "host": ".*", "rank": ".*", "gpu": ".*", "collector": ".*", "__rate_interval": "1m"},
	}
	for _, name := range append(slices.Sorted(maps.Keys(faultPanels)), healthy) {
		faults, every, more := name, "5", []string(nil)
		if name == healthy {
			faults, every = "get", "1000"
		}
		jobs[name] = generateJob(t, "--ranks", "8", "--steps", "60", "--seed", "2", "--start", start.Format(time.RFC3339), "--fault-every", every, "--faults", faults)
		if name == toTempo {
			more = []string{"--endpoint", s.otlp}
		}
		send(jobs[name].dir, name, more...)
		if end := time.Unix(0, jobs[name].end()); end.After(v.end) {
			v.end = end.Truncate(15 * time.Second).Add(15 * time.Second)
		}
	}
	megatron := generateTrain(t, "megatron", "flagscale", "--steps", "40", "--start", start.Format(time.RFC3339))
	send(megatron.dir, "megatron", "--device", megatron.run.Device)

	for _, uid := range []string{boardRuns, boardRun} {
		none, err := v.empty(t, all[uid], toTempo, "megatron")
		require.NoError(t, err)
		for _, title := range none {
			assert.Contains(t, notReplayed, title[:len(title)-2], "%s is empty", title)
		}
	}
	for name, tr := range jobs {
		v.with("run", name).checkTruth(t, all, tr, jobs[healthy])
		if name == healthy {
			continue
		}
		for _, of := range append(faultPanels[name], risen{"Verdicts", labels{"trainbridge_verdict_name": "step_slow"}}) {
			before, now := v.peak(t, all[boardRun], of), v.with("run", name).peak(t, all[boardRun], of)
			assert.Greater(t, now, 1.2*max(before, 0), "%s: %s %v", name, of.panel, of.labels)
		}
	}
	slow := map[pcommon.TraceID]bool{}
	for _, step := range jobs[toTempo].Steps {
		if step.Cause != nil {
			slow[spans.TraceID("", []byte(step.TraceID))] = true
		}
	}
	eventually(t, func() error {
		found, err := v.with("run", toTempo).found(t, all[boardRun].panel(t, "Slow steps").Targets[0])
		if err == nil && !maps.Equal(found, slow) {
			err = fmt.Errorf("%d slow steps, want %d", len(found), len(slow))
		}
		return err
	})
}

// end is when the last step was over, in ns.
func (tr *jobTruth) end() int64 { return tr.Steps[len(tr.Steps)-1].End }

// checkTruth compares the panels of a run with its truth, over the whole run. Each fault lengthens its steps, relative to the healthy run.
func (v *viewer) checkTruth(t *testing.T, all map[string]*board, tr, well *jobTruth) {
	t.Helper()
	w := v.with("__rate_interval", v.asked(t, "$__range"))
	run, mean := labels{"instance": v.vars["run"]}, 1/float64(len(tr.Steps))
	var times []float64
	var slow, total, lost, transfer, functions float64
	of := map[string]float64{}
	for i, s := range tr.Steps {
		took := float64(s.End-s.Start) / 1e9
		times, total = append(times, took), total+took
		lost += took - float64(well.Steps[i].End-well.Steps[i].Start)/1e9 + well.Steps[i].Time["checkpoint"] + well.Steps[i].Time["evaluation"]
		for part, x := range s.Time {
			of[part] += mean * x
		}
		transfer += s.Sum[spans.PartGet] + s.Sum[spans.PartPut]
		functions += s.Sum[spans.PartGet] + s.Sum[spans.PartPut] + s.Sum[spans.PartCompute]
		if s.Cause != nil {
			slow++
		}
	}
	slices.Sort(times)
	at := func(q float64) float64 { return times[int(math.Ceil(q*float64(len(times))))-1] }
	rows, samples := tr.rows(t), 0.0
	for _, r := range rows {
		samples += r.Throughput * r.Took
	}
	last := rows[len(rows)-1]
	for _, x := range []struct {
		board, panel string
		target       int
		labels       labels
		want, off    float64
	}{
		{boardRun, "Steps", 0, nil, float64(len(times)), 0},
		{boardRun, "Loss now", 0, nil, last.Loss, 0},
		{boardRun, "Loss", 0, nil, last.Loss, 0},
		{boardRun, "Steps called slow", 0, nil, slow, 0},
		{boardRun, "Step time, p95", 0, nil, at(0.95), 0.1}, // buckets
		{boardRun, "Step time", 0, nil, at(0.5), 0.1},
		{boardRun, "Step time", 1, nil, at(0.95), 0.1},
		{boardRun, "TransferQueue's share", 1, nil, transfer / functions, 0.01},
		{boardRun, "Goodput", 0, nil, 1 - lost/total, 0.01},
		{boardRuns, "Goodput", 0, run, 1 - lost/total, 0.01},
		{boardRuns, "Runs", 0, run, 1 - lost/total, 0.01},
		{boardRuns, "Runs", 1, run, float64(len(times)), 0},
		{boardRuns, "Runs", 2, run, at(0.95), 0.1},
		{boardRuns, "Runs", 3, run, last.Loss, 0},
		{boardRuns, "Step time, 95th percentile", 0, run, at(0.95), 0.1},
		{boardRuns, "Samples per second", 0, run, samples / v.end.Sub(v.start).Seconds(), 0.01},
		{boardGPUs, "Utilization, as logs state it", 0, labels{"instance": v.vars["run"], "hw_id": "7"}, last.GPUs[7] / 100, 0},
	} {
		w.check(t, all[x.board], x.panel, x.target, x.labels, x.want, x.off)
	}
	for part, want := range of {
		w.check(t, all[boardRun], parts, 0, labels{"ml_step_part": part}, want, 0.01)
	}
}

// row is a record of a job's training log.
type row struct {
	Loss, Throughput float64
	Took             float64   `json:"step_time_s"`
	GPUs             []float64 `json:"gpu_util"`
}

func (tr *jobTruth) rows(tb testing.TB) (all []row) {
	tb.Helper()
	f, err := os.Open(filepath.Join(tr.dir, "train", "train.jsonl"))
	require.NoError(tb, err)
	defer f.Close()
	for dec := json.NewDecoder(f); dec.More(); {
		var r row
		require.NoError(tb, dec.Decode(&r))
		all = append(all, r)
	}
	return all
}

// check compares the single line of a target, at the end, with the truth.
func (v *viewer) check(t *testing.T, b *board, title string, target int, of labels, want, off float64) {
	t.Helper()
	lines, err := v.lines(t, b.panel(t, title).Targets[target])
	require.NoError(t, err)
	lines = slices.DeleteFunc(lines, func(l line) bool { return !l.has(of) })
	if want == 0 && len(lines) == 0 { // Grafana shows noValue
		return
	}
	if assert.Len(t, lines, 1, "%s %v of %s", title, of, v.vars["run"]) {
		assert.InDelta(t, want, lines[0].last(), off*want+1e-6, "%s %v of %s", title, of, v.vars["run"])
	}
}

// liveJob is the shipped collector with its servers, on growing logs of several runs and on GPUs.
func liveJob(t *testing.T) *viewer {
	t.Helper()
	s := startTempo(t)
	tr := generateJob(t, "--ranks", "16", "--steps", "60", "--faults", jobFaults, "--nccl", "nccl_inspector")
	megatron := generateTrain(t, "megatron", "flagscale", "--steps", "40")
	state, err := fakenvml.New(filepath.Join(t.TempDir(), "state"), "devices 2\n")
	require.NoError(t, err)
	t.Cleanup(func() { _ = state.Close() })
	logs, own := t.TempDir(), t.TempDir()
	c := newCollector(t, trainbridgeBin(t), logs+"/tq/*", s.otlp, fmt.Sprintf(`
connectors: {train_metrics: {metrics_flush_interval: 1s}}
processors: {train_perf: {train: {device: %[1]s}}}
receivers:
  nvml: {collection_interval: 1s, initial_delay: 0s}
  flagscale: {run_id: megatron}
  train_log/goes: {include: [%[2]s/goes.jsonl], run_id: goes, service_name: gpt, storage: state_storage}
  train_log/done: {include: [%[2]s/done.jsonl], run_id: done, service_name: gpt, storage: state_storage}
service:
  pipelines:
    traces: {receivers: [tq_trace, flagscale, train_log, train_log/goes, train_log/done, zmq_rpc, nccl]}
    metrics: {receivers: [tq_trace, flagscale, train_log, train_log/goes, train_log/done, zmq_rpc, nccl, nvml, train_metrics]}
`, megatron.run.Device, own))
	c.env = append(c.env, "TRAINBRIDGE_SERVICE=gpt", "TRAINBRIDGE_RUN_ID=live", "TRAINBRIDGE_TRAIN_LOGS="+logs+"/train/*", "TRAINBRIDGE_ZMQ_LOGS="+logs+"/zmq/*",
		"TRAINBRIDGE_NCCL_LOGS="+logs+"/nccl/*", "TRAINBRIDGE_FLAGSCALE_LOGS="+megatron.dir+"/*", "LD_LIBRARY_PATH="+fakenvml.Build(t), fakenvml.Env+"="+state.Path())
	v := &viewer{
		prom: startPrometheus(t, c.scrape...), tempo: s, step: "1s", start: time.Now(),
		vars: labels{"job": "gpt", "run": "live", "host": ".*", "rank": ".*", "gpu": ".*", "collector": ".*", "__rate_interval": "1m"},
	}
	grow(t, tr.dir+"/*/*", logs, 0, 2) // counters rise with the second half
	more := []byte("{\"step\": 2, \"lo\ntorch.OutOfMemoryError: CUDA out of memory.\n")
	require.NoError(t, os.WriteFile(filepath.Join(logs, "train", "more.jsonl"), more, 0o600))
	c.up(t)
	start(t, "goes", "/bin/sh", nil, "-c", stepsOfJob, "job", filepath.Join(own, "goes.jsonl"), "100000")
	start(t, "done", "/bin/sh", nil, "-c", stepsOfJob, "job", filepath.Join(own, "done.jsonl"), "10")
	names := []string{"ml_train_steps_total", "tq_function_time_seconds_total", "nccl_collective_io_bytes_total", "zeromq_stage_time_seconds_total"}
	eventually(t, func() error {
		got, err := v.prom.query(fmt.Sprintf(`count by (__name__) ({__name__=~%q,instance="live"} > 0)`, strings.Join(names, "|")))
		if err == nil && len(got) < len(names) {
			err = fmt.Errorf("only %v", got)
		}
		return err
	})
	grow(t, tr.dir+"/*/*", logs, 1, 2)
	return v
}

// offersNone are the variables without a value to choose.
func (v *viewer) offersNone(tb testing.TB, b *board) (none []string, err error) {
	tb.Helper()
	for _, x := range b.Templating.List {
		if x.Type != "query" {
			continue
		}
		values, e := v.choices(tb, x.Query)
		err = cmp.Or(err, e)
		if len(values) == 0 {
			none = append(none, "variable "+x.Name)
		}
	}
	return none, err
}

func testLiveBoards(t *testing.T, all map[string]*board) {
	t.Helper()
	v := liveJob(t)
	eventually(t, func() error {
		v.end = time.Now()
		var missing []string
		for uid, b := range all {
			empty, err := v.empty(t, b, "live", "megatron", "goes")
			if err != nil {
				return err
			}
			none, err := v.offersNone(t, b)
			if err != nil {
				return err
			}
			for _, title := range append(empty, none...) {
				if title != "Slowest links A" { // NCCL Inspector has no links, replayed logs have
					missing = append(missing, uid+": "+title)
				}
			}
		}
		if slices.Sort(missing); len(missing) > 0 {
			return fmt.Errorf("empty: %q", missing)
		}
		return nil
	})
	for title, want := range map[string]float64{"Utilization": 0.4, "Memory": 0.125, "Power": 300, "SM clock": 1600e6, "GPUs that failed": 0} { // fakenvml's
		v.check(t, all[boardGPUs], title, 0, labels{"hw_name": "GPU 0"}, want, 0)
	}
	found, err := v.prom.exemplars(v.asked(t, all[boardRun].panel(t, parts).Targets[0].Expr))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, x := range found {
		id, err := traceID(x.Labels["trace_id"])
		require.NoError(t, err)
		eventually(t, func() error {
			td, err := v.tempo.trace(id)
			if err == nil && td.SpanCount() == 0 {
				err = errors.New("an exemplar leads to no trace")
			}
			return err
		})
	}
}

//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// The settings of docs/reference/replay.md.
const (
	tempoSlack   = ", ingestion_time_range_slack: 720h"
	tempoAtOnce  = "query_frontend: {search: {query_ingesters_until: 720h}}"
	oldSamples   = "storage: {tsdb: {out_of_order_time_window: 30d}}"
	takesSamples = "--web.enable-remote-write-receiver"

	findBreakdowns = `{ name = "breakdown" && span.ml.step.time.compute > 0.0 }`
)

// docs/reference/replay.md has the settings of the tests here.
func TestReplaySettings(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs", "reference", "replay.md"))
	require.NoError(t, err)
	for _, setting := range []string{strings.TrimPrefix(tempoSlack, ", "), tempoAtOnce, oldSamples, takesSamples, findBreakdowns} {
		assert.Contains(t, string(text), setting)
	}
}

// replay runs `trainbridge replay`.
func replay(tb testing.TB, args ...string) (output string, err error) {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), trainbridgeBin(tb), append([]string{"replay"}, args...)...).CombinedOutput()
	return string(out), err
}

// aDayAgo writes the logs of a job that ran at least a day ago.
func aDayAgo(tb testing.TB) (tr *jobTruth, start time.Time) {
	tb.Helper()
	start = time.Now().Add(-26 * time.Hour).Truncate(time.Hour)
	return generateJob(tb, "--ranks", "8", "--steps", "50", "--seed", "3", "--fault-every", "4", "--faults", jobFaults, "--start", start.Format(time.RFC3339)), start
}

// passedOver is the output about the truth beside the logs.
const passedOver = "passed over by name, as no logs: 1 truth.json; a file that is named itself is read\n"

// slowly is the output of a reading longer than a few seconds.
const slowly = `(?:reading: .*\n)*`

// Yesterday's job is in Jaeger and Tempo at its own time, whole, and found by TraceQL; sent twice, it is present once.
func TestReplayTraces(t *testing.T) {
	t.Parallel()
	tr, start := aDayAgo(t)
	j, s := startJaeger(t), startTempoWith(t, tempoSlack, tempoAtOnce)
	for _, to := range []string{j.otlp, j.otlp, s.otlp} {
		out, err := replay(t, tr.dir, "--run", tr.RunID, "--endpoint", to)
		require.NoError(t, err, out)
		assert.Regexp(t, `^`+passedOver+slowly+`Sent \d+ spans to `+to+`, of `+start.UTC().Format("2006-01-02 15:04:")+`\d\d to [-0-9]+ [:0-9]+ UTC\.\n$`, out)
	}
	var a *answer
	eventually(t, func() error { // Jaeger finds accepted spans after a delay
		td, err := j.find("")
		if err != nil {
			return err
		}
		a = readAll(td)
		for _, step := range tr.Steps {
			if kinds, _, _ := kindsOf(t, a.traces[spans.TraceID("", []byte(step.TraceID))]); !maps.Equal(kinds, step.kinds()) {
				return fmt.Errorf("step %d has %v, want %v", step.Step, kinds, step.kinds())
			}
		}
		return a.err()
	})
	oneRun(t, tr, a)
	ids := map[pcommon.TraceID]bool{}
	for _, step := range tr.Steps {
		id := spans.TraceID("", []byte(step.TraceID))
		ids[id] = true
		step.checkTrace(t, "Tempo", id, s.trace)
		trace := a.traces[id]
		_, roots, _ := kindsOf(t, trace)
		require.Len(t, roots, 1)
		assert.InDelta(t, step.Start, int64(roots[0].StartTimestamp()), 1e6, "when step %d began", step.Step)
		for _, n := range trace {
			if n.Name() == spans.SpanBreakdown {
				step.checkBreakdown(t, n)
				step.checkCause(t, n)
			}
		}
	}
	end := time.Unix(0, tr.Steps[len(tr.Steps)-1].End)
	eventually(t, func() error {
		found, err := s.searchIn(start.Add(-time.Minute), end.Add(time.Minute), findBreakdowns)
		if err == nil && !maps.Equal(found, ids) {
			err = fmt.Errorf("%d traces at their own time, want %d", len(found), len(ids))
		}
		return err
	})
}

// Prometheus graphs yesterday's job: the log's numbers at its own times, the breakdown of its steps, every quarter of a minute the truth up to then, and the
// durations of steps.
func TestReplayMetrics(t *testing.T) {
	t.Parallel()
	tr, start := aDayAgo(t)
	own := freeAddr(t)
	p := startPrometheusWith(t, oldSamples, []string{takesSamples, "--storage.tsdb.retention.time=90d"}, own)
	for range 2 {
		out, err := replay(t, tr.dir, "--run", tr.RunID, "--metrics", p.api)
		require.NoError(t, err, out)
		assert.Regexp(t, `^`+passedOver+slowly+`Sent \d+ samples to `+p.api+`/api/v1/write: .*\nNot in metrics: \d+ spans of logs without a clock, whose times are made up\.\n$`, out)
	}
	end := time.Unix(0, tr.Steps[len(tr.Steps)-1].End)

	stated, err := p.raw(fmt.Sprintf(`ml_train_loss{job="train",instance=%q,trainbridge_source="jsonl"}`, tr.RunID), end.Add(time.Hour), "2h")
	require.NoError(t, err)
	require.Len(t, stated, 1)
	for _, got := range stated {
		assert.Equal(t, losses(t, tr), got)
	}

	first, last := start.Add(15*time.Second), end.Truncate(15*time.Second).Add(15*time.Second)
	graph, err := p.graph(`sum by (ml_step_part) (ml_step_time_seconds_total{ml_step_window="step"})`, first, last, "15s")
	require.NoError(t, err)
	points := 0
	for labels, line := range graph {
		var of struct {
			Part string `json:"ml_step_part"`
		}
		require.NoError(t, json.Unmarshal([]byte(labels), &of))
		for _, at := range line {
			if slices.ContainsFunc(tr.Steps, func(s *jobStep) bool { return at.at.Sub(time.Unix(0, s.End)).Abs() < 2*time.Millisecond }) {
				continue // the log's stamps are whole milliseconds
			}
			want := 0.0
			for _, s := range tr.Steps {
				if s.End < at.at.UnixNano() {
					want += s.Time[of.Part]
				}
			}
			assert.InDelta(t, want, at.value, 1e-6*float64(len(tr.Steps)), "%s at %s", of.Part, at.at)
			points++
		}
	}
	assert.Greater(t, points, 50)
	const buckets = `ml_train_step_duration_seconds_bucket{trainbridge_source="jsonl"}`
	p95, err := p.graph(`histogram_quantile(0.95, sum by (le, job) (rate(`+buckets+`[5m])))`, last, last, "15s")
	require.NoError(t, err)
	var times []float64
	for _, s := range tr.Steps {
		times = append(times, float64(s.End-s.Start)/1e9)
	}
	slices.Sort(times)
	require.Len(t, p95[`{"job":"train"}`], 1, p95)
	assert.InEpsilon(t, times[int(math.Ceil(0.95*float64(len(times))))-1], p95[`{"job":"train"}`][0].value, 0.1)
	for metric, want := range map[string]float64{"ml_train_steps_total": float64(len(tr.Steps)), "ml_train_tokens_total": float64(tr.Tokens)} {
		total, err := p.graph(`sum(`+metric+`{trainbridge_source="jsonl"})`, last, last, "15s")
		require.NoError(t, err)
		assert.Equal(t, map[string][]point{"{}": {{last, want}}}, total)
	}
	checkAccount(t, p, tr, last)
}

// checkAccount compares the account of the wall clock, at the end, with the report's.
func checkAccount(t *testing.T, p *prometheus, tr *jobTruth, last time.Time) {
	t.Helper()
	var doc struct {
		Jobs []struct {
			Account struct {
				Goodput float64
				States  map[string]float64
			}
		}
	}
	out, err := exec.Command(trainbridgeBin(t), "report", tr.dir, "--run", tr.RunID, "--format", "json").Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &doc))
	states, err := p.graph(`sum by (ml_run_state) (ml_run_time_seconds)`, last, last, "15s")
	require.NoError(t, err)
	require.Greater(t, len(states), 2, "a job with checkpoints and evaluations")
	for state, seconds := range doc.Jobs[0].Account.States {
		if line := states[`{"ml_run_state":"`+state+`"}`]; seconds > 0 && assert.NotEmpty(t, line, state) {
			assert.InDelta(t, seconds, line[0].value, 1e-3, state)
		}
	}
	share, err := p.graph(`max(ml_train_goodput_ratio)`, last, last, "15s")
	require.NoError(t, err)
	assert.InDelta(t, doc.Jobs[0].Account.Goodput, share["{}"][0].value, 1e-3)
}

// losses are the training log's losses.
func losses(tb testing.TB, tr *jobTruth) (all []point) {
	tb.Helper()
	f, err := os.Open(filepath.Join(tr.dir, "train", "train.jsonl"))
	require.NoError(tb, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Timestamp time.Time
			Loss      float64
		}
		require.NoError(tb, json.Unmarshal(lines.Bytes(), &line))
		all = append(all, point{line.Timestamp.Local(), line.Loss})
	}
	require.NotEmpty(tb, all)
	return all
}

// If a server is missing, or does not accept old data, the error names the flag and the fix.
func TestReplayRefused(t *testing.T) {
	t.Parallel()
	tr, _ := aDayAgo(t)
	away := freeAddr(t)
	deaf := startPrometheus(t)
	own := freeAddr(t)
	today := startPrometheusWith(t, "", []string{takesSamples}, own, strings.TrimPrefix(deaf.api, "http://")) // has samples of the present
	eventually(t, func() error {
		got, err := today.query(`up == 1`)
		if err == nil && len(got) == 0 {
			err = errors.New("nothing is scraped yet")
		}
		return err
	})
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "say where to send: --endpoint HOST:PORT for traces, --metrics URL for metrics, or both"},
		{[]string{"--endpoint", away}, 2, "--endpoint " + away + ": dial tcp " + away + ": connect: connection refused"},
		{[]string{"--metrics", "http://" + away}, 2, "--metrics http://" + away + "/api/v1/write: dial tcp " + away + ": connect: connection refused"},
		{[]string{"--metrics", away}, 2, "write http://HOST:PORT"},
		{[]string{"--metrics", deaf.api}, 2, "Start Prometheus with --web.enable-remote-write-receiver"},
		{[]string{"--metrics", today.api}, 1, "Set storage.tsdb.out_of_order_time_window"},
	} {
		out, err := replay(t, append([]string{tr.dir}, tt.args...)...)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, out)
		assert.Equal(t, tt.code, exit.ExitCode(), out)
		assert.Contains(t, out, tt.want)
		assert.Equal(t, 1, strings.Count(strings.TrimPrefix(out, passedOver), "\n"), out)
	}
}

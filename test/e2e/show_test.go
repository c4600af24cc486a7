//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shown runs `trainbridge show` with COLUMNS.
func shown(t *testing.T, columns string, args ...string) string {
	t.Helper()
	cmd := exec.Command(trainbridgeBin(t), append([]string{"show"}, args...)...)
	cmd.Env = append(os.Environ(), "COLUMNS="+columns)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoErrorf(t, err, "%s", stderr.Bytes())
	return string(out)
}

// `show` on a real Jaeger prints the generator's figures, over all traces and not the latest hundred; with a limit it states the share read.
func TestShow(t *testing.T) {
	t.Parallel()
	j := startJaeger(t)
	logs := t.TempDir()
	tr := generate(
		t, logs, "--workers", "2", "--batches", "320", "--seed", "14", "--na", "0.02", "--crash", "0.01", "--overhead-high", "0.3", "--duration-scale", "0.1",
	)
	c := newCollector(t, trainbridgeBin(t), globOf(logs), j.otlp, `receivers: {tq_trace: {pending_timeout: 2s, run_id: e2e, service_name: verl}}`)
	c.up(t)
	a := tr.await(t, j.verl)

	want := sumsOf(t, tr)
	var doc struct {
		Traces    struct{ Read, There int }
		Functions []struct {
			Function          string
			Calls, Incomplete int64
			Overhead          float64 `json:"overhead_ratio"`
		}
		Runs []struct {
			Run    string
			Traces int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(shown(t, "", "--jaeger", j.ui, "--format=json")), &doc))
	assert.Greater(t, doc.Traces.There, 300)
	assert.Equal(t, doc.Traces.There, doc.Traces.Read)
	assert.Len(t, doc.Functions, len(want))
	for _, f := range doc.Functions {
		w := want[f.Function]
		require.NotNil(t, w, f.Function)
		assert.Equal(t, w.calls, f.Calls, f.Function)
		assert.Equal(t, w.incomplete, f.Incomplete, f.Function)
		assert.InDelta(t, float64(w.overhead)/float64(w.duration), f.Overhead, 1e-4)
	}
	there := doc.Traces.There
	require.NoError(t, json.Unmarshal([]byte(shown(t, "", "--jaeger", j.ui, "--list", "--format=json")), &doc))
	require.Len(t, doc.Runs, 1)
	assert.Equal(t, "e2e", doc.Runs[0].Run)
	assert.Equal(t, there, doc.Runs[0].Traces)
	assert.LessOrEqual(t, there, len(a.traces))

	text := shown(t, "72", "--jaeger", j.ui, "--run", "e2e", "--limit", "50")
	assert.Regexp(t, `^The latest 50 of (more than )?\d+ traces of run e2e,`, text) // more: counting the others ends after some time
	assert.Contains(t, strings.ReplaceAll(text, "\n  ", " "), "; --limit raises it")
	for line := range strings.SplitSeq(text, "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 72, line)
	}
	c.stop(t)
}

// functionSum is the truth about the calls of a function; durations are in microseconds.
type functionSum struct{ calls, incomplete, duration, overhead int64 }

func sumsOf(t *testing.T, tr *truth) map[string]*functionSum {
	t.Helper()
	want := map[string]*functionSum{}
	for _, f := range tr.functions {
		if want[f.Func] == nil {
			want[f.Func] = new(functionSum)
		}
		if f.Outcome != complete {
			want[f.Func].incomplete++
			continue
		}
		require.NotNil(t, f.Ratios)
		want[f.Func].calls++
		want[f.Func].duration += f.DurationUS
		want[f.Func].overhead += f.Ratios.Overhead.Num
	}
	return want
}

// For one log, `show` prints the same from Jaeger, Tempo and the collector's file exporter, to the last figure.
func TestShowSources(t *testing.T) {
	t.Parallel()
	j, s := startJaeger(t), startTempo(t)
	logs, dir := t.TempDir(), t.TempDir()
	lines, proto := filepath.Join(dir, "spans.json"), filepath.Join(dir, "spans.proto")
	tr := generate(t, logs, "--workers", "2", "--batches", "60", "--seed", "15", "--na", "0.02", "--crash", "0.01", "--overhead-high", "0.3",
		"--duration-scale", "0.1")
	c := newCollector(t, trainbridgeBin(t), globOf(logs), j.otlp, fmt.Sprintf(`
receivers: {tq_trace: {pending_timeout: 2s, run_id: e2e, service_name: verl}}
exporters:
  otlp/tempo: {endpoint: %q, tls: {insecure: true}}
  file: {path: %q}
  file/proto: {path: %q, format: proto}
service: {pipelines: {traces: {exporters: [otlp_acked, otlp/tempo, file, file/proto, train_metrics]}}}
`, s.otlp, lines, proto))
	c.up(t)
	tr.await(t, j.verl)

	document := func(args ...string) (doc map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(shown(t, "", append(args, "--format=json")...)), &doc))
		for _, name := range []string{"jaeger", "tempo", "files"} {
			delete(doc, name)
		}
		return doc
	}
	for _, args := range [][]string{{"--tempo", s.api}, {"--file", lines}, {"--file", proto}, {"--file", lines, "--file", proto}} {
		eventually(t, func() error {
			want, got := document("--jaeger", j.ui), document(args...)
			require.NotEmpty(t, want["functions"])
			if !assert.ObjectsAreEqual(want, got) {
				return fmt.Errorf("%s: %v, want %v", args, got, want)
			}
			return nil
		})
	}
	c.stop(t)
}

package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/document"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/show"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// outputs are a job, with the text of all outputs.
func outputs(t *testing.T) (made *digest.Job, said map[string]string, doc document.Document) {
	t.Helper()
	dir := t.TempDir()
	job(t, dir, "--ranks", "2", "--steps", "40", "--faults", "straggler,data_loading")
	in, err := offline.Open([]string{dir}, nil)
	require.NoError(t, err)
	defer in.Close()
	spans := new(consumertest.TracesSink)
	_, err = offline.Read(t.Context(), in, offline.Options{Run: "job"}, offline.Sink{Traces: spans})
	require.NoError(t, err)
	jobs, all := digest.New(), ptrace.NewTraces()
	for _, td := range spans.AllTraces() {
		jobs.Batch(td)
		td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	require.Len(t, jobs.Rows(), 1)
	made = jobs.Rows()[0]

	text := regexp.MustCompile(`\s+`).ReplaceAllString(textOf(t, dir, "--run", "job"), " ")
	page, err := report(t, "", dir, "--run", "job", "--format", "html")
	require.NoError(t, err)
	out, err := report(t, "", dir, "--run", "job", "--format", "json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	lines, err := new(ptrace.JSONMarshaler).MarshalTraces(all)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "spans.json")
	require.NoError(t, os.WriteFile(file, append(lines, '\n'), 0o600))
	cmd := show.NewCommand()
	var shown bytes.Buffer
	cmd.SetOut(&shown)
	cmd.SetArgs([]string{"--file", file, "--width", "250", "--limit", "0"})
	require.NoError(t, cmd.Execute())
	return made, map[string]string{"text": text, "page": page, "show": shown.String()}, doc
}

// The text, the page, the sentence in the span, the JSON document and show say the same digits of the same job.
func TestSameDigits(t *testing.T) {
	made, said, doc := outputs(t)
	w := made.Windows.Rows()[0]
	slow := w.Slow[0].Of
	took := human.Seconds(slow.Took)
	assert.True(t, strings.HasPrefix(slow.Reason, "Step "+human.Thousands(slow.Iteration.N)+" took "+took+", "), slow.Reason)
	holds := func(what string, in ...string) {
		t.Helper()
		for _, name := range in {
			assert.Contains(t, said[name], what, name)
		}
	}
	same := func(want string, number any, write func(float64) string) {
		t.Helper()
		var x float64
		encoded, err := json.Marshal(number)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(encoded, &x))
		assert.Equal(t, want, write(x), "JSON")
	}
	step := doc.Jobs[0].Windows[0]
	holds(took, "page", "show")
	same(took, step.Slowest[0].Duration, human.Seconds)
	middle := human.Seconds(w.Took.Quantile(0.5))
	holds(middle, "text", "page", "show")
	same(middle, step.Duration.P50, human.Seconds)
	for i, p := range w.ByTime()[:3] {
		share := human.Percent(w.Share(p))
		holds(share, "text", "page", "show")
		same(share, step.Parts[i].Share, human.Percent)
		holds(human.Seconds(p.All.Sum()), "text", "page")
		same(human.Seconds(p.All.Sum()), step.Parts[i].Duration.Sum, human.Seconds)
	}
	for i, o := range made.Collectives.Operations() {
		late, longest := human.Seconds(o.Late.Quantile(0.5)), human.Seconds(o.Took.Max())
		holds(late, "text", "page", "show")
		holds(longest, "text", "page", "show")
		same(late, doc.Jobs[0].Collectives.Operations[i].Late.P50, human.Seconds)
		same(longest, doc.Jobs[0].Collectives.Operations[i].Duration.Max, human.Seconds)
	}
	for i, f := range made.Functions.Rows() {
		s := f.Sums()
		overhead := human.Percent(s.Ratio(s.Get + s.Put))
		holds(overhead, "page", "show")
		same(overhead, doc.Jobs[0].TransferQueue.Functions[i].Overhead, human.Percent)
	}
}

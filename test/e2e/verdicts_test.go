//go:build e2e

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// verdictsConfig is the part merged by the binary over its configuration if TRAINBRIDGE_VERDICTS is set.
func verdictsConfig(tb testing.TB) string {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join(repoRoot, "otelcol-verdicts.yaml"))
	require.NoError(tb, err)
	return path
}

// said is a verdict about a span, as on the span and in its record.
type said struct {
	trace        pcommon.TraceID
	span         pcommon.SpanID
	name, reason string
	time         pcommon.Timestamp
}

// recordsIn are the verdicts in a file of log records with their multiplicity, and their number. An incomplete last line does not count yet.
func recordsIn(path string) (records map[said]int, n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	records = map[said]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(lines.Bytes())
		if err != nil {
			return nil, 0, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					n++
					records[said{r.TraceID(), r.SpanID(), spans.AttrText(r.Attributes(), spans.AttrVerdictName), r.Body().Str(), r.Timestamp()}]++
				}
			}
		}
	}
	return records, n, lines.Err()
}

// verdictsOn are the verdicts on all spans of a backend, each once.
func (a *answer) verdictsOn() map[said]int {
	all := map[said]int{}
	for _, trace := range a.traces {
		for _, n := range trace {
			for v := range view.Verdicts(n.Span) {
				all[said{n.TraceID(), n.SpanID(), v.Name, v.Reason, v.Time}] = 1
			}
		}
	}
	return all
}

// awaitSlowSteps waits until the records have the cause of each truly slow step.
func awaitSlowSteps(t *testing.T, tr *jobTruth, path string) {
	t.Helper()
	slow := 0
	eventually(t, func() error {
		records, _, err := recordsIn(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		reasons := map[pcommon.TraceID]string{}
		for r := range records {
			if r.name == spans.VerdictStepSlow {
				reasons[r.trace] = r.reason
			}
		}
		slow = 0
		for _, s := range tr.Steps {
			if s.Cause == nil || s.Step <= 13 || s.Time[spans.PartCheckpoint]+s.Time[spans.PartEvaluation] > 0 {
				continue // too few earlier steps to compare
			}
			slow++
			if reasons[spans.TraceID("", []byte(s.TraceID))] == "" {
				return fmt.Errorf("no record says why step %d was slow", s.Step)
			}
		}
		return nil
	})
	assert.Positive(t, slow)
}

// recordedOnce says whether the verdicts on the spans in Jaeger are the records in a file, each once, and returns their number.
func recordedOnce(j *jaeger, path string) (n int, err error) {
	records, n, err := recordsIn(path)
	if err != nil {
		return 0, err
	}
	td, err := j.find("")
	if err != nil {
		return 0, err
	}
	if on := readAll(td).verdictsOn(); n != len(records) || !maps.Equal(on, records) {
		return 0, fmt.Errorf("%d records of %d verdicts, %d verdicts in Jaeger", n, len(records), len(on))
	}
	return n, nil
}

// sendTwice sends a verdict twice, like a client without an answer.
func sendTwice(t *testing.T, otlp string, at time.Time) {
	t.Helper()
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{2})
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
	span.SetEndTimestamp(span.StartTimestamp())
	e := span.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.SetTimestamp(span.EndTimestamp())
	e.Attributes().PutStr(spans.AttrVerdictName, spans.VerdictNCCLHang)
	e.Attributes().PutStr(spans.AttrVerdictReason, "It hangs.")
	for range 2 {
		require.NoError(t, sendTraces(t, otlp, td))
	}
}

// Each verdict on a span in Jaeger is one record in the file, with the ids of its trace and span; the truly slow steps are among them. A batch sent twice makes
// no second record. A second connector with a low rate writes up to its limit, and counts the rest.
func TestVerdictsAsRecords(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "16", "--steps", "50", "--seed", "3", "--fault-every", "4", "--faults", jobFaults)
	dir := t.TempDir()
	all, few := filepath.Join(dir, "new", "anomalies.log"), filepath.Join(dir, "few.log")
	j := startJaeger(t)
	otlp := freeAddr(t)
	c := newCollector(t, trainbridgeBin(t), tr.dir+"/tq/*", j.otlp, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
connectors: {train_verdicts/few: {rate_limit: 0.1}}
exporters: {file/few: {path: %q}}
service:
  pipelines:
    traces: {exporters: [otlp_acked, train_metrics, train_verdicts, train_verdicts/few]}
    logs/few: {receivers: [train_verdicts/few], exporters: [file/few]}
`, otlp, few))
	c.args = append([]string{"--config", shippedConfig(t), "--config", verdictsConfig(t)}, c.args[2:]...)
	c.env = append(c.env, "TRAINBRIDGE_RUN_ID="+tr.RunID, "TRAINBRIDGE_TRAIN_LOGS="+tr.dir+"/train/*", "TRAINBRIDGE_ZMQ_LOGS="+tr.dir+"/zmq/*",
		"TRAINBRIDGE_NCCL_LOGS="+tr.dir+"/nccl/*", "TRAINBRIDGE_VERDICTS="+all)
	c.up(t)
	began := time.Now()
	awaitSlowSteps(t, tr, all)
	sendTwice(t, otlp, began)
	written := 0
	eventually(t, func() error { // files, Jaeger and counters are of different moments, until nothing more comes
		n, err := recordedOnce(j, all)
		if err != nil {
			return err
		}
		_, written, err = recordsIn(few)
		if err != nil {
			return err
		}
		own, err := c.ownMetrics()
		counted := map[string]int{}
		for _, m := range own {
			if name, ok := strings.CutPrefix(m.name, "otelcol_connector_train_verdicts_"); ok {
				counted[name] += int(m.value)
			}
		}
		want := map[string]int{"records": n + written, "over_limit": n - written, "duplicates": 2} // by both connectors
		for name, v := range want {
			if err == nil && counted[name] != v {
				err = fmt.Errorf("%v are counted, want %v", counted, want)
			}
		}
		return err
	})
	took := time.Since(began)
	c.stop(t)
	_, err := recordedOnce(j, all)
	require.NoError(t, err)
	assert.Positive(t, written)
	assert.LessOrEqual(t, written, 1+int(took.Seconds()/10+1))
}

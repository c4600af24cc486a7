//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// jobTruth is the truth of a job written by `trainbridge gen run`.
type jobTruth struct {
	dir    string
	RunID  string `json:"run_id"`
	Tokens int64
	Steps  []*jobStep
}

// jobStep is a step: the seconds of each part, the number of spans of each kind, and the cause of slowness.
type jobStep struct {
	Step             int
	TraceID          string `json:"trace_id"`
	Start, End       int64
	Time, Sum, Union map[string]float64
	Spans            map[string]int
	Cause            *struct {
		Kind     string
		Rank     int
		Function string
	}
}

// generateJob writes the logs of one job in all formats.
func generateJob(tb testing.TB, flags ...string) *jobTruth {
	tb.Helper()
	return generateJobIn(tb, tb.TempDir(), flags...)
}

func generateJobIn(tb testing.TB, dir string, flags ...string) *jobTruth {
	tb.Helper()
	tr := &jobTruth{dir: dir}
	run(tb, nil, trainbridgeBin(tb), append([]string{"gen", "run", tr.dir}, flags...)...)
	text, err := os.ReadFile(filepath.Join(tr.dir, "truth.json"))
	require.NoError(tb, err)
	require.NoError(tb, json.Unmarshal(text, tr))
	require.NotEmpty(tb, tr.Steps)
	return tr
}

// jobBed is the shipped collector on the logs of a job, with its backends.
type jobBed struct {
	*collector
	jaeger *jaeger
	tempo  *tempo
}

func (tr *jobTruth) read(t *testing.T) *jobBed {
	t.Helper()
	return tr.readFor(t, "10s") // the shipped value
}

// readFor is read with another wait of step_join.
func (tr *jobTruth) readFor(t *testing.T, wait string) *jobBed {
	t.Helper()
	b := &jobBed{jaeger: startJaeger(t), tempo: startTempo(t)}
	b.collector = newCollector(t, trainbridgeBin(t), tr.dir+"/tq/*", b.jaeger.otlp, fmt.Sprintf(`
processors: {step_join: {wait: %s}}
exporters: {otlp_acked/tempo: {endpoint: %q, tls: {insecure: true}}}
service: {pipelines: {traces: {exporters: [otlp_acked, otlp_acked/tempo, train_metrics]}}}
`, wait, b.tempo.otlp))
	b.env = append(b.env, "TRAINBRIDGE_RUN_ID="+tr.RunID, "TRAINBRIDGE_TRAIN_LOGS="+tr.dir+"/train/*", "TRAINBRIDGE_ZMQ_LOGS="+tr.dir+"/zmq/*",
		"TRAINBRIDGE_NCCL_LOGS="+tr.dir+"/nccl/*")
	b.up(t)
	return b
}

// await waits until Jaeger has a breakdown for each step of the job, and returns Jaeger's content of the job.
func (b *jobBed) await(t *testing.T, tr *jobTruth) (a *answer, breakdowns map[int]*node) {
	t.Helper()
	held := 0
	eventually(t, func() error {
		td, err := b.jaeger.find("")
		if err != nil {
			return err
		}
		before := held
		held = td.SpanCount()
		a, breakdowns = readAll(td), map[int]*node{}
		for _, trace := range a.traces {
			for _, n := range trace {
				if n.Name() == spans.SpanBreakdown {
					breakdowns[int(n.int(spans.AttrIteration))] = n
				}
			}
		}
		if len(breakdowns) < len(tr.Steps) {
			return fmt.Errorf("%d breakdowns of %d steps", len(breakdowns), len(tr.Steps))
		}
		if held != before { // joined spans follow the breakdowns, too
			return fmt.Errorf("%d spans, %d before", held, before)
		}
		return a.err()
	})
	assert.Len(t, breakdowns, len(tr.Steps))
	b.assertQuiet(t)
	return a, breakdowns
}

// oneRun checks that all spans are of one run, with one span of the run.
func oneRun(t *testing.T, tr *jobTruth, a *answer) {
	t.Helper()
	runs := 0
	for _, trace := range a.traces {
		for _, n := range trace {
			assert.Equal(t, tr.RunID, n.str(spans.AttrRunID), n.Name())
			if n.Name() == spans.SpanRun {
				runs++
			}
		}
	}
	assert.Equal(t, 1, runs, "spans "+spans.SpanRun)
}

// kindsOf counts the spans of a trace by kind, and returns its depth.
func kindsOf(t *testing.T, trace map[pcommon.SpanID]*node) (kinds map[string]int, roots []*node, deepest int) {
	t.Helper()
	kinds = map[string]int{}
	for _, n := range trace {
		if kind := n.str(spans.AttrKind); kind != "" {
			kinds[kind]++
		} else if view.KindOf(n.Span) == view.KindStep { // the kind follows from the name
			kinds[spans.KindStep]++
		}
		if n.ParentSpanID().IsEmpty() {
			roots = append(roots, n)
		}
		depth := 1
		for up := trace[n.ParentSpanID()]; up != nil && depth < 100; up = trace[up.ParentSpanID()] {
			depth++
		}
		deepest = max(deepest, depth)
	}
	return kinds, roots, deepest
}

// checkBreakdown compares a breakdown with the truth. Unknown parts are left out.
func (s *jobStep) checkBreakdown(t *testing.T, n *node, only ...string) {
	t.Helper()
	for prefix, want := range map[string]map[string]float64{spans.StepTimePrefix: s.Time, spans.StepSumPrefix: s.Sum, spans.StepUnionPrefix: s.Union} {
		got := map[string]float64{}
		for name, v := range n.Attributes().All() {
			if part, ok := strings.CutPrefix(name, prefix); ok {
				got[part] = v.Double()
			}
		}
		for part, v := range want {
			if part == spans.PartUnattributed && prefix != spans.StepTimePrefix || len(only) > 0 && !slices.Contains(only, part) {
				continue
			}
			assert.InDelta(t, v, got[part], 1e-6, "step %d: %s%s", s.Step, prefix, part)
			delete(got, part)
		}
		if len(only) == 0 {
			assert.Empty(t, got, "step %d: not in the truth", s.Step)
		}
	}
}

// because is the first cause in the verdict of a breakdown; empty without a verdict.
func because(n *node) string {
	for v := range view.Verdicts(n.Span) {
		_, causes, _ := strings.Cut(v.Reason, "): ")
		causes, _, _ = strings.Cut(causes, ", ")
		causes, _, _ = strings.Cut(causes, ";")
		return strings.TrimSuffix(causes, ".") + " "
	}
	return ""
}

// cause is the verdict's name for the cause of the slow step.
func (s *jobStep) cause() string {
	switch c := s.Cause; c.Kind {
	case "straggler", "gpu":
		return fmt.Sprintf("waiting for rank %d ", c.Rank)
	case "link":
		return "in collectives "
	case "data_loading":
		return "loading data "
	case "get":
		return "in TransferQueue GET "
	case "put":
		return "in TransferQueue PUT "
	case "rpc.serialize":
		return "serializing RPC requests "
	}
	return "?"
}

// checkCause checks that the verdict on the breakdown names the cause, where enough earlier steps exist for comparison: 13, which steps with a checkpoint or an
// evaluation never reach.
func (s *jobStep) checkCause(t *testing.T, n *node) {
	t.Helper()
	if s.Cause != nil && s.Step > 13 && s.Time[spans.PartCheckpoint] == 0 && s.Time[spans.PartEvaluation] == 0 {
		assert.Contains(t, because(n), s.cause(), "step %d", s.Step)
	}
}

const jobFaults = "straggler,link,gpu,data_loading,get,put,rpc.serialize"

// If all logs of a job carry the id of the step, Jaeger and Tempo have one trace per step, with one root and every log's spans of the step; the breakdown is
// exact, and names the cause of a slow step.
func TestJobWithIDs(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"50 steps": {"--ranks", "16", "--steps", "50", "--seed", "3", "--fault-every", "4", "--faults", jobFaults},
		"5 steps":  {"--ranks", "16", "--steps", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := generateJob(t, flags...)
			b := tr.read(t)
			a, breakdowns := b.await(t, tr)
			oneRun(t, tr, a)
			assert.Len(t, a.traces, 2*len(tr.Steps)+2, "steps, the passes of RPCs, the run, and the session of RPCs before the first step")
			ids := map[pcommon.TraceID]bool{}
			for _, s := range tr.Steps {
				id := spans.TraceID("", []byte(s.TraceID))
				ids[id] = true
				n := breakdowns[s.Step]
				require.NotNil(t, n, "breakdown of step %d", s.Step)
				assert.Equal(t, id, n.TraceID(), "the trace of step %d", s.Step)
				s.checkBreakdown(t, n)
				s.checkCause(t, n)
				kinds, roots, _ := kindsOf(t, a.traces[spans.ClocklessTraceID(id)])
				require.Len(t, roots, 1)
				assert.Equal(t, []int{1, s.Spans[spans.KindCall]}, []int{kinds[spans.KindPass], kinds[spans.KindCall]}, "the pass of step %d", s.Step)
				for backend, get := range map[string]func(pcommon.TraceID) (ptrace.Traces, error){"Jaeger": b.jaeger.trace, "Tempo": b.tempo.trace} {
					s.checkTrace(t, backend, id, get)
				}
			}
			b.tempo.awaitFound(t, `{ .trainbridge.join.by = "id" }`, ids)
			b.tempo.awaitFound(t, `{ span.trainbridge.join.by != "" }`, ids)
			b.tempo.awaitFound(t, `{ name = "breakdown" }`, ids)
			tr.checkStepTime(t, b)
			b.jaeger.checkSlowFound(t, breakdowns)
			b.stop(t)
		})
	}
}

// checkSlowFound searches Jaeger for slow steps as docs/jaeger.md says: Jaeger wants the tag and the operation on one span.
func (j *jaeger) checkSlowFound(t *testing.T, breakdowns map[int]*node) {
	t.Helper()
	mark := spans.AttrVerdictPrefix + spans.VerdictStepSlow
	slow := 0
	for _, n := range breakdowns {
		if v, ok := n.Attributes().Get(mark); ok && v.Bool() {
			slow++
		}
	}
	for _, operation := range []string{"", spans.SpanBreakdown} {
		found, err := j.pages("verl", "tags", fmt.Sprintf(`{%q:"true"}`, mark), "operation", operation)
		require.NoError(t, err)
		assert.Len(t, found, slow, "operation %q", operation)
	}
}

// kinds are the numbers of spans of each kind in the trace of the step. The pass of RPCs, not placed by any clock, has a trace of its own, with a copy here of
// its three slowest calls.
func (s *jobStep) kinds() map[string]int {
	kinds := map[string]int{spans.KindRoot: 1, spans.KindBreakdown: 1}
	maps.Copy(kinds, s.Spans)
	kinds[spans.KindJoined] = kinds[spans.KindPass] + min(3, kinds[spans.KindCall])
	delete(kinds, spans.KindPass)
	delete(kinds, spans.KindCall)
	return kinds
}

// checkTrace holds a backend's answer to the id of a step against the truth.
func (s *jobStep) checkTrace(t *testing.T, backend string, id pcommon.TraceID, get func(pcommon.TraceID) (ptrace.Traces, error)) {
	t.Helper()
	want := s.kinds()
	var a *answer
	size := 0
	eventually(t, func() error { // Tempo finds accepted spans after a delay
		td, err := get(id)
		if err != nil {
			return err
		}
		a, size = readAll(td), (&ptrace.ProtoMarshaler{}).TracesSize(td)
		if kinds, _, _ := kindsOf(t, a.traces[id]); !assert.ObjectsAreEqual(want, kinds) {
			return fmt.Errorf("%s: step %d has %v, want %v", backend, s.Step, kinds, want)
		}
		return nil
	})
	require.NoError(t, a.err(), backend)
	assert.Len(t, a.traces, 1)
	assert.Zero(t, a.copies, "%s: copies of spans", backend)
	_, roots, deepest := kindsOf(t, a.traces[id])
	require.Len(t, roots, 1, "%s: roots of step %d", backend, s.Step)
	assert.Equal(t, spans.SpanTQBatch, roots[0].Name())
	assert.Equal(t, int64(s.Step), roots[0].int(spans.AttrIteration))
	assert.Equal(t, s.End-s.Start, roots[0].duration(), "%s: the root of step %d", backend, s.Step)
	assert.LessOrEqual(t, deepest, 12)
	assert.LessOrEqual(t, a.ids, 2000)
	assert.Less(t, size, 4<<20)
}

// checkStepTime holds the metric of where the time went against the sums of all breakdowns.
func (tr *jobTruth) checkStepTime(t *testing.T, b *jobBed) {
	t.Helper()
	prom := startPrometheus(t, b.scrape...)
	want := map[string]float64{}
	for _, s := range tr.Steps {
		for part, v := range s.Time {
			want[part] += v
		}
	}
	eventually(t, func() error {
		got, err := prom.query(`sum by (ml_step_part) (ml_step_time_seconds_total)`)
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return errors.New("no ml_step_time_seconds_total yet")
		}
		for _, s := range got {
			if part := s.Metric["ml_step_part"]; math.Abs(s.Value-want[part]) > 1e-6*float64(len(tr.Steps)) {
				return fmt.Errorf("%s: %v s, want %v", part, s.Value, want[part])
			}
		}
		if len(got) < len(want) {
			return fmt.Errorf("%d series, want %d", len(got), len(want))
		}
		return nil
	})
}

// Without ids, all layers with a clock in their logs are in the trace of the step, in their true number, and TraceQL finds them. The table of RPCs has no
// clock: if written before the collector's start, its passes join nothing.
func TestJobWithoutIDs(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "16", "--steps", "50", "--ids", "none", "--seed", "5", "--fault-every", "4", "--faults", "straggler,link,data_loading,get,put")
	b := tr.read(t)
	a, breakdowns := b.await(t, tr)
	oneRun(t, tr, a)
	joined, slow := map[pcommon.TraceID]bool{}, map[pcommon.TraceID]bool{}
	for id, trace := range a.traces {
		_, roots, deepest := kindsOf(t, trace)
		assert.Len(t, roots, 1, "roots of trace %s", id)
		assert.LessOrEqual(t, deepest, 12)
		for _, n := range trace {
			if _, ok := n.Attributes().Get(spans.AttrJoinBy); ok {
				joined[id] = true
			}
		}
	}
	for _, s := range tr.Steps {
		n := breakdowns[s.Step]
		require.NotNil(t, n, "breakdown of step %d", s.Step)
		if s.Time[spans.PartGet] > 1 {
			slow[n.TraceID()] = true
		}
		s.checkBreakdown(t, n, spans.PartGet, spans.PartPut, spans.PartCollective, spans.PartWait, spans.PartDataLoading, spans.PartCheckpoint, spans.PartEvaluation)
		s.checkCause(t, n)
		s.checkAggregates(t, a.traces[n.TraceID()])
	}
	assert.NotEmpty(t, slow, "no step whose GET takes more than a second")
	b.tempo.awaitFound(t, `{ span.trainbridge.join.by != "" }`, joined)
	b.tempo.awaitFound(t, `{ name = "breakdown" && span.ml.step.time.get > 1.0 }`, slow)
	b.stop(t)
}

// checkAggregates checks that the trace of a step has all of each layer, and that links lead to existing spans.
func (s *jobStep) checkAggregates(t *testing.T, trace map[pcommon.SpanID]*node) {
	t.Helper()
	got := map[string]int{}
	for _, n := range trace {
		if n.str(spans.AttrKind) != spans.KindAggregate {
			continue
		}
		kind := spans.KindFunction
		if n.str(spans.AttrNCCLOperation) != "" {
			kind = spans.KindCollective
		}
		got[kind] += int(n.int(spans.AttrAggregateCount))
	}
	want := map[string]int{}
	for _, kind := range []string{spans.KindFunction, spans.KindCollective} {
		want[kind] = s.Spans[kind]
	}
	assert.Equal(t, want, got, "step %d", s.Step)
}

// A step of 20,000 collectives opens in Jaeger and in Tempo: the step has their number, and each is a trace of its own.
func TestJobManyCollectives(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "2", "--steps", "1", "--ids", "none", "--collectives-per-step", "20000", "--checkpoint-every", "0", "--eval-every", "0")
	b := tr.readFor(t, "25s") // beside other tests, reading 40,000 lines may take a shipped collector longer than its wait
	s := tr.Steps[0]
	require.Equal(t, 20000, s.Spans[spans.KindCollective])
	id := spans.StepTraceID(tr.RunID, int64(s.Step))
	for backend, get := range map[string]func(pcommon.TraceID) (ptrace.Traces, error){"Jaeger": b.jaeger.trace, "Tempo": b.tempo.trace} {
		var a *answer
		size := 0
		eventually(t, func() error {
			td, err := get(id)
			if err != nil {
				return err
			}
			a, size = readAll(td), (&ptrace.ProtoMarshaler{}).TracesSize(td)
			if kinds, _, _ := kindsOf(t, a.traces[id]); kinds[spans.KindBreakdown] == 0 {
				return fmt.Errorf("%s has no breakdown yet: %v", backend, kinds)
			}
			return nil
		})
		require.NoError(t, a.err())
		s.checkAggregates(t, a.traces[id])
		_, roots, deepest := kindsOf(t, a.traces[id])
		assert.Len(t, roots, 1)
		assert.LessOrEqual(t, deepest, 12)
		assert.LessOrEqual(t, a.ids, 2000)
		assert.Less(t, size, 4<<20)
	}
	b.assertQuiet(t)
	b.stop(t)
}

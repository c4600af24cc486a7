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
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// trainLog is a generated training log with its truth. Its name is its service and its run id.
type trainLog struct {
	name, receiver string // receiver: component id
	dir            string
	run            trainRun
	records        []*trainRecord
}

type trainRun struct {
	Spans         map[string]int
	Model         map[string]any
	Device        string
	FlopsMegatron float64 `json:"flops_megatron"`
}

type trainRecord struct {
	Kind         string
	File         string
	Record       int64
	Iteration    int64
	EndUnixNano  int64 `json:"end_unix_nano"`
	StepsCovered int64 `json:"steps_covered"`
	Values       map[string]any
	Stages       []struct {
		Name    string
		Seconds float64
		Min     float64 `json:"min_seconds"`
	}
	MFU float64
}

// generateTrain writes a log of a kind, also the name of a receiver: "jsonl" or, with flags of its own, "jsonl/minimal".
func generateTrain(tb testing.TB, name, receiver string, flags ...string) *trainLog {
	tb.Helper()
	return generateTrainIn(tb, tb.TempDir(), name, receiver, flags...)
}

func generateTrainIn(tb testing.TB, dir, name, receiver string, flags ...string) *trainLog {
	tb.Helper()
	l := &trainLog{name: name, receiver: receiver, dir: dir}
	format, _, _ := strings.Cut(name, "-")
	truth := filepath.Join(tb.TempDir(), "truth.json")
	gen(tb, append([]string{format, "--out", l.dir, "--truth", truth, "--seed", "7"}, flags...)...)
	f, err := os.Open(truth)
	require.NoError(tb, err)
	defer f.Close()
	for dec := json.NewDecoder(f); ; {
		var rec struct {
			trainRecord
			Run *trainRun
		}
		require.NoErrorf(tb, dec.Decode(&rec), "%s after %d records", truth, len(l.records))
		if rec.Run != nil {
			l.run = *rec.Run
			return l
		}
		l.records = append(l.records, &rec.trainRecord)
	}
}

// steps are the records of steps.
func (l *trainLog) steps() []*trainRecord {
	return slices.DeleteFunc(slices.Clone(l.records), func(r *trainRecord) bool { return r.Kind != spans.SpanStep })
}

// number is a value of the truth; ok is false if the record has no such value.
func (r *trainRecord) number(name string) (v float64, ok bool) {
	switch x := r.Values[name].(type) {
	case float64:
		return x, true
	case string:
		v, err := strconv.ParseFloat(x, 64)
		return v, err == nil
	}
	return 0, false
}

// numberOf is a numeric attribute, also as text where JSON has no such number.
func numberOf(v pcommon.Value) float64 {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		return v.Double()
	case pcommon.ValueTypeInt:
		return float64(v.Int())
	case pcommon.ValueTypeStr:
		if x, err := strconv.ParseFloat(v.Str(), 64); err == nil {
			return x
		}
	case pcommon.ValueTypeSlice: // of devices
		sum := 0.0
		for _, e := range v.Slice().All() {
			sum += e.Double()
		}
		return sum / float64(v.Slice().Len())
	}
	return math.Inf(-1)
}

func same(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Abs(b)
}

// check compares a backend's answer with the truth: each record is one span, with the printed numbers in base units, and no other spans exist.
func (l *trainLog) check(td ptrace.Traces) *trainAnswer {
	a := &trainAnswer{answer: read(td), found: make(map[*trainRecord]*node)}
	type key struct {
		name string
		at   int64
		end  int64 // of iterations repeated after a restart
	}
	nodes := make(map[key]*node)
	count := make(map[string]int)
	for _, trace := range a.traces {
		for _, n := range trace {
			at := n.int(spans.AttrIteration)
			if at == 0 {
				at = -n.int(spans.AttrRecord)
			}
			k := key{n.Name(), at, 0}
			if len(n.str(spans.AttrStage)) > 0 {
				count["stages"]++
				continue
			}
			count[n.Name()]++
			if n.str(spans.AttrTimeSource) == string(spans.TimeDerived) {
				k.end = int64(n.EndTimestamp())
			}
			nodes[k] = n
		}
	}
	delete(count, spans.SpanRun)
	if !maps.Equal(count, l.run.Spans) {
		a.missing = append(a.missing, fmt.Sprintf("spans are %v, want %v", count, l.run.Spans))
	}
	for _, r := range l.records {
		at := r.Iteration
		if at == 0 && r.Kind == spans.SpanStep {
			at = -r.Record
		}
		n := nodes[key{r.Kind, at, r.EndUnixNano}]
		if n == nil && r.Kind != spans.SpanStep { // records without a place of their own are with the record before
			continue
		}
		if n == nil {
			a.missing = append(a.missing, fmt.Sprintf("no %s of iteration %d, record %d, ending at %d", r.Kind, r.Iteration, r.Record, r.EndUnixNano))
			continue
		}
		a.found[r] = n
		a.record(r, n)
	}
	return a
}

type trainAnswer struct {
	*answer
	found map[*trainRecord]*node
}

func (a *trainAnswer) record(r *trainRecord, n *node) {
	if r.Kind == spans.SpanSummary { // its statistics are of the run, not of a step
		return
	}
	for name := range r.Values {
		want, _ := r.number(name)
		if name == spans.AttrStepDuration {
			continue // the span's length has the value: see below
		}
		v, ok := n.get(name)
		if !ok || !same(numberOf(v), want) {
			a.wrong("%s of %s %d is %q, want %v", name, r.Kind, r.Iteration, n.str(name), want)
		}
	}
	if r.Kind != spans.SpanStep {
		return
	}
	if got := n.int(spans.AttrStepsCovered); r.Iteration > 0 && got != 0 && got != r.StepsCovered {
		a.wrong("iteration %d covers %d steps, want %d", r.Iteration, got, r.StepsCovered)
	}
	if d, ok := r.number(spans.AttrStepDuration); ok {
		steps := max(n.int(spans.AttrStepsCovered), 1)
		if want := d * 1e9 * float64(steps); math.Abs(float64(n.duration())-want) > 2*float64(steps) {
			a.wrong("iteration %d lasts %d ns, want %.0f", r.Iteration, n.duration(), want)
		}
	}
	parts := make(map[string]*node)
	n.below(func(c *node) { parts[c.Name()] = c })
	for _, st := range r.Stages {
		c := parts[st.Name]
		if c == nil || math.Abs(float64(c.duration())-st.Seconds*1e9) > 2 {
			a.wrong("part %s of iteration %d is not %v s long: %v", st.Name, r.Iteration, st.Seconds, c)
		}
	}
}

// Training logs in; waterfalls in Jaeger and Tempo, curves in Prometheus, all equal to the truth.
func TestTrain(t *testing.T) {
	t.Parallel()
	j, s := startJaeger(t), startTempo(t)
	megatron := generateTrain(
		t, "megatron", "flagscale/megatron", "--steps", "60", "--log-interval", "1", "--slow", "0.15", "--slow-factor", "2", "--prefix", "torchrun",
	)
	logs := []*trainLog{
		generateTrain(t, "flagscale", "flagscale", "--steps", "60", "--interval", "5", "--breakdown"),
		megatron,
		generateTrain(t, "jsonl", "train_log/jsonl", "--steps", "60", "--fields", "40", "--nan-loss-at", "40"),
		generateTrain(t, "hf", "train_log/hf", "--steps", "60"),
		generateTrain(t, "verl", "train_log/verl", "--steps", "12"),
	}
	c := newCollector(t, trainbridgeBin(t), filepath.Join(t.TempDir(), "none"), j.otlp, trainConfig(t, s, logs))
	prom := startPrometheus(t, c.scrape...)
	c.up(t)

	answers := make(map[string]*trainAnswer)
	for _, l := range logs {
		t.Run(l.name, func(t *testing.T) {
			var a *trainAnswer
			eventually(t, func() error {
				td, err := j.find(l.name)
				if err != nil {
					return err
				}
				a = l.check(td)
				return a.err()
			})
			answers[l.name] = a
			checkMFU(t, l, a)
			checkTrainPrometheus(t, prom, l)
			checkTrainAccounts(t, c, l)
		})
	}
	if t.Failed() {
		return
	}
	t.Run("Tempo has every trace", func(t *testing.T) {
		for _, l := range logs {
			eventually(t, func() error {
				all, err := s.all(answers[l.name].traces)
				if err != nil {
					return err
				}
				return l.check(all).err()
			})
		}
	})
	t.Run("TraceQL", func(t *testing.T) { megatron.checkTraceQL(t, s, answers["megatron"]) })
	t.Run("verdicts", func(t *testing.T) { checkTrainVerdicts(t, logs, answers) })
	t.Run("promtool", func(t *testing.T) { checkPromtool(t, c.metrics) })
	c.stop(t)
}

// trainConfig has a receiver for each log, under the log's name.
func trainConfig(t *testing.T, s *tempo, logs []*trainLog) string {
	t.Helper()
	var receivers [][2]string
	for _, l := range logs {
		receivers = append(receivers, [2]string{
			l.receiver,
			fmt.Sprintf("{include: [%q], exclude: [], storage: state_storage, run_id: %s, service_name: %s, poll_interval: 50ms}", l.dir+"/*", l.name, l.name),
		})
	}
	// Megatron's log describes its model; for the other logs the config does.
	model, err := json.Marshal(logs[0].run.Model)
	require.NoError(t, err)
	return fmt.Sprintf("processors: {train_perf: {train: {model: %s, device: %q}}}\n", model, logs[0].run.Device) + readersConfig(s, receivers)
}

// checkTraceQL: Tempo finds the slow steps by their MFU.
func (l *trainLog) checkTraceQL(t *testing.T, s *tempo, a *trainAnswer) {
	t.Helper()
	want := make(map[pcommon.TraceID]bool)
	for _, r := range l.steps() {
		if r.MFU < 0.3 {
			want[a.found[r].TraceID()] = true
		}
	}
	require.NotEmpty(t, want)
	require.Less(t, len(want), len(l.steps()))
	s.awaitFound(t, `{ resource.service.name = "megatron" && span.ml.train.flop.utilization < 0.3 }`, want)
}

// Logs that grow while the collector runs; FlagScale's session is restarted, which truncates perf_realtime.log.
func TestTrainLive(t *testing.T) {
	t.Parallel()
	j := startJaeger(t)
	scale, hf := t.TempDir(), t.TempDir()
	c := newCollector(t, trainbridgeBin(t), filepath.Join(t.TempDir(), "none"), j.otlp, fmt.Sprintf(`
receivers:
  flagscale: {include: [%q], run_id: flagscale, service_name: flagscale, poll_interval: 20ms}
  train_log: {include: [%q], run_id: hf, service_name: hf, poll_interval: 20ms}
`, scale+"/*", hf+"/*.log"))
	c.up(t)
	var logs [2]*trainLog
	var both sync.WaitGroup
	both.Go(func() {
		logs[0] = generateTrainIn(t, scale, "flagscale", "flagscale", "--rate", "5", "--steps", "40", "--interval", "1", "--restart", "--breakdown")
	})
	both.Go(func() { logs[1] = generateTrainIn(t, hf, "hf", "train_log", "--rate", "20", "--steps", "200") })
	both.Wait()
	if t.Failed() {
		return
	}
	eventually(t, func() error {
		td, err := j.find("flagscale")
		if err != nil {
			return err
		}
		return logs[0].check(td).err()
	})
	sum := accountsOf(t, c, "flagscale", 1)
	assert.Zero(t, sum["rejected"]+sum["refused"], "%v", sum)
	// Records without a clock and a step are timed by their arrival.
	eventually(t, func() error {
		td, err := j.find("hf")
		if err != nil {
			return err
		}
		steps := 0
		for _, trace := range read(td).traces {
			for _, n := range trace {
				if n.Name() == spans.SpanStep && n.str(spans.AttrTimeSource) == string(spans.TimeObserved) {
					steps++
				}
			}
		}
		want := 0
		for _, r := range logs[1].steps() {
			if r.File != "trainer_state.json" {
				want++
			}
		}
		if steps != want {
			return fmt.Errorf("%d steps with the time of arrival, want %d", steps, want)
		}
		return nil
	})
	c.stop(t)
}

// checkMFU compares train_perf's results with the truth's own arithmetic.
func checkMFU(t *testing.T, l *trainLog, a *trainAnswer) {
	t.Helper()
	if l.name != "flagscale" && l.name != "megatron" {
		return // the other logs have no batch size
	}
	for r, n := range a.found {
		if r.Kind == spans.SpanStep {
			assert.InEpsilon(t, r.MFU, n.attr(spans.AttrMFU), 1e-9, "MFU of iteration %d", r.Iteration)
			assert.InEpsilon(t, l.run.FlopsMegatron, n.attr(spans.AttrFlopCount), 1e-9)
		}
	}
}

// checkTrainPrometheus asks for the sums over the log's steps, and for the last values.
func checkTrainPrometheus(t *testing.T, prom *prometheus, l *trainLog) {
	t.Helper()
	steps := l.steps()
	last := steps[len(steps)-1]
	want := make(map[string]float64)
	durations, sum := 0, 0.0
	for _, r := range steps {
		if d, ok := r.number(spans.AttrStepDuration); ok {
			durations++
			sum += d
		}
	}
	if durations == len(steps) {
		want["histogram_count(ml_train_step_duration_seconds%s)"] = float64(durations)
		want["histogram_sum(ml_train_step_duration_seconds%s)"] = sum
	}
	for attr, name := range map[string]string{
		spans.AttrLoss: "ml_train_loss", spans.AttrLearningRate: "ml_train_learning_rate",
		spans.AttrDeviceFlopThroughputReported: "ml_train_device_flop_throughput_reported_per_second",
		spans.AttrMemoryUsage:                  "ml_train_device_memory_usage_bytes",
	} {
		if v, ok := last.number(attr); ok {
			want[name] = v
		}
	}
	if l.name == "flagscale" || l.name == "megatron" {
		want["ml_train_flop_utilization_ratio"] = last.MFU
		covered := 0.0
		for _, r := range steps {
			covered += float64(r.StepsCovered)
		}
		want["ml_train_steps_total"] = covered
	}
	require.NotEmpty(t, want)
	eventually(t, func() error {
		for name, v := range want {
			job := fmt.Sprintf("{job=%q}", l.name)
			query := name + job
			if strings.Contains(name, "%s") {
				query = fmt.Sprintf(name, job)
			}
			if l.name == "hf" { // standard output and trainer_state.json have the same values, each in a series of its own
				query = "max(" + query + ")"
			}
			got, err := prom.query(query)
			if err != nil {
				return err
			}
			if len(got) != 1 || !same(got[0].Value, v) {
				return fmt.Errorf("%s of %s is %v, want %v", name, l.name, got, v)
			}
		}
		return nil
	})
}

// checkTrainAccounts: no line is lost without a counter.
func checkTrainAccounts(t *testing.T, c *collector, l *trainLog) {
	t.Helper()
	sum := accountsOf(t, c, l.receiver, 1)
	assert.Zero(t, sum["rejected"]+sum["refused"], "%v", sum)
}

// checkTrainVerdicts: the faults planted in the logs get verdicts, with the numbers.
func checkTrainVerdicts(t *testing.T, logs []*trainLog, answers map[string]*trainAnswer) {
	t.Helper()
	said := make(map[string]map[string]int)
	for _, l := range logs {
		said[l.name] = make(map[string]int)
		for _, n := range answers[l.name].found {
			for v := range view.Verdicts(n.Span) {
				said[l.name][v.Title()]++
				assert.NotEmpty(t, v.Reason)
			}
		}
	}
	t.Log(said)
	require.Less(t, len(logs[0].steps()), 100)
	assert.Equal(t, 1, said["flagscale"][spans.VerdictFlopsWrong+" (dp_omitted)"], "every row of FlagScale's leaves out the data-parallel size: that is said once")
	assert.Equal(t, 1, said["jsonl"][spans.VerdictLossNotFinite])
	low := 0
	for _, r := range logs[1].steps() {
		if r.MFU < 0.3 && r.Iteration > 1 { // the first step warms up
			low++
		}
	}
	assert.Equal(t, low, said["megatron"][spans.VerdictMFULow])
}

// A format known only to the configuration reaches Jaeger as steps.
func TestPatternReachesJaeger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "worker 3 > it %d/40 obj %.2f in %d ms\n", i+1, 3-0.1*float64(i), 100+i)
	}
	log := filepath.Join(dir, "own.log")
	require.NoError(t, os.WriteFile(log, []byte(text.String()), 0o600))
	extra := filepath.Join(dir, "patterns.yaml")
	require.NoError(t, os.WriteFile(extra, []byte("receivers:\n  train_log:\n    patterns: ['it {iteration}/{iterations} obj {loss} in {step_time:ms} ms']\n"), 0o600))

	j := startJaeger(t)
	c := newCollector(t, trainbridgeBin(t), "", j.otlp)
	c.args = append([]string{"--config", shippedConfig(t), "--config", extra}, c.args[2:]...)
	c.env = append(c.env, "TRAINBRIDGE_RUN_ID=own", "TRAINBRIDGE_TRAIN_LOGS="+log)
	c.up(t)
	eventually(t, func() error {
		td, err := j.trace(spans.StepTraceID("own", 17))
		if err != nil {
			return err
		}
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if s.Name() == spans.SpanStep && s.EndTimestamp()-s.StartTimestamp() == 116_000_000 && math.Abs(spans.ValueNumber(attr(s, spans.AttrLoss))-1.4) < 1e-9 {
						return nil
					}
				}
			}
		}
		return errors.New("no step 17 of 116 ms with a loss of 1.4")
	})
}

func attr(s ptrace.Span, name string) pcommon.Value {
	v, ok := s.Attributes().Get(name)
	if !ok {
		return pcommon.NewValueEmpty()
	}
	return v
}

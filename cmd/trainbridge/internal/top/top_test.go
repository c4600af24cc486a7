package top

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/spans"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Unix(1_770_000_000, 0)

// full is a model with everything on the screen.
func full() *model {
	m := newModel("/data/job")
	j := m.job("run-4f1c09ab", now)
	j.of = 5000
	j.spent = spent{goodput: 0.874}
	for state, seconds := range map[account.State]float64{
		account.InStep: 3640, account.Checkpoint: 160, account.Evaluation: 40, account.Unexplained: 8, account.Stalled: 62,
	} {
		j.spent.states[state] = seconds
	}
	for i := range 200 {
		wave := math.Sin(float64(i) / 9)
		s := step{
			n: int64(i + 1035), end: now.Add(time.Duration(i-200) * 2 * time.Second).UnixNano(), time: 2 + 0.1*wave, tokens: 51234 - 2000*wave,
			sample: math.NaN(), flop: (402 - 20*wave) * 1e12, mfu: 0.406 - 0.02*wave, loss: 2.5 - float64(i)/300,
		}
		if i%50 == 49 {
			s.time = 3.2
		}
		m.addStep(j, s)
		j.addWindow(window{s.n, s.end, s.time, map[string]float64{"compute": 1.4, "get": 0.2 + 0.1*wave, "collective": 0.25, "collective.wait": s.time - 1.95}})
	}
	for i, v := range []verdict{
		{severity: spans.SeverityWarning, where: "step 1084", name: "step_slow", reason: "The step took 3.2 s, 1.1 s over the limit of 2.1 s: collective.wait +1.1 s, rank 7."},
		{severity: spans.SeverityWarning, where: "step 1134", name: "step_slow", reason: "The step took 3.2 s, 1.1 s over the limit of 2.1 s: collective.wait +1.1 s, rank 7."},
		{severity: spans.SeverityBad, where: "generate_sequences", name: "tq_overhead", reason: "TransferQueue took 46.6% of the 1.927 s of generate_sequences"},
		{severity: spans.SeverityWarning, where: "AllReduce", name: "nccl_late", reason: "Rank 7 came 1.1 s late to AllReduce 4711"},
	} {
		v.at = now.Add(time.Duration(i-10) * time.Second).UnixNano()
		m.addVerdict(j, v)
	}
	for i := range 8 {
		of := func(name string) func(string) string {
			return func(attribute string) string {
				return map[string]string{
					"hw.id": fmt.Sprintf("GPU-%d", i), "hw.name": fmt.Sprintf("GPU %d", i), "hw.model": "NVIDIA H100 80GB HBM3", spans.AttrGPUThrottleReason: name,
				}[attribute]
			}
		}
		m.addGPU("node-0", spans.MetricGPUUtilization, 0.9+0.01*float64(i), of(""))
		m.addGPU("node-0", "hw.gpu.memory.usage", 61<<30, of(""))
		m.addGPU("node-0", spans.MetricGPUMemoryLimit, 80<<30, of(""))
		m.addGPU("node-0", spans.MetricHardwarePower, 640, of(""))
		m.addGPU("node-0", spans.MetricHardwareTemperature, 64, of(""))
		m.addGPU("node-0", spans.MetricGPUThrottleActive, float64(bit(i == 5)), of("sw_thermal_slowdown"))
	}
	return m
}

// A screen has no more lines and columns than the terminal, and says the most important first.
func TestRender(t *testing.T) {
	for _, k := range []look{
		{width: 80, height: 24},
		{width: 40, height: 10},
		{width: 200, height: 60},
		{width: 80, height: 24, plain: true},
		{width: 80, height: 24, colour: true},
		{width: 1, height: 1},
	} {
		name := fmt.Sprintf("%dx%d", k.width, k.height)
		if k.plain {
			name += "-ascii"
		}
		if k.colour {
			name += "-colour"
		}
		lines := full().render(k, now)
		assert.LessOrEqual(t, len(lines), k.height, name)
		if !k.colour {
			for _, l := range lines {
				assert.LessOrEqual(t, human.Columns(l), k.width, name)
			}
		}
		text := strings.Join(lines, "\n") + "\n"
		if k.plain {
			assert.Regexp(t, `^[\x00-\x7f]*$`, text)
		}
		path := filepath.Join("testdata", name+".txt")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), text)
	}
}

// Any size has a screen.
func TestSizes(t *testing.T) {
	m := full()
	for width := range 100 {
		for height := range 40 {
			lines := m.render(look{width: width, height: height}, now)
			assert.LessOrEqual(t, len(lines), max(height, 1))
			for _, l := range lines {
				assert.LessOrEqual(t, human.Columns(l), max(width, 1))
			}
		}
	}
	assert.Equal(t, []string{"trainbridge top  x", "", "waiting for a training step"}, newModel("x").render(look{width: 80, height: 24}, now))
}

// Texts of logs cannot write to the terminal.
func TestHostile(t *testing.T) {
	const text = "\x1b]0;owned\x07\x1b[2J\r\n\u202e"
	m := newModel(text)
	j := m.job(text, now)
	m.addVerdict(j, verdict{at: 1, where: text, name: text, severity: text, reason: text})
	j.addWindow(window{parts: map[string]float64{text: 1}, whole: 1})
	m.addStep(j, step{odd: text, loss: math.NaN()})
	m.addGPU(text, spans.MetricGPUUtilization, 1, func(string) string { return text })
	for _, l := range m.render(look{width: 200, height: 60}, now) {
		assert.NotRegexp(t, `[\x00-\x1f\x{202e}]`, l)
	}
	var out bytes.Buffer
	say := printer(&out, func(error) {})
	say(j.verdicts[0])
	say(j.steps[0])
	assert.NotRegexp(t, `[\x00-\x09\x0b-\x1f\x{202e}]`, out.String())
}

// A curve of any numbers is drawn: their range may be infinite, or the smallest there is.
func TestSpark(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{1, 2, 3}, "▁▅█"},
		{[]float64{1, 1.001}, "▄▄"},
		{[]float64{0, math.NaN(), math.Inf(1), 1}, "▁  █"},
		{[]float64{-math.MaxFloat64, 0, math.MaxFloat64}, "▁██"},
		{[]float64{0, math.SmallestNonzeroFloat64}, "▁█"},
	} {
		assert.Equal(t, c.want, spark(c.values, 10, false), c.values)
	}
}

// An endless log takes no more memory than a short log.
func TestBounded(t *testing.T) {
	m := newModel("")
	for run := range 2 * mostRuns {
		m.job(strconv.Itoa(run), now.Add(time.Duration(run)))
	}
	assert.Len(t, m.jobs, mostRuns)
	j := m.job("x", now)
	printed := 0
	m.on = func(event any) {
		if _, ok := event.(step); ok {
			printed++
		}
	}
	for i := range 3 * mostSteps {
		m.addStep(j, step{n: int64(i), end: int64(i)})
		j.addWindow(window{n: int64(i), end: int64(i)})
		m.addVerdict(j, verdict{at: int64(i)})
		m.addGPU(strconv.Itoa(i), spans.MetricGPUUtilization, 1, func(name string) string { return map[string]string{spans.AttrHardwareID: "1"}[name] })
	}
	assert.Equal(t, 3*mostSteps, printed)
	assert.Len(t, j.steps, mostSteps)
	assert.EqualValues(t, 3*mostSteps-1, j.steps[mostSteps-1].n)
	assert.Len(t, j.windows, mostSteps)
	assert.Len(t, j.verdicts, mostVerdicts)
	assert.Len(t, m.gpus, mostGPUs)
}

// Two scrapes of a running trainbridge are a step: figures are gauges, times and verdicts are the growth of counters.
func TestScrape(t *testing.T) {
	scrape := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/metrics", r.URL.Path)
		scrape++
		fmt.Fprintf(w, `# TYPE ml_train_iteration gauge
ml_train_iteration{instance="job1",job="train"} %d
# TYPE ml_train_loss gauge
ml_train_loss{instance="job1",job="train"} 2.5
# TYPE ml_run_time_seconds gauge
ml_run_time_seconds{instance="job1",job="train",ml_run_state="step"} 90
ml_run_time_seconds{instance="job1",job="train",ml_run_state="checkpoint"} 10
ml_run_time_seconds{instance="job1",job="train",ml_run_state="of the future"} 10
# TYPE ml_train_goodput_ratio gauge
ml_train_goodput_ratio{instance="job1",job="train"} 0.85
# TYPE ml_train_step_duration_seconds histogram
ml_train_step_duration_seconds_bucket{instance="job1",le="+Inf"} %d
ml_train_step_duration_seconds_sum{instance="job1"} %d
ml_train_step_duration_seconds_count{instance="job1"} %d
# TYPE ml_step_time_seconds_total counter
ml_step_time_seconds_total{instance="job1",ml_step_window="step",ml_step_part="compute"} %d
ml_step_time_seconds_total{instance="job1",ml_step_window="step",ml_step_part="get"} %d
ml_step_time_seconds_total{instance="job1",ml_step_window="batch",ml_step_part="get"} %d
# TYPE trainbridge_verdicts_total counter
trainbridge_verdicts_total{instance="job1",trainbridge_verdict_name="tq_fluctuating",trainbridge_verdict_severity="warning",tq_stage="get"} %d
# TYPE hw_gpu_utilization_ratio gauge
hw_gpu_utilization_ratio{host_name="node-0",hw_id="GPU-1",hw_gpu_task="general"} 0.5
`, scrape*10, scrape*10, scrape*20, scrape*10, scrape*15, scrape*5, scrape*100, scrape)
	}))
	defer server.Close()
	m := newModel("")
	s := newScraper(m, server.URL+"/metrics")
	defer s.client.CloseIdleConnections()
	for i := range 2 {
		families, err := s.scrape(t.Context())
		require.NoError(t, err)
		s.now = func() time.Time { return now.Add(time.Duration(i) * time.Second) }
		s.take(families)
	}
	j := m.current()
	require.Len(t, j.steps, 2)
	assert.EqualValues(t, 20, j.steps[1].n)
	assert.InDelta(t, 2.0, j.steps[1].time, 1e-9)
	assert.InDelta(t, 2.5, j.steps[1].loss, 1e-9)
	assert.Equal(t, "goodput           85%  of 100 s: steps 90%, checkpoints 10%", j.spent.line().print(look{width: 80}))
	require.Len(t, j.windows, 1)
	assert.Equal(t, map[string]float64{"compute": 15, "get": 5}, j.windows[0].parts)
	require.Len(t, j.verdicts, 1)
	assert.Equal(t, "tq_fluctuating (get)", j.verdicts[0].name)
	assert.Equal(t, spans.SeverityWarning, j.verdicts[0].severity)
	require.Len(t, m.cards(), 1)
	assert.InDelta(t, 0.5, m.cards()[0].busy, 1e-9)

	server.Close()
	endsWithoutServer(t, s)
}

// endsWithoutServer reports a missing server, and ends with the context.
func endsWithoutServer(t *testing.T, s *scraper) {
	t.Helper()
	m := s.model
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.run(ctx); close(done) }()
	<-m.dirty
	m.mu.Lock()
	assert.Contains(t, m.trouble, "is trainbridge running? Or name the logs: trainbridge top PATH")
	m.mu.Unlock()
	stop()
	<-done
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-"}, "top: -: the standard input cannot be followed"},
		{[]string{"/nothing/here"}, "/nothing/here"},
		{[]string{"/tmp", "--metrics", "x"}, "top: name logs or --metrics, not both"},
		{[]string{"--metrics", "http://"}, "top: --metrics \"http://\": write it as http://127.0.0.1:8889/metrics"},
	} {
		cmd := NewCommand()
		cmd.SetArgs(tt.args)
		cmd.SilenceErrors = true
		cmd.SetOut(&bytes.Buffer{})
		err := cmd.ExecuteContext(t.Context())
		require.ErrorContains(t, err, tt.want)
		require.ErrorAs(t, err, new(*reading.UsageError))
	}
}

// Into a pipe goes a line for each step, later steps too.
func TestPlain(t *testing.T) {
	log := filepath.Join(t.TempDir(), "train.jsonl")
	f, err := os.Create(log)
	require.NoError(t, err)
	defer f.Close()
	put := func(n int) {
		_, err := fmt.Fprintf(f, `{"step": %d, "timestamp": "2026-01-02T03:04:%02dZ", "loss": %.1f, "step_time_s": 1.5, "tokens_per_s": 1000}`+"\n", n, n, 3-0.1*float64(n))
		require.NoError(t, err)
	}
	put(1)
	put(2)
	ctx, stop := context.WithCancel(t.Context())
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	cmd := NewCommand()
	cmd.SetArgs([]string{log})
	cmd.SetOut(write)
	done := make(chan error, 1)
	go func() {
		done <- cmd.ExecuteContext(ctx)
		write.Close()
	}()
	var got []string
	buf := make([]byte, 4096)
	for text := ""; len(got) < 3; {
		n, err := read.Read(buf)
		require.NoError(t, err)
		text += string(buf[:n])
		if got = strings.Split(strings.TrimSuffix(text, "\n"), "\n"); len(got) == 2 {
			put(3)
		}
	}
	stop()
	require.NoError(t, <-done)
	for i, want := range []string{"step 1  step time 1.5 s", "step 2  step time 1.5 s", "step 3  step time 1.5 s"} {
		assert.True(t, strings.HasPrefix(got[i], want), got[i])
	}
	assert.Contains(t, got[2], "loss 2.7")
}

// The time in the logs is on the screen: a step of 1.5 s, a checkpoint of 1.5 s and another step.
func TestAccount(t *testing.T) {
	b := spans.NewBatch("test", "")
	m := newModel("")
	w := &watcher{model: m, now: func() time.Time { return now }}
	for i, at := range []int64{0, 3} {
		s := b.Add(spans.Resource{RunID: "run"}, spans.Span{
			Trace: [16]byte{1, byte(i)}, ID: [8]byte{byte(i + 1)}, Name: spans.SpanStep, Is: spans.KindStep,
			Start: now.UnixNano() + at*1e9, End: now.UnixNano() + at*1e9 + 15e8, Source: spans.TimeLogged,
		})
		s.Attributes().PutInt(spans.AttrIteration, int64(i+1))
		if i == 0 {
			p := b.Add(spans.Resource{RunID: "run"}, spans.Span{
				Trace: [16]byte{1, 0}, ID: [8]byte{9}, Parent: [8]byte{1}, Name: "save-checkpoint", Is: spans.KindPart,
				Start: now.UnixNano(), End: now.UnixNano() + 15e8, Source: spans.TimeSynthetic,
			})
			p.Attributes().PutStr(spans.AttrStage, "save-checkpoint")
		}
	}
	td := b.Traces()
	for _, rs := range td.ResourceSpans().All() {
		rs.Resource().Attributes().PutStr(spans.AttrSource, "megatron")
	}
	require.NoError(t, w.ConsumeTraces(t.Context(), td))
	lines := m.render(look{width: 80, height: 24}, now)
	assert.Contains(t, lines, "goodput         66.7%  of 4.5 s: steps 66.7%, checkpoints 33.3%")
}

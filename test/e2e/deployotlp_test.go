//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// otlpAgent prepares an agent of deploy/otlp for the logs in a directory.
func otlpAgent(tb testing.TB, run, dir, gateway string) *collector {
	tb.Helper()
	a := deployed(tb, "otlp/agent.yaml", "TRAINBRIDGE_RUN_ID="+run, "TRAINBRIDGE_LOGS="+dir+"/*/*", "TRAINBRIDGE_OTLP_ENDPOINT="+gateway)
	a.merge(tb, otlpPorts(tb))
	return a
}

// otlpGateway prepares a gateway of deploy/otlp, and returns its address for agents.
func otlpGateway(tb testing.TB, name, backend string) (g *collector, addr string) {
	tb.Helper()
	addr = freeAddr(tb)
	g = deployed(tb, "otlp/gateway.yaml", "TRAINBRIDGE_COLLECTOR="+name, "TRAINBRIDGE_OTLP_ENDPOINT="+backend)
	// step_join must wait until all agents are back: later spans would change the step's root.
	g.merge(tb, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
processors: {step_join: {wait: 20s}}
connectors: {train_metrics: {metrics_flush_interval: 1s}}
`, addr))
	return g, addr
}

// direct is a backend's content from one collector that reads all logs.
func direct(tb testing.TB, run, logs string) map[[2]string]string {
	tb.Helper()
	j := startJaeger(tb)
	c := newCollector(tb, trainbridgeBin(tb), "", j.otlp)
	c.env = append(c.env, "TRAINBRIDGE_RUN_ID="+run, "TRAINBRIDGE_LOGS="+logs)
	c.up(tb)
	defer c.stop(tb)
	var all map[[2]string]string
	eventually(tb, func() error {
		accounts, err := c.accounts()
		if err != nil {
			return err
		}
		for name, a := range accounts {
			if a["pending"] > 0 || !c.logged("All is read") {
				return fmt.Errorf("%s has not read all: %v", name, a)
			}
		}
		all, err = told(j)
		return err
	})
	return all
}

// alike returns the differences between a backend's content and want, except step_join's spans.
func alike(want map[[2]string]string, j *jaeger) error {
	got, err := told(j)
	if err != nil {
		return err
	}
	want = maps.Clone(want)
	for _, all := range []map[[2]string]string{want, got} {
		maps.DeleteFunc(all, func(_ [2]string, text string) bool { return text == joinedSpan || strings.HasPrefix(text, probe) })
	}
	if maps.Equal(want, got) {
		return nil
	}
	n := len(got)
	maps.DeleteFunc(want, func(ids [2]string, text string) bool { return got[ids] == text })
	return fmt.Errorf("%d spans, and %d are not as they should be: %.2000v", n, len(want), want)
}

// Two agents with logs of their own and a gateway send the same as one collector that reads all logs, though the gateway, an agent and the backend are
// temporarily down.
func TestDeployOTLP(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "8", "--steps", "30", "--seed", "3", "--fault-every", "4", "--faults", "straggler,data_loading,get,put", "--nccl", "nccl_inspector")
	logs := t.TempDir()
	dirs := []string{logs + "/host-0", logs + "/host-1"}
	const parts = 5
	write := func(part int) {
		grow(t, tr.dir+"/tq/*", dirs[0], part, parts)
		grow(t, tr.dir+"/[tn][rc]*/*", dirs[1], part, parts) // steps and collectives
	}
	for part := range parts {
		write(part)
	}
	want := direct(t, tr.RunID, logs+"/*/*/*")
	require.Greater(t, len(want), 10*len(tr.Steps))
	for _, dir := range dirs {
		require.NoError(t, os.RemoveAll(dir))
	}

	j := startJaeger(t)
	p := startProxy(t, j.otlp)
	g, addr := otlpGateway(t, "gateway", p.addr)
	var agents []*collector
	for _, dir := range dirs {
		agents = append(agents, otlpAgent(t, tr.RunID, dir, addr))
	}
	write(0)
	for _, a := range agents {
		a.up(t) // before the gateway
	}
	g.up(t)
	write(1)
	whole := tr.Steps[:len(tr.Steps)*2/parts-1] // the next step is incomplete
	for i, n := range brokenDown(t, j, whole) {
		whole[i].checkBreakdown(t, n, timed...)
	}
	agents[0].kill()
	agents[0].up(t)
	p.cut()
	write(2)
	agents[0].waits(t, 1)
	require.NoError(t, p.restore())
	agents[1].kill()
	write(3)
	agents[1].up(t)
	counted(t, g, j, agents)
	g.kill()
	write(4)
	g.up(t)
	eventually(t, func() error { return alike(want, j) })
	counted(t, g, j, agents)
	brokenDown(t, j, tr.Steps[len(tr.Steps)*4/parts+1:]) // the step in progress may lack parts
	for _, c := range append(agents, g) {
		c.stop(t)
	}
}

// brokenDown waits until a backend has the breakdown of each of these steps.
func brokenDown(t *testing.T, j *jaeger, steps []*jobStep) (breakdowns []*node) {
	t.Helper()
	eventually(t, func() error {
		td, err := j.find("")
		if err != nil {
			return err
		}
		traces := readAll(td).traces
		breakdowns = breakdowns[:0]
		for _, s := range steps {
			for _, n := range traces[spans.TraceID("", []byte(s.TraceID))] {
				if n.Name() == spans.SpanBreakdown {
					breakdowns = append(breakdowns, n)
				}
			}
		}
		if len(breakdowns) != len(steps) {
			return fmt.Errorf("%d breakdowns of %d steps", len(breakdowns), len(steps))
		}
		return nil
	})
	return breakdowns
}

// timed are the parts with times in the logs. RPCs have the time of reading.
var timed = []string{
	spans.PartGet, spans.PartPut, spans.PartCollective, spans.PartWait, spans.PartDataLoading, spans.PartCheckpoint, spans.PartEvaluation,
}

// counted checks that the gateway's counters agree with the backend, and that no series has two writers.
func counted(t *testing.T, g *collector, j *jaeger, agents []*collector) {
	t.Helper()
	eventually(t, func() error {
		td, err := j.find("")
		if err != nil {
			return err
		}
		want, got := 0.0, 0.0
		for _, trace := range readAll(td).traces {
			for _, n := range trace {
				if n.Name() == spans.SpanStep && !n.joined {
					want++
				}
			}
		}
		list, err := metricsOf(g.metrics)
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.name == "ml_train_steps_total" {
				assert.Equal(t, "gateway", m.labels["trainbridge_collector"])
				got += m.value
			}
		}
		if want == 0 || want != got {
			return fmt.Errorf("the gateway has counted %v steps, Jaeger has %v", got, want)
		}
		return nil
	})
	seen := map[string]string{}
	for _, c := range append(agents, g) {
		list, err := metricsOf(c.metrics)
		require.NoError(t, err)
		for _, m := range list {
			series := fmt.Sprint(m.name, m.labels)
			if was := seen[series]; was != "" && m.name != "target_info" {
				t.Errorf("%s is written by %s and %s", series, was, c.metrics)
			}
			seen[series] = c.metrics
		}
	}
}

// Of two gateways each has the runs of its name. A dead gateway holds up its own runs only, and loses nothing in transit.
func TestDeployBalanced(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "4", "--steps", "20", "--seed", "5")
	var backends []*jaeger
	var gateways []*collector
	var addrs []string
	for i := range 2 {
		j := startJaeger(t)
		g, addr := otlpGateway(t, fmt.Sprint("gateway-", i), j.otlp)
		g.up(t)
		backends, gateways, addrs = append(backends, j), append(gateways, g), append(addrs, addr)
	}
	agent := func(run, dir string) (a *collector, otlp string) {
		a, otlp = otlpAgent(t, run, dir, ""), freeAddr(t)
		path, err := filepath.Abs(filepath.Join(repoRoot, "deploy/otlp/balanced.yaml"))
		require.NoError(t, err)
		a.bin, a.env, a.args = fullBin(t), append(a.env, "TRAINBRIDGE_GATEWAYS="+strings.Join(addrs, ",")), append(a.args, "--config", path)
		a.merge(t, fmt.Sprintf("receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}", otlp))
		return a, otlp
	}
	runs := runsOf(t, backends, agent)

	const parts = 3
	var agents []*collector
	var want []map[[2]string]string
	logs := tr.dir + "/[tzn]*/*"
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		grow(t, logs, dir, 0, 1)
		want = append(want, direct(t, runs[i], dir+"/*/*"))
		require.NoError(t, os.RemoveAll(dir))
		grow(t, logs, dir, 0, parts)
		a, _ := agent(runs[i], dir)
		a.up(t)
		agents = append(agents, a)
	}
	gateways[1].kill()
	for part := 1; part < parts; part++ {
		grow(t, logs, dirs[0], part, parts)
	}
	grow(t, logs, dirs[1], 1, parts)
	eventually(t, func() error { return alike(want[0], backends[0]) })

	agents[1].kill()
	agents[1].up(t)
	grow(t, logs, dirs[1], 2, parts)
	agents[1].waits(t, 1)
	gateways[1].up(t)
	eventually(t, func() error { return alike(want[1], backends[1]) })
	require.NoError(t, alike(want[0], backends[0]), "nothing of the other run came")
	for i, n := range brokenDown(t, backends[0], tr.Steps) {
		tr.Steps[i].checkBreakdown(t, n, timed...)
	}
	brokenDown(t, backends[1], tr.Steps[len(tr.Steps)/parts+2:]) // steps in progress may lack parts
	gateways[0].kill()
	grow(t, logs, dirs[0], 0, parts)
	for _, c := range []*collector{agents[0], agents[1], gateways[1]} {
		c.stop(t) // also while its gateway is down
	}
}

// probe is the name of spans that show the destination of their run.
const probe = "probe"

// runsOf finds a run for each gateway: a hash assigns runs to gateways.
func runsOf(t *testing.T, backends []*jaeger, agent func(run, dir string) (*collector, string)) []string {
	t.Helper()
	a, otlp := agent(probe, t.TempDir())
	a.up(t)
	defer a.stop(t)
	runs := make([]string, len(backends))
	for n := byte(1); slices.Contains(runs, ""); n++ {
		run := fmt.Sprint("run-", n)
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(spans.AttrServiceName, probe)
		rs.Resource().Attributes().PutStr(spans.AttrRunID, run)
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{n})
		s.SetSpanID(pcommon.SpanID{n})
		s.SetName(probe)
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		s.SetEndTimestamp(s.StartTimestamp() + 1e6)
		require.NoError(t, sendTraces(t, otlp, td))
		for i, j := range backends {
			td, err := j.trace(pcommon.TraceID{n}) // present already: the agent answers after the gateway's backend
			require.NoError(t, err)
			if td.SpanCount() > 0 {
				runs[i] = run
			}
		}
	}
	return runs
}

// The agent counts the backend's refusals as refused, and they do not hold up the rest: the gateway in between passes the answer on.
func TestDeployRefusal(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]behaviour{"by number": partial, "as wrong": poison} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, dir := startOTLPSink(t), t.TempDir()
			k.set(how)
			g, addr := otlpGateway(t, "gateway", k.addr)
			g.merge(t, "exporters: {otlp_acked: {compression: none}}")
			a := otlpAgent(t, "refusal", dir, addr)
			g.up(t)
			a.up(t)
			var text strings.Builder
			const n = 200
			for i := range n {
				fmt.Fprintf(&text, `{"timestamp": "2026-06-12T10:%02d:%02dZ", "step": %d, "loss": 2.5}`+"\n", i/60, i%60, i)
			}
			require.NoError(t, os.Mkdir(dir+"/train", 0o750))
			require.NoError(t, os.WriteFile(dir+"/train/a.log", []byte(text.String()), 0o600))
			eventually(t, func() error {
				refused := 0
				for i := range n {
					switch key := fmt.Sprint("jsonl ", i); {
					case k.refusedFor(key):
						refused++
					case !k.has(key):
						return errors.New(key + " is neither there nor refused")
					}
				}
				accounts, err := a.accounts()
				if err != nil {
					return err
				}
				if got := accounts["train_log"]; refused == 0 || got["refused"] != int64(refused) || got["pending"] != 0 {
					return fmt.Errorf("%v, and %d are refused", got, refused)
				}
				return nil
			})
			a.stop(t)
			g.stop(t)
		})
	}
}

// The example of docs/reference/scale.md, over an agent's file: replaced text does not leave the host.
func TestDeployRedact(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs/reference/scale.md"))
	require.NoError(t, err)
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	dir := t.TempDir()
	for name, lines := range map[string]string{
		"train": `{"timestamp": "2026-06-12T10:30:00Z", "step": 1, "loss": 2.5, "hostname": "node-17", "note": "by EMP-4711"}`,
		"nccl": `{"header":{"id":"0x5eed0000000000b2","comm_name":"TP","rank":0,"n_ranks":1,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"",` +
			`"rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1781000000000000,"hostname":"node-17","pid":300},"coll_perf":{"coll":"AllReduce","coll_sn":1,` +
			`"coll_msg_size_bytes":1024,"coll_exec_time_us":9,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":0.113778,"coll_busbw_gbs":0.113778}}`,
	} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "a.log"), []byte(lines+"\n"), 0o600))
	}
	j := startJaeger(t)
	g, addr := otlpGateway(t, "gateway", j.otlp)
	a := otlpAgent(t, "redact", dir, addr)
	a.merge(t, example)
	a.env = append(a.env, "TRAINBRIDGE_HASH_KEY=a key of 16 bytes")
	g.up(t)
	a.up(t)
	var all string
	eventually(t, func() error {
		td, err := j.find("")
		if err != nil {
			return err
		}
		if td.SpanCount() < 4 {
			return fmt.Errorf("%d spans, want a step, a collective with its rank, and the run", td.SpanCount())
		}
		spans, err := new(ptrace.JSONMarshaler).MarshalTraces(td)
		require.NoError(t, err)
		page, err := get(a.metrics, "")
		all = string(spans) + string(page)
		return err
	})
	assert.Contains(t, all, "[redacted]")
	assert.Contains(t, all, "host-")
	assert.NotContains(t, all, "EMP-4711")
	assert.NotContains(t, all, "node-17")
	a.stop(t)
	g.stop(t)
}

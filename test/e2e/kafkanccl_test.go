//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainbridge/trainbridge/spans"
)

var (
	fleetSeed  = flag.Uint64("fleet.seed", 1, "first seed of TestFleetFaults")
	fleetSeeds = flag.Uint64("fleet.seeds", 3, "number of seeds")
)

// fleet is agents, each with the logs of some hosts, Kafka, and gateways, with the files of deploy/.
type fleet struct {
	*testing.T
	broker   *broker
	name     string // of its topics and groups
	run      string
	backend  string
	dirs     []string // of the agents' logs
	agents   []*collector
	gateways []*collector
	logs     []*ncclLog // one per communicator
	files    []*grownFile
	patience time.Duration // the wait of a collective for its ranks
	session  time.Duration // Kafka's session timeout for a gateway's partitions of spans
	more     string        // configuration of the gateways
}

// grownFile is a growing log at an agent.
type grownFile struct {
	text string
	at   int
	to   string
}

const agentsOfFleet = 4

// newFleet prepares the agents for future logs: each file of a communicator goes to one of them.
func newFleet(t *testing.T, b *broker, name, backend string, logs ...*ncclLog) *fleet {
	t.Helper()
	f := &fleet{T: t, broker: b, name: name, run: "job-" + name, backend: backend, logs: logs, patience: 5 * time.Minute, session: 6 * time.Second}
	for i := range agentsOfFleet {
		f.dirs = append(f.dirs, t.TempDir())
		f.agent("TRAINBRIDGE_RUN_ID="+f.run, "TRAINBRIDGE_NCCL_LOGS="+f.dirs[i]+"/*/*", "TRAINBRIDGE_LOGS="+f.dirs[i]+"/none/*")
	}
	for _, l := range logs {
		files, err := filepath.Glob(l.dir + "/*")
		require.NoError(t, err)
		for i, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			dir := filepath.Join(f.dirs[i*agentsOfFleet/len(files)], l.name)
			require.NoError(t, os.MkdirAll(dir, 0o750))
			f.files = append(f.files, &grownFile{text: string(text), to: filepath.Join(dir, filepath.Base(file))})
		}
	}
	return f
}

// agent prepares another agent.
func (f *fleet) agent(env ...string) *collector {
	f.Helper()
	a := deployed(f, "kafka/agent.yaml", append(env, "TRAINBRIDGE_KAFKA="+f.broker.addr)...)
	a.merge(f, otlpPorts(f))
	a.merge(f, fmt.Sprintf("exporters: {kafka: {traces: {topic: spans-%[1]s}}, kafka/nccl: {traces: {topic: nccl-%[1]s}}}", f.name))
	f.agents = append(f.agents, a)
	return a
}

// gateway starts another gateway.
func (f *fleet) gateway(tb testing.TB) {
	tb.Helper()
	g := deployed(tb, "kafka/gateway.yaml", "TRAINBRIDGE_KAFKA="+f.broker.addr, "TRAINBRIDGE_OTLP_ENDPOINT="+f.backend,
		fmt.Sprint("TRAINBRIDGE_COLLECTOR=gateway-", len(f.gateways)))
	g.merge(tb, fmt.Sprintf(`
receivers:
  kafka: {group_id: spans-%[1]s, traces: {topics: [spans-%[1]s]}, metadata: {refresh_interval: 5s}, session_timeout: %[3]s, heartbeat_interval: 1s}
  nccl: {hang_timeout: %[2]s, kafka: {group_id: nccl-%[1]s, topic: nccl-%[1]s, metadata: {refresh_interval: 5s}, session_timeout: 6s, heartbeat_interval: 1s}}
connectors: {train_metrics: {metrics_flush_interval: 1s}}
exporters: {kafka: {traces: {topic: spans-%[1]s}, metadata: {refresh_interval: 5s}}, otlp_acked: {compression: none}}
`, f.name, f.patience, f.session))
	g.merge(tb, f.more)
	f.gateways = append(f.gateways, g)
	g.up(tb)
}

// grow appends to the logs up to about this share, unevenly, also in the middle of a line.
func (f *fleet) grow(rnd *rand.Rand, share float64) {
	f.Helper()
	for _, g := range f.files {
		to := len(g.text)
		if share < 1 {
			to = max(g.at, min(to, int((share+0.1*(rnd.Float64()-0.5))*float64(to))))
		}
		out, err := os.OpenFile(g.to, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(f, err)
		_, err = out.WriteString(g.text[g.at:to])
		require.NoError(f, errors.Join(err, out.Close()))
		g.at = to
	}
}

func (f *fleet) collectives() (n int) {
	for _, l := range f.logs {
		n += len(l.truth)
	}
	return n
}

// direct has one collector read all present logs and send to a backend of its own.
func (f *fleet) direct(backend string) *collector {
	f.Helper()
	c := newCollector(f, trainbridgeBin(f), "", backend, fmt.Sprintf("{exporters: {otlp_acked: {compression: none}}, receivers: {nccl: {hang_timeout: %s}}}", f.patience))
	c.env = append(c.env, "TRAINBRIDGE_RUN_ID="+f.run, "TRAINBRIDGE_NCCL_LOGS="+filepath.Dir(f.logs[0].dir)+"/*/*.log")
	c.up(f)
	return c
}

// stop waits until nothing waits any more, whose time would come later, and ends all.
func (f *fleet) stop() {
	f.Helper()
	for i, g := range f.gateways {
		eventually(f, func() error {
			list, err := g.ownMetrics()
			seen := 0
			for _, m := range list {
				if strings.HasPrefix(m.name, "otelcol_trainbridge_nccl_kafka_pending") || strings.HasPrefix(m.name, "otelcol_trainbridge_nccl_state") {
					if seen++; m.value != 0 {
						return fmt.Errorf("gateway %d: %s is %v", i, m.name, m.value)
					}
				}
			}
			if err == nil && seen != 2 {
				err = fatal(fmt.Errorf("gateway %d: %d metrics of 2", i, seen))
			}
			return err
		})
	}
	for _, a := range f.agents {
		a.stop(f)
	}
	for _, g := range f.gateways {
		if g.running() {
			g.stop(f)
		}
	}
}

// spanSink is a backend that keeps each span as text, by its ids.
type spanSink struct {
	ptraceotlp.UnimplementedGRPCServer
	addr string

	mu     sync.Mutex
	down   bool
	spans  map[[2]string]string
	differ []string
	copies int
	steps  []*node // received breakdowns and roots of traces
	came   []came  // breakdowns and collectives, for the message of a failed test
}

// came is the first arrival of a breakdown or a collective.
type came struct {
	ids        [2]string
	name       string
	start, end pcommon.Timestamp
	at         time.Time
}

func startSpanSink(tb testing.TB) *spanSink {
	tb.Helper()
	s := &spanSink{spans: make(map[[2]string]string)}
	s.addr = serveTraces(tb, s)
	return s
}

// Export takes spans.
func (s *spanSink) Export(_ context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return ptraceotlp.NewExportResponse(), status.Error(codes.Unavailable, "down")
	}
	s.take(req.Traces())
	return ptraceotlp.NewExportResponse(), nil
}

// take records all spans but that of the run, whose content depends on the first record seen.
func (s *spanSink) take(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if span.Name() == spans.SpanRun {
					continue
				}
				ids, text := [2]string{span.TraceID().String(), span.SpanID().String()}, textOf(rs.Resource().Attributes(), span)
				was, again := s.spans[ids]
				if again {
					s.copies++
				}
				if again && was != text {
					s.differ = append(s.differ, was+"\n"+text)
				}
				s.spans[ids] = text
				kind := spans.AttrText(span.Attributes(), spans.AttrKind)
				if !again && (kind == spans.KindBreakdown || kind == spans.KindCollective) {
					s.came = append(s.came, came{ids, span.Name(), span.StartTimestamp(), span.EndTimestamp(), time.Now()})
				}
				if kind == spans.KindBreakdown || kind == spans.KindRoot {
					own := ptrace.NewSpan()
					span.CopyTo(own)
					s.steps = append(s.steps, &node{Span: own, resource: rs.Resource()})
				}
			}
		}
	}
}

// arrivals says when a breakdown came, and when the collectives of its time did.
func (s *spanSink) arrivals(n *node) string {
	ids, text := [2]string{n.TraceID().String(), n.SpanID().String()}, new(strings.Builder)
	for _, c := range s.came {
		if c.ids == ids || c.start < n.EndTimestamp() && c.end > n.StartTimestamp() {
			fmt.Fprintf(text, "\n%s %s, which began %s after the step", c.at.Format(time.StampMilli), c.name, time.Duration(c.start-n.StartTimestamp()))
		}
	}
	return text.String()
}

func (s *spanSink) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// textOf has all of a span, numbers rounded.
func textOf(resource pcommon.Map, s ptrace.Span) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s, %v, %d-%d, %v %s", s.Name(), s.ParentSpanID(), s.Kind(), s.StartTimestamp(), s.EndTimestamp(), s.Status().Code(), s.Status().Message())
	write := func(m pcommon.Map) {
		for _, key := range slices.Sorted(maps.Keys(m.AsRaw())) {
			v, _ := m.Get(key)
			text := v.AsString()
			if v.Type() == pcommon.ValueTypeDouble {
				text = strconv.FormatFloat(v.Double(), 'g', 9, 64)
			}
			fmt.Fprintf(&b, " %s=%s", key, text)
		}
	}
	write(resource)
	write(s.Attributes())
	for _, e := range s.Events().All() {
		fmt.Fprintf(&b, " [%s %d", e.Name(), e.Timestamp())
		write(e.Attributes())
		b.WriteString("]")
	}
	return b.String()
}

// unlike returns the differences from the spans of one receiver that reads all logs.
func (f *fleet) unlike(want, got *spanSink) error {
	want.mu.Lock()
	defer want.mu.Unlock()
	got.mu.Lock()
	defer got.mu.Unlock()
	for _, s := range []*spanSink{want, got} {
		if len(s.differ) > 0 {
			return fatal(fmt.Errorf("%d spans came again with another content, such as\n%s", len(s.differ), s.differ[0]))
		}
	}
	collectives := 0
	for _, text := range want.spans {
		if isRoot(text) {
			collectives++
		}
	}
	if n := f.collectives(); collectives != n {
		return fmt.Errorf("one receiver tells of %d collectives, there are %d", collectives, n)
	}
	missing, differ, example := 0, 0, ""
	for ids, text := range want.spans {
		switch came, ok := got.spans[ids]; {
		case !ok:
			missing++
		case came != text:
			if differ++; example == "" || text < example {
				example = text + "\n" + came
			}
		}
	}
	more := len(got.spans) - (len(want.spans) - missing)
	if missing+differ+more == 0 {
		return nil
	}
	return fmt.Errorf("%d spans of %d are missing, %d differ, %d should not be there; such as\n%s", missing, len(want.spans), differ, more, example)
}

// Faults of a fleet.
var fleetFaults = []struct {
	name string
	do   func(f *fleet, rnd *rand.Rand, s *spanSink)
}{
	{"agent killed", func(f *fleet, rnd *rand.Rand, _ *spanSink) {
		a := f.agents[rnd.IntN(len(f.agents))]
		a.kill()
		a.up(quiet{f})
	}},
	{"agent stopped", func(f *fleet, rnd *rand.Rand, _ *spanSink) {
		a := f.agents[rnd.IntN(len(f.agents))]
		f.pause(a, time.Duration(1+rnd.IntN(4))*time.Second)
	}},
	{"gateway killed", func(f *fleet, rnd *rand.Rand, _ *spanSink) {
		g := f.gateways[rnd.IntN(len(f.gateways))]
		g.kill()
		g.up(quiet{f})
	}},
	{"gateway stopped for longer than the group waits", func(f *fleet, rnd *rand.Rand, _ *spanSink) {
		f.pause(f.gateways[rnd.IntN(len(f.gateways))], 8*time.Second)
	}},
	{"gateway joins", func(f *fleet, _ *rand.Rand, _ *spanSink) {
		if len(f.gateways) < 4 {
			f.gateway(quiet{f})
		}
	}},
	{"gateway leaves and comes back", func(f *fleet, rnd *rand.Rand, _ *spanSink) {
		g := f.gateways[rnd.IntN(len(f.gateways))]
		g.stop(f)
		g.up(quiet{f})
	}},
	{"broker killed", func(f *fleet, _ *rand.Rand, _ *spanSink) {
		f.broker.kill()
		f.broker.up(f)
	}},
	{"backend down", func(_ *fleet, rnd *rand.Rand, s *spanSink) {
		s.set(true)
		lasts(time.Duration(1+rnd.IntN(3)) * time.Second)
		s.set(false)
	}},
}

// pause has a process stand still.
func (f *fleet) pause(c *collector, d time.Duration) {
	f.Helper()
	require.NoError(f, c.cmd.Process.Signal(syscall.SIGSTOP))
	lasts(d)
	require.NoError(f, c.cmd.Process.Signal(syscall.SIGCONT))
}

// Under any faults, in a random order: the gateways send the same as one receiver that reads all logs, each span once or with the same content.
func TestFleetFaults(all *testing.T) {
	all.Parallel()
	for seed := *fleetSeed; seed < *fleetSeed+*fleetSeeds; seed++ {
		all.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			b := startKafka(t, 6)
			rnd := rand.New(rand.NewPCG(seed, 19))
			dir, sink, direct := t.TempDir(), startSpanSink(t), startSpanSink(t)
			var logs []*ncclLog
			for i := range 3 {
				name := fmt.Sprint("comm-", i)
				logs = append(logs, generateNCCLInto(t, filepath.Join(dir, name), name, "--ranks", "16", "--nodes", "8", "--ranks-per-file", "2", "--steps", "40",
					"--seed", strconv.FormatUint(seed*10+uint64(i), 10), "--slow-rank", "5", "--slow-by", "0.1", "--slow-from", "10"))
			}
			f := newFleet(t, b, strconv.FormatUint(seed, 10), sink.addr, logs...)
			f.gateway(quiet{t})
			f.gateway(quiet{t})
			for _, a := range f.agents {
				a.up(quiet{t})
			}
			c := f.direct(direct.addr)
			var happened []string
			const faults = 4
			for i := range faults {
				f.grow(rnd, float64(i+1)/(faults+1))
				moment(rnd, 1500)
				fault := fleetFaults[rnd.IntN(len(fleetFaults))]
				happened = append(happened, fault.name)
				fault.do(f, rnd, sink)
			}
			f.grow(rnd, 1)
			if err := within(patience, func() error { return f.unlike(direct, sink) }); err != nil {
				t.Fatalf("%v: %v", happened, err)
			}
			f.stop()
			c.stop(t)
			t.Logf("%v: %d spans, %d came again", happened, len(sink.spans), sink.copies)
		})
	}
}

// Four agents with logs of their own and two gateways send Jaeger and Prometheus the same as one receiver that reads all logs, including counters, though an
// agent, the broker and the gateways are killed.
func TestFleet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var logs []*ncclLog
	for i, flags := range [][]string{{"--slow-rank", "17", "--slow-by", "0.05"}, {"--jitter", "0.05"}, {"--missing-rank", "6", "--missing-from", "90"}, {}} {
		name := fmt.Sprint("comm-", i)
		logs = append(logs, generateNCCLInto(t, filepath.Join(dir, name), name,
			slices.Concat([]string{"--ranks", "64", "--nodes", "8", "--ranks-per-file", "8", "--steps", "30", "--seed", strconv.Itoa(70 + i)}, flags)...))
	}
	j, direct := startJaeger(t), startJaeger(t)
	f := newFleet(t, startKafka(t, 4), "fleet", j.otlp, logs...)
	f.patience = 40 * time.Second // longer than a broker takes to start, and than heartbeats are apart
	f.session = 45 * time.Second  // as in the file: a gateway takes less to start again
	f.gateway(t)
	f.gateway(t)
	prom := startPrometheus(t, f.gateways[0].scrape[0], f.gateways[1].scrape[0])
	for _, a := range f.agents {
		a.up(t)
	}
	c := f.direct(direct.otlp)
	f.growKilling()
	var got ptrace.Traces
	eventually(t, func() error {
		all, err := direct.find("")
		if err != nil {
			return err
		}
		got, err = j.find("")
		if err != nil {
			return err
		}
		w, g := &spanSink{spans: make(map[[2]string]string)}, &spanSink{spans: make(map[[2]string]string)}
		w.take(all)
		g.take(got)
		return f.unlike(w, g)
	})
	f.checkRoots(got)
	complete, bytes, missing := 0.0, 0.0, 0.0
	for _, l := range logs {
		for _, c := range l.truth {
			if missing += float64(len(c.Missing)); len(c.Missing) == 0 {
				complete++
				bytes += float64(c.DataSize)
			}
		}
	}
	prom.awaitValues(t, map[string]float64{
		`sum(histogram_count(nccl_collective_duration_seconds))`: complete, `sum(nccl_collective_io_bytes_total)`: bytes, `sum(nccl_collective_missing_total)`: missing,
		`sum(resets(nccl_collective_io_bytes_total[10m]))`: 0,
	})
	f.stop()
	c.stop(t)
}

// growKilling grows the logs while an agent, the broker and each gateway are killed, including the counting gateway. The broker and a gateway are killed once
// all gateways have their partitions: after a death while partitions move a gateway may get others, and counts are then not exact (docs/reference/scale.md).
func (f *fleet) growKilling() {
	f.Helper()
	rnd := rand.New(rand.NewPCG(1, 19))
	f.grow(rnd, 0.3)
	moment(rnd, 2000)
	f.agents[1].kill()
	f.agents[1].up(f)
	f.broker.shared(f.T, len(f.gateways), "spans-"+f.name, "nccl-"+f.name)
	f.grow(rnd, 0.5)
	moment(rnd, 600)
	f.broker.kill()
	f.broker.up(f)
	eventually(f, func() error {
		for _, g := range f.gateways {
			list, err := metricsOf(g.metrics)
			if err == nil && slices.ContainsFunc(list, func(m metric) bool { return m.name == "nccl_collective_duration_seconds_count" }) {
				return nil
			}
		}
		return errors.New("no gateway counts")
	})
	for i, g := range f.gateways {
		f.broker.shared(f.T, len(f.gateways), "spans-"+f.name, "nccl-"+f.name)
		f.grow(rnd, 0.7+0.15*float64(i))
		moment(rnd, 1500)
		g.kill()
		g.up(f)
	}
	f.grow(rnd, 1)
}

// checkRoots compares the collectives with the truth of the first communicator, which has a slow rank.
func (f *fleet) checkRoots(td ptrace.Traces) {
	f.Helper()
	a := read(td) // a trace for each
	require.NoError(f, a.err())
	assert.Len(f, a.traces, f.collectives())
	slow := f.logs[0].run
	stragglers, cost, want := map[string]bool{}, 0.0, 0.0
	for _, trace := range a.traces {
		for _, n := range trace {
			comm := n.str(spans.AttrNCCLCommID)
			if rank := n.str(spans.AttrNCCLStragglerRank); rank != "" {
				stragglers[comm+" "+rank] = true
			}
			if v := n.number(spans.AttrNCCLLateCost); v > 0 && comm == slow.CommunicatorHash {
				cost += v
			}
		}
	}
	for _, c := range f.logs[0].truth {
		want += float64(c.CostNS) / 1e9
	}
	assert.Equal(f, map[string]bool{fmt.Sprint(slow.CommunicatorHash, " ", slow.SlowRank): true}, stragglers)
	assert.InDelta(f, want, cost, 0.01*want, "what it cost to wait")
}

// The gateway with the steps of a run also has its collectives, wherever they were joined: the steps' breakdowns are exact.
func TestFleetSteps(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "16", "--steps", "20", "--seed", "4", "--nccl", "nccl_inspector")
	b, j := startKafka(t, 4), startJaeger(t)
	f := newFleet(t, b, "steps", j.otlp, &ncclLog{name: "nccl", dir: filepath.Join(tr.dir, "nccl")})
	for _, a := range f.agents {
		a.env = append(a.env, "TRAINBRIDGE_RUN_ID="+tr.RunID)
	}
	b.topics(t, "spans-steps", "nccl-steps")
	f.grow(rand.New(rand.NewPCG(1, 19)), 1)
	f.gateway(t)
	f.gateway(t)
	b.shared(t, 2, "spans-steps", "nccl-steps")
	for _, a := range f.agents {
		a.up(t)
	}
	// A step's wait for its collectives is limited by step_join, and five agents may take longer to start, so the steps come last.
	ranks := 0
	for _, g := range f.files {
		ranks += strings.Count(g.text, "\n")
	}
	eventually(t, func() error {
		td, err := j.find("")
		if err != nil {
			return err
		}
		n := 0
		for _, trace := range readAll(td).traces {
			for _, span := range trace {
				if span.str(spans.AttrKind) == spans.KindRank {
					n++
				}
			}
		}
		if n != ranks {
			err = fmt.Errorf("%d ranks of collectives, want %d", n, ranks)
		}
		return err
	})
	a := f.agent("TRAINBRIDGE_RUN_ID="+tr.RunID, "TRAINBRIDGE_LOGS="+tr.dir+"/[tz]*/*")
	a.up(t)
	_, breakdowns := (&jobBed{collector: a, jaeger: j}).await(t, tr)
	for _, s := range tr.Steps {
		s.checkBreakdown(t, breakdowns[s.Step])
	}
	f.stop()
}

//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// zmqLog is the truth of a log by `gen zmq`.
type zmqLog struct {
	name  string
	path  string
	run   zmqRun
	roots []*zmqRoot
}

type zmqRun struct {
	Lines   int64
	Footer  *zmqSums
	Footers int `json:"-"`
}

type zmqRoot struct {
	Kind          string
	Complete      bool
	SerializeHigh bool `json:"serialize_high"`
	zmqSums
	Slowest struct {
		Method  string
		TotalNS int64 `json:"total_ns"`
	}
	EndUnixNano int64 `json:"end_unix_nano"`
}

type zmqSums struct {
	Calls          int64
	SerializeNS    int64 `json:"serialize_ns"`
	SendNS         int64 `json:"send_ns"`
	ReceiveNS      int64 `json:"receive_ns"`
	DeserializeNS  int64 `json:"deserialize_ns"`
	UnattributedNS int64 `json:"unattributed_ns"`
	ServerNS       int64 `json:"server_ns"`
	OfflineNS      int64 `json:"offline_ns"`
	TotalNS        int64 `json:"total_ns"`
	RequestBytes   int64 `json:"request_bytes"`
	ResponseBytes  int64 `json:"response_bytes"`
}

func generateZMQ(tb testing.TB, path, name string, flags ...string) *zmqLog {
	tb.Helper()
	l := &zmqLog{name: name, path: path}
	truth := path + ".truth.json"
	gen(tb, append([]string{"zmq", "--out", path, "--truth", truth}, flags...)...)
	f, err := os.Open(truth)
	require.NoError(tb, err)
	defer f.Close()
	for dec := json.NewDecoder(f); ; {
		var rec struct {
			zmqRoot
			Run *zmqRun
		}
		require.NoErrorf(tb, dec.Decode(&rec), "%s after %d passes", truth, len(l.roots))
		if rec.Run != nil {
			l.run = *rec.Run
			if l.run.Footer != nil {
				l.run.Footers = 1
			}
			return l
		}
		l.roots = append(l.roots, &rec.zmqRoot)
	}
}

// passes are the roots that are passes.
func (l *zmqLog) passes() []*zmqRoot {
	return slices.DeleteFunc(slices.Clone(l.roots), func(r *zmqRoot) bool { return r.Kind != spans.SpanRPCPass })
}

type zmqAnswer struct {
	*answer
	of map[*zmqRoot]*node
}

// check compares a backend's answer with the truth: each pass is a trace, each row a call with its stages, which add up to the printed sums.
func (l *zmqLog) check(td ptrace.Traces) *zmqAnswer {
	a := &zmqAnswer{answer: read(td), of: make(map[*zmqRoot]*node)}
	var roots []*node
	finals := 0
	for _, trace := range a.traces {
		for _, n := range trace {
			switch {
			case n.Name() == spans.SpanRPCSummary:
				finals++
			case n.ParentSpanID().IsEmpty() && n.Name() != spans.SpanRun:
				roots = append(roots, n)
			}
		}
	}
	slices.SortFunc(roots, func(x, y *node) int { return cmp.Compare(x.StartTimestamp(), y.StartTimestamp()) })
	if len(roots) != len(l.roots) {
		a.missing = append(a.missing, fmt.Sprintf("%d roots, want %d", len(roots), len(l.roots)))
		return a
	}
	if finals != l.run.Footers {
		a.missing = append(a.missing, fmt.Sprintf("%d summaries, want %d", finals, l.run.Footers))
	}
	for i, want := range l.roots {
		a.of[want] = roots[i]
		a.root(i, want, roots[i])
	}
	return a
}

func (a *zmqAnswer) root(i int, want *zmqRoot, n *node) {
	var got zmqSums
	var slowest *node
	at := n.StartTimestamp()
	calls := slices.DeleteFunc(slices.Clone(n.children), func(c *node) bool { return c.Kind() != ptrace.SpanKindClient })
	slices.SortFunc(calls, func(x, y *node) int { return cmp.Compare(x.StartTimestamp(), y.StartTimestamp()) })
	sums := map[string]*int64{
		spans.SpanRPCSerialize: &got.SerializeNS, spans.SpanRPCSend: &got.SendNS, spans.SpanRPCReceive: &got.ReceiveNS,
		spans.SpanRPCDeserialize: &got.DeserializeNS, spans.SpanRPCServer: &got.ServerNS, spans.SpanRPCOffline: &got.OfflineNS,
	}
	var add func(n *node)
	add = func(n *node) {
		if sum := sums[n.Name()]; sum != nil {
			*sum += n.duration()
		}
		for _, c := range n.children {
			add(c)
		}
	}
	add(n)
	for _, c := range calls {
		got.Calls++
		got.TotalNS += c.duration()
		got.RequestBytes += c.int(spans.AttrZMQRequestSize)
		got.ResponseBytes += c.int(spans.AttrZMQResponseSize)
		if c.StartTimestamp() < at {
			a.wrong("%s %d: call %s begins before the one before it has ended", want.Kind, i, c.str(spans.AttrZMQCallID))
		}
		at = c.EndTimestamp()
		if c.str(spans.AttrRPCSystem) != spans.RPCSystemZeroMQ {
			a.wrong("%s %d: call %s is %v", want.Kind, i, c.Name(), c.Attributes().AsRaw())
		}
		if c.int(spans.AttrZMQCallSlowest) == 1 {
			slowest = c
		}
	}
	got.UnattributedNS = want.UnattributedNS // a span shows only unattributed time beyond print rounding
	if got != want.zmqSums {
		a.missing = append(a.missing, fmt.Sprintf("%s %d is %+v, want %+v", want.Kind, i, got, want.zmqSums))
		return
	}
	if n.Name() != want.Kind {
		a.wrong("%s %d is %s", want.Kind, i, n.Name())
	}
	if slowest == nil || slowest.Name() != want.Slowest.Method || slowest.duration() != want.Slowest.TotalNS {
		a.wrong("the slowest call of %s %d is %v, want %v", want.Kind, i, slowest, want.Slowest)
	}
	for name, ns := range map[string]int64{
		spans.AttrZMQCallDuration: want.TotalNS, spans.AttrZMQSerializeDuration: want.SerializeNS, spans.AttrZMQReceiveDuration: want.ReceiveNS,
		spans.AttrZMQUnattributedDuration: want.UnattributedNS,
	} {
		if got := n.attr(name); math.Abs(got-float64(ns)/1e9) > 1e-12*float64(ns) {
			a.wrong("%s of %s %d is %v, want %d ns", name, want.Kind, i, got, ns)
		}
	}
	if incomplete := n.str(spans.AttrIncomplete) == "true"; incomplete == want.Complete {
		a.wrong("%s %d: incomplete is %v", want.Kind, i, incomplete)
	}
}

// ZeroMQ logs of all layouts in; passes in Jaeger and Tempo, distributions in Prometheus, all equal to the truth.
func TestZMQ(t *testing.T) {
	t.Parallel()
	j, s := startJaeger(t), startTempo(t)
	dir := t.TempDir()
	log := func(name string, flags ...string) *zmqLog {
		return generateZMQ(t, filepath.Join(dir, name), name, append([]string{"--seed", "11"}, flags...)...)
	}
	logs := []*zmqLog{
		log("v1.log", "--passes", "30", "--layers", "4", "--serialize-high", "0.3"),
		log("v2.log", "--layout", "v2", "--transport", "IPC+SHM+OTP", "--passes", "5"),
		log("v3.log", "--layout", "v3", "--transport", "IPC+SHM+OURS", "--passes", "5"),
		log("v4.log", "--layout", "v4", "--transport", "IPC+SHM", "--passes", "5"),
		log("export.csv", "--layout", "csv", "--passes", "5"),
		log("tcp.log", "--transport", "TCP", "--passes", "5", "--crash"),
	}
	c := newZMQCollector(t, trainbridgeBin(t), j, s, logs...)
	prom := startPrometheus(t, c.scrape...)
	c.up(t)

	answers := make(map[string]*zmqAnswer)
	for _, l := range logs {
		t.Run(l.name, func(t *testing.T) {
			answers[l.name] = l.await(t, j)
			checkZMQPrometheus(t, prom, l)
			sum := accountsOf(t, c, l.receiver(), l.run.Lines)
			assert.Zero(t, sum["rejected"]+sum["refused"], "%v", sum)
		})
	}
	if t.Failed() {
		return
	}
	t.Run("Tempo", func(t *testing.T) {
		for _, l := range logs {
			l.checkTempo(t, s, answers[l.name])
		}
	})
	t.Run("verdicts", func(t *testing.T) {
		for _, l := range logs {
			for i, r := range l.passes() {
				n := answers[l.name].of[r]
				said := make(map[string]string)
				for _, e := range n.Events().All() {
					name, _ := e.Attributes().Get(spans.AttrVerdictName)
					reason, _ := e.Attributes().Get(spans.AttrVerdictReason)
					said[name.AsString()] = reason.AsString()
				}
				wait, tcp := float64(r.SendNS+r.ReceiveNS-r.ServerNS)/float64(r.TotalNS), l.name == "tcp.log"
				for verdict, want := range map[string]bool{
					spans.VerdictZMQSerializeHigh: r.SerializeHigh, spans.VerdictZMQTransportHigh: tcp && wait > 0.3,
					// Verdicts about the client's code are on its first pass.
					spans.VerdictZMQCallsHigh: i == 0 && r.Calls > 50, spans.VerdictZMQTransportTCP: i == 0 && tcp,
				} {
					assert.Equal(t, want, said[verdict] != "", "%s of pass %d of %s: %q", verdict, i, l.name, said[verdict])
				}
			}
		}
	})
	t.Run("promtool", func(t *testing.T) { checkPromtool(t, c.metrics) })
	c.stop(t)
}

// receiver is the component that reads the log.
func (l *zmqLog) receiver() string { return "zmq_rpc/" + l.name }

// newZMQCollector prepares a collector that sends the logs' spans to Jaeger and Tempo.
func newZMQCollector(t *testing.T, bin string, j *jaeger, s *tempo, logs ...*zmqLog) *collector {
	t.Helper()
	var receivers [][2]string
	for _, l := range logs {
		receivers = append(receivers, [2]string{
			l.receiver(),
			fmt.Sprintf("{include: [%q], storage: state_storage, run_id: %q, service_name: %q, poll_interval: 20ms, pending_timeout: 5s}", l.path, l.name, l.name),
		})
	}
	return newCollector(t, bin, filepath.Join(t.TempDir(), "none"), j.otlp, readersConfig(s, receivers))
}

// checkTempo: Tempo has every trace in Jaeger, and finds the traces whose passes serialize for more than 30 % of the time.
func (l *zmqLog) checkTempo(t *testing.T, s *tempo, a *zmqAnswer) {
	t.Helper()
	eventually(t, func() error {
		all, err := s.all(a.traces)
		if err != nil {
			return err
		}
		return l.check(all).err()
	})
	want := make(map[pcommon.TraceID]bool)
	for _, r := range l.passes() {
		if r.SerializeHigh {
			want[a.of[r].TraceID()] = true
		}
	}
	require.NotEmpty(t, want)
	require.Less(t, len(want), len(l.passes()))
	query := fmt.Sprintf(`{ resource.service.name = %q && name = "rpc.pass" && span.zeromq.serialize.utilization > 0.3 }`, l.name)
	s.awaitFound(t, query, want)
}

// await queries Jaeger until everything has arrived.
func (l *zmqLog) await(t *testing.T, j *jaeger) (a *zmqAnswer) {
	t.Helper()
	eventually(t, func() error {
		td, err := j.find(l.name)
		if err != nil {
			return err
		}
		a = l.check(td)
		return a.err()
	})
	return a
}

// checkZMQPrometheus queries the sums over the log's calls and passes, and the disagreement of its summary.
func checkZMQPrometheus(t *testing.T, prom *prometheus, l *zmqLog) {
	t.Helper()
	var all zmqSums
	complete, inPasses := 0.0, 0.0
	for _, r := range l.roots {
		all.Calls += r.Calls
		all.TotalNS += r.TotalNS
		all.RequestBytes += r.RequestBytes
		all.ResponseBytes += r.ResponseBytes
		if r.Kind == spans.SpanRPCPass && r.Complete {
			complete++
			inPasses += float64(r.Calls)
		}
	}
	// An aborted pass does not count in the metrics of passes.
	passes := slices.DeleteFunc(l.passes(), func(r *zmqRoot) bool { return !r.Complete })
	last := passes[len(passes)-1]
	want := map[string]float64{
		`sum(histogram_count(rpc_client_call_duration_seconds{%s}))`:                                          float64(all.Calls),
		`sum(histogram_sum(rpc_client_call_duration_seconds{%s}))`:                                            float64(all.TotalNS) / 1e9,
		`sum(histogram_sum(rpc_client_request_size_bytes{%s}))`:                                               float64(all.RequestBytes),
		`sum(histogram_sum(rpc_client_response_size_bytes{%s}))`:                                              float64(all.ResponseBytes),
		`histogram_count(zeromq_pass_duration_seconds{%s})`:                                                   complete,
		`histogram_sum(zeromq_pass_calls{%s})`:                                                                inPasses,
		`zeromq_stage_utilization_ratio{zeromq_stage="serialize",%s}`:                                         float64(last.SerializeNS) / float64(last.TotalNS),
		`zeromq_stage_utilization_ratio{zeromq_stage="receive",%s}`:                                           float64(last.ReceiveNS) / float64(last.TotalNS),
		`count(count by (rpc_method) (histogram_count(rpc_client_call_duration_seconds{rpc_method!="",%s})))`: 5, // Init, Embedding, BatchLinear, Matmul, LMHead
	}
	if l.run.Footers > 0 {
		want[`max(zeromq_final_disagreement_ratio{%s})`] = 0
	}
	prom.awaitValues(t, ofJob(l.name, want))
}

// Rows are appended while the collector runs, as calls end; then another run of the client writes the file anew.
func TestZMQLive(t *testing.T) {
	t.Parallel()
	j, s := startJaeger(t), startTempo(t)
	live := &zmqLog{name: "live", path: filepath.Join(t.TempDir(), "zmq_performance.log")}
	c := newZMQCollector(t, trainbridgeBin(t), j, s, live)
	prom := startPrometheus(t, c.scrape...)
	c.up(t)
	for _, seed := range []string{"1", "2"} {
		l := generateZMQ(t, live.path, "live", "--seed", seed, "--rate", "100", "--passes", "3", "--layers", "4", "--serialize-high", "0.4")
		live.roots = append(live.roots, l.roots...)
		live.run.Lines += l.run.Lines
		live.run.Footers += l.run.Footers
		accountsOf(t, c, live.receiver(), live.run.Lines) // rows overwritten before reading are lost
	}
	a := live.await(t, j)
	for i, r := range live.roots {
		n := a.of[r]
		assert.Equal(t, string(spans.TimeObserved), n.str(spans.AttrTimeSource), "%s %d", r.Kind, i)
		assert.GreaterOrEqual(t, int64(n.EndTimestamp()), r.EndUnixNano, "%s %d cannot have been seen before it ended", r.Kind, i)
	}
	checkZMQPrometheus(t, prom, live)
	live.checkTempo(t, s, a)
	sum := accountsOf(t, c, live.receiver(), live.run.Lines)
	assert.Zero(t, sum["rejected"]+sum["refused"], "%v", sum)
	c.stop(t)
}

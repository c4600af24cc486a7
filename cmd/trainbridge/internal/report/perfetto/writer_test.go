package perfetto

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// written is the trace of a writer of messages.
func written(tb testing.TB, messages ...ptrace.Traces) *trace {
	tb.Helper()
	var file bytes.Buffer
	w := New(&file)
	for _, td := range messages {
		require.NoError(tb, w.ConsumeTraces(tb.Context(), td))
	}
	require.NoError(tb, w.Close())
	return decode(tb, file.Bytes())
}

// all are the spans of messages as slices: "name start duration".
func all(messages ...ptrace.Traces) (want []string) {
	for _, td := range messages {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					want = append(want, fmt.Sprint(bounded(s.Name(), maxName), " ", uint64(s.StartTimestamp()), " ", int64(max(s.EndTimestamp(), s.StartTimestamp())-s.StartTimestamp())))
				}
			}
		}
	}
	slices.Sort(want)
	return want
}

func (tr *trace) all() (got []string) {
	for _, s := range tr.slices {
		got = append(got, fmt.Sprint(s.name, " ", s.start, " ", s.end-s.start))
	}
	slices.Sort(got)
	return got
}

// Every span of every golden file is a slice, however the messages are ordered.
func TestGoldenFiles(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "..")
	files, err := filepath.Glob(filepath.Join(root, "receivers", "*", "testdata", "*.traces.yaml"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(root, "processors", "trainperfprocessor", "testdata", "*_want.yaml"))
	require.NoError(t, err)
	files = append(files, more...)
	require.Greater(t, len(files), 50)
	var messages []ptrace.Traces
	for _, file := range files {
		td, err := golden.ReadTraces(file)
		require.NoError(t, err)
		messages = append(messages, td)
		t.Run(filepath.Base(file), func(t *testing.T) { assert.Equal(t, all(td), written(t, td).all()) })
	}
	assert.Equal(t, all(messages...), written(t, messages...).all())
	slices.Reverse(messages)
	assert.Equal(t, all(messages...), written(t, messages...).all())
}

// maker makes spans.
type maker struct {
	td  ptrace.Traces
	out ptrace.SpanSlice
}

func (m *maker) resource(attrs ...string) {
	if m.td == (ptrace.Traces{}) {
		m.td = ptrace.NewTraces()
	}
	rs := m.td.ResourceSpans().AppendEmpty()
	for i := 0; i < len(attrs); i += 2 {
		rs.Resource().Attributes().PutStr(attrs[i], attrs[i+1])
	}
	m.out = rs.ScopeSpans().AppendEmpty().Spans()
}

func (m *maker) span(kind, name string, id, parent byte, start, end uint64) ptrace.Span {
	s := m.out.AppendEmpty()
	s.SetName(name)
	s.SetTraceID(pcommon.TraceID{1})
	s.SetSpanID(pcommon.SpanID{id})
	if parent != 0 {
		s.SetParentSpanID(pcommon.SpanID{parent})
	}
	s.SetStartTimestamp(pcommon.Timestamp(epoch + start))
	s.SetEndTimestamp(pcommon.Timestamp(epoch + end))
	if kind != "" {
		s.Attributes().PutStr(spans.AttrKind, kind)
	}
	return s
}

const epoch = 1_700_000_000_000_000_000

// drawn are the visible slices: the path of the track, the names of the enclosing slices, name and times.
func (tr *trace) drawn() (out []string) {
	for _, s := range tr.slices {
		name := s.name
		for up := s.parent; up != nil; up = up.parent {
			name = up.name + " > " + name
		}
		out = append(out, fmt.Sprintf("%s: %s %d-%d", tr.path(s.track), name, s.start-epoch, s.end-epoch))
	}
	slices.Sort(out)
	return out
}

// everyone is spans of all kinds with tracks of their own.
func everyone() ptrace.Traces {
	var m maker
	m.resource(spans.AttrServiceName, "grpo", spans.AttrRunID, "r1", spans.AttrHostName, "n0", spans.AttrProcessPID, "x")
	m.resource(spans.AttrServiceName, "grpo", spans.AttrRunID, "r1")
	m.span(spans.KindCollective, "AllReduce", 1, 0, 0, 100).Attributes().PutStr(spans.AttrNCCLCommName, "DP")
	m.resource(spans.AttrServiceName, "grpo", spans.AttrRunID, "r1", spans.AttrHostName, "n0")
	m.span(spans.KindRank, "rank 0 n0", 2, 1, 0, 100).Attributes().PutInt(spans.AttrNCCLCommRank, 0)
	m.span("", spans.SpanNCCLWait, 3, 2, 0, 60)
	m.span("", spans.SpanNCCLTransfer, 4, 2, 60, 100)
	m.resource(spans.AttrServiceName, "grpo", spans.AttrRunID, "r1", spans.AttrHostName, "n1")
	m.span(spans.KindRank, "rank 1 n1", 5, 1, 50, 100).Attributes().PutInt(spans.AttrNCCLCommRank, 1)
	m.span("", spans.SpanNCCLTransfer, 6, 5, 50, 100)
	m.resource(spans.AttrServiceName, "grpo", spans.AttrHostName, "n1")
	for _, worker := range []struct{ id, at byte }{{10, 0}, {20, 5}} { // two coroutines of a worker, and their stages
		at := uint64(worker.at)
		m.span(spans.KindFunction, "rollout", worker.id, 0, at, at+100).Attributes().PutInt(spans.AttrProcessPID, 7)
		for i, name := range []string{spans.SpanTQGet, spans.SpanTQCompute} {
			from := at + uint64(i)*10
			m.span(spans.KindStage, name, worker.id+byte(i)+1, worker.id, from, from+10).Attributes().PutInt(spans.AttrProcessPID, 7)
		}
		op := m.span(spans.KindStage, spans.SpanTQClientGet, worker.id+5, worker.id+1, at+2, at+8) // told after later spans
		op.Attributes().PutInt(spans.AttrProcessPID, 7)
	}
	step := m.span("", spans.SpanStep, 30, 0, 0, 1000)
	step.Attributes().PutInt(spans.AttrRank, 3)
	step.Attributes().PutStr(spans.AttrSource, "megatron")
	part := m.span(spans.KindPart, "forward", 31, 30, 0, 500)
	part.Attributes().PutStr(spans.AttrStage, "forward")
	m.resource(spans.AttrServiceName, "zmq")
	m.span(spans.KindPass, spans.SpanRPCPass, 40, 0, 0, 100)
	m.span(spans.KindCall, "Matmul", 41, 40, 10, 50).SetKind(ptrace.SpanKindClient)
	m.span("", spans.SpanRPCReceive, 42, 41, 20, 50)
	m.resource(spans.AttrServiceName, "zmq"+spans.ServerSuffix)
	m.span("", spans.SpanRPCServer, 43, 42, 30, 50)
	m.resource(spans.AttrServiceName, "a service")
	m.span("", "GET /", 50, 0, 7, 8)

	return m.td
}

func TestTracks(t *testing.T) {
	got := written(t, everyone())
	assert.Equal(t, []string{
		"a service / spans: GET / 7-8",
		"grpo on n0, run r1 / rank 0 of DP: rank 0 n0 0-100",
		"grpo on n0, run r1 / rank 0 of DP: rank 0 n0 > nccl.transfer 60-100",
		"grpo on n0, run r1 / rank 0 of DP: rank 0 n0 > nccl.wait 0-60",
		"grpo on n1 / TransferQueue worker 7: rollout 0-100",
		"grpo on n1 / TransferQueue worker 7: rollout 5-105",
		"grpo on n1 / TransferQueue worker 7: rollout > tq.compute 10-20",
		"grpo on n1 / TransferQueue worker 7: rollout > tq.compute 15-25",
		"grpo on n1 / TransferQueue worker 7: rollout > tq.get 0-10",
		"grpo on n1 / TransferQueue worker 7: rollout > tq.get 5-15",
		"grpo on n1 / TransferQueue worker 7: rollout > tq.get > tq.client.get 2-8",
		"grpo on n1 / TransferQueue worker 7: rollout > tq.get > tq.client.get 7-13",
		"grpo on n1 / training of megatron, rank 3: train.step 0-1000",
		"grpo on n1 / training of megatron, rank 3: train.step > forward 0-500",
		"grpo on n1, run r1 / rank 1 of DP: rank 1 n1 50-100",
		"grpo on n1, run r1 / rank 1 of DP: rank 1 n1 > nccl.transfer 50-100",
		"grpo, run r1 / communicator DP: AllReduce 0-100",
		"zmq / RPC client: rpc.pass 0-100",
		"zmq / RPC client: rpc.pass > Matmul 10-50",
		"zmq / RPC client: rpc.pass > Matmul > rpc.receive 20-50",
		"zmq-server / RPC server: rpc.server.compute 30-50",
	}, got.drawn())
	flow := make(map[uint64][]string)
	for _, s := range got.slices {
		for _, id := range s.flows {
			flow[id] = append(flow[id], s.name)
		}
	}
	assert.Equal(t, []string{"AllReduce", "rank 0 n0", "rank 1 n1"}, flow[flowOf(pcommon.TraceID{1}, pcommon.SpanID{1})])
	assert.Equal(t, []string{spans.SpanRPCReceive, spans.SpanRPCServer}, flow[flowOf(pcommon.TraceID{1}, pcommon.SpanID{42})])
	pids := make(map[uint64]bool)
	for _, d := range got.tracks {
		if d.process != "" {
			assert.Contains(t, d.remark, "no time is moved")
			assert.False(t, pids[d.pid])
			pids[d.pid] = true
		}
	}
}

func TestDetails(t *testing.T) {
	var m maker
	m.resource(spans.AttrServiceName, "job", spans.AttrTimeSource, "derived")
	s := m.span(spans.KindFunction, "train", 1, 0, 100, 300)
	s.Attributes().PutStr(spans.AttrSummary, "train: 200 ns")
	s.Attributes().PutInt("int", -5)
	s.Attributes().PutDouble("double", 0.25)
	s.Attributes().PutBool("yes", true)
	s.Attributes().PutBool("no", false)
	s.Attributes().PutStr("long", strings.Repeat("é", 2000))
	s.Attributes().PutEmptySlice("ranks").AppendEmpty().SetInt(3)
	s.Attributes().PutEmptyMap("map").PutInt("a", 1)
	s.Attributes().PutBool(spans.AttrVerdictPrefix+"slow", true)
	s.Status().SetMessage("errors")
	link := s.Links().AppendEmpty()
	link.SetTraceID(pcommon.TraceID{9})
	link.SetSpanID(pcommon.SpanID{8})
	e := s.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.SetTimestamp(epoch + 300)
	e.Attributes().PutStr(spans.AttrVerdictName, "slow")
	e.Attributes().PutStr(spans.AttrVerdictReason, "The get stage took 80% of the time: 160 ns of 200 ns.")
	s.Events().AppendEmpty().SetName("other")
	got := written(t, m.td)
	require.Len(t, got.slices, 1)
	assert.Equal(t, map[string]any{
		"trace_id": "01000000000000000000000000000000", "int": int64(-5), "double": 0.25, "yes": true, "no": false, "long": strings.Repeat("é", 512),
		"ranks": []any{int64(3)}, "map": `{"a":1}`, "status": "errors", spans.AttrTimeSource: "derived",
	}, got.slices[0].annotated)
	assert.Equal(t, spans.KindFunction, got.slices[0].category)
	own := flowOf(pcommon.TraceID{1}, pcommon.SpanID{1})
	assert.Equal(t, []uint64{own, flowOf(pcommon.TraceID{9}, pcommon.SpanID{8})}, got.slices[0].flows)
	require.Len(t, got.instants, 2)
	other, verdict := got.instants[0], got.instants[1] // an event without a time is an event of 1970
	assert.Equal(t, "job / verdicts", got.path(verdict.track))
	assert.Equal(t, "slow", verdict.name)
	assert.Equal(t, "verdict", verdict.category)
	assert.EqualValues(t, epoch+300, verdict.start)
	assert.Equal(t, []uint64{own}, verdict.flows)
	assert.Equal(t, map[string]any{
		"trainbridge.verdict.name": "slow", spans.AttrVerdictReason: "The get stage took 80% of the time: 160 ns of 200 ns.",
		"span": "train", "trace_id": "01000000000000000000000000000000",
	}, verdict.annotated)
	assert.Equal(t, "job / events", got.path(other.track))
	assert.Zero(t, other.start)
}

// Measured offsets of clocks are written at changes, at most once a second, and move nothing.
func TestClocks(t *testing.T) {
	var m maker
	for i, offset := range []float64{0.0012, 0.00121, -0.25, -0.5} {
		id, at := byte(10*i+1), uint64(i)*4e8
		m.resource(spans.AttrServiceName, "job")
		root := m.span(spans.KindCollective, "AllReduce", id, 0, at, at+50)
		root.Attributes().PutStr(spans.AttrNCCLClockReference, "n0")
		for _, host := range []string{"n0", "n1", ""} {
			m.resource(spans.AttrServiceName, "job", spans.AttrHostName, host)
			s := m.span(spans.KindRank, "rank 1 n1", id+1, id, at, at+50)
			s.Attributes().PutInt(spans.AttrNCCLCommRank, 1)
			s.Attributes().PutDouble(spans.AttrNCCLClockUncertainty, 66e-6)
			if s.Attributes().PutDouble(spans.AttrNCCLClockOffset, offset); host == "n0" {
				s.Attributes().PutDouble(spans.AttrNCCLClockOffset, 0)
			}
		}
	}
	got := written(t, m.td)
	var said []string
	for _, in := range got.instants {
		said = append(said, fmt.Sprintf("%s: %s at %d", got.path(in.track), in.name, in.start-epoch))
	}
	assert.Equal(t, []string{
		"job on n0 / clock: n0 has the clock that others are compared with at 0",
		"job on n1 / clock: n1 is 1.2 ms ahead of n0, ± 66 µs at 0",
		"job / clock: rank 1 is 1.2 ms ahead of n0, ± 66 µs at 0",
		"job on n1 / clock: n1 is 500 ms behind n0, ± 66 µs at 1200000000",
		"job / clock: rank 1 is 500 ms behind n0, ± 66 µs at 1200000000",
	}, said)
	assert.Equal(t, map[string]any{
		spans.AttrNCCLClockOffset: 0.0012, spans.AttrNCCLClockUncertainty: 66e-6, spans.AttrNCCLClockReference: "n0", spans.AttrNCCLClockCorrected: false,
	}, got.instants[1].annotated)
	assert.Equal(t, all(m.td), got.all())
}

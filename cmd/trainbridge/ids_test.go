package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// parentOfAll is the parent in traceparents.
const parentOfAll = "00f067aa0ba902b7"

// stepIDs are the ids of steps in the logs of a job.
func stepIDs(n int) (ids []string) {
	for step := range n {
		ids = append(ids, fmt.Sprintf("6f1c2b3a-0000-4000-8000-%012d", step+1))
	}
	return ids
}

// layers are the logs of a job, by receiver: TransferQueue's lines of two workers, the trainer's records, passes of RPCs, and two collectives of two ranks per
// step, all with the id of their step.
func layers(ids []string) map[string]map[string]string {
	var tq, train, zmq strings.Builder
	zmq.WriteString("ID,Method,Serialize_ms,Send_ms,Recv_ms,Deserialize_ms,Total_ms,Sent_KB,Recv_KB,trace_id\n")
	ranks := [2]strings.Builder{}
	for i, id := range ids {
		for pid := 4101; pid <= 4102; pid++ {
			at, now := 50000+10*float64(i), time.Date(2026, 3, 5, 9, 30, 10*i, 0, time.UTC).Format(time.DateTime)
			fmt.Fprintf(&tq, "INFO:%s,005:[TQ-TRACE] trace_id=%s | func=rollout | pid=%d | stage=FUNCTION_START | timestamp=%.6f\n", now, id, pid, at)
			fmt.Fprintf(&tq, "INFO:%s,505:[TQ-TRACE] trace_id=%s | func=rollout | pid=%d | stage=FUNCTION_END | total_duration=0.500000s | "+
				"get_ratio=10.00%% | compute_ratio=80.00%% | put_ratio=10.00%% | timestamp=%.6f\n", now, id, pid, at+0.5)
		}
		fmt.Fprintf(&train, `{"step": %d, "loss": 2.5, "step_time": 8, "timestamp": %d, "trace_id": "%s"}`+"\n", i+1, 1772703010+10*i, id)
		fmt.Fprintf(&train, `{"step": %d, "eval_loss": 2.5, "timestamp": %d}`+"\n", i+1, 1772703011+10*i)
		for j, method := range []string{"Embedding", "BatchLinear", "LMHead"} {
			fmt.Fprintf(&zmq, "%d,%s,0.021,0.011,2.900,0.900,3.832,8.05,4096.05,%s\n", 3*i+j+1, method, id)
		}
		for rank := range ranks {
			for j, operation := range []string{"allreduce", "allreduce", "all_gather"} {
				fmt.Fprintf(&ranks[rank], `{"timestamp": %d.%03d, "rank": %d, "operation": "%s", "message_size": 4194304, "duration_us": 1250.5, "trace_id": "%s"}`+"\n",
					1772703001+10*i, j, rank, operation, id)
			}
		}
	}
	return map[string]map[string]string{
		"tq_trace": {"tq.log": tq.String()}, "train_log": {"train.jsonl": train.String()}, "zmq_rpc": {"rpc.csv": zmq.String()},
		"nccl": {"rank_0.json": ranks[0].String(), "rank_1.json": ranks[1].String()},
	}
}

// readLayers reads the logs of a job, each with its receiver, until done.
func readLayers(t *testing.T, run string, logs map[string]map[string]string, to consumer.Traces, done func() bool) {
	t.Helper()
	for _, f := range []receiver.Factory{tqtracereceiver.NewFactory(), trainlogreceiver.NewFactory(), zmqrpcreceiver.NewFactory(), ncclreceiver.NewFactory()} {
		dir := t.TempDir()
		for name, text := range logs[f.Type().String()] {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		cfg := f.CreateDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"include": []any{dir + "/*"}, "run_id": run, "poll_interval": "10ms"}).Unmarshal(cfg))
		r, err := f.CreateTraces(t.Context(), receivertest.NewNopSettings(f.Type()), cfg, to)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, r.Shutdown(t.Context())) }()
	}
	require.Eventually(t, done, time.Minute, 20*time.Millisecond)
}

// topsOf are the names of each receiver's top spans, by trace. All are in their traces by an id, and no two spans have the same id.
func topsOf(t *testing.T, sink *consumertest.TracesSink) map[pcommon.TraceID][]string {
	t.Helper()
	out := map[pcommon.TraceID][]string{}
	ids := map[string]bool{}
	run, _ := spans.RunIDs("job")
	for _, td := range sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			by, _ := rs.Resource().Attributes().Get(spans.AttrJoinBy)
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if s.TraceID() == run {
						continue
					}
					assert.Equal(t, spans.JoinByID, by.AsString(), s.Name())
					assert.False(t, ids[s.TraceID().String()+s.SpanID().String()], "%s: its id is that of another span", s.Name())
					ids[s.TraceID().String()+s.SpanID().String()] = true
					if s.ParentSpanID().IsEmpty() || s.ParentSpanID().String() == parentOfAll {
						out[s.TraceID()] = append(out[s.TraceID()], s.Name())
					}
				}
			}
		}
	}
	return out
}

// A job of 5 steps whose TransferQueue lines, training records, RPCs and collectives carry the same id per step is 5 traces, each with all four, whether the
// ids are UUIDs, traceparents or any text. A second reading, as after a crash, gives the same traces.
func TestOneTracePerID(t *testing.T) {
	uuids := stepIDs(5)
	parents, texts := make([]string, 5), make([]string, 5)
	for i, id := range uuids {
		parents[i] = "00-" + strings.ReplaceAll(id, "-", "") + "-" + parentOfAll + "-01"
		texts[i] = fmt.Sprintf("batch %d", i+1)
	}
	for name, ids := range map[string][]string{
		"UUIDs": uuids, "traceparents": parents, "upper case": {strings.ToUpper(uuids[0])}, "texts": texts, "long texts": {strings.Repeat("x", 10240)},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{"rollout", "rollout", "train.step", "train.evaluation", "rpc.pass", "AllReduce", "AllReduce", "AllGather"}
			for range 2 {
				sink := new(consumertest.TracesSink)
				var traces map[pcommon.TraceID][]string
				readLayers(t, "job", layers(ids), sink, func() bool {
					n := 0
					traces = topsOf(t, sink)
					for _, names := range traces {
						n += len(names)
					}
					return n >= len(ids)*len(want)
				})
				require.Len(t, traces, len(ids))
				for _, id := range ids {
					assert.ElementsMatch(t, want, traces[spans.TraceID("job", []byte(id))], id)
				}
			}
		})
	}
}

// The same 5 steps through step_join: each trace has one root, no span lacks its parent, and a breakdown has the times. Passes of RPCs, whose log has no clock,
// have a trace of their own, and a copy with the step. The job is one run.
func TestOneRootPerID(t *testing.T) {
	ids, run, inLogs := stepIDs(5), "job of "+t.TempDir(), 8 // a process sends the span of a run once
	sink, f := new(consumertest.TracesSink), stepjoinprocessor.NewFactory()
	join, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), f.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, join.Start(t.Context(), componenttest.NewNopHost()))
	readLayers(t, run, layers(ids), join, func() bool {
		n := 0
		for _, s := range spansOf(sink) {
			if s.ParentSpanID() == spans.RootID(s.TraceID()) || s.Name() == spans.SpanRPCPass && s.ParentSpanID().IsEmpty() {
				n++
			}
		}
		return n >= len(ids)*inLogs
	})
	require.NoError(t, join.Shutdown(t.Context())) // closes all open windows

	type trace struct {
		roots, below, breakdowns []string
		known                    map[pcommon.SpanID]bool
	}
	traces := map[pcommon.TraceID]*trace{}
	for _, s := range spansOf(sink) {
		of := traces[s.TraceID()]
		if of == nil {
			of = &trace{known: map[pcommon.SpanID]bool{}}
			traces[s.TraceID()] = of
		}
		assert.False(t, of.known[s.SpanID()], "%s: its id is that of another span", s.Name())
		of.known[s.SpanID()] = true
		window, _ := s.Attributes().Get(spans.AttrStepWindow)
		switch {
		case s.Name() == spans.SpanBreakdown:
			of.breakdowns = append(of.breakdowns, window.AsString())
		case s.ParentSpanID().IsEmpty():
			of.roots = append(of.roots, s.Name())
		case s.ParentSpanID() == spans.RootID(s.TraceID()):
			of.below = append(of.below, s.Name())
		}
	}
	for _, s := range spansOf(sink) {
		assert.True(t, s.ParentSpanID().IsEmpty() || traces[s.TraceID()].known[s.ParentSpanID()], "%s has no parent", s.Name())
	}
	of, _ := spans.RunIDs(run)
	require.Len(t, traces, 2*len(ids)+1)
	require.Contains(t, traces, of)
	assert.Equal(t, []string{spans.SpanRun}, traces[of].roots)
	for _, id := range ids {
		trace := spans.TraceID(run, []byte(id))
		got, own := traces[trace], traces[spans.ClocklessTraceID(trace)]
		require.NotNil(t, got, id)
		require.NotNil(t, own, id)
		assert.Equal(t, []string{spans.SpanRPCPass}, own.roots, id)
		assert.Equal(t, []string{spans.SpanTQBatch}, got.roots, id)
		assert.Subset(t, got.below, []string{"rollout", spans.SpanStep, spans.SpanEvaluation, spans.SpanRPCPass, "AllReduce", "AllGather"}, id)
		assert.Equal(t, []string{spans.WindowStep}, got.breakdowns, id)
	}
}

// spansOf are all spans received.
func spansOf(sink *consumertest.TracesSink) (out []ptrace.Span) {
	for _, td := range sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

package tq

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestCarriedShares(t *testing.T) {
	stages := []stageSpan{{"get", 0, 900}, {"compute", 900, 950}, {"put", 950, 1000}} // the stages' shares differ from the function's own
	for name, tt := range map[string]struct {
		get, compute, put any
		overhead          any
		children          []stageSpan
		change            func(ptrace.Span)
		want              []string
		reason            string
	}{
		"good":           {get: 0.05, compute: 0.85, put: 0.05},
		"nothing to say": {get: 0.05, compute: 0.70, put: 0.05},
		"elevated": {
			get: 0.15, compute: 0.7, put: 0.10, want: []string{saidElevated},
			reason: "TransferQueue took 25% of the 1 µs of rollout (GET 15%, PUT 10%); the target is below 20%. ",
		},
		"high": {
			get: 0.25, compute: 0.5, put: 0.15, want: []string{spans.VerdictTQOverhead},
			reason: "TransferQueue took 40% of the 1 µs of rollout (GET 25%, PUT 15%); the limit is 30%. ",
		},
		"stages here":       {get: 0.05, compute: 0.85, put: 0.05, children: stages},
		"some of them here": {get: 0.05, compute: 0.70, put: 0.05, children: stages[:1]},
		"overhead is theirs": {
			get: 0.05, compute: 0.70, put: 0.05, overhead: 0.35, want: []string{spans.VerdictTQOverhead},
			reason: "(GET 5%, PUT 5%); the limit",
		},
		"overhead only": {
			overhead: 0.35, want: []string{spans.VerdictTQOverhead},
			reason: "TransferQueue took 35% of the 1 µs of rollout; the limit is 30%. ",
		},
		"compute only":          {compute: 0.85},
		"get only":              {get: 0.85},
		"whole numbers":         {get: int64(1), compute: int64(0), put: int64(0), want: []string{spans.VerdictTQOverhead}, reason: "(GET 100%, PUT 0%)"},
		"no numbers":            {get: "0.9", compute: true, put: []any{0.9}, children: stages},
		"overlapping stages":    {get: 0.9, compute: 0.9, put: 0.9, want: []string{spans.VerdictTQOverhead}, reason: "took 180% of"},
		"incomplete":            {get: 0.9, compute: 0.0, put: 0.0, change: func(f ptrace.Span) { f.Attributes().PutBool(spans.AttrIncomplete, true) }},
		"no duration":           {get: 0.9, compute: 0.0, put: 0.0, change: func(f ptrace.Span) { f.SetEndTimestamp(f.StartTimestamp()) }},
		"ends before its start": {get: 0.9, compute: 0.0, put: 0.0, change: func(f ptrace.Span) { f.SetEndTimestamp(f.StartTimestamp() - 1) }},
		"judged before": {get: 0.9, compute: 0.0, put: 0.0, change: func(f ptrace.Span) {
			f.Attributes().PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr("mine")
		}, want: []string{"mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := perftest.Carry(addFunction(b, 1, "rollout", perftest.Base, 1000, tt.children...), tt.get, tt.compute, tt.put)
			if tt.overhead != nil {
				f.Attributes().PutDouble(spans.AttrTQOverheadUtilization, tt.overhead.(float64))
			}
			if tt.change != nil {
				tt.change(f)
			}
			before := f.Attributes().AsRaw()
			perftest.Judge(newTest(t), b.Traces())
			assert.Equal(t, tt.want, perftest.Verdicts(f))
			assert.Equal(t, before, unjudged(f, before), "what the service measured stays, and nothing else is added")
			checkReason(t, f, tt.reason)
		})
	}
}

// unjudged is the function's attributes except new verdicts.
func unjudged(f ptrace.Span, before map[string]any) map[string]any {
	after := f.Attributes().AsRaw()
	if _, judged := before[spans.AttrVerdict]; !judged {
		delete(after, spans.AttrVerdict)
		delete(after, spans.AttrVerdictSeverity)
		maps.DeleteFunc(after, func(name string, _ any) bool { return strings.HasPrefix(name, spans.AttrVerdictPrefix) })
		delete(after, spans.AttrSummary)
	}
	return after
}

// checkReason compares the function's only reason, or none.
func checkReason(t *testing.T, f ptrace.Span, want string) {
	t.Helper()
	if want == "" {
		assert.Empty(t, perftest.Reasons(f))
	} else if assert.Len(t, perftest.Reasons(f), 1) {
		assert.Contains(t, perftest.Reasons(f)[0], want)
	}
}

// service is the output of a Go service in the order in which its spans end: 60 functions of 500 ms, with GETs of 20 and 200 ms in turn.
func service() ptrace.Traces {
	b := spans.NewBatch("github.com/trainbridge/trainbridge/bridge", "")
	for i := range 60 {
		get := int64(1+i%2*9) * 20_000_000
		f := addFunction(b, 10*i+10, "rollout", perftest.Base+int64(i)*1e9, 500_000_000,
			stageSpan{"get", 0, get}, stageSpan{"compute", get, 400_000_000}, stageSpan{"put", 400_000_000, 500_000_000})
		perftest.CarryAll(f, float64(get)/5e8, float64(400_000_000-get)/5e8, 0.2)
	}
	td := b.Traces()
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().Sort(func(a, b ptrace.Span) bool {
		return cmp.Or(cmp.Compare(a.EndTimestamp(), b.EndTimestamp()), cmp.Compare(b.StartTimestamp(), a.StartTimestamp())) < 0
	})
	return td
}

// split cuts a batch into several; cut chooses the batch of a span.
func split(td ptrace.Traces, cut func(i int, s ptrace.Span) int) []ptrace.Traces {
	var out []ptrace.Traces
	rs := td.ResourceSpans().At(0)
	for i, s := range rs.ScopeSpans().At(0).Spans().All() {
		n := cut(i, s)
		for len(out) <= n {
			one := ptrace.NewTraces()
			to := one.ResourceSpans().AppendEmpty()
			rs.Resource().CopyTo(to.Resource())
			rs.ScopeSpans().At(0).Scope().CopyTo(to.ScopeSpans().AppendEmpty().Scope())
			out = append(out, one)
		}
		s.CopyTo(out[n].ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty())
	}
	return out
}

// cuts are ways in which an SDK may cut a service's spans.
var cuts = map[string]func(i int, s ptrace.Span) int{
	"one batch":               func(int, ptrace.Span) int { return 0 },
	"a batch per span":        func(i int, _ ptrace.Span) int { return i },
	"seven spans":             func(i int, _ ptrace.Span) int { return i / 7 },
	"stages before functions": func(_ int, s ptrace.Span) int { return btoi(stageOf(s) == spans.TQFunction) },
	"functions before stages": func(_ int, s ptrace.Span) int { return btoi(stageOf(s) != spans.TQFunction) },
	"GET apart":               func(_ int, s ptrace.Span) int { return btoi(stageOf(s) != spans.TQGet) },
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func stageOf(s ptrace.Span) spans.TQStage {
	v, ok := s.Attributes().Get(spans.AttrTQStage)
	if !ok {
		return spans.TQNone
	}
	return spans.TQStageOf(v)
}

// TestSplitBatches: the cut changes neither the verdicts of functions nor the windows, and fluctuating times get one verdict.
func TestSplitBatches(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			p := newTest(t)
			fluctuating, reason := 0, ""
			for _, td := range split(service(), cut) {
				perftest.Judge(p, td)
				for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
					names := perftest.Verdicts(s)
					if i := slices.Index(names, saidGet); i >= 0 {
						names = slices.Delete(names, i, i+1)
						fluctuating++
						reason = perftest.Reasons(s)[len(perftest.Reasons(s))-1]
					}
					if stageOf(s) != spans.TQFunction {
						assert.Empty(t, names)
						continue
					}
					// PUT takes a fifth, GET 4 % or 40 %.
					want := saidElevated
					if i := int(binary.BigEndian.Uint64(sid(s))) / 10; i%2 == 0 { // ids begin with 10
						want = spans.VerdictTQOverhead
					}
					assert.Equal(t, []string{want}, names)
				}
			}
			assert.Equal(t, 1, fluctuating, "once per window")
			// The 20th GET: ten of 20 ms and ten of 200 ms have the mean 110 ms and the deviation 90 ms.
			assert.Contains(t, reason, "The GET times of rollout fluctuate: standard deviation 81.8% of the mean of 110 ms over the last 20")
			for st, want := range map[spans.TQStage]uint64{spans.TQGet: 30 * 220_000_000, spans.TQPut: 60 * 100_000_000} {
				w, ok := p.windows.byKey.Peek(windowKey{service: "verl", run: "run-1", function: "rollout", stage: st})
				require.True(t, ok)
				assert.Len(t, w.ns, 60)
				assert.Equal(t, want, w.sum)
			}
			assert.Equal(t, 2, p.windows.byKey.Len())
		})
	}
}

func sid(s ptrace.Span) []byte {
	id := s.SpanID()
	return id[:]
}

// TestReplayedBatches: a batch judged again comes out the same, and a copy of an incoming batch (an SDK resends without an answer) gets no second verdict about
// fluctuation.
func TestReplayedBatches(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			p := newTest(t)
			for _, td := range split(service(), cut) {
				again := ptrace.NewTraces()
				td.CopyTo(again)
				perftest.Judge(p, td)
				once := ptrace.NewTraces()
				td.CopyTo(once)
				perftest.Judge(p, td)
				require.NoError(t, ptracetest.CompareTraces(once, td), "the second pass changed something")
				perftest.Judge(p, again)
				for i, s := range again.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
					first := perftest.Verdicts(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i))
					first = slices.DeleteFunc(first, func(name string) bool { return name == saidGet })
					assert.ElementsMatch(t, first, perftest.Verdicts(s))
				}
			}
			for _, k := range p.windows.byKey.Keys() {
				w, _ := p.windows.byKey.Peek(k)
				assert.Len(t, w.ns, 60)
			}
		})
	}
}

// TestGatewayBehindAnAgent: a gateway with other limits and newly cut batches leaves judged spans of an agent unchanged, with or without verdicts.
func TestGatewayBehindAnAgent(t *testing.T) {
	logs := func() ptrace.Traces { // of tq_trace
		b := spans.NewBatch("tq_trace", "")
		for i := range 60 {
			get := int64(1+i%2*9) * 20_000_000
			addFunction(b, 10*i+10, "rollout", perftest.Base+int64(i)*1e9, 500_000_000, stageSpan{"get", 0, get}, stageSpan{"compute", get, 499_000_000},
				stageSpan{"put", 499_000_000, 500_000_000})
			addFunction(b, 10*i+15, "short", perftest.Base+int64(i)*1e9, 1000, stageSpan{"get", 0, 10}, stageSpan{"compute", 10, 500})
			perftest.AddClient(b, 10*i+19, 0, spans.StageClientPut, perftest.Base, get).Attributes().PutDouble(spans.AttrTQThroughput, 300*mib)
		}
		return b.Traces()
	}
	for from, build := range map[string]func() ptrace.Traces{"service": service, "log": logs} {
		for name, cut := range cuts {
			t.Run(from+" "+name, func(t *testing.T) {
				agent := newTest(t)
				gateway := newTest(t, func(c *Config) {
					c.OverheadElevated, c.OverheadHigh, c.ThroughputLow = 0.001, 0.001, 400
					c.Fluctuation = FluctuationConfig{Threshold: 0.01, Window: 10, MinSamples: 2}
				})
				td := build()
				perftest.Judge(agent, td)
				for _, part := range split(td, cut) {
					raw, err := new(ptrace.ProtoMarshaler).MarshalTraces(part)
					require.NoError(t, err)
					got, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(raw)
					require.NoError(t, err)
					perftest.Judge(gateway, got)
					require.NoError(t, ptracetest.CompareTraces(part, got))
				}
				assert.Zero(t, gateway.windows.byKey.Len(), "the agent has these times")
			})
		}
	}
}

// TestStageWithoutFunction: a stage in a span of another kind has a window too, unless its function has no name or the stage did not end.
func TestStageWithoutFunction(t *testing.T) {
	p := newTest(t)
	add := func(b *spans.Batch, id int, stage string, ns int64) ptrace.Span {
		s := perftest.AddClient(b, id, 9999, stage, perftest.Base+int64(id)*1e9, ns)
		s.SetKind(ptrace.SpanKindInternal)
		return s
	}
	b := spans.NewBatch("test", "")
	for i := range 40 {
		add(b, 10*i+1, "get", int64(1+i%2*9)*1e6)
		add(b, 10*i+2, "compute", int64(1+i%2*9)*1e6)
		add(b, 10*i+3, "put", int64(1+i%2*9)*1e6).Attributes().Remove(spans.AttrTQFunction)
		add(b, 10*i+4, "put", int64(1+i%2*9)*1e6).Attributes().PutBool(spans.AttrIncomplete, true)
		add(b, 10*i+5, "put", -int64(1+i%2*9)*1e6)
	}
	perftest.Judge(p, b.Traces())
	assert.Equal(t, 1, p.windows.byKey.Len())
	repeats := 0
	for _, s := range b.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		if names := perftest.Verdicts(s); names != nil {
			repeats++
			assert.Equal(t, []string{saidGet}, names)
			assert.Equal(t, perftest.SpanID(191), s.SpanID(), "the 20th")
		}
	}
	assert.Equal(t, 1, repeats)
}

// TestCarriedWithOpenStage: a stage without an end is in no window.
func TestCarriedWithOpenStage(t *testing.T) {
	p := newTest(t)
	b := spans.NewBatch("test", "")
	perftest.CarryAll(addFunction(b, 10, "rollout", perftest.Base, 1000, stageSpan{"get", 0, 100}, stageSpan{"get", 100, 50}), 0.1, 0.7, 0)
	perftest.Judge(p, b.Traces())
	w, ok := p.windows.byKey.Peek(windowKey{service: "verl", run: "run-1", function: "rollout", stage: spans.TQGet})
	require.True(t, ok)
	assert.Equal(t, []uint64{100}, w.ns)
}

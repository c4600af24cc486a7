package show

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// client is a simulated client of RPCs, as told by zmq_rpc and train_perf.
type client struct {
	layers, passes int
	slow           map[int]bool // passes with long serialization
	crash          bool         // the last pass breaks off
	shared, server bool
	offline        bool
	unjudged       bool // train_perf did not run
}

// traces makes a session and passes. A call of the n-th place in a layer takes 10 + n ms: serialization is a tenth, send a twentieth, deserialization a
// fifth, and 20 µs are of no stage; the calls of slow passes serialize for 10 ms more.
func (c client) traces() ptrace.Traces {
	b := spans.NewBatch("test", "")
	at := int64(1770799200) * second
	for pass := range c.passes + 1 {
		at = c.group(b, pass, at)
	}
	return b.Traces()
}

// calls makes the calls of a group in a row.
type calls struct {
	client
	*spans.Batch
	slow  bool
	trace pcommon.TraceID
	root  pcommon.SpanID
	at    int64
	sums  map[string]float64 // sums of durations in s, by attribute
	size  int64
}

// group makes the session's set-up (the pass 0) or a pass, and returns the end.
func (c client) group(b *spans.Batch, pass int, at int64) (end int64) {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(pass))
	name, methods := spans.SpanRPCPass, []string{"Embedding"}
	for range c.layers {
		methods = append(methods, "BatchLinear", "Matmul", "Matmul", "BatchLinear", "BatchLinear", "BatchLinear")
	}
	methods = append(methods, "LMHead")
	if pass == 0 {
		name, methods = spans.SpanRPCSession, []string{"Init"}
	}
	if c.crash && pass == c.passes {
		methods = methods[:3]
	}
	trace := spans.TraceID("run-5", key[:])
	g := calls{client: c, Batch: b, slow: c.slow[pass], trace: trace, root: spans.SpanID(trace, name), at: at, sums: map[string]float64{}}
	for i, method := range methods {
		g.call(i, method)
	}
	s := b.Add(spans.Resource{Service: "zeromq", RunID: "run-5"}, spans.Span{Trace: trace, ID: g.root, Name: name, Start: at, End: g.at - 1e6})
	m := s.Attributes()
	for attr, v := range g.sums {
		m.PutDouble(attr, v)
	}
	m.PutInt(spans.AttrZMQPassCalls, int64(len(methods)))
	if !c.shared {
		m.PutDouble(spans.AttrZMQThroughput, float64(g.size)/g.sums[spans.AttrZMQCallDuration])
	}
	if pass == 0 {
		return g.at
	}
	m.PutInt(spans.AttrZMQPass, int64(pass))
	if len(methods) < 2+6*c.layers {
		m.PutBool(spans.AttrIncomplete, true)
		m.PutStr(spans.AttrIncompleteReason, spans.PassEndTimeout)
	}
	if !c.unjudged {
		g.judge(s, len(methods))
	}
	return g.at
}

// call makes the i-th call with its stages.
func (g *calls) call(i int, method string) {
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], uint32(i))
	ns := int64(10e6) + int64(i%6)*1e6 + int64(i)*1e3
	serialize, send, deserialize := ns/10, ns/20, ns/5
	receive := ns - serialize - send - deserialize - 20e3
	if g.slow {
		serialize += 10e6
		ns += 10e6
	}
	add := func(name string, parent pcommon.SpanID, start, took int64) (ptrace.Span, pcommon.SpanID) {
		id := spans.SpanID(g.trace, name, key[:])
		res := spans.Resource{Service: "zeromq", RunID: "run-5"}
		return g.Add(res, spans.Span{Trace: g.trace, ID: id, Parent: parent, Name: name, Start: start, End: start + took}), id
	}
	if g.offline && (method == "Matmul" || method == "BatchLinear") {
		add(spans.SpanRPCOffline, g.root, g.at, 2e6)
		g.at += 2e6
		g.sums[spans.AttrZMQOfflineDuration] += 0.002
	}
	s, id := add(method, g.root, g.at, ns)
	s.SetKind(ptrace.SpanKindClient)
	m := s.Attributes()
	m.PutStr(spans.AttrRPCMethod, method)
	m.PutInt(spans.AttrZMQCallID, int64(i+1))
	m.PutInt(spans.AttrZMQRequestSize, 1<<20)
	m.PutInt(spans.AttrZMQResponseSize, 3<<19)
	if !g.shared {
		m.PutDouble(spans.AttrZMQThroughput, 5<<19/(float64(ns)/1e9))
	}
	g.size += 5 << 19
	g.sums[spans.AttrZMQCallDuration] += float64(ns) / 1e9
	start := g.at
	for _, stage := range []struct {
		name, attr string
		ns         int64
	}{
		{spans.SpanRPCSerialize, spans.AttrZMQSerializeDuration, serialize},
		{spans.SpanRPCSend, spans.AttrZMQSendDuration, send},
		{spans.SpanRPCReceive, spans.AttrZMQReceiveDuration, receive},
		{spans.SpanRPCDeserialize, spans.AttrZMQDeserializeDuration, deserialize},
		{spans.SpanRPCUnattributed, spans.AttrZMQUnattributedDuration, 20e3},
	} {
		_, sid := add(stage.name, id, start, stage.ns)
		start += stage.ns
		g.sums[stage.attr] += float64(stage.ns) / 1e9
		if g.server && stage.name == spans.SpanRPCReceive {
			add(spans.SpanRPCServer, sid, start-receive/2, receive/2)
			g.sums[spans.AttrZMQServerDuration] += float64(receive/2) / 1e9
		}
	}
	g.at += ns + 1e6
}

// judge does as train_perf does.
func (g *calls) judge(s ptrace.Span, n int) {
	whole := g.sums[spans.AttrZMQCallDuration]
	share := g.sums[spans.AttrZMQSerializeDuration] / whole
	transport := (g.sums[spans.AttrZMQSendDuration] + g.sums[spans.AttrZMQReceiveDuration] - g.sums[spans.AttrZMQServerDuration]) / whole
	s.Attributes().PutDouble(spans.AttrZMQSerializeUtilization, share)
	s.Attributes().PutDouble(spans.AttrZMQTransportUtilization, transport)
	for _, v := range []verdict{
		{view.Said{Name: spans.VerdictZMQSerializeHigh}, "Serialization took " + human.Percent(share) + " of the calls' time, above the limit of 30%.", share, 0.3},
		{view.Said{Name: spans.VerdictZMQTransportHigh}, "Sending and receiving took " + human.Percent(transport) + " of the calls' time, above the limit of 30%.", transport, 0.3},
		{view.Said{Name: spans.VerdictZMQCallsHigh}, "The pass had more than 50 calls.", float64(n), 50},
	} {
		if v.value > v.threshold {
			judge(s, v)
		}
	}
}

// judge adds a warning to the verdicts of a span.
func judge(s ptrace.Span, v verdict) {
	before := pcommon.NewSlice()
	if old, ok := s.Attributes().Get(spans.AttrVerdict); ok {
		old.Slice().CopyTo(before)
	}
	verdictOn(s, spans.SeverityWarning, v)
	now, _ := s.Attributes().Get(spans.AttrVerdict)
	before.AppendEmpty().SetStr(v.Name)
	before.CopyTo(now.Slice())
}

func TestPassesGolden(t *testing.T) {
	clients := map[string]client{
		"passes.txt":         {layers: 16, passes: 12, slow: map[int]bool{3: true, 11: true}},
		"passes_server.txt":  {layers: 2, passes: 2, server: true, shared: true, crash: true},
		"passes_offline.txt": {layers: 1, passes: 3, offline: true, unjudged: true},
	}
	url := answering(t, func(service string) ptrace.Traces { return clients[service].traces() })
	for golden := range clients {
		got, err := draw(t, options{jaeger: url, service: golden, width: 120}, false)
		require.NoError(t, err)
		compare(t, golden, got)
	}
}

// passOf is the pass of a trace, nil for another subject.
func passOf(t *tree.Trace) *tree.Span {
	for _, s := range t.Spans {
		if s.Name() == spans.SpanRPCPass {
			return s
		}
	}
	return nil
}

// A pass has hundreds of spans; the slowest calls are drawn with their stages, the others are counted.
func TestLongPassIsFolded(t *testing.T) {
	for _, c := range []client{
		{layers: 16, passes: 1}, {layers: 500, passes: 1, server: true, offline: true}, {layers: 16, passes: 1, slow: map[int]bool{1: true}},
	} {
		for _, width := range []int{60, 120} {
			var out strings.Builder
			printWaterfall(&out, mostInteresting(tree.Build(c.traces())), style{width, cst, false})
			text := out.String()
			assert.LessOrEqual(t, strings.Count(text, "▕")+strings.Count(text, "! "), maxLines)
			assert.NotContains(t, text, "more rows")
			assert.NotContains(t, text, "client operations")
			drawn := strings.Count(text, "rpc.serialize")
			assert.GreaterOrEqual(t, drawn, 3)
			if width == 120 {
				assert.Regexp(t, ` ×\d+ more `, text)
			}
		}
	}
}

func TestLongestChildren(t *testing.T) {
	root := passOf(mostInteresting(tree.Build(client{layers: 1, passes: 1}.traces())))
	var got []string
	for _, c := range longestFirst(root.Children, 2) {
		text := row{Span: c.Span, fold: c.fold}.name(80)
		if c.bare {
			text += " alone"
		}
		if c.fold != nil {
			text += " " + c.fold.times() + " " + c.fold.details()
		}
		got = append(got, text)
	}
	// The places 4 and 5 of 0 to 7 are the longest; with gaps of 1 ms the pass takes 103.028 ms.
	assert.Equal(t, []string{
		"Embedding alone", "BatchLinear", "BatchLinear", "LMHead alone",
		"BatchLinear ×2 more 10–11 ms together 21 ms · 20.4%", "Matmul ×2 12–13 ms together 25 ms · 24.3%",
	}, got)
	for _, keep := range []int{0, len(root.Children)} {
		all := longestFirst(root.Children, keep)
		require.Len(t, all, 8)
		for i, c := range all {
			assert.Equal(t, child{Span: root.Children[i]}, c)
		}
	}
}

func TestWorstPassIsInteresting(t *testing.T) {
	for _, tt := range []struct {
		c    client
		want string
	}{
		{client{layers: 4, passes: 5, slow: map[int]bool{2: true}}, "2"},
		{client{layers: 4, passes: 5, slow: map[int]bool{2: true}, unjudged: true}, "2"}, // the slowest
		{client{layers: 4, passes: 5}, "5"},                                              // the newest
		{client{layers: 4, passes: 5, crash: true}, "4"},                                 // the slowest
		{client{layers: 4, passes: 0}, ""},
	} {
		s := passOf(mostInteresting(tree.Build(tt.c.traces())))
		if tt.want == "" {
			assert.Nil(t, s)
			continue
		}
		assert.Equal(t, tt.want, attr(s, spans.AttrZMQPass))
	}
}

// Spans for the stages of many calls are drawn as such, and are not among the longest calls.
func TestAggregatedStages(t *testing.T) {
	td := client{layers: 3, passes: 1}.traces()
	root := passOf(mostInteresting(tree.Build(td)))
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty()
	s.SetTraceID(root.TraceID())
	s.SetSpanID(pcommon.SpanID{7})
	s.SetParentSpanID(root.SpanID())
	s.SetName(spans.SpanRPCSerialize)
	s.SetStartTimestamp(root.StartTimestamp())
	s.SetEndTimestamp(root.EndTimestamp())
	s.Attributes().PutInt(spans.AttrAggregateCount, 512)
	s.Attributes().PutDouble(spans.AttrAggregateSum, 1.25)
	s.Attributes().PutDouble(spans.AttrAggregateMax, 0.004)
	var out strings.Builder
	printWaterfall(&out, mostInteresting(tree.Build(td)), style{200, cst, false})
	assert.Regexp(t, `├─rpc.serialize +\S+ ms ▕░+▏ 512 spans · together 1.25 s · longest 4 ms\n`, out.String())
	assert.Equal(t, 5, strings.Count(out.String(), "│ ├─rpc.serialize"))
}

func TestPassVerdictInShort(t *testing.T) {
	for _, tt := range []struct {
		v    verdict
		want string
	}{
		{verdict{Said: view.Said{Name: spans.VerdictZMQSerializeHigh}, value: 0.4512, threshold: 0.3}, "zeromq_serialize_high 45.1% > 30%"},
		{verdict{Said: view.Said{Name: spans.VerdictZMQTransportHigh}, value: 0.81, threshold: 0.3}, "zeromq_transport_high 81% > 30%"},
		{verdict{Said: view.Said{Name: spans.VerdictZMQCallsHigh}, value: 98, threshold: 50}, "zeromq_calls_high 98 > 50"},
	} {
		assert.Equal(t, tt.want, tt.v.summary())
	}
}

// A pass with nothing but its name, or with texts for numbers, is drawn too.
func TestBarePass(t *testing.T) {
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName(spans.SpanRPCPass)
	for range 2 {
		var out strings.Builder
		traces := tree.Build(td)
		passTable(&out, digestOf(traces), style{120, cst, true})
		printWaterfall(&out, mostInteresting(traces), style{80, cst, false})
		assert.Contains(t, out.String(), "RPC passes")
		assert.NotContains(t, out.String(), "\x1b[2J")
		s.Attributes().PutStr(spans.AttrVerdict, "\x1b[2J")
		s.Attributes().PutStr(spans.AttrZMQPass, "\x1b[2J")
		s.Attributes().PutDouble(spans.AttrZMQCallDuration, 0)
		s.Attributes().PutDouble(spans.AttrZMQSerializeDuration, 1)
	}
}

// TestWholeLog: set-up, warm-up and measured pass of a public log (TSQP 4bf688c) together, as printed by analyze_zmq_performance.py for the file.
func TestWholeLog(t *testing.T) {
	b := spans.NewBatch("test", "")
	for i, g := range []struct {
		name                            string
		calls                           int64
		total, serialize, send, receive float64 // ms
		sent, received                  float64 // KB
	}{
		{spans.SpanRPCSession, 1, 2.268, 0.085, 0.03, 2.057, 0.02, 266.33},
		{spans.SpanRPCPass, 98, 37935.265, 4752.804, 2089.276, 28633.043, 3407897.39, 3744251.82},
		{spans.SpanRPCPass, 98, 42999.571, 5533.732, 2522.379, 32035.494, 3407897.39, 3744251.82},
	} {
		start := int64(i+1) * second
		s := b.Add(spans.Resource{Service: "zeromq", RunID: "run"}, spans.Span{
			Trace: pcommon.TraceID{byte(i + 1)}, ID: pcommon.SpanID{1}, Name: g.name, Start: start, End: start + 1,
		})
		m := s.Attributes()
		m.PutInt(spans.AttrZMQPassCalls, g.calls)
		m.PutInt(spans.AttrZMQRequestSize, int64(g.sent*1024))
		m.PutInt(spans.AttrZMQResponseSize, int64(g.received*1024))
		m.PutDouble(spans.AttrZMQThroughput, (g.sent+g.received)*1024/g.total*1e3)
		for name, ms := range map[string]float64{
			spans.AttrZMQCallDuration: g.total, spans.AttrZMQSerializeDuration: g.serialize, spans.AttrZMQSendDuration: g.send, spans.AttrZMQReceiveDuration: g.receive,
		} {
			m.PutDouble(name, ms/1e3)
		}
	}
	var w strings.Builder
	passTable(&w, digestOf(tree.Build(b.Traces())), style{120, time.UTC, reading.Palette(false)})
	assert.Regexp(t, `(?m)^median of 2 +98 +`, w.String())
	assert.Regexp(t, `(?m)^all 197 calls +197 +80\.9 s +12\.7% +80\.7%( +-)? +173 MiB/s`, w.String())
}

package trainmetricsconnector

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// addRPC appends a span of a trace of calls, ending at base + end.
func addRPC(b *spans.Batch, res spans.Resource, id int, kind ptrace.SpanKind, name string, end, ns int64) ptrace.Span {
	return b.Add(res, spans.Span{Trace: pcommon.TraceID{3}, ID: spanID(id), Name: name, Kind: kind, Start: base + end - ns, End: base + end})
}

// addCall appends a call as zmq_rpc writes one; a size below 0 is unknown.
func addCall(b *spans.Batch, res spans.Resource, id int, method, transport string, ns, request, response int64) ptrace.Span {
	s := addRPC(b, res, id, ptrace.SpanKindClient, method, ns, ns)
	a := s.Attributes()
	a.PutStr(spans.AttrRPCSystem, spans.RPCSystemZeroMQ)
	a.PutStr(spans.AttrRPCMethod, method)
	if transport != "" {
		a.PutStr(spans.AttrNetworkTransport, transport)
	}
	a.PutInt(spans.AttrZMQCallID, int64(id))
	if request >= 0 {
		a.PutInt(spans.AttrZMQRequestSize, request)
	}
	if response >= 0 {
		a.PutInt(spans.AttrZMQResponseSize, response)
	}
	return s
}

// addSend appends the part of a call that sends the request.
func addSend(b *spans.Batch, res spans.Resource, call int, ns int64) {
	b.Add(res, spans.Span{
		Trace: pcommon.TraceID{3}, ID: spanID(call + 1<<20), Parent: spanID(call), Name: spans.SpanRPCSend, Kind: ptrace.SpanKindInternal,
		Start: base, End: base + ns,
	})
}

// addGroup appends the root of a group of calls.
func addGroup(b *spans.Batch, res spans.Resource, id int, name string, ns int64, numbers map[string]float64) ptrace.Span {
	s := addRPC(b, res, id, ptrace.SpanKindInternal, name, ns, ns)
	s.Attributes().PutStr(spans.AttrZMQTransport, "IPC")
	s.Attributes().PutStr(spans.AttrNetworkTransport, "unix")
	for n, v := range numbers {
		s.Attributes().PutDouble(n, v)
	}
	return s
}

var rpcChildren = []string{
	spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCServer, spans.SpanRPCDeserialize, spans.SpanRPCUnattributed,
	spans.SpanRPCOffline, spans.SpanRPCSummary,
}

const (
	zmqLabels  = "[rpc.system.name=zeromq]"
	matmulUnix = "[network.transport=unix rpc.method=Matmul rpc.system.name=zeromq]"
)

// rpcBatch has every value of calls and their groups.
func rpcBatch() ptrace.Traces {
	b := spans.NewBatch("test", "")
	// The session's set-up.
	init := addGroup(b, resourceA, 1, spans.SpanRPCSession, 2_268_000, map[string]float64{
		spans.AttrZMQPassCalls: 1, spans.AttrZMQThroughputDisagreement: 0.00003, spans.AttrZMQSerializeUtilization: 0.037, spans.AttrZMQTransportUtilization: 0.92,
	})
	judged(init, spans.VerdictZMQTransportHigh)
	addCall(b, resourceA, 2, "Init", "unix", 2_268_000, 20, 272_722)
	// A pass of three calls.
	pass := addGroup(b, resourceA, 3, spans.SpanRPCPass, 820_371_000, map[string]float64{
		spans.AttrZMQThroughputDisagreement: 0.02, spans.AttrZMQSerializeUtilization: 0.31, spans.AttrZMQSendUtilization: 0.11, spans.AttrZMQReceiveUtilization: 0.46,
		spans.AttrZMQDeserializeUtilization: 0.1, spans.AttrZMQServerUtilization: 0.4, spans.AttrZMQUnattributedUtilization: 0.02,
		spans.AttrZMQTransportUtilization: 0.17,
		spans.AttrZMQThroughput:           2e8, spans.AttrZMQCallDuration: 0.820371,
	})
	pass.Attributes().PutInt(spans.AttrZMQPassCalls, 3)
	judged(pass, spans.VerdictZMQSerializeHigh, spans.VerdictZMQCallsHigh)
	addCall(b, resourceA, 4, "Matmul", "unix", 768_920_000, 16_777_298, 134_217_779).Attributes().PutInt(spans.AttrZMQCallSlowest, 1)
	addSend(b, resourceA, 4, 300_000_000)
	addSend(b, resourceA, 6, 1e6) // not of the call before
	addCall(b, resourceA, 5, "Matmul", "unix", 51_000_000, 64, 65).Attributes().PutDouble(spans.AttrZMQReceiveDuration, 0.05)
	addSend(b, resourceA, 5, 1e6) // ignored: the call itself has its stages
	addCall(b, resourceA, 6, "Matmul", "tcp", 451_000, -1, 0)
	for i, name := range rpcChildren {
		addRPC(b, resourceA, 10+i, ptrace.SpanKindInternal, name, 1e6, 1e6)
	}
	// The next pass ended with a restart of the client; its only call was whole.
	cut := addGroup(b, resourceA, 20, spans.SpanRPCPass, 5e9, map[string]float64{
		spans.AttrZMQPassCalls: 1, spans.AttrZMQSendUtilization: 0.9,
		spans.AttrZMQThroughputDisagreement: 0.9,
	})
	cut.Attributes().PutBool(spans.AttrIncomplete, true)
	judged(cut, spans.VerdictZMQSerializeHigh)
	addCall(b, resourceA, 21, "Embedding", "", 20_000, 1, 1)
	addCall(b, resourceA, 22, "Matmul", "unix", 9e9, 1, 1).Attributes().PutBool(spans.AttrIncomplete, true)
	// Calls of no pass, which ended after the whole pass.
	addGroup(b, resourceA, 23, spans.SpanRPCCalls, 900_000_000, map[string]float64{
		spans.AttrZMQPassCalls: 7, spans.AttrZMQThroughputDisagreement: 0, spans.AttrZMQSendUtilization: 0.25,
	})
	return b.Traces()
}

func TestEveryRPCMetric(t *testing.T) {
	c := newBed(t)
	start := pcommon.NewTimestampFromTime(c.clock)
	c.consume(rpcBatch())
	got := c.flushed(15 * time.Second)
	const matmulTCP = "[network.transport=tcp rpc.method=Matmul rpc.system.name=zeromq]"
	with := func(labels, more string) string { return labels[:len(labels)-1] + " " + more + "]" }
	const initUnix = "[network.transport=unix rpc.method=Init rpc.system.name=zeromq]"
	const embedding = "[rpc.method=Embedding rpc.system.name=zeromq]"
	for key, want := range map[string]wantPoint{
		"rpc.client.call.duration|" + matmulUnix:                        {2, 0.81992, []pcommon.SpanID{spanID(4), spanID(5)}},
		"rpc.client.call.duration|" + matmulTCP:                         {1, 0.000451, []pcommon.SpanID{spanID(6)}},
		"rpc.client.call.duration|" + initUnix:                          {1, 0.002268, []pcommon.SpanID{spanID(2)}},
		"rpc.client.call.duration|" + embedding:                         {1, 0.00002, []pcommon.SpanID{spanID(21)}},
		"zeromq.stage.time|" + with(matmulUnix, "zeromq.stage=send"):    {0.3, 0, []pcommon.SpanID{spanID(4)}},
		"zeromq.stage.time|" + with(matmulUnix, "zeromq.stage=receive"): {0.05, 0, []pcommon.SpanID{spanID(5)}},
		"rpc.client.request.size|" + matmulUnix:                         {2, 16_777_362, []pcommon.SpanID{spanID(4), spanID(5)}},
		"rpc.client.request.size|" + initUnix:                           {1, 20, []pcommon.SpanID{spanID(2)}},
		"rpc.client.request.size|" + embedding:                          {1, 1, []pcommon.SpanID{spanID(21)}},
		"rpc.client.response.size|" + matmulUnix:                        {2, 134_217_844, []pcommon.SpanID{spanID(4), spanID(5)}},
		"rpc.client.response.size|" + matmulTCP:                         {1, 0, []pcommon.SpanID{spanID(6)}},
		"rpc.client.response.size|" + initUnix:                          {1, 272_722, []pcommon.SpanID{spanID(2)}},
		"rpc.client.response.size|" + embedding:                         {1, 1, []pcommon.SpanID{spanID(21)}},
		"zeromq.pass.duration|" + zmqLabels:                             {1, 0.820371, []pcommon.SpanID{spanID(3)}},
		"zeromq.pass.calls|" + zmqLabels:                                {1, 3, []pcommon.SpanID{spanID(3)}},
		// Of the session, the pass and the calls of no pass: 0.00003, 0.02 and 0.
		"zeromq.throughput.disagreement|" + zmqLabels:                                                                                       {3, 0.02003, []pcommon.SpanID{spanID(3), spanID(23)}},
		"zeromq.stage.utilization|[rpc.system.name=zeromq zeromq.stage=serialize]":                                                          {0.31, 0, nil},
		"zeromq.stage.utilization|[rpc.system.name=zeromq zeromq.stage=send]":                                                               {0.25, 0, nil},
		"zeromq.stage.utilization|[rpc.system.name=zeromq zeromq.stage=receive]":                                                            {0.46, 0, nil},
		"zeromq.stage.utilization|[rpc.system.name=zeromq zeromq.stage=deserialize]":                                                        {0.1, 0, nil},
		"zeromq.stage.utilization|[rpc.system.name=zeromq zeromq.stage=server]":                                                             {0.4, 0, nil},
		"zeromq.stage.utilization|[rpc.system.name=zeromq zeromq.stage=unattributed]":                                                       {0.02, 0, nil},
		"zeromq.stage.utilization|[rpc.system.name=zeromq zeromq.stage=transport]":                                                          {0.17, 0, nil},
		"trainbridge.verdicts|[rpc.system.name=zeromq trainbridge.verdict.name=zeromq_transport_high trainbridge.verdict.severity=warning]": {1, 0, []pcommon.SpanID{spanID(1)}},
		"trainbridge.verdicts|[rpc.system.name=zeromq trainbridge.verdict.name=zeromq_serialize_high trainbridge.verdict.severity=warning]": {2, 0, []pcommon.SpanID{spanID(3), spanID(20)}},
		"trainbridge.verdicts|[rpc.system.name=zeromq trainbridge.verdict.name=zeromq_calls_high trainbridge.verdict.severity=warning]":     {1, 0, []pcommon.SpanID{spanID(3)}},
		"trainbridge.incomplete.spans|" + zmqLabels:                                                                                         {1, 0, []pcommon.SpanID{spanID(20)}},
		"trainbridge.incomplete.spans|[network.transport=unix rpc.method=Matmul rpc.system.name=zeromq]":                                    {1, 0, []pcommon.SpanID{spanID(22)}},
	} {
		takePoint(t, got, key, start, want)
	}
	assert.Empty(t, got)
}

// wantPoint is an expected series.
type wantPoint struct {
	value, sum float64 // value: of histograms the count
	spans      []pcommon.SpanID
}

// takePoint compares a series with the expected one, and takes the series out of the rest.
func takePoint(t *testing.T, got map[string]point, key string, start pcommon.Timestamp, want wantPoint) {
	t.Helper()
	p, ok := got[prefix+key]
	if !assert.True(t, ok, key) {
		return
	}
	delete(got, prefix+key)
	assert.InDelta(t, want.value, p.value+float64(p.count), 0, key)
	assert.InDelta(t, want.sum, p.sum, 1e-15, key)
	assert.Equal(t, want.spans, p.spans, key)
	if p.start != 0 {
		assert.Equal(t, start, p.start, key)
	}
	assert.Equal(t, map[string]any{"service.name": "verl", "ml.run.id": "run-1", "service.instance.id": "run-1"}, p.host)
}

// ofRPC: durations are in nanoseconds, sizes and numbers of calls have no factor.
func ofRPC(metric string) float64 {
	if metric == "rpc.client.call.duration" || metric == "zeromq.pass.duration" {
		return 1e9
	}
	return 1
}

// TestRPCAgainstOracle sends random calls and groups in random batches, some twice, and sums the input independently.
func TestRPCAgainstOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 11))
		c := newBed(t)
		o := rpcOracle{
			counts: map[string]uint64{}, totals: map[string]int64{}, latest: map[string]int64{}, gauge: map[string]float64{}, values: map[string]float64{},
		}
		last := c.consumeRandom(rng, 60, func(b *spans.Batch, id int) { o.add(b, id, rng) })
		require.Len(t, last, len(o.counts)+len(o.values)+len(o.gauge))
		maps.Copy(o.values, o.gauge)
		for key, want := range o.values {
			assert.InDelta(t, want, last[key].value, 0, key)
		}
		checkCounts(t, last, o.counts, o.totals, ofRPC)
	}
}

// rpcOracle has the expected series of the spans added.
type rpcOracle struct {
	counts map[string]uint64
	totals map[string]int64 // ns, bytes or calls
	latest map[string]int64 // ns at which the latest group of a gauge ended
	gauge  map[string]float64
	values map[string]float64
}

func (o *rpcOracle) add(b *spans.Batch, id int, rng *rand.Rand) {
	res, ns := resourceA, int64(math.Exp(rng.Float64()*26))
	res.RunID = fmt.Sprint("run-", rng.IntN(2))
	key := func(metric, labels string) string { return "verl|" + res.RunID + "|" + metric + "|[" + labels }
	incomplete := rng.IntN(10) == 0
	count := func(metric, labels string, v int64) {
		if !incomplete {
			o.counts[key(metric, labels)]++
			o.totals[key(metric, labels)] += v
		}
	}
	var s ptrace.Span
	labels := "rpc.system.name=zeromq]"
	switch rng.IntN(8) {
	case 0: // a group
		name := []string{spans.SpanRPCPass, spans.SpanRPCCalls, spans.SpanRPCSession}[rng.IntN(3)]
		calls, share := rng.Int64N(3000), rng.Float64()
		s = addGroup(b, res, id, name, ns, map[string]float64{spans.AttrZMQReceiveUtilization: share})
		s.Attributes().PutInt(spans.AttrZMQPassCalls, calls)
		if name == spans.SpanRPCPass {
			count("zeromq.pass.duration", labels, ns)
			count("zeromq.pass.calls", labels, calls)
		}
		k := key("zeromq.stage.utilization", "rpc.system.name=zeromq zeromq.stage=receive]")
		if !incomplete && name != spans.SpanRPCSession && ns >= o.latest[k] {
			o.latest[k], o.gauge[k] = ns, share // all groups start at base
		}
	case 1:
		addRPC(b, res, id, ptrace.SpanKindInternal, rpcChildren[rng.IntN(len(rpcChildren))], ns, ns)
		return
	default:
		method, transport := fmt.Sprint("m", rng.IntN(4)), []string{"", "tcp", "unix"}[rng.IntN(3)]
		request, response := rng.Int64N(1<<rng.IntN(36)), rng.Int64N(1<<rng.IntN(36))-1
		s = addCall(b, res, id, method, transport, ns, request, response)
		labels = "rpc.method=" + method + " " + labels
		if transport != "" {
			labels = "network.transport=" + transport + " " + labels
		}
		count("rpc.client.call.duration", labels, ns)
		count("rpc.client.request.size", labels, request)
		if response >= 0 {
			count("rpc.client.response.size", labels, response)
		}
	}
	if incomplete {
		s.Attributes().PutBool(spans.AttrIncomplete, true)
		o.values[key("trainbridge.incomplete.spans", labels)]++
	}
	if rng.IntN(5) == 0 {
		judged(s, "v")
		i := len(labels) - 1
		o.values[key("trainbridge.verdicts", labels[:i]+" trainbridge.verdict.name=v]")]++
	}
}

func TestRPCRetryNeverCountsTwice(t *testing.T) {
	c := newBed(t)
	batch := rpcBatch()
	c.consume(batch)
	before := c.flushed(time.Second)
	for range 3 {
		c.consume(batch)
	}
	after := c.flushed(time.Second)
	require.Len(t, after, len(before))
	for key, p := range after {
		assert.InDelta(t, before[key].value, p.value, 0, key)
		assert.Equal(t, before[key].count, p.count, key)
	}
	metadatatest.AssertEqualConnectorTrainMetricsDuplicateSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: 3 * 10}}, metricdatatest.IgnoreTimestamp())
}

type callTest struct {
	change   func(pcommon.Map, ptrace.Span)
	labels   string  // empty: no series at all
	request  float64 // −1: no series
	other    int     // series beside the durations and sizes
	notTimed bool
	invalid  int64
}

func checkCalls(t *testing.T, cases map[string]callTest) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			c := newBed(t)
			b := spans.NewBatch("test", "")
			addCall(b, resourceA, 1, "Matmul", "unix", 1e6, 1000, -1)
			got := c.changed(b.Traces(), tt.change)
			series := tt.other
			if tt.labels != "" && !tt.notTimed {
				series++
				assert.Equal(t, uint64(1), got[prefix+"rpc.client.call.duration|"+tt.labels].count)
				p, ok := got[prefix+"rpc.client.request.size|"+tt.labels]
				if assert.Equal(t, tt.request >= 0, ok) && ok {
					series++
					assert.InDelta(t, tt.request, p.sum, 0)
				}
			}
			assert.Len(t, got, series)
			assertInvalid(t, c, tt.invalid)
		})
	}
}

func TestCallValues(t *testing.T) {
	checkCalls(t, map[string]callTest{
		"good":             {change: func(pcommon.Map, ptrace.Span) {}, labels: matmulUnix, request: 1000},
		"size as a double": {change: func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrZMQRequestSize, 2.5) }, labels: matmulUnix, request: 2.5},
		"negative size":    {change: func(m pcommon.Map, _ ptrace.Span) { m.PutInt(spans.AttrZMQRequestSize, -1) }, labels: matmulUnix, request: -1, invalid: 1},
		"negative part": {
			change: func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrZMQSendDuration, -1) }, labels: matmulUnix, request: 1000,
			invalid: 1,
		},
		"size of everything": {
			change: func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrZMQRequestSize, 1e300) }, labels: matmulUnix, request: -1,
			invalid: 1,
		},
		"NaN":          {change: func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrZMQRequestSize, math.NaN()) }, labels: matmulUnix, request: -1},
		"infinite":     {change: func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrZMQRequestSize, math.Inf(1)) }, labels: matmulUnix, request: -1},
		"size as text": {change: func(m pcommon.Map, _ ptrace.Span) { m.PutStr(spans.AttrZMQRequestSize, "1000") }, labels: matmulUnix, request: -1},
		"other types": {change: func(m pcommon.Map, s ptrace.Span) {
			s.SetName("")
			m.PutInt(spans.AttrRPCMethod, 1)
			m.PutEmptyMap(spans.AttrNetworkTransport)
			m.PutStr(spans.AttrIncomplete, "true")
			m.PutStr(spans.AttrVerdict, "bad")
		}, labels: "[rpc.system.name=zeromq]", request: 1000},
		"a method's name does not matter": {change: func(_ pcommon.Map, s ptrace.Span) { s.SetName(spans.SpanRPCSend) }, labels: matmulUnix, request: 1000},
		"nor that of a group":             {change: func(_ pcommon.Map, s ptrace.Span) { s.SetName(spans.SpanRPCPass) }, labels: matmulUnix, request: 1000},
		"verdict":                         {change: func(_ pcommon.Map, s ptrace.Span) { judged(s, "v") }, labels: matmulUnix, request: 1000, other: 1},
		"incomplete": {
			change: func(m pcommon.Map, _ ptrace.Span) { m.PutBool(spans.AttrIncomplete, true) }, labels: matmulUnix,
			request: -1, notTimed: true, other: 1,
		},
	})
}

func TestNoCall(t *testing.T) {
	checkCalls(t, map[string]callTest{
		"a server's":                   {change: func(_ pcommon.Map, s ptrace.Span) { s.SetKind(ptrace.SpanKindServer) }},
		"of another system":            {change: func(m pcommon.Map, _ ptrace.Span) { m.PutStr(spans.AttrRPCSystem, "grpc") }},
		"of a system that is a number": {change: func(m pcommon.Map, _ ptrace.Span) { m.PutInt(spans.AttrRPCSystem, 1) }},
		"several in one span":          {change: func(m pcommon.Map, _ ptrace.Span) { m.PutInt(spans.AttrAggregateCount, 40) }},
		"before its start":             {change: func(_ pcommon.Map, s ptrace.Span) { s.SetEndTimestamp(s.StartTimestamp() - 1) }, invalid: 1},
		"no start":                     {change: func(_ pcommon.Map, s ptrace.Span) { s.SetStartTimestamp(0) }, invalid: 1},
		"both are one span": {change: func(m pcommon.Map, s ptrace.Span) {
			s.SetStartTimestamp(0)
			m.PutInt(spans.AttrZMQRequestSize, -1)
		}, invalid: 1},
	})
}

func assertInvalid(t *testing.T, c *bed, want int64) {
	t.Helper()
	if want == 0 {
		_, err := c.tel.GetMetric("otelcol_connector_train_metrics_invalid_spans")
		assert.Error(t, err)
		return
	}
	metadatatest.AssertEqualConnectorTrainMetricsInvalidSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: want}}, metricdatatest.IgnoreTimestamp())
}

func TestGroupValues(t *testing.T) {
	type change = func(pcommon.Map, ptrace.Span)
	const (
		pass, calls, disagreement = "zeromq.pass.duration", "zeromq.pass.calls", "zeromq.throughput.disagreement"
		verdict, incomplete       = "trainbridge.verdicts", "trainbridge.incomplete.spans"
	)
	const send = "zeromq.stage.utilization"
	none := func(pcommon.Map, ptrace.Span) {}
	cut := func(m pcommon.Map, _ ptrace.Span) { m.PutBool(spans.AttrIncomplete, true) }
	for name, tt := range map[string]struct {
		root    string
		change  change
		want    []string // metrics with a value
		invalid int64
	}{
		"pass":             {spans.SpanRPCPass, none, []string{pass, calls, send, disagreement, verdict}, 0},
		"calls of no pass": {spans.SpanRPCCalls, none, []string{send, disagreement, verdict}, 0},
		"session":          {spans.SpanRPCSession, none, []string{disagreement, verdict}, 0},
		"incomplete pass":  {spans.SpanRPCPass, cut, []string{incomplete, verdict}, 0},
		"incomplete calls": {spans.SpanRPCCalls, cut, []string{incomplete, verdict}, 0},
		"cut off session":  {spans.SpanRPCSession, cut, []string{incomplete, verdict}, 0},
		"child":            {spans.SpanRPCReceive, none, nil, 0},
		"summary":          {spans.SpanRPCSummary, none, nil, 0},
		"another's span":   {"rpc.pass.other", none, nil, 0},
		"no start":         {spans.SpanRPCPass, func(_ pcommon.Map, s ptrace.Span) { s.SetStartTimestamp(0) }, nil, 1},
		"ends early":       {spans.SpanRPCCalls, func(_ pcommon.Map, s ptrace.Span) { s.SetStartTimestamp(s.EndTimestamp() + 1) }, nil, 1},
		"negative calls": {spans.SpanRPCPass, func(m pcommon.Map, _ ptrace.Span) { m.PutInt(spans.AttrZMQPassCalls, -3) }, []string{
			pass, send, disagreement,
			verdict,
		}, 1},
		"not numbers": {spans.SpanRPCPass, func(m pcommon.Map, _ ptrace.Span) {
			m.PutStr(spans.AttrZMQPassCalls, "3")
			m.PutDouble(spans.AttrZMQThroughputDisagreement, math.NaN())
			m.PutDouble(spans.AttrZMQSendUtilization, math.Inf(-1))
			m.PutStr(spans.AttrIncomplete, "true")
			m.PutStr(spans.AttrVerdict, "v")
		}, []string{pass}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBed(t)
			b := spans.NewBatch("test", "")
			s := addGroup(b, resourceA, 1, tt.root, 1e9, map[string]float64{
				spans.AttrZMQPassCalls: 3, spans.AttrZMQSendUtilization: 0.5,
				spans.AttrZMQThroughputDisagreement: 0.1,
			})
			judged(s, "v")
			var got []string
			for key, p := range c.changed(b.Traces(), tt.change) {
				got = append(got, splitKey(key)[2])
				assert.Positive(t, float64(p.count)+p.value, key)
			}
			assert.ElementsMatch(t, tt.want, got)
			assertInvalid(t, c, tt.invalid)
		})
	}
}

// TestNamesOfOthers: the name of a span alone does not make a span ours.
func TestNamesOfOthers(t *testing.T) {
	c := newBed(t)
	b := spans.NewBatch("test", "")
	add(b, jobA, 1, "rpc.generate", spans.StageFunction, 1e6)
	addPart(b, jobA, 2, "megatron", "rpc.wait", -1, 1e6)
	c.consume(b.Traces())
	got := c.flushed(time.Second)
	assert.Len(t, got, 2)
	assert.Contains(t, got, prefix+"tq.function.duration|[tq.function=rpc.generate]")
	assert.Contains(t, got, prefix+"ml.train.stage.duration|[ml.train.stage=rpc.wait trainbridge.source=megatron]")
}

// TestCallsWithoutLabels: an incomplete call without a method, and an incomplete pass, are the same series.
func TestCallsWithoutLabels(t *testing.T) {
	c := newBed(t)
	b := spans.NewBatch("test", "")
	call := addCall(b, resourceA, 1, "", "", 1e6, 1, 1)
	call.Attributes().PutBool(spans.AttrIncomplete, true)
	judged(call, "v")
	pass := addGroup(b, resourceA, 2, spans.SpanRPCPass, 1e9, nil)
	pass.Attributes().PutBool(spans.AttrIncomplete, true)
	judged(pass, "v")
	c.consume(b.Traces())
	got := c.flushed(time.Second)
	assert.Len(t, got, 2)
	assert.InDelta(t, 2.0, got[prefix+"trainbridge.incomplete.spans|"+zmqLabels].value, 0)
	assert.InDelta(t, 2.0, got[prefix+"trainbridge.verdicts|[rpc.system.name=zeromq trainbridge.verdict.name=v]"].value, 0)
}

func TestPassGaugeIsNotSetBack(t *testing.T) {
	const key = prefix + "zeromq.stage.utilization|[rpc.system.name=zeromq zeromq.stage=transport]"
	c := newBed(t)
	pass := func(id int, name string, end int64, share float64) float64 {
		b := spans.NewBatch("test", "")
		addRPC(b, resourceA, id, ptrace.SpanKindInternal, name, end, 1).Attributes().PutDouble(spans.AttrZMQTransportUtilization, share)
		c.consume(b.Traces())
		return c.flushed(time.Second)[key].value
	}
	assert.InDelta(t, 0.4, pass(1, spans.SpanRPCPass, 1000, 0.4), 0)
	assert.InDelta(t, 0.4, pass(2, spans.SpanRPCPass, 900, 0.2), 0, "older")
	assert.InDelta(t, 0.5, pass(3, spans.SpanRPCCalls, 1000, 0.5), 0, "as old: the one that came last")
	assert.InDelta(t, 0.5, pass(4, spans.SpanRPCSession, 2000, 0.9), 0, "a session is no pass")
}

func TestRPCExpiry(t *testing.T) {
	c := newBed(t)
	c.consume(rpcBatch())
	n := len(c.flushed(15 * time.Second))
	got := c.flushed(30*time.Minute + 10*time.Second)
	require.Len(t, got, n)
	for key, p := range got {
		assert.True(t, p.ended, key)
	}
	assert.Empty(t, c.flushed(time.Second))
	assert.Empty(t, c.store.resources)
	assert.Empty(t, c.store.byKey)
	assert.Equal(t, newRoom(c.cfg.CardinalityLimit, c.cfg.Histogram.Type), c.store.room)

	ended := pcommon.NewTimestampFromTime(c.clock)
	b := spans.NewBatch("test", "")
	addCall(b, resourceA, 100, "Matmul", "unix", 1e6, 1, 1)
	c.consume(b.Traces())
	p := c.flushed(time.Second)[prefix+"rpc.client.call.duration|"+matmulUnix]
	assert.Equal(t, uint64(1), p.count, "it begins again")
	assert.Equal(t, ended, p.start)
}

// TestLongPasses: the series of passes of ten minutes live on from each pass to the next.
func TestLongPasses(t *testing.T) {
	const key = prefix + "zeromq.pass.duration|" + zmqLabels
	c := newBed(t)
	for i := range 4 {
		b := spans.NewBatch("test", "")
		addGroup(b, resourceA, i+1, spans.SpanRPCPass, 600*second, nil)
		c.consume(b.Traces())
		for range 60 {
			p := c.flushed(10 * time.Second)[key]
			require.Equal(t, uint64(i+1), p.count)
			require.False(t, p.ended)
		}
	}
	assert.False(t, c.flushed(1799 * time.Second)[key].ended) // 600 s after the last pass; the series end after 4 × 600
	assert.True(t, c.flushed(time.Second)[key].ended)
}

func TestRPCOverflow(t *testing.T) {
	const limit, methods = 1, 10
	c := newBed(t, tight)
	b := spans.NewBatch("test", "")
	addGroup(b, resourceA, 1, spans.SpanRPCPass, 1e9, map[string]float64{spans.AttrZMQPassCalls: 98, spans.AttrZMQSendUtilization: 0.5})
	for i := range methods {
		addCall(b, resourceA, 10+i, fmt.Sprint("m", i), "tcp", 1e6, 10, 20)
		addCall(b, resourceA, 30+i, fmt.Sprint("m", i), "tcp", 1e6, 10, -1)
	}
	other := resourceA
	other.RunID = "run-2"
	addGroup(b, other, 2, spans.SpanRPCPass, 1e9, map[string]float64{spans.AttrZMQPassCalls: 97, spans.AttrZMQSendUtilization: 0.25})
	c.consume(b.Traces())
	series, counted := map[string]int{}, map[string]float64{}
	for key, p := range c.flushed(time.Second) {
		parts := splitKey(key)
		counted[parts[2]] += float64(p.count) + p.value
		if parts[3] == "["+attrOverflow+"=true]" {
			assert.Equal(t, "|", parts[0]+"|"+parts[1])
		} else {
			series[parts[2]]++
		}
	}
	assert.Equal(t, map[string]int{
		"rpc.client.call.duration": limit, "rpc.client.request.size": limit, "rpc.client.response.size": limit,
		"zeromq.pass.duration": limit, "zeromq.pass.calls": limit, "zeromq.stage.utilization": limit,
	}, series)
	assert.Equal(t, map[string]float64{
		"rpc.client.call.duration": 2 * methods, "rpc.client.request.size": 2 * methods, "rpc.client.response.size": methods,
		"zeromq.pass.duration": 2, "zeromq.pass.calls": 2, "zeromq.stage.utilization": 0.75,
	}, counted, "nothing is lost by it")
	// Two calls of each of nine methods, and the pass of the second run, found no room.
	metadatatest.AssertEqualConnectorTrainMetricsOverflowSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: 2*(methods-limit) + 1}},
		metricdatatest.IgnoreTimestamp())

	c.flushed(time.Hour)
	b = spans.NewBatch("test", "")
	addCall(b, resourceA, 100, "m9", "tcp", 1e6, 1, 1)
	c.consume(b.Traces())
	assert.Contains(t, c.flushed(time.Second), prefix+"rpc.client.call.duration|[network.transport=tcp rpc.method=m9 rpc.system.name=zeromq]",
		"room that became free is used")
}

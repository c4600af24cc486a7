package rpc

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type attrs = perftest.Attrs

func newTest(tb testing.TB, change ...func(*Config)) *Domain {
	tb.Helper()
	cfg := DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	require.Empty(tb, cfg.Errors())
	return New(cfg)
}

func oneGroup(tb testing.TB, p *Domain, name string, a attrs) ptrace.Span {
	tb.Helper()
	b := spans.NewBatch("test", "")
	g := perftest.AddGroup(b, 1, name, a)
	perftest.Judge(p, b.Traces())
	return g
}

var zmqShares = []string{
	spans.AttrZMQSerializeUtilization, spans.AttrZMQSendUtilization, spans.AttrZMQReceiveUtilization, spans.AttrZMQDeserializeUtilization,
	spans.AttrZMQServerUtilization, spans.AttrZMQUnattributedUtilization, spans.AttrZMQTransportUtilization,
}

// sharesOf is every share a span has.
func sharesOf(s ptrace.Span) map[string]float64 {
	got := map[string]float64{}
	for _, name := range zmqShares {
		if v, ok := s.Attributes().Get(name); ok {
			got[name] = v.Double()
		}
	}
	return got
}

func assertShares(tb testing.TB, want map[string]float64, s ptrace.Span) {
	tb.Helper()
	got := sharesOf(s)
	assert.Len(tb, got, len(want))
	for name, x := range want {
		if assert.Contains(tb, got, name) {
			assert.InDelta(tb, x, got[name], 1e-15, name)
		}
	}
}

func TestRealPass(t *testing.T) {
	g := oneGroup(t, newTest(t), spans.SpanRPCPass, perftest.RealPass)
	assertShares(t, map[string]float64{
		spans.AttrZMQSerializeUtilization: 0.12869272579486896, spans.AttrZMQSendUtilization: 0.058660561985606784,
		spans.AttrZMQReceiveUtilization:     0.7450189212352839,
		spans.AttrZMQDeserializeUtilization: 0.06755723214075787, spans.AttrZMQTransportUtilization: 0.8036794832208907,
	}, g)
	assert.Equal(t, []string{spans.VerdictZMQCallsHigh}, perftest.Verdicts(g),
		"its 6.8 GiB are 16 % of the time at 1 GiB/s: that it waited 80 % says nothing of the transport")
	assert.Equal(t, spans.SeverityWarning, perftest.Severity(g))
	assert.Equal(t, "serialize 12.9% · send 5.9% · receive 74.5% · deserialize 6.8%; 98 calls in 43 s; 162 MiB/s; IPC",
		spans.AttrText(g.Attributes(), spans.AttrSummary))
}

// fastShares are the shares of perftest.FastPass.
var fastShares = map[string]float64{
	spans.AttrZMQSerializeUtilization: 0.0625, spans.AttrZMQSendUtilization: 0.03125, spans.AttrZMQReceiveUtilization: 0.8125,
	spans.AttrZMQDeserializeUtilization: 0.0625,
	spans.AttrZMQServerUtilization:      0.71875, spans.AttrZMQUnattributedUtilization: 0.03125, spans.AttrZMQTransportUtilization: 0.125,
}

// sharesBut is fastShares without some, and with others changed.
func sharesBut(without []string, changed ...map[string]float64) map[string]float64 {
	out := maps.Clone(fastShares)
	for _, m := range changed {
		maps.Copy(out, m)
	}
	for _, name := range without {
		delete(out, name)
	}
	return out
}

type shareTest struct {
	change attrs
	want   map[string]float64
}

func checkShares(t *testing.T, cases map[string]shareTest) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{spans.SpanRPCPass, spans.SpanRPCCalls, spans.SpanRPCSession} {
				assertShares(t, tt.want, oneGroup(t, newTest(t), kind, perftest.FastPass.With(tt.change)))
			}
		})
	}
}

func TestSharesOfATotal(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	checkShares(t, map[string]shareTest{
		"all":           {nil, fastShares},
		"incomplete":    {attrs{spans.AttrIncomplete: true}, fastShares},
		"shared memory": {attrs{spans.AttrZMQSharedMemory: true}, fastShares},
		"twice the time": {
			attrs{spans.AttrZMQCallDuration: 0.5, spans.AttrZMQSendDuration: nil},
			map[string]float64{
				spans.AttrZMQSerializeUtilization: 0.125, spans.AttrZMQReceiveUtilization: 1.625, spans.AttrZMQDeserializeUtilization: 0.125,
				spans.AttrZMQServerUtilization: 1.4375, spans.AttrZMQUnattributedUtilization: 0.0625,
			},
		},
		"whole seconds":         {attrs{spans.AttrZMQCallDuration: int64(1)}, fastShares},
		"no total":              {attrs{spans.AttrZMQCallDuration: nil}, nil},
		"total 0":               {attrs{spans.AttrZMQCallDuration: 0.0}, nil},
		"total negative":        {attrs{spans.AttrZMQCallDuration: -1.0}, nil},
		"total NaN":             {attrs{spans.AttrZMQCallDuration: nan}, nil},
		"total infinite":        {attrs{spans.AttrZMQCallDuration: inf}, nil},
		"total as text":         {attrs{spans.AttrZMQCallDuration: "1.0"}, nil},
		"total next to nothing": {attrs{spans.AttrZMQCallDuration: 5e-324}, nil}, // every share would be infinite
	})
}

func TestSharesOfStages(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	noSend := sharesBut([]string{spans.AttrZMQSendUtilization, spans.AttrZMQTransportUtilization})
	checkShares(t, map[string]shareTest{
		"no send":       {attrs{spans.AttrZMQSendDuration: nil}, noSend},
		"send NaN":      {attrs{spans.AttrZMQSendDuration: nan}, noSend},
		"send infinite": {attrs{spans.AttrZMQSendDuration: inf}, noSend},
		"send negative": {attrs{spans.AttrZMQSendDuration: -0.03125}, noSend},
		"send as text":  {attrs{spans.AttrZMQSendDuration: "0.03125"}, noSend},
		"send as list":  {attrs{spans.AttrZMQSendDuration: []any{0.03125}}, noSend},
		"send 0": {attrs{spans.AttrZMQSendDuration: 0.0}, sharesBut(nil, map[string]float64{
			spans.AttrZMQSendUtilization: 0, spans.AttrZMQTransportUtilization: 0.09375,
		})},
		"no receive": {attrs{spans.AttrZMQReceiveDuration: nil}, sharesBut([]string{spans.AttrZMQReceiveUtilization, spans.AttrZMQTransportUtilization})},
	})
}

func TestSharesOfTheServer(t *testing.T) {
	noServer := sharesBut([]string{spans.AttrZMQServerUtilization}, map[string]float64{spans.AttrZMQTransportUtilization: 0.84375})
	checkShares(t, map[string]shareTest{
		"no server":       {attrs{spans.AttrZMQServerDuration: nil}, noServer},
		"server as text":  {attrs{spans.AttrZMQServerDuration: "0.71875"}, noServer},
		"server negative": {attrs{spans.AttrZMQServerDuration: -1.0}, noServer},
		"server 0": {attrs{spans.AttrZMQServerDuration: 0.0}, sharesBut(nil, map[string]float64{
			spans.AttrZMQServerUtilization: 0, spans.AttrZMQTransportUtilization: 0.84375,
		})},
		"server all of the wait": {attrs{spans.AttrZMQServerDuration: 0.84375}, sharesBut(nil, map[string]float64{
			spans.AttrZMQServerUtilization: 0.84375, spans.AttrZMQTransportUtilization: 0,
		})},
		"server longer than the wait": {attrs{spans.AttrZMQServerDuration: 0.90625}, sharesBut([]string{spans.AttrZMQTransportUtilization}, map[string]float64{
			spans.AttrZMQServerUtilization: 0.90625,
		})},
	})
}

func TestSharesOfTheRest(t *testing.T) {
	checkShares(t, map[string]shareTest{
		"unattributed negative": {attrs{spans.AttrZMQUnattributedDuration: -1e-6}, sharesBut([]string{spans.AttrZMQUnattributedUtilization})},
		"no stages": {attrs{
			spans.AttrZMQSerializeDuration: nil, spans.AttrZMQSendDuration: nil, spans.AttrZMQReceiveDuration: nil, spans.AttrZMQDeserializeDuration: nil,
			spans.AttrZMQServerDuration: nil, spans.AttrZMQUnattributedDuration: nil,
		}, nil},
	})
}

// TestTransportShareIsExact: sums of decimal fractions are off in the last bits; neither may make a share of −1e-17 or a verdict at 30 %.
func TestTransportShareIsExact(t *testing.T) {
	send, receive, server := 0.1, 0.7, 0.8
	assert.Less(t, send+receive-server, 0.0)
	g := oneGroup(t, newTest(t), spans.SpanRPCPass, attrs{
		spans.AttrZMQCallDuration: 1.0, spans.AttrZMQSendDuration: send, spans.AttrZMQReceiveDuration: receive, spans.AttrZMQServerDuration: server,
	})
	assert.Zero(t, perftest.Double(t, g, spans.AttrZMQTransportUtilization))
	g = oneGroup(t, newTest(t), spans.SpanRPCPass, attrs{spans.AttrZMQCallDuration: 1.0, spans.AttrZMQSendDuration: 0.1, spans.AttrZMQReceiveDuration: 0.2})
	assert.Greater(t, perftest.Double(t, g, spans.AttrZMQTransportUtilization), 0.3)
	assert.Empty(t, perftest.Verdicts(g))
}

func serializes(seconds float64) attrs { return attrs{spans.AttrZMQSerializeDuration: seconds} }

var noTotal = attrs{spans.AttrZMQCallDuration: nil}

type verdictTest struct {
	change attrs
	config func(*Config)
	want   []string // of rpc.pass; rpc.calls has the same but for the number of calls
}

func checkVerdicts(t *testing.T, cases map[string]verdictTest) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			p := newTest(t)
			if tt.config != nil {
				p = newTest(t, tt.config)
			}
			a := perftest.FastPass.With(tt.change)
			pass, others, session := oneGroup(t, p, spans.SpanRPCPass, a), oneGroup(t, p, spans.SpanRPCCalls, a), oneGroup(t, p, spans.SpanRPCSession, a)
			assert.Equal(t, tt.want, perftest.Verdicts(pass))
			var want []string
			for _, name := range tt.want {
				if name != spans.VerdictZMQCallsHigh {
					want = append(want, name)
				}
			}
			assert.Equal(t, want, perftest.Verdicts(others))
			assert.Empty(t, perftest.Verdicts(session))
			assert.Zero(t, session.Events().Len())
			assert.Equal(t, len(tt.want), pass.Events().Len())
			for _, e := range pass.Events().All() {
				assert.Equal(t, spans.EventVerdict, e.Name())
				assert.Equal(t, pass.EndTimestamp(), e.Timestamp())
				assert.True(t, strings.HasSuffix(spans.AttrText(e.Attributes(), spans.AttrVerdictReason), "."))
			}
			if len(tt.want) > 0 {
				assert.Equal(t, spans.SeverityWarning, perftest.Severity(pass))
			}
		})
	}
}

func TestVerdictsOfSerialization(t *testing.T) {
	const serialize = spans.VerdictZMQSerializeHigh
	never := func(c *Config) { *c = Config{} }
	checkVerdicts(t, map[string]verdictTest{
		"healthy":                       {nil, nil, nil},
		"serialize exactly 30":          {serializes(0.3), nil, nil},
		"serialize above 30":            {serializes(0.300001), nil, []string{serialize}}, // above by a microsecond, the log's resolution
		"serialize above, incomplete":   {serializes(0.5).With(attrs{spans.AttrIncomplete: true}), nil, []string{serialize}},
		"serialize above another limit": {nil, func(c *Config) { c.SerializeHigh = 0.0624 }, []string{serialize}},
		"serialize exactly that":        {nil, func(c *Config) { c.SerializeHigh = 0.0625 }, nil},
		"serialize NaN":                 {serializes(math.NaN()), nil, nil},
		"serialize infinite":            {serializes(math.Inf(1)), nil, nil},
		"serialize without total":       {serializes(0.5).With(noTotal), nil, nil},
		"everything, never": {serializes(0.9).With(attrs{
			spans.AttrZMQServerDuration: nil, spans.AttrZMQPassCalls: int64(1 << 40),
			spans.AttrNetworkTransport: "tcp",
		}), never, nil},
	})
}

func TestVerdictsOfTheTransport(t *testing.T) {
	const transport = spans.VerdictZMQTransportHigh
	// 0.4 s at 1 GiB/s: the transport may be the cause; the share of the wait alone would not show it.
	moves := attrs{spans.AttrZMQRequestSize: int64(200 << 20), spans.AttrZMQResponseSize: int64(210 << 20)}
	noServer := attrs{spans.AttrZMQServerDuration: nil}
	overTCP := attrs{spans.AttrZMQTransport: "TCP", spans.AttrNetworkTransport: "tcp"}
	checkVerdicts(t, map[string]verdictTest{
		"transport exactly 30":   {moves.With(attrs{spans.AttrZMQServerDuration: 0.54375}), nil, nil},
		"transport above 30":     {moves.With(attrs{spans.AttrZMQServerDuration: 0.543749}), nil, []string{transport}},
		"transport, no server":   {moves.With(noServer), nil, []string{transport}},
		"transport, server 0":    {moves.With(attrs{spans.AttrZMQServerDuration: 0.0}), nil, []string{transport}},
		"transport, no send":     {moves.With(noServer).With(attrs{spans.AttrZMQSendDuration: nil}), nil, nil},
		"transport, other limit": {moves, func(c *Config) { c.TransportHigh = 0.12 }, []string{transport}},
		"waiting, few bytes": {
			noServer.With(attrs{spans.AttrZMQRequestSize: int64(1 << 20), spans.AttrZMQResponseSize: int64(150 << 20)}), nil,
			nil,
		},
		"waiting, bytes unknown":   {noServer, nil, nil},
		"waiting, bytes elsewhere": {moves.With(noServer).With(attrs{spans.AttrZMQSharedMemory: true}), nil, nil},
		"waiting, over TCP":        {noServer.With(overTCP), func(c *Config) { c.ExpectedTransport = "tcp" }, []string{transport}},
	})
}

func TestVerdictsOfCalls(t *testing.T) {
	const calls = spans.VerdictZMQCallsHigh
	checkVerdicts(t, map[string]verdictTest{
		"calls 51":             {attrs{spans.AttrZMQPassCalls: int64(51)}, nil, []string{calls}},
		"calls 51, incomplete": {attrs{spans.AttrZMQPassCalls: int64(51), spans.AttrIncomplete: true}, nil, []string{calls}},
		"calls 51, no total":   {attrs{spans.AttrZMQPassCalls: int64(51)}.With(noTotal), nil, []string{calls}},
		"calls as text":        {attrs{spans.AttrZMQPassCalls: "51"}, nil, nil},
		"calls 50, limit 49":   {nil, func(c *Config) { c.CallsHigh = 49 }, []string{calls}},
		"calls negative":       {attrs{spans.AttrZMQPassCalls: int64(-51)}, nil, nil},
	})
}

func TestVerdictsOfTCP(t *testing.T) {
	const tcp = spans.VerdictZMQTransportTCP
	checkVerdicts(t, map[string]verdictTest{
		"tcp":                 {attrs{spans.AttrZMQTransport: "TCP", spans.AttrNetworkTransport: "tcp"}, nil, []string{tcp}},
		"tcp by semconv only": {attrs{spans.AttrZMQTransport: nil, spans.AttrNetworkTransport: "tcp"}, nil, []string{tcp}},
		"tcp by the log only": {attrs{spans.AttrZMQTransport: "TCP+OTP", spans.AttrNetworkTransport: nil}, nil, []string{tcp}},
		"tcp, small letters":  {attrs{spans.AttrZMQTransport: "tcp", spans.AttrNetworkTransport: nil}, nil, []string{tcp}},
		"tcp, no total":       {attrs{spans.AttrNetworkTransport: "tcp"}.With(noTotal), nil, []string{tcp}},
		"tcp expected": {
			attrs{spans.AttrZMQTransport: "TCP", spans.AttrNetworkTransport: "tcp"},
			func(c *Config) { c.ExpectedTransport = "tcp" }, nil,
		},
		"tcp or ipc": {
			attrs{spans.AttrZMQTransport: "TCP", spans.AttrNetworkTransport: "tcp"},
			func(c *Config) { c.ExpectedTransport = "" }, nil,
		},
		"ipc where tcp is expected": {nil, func(c *Config) { c.ExpectedTransport = "tcp" }, nil},
		"transport unknown":         {attrs{spans.AttrZMQTransport: nil, spans.AttrNetworkTransport: nil}, nil, nil},
		"transport of wrong type":   {attrs{spans.AttrZMQTransport: int64(6), spans.AttrNetworkTransport: true}, nil, nil},
		"transport of one letter":   {attrs{spans.AttrZMQTransport: "T", spans.AttrNetworkTransport: nil}, nil, nil},
	})
}

func TestManyVerdicts(t *testing.T) {
	checkVerdicts(t, map[string]verdictTest{
		"all": {serializes(0.5).With(attrs{
			spans.AttrZMQServerDuration: nil, spans.AttrZMQPassCalls: int64(98),
			spans.AttrNetworkTransport: "tcp",
		}), nil, []string{
			spans.VerdictZMQSerializeHigh, spans.VerdictZMQTransportHigh, spans.VerdictZMQCallsHigh, spans.VerdictZMQTransportTCP,
		}},
		"flags of wrong type": {attrs{spans.AttrIncomplete: "yes", spans.AttrZMQSharedMemory: "yes"}, nil, nil},
	})
}

var slowMatmul = attrs{spans.AttrZMQSlowestMethod: "Matmul", spans.AttrZMQSlowestDuration: 0.76892}

type reasonTest struct {
	group            string
	attrs            attrs
	reasons          []string
	value, threshold float64 // of the first verdict; NaN: none
}

func checkReasons(t *testing.T, cases map[string]reasonTest) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			g := oneGroup(t, newTest(t), tt.group, tt.attrs)
			assert.Equal(t, tt.reasons, perftest.Reasons(g))
			e := g.Events().At(0).Attributes()
			for name, want := range map[string]float64{spans.AttrVerdictValue: tt.value, spans.AttrVerdictThreshold: tt.threshold} {
				v, ok := e.Get(name)
				assert.Equal(t, !math.IsNaN(want), ok, name)
				if ok {
					assert.InDelta(t, want, v.Double(), 1e-15, name)
				}
			}
		})
	}
}

func TestReasonsOfCalls(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		"the real pass": {
			spans.SpanRPCPass, perftest.RealPass.With(slowMatmul), []string{
				"The pass made 98 calls (limit 50). Fuse operators, batch several operations into one call, cache " + "repeated results.",
			}, 98, 50,
		},
		"broken off": {
			spans.SpanRPCPass, attrs{spans.AttrZMQPassCalls: int64(60), spans.AttrIncomplete: true}, []string{
				"The pass made at least 60 calls (limit 50). Fuse operators, batch several operations into one call, " + "cache repeated results.",
			}, 60, 50,
		},
	})
}

func TestReasonsOfSerialization(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		// The example of TSQP's guide: 40.9 % of 332.45 ms.
		"the serialization of TSQP's guide": {
			spans.SpanRPCPass, attrs{
				spans.AttrZMQPassCalls: int64(50), spans.AttrZMQCallDuration: 0.33245, spans.AttrZMQSerializeDuration: 0.13597,
				spans.AttrZMQSlowestMethod: "BatchLinear", spans.AttrZMQSlowestDuration: 0.005234,
			}, []string{
				"Serialization took 40.9% of the 332 ms of 50 calls (limit 30%). Use shared memory instead of msgpack, or " +
					"a leaner encoding (protobuf), or send fewer bytes (bfloat16). The slowest call was BatchLinear: 5.23 ms.",
			}, 0.13597 / 0.33245, 0.30,
		},
		"under shared memory, one call": {
			spans.SpanRPCCalls, attrs{
				spans.AttrZMQPassCalls: int64(1), spans.AttrZMQSharedMemory: true, spans.AttrZMQCallDuration: 0.00001,
				spans.AttrZMQSerializeDuration: 0.000005,
			}, []string{
				"Serialization took 50% of the 10 µs of 1 call (limit 30%). Shared memory is in use: see what still goes " +
					"through msgpack; use a leaner encoding (protobuf), or send fewer bytes (bfloat16).",
			}, 0.5, 0.30,
		},
	})
}

func TestReasonsOfTheTransport(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		"many bytes, server known, number of calls not": {
			spans.SpanRPCCalls, attrs{
				spans.AttrZMQCallDuration: 2.0, spans.AttrZMQSendDuration: 0.5, spans.AttrZMQReceiveDuration: 1.25,
				spans.AttrZMQServerDuration: 0.75, spans.AttrZMQRequestSize: int64(900 << 20),
			}, []string{
				"Send and receive took 50% of the 2 s of the calls (send 25%, receive 62.5%, the server's 37.5% left out; " +
					"limit 30%). Moving 900 MiB takes 43.9% of it at 1 GiB/s: use shared memory for tensors, or send fewer " +
					"bytes (bfloat16); enlarge ZeroMQ's buffers (ZMQ_SNDBUF, ZMQ_RCVBUF) and high-water marks (ZMQ_SNDHWM, " +
					"ZMQ_RCVHWM), send several tensors per message. The server's queue is included.",
			}, 0.5, 0.30,
		},
		"waiting over TCP": {
			spans.SpanRPCPass, perftest.RealPass.With(slowMatmul).With(attrs{
				spans.AttrZMQTransport: "TCP", spans.AttrNetworkTransport: "tcp",
				spans.AttrZMQPassCalls: int64(50),
			}), []string{
				"Send and receive took 80.4% of the 43 s of 50 calls (send 5.9%, receive 74.5%; limit 30%). The transport " +
					"is TCP: use IPC where client and server share a host, else check the network; enlarge ZeroMQ's buffers " +
					"(ZMQ_SNDBUF, ZMQ_RCVBUF) and high-water marks (ZMQ_SNDHWM, ZMQ_RCVHWM), send several tensors per " +
					"message. The server's time is not logged, and so included. The slowest call was Matmul: 769 ms.",
				"The transport is TCP; IPC is expected. If client and server share a host, set the address of both to " +
					"ipc:///…; if not, set 'zmq::expected_transport' to tcp.",
			}, 34.557873 / 42.999571, 0.30,
		},
		"TCP": {
			spans.SpanRPCPass, attrs{spans.AttrZMQTransport: "TCP+OTP"}, []string{
				"The transport is TCP+OTP; IPC is expected. If client and server share a host, set the address of both to " +
					"ipc:///…; if not, set 'zmq::expected_transport' to tcp.",
			}, math.NaN(), math.NaN(),
		},
		"TCP without the log's word": {
			spans.SpanRPCCalls, attrs{spans.AttrNetworkTransport: "tcp"}, []string{
				"The transport is TCP; IPC is expected. If client and server share a host, set the address of both to " +
					"ipc:///…; if not, set 'zmq::expected_transport' to tcp.",
			}, math.NaN(), math.NaN(),
		},
	})
}

// TestOthersAreLeftAlone: calls, stages and the summary pass unchanged, even with the attributes of a group.
func TestOthersAreLeftAlone(t *testing.T) {
	b := spans.NewBatch("test", "")
	perftest.AddPass(b, 1, 3, nil)
	for i, name := range []string{spans.SpanRPCSummary, spans.SpanRPCOffline, spans.SpanRPCServer, "rpc.", "rpc.passes", "rpc", "Rpc.pass", "Matmul", ""} {
		perftest.AddRPC(b, 1000+i, 1, name, ptrace.SpanKindInternal, perftest.RealPass)
	}
	before := ptrace.NewTraces()
	b.Traces().CopyTo(before)
	perftest.Judge(newTest(t), b.Traces())
	require.NoError(t, ptracetest.CompareTraces(before, b.Traces()))
}

func TestRetry(t *testing.T) {
	for _, name := range []string{spans.SpanRPCPass, spans.SpanRPCCalls, spans.SpanRPCSession} {
		for _, a := range []attrs{
			perftest.RealPass, perftest.FastPass,
			{spans.AttrZMQCallDuration: 1.0, spans.AttrZMQUnattributedDuration: 0.5},
			{spans.AttrZMQPassCalls: int64(98)}, // a verdict but no share
			{spans.AttrZMQCallDuration: 1.0},
			nil,
		} {
			p := newTest(t)
			b := spans.NewBatch("test", "")
			perftest.AddGroup(b, 1, name, a)
			perftest.Judge(p, b.Traces())
			once := ptrace.NewTraces()
			b.Traces().CopyTo(once)
			perftest.Judge(p, b.Traces())
			require.NoError(t, ptracetest.CompareTraces(once, b.Traces()))
		}
	}
	// Any single share marks the group as measured.
	for _, name := range zmqShares {
		g := oneGroup(t, newTest(t), spans.SpanRPCPass, perftest.RealPass.With(attrs{name: 0.5}))
		assert.Equal(t, map[string]float64{name: 0.5}, sharesOf(g))
		assert.Empty(t, perftest.Verdicts(g))
	}
}

// logColumns are attributes by the prefix of the column's name.
var logColumns = map[string]string{
	"Ser": spans.AttrZMQSerializeDuration, "Send(ms)": spans.AttrZMQSendDuration, "Recv(ms)": spans.AttrZMQReceiveDuration,
	"Deser": spans.AttrZMQDeserializeDuration,
	"Total": spans.AttrZMQCallDuration, "GPU": spans.AttrZMQServerDuration, "Compute": spans.AttrZMQServerDuration,
}

// readBlocks adds up the rows of a log, in whole microseconds: a block begins at each call with the id 1.
func readBlocks(t *testing.T, text string) (blocks []map[string]int64) {
	t.Helper()
	var header []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) > 2 && f[0] == "ID" {
			header = f
		}
		if len(f) != len(header) || len(f) == 0 || f[0] == "ID" {
			continue
		}
		if f[0] == "1" {
			blocks = append(blocks, map[string]int64{})
		}
		sum := blocks[len(blocks)-1]
		sum["calls"]++
		for i, name := range header {
			if strings.HasSuffix(name, "(KB)") {
				kb, err := strconv.ParseFloat(f[i], 64)
				require.NoError(t, err)
				sum["bytes"] += int64(kb * 1024)
			}
			for start, attr := range logColumns {
				if strings.HasPrefix(name, start) {
					us, err := strconv.ParseInt(strings.Replace(f[i], ".", "", 1), 10, 64)
					require.NoError(t, err)
					sum[attr] += us
				}
			}
		}
	}
	return blocks
}

// TestSampleLogs adds up the shared sample logs, where present, in whole microseconds; every block of ids is a group.
func TestSampleLogs(t *testing.T) {
	paths, err := filepath.Glob("../../../../../shared/logs/zmq_tsqp/*.log")
	require.NoError(t, err)
	if len(paths) == 0 {
		t.Log("no sample logs beside this checkout")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			blocks := readBlocks(t, string(text))
			require.NotEmpty(t, blocks)
			for _, sum := range blocks {
				a := attrs{spans.AttrZMQPassCalls: sum["calls"], spans.AttrZMQRequestSize: sum["bytes"]}
				if strings.Contains(string(text), "IPC+SHM") {
					a[spans.AttrZMQSharedMemory] = true
				}
				for _, attr := range logColumns {
					if us := sum[attr]; us > 0 {
						a[attr] = float64(us) / 1e6
					}
				}
				g := oneGroup(t, newTest(t), spans.SpanRPCPass, a)
				total := sum[spans.AttrZMQCallDuration]
				wait := sum[spans.AttrZMQSendDuration] + sum[spans.AttrZMQReceiveDuration] - sum[spans.AttrZMQServerDuration]
				assert.InDelta(t, float64(sum[spans.AttrZMQSerializeDuration])/float64(total), perftest.Double(t, g, spans.AttrZMQSerializeUtilization), 1e-14)
				assert.InDelta(t, float64(wait)/float64(total), perftest.Double(t, g, spans.AttrZMQTransportUtilization), 1e-14)
				var want []string
				if 10*sum[spans.AttrZMQSerializeDuration] > 3*total {
					want = append(want, spans.VerdictZMQSerializeHigh)
				}
				assert.Greater(t, 10*wait, 3*total, "all of them wait for more than the limit: for the server, which receive has in it")
				if sum["calls"] > 50 {
					want = append(want, spans.VerdictZMQCallsHigh)
				}
				assert.Equal(t, want, perftest.Verdicts(g))
			}
		})
	}
}

// FuzzGroup: whatever a group holds, nothing panics, shares are finite and not negative, and processing twice is processing once.
func FuzzGroup(f *testing.F) {
	f.Add(42.999571, 5.533732, 2.522379, 32.035494, 2.904932, 0.0, int64(98), "IPC", "Matmul", true)
	f.Add(5e-324, math.MaxFloat64, math.NaN(), math.Inf(1), -1.0, math.Copysign(0, -1), int64(math.MinInt64), "TCP+SHM", "", false)
	p := newTest(f)
	f.Fuzz(func(t *testing.T, total, serialize, send, receive, deserialize, server float64, calls int64, transport, method string, incomplete bool) {
		b := spans.NewBatch("test", "")
		g := perftest.AddGroup(b, 1, spans.SpanRPCPass, attrs{
			spans.AttrZMQCallDuration: total, spans.AttrZMQSerializeDuration: serialize, spans.AttrZMQSendDuration: send, spans.AttrZMQReceiveDuration: receive,
			spans.AttrZMQDeserializeDuration: deserialize, spans.AttrZMQServerDuration: server, spans.AttrZMQPassCalls: calls,
			spans.AttrZMQTransport:     transport,
			spans.AttrZMQSlowestMethod: method, spans.AttrZMQSlowestDuration: total, spans.AttrIncomplete: incomplete, spans.AttrZMQSharedMemory: incomplete,
		})
		perftest.Judge(p, b.Traces())
		for name, x := range sharesOf(g) {
			if !(x >= 0) || math.IsInf(x, 0) {
				t.Fatalf("%s is %v", name, x)
			}
		}
		once := ptrace.NewTraces()
		b.Traces().CopyTo(once)
		perftest.Judge(p, b.Traces())
		one, err := new(ptrace.ProtoMarshaler).MarshalTraces(once)
		require.NoError(t, err)
		two, err := new(ptrace.ProtoMarshaler).MarshalTraces(b.Traces())
		require.NoError(t, err)
		assert.Equal(t, one, two)
	})
}

package zmqrpcreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// feed is a stream of lines for one handler, and what it sent.
type feed struct {
	t     *testing.T
	h     *handler
	lines []string
	next  int
	held  map[tail.Held]int // line numbers
	n     tail.Held
	sent  consumertest.TracesSink
}

func newFeed(t *testing.T, lines ...string) *feed {
	t.Helper()
	f := &feed{t: t, lines: lines, held: make(map[tail.Held]int)}
	f.restart(nil)
	return f
}

// restart makes a handler with the state of another.
func (f *feed) restart(state []byte) {
	var h *handler
	_, err := filereceiver.Prepare(receivertest.NewNopSettings(metadata.Type), config("x"), func(r *filereceiver.Receiver, cfg component.Config) (filereceiver.Parts, error) {
		zr, err := newReceiver(r, cfg.(*Config))
		h = newHandler(zr, f)
		return filereceiver.Parts{}, err
	}, &f.sent, nil)
	require.NoError(f.t, err)
	h.Restore(state)
	f.h = h
}

func (*feed) Path() string { return "/logs/zmq_performance.log" }

func (f *feed) Hold() tail.Held {
	f.n++
	f.held[f.n] = f.next
	return f.n
}

func (f *feed) Release(h tail.Held) {
	assert.Contains(f.t, f.held, h, "released once")
	delete(f.held, h)
}

func (f *feed) Ahead(visit func([]byte) bool) {
	for _, l := range f.lines[f.next+1:] {
		if !visit([]byte(l)) {
			return
		}
	}
}

func (f *feed) Beginning(visit func([]byte) bool) {
	for _, l := range f.lines {
		if !visit([]byte(l)) {
			return
		}
	}
}

// line hands the i-th line over.
func (f *feed) line(i int, observed time.Time, live bool) {
	f.next = i
	f.h.Line(&tail.Line{Text: []byte(f.lines[i]), Observed: observed, Live: live, ModTime: filereceivertest.Written})
}

func (f *feed) cut() {
	if deliver := f.h.Cut(); deliver != nil {
		require.NoError(f.t, deliver(context.Background()))
	}
}

// all are the spans sent, as text.
func (f *feed) all() []string {
	var out []string
	for _, td := range f.sent.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if s.Name() != spans.SpanRun {
					out = append(out, fmt.Sprintf("%s %s %s %d %v %d", s.TraceID(), s.SpanID(), s.Name(), s.EndTimestamp()-s.StartTimestamp(), s.Attributes().AsRaw(), s.Links().Len()))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// A restart at any line gives the same spans: what was held comes again.
func TestRestart(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(strings.TrimSuffix(fixtureText(t, name), "\n"), "\n")
			feedAll := func(at int) []string {
				f := newFeed(t, lines...)
				for i := range lines {
					if i == at {
						f.cut()
						again := make([]int, 0, len(f.held))
						for _, n := range f.held {
							again = append(again, n)
						}
						slices.Sort(again)
						state := f.h.Save()
						clear(f.held)
						f.restart(state)
						for _, n := range again {
							f.line(n, filereceivertest.Written, false)
						}
					}
					if len(lines[i]) > 0 {
						f.line(i, filereceivertest.Written, false)
					}
				}
				f.h.Expire(time.Unix(1<<40, 0))
				f.cut()
				assert.Empty(t, f.held)
				return f.all()
			}
			want := feedAll(-1)
			require.NotEmpty(t, want)
			for at := range lines {
				assert.Equal(t, want, feedAll(at), "a restart before line %d", at)
			}
		})
	}
}

func fixtureText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(b)
}

// When the calls were.
func TestTimes(t *testing.T) {
	type line struct {
		at   int  // ms after the file was written, when it was read
		live bool // seen arriving
		row  string
	}
	const offline = "ID Method Offline(ms) Total(ms)"
	for _, tc := range []struct {
		name   string
		header string
		lines  []line
		// want is when each call was, in ms from when the file was written.
		want []string
	}{
		{"seen arriving", "ID Method Total(ms)", []line{{1000, true, "1 A 100"}, {5000, true, "2 A 300"}}, []string{"900-1000 observed", "4700-5000 observed"}},
		{
			"two arrive at once: the last one ended then", "ID Method Total(ms)",
			[]line{{1000, true, "1 A 100"}, {1000, true, "2 A 300"}},
			[]string{"600-700 observed", "700-1000 observed"},
		},
		{
			"seen late: calls do not overlap", "ID Method Total(ms)",
			[]line{{1000, true, "1 A 100"}, {1050, true, "2 A 60"}},
			[]string{"900-1000 observed", "1000-1060 observed"},
		},
		{
			"a short one after one that was seen late", "ID Method Total(ms)",
			[]line{{1000, true, "1 A 100"}, {1050, true, "2 A 60"}, {1055, true, "3 A 2"}, {1400, true, "4 A 5"}},
			[]string{"900-1000 observed", "1000-1060 observed", "1060-1062 observed", "1395-1400 observed"},
		},
		{"were there before", "ID Method Total(ms)", []line{{9000, false, "1 A 100"}, {9000, false, "2 A 300"}}, []string{"-400--300 synthetic", "-300-0 synthetic"}},
		{"with work before them", offline, []line{{9000, false, "1 A 5 100"}, {9000, false, "2 A 50 300"}}, []string{"-450--350 synthetic", "-300-0 synthetic"}},
		{
			"some before, some arriving", "ID Method Total(ms)",
			[]line{{9000, false, "1 A 100"}, {9000, true, "2 A 300"}},
			[]string{"-100-0 synthetic", "8700-9000 observed"},
		},
		{"the clock was set back", "ID Method Total(ms)", []line{{90_000, true, "1 A 100"}, {2000, true, "2 A 300"}}, []string{"89900-90000 observed", "1700-2000 observed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFeed(t, tc.header)
			f.line(0, filereceivertest.Written, false)
			for i, l := range tc.lines {
				// What was read at one time is there together; what is not there yet cannot be seen ahead.
				f.lines = f.lines[:1]
				for j, there := range tc.lines {
					if j <= i || there.at == l.at && there.live == l.live {
						f.lines = append(f.lines, there.row)
					}
				}
				f.line(i+1, filereceivertest.Written.Add(time.Duration(l.at)*time.Millisecond), l.live)
			}
			f.h.Expire(time.Unix(1<<40, 0))
			f.cut()
			var got []string
			for _, td := range f.sent.AllTraces() {
				for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
					if s.Kind() == ptrace.SpanKindClient {
						ms := func(ns int64) int64 { return (ns - filereceivertest.Written.UnixNano()) / 1e6 }
						got = append(got, fmt.Sprintf("%d-%d %s", ms(int64(s.StartTimestamp())), ms(int64(s.EndTimestamp())), attr(s, spans.AttrTimeSource)))
					}
				}
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// Rows that come after reading began at the end of the file are read by the header at its beginning.
func TestHeaderBeforeTheStart(t *testing.T) {
	f := newFeed(t, "Log - Transport: TCP", "====", "ID Method Total(ms)", "1 A 1", "2 A 2")
	f.line(4, filereceivertest.Written, true)
	f.h.Expire(time.Unix(1<<40, 0))
	f.cut()
	got := strings.Join(f.all(), "\n")
	assert.Contains(t, got, " A 2000000 ")
	assert.Contains(t, got, "zeromq.transport:TCP")
}

// A consumer that takes the data and fails gets the same again.
func TestRetry(t *testing.T) {
	var got []string
	tries := 0
	take, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		tries++
		b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		got = append(got, string(b))
		td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true })
		if tries < 3 {
			return errors.New("not yet")
		}
		return consumererror.NewPermanent(errors.New("never"))
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	f := newFeed(t, strings.Split(fixtureText(t, "v1.log"), "\n")...)
	f.h.r.Receiver, err = filereceiver.Prepare(receivertest.NewNopSettings(metadata.Type), config("x"), newParts, take, nil)
	require.NoError(t, err)
	for i := range f.lines {
		f.line(i, filereceivertest.Written, false)
	}
	deliver := f.h.Cut()
	require.Error(t, deliver(context.Background()))
	require.Error(t, deliver(context.Background()))
	require.True(t, consumererror.IsPermanent(deliver(context.Background())))
	require.Len(t, got, 3)
	assert.Equal(t, got[0], got[1])
	assert.Equal(t, got[0], got[2])
	assert.NotEmpty(t, f.h.r.groups, "the groups are used again")
}

// Numbers of a row that do not agree are counted.
func TestInconsistentRows(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	path := filereceivertest.Put(t, t.TempDir(), "x.log", strings.Join([]string{
		"Log - Transport: IPC",
		"ID Method Ser(ms) Send(ms) Recv(ms) Deser(ms) Comm(ms) GPU(ms) Total(ms) Sent(KB) Recv(KB) Throughput(MB/s)",
		"1 A 1.000 1.000 1.000 1.000 4.000 1.000 4.000 10.00 10.24 4.94",
		"2 A 1.000 1.000 1.000 1.000 4.101 1.001 3.998 10.00 10.24 4.94", // all by rounding or by what a sum may miss
		"3 A 1.000 1.000 1.000 1.000 4.104 1.000 4.000 10.00 10.24 4.94",
		"4 A 1.000 1.000 1.000 1.000 3.997 1.000 4.000 10.00 10.24 4.94",
		"5 A 1.000 1.000 1.000 1.000 4.000 1.002 4.000 10.00 10.24 4.94",
		"6 A 1.000 1.000 1.000 1.000 4.000 1.000 3.990 10.00 10.24 4.95",
		"7 A 1.000 1.000 1.000 1.000 4.000 1.000 4.000 10.00 10.24 4.90",
	}, "\n")+"\n")
	r := filereceivertest.Read(t, set, config(path), newParts)
	point := func(reason string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("reason", reason))}
	}
	metadatatest.AssertEqualTrainbridgeZmqInconsistentRows(t, tel, []metricdata.DataPoint[int64]{
		point("comm_sum", 2), point("server_exceeds_receive", 1), point("stages_exceed_total", 1), point("throughput", 1),
	}, metricdatatest.IgnoreTimestamp())
	got := calls(r)
	own := 20.24 * 1024 / 0.004
	assert.InEpsilon(t, (own-4.90*1024*1024)/own, mustDouble(t, got[6], spans.AttrZMQThroughputDisagreement), 1e-2, "but for rounding to whole bytes")
	assert.InEpsilon(t, mustDouble(t, got[6], spans.AttrZMQThroughputDisagreement), mustDouble(t, r.All(spans.SpanRPCCalls)[0], spans.AttrZMQThroughputDisagreement), 1e-12)
	assert.Empty(t, attr(got[0], spans.AttrZMQThroughputDisagreement))
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

// Rows arrive while the receiver runs, and a second run of the client writes the file anew.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	lines := rows("Init Embedding A LMHead")
	path := filereceivertest.Put(t, dir, "zmq_performance.log", strings.Join(lines[:2], "\n")+"\n")
	cfg := config(path)
	cfg.PollInterval = time.Millisecond
	got := make(chan ptrace.Traces, 10)
	next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error { got <- td; return nil })
	require.NoError(t, err)
	r, err := NewFactory().CreateTraces(context.Background(), receivertest.NewNopSettings(metadata.Type), cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	pass := func() ptrace.Span {
		for {
			select {
			case td := <-got:
				for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
					if s.Name() == spans.SpanRPCPass {
						return s
					}
				}
			case <-time.After(time.Minute):
				require.FailNow(t, "no pass")
			}
		}
	}
	for _, l := range lines[2:] {
		appendTo(t, path, l+"\n")
	}
	first := pass()
	assert.Equal(t, spans.PassEndMethod, attr(first, spans.AttrZMQPassEnd))
	lines[3] = strings.Replace(lines[3], "0.3", "0.7", 1)
	require.NoError(t, os.Truncate(path, 0))
	for _, l := range lines {
		appendTo(t, path, l+"\n")
	}
	second := pass()
	assert.Equal(t, string(spans.TimeObserved), attr(second, spans.AttrTimeSource))
	assert.NotEqual(t, first.TraceID(), second.TraceID())
	assert.Equal(t, "1", attr(second, spans.AttrZMQPass), "of a session of its own")
}

func TestConfig(t *testing.T) {
	cfg := filereceivertest.Configs(t, NewFactory(), map[string]string{
		"zmq_rpc":         "",
		"zmq_rpc/all":     "",
		"zmq_rpc/include": "'include'",
		"zmq_rpc/calls":   "'max_calls' must be 1 to 1900",
		"zmq_rpc/empty":   "'session_start', 'pass_start' and 'pass_end' must not have empty names",
		"zmq_rpc/both":    "'session_start' and 'pass_start' must not have the same method",
	})["zmq_rpc/all"].(*Config)
	assert.Equal(t, []string{"Hello"}, cfg.SessionStart)
	assert.Equal(t, []string{"Prefill", "Decode"}, cfg.PassStart)
	assert.Empty(t, cfg.PassEnd)
	assert.Equal(t, 300, cfg.MaxCalls)
	assert.Equal(t, "tee", cfg.ServiceName)
}

package zmqrpcreceiver

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
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

// lineStream is a stream of lines for one handler, with the spans sent.
type lineStream struct {
	t     *testing.T
	h     *handler
	lines []string
	next  int
	held  map[tail.Held]int // line numbers
	n     tail.Held
	file  int // number of the file of the lines
	sent  consumertest.TracesSink
}

func newLineStream(t *testing.T, lines ...string) *lineStream {
	t.Helper()
	f := &lineStream{t: t, lines: lines, held: make(map[tail.Held]int)}
	f.restart(nil)
	return f
}

// restart makes a handler with the state of another.
func (f *lineStream) restart(state []byte) {
	var h *handler
	_, err := filereceiver.Prepare(receivertest.NewNopSettings(metadata.Type), config("x"), func(
		r *filereceiver.Receiver, cfg component.Config,
	) (filereceiver.Parts, error) {
		zr, err := newReceiver(r, cfg.(*Config))
		h = newHandler(zr, f)
		return filereceiver.Parts{}, err
	}, &f.sent, nil)
	require.NoError(f.t, err)
	h.Restore(state)
	f.h = h
}

func (*lineStream) Path() string { return "/logs/zmq_performance.log" }

func (*lineStream) ByArrival() {}

func (f *lineStream) Hold() tail.Held {
	f.n++
	f.held[f.n] = f.next
	return f.n
}

func (f *lineStream) Release(h tail.Held) {
	assert.Contains(f.t, f.held, h, "released once")
	delete(f.held, h)
}

func (*lineStream) Place() tail.Place { return 0 }

func (f *lineStream) Ahead(visit func([]byte) bool) {
	for _, l := range f.lines[f.next+1:] {
		if !visit([]byte(l)) {
			return
		}
	}
}

func (f *lineStream) Beginning(visit func([]byte) bool) {
	for _, l := range f.lines[:f.next] {
		if !visit([]byte(l)) {
			return
		}
	}
}

// line passes the i-th line.
func (f *lineStream) line(i int, observed time.Time, live bool) {
	f.next = i
	f.h.Line(&tail.Line{Text: []byte(f.lines[i]), Observed: observed, Live: live, ModTime: filereceivertest.Written, File: f.file})
}

func (f *lineStream) cut() {
	if deliver := f.h.Cut(); deliver != nil {
		require.NoError(f.t, deliver.Send(context.Background()))
	}
}

// spans returns the sent spans.
func (f *lineStream) spans() []ptrace.Span {
	var out []ptrace.Span
	for _, s := range filereceivertest.Spans(f.sent.AllTraces(), "") {
		if s.Name() != spans.SpanRun {
			out = append(out, s)
		}
	}
	return out
}

// all are the spans sent, as text.
func (f *lineStream) all() []string {
	var out []string
	for _, s := range f.spans() {
		out = append(
			out, fmt.Sprintf("%s %s %s %d %v %d", s.TraceID(), s.SpanID(), s.Name(), s.EndTimestamp()-s.StartTimestamp(), s.Attributes().AsRaw(), s.Links().Len()),
		)
	}
	slices.Sort(out)
	return out
}

// end gives up the open group and sends all spans.
func (f *lineStream) end() {
	f.h.Expire(time.Unix(0, math.MaxInt64))
	f.cut()
}

// A restart at any line gives the same spans: held lines come again.
func TestRestart(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(strings.TrimSuffix(fixtureText(t, name), "\n"), "\n")
			feedAll := func(at int) []string {
				f := newLineStream(t, lines...)
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
				f.end()
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

// when is the time of a span, in ms relative to the modification time, with the source of the time.
func when(s ptrace.Span) string {
	ms := func(at pcommon.Timestamp) int64 { return at.AsTime().Sub(filereceivertest.Written).Milliseconds() }
	return fmt.Sprintf("%d-%d %s", ms(s.StartTimestamp()), ms(s.EndTimestamp()), attr(s, spans.AttrTimeSource))
}

// When the calls were.
func TestTimes(t *testing.T) {
	const offline = "ID Method Offline(ms) Total(ms)"
	for _, tc := range []struct {
		name   string
		header string
		lines  []timedRow
		// want is the time of each call, in ms after the modification time.
		want []string
	}{
		{"seen arriving", "ID Method Total(ms)", []timedRow{{1000, true, "1 A 100"}, {5000, true, "2 A 300"}}, []string{"900-1000 observed", "4700-5000 observed"}},
		{
			"two arrive at once: the last one ended then", "ID Method Total(ms)",
			[]timedRow{{1000, true, "1 A 100"}, {1000, true, "2 A 300"}},
			[]string{"600-700 observed", "700-1000 observed"},
		},
		{
			"seen late: calls do not overlap", "ID Method Total(ms)",
			[]timedRow{{1000, true, "1 A 100"}, {1050, true, "2 A 60"}},
			[]string{"900-1000 observed", "1000-1060 observed"},
		},
		{
			"a short one after one that was seen late", "ID Method Total(ms)",
			[]timedRow{{1000, true, "1 A 100"}, {1050, true, "2 A 60"}, {1055, true, "3 A 2"}, {1400, true, "4 A 5"}},
			[]string{"900-1000 observed", "1000-1060 observed", "1060-1062 observed", "1395-1400 observed"},
		},
		{"were there before", "ID Method Total(ms)", []timedRow{{9000, false, "1 A 100"}, {9000, false, "2 A 300"}}, []string{"-400--300 synthetic", "-300-0 synthetic"}},
		{"with work before them", offline, []timedRow{{9000, false, "1 A 5 100"}, {9000, false, "2 A 50 300"}}, []string{"-450--350 synthetic", "-300-0 synthetic"}},
		{
			"some before, some arriving", "ID Method Total(ms)",
			[]timedRow{{9000, false, "1 A 100"}, {9000, true, "2 A 300"}},
			[]string{"-100-0 synthetic", "8700-9000 observed"},
		},
		{
			"the clock was set back", "ID Method Total(ms)",
			[]timedRow{{90_000, true, "1 A 100"}, {2000, true, "2 A 300"}},
			[]string{"89900-90000 observed", "1700-2000 observed"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, timesOf(t, tc.header, tc.lines)) })
	}
}

type timedRow struct {
	at   int  // time of reading, ms after the modification time
	live bool // seen arriving
	row  string
}

// timesOf is the times of the calls of the rows.
func timesOf(t *testing.T, header string, rows []timedRow) (got []string) {
	t.Helper()
	f := newLineStream(t, header)
	f.line(0, filereceivertest.Written, false)
	for i, l := range rows {
		// Rows read at one time are in the file together; later rows cannot be seen ahead.
		f.lines = f.lines[:1]
		for j, there := range rows {
			if j <= i || there.at == l.at && there.live == l.live {
				f.lines = append(f.lines, there.row)
			}
		}
		f.line(i+1, filereceivertest.Written.Add(time.Duration(l.at)*time.Millisecond), l.live)
	}
	f.end()
	for _, s := range f.spans() {
		if s.Kind() == ptrace.SpanKindClient {
			got = append(got, when(s))
		}
	}
	return got
}

// Rows seen ahead in a file do not affect the rows of another file, such as its successor.
func TestTimesInAnotherFile(t *testing.T) {
	f := newLineStream(t, "ID Method Total(ms)", "1 A 100", "2 A 100", "3 A 100")
	f.line(0, filereceivertest.Written, false)
	f.line(1, filereceivertest.Written, false)
	f.lines, f.file = []string{"ID Method Total(ms)", "1 B 5"}, 1
	f.line(0, filereceivertest.Written.Add(time.Hour), true)
	f.line(1, filereceivertest.Written.Add(time.Hour), true)
	f.end()
	var got []string
	for _, s := range f.spans() {
		got = append(got, s.Name()+" "+when(s))
	}
	assert.Equal(t, []string{
		"rpc.calls -300--200 synthetic", "A -300--200 synthetic", "rpc.calls 3599995-3600000 observed", "B 3599995-3600000 observed",
	}, got)
}

// Each row's time is read by the header above the row, also when looking ahead.
func TestTimesUnderAnotherHeader(t *testing.T) {
	for name, tc := range map[string]struct{ header, more string }{
		"a column more":       {"ID Method Ser(ms) Total(ms)", "100 4000"},
		"as many, others":     {"ID Total(ms) Method", ""},
		"with offline work":   {"ID Method Offline(ms) Total(ms)", "0 4000"},
		"in other units":      {"ID Method Total(s)", "4"},
		"with commas between": {"ID,Method,Total(ms)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			below := []string{"1 B " + tc.more, "2 B " + tc.more}
			switch tc.header {
			case "ID Total(ms) Method":
				below = []string{"1 4000 B", "2 4000 B"}
			case "ID,Method,Total(ms)":
				below = []string{"1,B,4000", "2,B,4000"}
			}
			r := text(t, nil, append([]string{"ID Method Total(ms)", "1 A 3000", "2 A 3000", tc.header}, below...)...)
			var got []string
			for _, s := range calls(r) {
				got = append(got, s.Name()+" "+when(s))
			}
			assert.Equal(t, []string{"A -14000--11000 synthetic", "A -11000--8000 synthetic", "B -8000--4000 synthetic", "B -4000-0 synthetic"}, got)
		})
	}
}

// When the clock is set back within a pass, the pass's root still covers all calls.
func TestRootWhenTheClockIsSetBack(t *testing.T) {
	lines := []string{"ID Method Total(ms)", "1 Embedding 10", "2 A 10", "3 LMHead 10"}
	f := newLineStream(t, lines...)
	for i, ms := range []int{0, 60_000, 60_020, 0} {
		f.lines = lines[:i+1]
		f.line(i, filereceivertest.Written.Add(time.Duration(ms)*time.Millisecond), true)
	}
	f.cut()
	var got []string
	for _, s := range f.spans() {
		got = append(got, s.Name()+" "+when(s))
	}
	assert.Equal(t, []string{
		"rpc.pass -10-60020 observed", "Embedding 59990-60000 observed", "A 60010-60020 observed", "LMHead -10-0 observed",
	}, got)
}

// A pass cut off by a timeout goes on as a pass.
func TestPassGoesOnAfterATimeout(t *testing.T) {
	f := newLineStream(t, rows("Embedding A B LMHead Ping")...)
	for i := range f.lines {
		f.line(i, filereceivertest.Written, false)
		if strings.Contains(f.lines[i], " A ") {
			f.h.Expire(filereceivertest.Written.Add(time.Second))
		}
	}
	f.end()
	var got []string
	for _, s := range f.spans() {
		if s.ParentSpanID().IsEmpty() {
			got = append(
				got,
				strings.Join(
					[]string{s.Name(), attr(s, spans.AttrZMQPass), attr(s, spans.AttrZMQPassCalls), attr(s, spans.AttrZMQPassEnd), attr(s, spans.AttrIncomplete)}, " ",
				),
			)
		}
	}
	assert.Equal(t, []string{"rpc.pass 1 2 timeout true", "rpc.pass 2 2 method ", "rpc.calls  1 timeout "}, got)
}

// When reading begins at the end of the file, new rows are read by the last header above.
func TestHeaderBeforeTheStart(t *testing.T) {
	for name, above := range map[string][]string{
		"one log":  {"Log - Transport: TCP", "====", "ID Method Total(ms)", "1 A 1"},
		"two logs": {"Log - Transport: IPC", "ID Total(ms) Method", "1 5 A", "Log - Transport: TCP", "ID Method Total(ms)", "1 A 5"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newLineStream(t, append(above, "2 A 2", "Log - Transport: SHM", "ID Method Offline(ms)")...)
			f.line(len(above), filereceivertest.Written, true)
			f.end()
			got := strings.Join(f.all(), "\n")
			assert.Contains(t, got, " A 2000000 ")
			assert.Contains(t, got, "zeromq.transport:TCP")
		})
	}
}

// A consumer that empties the data and fails gets the same data again.
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
		return nil
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	f := newLineStream(t, strings.Split(fixtureText(t, "v1.log"), "\n")...)
	f.h.r.Receiver, err = filereceiver.Prepare(receivertest.NewNopSettings(metadata.Type), config("x"), newParts, take, nil)
	require.NoError(t, err)
	for i := range f.lines {
		f.line(i, filereceivertest.Written, false)
	}
	deliver := f.h.Cut()
	require.Error(t, deliver.Send(context.Background()))
	require.Error(t, deliver.Send(context.Background()))
	require.NoError(t, deliver.Send(context.Background()))
	require.Len(t, got, 3)
	assert.Equal(t, got[0], got[1])
	assert.Equal(t, got[0], got[2])
	assert.Positive(t, cap(f.h.r.groups.Get().calls), "the groups are used again")
}

// observed is the settings of a receiver whose own metrics tel has.
func observed(t *testing.T) (set receiver.Settings, tel *componenttest.Telemetry) {
	t.Helper()
	tel = componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set = receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	return set, tel
}

// Contradictory numbers of a row are counted.
func TestInconsistentRows(t *testing.T) {
	set, tel := observed(t)
	path := filereceivertest.Put(t, t.TempDir(), "x.log", strings.Join([]string{
		"Log - Transport: IPC",
		"ID Method Ser(ms) Send(ms) Recv(ms) Deser(ms) Comm(ms) GPU(ms) Total(ms) Sent(KB) Recv(KB) Throughput(MB/s)",
		"1 A 1.000 1.000 1.000 1.000 4.000 1.000 4.000 10.00 10.24 4.94",
		"2 A 1.000 1.000 1.000 1.000 4.101 1.001 3.998 10.00 10.24 4.94", // all explained by rounding or by missing parts of a sum
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
	assert.InEpsilon(
		t, mustDouble(t, got[6], spans.AttrZMQThroughputDisagreement), mustDouble(t, r.All(spans.SpanRPCCalls)[0], spans.AttrZMQThroughputDisagreement), 1e-12,
	)
	assert.Empty(t, attr(got[0], spans.AttrZMQThroughputDisagreement))
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

// Rows arrive while the receiver runs, and a second run of the client rewrites the file.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	lines := rows("Init Embedding A LMHead")
	path := filereceivertest.Put(t, dir, "zmq_performance.log", strings.Join(lines[:2], "\n")+"\n")
	cfg := config(path)
	cfg.PollInterval = 10 * time.Millisecond
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
				for _, s := range filereceivertest.Spans([]ptrace.Traces{td}, "") {
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

// A summary has the time of the last row, and the source of this time, even if the summary arrives while tailing.
func TestSummaryBehindABacklog(t *testing.T) {
	f := newLineStream(t, "ID Method Total(ms)", "1 A 100", "SUMMARY", "Total RPC calls: 1")
	f.line(0, filereceivertest.Written, false)
	f.line(1, filereceivertest.Written, false)
	f.line(2, filereceivertest.Written.Add(time.Hour), true)
	f.line(3, filereceivertest.Written.Add(time.Hour), true)
	f.end()
	var got []string
	for _, s := range f.spans() {
		got = append(got, s.Name()+" "+when(s))
	}
	assert.Equal(t, []string{"rpc.calls -100-0 synthetic", "A -100-0 synthetic", "rpc.summary 0-0 synthetic"}, got)
}

// Where the log lacks stages, Comm may be longer than their sum.
func TestCommWithoutStages(t *testing.T) {
	set, tel := observed(t)
	path := filereceivertest.Put(t, t.TempDir(), "x.log", strings.Join([]string{
		"Log - Transport: IPC", "ID Method Ser(ms) Comm(ms) Total(ms)", "1 A 1.000 4.000 4.000", "2 A 4.002 4.000 4.100",
	}, "\n")+"\n")
	filereceivertest.Read(t, set, config(path), newParts)
	metadatatest.AssertEqualTrainbridgeZmqInconsistentRows(t, tel, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(attribute.String("reason", "comm_sum"))},
	}, metricdatatest.IgnoreTimestamp())
}

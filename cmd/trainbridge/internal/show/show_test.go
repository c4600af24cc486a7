package show

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	now = time.Date(2026, 2, 11, 9, 0, 0, 0, time.UTC)
	cst = time.FixedZone("CST", 8*3600)
)

func testdata(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(data)
}

// recorded answers as Jaeger v1.76.0 (a Jaeger 2) did when it held the spans of testdata; the files are its answers.
func recorded(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(status int, file string) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, testdata(t, file))
		}
		q := r.URL.Query()
		switch {
		case r.URL.Path == "/api/v3/services":
			answer(200, "services.json")
		case r.URL.Path == "/api/v3/traces/a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d":
			answer(200, "trace.json")
		case strings.HasPrefix(r.URL.Path, "/api/v3/traces/"):
			answer(404, "none.json")
		case r.URL.Path != "/api/v3/traces":
			http.NotFound(w, r)
		case q.Get("query.start_time_min") == "" || q.Get("query.start_time_max") == "" || q.Get("query.num_traces") != "100":
			answer(400, "malformed.json")
		case q.Get("query.service_name") == "old" && q.Get("query.start_time_min") == "2000-01-01T00:00:00Z":
			answer(200, "traces.json")
		case q.Get("query.service_name") == "verl":
			answer(200, "traces.json")
		default:
			answer(404, "none.json")
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func draw(t *testing.T, opt options, p palette) (string, error) {
	t.Helper()
	if opt.service == "" {
		opt.service = "verl"
	}
	var out bytes.Buffer
	err := show(t.Context(), &out, opt, p, now, cst)
	return strings.ReplaceAll(out.String(), opt.jaeger, "http://127.0.0.1:16686"), err
}

func TestGolden(t *testing.T) {
	url := recorded(t)
	for _, tt := range []struct {
		golden string
		opt    options
		colour palette
	}{
		{"latest.txt", options{width: 120}, false},
		{"trace.txt", options{width: 100, trace: "A1B2C3D4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"}, false},
		{"narrow.txt", options{width: 1}, false},
		{"colour.txt", options{width: 120}, true},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			tt.opt.jaeger = url
			got, err := draw(t, tt.opt, tt.colour)
			require.NoError(t, err)
			assert.Equal(t, testdata(t, tt.golden), got)
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	url := recorded(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	defer page.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v3/services" {
			_, _ = io.WriteString(w, "{}")
			return
		}
		w.WriteHeader(404)
		_, _ = io.WriteString(w, testdata(t, "none.json"))
	}))
	defer empty.Close()
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"result":[1]}`) }))
	defer wrong.Close()
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, testdata(t, "malformed.json"))
	}))
	defer bad.Close()
	for _, tt := range []struct {
		name string
		opt  options
		is   error
		says []string
	}{
		{"not running", options{jaeger: gone.URL}, ErrUnreachable, []string{gone.URL, "connection refused", "--jaeger"}},
		{"no URL", options{jaeger: "http://a b"}, ErrUnreachable, []string{"--jaeger", "http://127.0.0.1:16686"}},
		{"a web page", options{jaeger: page.URL}, ErrNotJaeger, []string{"not JSON"}},
		{"another server", options{jaeger: other.URL}, ErrNotJaeger, []string{"404", "--jaeger", "16686"}},
		{"not OTLP", options{jaeger: wrong.URL}, ErrNotJaeger, []string{"OTLP"}},
		{"Jaeger says no", options{jaeger: bad.URL}, nil, []string{"malformed parameter trace_id"}},
		{"no traces at all", options{jaeger: empty.URL}, ErrNoTraces, []string{"exporter"}},
		{"another service", options{jaeger: url, service: "nope"}, ErrNoTraces, []string{`"nope"`, "--service among verl"}},
		{"another trace", options{jaeger: url, trace: "01"}, ErrNoTraces, []string{"00000000000000000000000000000001", "--trace"}},
		{"no trace id", options{jaeger: url, trace: "N/A"}, nil, []string{`--trace "N/A"`, "32 hex digits"}},
		{"zero", options{jaeger: url, trace: "0"}, nil, []string{"--trace"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := draw(t, tt.opt, false)
			require.Error(t, err)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			for _, s := range tt.says {
				assert.ErrorContains(t, err, s)
			}
		})
	}
}

// Replayed logs are older than what is asked for first.
func TestOldTracesAreFound(t *testing.T) {
	text, err := draw(t, options{jaeger: recorded(t), service: "old", width: 120}, false)
	require.NoError(t, err)
	assert.Contains(t, text, "The latest 2 traces of service old")
}

func TestCommand(t *testing.T) {
	cmd := NewCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"--jaeger", strings.TrimPrefix(recorded(t), "http://"), "--trace", "a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d", "--width", "80"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	assert.Contains(t, out.String(), "tq.client.put")
	assert.NotContains(t, out.String(), "\x1b") // not a terminal
}

// big makes a trace of n functions with a get and a client operation each.
func big(n int) ptrace.Traces {
	b := spans.NewBatch("test", "")
	id := spans.TraceID("", []byte("big"))
	for i := range n {
		key := []byte{byte(i), byte(i >> 8)}
		at := int64(1770799200e9) + int64(i)*1e6
		fid, gid := spans.SpanID(id, "f", key), spans.SpanID(id, "g", key)
		s := b.Add(spans.Resource{Service: "verl"}, spans.Span{Trace: id, ID: fid, Name: "f", Start: at, End: at + 1e9})
		s.Attributes().PutStr(spans.AttrTQStage, spans.StageFunction)
		s = b.Add(spans.Resource{Service: "verl"}, spans.Span{Trace: id, ID: gid, Parent: fid, Name: spans.SpanTQGet, Start: at, End: at + 1e8})
		s.Attributes().PutStr(spans.AttrTQStage, spans.StageGet)
		s = b.Add(spans.Resource{Service: "verl"}, spans.Span{Trace: id, ID: spans.SpanID(id, "c", key), Parent: gid, Name: spans.SpanTQClientGet, Start: at, End: at + 1e8})
		s.Attributes().PutStr(spans.AttrTQStage, spans.StageClientGet)
		s.Attributes().PutInt(spans.AttrTQDataSize, 3<<20)
	}
	return b.Traces()
}

func TestLongTraceIsCapped(t *testing.T) {
	for _, tt := range []struct {
		functions    int
		folded, more string
	}{
		{20, "", ""},
		{30, "folded", ""},
		{500, "folded", "+940 more spans"},
	} {
		var out bytes.Buffer
		waterfall(&out, build(big(tt.functions))[0], 120, cst, false)
		text := out.String()
		assert.Equal(t, tt.folded != "", strings.Contains(text, "folded into their stage"))
		assert.Equal(t, tt.more != "", strings.Contains(text, " more spans"))
		assert.Contains(t, text, tt.more)
		assert.Contains(t, text, "3.00 MiB") // folded or not
		assert.LessOrEqual(t, strings.Count(text, "▕"), maxRows)
	}
}

// What a store may hold that we would never send: it must be drawn, and nothing of it may reach the terminal raw.
func TestOddSpans(t *testing.T) {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	add := func(id, parent byte, name string, start, end pcommon.Timestamp) ptrace.Span {
		s := ss.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{id})
		s.SetParentSpanID(pcommon.SpanID{parent})
		s.SetName(name)
		s.SetStartTimestamp(start)
		s.SetEndTimestamp(end)
		return s
	}
	add(1, 0, "evil\x1b[2J\x07\nname 日本語 "+strings.Repeat("x", 300), 100, 200)
	add(1, 0, "copy", 100, 200)
	add(2, 9, "orphan", 50, 40) // ends before it starts
	add(3, 3, "its own parent", 0, 1<<62)
	e := add(4, 0, "", 7, 7).Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.Attributes().PutStr(spans.AttrVerdictReason, "\x1b]0;title\x07"+strings.Repeat("long ", 100))
	for _, width := range []int{0, 60, 81, 400} {
		var out bytes.Buffer
		traces := build(td)
		require.Len(t, traces, 1)
		assert.Len(t, traces[0].all, 4)
		table(&out, traces, false)
		waterfall(&out, interesting(traces), width, cst, false)
		assert.NotContains(t, out.String(), "\x1b")
		assert.NotContains(t, out.String(), "\x07")
		assert.NotContains(t, out.String(), "copy")
		assert.Contains(t, out.String(), "parent missing")
		assert.True(t, utf8.ValidString(out.String()))
	}
	one := ptrace.NewTraces()
	one.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("empty")
	waterfall(io.Discard, build(one)[0], 80, cst, true)
}

func TestInterestingIsTheHighestOverhead(t *testing.T) {
	td, err := decode([]byte(testdata(t, "traces.json")))
	require.NoError(t, err)
	traces := build(td)
	require.Len(t, traces, 3)
	best := interesting(traces)
	// (300 + 260) ms of 1260.05 ms
	assert.InDelta(t, 560.0/1260.05, best.overhead(), 1e-12)
	for _, tr := range traces {
		assert.LessOrEqual(t, tr.overhead(), best.overhead())
	}
}

func TestDuration(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 s", 999: "999 ns", 1500: "2 µs", 52_000_000: "52.0 ms", 914_024_000: "914.0 ms", 6_182_528_000: "6.183 s", 3_600_000_000_000: "3600.0 s",
	} {
		assert.Equal(t, want, duration(ns))
	}
}

func FuzzDecode(f *testing.F) {
	// Small seeds: the fuzzing engine spends its time on minimising large ones.
	f.Add([]byte(`{"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d","spanId":"0430eb22437a41d3",`+
		`"name":"f","startTimeUnixNano":"1770799200120000000","endTimeUnixNano":"1770799201034050000","attributes":[{"key":"tq.stage",`+
		`"value":{"stringValue":"function"}}],"events":[{"name":"trainbridge.verdict"}]}]}]}]}}`), 100)
	f.Add([]byte(testdata(f, "none.json")), 60)
	f.Fuzz(func(_ *testing.T, body []byte, width int) {
		td, err := decode(body)
		if err != nil {
			return
		}
		traces := build(td)
		if len(traces) == 0 {
			return
		}
		table(io.Discard, traces, true)
		waterfall(io.Discard, interesting(traces), width%500, cst, true)
	})
}

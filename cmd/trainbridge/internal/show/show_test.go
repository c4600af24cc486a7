package show

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
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

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/traces/source"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	now = time.Date(2026, 2, 11, 9, 0, 0, 0, time.UTC)
	cst = time.FixedZone("CST", 8*3600)
)

func testdata(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(tb, err)
	return string(data)
}

var update = flag.Bool("update", false, "write the golden files")

// compare holds a drawing to its golden file.
func compare(tb testing.TB, name, got string) {
	tb.Helper()
	if *update {
		require.NoError(tb, os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o600))
	}
	assert.Equal(tb, testdata(tb, name), got)
}

// recorded answers like a Jaeger v1.76.0 (a Jaeger 2) with the spans of testdata; the files are its answers.
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

// answering is a Jaeger with the traces of each service.
func answering(t *testing.T, of func(service string) ptrace.Traces) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m ptrace.JSONMarshaler
		body, err := m.MarshalTraces(of(r.URL.Query().Get("query.service_name")))
		assert.NoError(t, err)
		_, _ = io.WriteString(w, `{"result":`+string(body)+`}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// decode reads Jaeger's answers.
func decode(body []byte) (ptrace.Traces, error) {
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil {
		return ptrace.Traces{}, err
	}
	var u ptrace.JSONUnmarshaler
	return u.UnmarshalTraces(answer.Result)
}

func draw(t *testing.T, opt options, p reading.Palette) (string, error) {
	t.Helper()
	var out strings.Builder
	err := show(t.Context(), &out, opt, style{opt.width, cst, p}, now)
	return strings.ReplaceAll(out.String(), opt.jaeger, "http://127.0.0.1:16686"), err
}

func TestGolden(t *testing.T) {
	url := recorded(t)
	for _, tt := range []struct {
		golden string
		opt    options
		colour reading.Palette
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
			compare(t, tt.golden, got)
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
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, testdata(t, "none.json"))
	}))
	defer empty.Close()
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"result":[1]}`) }))
	defer wrong.Close()
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, testdata(t, "malformed.json"))
	}))
	defer bad.Close()
	for _, tt := range []struct {
		name string
		opt  options
		is   error
		says []string
	}{
		{"not running", options{jaeger: gone.URL}, source.ErrUnreachable, []string{gone.URL, "connection refused", "--jaeger"}},
		{"no URL", options{jaeger: "http://a b"}, source.ErrUnreachable, []string{"--jaeger", "http://127.0.0.1:16686"}},
		{"a web page", options{jaeger: page.URL}, source.ErrNotAPI, []string{"not JSON"}},
		{"another server", options{jaeger: other.URL}, source.ErrNotAPI, []string{"404", "--jaeger", "16686"}},
		{"not OTLP", options{jaeger: wrong.URL, service: "verl"}, source.ErrNotAPI, []string{"OTLP"}},
		{"Jaeger says no", options{jaeger: bad.URL, service: "verl"}, nil, []string{"malformed parameter trace_id"}},
		{"no traces at all", options{jaeger: empty.URL}, source.ErrNoTrace, []string{"exporter"}},
		{"another service", options{jaeger: url, service: "nope"}, source.ErrNoTrace, []string{`"nope"`, "--service among verl"}},
		{"another trace", options{jaeger: url, trace: "01"}, source.ErrNoTrace, []string{"00000000000000000000000000000001", "--trace"}},
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

// Replayed logs are older than the first requested time.
func TestOldTracesAreFound(t *testing.T) {
	text, err := draw(t, options{jaeger: recorded(t), service: "old", width: 120}, false)
	require.NoError(t, err)
	assert.Contains(t, text, "All 2 traces of service old")
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

// big makes a trace of n functions with a get and a client operation each; names go round the functions.
func big(n int, names ...string) ptrace.Traces {
	b := spans.NewBatch("test", "")
	id := spans.TraceID("", []byte("big"))
	for i := range n {
		key := []byte{byte(i), byte(i >> 8)}
		at := int64(1770799200e9) + int64(i)*1e6
		fid, gid := spans.SpanID(id, "f", key), spans.SpanID(id, "g", key)
		add := func(name, stage string, id, parent pcommon.SpanID, trace pcommon.TraceID, ns int64) ptrace.Span {
			s := b.Add(spans.Resource{Service: "verl"}, spans.Span{Trace: trace, ID: id, Parent: parent, Name: name, Start: at, End: at + ns})
			s.Attributes().PutStr(spans.AttrTQStage, stage)
			return s
		}
		f := add(names[i%len(names)], spans.StageFunction, fid, pcommon.SpanID{}, id, 1e9+int64(i)*1e8)
		f.Attributes().PutDouble(spans.AttrTQOverheadUtilization, 0.4+float64(i)/1000)
		e := f.Events().AppendEmpty()
		e.SetName(spans.EventVerdict)
		e.Attributes().PutStr(spans.AttrVerdictName, spans.VerdictTQOverhead)
		e.Attributes().PutStr(spans.AttrVerdictReason, fmt.Sprintf("Function %d waited.", i))
		e.Attributes().PutDouble(spans.AttrVerdictValue, 0.4+float64(i)/1000)
		e.Attributes().PutDouble(spans.AttrVerdictThreshold, 0.3)
		add(spans.SpanTQGet, spans.StageGet, gid, fid, id, 1e8)
		add(spans.SpanTQClientGet, spans.StageClientGet, spans.SpanID(id, "c", key), gid, id, 1e8).Attributes().PutInt(spans.AttrTQDataSize, 3<<20)
	}
	return b.Traces()
}

func TestLongTraceIsFolded(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("f%d", i)
	}
	for _, tt := range []struct {
		name      string
		functions int
		names     []string
		has, not  []string
	}{
		{"fits", 10, []string{"f"}, []string{"tq.client.get", "10× tq_overhead; the worst: Function 9 waited."}, []string{"folded", "more"}},
		{"client operations", 13, []string{"f"}, []string{"folded into their stage"}, []string{"more"}},
		{"three of each", 24, []string{"f", "g"}, []string{
			"f ×9 more", "g ×9 more", "1.6–3.2 s", "TQ overhead 40.6–42.2% · 9× tq_overhead", "! tq_overhead 40.5% > 30%",
			"24× tq_overhead; the worst: Function 23 waited.",
		}, []string{"41% > 30%", "more rows"}},
		{"two of each", 100, []string{"f", "g", "h", "i", "j"}, []string{"f ×18 more", "j ×18 more"}, []string{"more rows"}},
		{"one of each", 100, []string{"f", "g", "h", "i", "j", "k", "l", "m", "n", "o"}, []string{"f ×9 more", "o ×9 more"}, []string{"more rows"}},
		{"two are not folded into one", 4, []string{"f"}, nil, []string{"more"}},
		{"cut", 100, many, []string{"+174 more rows"}, nil},
		{"huge", 5000, []string{"f"}, []string{"f ×4997 more", "5000× tq_overhead"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, width := range []int{60, 120} {
				var out strings.Builder
				printWaterfall(&out, tree.Build(big(tt.functions, tt.names...))[0], style{width, cst, false})
				text := out.String()
				for _, s := range tt.has {
					if width == 120 {
						assert.Contains(t, text, s)
					}
				}
				for _, s := range tt.not {
					assert.NotContains(t, text, s)
				}
				assert.Contains(t, text, "3 MiB") // folded or not
				assert.LessOrEqual(t, strings.Count(text, "▕")+strings.Count(text, "! "), maxLines)
				assert.True(t, strings.HasSuffix(text, "\n"))
				for line := range strings.SplitSeq(text, "\n") {
					if strings.Contains(line, "▕") {
						assert.LessOrEqual(t, utf8.RuneCountInString(line), width)
					}
				}
			}
		})
	}
}

func TestVerdictInShort(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		v      verdict
		want   string
		excess float64
	}{
		{verdict{Said: view.Said{Name: spans.VerdictTQOverhead}, value: 0.47, threshold: 0.3}, "tq_overhead 47% > 30%", 0.47 / 0.3},
		{verdict{Said: view.Said{Name: spans.VerdictTQThroughputLow}, value: 50 << 20, threshold: 100 << 20}, "tq_throughput_low 50 MiB/s < 100 MiB/s", 2},
		{verdict{Said: view.Said{Name: spans.VerdictTQFluctuating, Stage: spans.StageGet}, value: 0.61, threshold: 0.5}, "tq_fluctuating (get) 61% > 50%", 1.22},
		{verdict{Said: view.Said{Name: "other"}, value: 3, threshold: 2}, "other 3 > 2", 1.5},
		{verdict{Said: view.Said{Name: "other"}, value: 3, threshold: nan}, "other", 0},
		{verdict{Said: view.Said{Name: "other"}, value: 0, threshold: 0}, "other 0 > 0", 0},
	} {
		assert.Equal(t, tt.want, tt.v.summary())
		assert.InDelta(t, tt.excess, tt.v.excess(), 1e-12)
	}
}

func TestTimesOfFold(t *testing.T) {
	for _, tt := range []struct {
		low, high int64
		want      string
	}{
		{10_320_000_000, 14_400_000_000, "10.3–14.4 s"},
		{10_000_000, 9_400_000_000, "10 ms–9.4 s"},
		{103_000_000, 914_000_000, "103–914 ms"},
		{1_500_000_000_000, 2_000_000_000_000, "25 min–33 min 20 s"},
		{0, 0, "0 s"},
		{5_000, 5_000, "5 µs"},
	} {
		assert.Equal(t, tt.want, (&fold{shortest: tt.low, longest: tt.high}).times())
	}
}

// Spans possible in a store and never sent by us: all must be drawn, and no text may reach the terminal raw.
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
	add(2, 9, "orphan", 50, 40) // ends before its start
	add(3, 3, "its own parent", 0, 1<<62)
	e := add(4, 0, "", 7, 7).Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.Attributes().PutStr(spans.AttrVerdictReason, "\x1b]0;title\x07"+strings.Repeat("long ", 100))
	for _, width := range []int{0, 60, 81, 400} {
		var out strings.Builder
		traces := tree.Build(td)
		require.Len(t, traces, 1)
		assert.Len(t, traces[0].Spans, 4)
		functionTable(&out, digestOf(traces), style{width, cst, false})
		printWaterfall(&out, mostInteresting(traces), style{width, cst, false})
		assert.NotContains(t, out.String(), "\x1b")
		assert.NotContains(t, out.String(), "\x07")
		assert.NotContains(t, out.String(), "copy")
		if width >= 60 {
			assert.Contains(t, out.String(), "parent missing")
		}
		assert.True(t, utf8.ValidString(out.String()))
	}
	one := ptrace.NewTraces()
	one.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("empty")
	printWaterfall(&strings.Builder{}, tree.Build(one)[0], style{80, cst, true})
}

func TestInterestingIsTheHighestOverhead(t *testing.T) {
	td, err := decode([]byte(testdata(t, "traces.json")))
	require.NoError(t, err)
	traces := tree.Build(td)
	require.Len(t, traces, 3)
	best := mostInteresting(traces)
	// (300 + 260) ms of 1260.05 ms
	assert.InDelta(t, 560.0/1260.05, highest(best), 1e-12)
	for _, tr := range traces {
		assert.LessOrEqual(t, highest(tr), highest(best))
	}
}

// highest is the highest overhead of a trace's functions.
func highest(t *tree.Trace) float64 {
	worst := -1.0
	for _, s := range t.Spans {
		if v := overhead(s); !math.IsNaN(v) {
			worst = max(worst, v)
		}
	}
	return worst
}

func FuzzDecode(f *testing.F) {
	// Small seeds: the fuzzing engine spends its time on minimising large seeds.
	f.Add([]byte(`{"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d","spanId":"0430eb22437a41d3",`+
		`"name":"f","startTimeUnixNano":"1770799200120000000","endTimeUnixNano":"1770799201034050000","attributes":[{"key":"tq.stage",`+
		`"value":{"stringValue":"function"}}],"events":[{"name":"trainbridge.verdict"}]}]}]}]}}`), 100)
	f.Add([]byte(`{"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d","spanId":"0430eb22437a41d3",`+
		`"name":"train.step","startTimeUnixNano":"1770799200120000000","endTimeUnixNano":"1770799201034050000","attributes":[{"key":"ml.train.loss",`+
		`"value":{"doubleValue":2.5}},{"key":"ml.train.steps_covered","value":{"intValue":"10"}}]}]}]}]}}`), 100)
	f.Add([]byte(`{"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d","spanId":"0430eb22437a41d3",`+
		`"name":"rpc.pass","startTimeUnixNano":"1770799200120000000","endTimeUnixNano":"1770799201034050000","attributes":[{"key":"zeromq.call.duration",`+
		`"value":{"doubleValue":2.5}},{"key":"zeromq.pass.calls","value":{"intValue":"98"}}]}]}]}]}}`), 100)
	f.Add([]byte(testdata(f, "none.json")), 60)
	f.Fuzz(func(_ *testing.T, body []byte, width int) {
		td, err := decode(body)
		if err != nil {
			return
		}
		traces := tree.Build(td)
		if len(traces) == 0 {
			return
		}
		var out strings.Builder
		functionTable(&out, digestOf(traces), style{width % 500, cst, true})
		stepTable(&out, digestOf(traces), style{width % 500, cst, true})
		passTable(&out, digestOf(traces), style{120, cst, true})
		printWaterfall(&out, mostInteresting(traces), style{width % 500, cst, true})
	})
}

// TestConclusion: the common property of the calls of a run is a sentence, not a sentence for each.
func TestConclusion(t *testing.T) {
	for want, where := range map[string][3]string{ // hosts of a call above 30 %, of another, and of a call below
		"; 2 calls above 30%, all on 10.4.1.33": {"10.4.1.33", "10.4.1.33", "10.4.1.34"},
		"; 2 calls above 30%":                   {"10.4.1.33", "10.4.1.34", "10.4.1.34"},
	} {
		b := spans.NewBatch("test", "")
		for i, overhead := range [3]float64{0.31, 0.5, 0.3} {
			s := b.Add(spans.Resource{Service: "verl", RunID: "run", Host: where[i]}, spans.Span{
				Trace: pcommon.TraceID{byte(i + 1)}, ID: pcommon.SpanID{1}, Name: "f", Start: second, End: 2 * second,
			})
			s.Attributes().PutStr(spans.AttrTQStage, spans.StageFunction)
			s.Attributes().PutDouble(spans.AttrTQOverheadUtilization, overhead)
		}
		assert.Equal(t, want, conclusionText(digestOf(tree.Build(b.Traces()))))
	}
}

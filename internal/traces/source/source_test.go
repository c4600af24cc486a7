package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 2, 11, 9, 0, 0, 0, time.UTC)

// kept makes n traces, one per second before a time, of the services a and b in turn and of the runs x and y, and a trace about run x as a whole.
func kept(n int, before time.Time) ptrace.Traces {
	b := spans.NewBatch("test", "")
	at := before.Add(-time.Duration(n+1) * time.Second).UnixNano()
	b.AddRun(spans.RunSpan{Run: "x", Service: "a", File: "x.log", Start: at, Time: spans.TimeDerived})
	for i := range n {
		at += int64(time.Second)
		res := spans.Resource{Service: []string{"a", "b"}[i%2], RunID: []string{"x", "y", "y"}[i%3]}
		root, child := pcommon.SpanID{1}, pcommon.SpanID{2}
		b.Add(res, spans.Span{Trace: idOf(i), ID: child, Parent: root, Name: "child", Start: at + 1e6, End: at + 2e6})
		b.Add(res, spans.Span{Trace: idOf(i), ID: root, Name: "root", Start: at, End: at + 3e6})
	}
	return b.Traces()
}

func idOf(i int) pcommon.TraceID { return pcommon.TraceID{0, byte(i >> 8), byte(i), 1} }

func ids(traces []*tree.Trace) (out []pcommon.TraceID) {
	for _, t := range traces {
		out = append(out, t.ID)
	}
	return out
}

// inFile writes traces like the file exporter, a line per resource, with foreign lines between.
func inFile(tb testing.TB, td ptrace.Traces) string {
	tb.Helper()
	var b bytes.Buffer
	for _, rs := range td.ResourceSpans().All() {
		one := ptrace.NewTraces()
		rs.CopyTo(one.ResourceSpans().AppendEmpty())
		line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(one)
		require.NoError(tb, err)
		b.Write(append(line, '\n'))
	}
	md := pmetric.NewMetrics()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetName("loss")
	line, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	require.NoError(tb, err)
	b.Write(append(line, "\n\n"...))
	return written(tb, b.Bytes())
}

func written(tb testing.TB, data []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "spans.json")
	require.NoError(tb, os.WriteFile(path, data, 0o600))
	return path
}

// tempoServer answers like Tempo 2: at most limit traces of a search, unordered; times in s; ids without leading zeros; no more than 168 h; old traces only for
// searches without a time.
func tempoServer(t *testing.T, m *Memory, old bool) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	answer := func(w http.ResponseWriter, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
	search := func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		from, _ := strconv.ParseInt(q.Get("start"), 10, 64)
		to, _ := strconv.ParseInt(q.Get("end"), 10, 64)
		limit, err := strconv.Atoi(q.Get("limit"))
		assert.NoError(t, err)
		if to-from > 168*3600 {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, "range specified by start and end exceeds 168h0m0s")
			return
		}
		service, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(q.Get("q"), "{resource.service.name="), "}"))
		assert.NoError(t, err)
		found, err := m.Find(r.Context(), Query{Services: []string{service}})
		assert.NoError(t, err)
		var out []string
		for _, tr := range found.Traces {
			inTime := from == 0 || !old && tr.Start/1e9 <= to && tr.End/1e9 >= from
			if inTime && len(out) < limit {
				out = append(out, `{"traceID":"`+strings.TrimLeft(tr.ID.String(), "0")+`"}`)
			}
		}
		answer(w, `{"traces":[%s],"metrics":{}}`, strings.Join(out, ","))
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		id, single := strings.CutPrefix(r.URL.Path, "/api/traces/")
		switch {
		case r.URL.Path == "/api/v2/search/tag/resource.service.name/values":
			answer(w, `{"tagValues":[{"type":"string","value":"b"},{"type":"string","value":"a"}],"metrics":{"inspectedBytes":"1"}}`)
		case r.URL.Path == "/api/search":
			search(w, r)
		case single:
			want, err := ParseID(id)
			assert.NoError(t, err)
			tr, err := m.Trace(r.Context(), want)
			if errors.Is(err, ErrNoTrace) {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(spansOf(tr))
			assert.NoError(t, err)
			_, _ = w.Write(body)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func spansOf(t *tree.Trace) ptrace.Traces {
	td := ptrace.NewTraces()
	for _, s := range t.Spans {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(spans.AttrServiceName, s.Resource.Service)
		rs.Resource().Attributes().PutStr(spans.AttrRunID, s.Resource.Run)
		s.CopyTo(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty())
	}
	return td
}

// Whichever store the traces are in, the answers are the same.
func TestSources(t *testing.T) {
	const n = 400
	memory := NewMemory("memory", kept(n, now))
	files, err := Files(inFile(t, kept(n, now)))
	require.NoError(t, err)
	url, _ := tempoServer(t, memory, false)
	oldURL, _ := tempoServer(t, NewMemory("old", kept(n, now.Add(-400*24*time.Hour))), true)
	for name, s := range map[string]Source{"memory": memory, "file": files, "Tempo": NewTempo(url), "Tempo of old traces": NewTempo(oldURL)} {
		t.Run(name, func(t *testing.T) {
			services, err := s.Services(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []string{"a", "b"}, services)

			one, err := s.Trace(t.Context(), idOf(7))
			require.NoError(t, err)
			assert.Equal(t, idOf(7), one.ID)
			assert.Equal(t, []string{"root", "child"}, []string{one.Spans[0].Name(), one.Spans[1].Name()})
			_, err = s.Trace(t.Context(), pcommon.TraceID{9})
			require.ErrorIs(t, err, ErrNoTrace)

			for _, tt := range []struct {
				q     Query
				first int // of the traces
				want  Share
			}{
				{Query{}, 0, Share{n, n, false}},
				{Query{Run: "x"}, 0, Share{134, 134, false}},
				{Query{Limit: 30}, n - 30, Share{30, n, false}},
				{Query{Services: []string{"b"}}, 1, Share{n / 2, n / 2, false}},
				{Query{Services: []string{`no"body`}}, -1, Share{}},
			} {
				tt.q.Now, tt.q.Counting = now, time.Minute
				found, err := s.Find(t.Context(), tt.q)
				require.NoError(t, err)
				require.NoError(t, found.Older)
				assert.Equal(t, tt.want, found.Share, tt.q)
				traces := slices.DeleteFunc(found.Traces, (*tree.Trace).IsRun)
				require.Len(t, traces, tt.want.Read)
				if tt.first >= 0 {
					assert.Equal(t, idOf(tt.first), traces[0].ID)
				}
				assert.True(t, slices.IsSortedFunc(traces, func(a, b *tree.Trace) int { return int(a.Start - b.Start) }))
			}
		})
	}
}

// searches answers the searches of a store, by service: the first of recent, the next of old traces.
type searches map[string][]error

func (s searches) window(_ context.Context, service string, _ window, _ int) ([]*tree.Trace, bool, error) {
	err := s[service][0]
	s[service] = s[service][1:]
	if err != nil {
		return nil, false, err
	}
	return []*tree.Trace{{ID: idOf(1)}}, false, nil
}

// Recent traces of any service are an answer, also where a service has none of its own.
func TestOlderFails(t *testing.T) {
	older := errors.New("no index of that day")
	s := searches{"a": {nil, nil}, "b": {nil, older}}
	found, err := newWindows(s, Query{}, 0).all(t.Context(), []string{"a", "b"}, []window{{}, {}})
	require.NoError(t, err)
	assert.Len(t, found.Traces, 1)
	assert.Equal(t, older, found.Older)
}

// Each trace is read once, however many searches find it.
func TestTempoReadsOnce(t *testing.T) {
	const n = 300
	url, asked := tempoServer(t, NewMemory("memory", kept(n, now)), false)
	found, err := NewTempo(url).Find(t.Context(), Query{Services: []string{"a", "b"}, Now: now})
	require.NoError(t, err)
	assert.Len(t, found.Traces, n+1)
	assert.Less(t, asked.Load(), int64(n+1+60))
}

func TestTempoSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		is     error
		says   string
	}{
		{"refused", 400, "invalid TraceQL", nil, "Tempo at http://127.0.0.1:"},
		{"another server", 404, "404 page not found", ErrNotAPI, "answered 404 Not Found"},
		{"a web page", 200, "<html>", ErrNotAPI, "is not JSON"},
		{"a broken id", 200, `{"traces":[{"traceID":"xyz"}]}`, ErrNotAPI, `no trace id: "xyz"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer srv.Close()
			_, err := NewTempo(srv.URL).Find(t.Context(), Query{Services: []string{"a"}, Now: now})
			require.ErrorContains(t, err, tt.says)
			if tt.is != nil {
				assert.ErrorIs(t, err, tt.is)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	td := kept(3, now)
	line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	proto, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	message := append(binary.BigEndian.AppendUint32(nil, uint32(len(proto))), proto...)
	for _, tt := range []struct {
		name   string
		data   []byte
		traces int
		fails  string
	}{
		{"empty", nil, 0, ""},
		{"a line", append(slices.Clone(line), '\n'), 4, ""},
		{"without an end of line", line, 4, ""},
		{"the last line is being written", append(append(slices.Clone(line), '\n'), line[:len(line)/2]...), 4, ""},
		{"a line is torn", append(append(slices.Clone(line[:len(line)/2]), '\n'), line...), 0, "line 1: not a file of the collector's file exporter"},
		{"a copy", append(append(slices.Clone(line), '\n'), line...), 4, ""},
		{"protobuf", message, 4, ""},
		{"the last message is being written", append(slices.Clone(message), message[:len(message)-3]...), 4, ""},
		{"a length is being written", append(slices.Clone(message), 0, 0), 4, ""},
		{"a log", []byte("2026-02-11 09:00:00 step 1\n"), 0, "batch 1: not a file"},
		{"compressed", append([]byte{0, 0, 0, 6}, 0x28, 0xb5, 0x2f, 0xfd, 1, 2), 0, "is it compressed?"},
		{"a length of more than there is", []byte{0, 0, 1, 0, 'x'}, 0, "batch 1: not a file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Files(written(t, tt.data))
			if tt.fails != "" {
				require.ErrorIs(t, err, ErrNoOTLP)
				assert.ErrorContains(t, err, tt.fails)
				return
			}
			require.NoError(t, err)
			assert.Len(t, m.traces, tt.traces)
		})
	}
	_, err = Files(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	two, err := Files(written(t, line), written(t, message))
	require.NoError(t, err)
	assert.Equal(t, ids(NewMemory("", td).traces), ids(two.traces), "a file that was rotated and its copy")
}

func TestParseID(t *testing.T) {
	want := pcommon.TraceID{0xa1, 0xb2, 0xc3, 0xd4, 0x5e, 0x6f, 0x4a, 0x7b, 0x8c, 0x9d, 0x0e, 0x1f, 0x2a, 0x3b, 0x4c, 0x5d}
	for text, want := range map[string]pcommon.TraceID{
		"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d": want, "A1B2C3D4-5e6f-4a7b-8c9d-0e1f2a3b4c5d": want, "a01": {14: 0x0a, 15: 1},
	} {
		got, err := ParseID(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "0", "N/A", "xyz", "-", strings.Repeat("1", 33)} {
		_, err := ParseID(text)
		assert.ErrorIs(t, err, ErrNoID, text)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d","spanId":"0430eb22437a41d3"}]}]}]}` + "\n{"))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 2, 10, 0})
	f.Fuzz(func(_ *testing.T, data []byte) {
		td := ptrace.NewTraces()
		if read(bufio.NewReader(bytes.NewReader(data)), td) == nil {
			tree.Build(td)
		}
	})
}

func FuzzJaeger(f *testing.F) {
	f.Add([]byte(`{"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d","spanId":"0430eb22437a41d3"}]}]}]}}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		if td, err := decodeJaeger(body); err == nil {
			tree.Build(td)
		}
	})
}

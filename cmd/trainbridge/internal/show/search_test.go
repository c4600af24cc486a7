package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/source"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// stored is a trace in a store: a function with a get, started a while before now.
type stored struct {
	id    uint16
	ago   time.Duration
	run   string
	noID  bool
	other time.Duration // a second span begins a while before now
}

func (s stored) add(b *spans.Batch) {
	trace := pcommon.TraceID{1, byte(s.id >> 8), byte(s.id)}
	res := spans.Resource{Service: "job", RunID: s.run}
	add := func(name, stage string, id, parent byte, ago, took time.Duration) ptrace.Span {
		at := now.Add(-ago).UnixNano()
		sp := b.Add(res, spans.Span{Trace: trace, ID: pcommon.SpanID{id}, Name: name, Start: at, End: at + int64(took)})
		if parent > 0 {
			sp.SetParentSpanID(pcommon.SpanID{parent})
		}
		sp.Attributes().PutStr(spans.AttrTQStage, stage)
		return sp
	}
	f := add([]string{"generate", "update"}[s.id%2], spans.StageFunction, 1, 0, s.ago, 100*time.Millisecond)
	f.Attributes().PutStr(spans.AttrTQTraceID, "batch")
	if s.noID {
		f.Attributes().PutStr(spans.AttrTQTraceID, "N/A")
	}
	add(spans.SpanTQGet, spans.StageGet, 2, 1, s.ago, time.Duration(10+s.id%20)*time.Millisecond)
	if s.other > 0 {
		add("late", "", 3, 1, s.other, time.Millisecond)
	}
}

// store is a Jaeger with some traces. It answers with the first traces of its list that have a span in the requested time, like Jaeger's memory.
type store struct {
	traces   []stored
	asked    atomic.Int64
	tooOld   bool  // cannot search further back than the last days
	slowFrom int64 // later requests take longer than anyone waits
}

func (s *store) serve(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.URL.Path == "/api/v3/services":
			_, _ = io.WriteString(w, `{"services":["job","jaeger"]}`)
			return
		case q.Get("query.service_name") != "job":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, testdata(t, "none.json"))
			return
		}
		if asked := s.asked.Add(1); s.slowFrom > 0 && asked > s.slowFrom {
			<-r.Context().Done()
			return
		}
		from, err := time.Parse(time.RFC3339Nano, q.Get("query.start_time_min"))
		assert.NoError(t, err)
		to, err := time.Parse(time.RFC3339Nano, q.Get("query.start_time_max"))
		assert.NoError(t, err)
		n, err := strconv.Atoi(q.Get("query.num_traces"))
		assert.NoError(t, err)
		if s.tooOld && from.Year() == 2000 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"message":"too many indices"}}`)
			return
		}
		b := spans.NewBatch("test", "")
		found := 0
		in := func(ago time.Duration) bool { at := now.Add(-ago); return !at.Before(from) && !at.After(to) }
		for _, tr := range s.traces {
			if found < n && (in(tr.ago) || tr.other > 0 && in(tr.other)) {
				tr.add(b)
				found++
			}
		}
		if found == 0 {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, testdata(t, "none.json"))
			return
		}
		var m ptrace.JSONMarshaler
		body, err := m.MarshalTraces(b.Traces())
		assert.NoError(t, err)
		_, _ = io.WriteString(w, `{"result":`+string(body)+`}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func (s *store) search(t *testing.T, run string, limit int, count time.Duration) (*source.Found, error) {
	t.Helper()
	return source.NewJaeger(s.serve(t)).Find(t.Context(), source.Query{Services: []string{"job"}, Run: run, Limit: limit, Now: now, Counting: count})
}

// keptIn are the orders of n traces in a store, one per second; every third of another run.
func keptIn(n int) map[string][]stored {
	newest := make([]stored, n)
	for i := range newest {
		newest[i] = stored{id: uint16(i), ago: time.Duration(i+1) * time.Second, run: []string{"a", "b", "b"}[i%3]}
	}
	oldest, mixed, stale, together := slices.Clone(newest), slices.Clone(newest), slices.Clone(newest), slices.Clone(newest)
	slices.Reverse(oldest)
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for i := range stale {
		stale[i].ago += 400 * 24 * time.Hour
		together[i].ago = time.Hour
	}
	return map[string][]stored{"newest first": newest, "oldest first": oldest, "mixed": mixed, "of last year": stale, "all at once": together}
}

// Of 1,312 traces 100 were read without a word.
func TestAllTracesAreRead(t *testing.T) {
	const n = 1312
	for name, traces := range keptIn(n) {
		t.Run(name, func(t *testing.T) {
			s := &store{traces: traces}
			f, err := s.search(t, "", 0, time.Minute)
			require.NoError(t, err)
			assert.Len(t, f.Traces, n)
			assert.Equal(t, source.Share{Read: n, There: n}, f.Share)
			assert.Less(t, s.asked.Load(), int64(110))
		})
	}
	f, err := (&store{traces: keptIn(300)["mixed"]}).search(t, "b", 0, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, source.Share{Read: 200, There: 200}, f.Share)
}

func TestLimitTakesTheNewest(t *testing.T) {
	const n = 512
	for name, traces := range keptIn(n) {
		if name == "all at once" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f, err := (&store{traces: traces}).search(t, "", 240, time.Minute)
			require.NoError(t, err)
			require.Len(t, f.Traces, 240)
			slices.SortFunc(traces, func(a, b stored) int { return int(b.ago - a.ago) })
			for i, want := range traces[n-240:] {
				assert.Equal(t, now.Add(-want.ago).UnixNano(), f.Traces[i].Start)
			}
			assert.Equal(t, source.Share{Read: 240, There: n}, f.Share)
			assert.Equal(t, "The latest 240 of 512 traces", shareText(f.Share))
		})
	}
}

// Counting the traces beyond the limit may take some time, then show only says "more".
func TestCountingEnds(t *testing.T) {
	s := &store{traces: keptIn(400)["newest first"], slowFrom: 4}
	f, err := s.search(t, "", 100, 50*time.Millisecond)
	require.NoError(t, err)
	assert.Len(t, f.Traces, 100)
	assert.True(t, f.Share.More)
	assert.Regexp(t, `^The latest 100 of more than \d+ traces$`, shareText(f.Share))
	// A user who breaks off is not told of few traces.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = source.NewJaeger(s.serve(t)).Find(ctx, source.Query{Services: []string{"job"}, Now: now})
	assert.Error(t, err)
}

// Traces of hours are in every short window: asking for shorter windows would never end.
func TestLongTracesEnd(t *testing.T) {
	s := &store{}
	for i := range 300 {
		s.traces = append(s.traces, stored{id: uint16(i), ago: 20 * time.Hour, other: time.Duration(i%150) * time.Minute / 10})
	}
	f, err := s.search(t, "", 0, time.Minute)
	require.NoError(t, err)
	assert.Len(t, f.Traces, 300)
	assert.Less(t, s.asked.Load(), int64(100))
}

// A store without searches over years does not make the last days unreadable.
func TestOlderThanTheStoreCanSearch(t *testing.T) {
	s := &store{traces: keptIn(12)["mixed"], tooOld: true}
	text, err := draw(t, options{jaeger: s.serve(t), width: 100}, false)
	require.NoError(t, err)
	first, _, _ := strings.Cut(text, "\n\n")
	assert.Equal(t, "All 12 traces of service job in Jaeger at http://127.0.0.1:16686; those older than 7 days could\n  not be read: "+
		"show: Jaeger at http://127.0.0.1:16686: too many indices", first)
	s.traces = nil
	_, err = draw(t, options{jaeger: s.serve(t)}, false)
	assert.ErrorContains(t, err, "too many indices")
}

func TestRunIsUnknown(t *testing.T) {
	_, err := draw(t, options{jaeger: (&store{traces: keptIn(3)["mixed"]}).serve(t), run: "c"}, false)
	require.ErrorIs(t, err, source.ErrNoTrace)
	assert.ErrorContains(t, err, `run "c": --list has the runs`)
}

func TestList(t *testing.T) {
	s := &store{traces: keptIn(5)["mixed"]}
	s.traces = append(s.traces, stored{id: 100, ago: time.Minute, run: "c", noID: true}, stored{id: 102, ago: 2 * time.Minute, run: "c", noID: true})
	url := s.serve(t)
	for golden, opt := range map[string]options{"list.txt": {}, "list_run.txt": {run: "b"}, "list_no_id.txt": {run: "c"}} {
		opt.jaeger, opt.list, opt.width = url, true, 100
		got, err := draw(t, opt, false)
		require.NoError(t, err)
		compare(t, golden, got)
	}
}

// Calls without a trace id are grouped: a row and a drawing per function, not a single call for all.
func TestNoTraceIDs(t *testing.T) {
	s := &store{}
	for i := range 20 {
		s.traces = append(s.traces, stored{id: uint16(i), ago: time.Duration(i) * time.Minute, noID: true})
	}
	text, err := draw(t, options{jaeger: s.serve(t), width: 100}, false)
	require.NoError(t, err)
	compare(t, "no_id.txt", text)
	// Of ten calls each, the call with the longest get is drawn: 28 and 29 of 100 ms.
	assert.Regexp(t, `(?m)^generate +100 ms .* TQ overhead 28%$`, text)
	assert.Regexp(t, `(?m)^update +100 ms .* TQ overhead 29%$`, text)
	assert.Contains(t, text, "20 of 20 calls in the log have no trace id (N/A)")
}

// No line is longer than the terminal, whatever is drawn.
func TestWidth(t *testing.T) {
	long := strings.Repeat("x", 70)
	simulated := map[string]ptrace.Traces{
		"collectives": cluster{ranks: 64, collectives: 12, channels: 2, slow: 41, missing: 3, twins: true, p2p: 3}.traces(),
		"passes":      client{layers: 16, passes: 12, slow: map[int]bool{3: true}, crash: true}.traces(),
		"steps":       training(true),
		"functions":   big(40, "f", long, long+"y"),
	}
	url := answering(t, func(service string) ptrace.Traces { return simulated[service] })
	for service := range simulated {
		for _, width := range []int{40, 59, 60, 80, 120, 250} {
			for _, list := range []bool{false, true} {
				text, err := draw(t, options{jaeger: url, service: service, width: width, list: list}, false)
				require.NoError(t, err)
				text = strings.ReplaceAll(text, "http://127.0.0.1:16686", url)
				for line := range strings.SplitSeq(text, "\n") {
					assert.LessOrEqual(t, utf8.RuneCountInString(line), width, "%s %d: %s", service, width, line)
				}
			}
		}
	}
}

// keys are the paths of all keys of a document, except below attributes, verdict counts and roots, whose keys are names.
func keys(into map[string]bool, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			into[k] = true
			if _, counts := e.(map[string]any); counts && (k == "attributes" || k == "verdicts" || k == "roots") {
				continue
			}
			keys(into, path+"."+k, e)
		}
	case []any:
		for _, e := range v {
			keys(into, path, e)
		}
	}
}

func documentOf(t *testing.T, opt options) (doc map[string]any) {
	t.Helper()
	opt.format = reading.JSON
	text, err := draw(t, opt, false)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	return doc
}

// written is a file with traces, as from the collector's file exporter.
func written(t *testing.T, td ptrace.Traces) string {
	t.Helper()
	line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "spans.json")
	require.NoError(t, os.WriteFile(file, line, 0o600))
	return file
}

// The document has the figures of the tables, and -h names each of its keys and no more.
func TestJSON(t *testing.T) {
	simulated := map[string]ptrace.Traces{
		"collectives": cluster{ranks: 8, collectives: 6, slow: 5, missing: 3}.traces(),
		"passes":      client{layers: 2, passes: 3, slow: map[int]bool{3: true}, server: true}.traces(),
		"steps":       training(true),
		"functions":   big(4, "f"),
		"windows":     joinedJob(3, 11),
	}
	simulated["functions"].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status().SetCode(ptrace.StatusCodeError)
	url := answering(t, func(service string) ptrace.Traces { return simulated[service] })
	found := map[string]bool{}
	read := func(opt options) map[string]any {
		if opt.jaeger == "" {
			opt.jaeger = url
		}
		doc := documentOf(t, opt)
		keys(found, "", doc)
		return doc
	}
	row := func(doc map[string]any, key string, i int) map[string]any {
		return doc[key].([]any)[i].(map[string]any)
	}

	f := row(read(options{service: "functions"}), "functions", 0)
	// Four functions of 1.0, 1.1, 1.2 and 1.3 s with a get of 0.1 s.
	assert.InDelta(t, 1.15, f["mean_seconds"], 1e-9)
	assert.InDelta(t, 0.4/4.6, f["overhead_ratio"], 1e-9)
	steps := row(read(options{service: "steps"}), "training_logs", 0)
	assert.InDelta(t, 2.69, steps["step_seconds_p50"], 1e-9)
	assert.InDelta(t, 131.04e12, steps["device_flop_per_second_p50"], 1e6)
	assert.Equal(t, map[string]any{"train_mfu_low": 2.0, "train_loss_not_finite": 1.0}, steps["verdicts"])
	passes := read(options{service: "passes"})["passes"].([]any)
	assert.Len(t, passes, 3)
	assert.InDelta(t, 0.1, passes[0].(map[string]any)["serialize_ratio"], 1e-3)
	gather := row(read(options{service: "collectives"}), "collectives", 0)
	assert.Equal(t, "rank 5 on gpu-node-0", gather["last_most_often"])
	assert.InDelta(t, 0.007, gather["duration_seconds_max"], 1e-9)
	w := row(read(options{service: "windows"}), "windows", 0)
	assert.Equal(t, []any{"step", 20.0, 2.0}, []any{w["window"], w["count"], w["slow"]})
	assert.InDelta(t, 2*20/84.0, w["parts"].([]any)[0].(map[string]any)["ratio"], 1e-9)
	assert.InDelta(t, 1.6, w["why"].([]any)[0].(map[string]any)["over_seconds"], 1e-9)
	read(options{service: "steps", list: true})
	noIDs := store{traces: []stored{{id: 1, run: "r", noID: true}, {id: 3, run: "r", noID: true}}}
	read(options{jaeger: noIDs.serve(t), service: "job", run: "r", list: true})
	file := written(t, simulated["functions"])
	ofFile := read(options{files: []string{file}})
	assert.Equal(t, f, row(ofFile, "functions", 0))
	assert.Equal(t, []any{file}, ofFile["files"])
	tempo, err := open(options{tempo: "t:3200"})
	require.NoError(t, err)
	keys(found, "", map[string]any{tempo.key: tempo.value})

	said := map[string]bool{}
	for _, m := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(documentHelp(), -1) {
		said[m[1]] = true
	}
	assert.Equal(t, said, found)
}

// Numbers possible in a store and not in JSON.
func TestJSONOfOddNumbers(t *testing.T) {
	td := training(true)
	for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		var nan float64
		nan /= nan
		s.Attributes().PutDouble(spans.AttrMFU, nan)
		s.Attributes().PutEmptySlice("list").AppendEmpty().SetDouble(nan)
		s.Attributes().PutEmptyMap("map").PutDouble("x", nan)
	}
	traces := tree.Build(td)
	r := report{from: &backend{}, traces: traces, drawn: traces}
	_, err := json.Marshal(r.document(options{}))
	assert.NoError(t, err)
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1312: "1,312", 1234567: "1,234,567"} {
		assert.Equal(t, want, human.Thousands(n))
	}
	assert.Equal(t, "1 trace 2,000 traces", fmt.Sprint(human.Plural(1, "trace"), " ", human.Plural(2000, "trace")))
}

func TestTitleSaysWhatIsMissing(t *testing.T) {
	from := &backend{Source: source.NewJaeger("http://j")}
	r := report{from: from, services: []string{"a", "b"}, run: "r", share: source.Share{Read: 240, There: 1312}}
	assert.Equal(t, "The latest 240 of 1,312 traces of run r, services a, b in Jaeger at http://j; --limit raises it", r.title())
	r = report{from: from, services: []string{"a"}, share: source.Share{Read: 1, There: 1}, older: errors.New("no")}
	assert.Equal(t, "The only trace of service a in Jaeger at http://j; those older than 7 days could not be read: no", r.title())
}

func TestVerdictCounts(t *testing.T) {
	var w strings.Builder
	printVerdictCounts(&w, "e", nil, style{width: 100})
	printVerdictCounts(&w, "f", digest.Verdicts{"tq_fluctuating (get)": 1200, spans.VerdictTQOverhead: 3}, style{width: 100})
	assert.Equal(t, "verdicts on f: 1,200× tq_fluctuating (get), 3× tq_overhead\n", w.String())
}

package zmqrpcreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

func config(globs ...string) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Include, cfg.RunID = globs, "run"
	return cfg
}

// read reads logs whole.
func read(tb testing.TB, cfg *Config) *filereceivertest.Result {
	tb.Helper()
	return filereceivertest.Read(tb, receivertest.NewNopSettings(metadata.Type), cfg, newParts)
}

// text reads a log of the given lines.
func text(tb testing.TB, change func(*Config), lines ...string) *filereceivertest.Result {
	tb.Helper()
	cfg := config(filereceivertest.Put(tb, tb.TempDir(), "zmq_performance.log", strings.Join(lines, "\n")+"\n"))
	if change != nil {
		change(cfg)
	}
	return read(tb, cfg)
}

var attr = filereceivertest.Attr

// calls are the spans of rows.
func calls(r *filereceivertest.Result) []ptrace.Span {
	var out []ptrace.Span
	for _, s := range r.All("") {
		if s.Kind() == ptrace.SpanKindClient {
			out = append(out, s)
		}
	}
	return out
}

// tree draws each trace as text: name, start in ms before the file was written, duration in ms.
func tree(r *filereceivertest.Result) string {
	children := make(map[pcommon.SpanID][]ptrace.Span)
	var roots []ptrace.Span
	for _, s := range r.All("") {
		if s.Name() == spans.SpanRun {
			continue
		}
		if s.ParentSpanID().IsEmpty() {
			roots = append(roots, s)
		} else {
			children[s.ParentSpanID()] = append(children[s.ParentSpanID()], s)
		}
	}
	var w strings.Builder
	var draw func(s ptrace.Span, indent string)
	draw = func(s ptrace.Span, indent string) {
		fmt.Fprintf(
			&w, "%s%s %.3f +%.3f", indent, s.Name(), float64(int64(s.StartTimestamp())-filereceivertest.Written.UnixNano())/1e6,
			float64(s.EndTimestamp()-s.StartTimestamp())/1e6,
		)
		if end := attr(s, spans.AttrZMQPassEnd); end != "" {
			fmt.Fprintf(&w, " %s calls, %s", attr(s, spans.AttrZMQPassCalls), end)
			if attr(s, spans.AttrIncomplete) != "" {
				w.WriteString(", incomplete")
			}
		}
		w.WriteString("\n")
		for _, c := range children[s.SpanID()] {
			draw(c, indent+"  ")
		}
	}
	for _, s := range roots {
		draw(s, "")
	}
	return w.String()
}

var fixtures = []string{"v1.log", "v2.log", "v3.log", "v4.log", "crashed.log", "export.csv", "commas.csv", "tcp.log", "ids.csv"}

func TestGolden(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			r := read(t, config(filereceivertest.Copy(t, filepath.Join("testdata", name))))
			base := filepath.Join("testdata", strings.TrimSuffix(name, filepath.Ext(name)))
			filereceivertest.GoldenText(t, base+".tree.txt", tree(r))
			r.Golden(t, base)
		})
	}
}

// Lines without a row are in the accounts, by reason.
func TestAccounts(t *testing.T) {
	for name, want := range map[string]struct {
		records           int64
		ignored, rejected map[string]int64
	}{
		"v1.log":      {16, map[string]int64{"title": 1, "header": 1, "rule": 5, "summary": 1, "empty": 1}, map[string]int64{}},
		"v2.log":      {15, map[string]int64{"title": 1, "header": 1, "rule": 5, "summary": 1, "empty": 5, "section": 3}, map[string]int64{}},
		"v4.log":      {10, map[string]int64{"title": 1, "header": 1, "rule": 5, "summary": 1, "empty": 4, "section": 3}, map[string]int64{}},
		"crashed.log": {3, map[string]int64{"title": 1, "header": 1, "rule": 2, "unknown": 1}, map[string]int64{"column_count": 1}},
		"export.csv":  {4, map[string]int64{"header": 1}, map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, config(filereceivertest.Copy(t, filepath.Join("testdata", name))))
			assert.Equal(t, want.records, r.Counts.Records)
			assert.Equal(t, want.ignored, r.Counts.Ignored)
			assert.Equal(t, want.rejected, r.Counts.Rejected)
		})
	}
}

// oracle reads a log by its header alone: the cells of each row by the name of their column, and the numbers of its summary.
func oracle(tb testing.TB, path string) (rows []map[string]string, last []map[string]string) {
	tb.Helper()
	b, err := os.ReadFile(path)
	require.NoError(tb, err)
	var header []string
	for line := range strings.Lines(string(b)) {
		cells := strings.Fields(line)
		if len(cells) > 0 && cells[0] == "ID" {
			header = cells
		}
		if _, err := strconv.Atoi(strings.Join(cells[:min(1, len(cells))], "")); err != nil || len(cells) != len(header) {
			continue
		}
		row := make(map[string]string)
		for i, c := range cells {
			row[header[i]] = c
		}
		rows = append(rows, row)
		if row["ID"] == "1" {
			last = nil
		}
		last = append(last, row)
	}
	return rows, last
}

// units of the last printed digit: 0.001 ms is a microsecond.
func micros(tb testing.TB, ms string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(strings.Replace(ms, ".", "", 1), 10, 64)
	require.NoError(tb, err)
	require.Equal(tb, 3, len(ms)-strings.IndexByte(ms, '.')-1)
	return n
}

// Logs collected by others, where the checkout has them: a call for each row, with the printed duration, and totals as in the summary.
func TestRealLogs(t *testing.T) {
	files, err := filepath.Glob("../../../shared/logs/zmq_tsqp/*.log")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Log("no real logs here: nothing to check")
		return
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			rows, last := oracle(t, f)
			r := read(t, config(filereceivertest.Copy(t, f)))
			got := calls(r)
			require.Len(t, got, len(rows))
			assert.Empty(t, r.Counts.Rejected)
			checkTimesOfRows(t, r, rows)
			finals := r.All(spans.SpanRPCSummary)
			if strings.Contains(f, "nofooter") || strings.Contains(f, "v1c") {
				assert.Empty(t, finals)
				return
			}
			require.Len(t, finals, 1)
			assert.Equal(t, strconv.Itoa(len(last)), attr(finals[0], spans.AttrZMQFinalPrefix+"total_rpc_calls"))
			assert.Equal(t, "0", attr(finals[0], spans.AttrZMQFinalDisagreement), "the summary is what the rows add up to")
			var total int64
			for _, row := range last {
				total += micros(t, row["Total(ms)"])
			}
			passes := r.All(spans.SpanRPCPass)
			sum, ok := passes[len(passes)-1].Attributes().Get(spans.AttrZMQCallDuration)
			require.True(t, ok)
			assert.InDelta(t, float64(total)/1e6, sum.Double(), 1e-12)
		})
	}
}

// checkTimesOfRows compares every call, its parts and their times with its row.
func checkTimesOfRows(t *testing.T, r *filereceivertest.Result, rows []map[string]string) {
	t.Helper()
	columns := map[string][]string{
		spans.SpanRPCSerialize: {"Serialize(ms)", "Ser(ms)"}, spans.SpanRPCSend: {"Send(ms)"}, spans.SpanRPCReceive: {"Recv(ms)"},
		spans.SpanRPCDeserialize: {"Deserialize(ms)", "Deser(ms)"}, spans.SpanRPCServer: {"GPU(ms)"},
	}
	children := make(map[pcommon.SpanID]map[string]ptrace.Span)
	for _, s := range r.All("") {
		if children[s.ParentSpanID()] == nil {
			children[s.ParentSpanID()] = make(map[string]ptrace.Span)
		}
		children[s.ParentSpanID()][s.Name()] = s
	}
	micro := func(s ptrace.Span) int64 { return int64(s.EndTimestamp()-s.StartTimestamp()) / 1000 }
	ids := make(map[pcommon.SpanID]bool)
	var at pcommon.Timestamp
	for i, s := range calls(r) {
		row := rows[i]
		assert.Equal(t, row["Method"], s.Name())
		assert.Equal(t, row["ID"], attr(s, spans.AttrZMQCallID))
		assert.Equal(t, micros(t, row["Total(ms)"]), micro(s))
		assert.GreaterOrEqual(t, s.StartTimestamp(), at, "one after the other")
		at = s.EndTimestamp()
		ids[s.SpanID()] = true
		for name, column := range columns {
			printed := row[column[0]]
			if len(column) > 1 && printed == "" {
				printed = row[column[1]]
			}
			within := children[s.SpanID()]
			if name == spans.SpanRPCServer {
				within = children[within[spans.SpanRPCReceive].SpanID()]
			}
			c, ok := within[name]
			if name == spans.SpanRPCServer && (printed == "" || printed == "0.000") {
				assert.False(t, ok)
				continue
			}
			require.True(t, ok, "%s of row %d", name, i)
			assert.Equal(t, micros(t, printed), micro(c))
		}
	}
	assert.Len(t, ids, len(rows), "each has an id of its own")
	assert.Equal(t, filereceivertest.Written.UnixNano(), int64(at), "the last row ended when the file was written")
}

const header = "ID Method Ser(ms) Send(ms) Recv(ms) Deser(ms) Total(ms)"

// rows are calls of the given methods, all of 1 ms, the ids counted from 1; "#" restarts the ids, "header" and "columns" are headers, the same and a different
// one.
func rows(methods string) []string {
	out := []string{"ZeroMQ Performance Log - Transport: IPC", header}
	id := 0
	for m := range strings.FieldsSeq(methods) {
		switch m {
		case "#":
			id = 0
		case "title":
			out = append(out, out[:2]...)
			id = 0
		case "header":
			out = append(out, header)
		case "columns":
			out = append(out, strings.Replace(header, "Ser(ms)", "Serialize(ms)", 1))
		case "sum":
			out = append(out, "SUMMARY", "Total RPC Calls: 1", "====")
		default:
			id++
			out = append(out, fmt.Sprintf("%d %s 0.1 0.2 0.3 0.4 1.0", id, m))
		}
	}
	return out
}

// Where passes begin and end.
func TestPasses(t *testing.T) {
	for _, tc := range []struct {
		name, methods, want string
		change              func(*Config)
	}{
		{"a session, two passes", "Init Embedding A LMHead Embedding A B LMHead", "session 1 next, pass 3 method, pass 4 method", nil},
		{"no end", "Embedding A Embedding A A", "pass 2 next, pass 3 timeout!", func(c *Config) { c.PassEnd = nil }},
		{"the ids begin anew", "Init Embedding A LMHead # Embedding A LMHead", "session 1 next, pass 3 method, pass 3 method", nil},
		{"within a pass", "Embedding A # Embedding A LMHead", "pass 2 restart!, pass 3 method", nil},
		{"another client", "Init Embedding A Init Embedding LMHead", "session 1 next, pass 2 restart!, session 1 next, pass 2 method", nil},
		{"another log", "Init Embedding A title Embedding LMHead", "session 1 next, pass 2 restart!, pass 2 method", nil},
		{
			"calls between passes", "Init Load Embedding LMHead Ping Ping Embedding LMHead Bye",
			"session 2 next, pass 2 method, calls 2 next, pass 2 method, calls 1 timeout", nil,
		},
		{"nothing but calls", "Get Put Get", "calls 3 timeout", nil},
		{
			"a pass that is too long", "Embedding A A A A A LMHead Ping", "pass 3 max_calls, pass 3 max_calls, pass 1 method, calls 1 timeout",
			func(c *Config) { c.MaxCalls = 3 },
		},
		{"calls that are too many", "A A A A", "calls 3 max_calls, calls 1 timeout", func(c *Config) { c.MaxCalls = 3 }},
		{"other methods", "Hello Prefill A Done Decode A Done", "session 1 next, pass 3 method, pass 3 method", func(c *Config) {
			c.SessionStart, c.PassStart, c.PassEnd = []string{"Hello"}, []string{"Prefill", "Decode"}, []string{"Done"}
		}},
		{"one call is a whole pass", "Run Run", "pass 1 method, pass 1 method", func(c *Config) { c.PassStart, c.PassEnd = []string{"Run"}, []string{"Run"} }},
		{"the summary ends a pass", "Embedding A sum", "pass 2 summary", nil},
		{"the header is repeated", "Embedding A header B LMHead", "pass 4 method", nil},
		{"another header", "Embedding A columns B Embedding LMHead", "pass 2 restart!, calls 1 next, pass 2 method", nil},
		{"calls after a summary", "Embedding LMHead sum A", "pass 2 method, calls 1 timeout", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := text(t, tc.change, rows(tc.methods)...)
			var got []string
			traces := make(map[pcommon.TraceID]bool)
			for _, s := range r.All("") {
				if kind, ok := strings.CutPrefix(s.Name(), "rpc."); ok && s.ParentSpanID().IsEmpty() {
					mark := ""
					if attr(s, spans.AttrIncomplete) != "" {
						mark = "!"
					}
					got = append(got, fmt.Sprintf("%s %s %s%s", kind, attr(s, spans.AttrZMQPassCalls), attr(s, spans.AttrZMQPassEnd), mark))
					traces[s.TraceID()] = true
				}
			}
			assert.Equal(t, tc.want, strings.Join(got, ", "))
			assert.Len(t, traces, len(got), "each is a trace")
		})
	}
}

// The passes of a session are linked with the session and with one another, not with another session.
func TestLinks(t *testing.T) {
	r := text(t, func(c *Config) { c.SpanLinks = true }, rows("Init Embedding LMHead # Embedding LMHead Embedding LMHead Init Embedding LMHead")...)
	run, runSpan := spans.RunIDs("run")
	name := map[ref]string{{Trace: run, Span: runSpan}: "run"}
	var got []string
	for i, s := range append(r.All(spans.SpanRPCSession), r.All(spans.SpanRPCPass)...) {
		name[ref{Trace: s.TraceID(), Span: s.SpanID()}] = fmt.Sprintf("%s%d", strings.TrimPrefix(s.Name(), "rpc."), i)
	}
	for _, s := range append(r.All(spans.SpanRPCSession), r.All(spans.SpanRPCPass)...) {
		line := []string{name[ref{Trace: s.TraceID(), Span: s.SpanID()}] + ":"}
		for _, l := range s.Links().All() {
			line = append(line, name[ref{Trace: l.TraceID(), Span: l.SpanID()}])
		}
		got = append(got, strings.Join(line, " "))
	}
	assert.Equal(t, []string{
		"session0: run", "session1: run", "pass2: run session0", "pass3: run session0 pass2", "pass4: run session0 pass3", "pass5: run session1",
	}, got)
}

// A trace keeps within 2,000 spans: the slowest calls have their stages as spans, the others as attributes, and one span per stage aggregates the others.
func TestCap(t *testing.T) {
	const n = 1896
	lines := []string{"ZeroMQ Performance Log - Transport: IPC", header + " Offline(ms)"}
	for i := range n {
		method := "A"
		if i == 0 {
			method = "Embedding"
		}
		d := float64(1 + (i*7919)%n) // ms, each once
		lines = append(lines, fmt.Sprintf("%d %s %.3f 0.100 0.100 0.100 %.3f 0.000", i+1, method, d, d+0.3))
	}
	r := text(t, func(c *Config) { c.MaxCalls = n }, lines...)
	all := r.All("")
	assert.LessOrEqual(t, len(all), maxSpans)
	require.Len(t, calls(r), n)
	children := make(map[pcommon.SpanID]int)
	for _, s := range all {
		children[s.ParentSpanID()]++
	}
	whole := 0
	for _, s := range calls(r) {
		d := float64(s.EndTimestamp()-s.StartTimestamp()) / 1e6
		if children[s.SpanID()] == 0 {
			assert.InDelta(t, (d-0.3)/1e3, mustDouble(t, s, spans.AttrZMQSerializeDuration), 1e-12)
			continue
		}
		whole++
		assert.Equal(t, 4, children[s.SpanID()])
		assert.Greater(t, d, float64(n-24), "only the slowest")
	}
	require.Equal(t, 24, whole, "(2000 − 8 − 1896) / 4")
	for _, s := range r.All(spans.SpanRPCSerialize) {
		if attr(s, spans.AttrAggregateCount) == "" {
			continue
		}
		assert.Equal(t, strconv.Itoa(n-whole), attr(s, spans.AttrAggregateCount))
		m := float64(n - whole)
		assert.InDelta(t, m*(m+1)/2/1e3, mustDouble(t, s, spans.AttrAggregateSum), 1e-9, "1 + 2 + … ms")
		assert.InDelta(t, (m+1)/2/1e3, mustDouble(t, s, spans.AttrAggregateP50), 1e-12, "of an even number")
		assert.InDelta(t, m/1e3, mustDouble(t, s, spans.AttrAggregateMax), 1e-9)
		return
	}
	assert.Fail(t, "no aggregate")
}

// A trace keeps within 4 MB too, whatever the columns hold.
func TestCapOfBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		columns, bytes int
		column         string
	}{
		"long texts": {40, 40, strings.Repeat("x", 5000)}, "long names": {40, 40, "1"}, "longer names": {56, 66, "1"}, "one very long name": {1, 4000, "1"},
	} {
		if testing.Short() && name != "longer names" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			column := tc.column
			names := make([]string, tc.columns)
			for i := range names {
				names[i] = fmt.Sprintf("%s%d", strings.Repeat("c", tc.bytes), i)
			}
			extra := strings.Repeat(" "+column[:min(len(column), 1000)], len(names))
			lines := []string{header + " " + strings.Join(names, " ")}
			for i := range 1900 {
				lines = append(lines, fmt.Sprintf("%d %s 0.1 0.2 0.3 0.4 1.0%s", i+1, "M"+column, extra))
			}
			r := text(t, func(c *Config) { c.MaxCalls = 1900 }, lines...)
			size := make(map[pcommon.TraceID]int)
			marshal := ptrace.ProtoMarshaler{}
			for _, s := range r.All("") {
				td := ptrace.NewTraces()
				s.CopyTo(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
				size[s.TraceID()] += marshal.TracesSize(td)
			}
			require.Len(t, calls(r), 1900)
			assert.Equal(t, 5+tc.columns, calls(r)[0].Attributes().Len(), "kind, id, the slowest; of its resource time source and system")
			for _, n := range size {
				assert.Less(t, n, 4<<20)
			}
		})
	}
}

func mustDouble(tb testing.TB, s ptrace.Span, name string) float64 {
	tb.Helper()
	v, ok := s.Attributes().Get(name)
	require.True(tb, ok, name)
	return v.Double()
}

// The five slowest and the five largest calls are marked; of two equal calls the earlier one comes first. Control messages are not large.
func TestMarks(t *testing.T) {
	lines := func(transport string) []string {
		return []string{
			"Log - Transport: " + transport, "ID Method Recv(ms) Total(ms) Sent(KB) Recv(KB)",
			"1 Embedding 1 1.0 1 1", "2 A 5 5.0 5 5", "3 A 5 5.0 9 9", "4 A 7 7.0 2 2", "5 A 2 2.0 3 3", "6 A 3 3.0 4 4", "7 LMHead 0 0.0 0 0",
		}
	}
	marks := func(r *filereceivertest.Result, name string) string {
		var out []string
		for _, s := range calls(r) {
			if m := attr(s, name); m != "" {
				out = append(out, attr(s, spans.AttrZMQCallID)+":"+m)
			}
		}
		return strings.Join(out, " ")
	}
	r := text(t, nil, lines("IPC")...)
	assert.Equal(t, "2:2 3:3 4:1 5:5 6:4", marks(r, spans.AttrZMQCallSlowest))
	assert.Equal(t, "2:2 3:1 4:5 5:4 6:3", marks(r, spans.AttrZMQCallLargest))
	pass := r.All(spans.SpanRPCPass)[0]
	assert.Equal(t, "A", attr(pass, spans.AttrZMQSlowestMethod))
	assert.InDelta(t, 0.007, mustDouble(t, pass, spans.AttrZMQSlowestDuration), 0)
	r = text(t, nil, lines("IPC+SHM")...)
	assert.Equal(t, "2:2 3:3 4:1 5:5 6:4", marks(r, spans.AttrZMQCallSlowest))
	assert.Empty(t, marks(r, spans.AttrZMQCallLargest))
	for _, s := range r.All("") {
		assert.Empty(t, attr(s, spans.AttrZMQThroughput), "no bandwidth is made of control messages")
	}
}

// A summary joins the trace of the group before it, if the group has none yet. A line of a summary is not taken for the title of another log.
func TestSummaries(t *testing.T) {
	lines := append(rows("Embedding A LMHead"), "SUMMARY", "Total RPC Calls: 3", "Transport: TCP", "Average Total Time: 1.000 ms", "====")
	lines = append(lines, rows("sum Embedding LMHead sum")[2:]...)
	r := text(t, func(c *Config) { c.SpanLinks = true }, lines...)
	passes, sums := r.All(spans.SpanRPCPass), r.All(spans.SpanRPCSummary)
	require.Len(t, passes, 2)
	require.Len(t, sums, 3)
	assert.Equal(t, "IPC", attr(passes[1], spans.AttrZMQTransport))
	assert.Equal(t, "0.001", attr(sums[0], spans.AttrZMQFinalPrefix+"average_total_time"))
	for i, pass := range map[int]ptrace.Span{0: passes[0], 2: passes[1]} {
		assert.Equal(t, pass.TraceID(), sums[i].TraceID())
		assert.Equal(t, pass.SpanID(), sums[i].ParentSpanID())
	}
	run, _ := spans.RunIDs("run")
	assert.True(t, sums[1].ParentSpanID().IsEmpty())
	assert.NotEqual(t, passes[0].TraceID(), sums[1].TraceID())
	assert.Equal(t, run, sums[1].Links().At(0).TraceID())
}

// The server's computing is a span of another service, below the client's waiting: Jaeger derives the dependencies from the services.
func TestServerIsAService(t *testing.T) {
	r := read(t, config(filereceivertest.Copy(t, filepath.Join("testdata", "v4.log"))))
	servers := 0
	for _, td := range r.Traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				want := "zeromq"
				if s.Name() == spans.SpanRPCServer {
					servers++
					want = "zeromq-server"
				}
				assert.Equal(t, s.Name() == spans.SpanRPCServer, s.Kind() == ptrace.SpanKindServer, s.Name())
				assert.Equal(t, want, spans.AttrText(rs.Resource().Attributes(), spans.AttrServiceName), s.Name())
			}
		}
	}
	assert.Equal(t, 1, servers)
}

// Time outside all stages is a span if at least 1 % of the call, without the ticks between the stages; the root has the sum of all such time.
func TestUnattributed(t *testing.T) {
	r := text(t, nil, "Log - Transport: IPC", "ID Method Ser(ms) Recv(ms) Total(ms)", "1 A 1.000 98.000 100.000", "2 A 1.000 98.001 100.000")
	rows := r.All(spans.SpanRPCUnattributed)
	require.Len(t, rows, 1)
	assert.Equal(t, uint64(1_000_000-2*tick), uint64(rows[0].EndTimestamp()-rows[0].StartTimestamp()))
	assert.Equal(t, "0.001999", attr(r.All(spans.SpanRPCCalls)[0], spans.AttrZMQUnattributedDuration))
}

// Odd columns.
func TestColumns(t *testing.T) {
	r := text(t, nil, "Log - Transport: IPC", "ID Method Ser(ms) Total(ms) GPU(ms)", "1 A 1 3000 40")
	assert.Equal(t, `rpc.calls -3000.000 +3000.000 1 calls, timeout
  A -3000.000 +3000.000
    rpc.serialize -3000.000 +1.000
    rpc.unattributed -2998.999 +2998.999
    rpc.server.compute -40.000 +40.000
`, tree(r), "the server's time is within the call when it is not known when that received")
	attrs := calls(text(t, nil, "ID Method Total(ms) A A a-", "1 Embedding 1 x y z"))[0].Attributes().AsRaw()
	for name, want := range map[string]string{"a": "x", "a_5": "y", "a_6": "z"} {
		assert.Equal(t, want, attrs[spans.AttrZMQFieldPrefix+name], "columns of one name keep their values")
	}
}

// Reading again gives the same ids; another run gives others. Another run of the client with the same methods is another trace.
func TestIDs(t *testing.T) {
	ids := func(run string, lines ...string) map[pcommon.TraceID]pcommon.SpanID {
		r := text(t, func(c *Config) { c.RunID = run }, lines...)
		out := make(map[pcommon.TraceID]pcommon.SpanID)
		for _, s := range r.All(spans.SpanRPCPass) {
			out[s.TraceID()] = s.SpanID()
		}
		return out
	}
	lines := rows("Init Embedding A LMHead Embedding A LMHead")
	first := ids("run", lines...)
	require.Len(t, first, 2)
	assert.Equal(t, first, ids("run", lines...))
	other := append([]string{}, lines...)
	other[2] = strings.Replace(other[2], "0.3", "0.4", 1)
	for _, again := range []map[pcommon.TraceID]pcommon.SpanID{ids("other", lines...), ids("run", other...)} {
		require.Len(t, again, 2)
		for id := range again {
			assert.NotContains(t, first, id)
		}
	}
}

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// pageDir is Jaeger's built web page: JAEGER_UI_DIR, else a checkout's default place beside the repository; "": absent. The repository has no copy, and our
// build of Jaeger has none.
func pageDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(cmp.Or(os.Getenv("JAEGER_UI_DIR"), filepath.Join(repoRoot, "../shared/jaeger-ui/build")))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil {
		require.Empty(t, os.Getenv("JAEGER_UI_DIR"), "JAEGER_UI_DIR has no index.html")
		return ""
	}
	return dir
}

// pageSpan is a span as the page reads it from /api/traces.
type pageSpan struct {
	SpanID        string
	OperationName string
	References    []struct{ RefType, TraceID, SpanID string }
	StartTime     int64 // µs
	Duration      int64
	ProcessID     string
	Tags          []struct {
		Key   string
		Value any
	}
	Warnings []string

	service  string
	children []*pageSpan // in the order of rows: by start
	byEnd    []*pageSpan // the child with the latest end first
	parent   *pageSpan
	depth    int
}

func (s *pageSpan) end() int64 { return s.StartTime + s.Duration }

func (s *pageSpan) tag(key string) string {
	for _, t := range s.Tags {
		if t.Key == key {
			return fmt.Sprint(t.Value)
		}
	}
	return ""
}

// red says whether the row has the mark of an error.
func (s *pageSpan) red() bool { return s.tag("error") == "true" }

// broken says whether a stage or an operation, or one within a function, began and never ended. A function without its end is not broken: verl prints the end
// only where data is put back.
func (s *pageSpan) broken() bool {
	reason := s.tag(spans.AttrIncompleteReason)
	return strings.HasSuffix(reason, "_end") && reason != "no_function_end"
}

// label is the row's text: "service operation", with the called service, as the page writes the row of a client span without a server span below.
func (s *pageSpan) label() string {
	called := ""
	if peer := s.tag(spans.AttrPeerService); peer != "" && s.tag("span.kind") == "client" {
		called = " → " + peer
	}
	return s.service + called + " " + s.OperationName
}

// pageTrace is a trace as the page draws it.
type pageTrace struct {
	TraceID   string
	Spans     []*pageSpan
	Processes map[string]struct{ ServiceName string }

	rows []*pageSpan
}

// arrange puts the spans in the order of rows, as transformTraceData and getTraceSpanIdsAsTree of github.com/jaegertracing/jaeger-ui do.
func (tr *pageTrace) arrange() {
	by := map[string]*pageSpan{}
	for _, s := range tr.Spans {
		s.service = tr.Processes[s.ProcessID].ServiceName
		by[s.SpanID] = s
	}
	var roots []*pageSpan
	for _, s := range tr.Spans {
		if len(s.References) > 0 {
			s.parent = by[s.References[0].SpanID]
		}
		if s.parent == nil {
			roots = append(roots, s)
		} else {
			s.parent.children = append(s.parent.children, s)
		}
	}
	byStart := func(a, b *pageSpan) int { return cmp.Compare(a.StartTime, b.StartTime) }
	var walk func(s *pageSpan, depth int)
	walk = func(s *pageSpan, depth int) {
		tr.rows = append(tr.rows, s)
		s.depth = depth
		slices.SortStableFunc(s.children, byStart)
		s.byEnd = slices.Clone(s.children)
		slices.SortStableFunc(s.byEnd, func(a, b *pageSpan) int { return cmp.Compare(b.end(), a.end()) })
		for _, c := range s.children {
			walk(c, depth+1)
		}
	}
	slices.SortStableFunc(roots, byStart)
	for _, s := range roots {
		walk(s, 0)
	}
}

// title is the trace's name in search results and in the page's head: the service and operation of the first span without a parent here, among those with the
// fewest references (getTracePageHeaderParts).
func (tr *pageTrace) title() string {
	var best *pageSpan
	for _, s := range tr.rows {
		if s.parent == nil && (best == nil || len(s.References) < len(best.References) || len(s.References) == len(best.References) && s.StartTime < best.StartTime) {
			best = s
		}
	}
	return best.service + ": " + best.OperationName
}

// critical are the bars of the critical path by span: criticalPathForTrace of the page begins at the first row, and has at least one bar unless it fails.
func (tr *pageTrace) critical() (bars map[string]int, err error) {
	type times struct{ start, end int64 }
	at := map[string]times{}
	gone := map[string]bool{}
	for _, s := range tr.rows {
		at[s.SpanID] = times{s.StartTime, s.end()}
		if len(s.References) > 0 && s.References[0].RefType != "CHILD_OF" {
			return nil, fmt.Errorf("the first reference of %s is %s", s.OperationName, s.References[0].RefType)
		}
	}
	for _, s := range tr.Spans { // sanitizeOverFlowingChildren, in the order of the rows
		if len(s.References) == 0 {
			continue
		}
		if s.parent == nil || gone[s.parent.SpanID] {
			gone[s.SpanID] = true
			continue
		}
		mine, above := at[s.SpanID], at[s.parent.SpanID]
		if mine.start >= above.end || mine.end <= above.start && mine.start < above.start {
			gone[s.SpanID] = true
			continue
		}
		at[s.SpanID] = times{max(mine.start, above.start), min(mine.end, above.end)}
	}
	bars = map[string]int{}
	steps := 0
	var walk func(s *pageSpan, until int64)
	walk = func(s *pageSpan, until int64) {
		if steps++; steps > 4*len(tr.rows) {
			err = errors.New("the critical path does not end")
			return
		}
		var last *pageSpan
		for _, c := range s.byEnd {
			if !gone[c.SpanID] && (until == 0 || at[c.SpanID].end < until) {
				last = c
				break
			}
		}
		from, to := at[s.SpanID].start, cmp.Or(until, at[s.SpanID].end)
		if last != nil {
			from = at[last.SpanID].end
		}
		if from != to {
			bars[s.SpanID]++
		}
		switch {
		case last != nil:
			walk(last, 0)
		case s.parent != nil:
			walk(s.parent, at[s.SpanID].start)
		}
	}
	walk(tr.rows[0], 0)
	return bars, err
}

// pages queries all traces of a service as the page does; more is a further parameter and its value.
func (j *jaeger) pages(service string, more ...string) ([]*pageTrace, error) {
	q := url.Values{"service": {service}, "start": {"0"}, "end": {strconv.FormatInt(farOff.UnixMicro(), 10)}, "lookback": {"custom"}, "limit": {"100000"}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	body, err := get(j.ui+"/api/traces?"+q.Encode(), "")
	if err != nil {
		return nil, err
	}
	var answer struct{ Data []*pageTrace }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	for _, tr := range answer.Data {
		tr.arrange()
	}
	return answer.Data, nil
}

// tied says whether sibling rows start at the same time: Jaeger returns such rows in any order, and the page keeps the order.
func (tr *pageTrace) tied() bool {
	type place struct {
		parent *pageSpan
		start  int64
	}
	known := map[place]bool{}
	for _, s := range tr.rows {
		p := place{s.parent, s.StartTime}
		if known[p] {
			return true
		}
		known[p] = true
	}
	return false
}

// labels are the rows' texts, indented.
func (tr *pageTrace) labels() []string {
	out := make([]string, len(tr.rows))
	for i, s := range tr.rows {
		out[i] = strings.Repeat("  ", s.depth) + s.label()
	}
	return out
}

// Users' pages in Jaeger for generated logs of each kind. Jaeger's API is always queried, and read as the page reads it; with a built page, Chromium also opens
// the page, which must draw the same.
func TestJaegerPage(t *testing.T) {
	t.Parallel()
	page := pageDir(t)
	j := startJaegerWith(t, page)
	dir := t.TempDir()
	logs := func(name string) string { return filepath.Join(dir, name) }
	write := func(kind, out string, flags ...string) {
		gen(t, append([]string{kind, "--out", logs(out), "--seed", "14"}, flags...)...)
	}
	write("tq", "tq", "--workers", "2", "--batches", "20", "--overhead-high", "0.3", "--crash", "0.03")
	write("megatron", "megatron.log", "--steps", "30", "--log-interval", "1", "--slow", "0.04")
	write("zmq", "zmq_performance.log", "--passes", "3", "--serialize-high", "0.3")
	write("nccl", "nccl", "--truth", "none", "--steps", "10", "--slow-rank", "11", "--slow-by", "0.06")
	c := newCollector(t, trainbridgeBin(t), globOf(logs("tq")), j.otlp, `receivers: {tq_trace: {pending_timeout: 2s}, nccl: {hang_timeout: 5s}, zmq_rpc: {}}`)
	c.env = append(
		c.env, "TRAINBRIDGE_TRAIN_LOGS="+logs("megatron.log"), "TRAINBRIDGE_ZMQ_LOGS="+logs("zmq_*.log"), "TRAINBRIDGE_NCCL_LOGS="+logs("nccl/*.log"),
		"TRAINBRIDGE_DEVICE=A100",
	)
	c.up(t)
	services := j.awaitPages(t)
	for service, traces := range services {
		checkPages(t, service, traces)
	}
	t.Run("search", func(t *testing.T) { // the tags of docs/jaeger.md
		for tag, service := range map[string]string{
			`{"trainbridge.verdict.tq_overhead":"true","trainbridge.verdict.severity":"bad"}`: "verl",
			`{"trainbridge.verdict.severity":"bad"}`:                                          "verl",
			`{"trainbridge.incomplete":"true"}`:                                               "verl",
			`{"trainbridge.verdict.nccl_late":"true"}`:                                        "nccl",
			`{"ml.train.iteration":"12"}`:                                                     "train",
		} {
			found, err := j.pages(service, "tags", tag)
			require.NoError(t, err)
			assert.NotEmpty(t, found, tag)
			assert.Less(t, len(found), len(services[service]), tag)
		}
	})
	var drawn []*pageTrace
	t.Run("verl", func(t *testing.T) { drawn = append(drawn, checkBatches(t, services["verl"])) })
	t.Run("Megatron", func(t *testing.T) { drawn = append(drawn, checkSteps(t, services["train"])) })
	t.Run("ZeroMQ", func(t *testing.T) { drawn = append(drawn, checkPasses(t, services["zeromq"])) })
	t.Run("NCCL", func(t *testing.T) { drawn = append(drawn, checkRanks(t, services["nccl"])) })
	if t.Failed() {
		return
	}
	if page == "" {
		t.Log("Jaeger's page is not there (JAEGER_UI_DIR): what it draws was computed from its API")
		return
	}
	for _, tr := range drawn {
		t.Run("page of "+tr.title(), func(t *testing.T) { tr.checkPage(t, j) })
	}
}

// awaitPages queries the pages of each service until complete: two answers agree, and have the spans that waited for their end.
func (j *jaeger) awaitPages(t *testing.T) map[string][]*pageTrace {
	t.Helper()
	services := map[string][]*pageTrace{}
	eventually(t, func() error {
		open := false
		for service, want := range map[string]int{"verl": 20, "train": 30, "zeromq": 4, "nccl": 40} {
			found, err := j.pages(service)
			if err != nil {
				return err
			}
			spans, before := 0, 0
			for _, tr := range found {
				if i := slices.IndexFunc(tr.rows, func(s *pageSpan) bool { return s.parent == nil && len(s.References) > 0 }); i >= 0 {
					return fmt.Errorf("%s has no root yet: %s", tr.TraceID, tr.rows[i].OperationName)
				}
				spans += len(tr.rows)
				open = open || service == "verl" && slices.ContainsFunc(tr.rows, (*pageSpan).broken)
			}
			for _, tr := range services[service] {
				before += len(tr.rows)
			}
			services[service] = found
			if len(found) < want || spans != before {
				return fmt.Errorf("%d traces of %s, %d spans, before %d", len(found), service, spans, before)
			}
		}
		if !open {
			return errors.New("no function that never ended")
		}
		return nil
	})
	return services
}

// checkPages: no clock is corrected to a negative duration, and each trace has a critical path.
func checkPages(t *testing.T, service string, traces []*pageTrace) {
	t.Helper()
	for _, tr := range traces {
		for _, s := range tr.rows {
			for _, w := range s.Warnings {
				assert.NotContains(t, w, "Negative duration", "%s in %s of %s", s.OperationName, tr.TraceID, service)
			}
		}
		bars, err := tr.critical()
		require.NoError(t, err, "critical path of %s %s", service, tr.title())
		if tr.rows[0].Duration > 0 {
			assert.NotEmpty(t, bars, "critical path of %s %s", service, tr.title())
		}
	}
}

// checkBatches: a function and its stages are in the order of execution; bad spans are red, and good spans are not.
func checkBatches(t *testing.T, traces []*pageTrace) *pageTrace {
	t.Helper()
	var batch *pageTrace
	high, broken := 0, 0
	for _, tr := range traces {
		for _, s := range tr.rows {
			assert.Equal(t, s.tag(spans.AttrVerdictSeverity) == spans.SeverityBad || s.broken(), s.red(), "%s of %s", s.OperationName, tr.TraceID)
			if s.tag(spans.AttrVerdictPrefix+spans.VerdictTQOverhead) == "true" && s.tag(spans.AttrVerdictSeverity) == spans.SeverityBad {
				high++
				batch = tr
			}
			if s.broken() {
				broken++
			}
		}
	}
	require.NotNil(t, batch, "no batch with a high overhead")
	assert.Positive(t, high)
	assert.Positive(t, broken)
	assert.Equal(t, "verl: tq.batch", batch.title())
	assert.Contains(t, strings.Join(batch.labels(), "\n"), strings.Join([]string{
		"  verl generate_sequences", "    verl tq.get", "      verl → transferqueue tq.client.get", "    verl tq.compute", "    verl tq.put",
		"      verl → transferqueue tq.client.put",
	}, "\n"))
	bars, err := batch.critical()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(bars), 6, "get, compute and put of the slowest worker's functions")
	return batch
}

// checkSteps: the parts of a step are in the order of Megatron's timers, the timers of forward-backward below it.
func checkSteps(t *testing.T, traces []*pageTrace) *pageTrace {
	t.Helper()
	var step *pageTrace
	for _, tr := range traces {
		if !strings.HasSuffix(tr.title(), "train.run") && len(tr.rows) > 7 {
			assert.Regexp(t, `^train: train\.step`, tr.title())
			rows := strings.Replace(strings.Join(tr.labels()[:8], "\n"), "\n  train breakdown", "", 1)
			assert.Regexp(
				t,
				`^train train\.step.*\n  train forward-backward\n    train forward-compute\n      train batch-generator\n    train backward-compute\n(    train `+
					`all-grads-sync\n  train optimizer|  train optimizer\n    train all-grads-sync)`,
				rows,
			)
			step = tr
		}
	}
	require.NotNil(t, step)
	bars, err := step.critical()
	require.NoError(t, err)
	var names []string
	for _, s := range step.rows {
		if bars[s.SpanID] > 0 {
			names = append(names, s.OperationName)
		}
	}
	assert.Subset(t, names, []string{"forward-compute", "backward-compute", "optimizer"}, "critical path")
	return step
}

// checkPasses: calls are in order, each with its stages.
func checkPasses(t *testing.T, traces []*pageTrace) *pageTrace {
	t.Helper()
	var pass *pageTrace
	for _, tr := range traces {
		if strings.HasPrefix(tr.title(), "zeromq: rpc.pass") {
			pass = tr
		}
	}
	require.NotNil(t, pass)
	assert.Regexp(
		t, `^zeromq rpc\.pass.*\n  zeromq( → \S+)? Embedding\n    zeromq rpc\.serialize\n    zeromq rpc\.send\n    zeromq rpc\.receive\n`,
		strings.Join(pass.labels()[:6], "\n"),
	)
	bars, err := pass.critical()
	require.NoError(t, err)
	names := map[string]int{}
	for _, s := range pass.rows {
		if bars[s.SpanID] > 0 {
			names[s.OperationName]++
		}
	}
	for _, stage := range []string{spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCDeserialize} {
		assert.GreaterOrEqual(t, names[stage], 49, "%s on the critical path", stage) // of 98 calls; the page leaves out a call that ends as the next begins
	}
	return pass
}

// checkRanks: the rows of a collective show the ranks and their hosts, and the critical path goes through the rank for which all others wait.
func checkRanks(t *testing.T, traces []*pageTrace) *pageTrace {
	t.Helper()
	var collective *pageTrace
	for _, tr := range traces {
		if root := tr.rows[0]; root.tag(spans.AttrNCCLLateRank) == "11" && root.tag(spans.AttrVerdictPrefix+spans.VerdictNCCLLate) == "true" {
			collective = tr
		}
	}
	require.NotNil(t, collective, "no collective in which rank 11 was late")
	ranks := map[string]bool{}
	for _, s := range collective.rows {
		if s.depth == 1 {
			assert.Regexp(t, `\brank \d+ gpu-node-\d+$`, s.OperationName)
			ranks[s.OperationName] = true
		}
	}
	assert.Len(t, ranks, 16)
	first := collective.rows[1]
	assert.Equal(t, "rank 11 gpu-node-1", first.OperationName, "who was late is the first row")
	assert.Equal(t, "true", first.tag(spans.AttrNCCLLast))
	bars, err := collective.critical()
	require.NoError(t, err)
	assert.Positive(t, bars[first.SpanID], "the path goes through the rank that was late")
	names := map[string]int{}
	for _, s := range collective.rows[1:] {
		names[s.OperationName]++
		if s != first && s.parent != first {
			assert.Zero(t, bars[s.SpanID], "%s of %s on the critical path", s.OperationName, s.parent.OperationName)
		}
	}
	assert.Equal(t, 15, names[spans.SpanNCCLWait])
	assert.Equal(t, 16, names[spans.SpanNCCLTransfer])
	assert.Equal(t, 1, names[spans.SpanNCCLLate])
	return collective
}

var (
	rowService = regexp.MustCompile(`(?s)<span class="span-svc-name[^"]*">(.*?)</span><small class="endpoint-name">(.*?)</small>`)
	anyTag     = regexp.MustCompile(`<[^>]*>`)
	pageTitle  = regexp.MustCompile(`(?s)<h1[^>]*class="[^"]*TracePageHeader--title[^"]*"[^>]*>(.*?)</h1>`)
)

// text is the text in a piece of HTML.
func text(piece string) string {
	return strings.Join(strings.Fields(html.UnescapeString(anyTag.ReplaceAllString(strings.ReplaceAll(piece, "SpanBarRow--arrowForwardIcon", ">→<"), " "))), " ")
}

// checkPage opens the page in Chromium and compares its rows with the computed rows.
func (tr *pageTrace) checkPage(t *testing.T, j *jaeger) {
	t.Helper()
	dom := chromium(t, j.ui+"/trace/"+tr.TraceID)
	rows := strings.Split(dom, "span-row")[1:]
	require.GreaterOrEqual(t, len(rows), min(len(tr.rows), 40), "rows of the page")
	bars, err := tr.critical()
	require.NoError(t, err)
	title := pageTitle.FindStringSubmatch(dom)
	require.NotNil(t, title)
	assert.Contains(t, strings.ReplaceAll(text(title[1]), " ", ""), strings.ReplaceAll(tr.title(), " ", "")) // the page breaks the title at its points
	type row struct {
		label string
		red   bool
	}
	var want, got []row
	path, drawn := map[string]int{}, map[string]int{} // bars by label
	red, black := 0, 0
	for i, piece := range rows {
		m := rowService.FindStringSubmatch(piece)
		require.NotNil(t, m, "row %d", i)
		s := tr.rows[i]
		want = append(want, row{s.label(), s.red()})
		got = append(got, row{strings.ReplaceAll(text(m[1])+" "+text(m[2]), "> →", "→"), strings.Contains(piece, "SpanBarRow--errorIcon")})
		if n := bars[s.SpanID]; n > 0 {
			path[s.label()] += n
		}
		if n := strings.Count(piece, "SpanBar--criticalPath"); n > 0 {
			drawn[got[i].label] += n
		}
		if got[i].red {
			red++
		}
		black += bars[s.SpanID]
	}
	if tr.tied() { // in any order
		require.Len(t, rows, len(tr.rows), "rows of the page")
		assert.ElementsMatch(t, want, got)
		assert.NotEmpty(t, drawn, "bars of the critical path")
	} else {
		assert.Equal(t, want, got)
		assert.Equal(t, path, drawn, "bars of the critical path")
	}
	assert.Positive(t, black, "bars of the critical path")
	t.Logf("%d rows, %d red, %d bars of the critical path", len(rows), red, black)
}

// chromium returns a page's elements after its scripts have run, in a window with room for a hundred rows.
func chromium(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t, "CHROMIUM_BIN", "chromium", "apt-get install chromium"), "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--window-size=1600,3000", "--virtual-time-budget=20000", "--dump-dom", address)
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

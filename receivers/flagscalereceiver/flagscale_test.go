package flagscalereceiver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver/internal/metadatatest"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
	"github.com/trainbridge/trainbridge/spans"
)

func init() { filereceivertest.Written = time.Date(2026, 4, 20, 12, 0, 0, 0, time.UTC) }

func config(globs ...string) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Include, cfg.RunID, cfg.Timezone = globs, "run", "Asia/Shanghai"
	return cfg
}

// read reads files and checks the accounts.
func read(t *testing.T, cfg *Config) *filereceivertest.Result {
	t.Helper()
	return filereceivertest.Read(t, receivertest.NewNopSettings(metadata.Type), cfg, newParts)
}

// fixture copies a directory of testdata.
func fixture(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join("testdata", name, "*"))
	require.NoError(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		filereceivertest.Put(t, dir, filepath.Base(f), string(b))
	}
	return dir
}

var fixtures = []string{"merged", "douzi", "json_only", "ids", "restart", "realtime", "console", "megatron"}

func TestGolden(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			read(t, config(fixture(t, name)+"/*")).Golden(t, filepath.Join("testdata", name))
		})
	}
}

// Lines without a record are in the accounts, by reason.
func TestAccounts(t *testing.T) {
	for name, want := range map[string]struct {
		records, duplicates int64
		ignored, rejected   map[string]int64
	}{
		"merged":    {16, 0, map[string]int64{"rule": 6, "session": 4, "breakdown_title": 3, "realtime_copy": 3}, map[string]int64{}},
		"douzi":     {3, 0, map[string]int64{"rule": 5, "session": 5, "empty": 1}, map[string]int64{}},
		"json_only": {1, 0, map[string]int64{}, map[string]int64{}},
		"ids":       {1, 0, map[string]int64{}, map[string]int64{}},
		"restart":   {5, 0, map[string]int64{"rule": 9, "session": 6}, map[string]int64{}},
		"realtime":  {2, 0, map[string]int64{"event": 1}, map[string]int64{"row_cut_short": 1, "bad_step": 1, "too_many_columns": 1}},
		"console":   {7, 2, map[string]int64{"breakdown_title": 2, "duplicate": 2, "not_flagscale": 2, "session": 2}, map[string]int64{}},
		"megatron":  {9, 0, map[string]int64{"arguments": 21, "event": 1, "not_flagscale": 1, "rule": 2, "times_title": 2}, map[string]int64{"no_fields": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tel := componenttest.NewTelemetry()
			defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
			res := filereceivertest.Read(t, metadatatest.NewSettings(tel), config(fixture(t, name)+"/*"), newParts)
			assert.Equal(t, want.records, res.Counts.Records)
			duplicates := int64(0)
			if m, err := tel.GetMetric("otelcol_trainbridge.flagscale.duplicates"); err == nil { // absent before the first duplicate
				duplicates = m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
			}
			assert.Equal(t, want.duplicates, duplicates)
			assert.Equal(t, want.ignored, res.Counts.Ignored)
			assert.Equal(t, want.rejected, res.Counts.Rejected)
		})
	}
}

// ids of the steps by iteration.
func ids(t *testing.T, r *filereceivertest.Result) map[int64]pcommon.SpanID {
	t.Helper()
	out := map[int64]pcommon.SpanID{}
	for _, s := range r.All(spans.SpanStep) {
		n, ok := s.Attributes().Get(spans.AttrIteration)
		require.True(t, ok)
		require.NotContains(t, out, n.Int(), "one span per iteration")
		assert.Equal(t, spans.StepTraceID("run", n.Int()), s.TraceID())
		out[n.Int()] = s.SpanID()
	}
	return out
}

// The same rows stand in three files. Each row is one step, and the same step whichever files are read.
func TestOneStepPerRow(t *testing.T) {
	dir := fixture(t, "merged")
	want := ids(t, read(t, config(dir+"/perf_metrics_*")))
	require.Len(t, want, 3)
	for name, c := range map[string]struct {
		globs, exclude []string
		summaries      int
	}{
		"all": {[]string{dir + "/*"}, nil, 1},
		"one by one": {[]string{
			dir + "/perf_realtime.log", dir + "/perf_summary_20260410_080000.json", dir + "/perf_metrics_20260410_080000.log",
		}, nil, 1},
		"everything below":           {[]string{filepath.Dir(dir) + "/**"}, nil, 1},
		"realtime":                   {[]string{dir + "/*.log"}, []string{dir + "/perf_metrics_*"}, 0},
		"realtime and summary":       {[]string{dir + "/*"}, []string{dir + "/perf_metrics_*"}, 1},
		"summary":                    {[]string{dir + "/perf_summary_*.json"}, nil, 1},
		"summary by another glob":    {[]string{dir + "/*.json"}, nil, 1},
		"logs without the summary":   {[]string{dir + "/*.log"}, nil, 0},
		"a glob with alternatives":   {[]string{dir + "/perf_{metrics,summary}_*"}, nil, 1},
		"a directory that is a glob": {[]string{filepath.Dir(dir) + "/*/perf_*"}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(c.globs...)
			cfg.Exclude = c.exclude
			res := read(t, cfg)
			assert.Equal(t, want, ids(t, res))
			assert.Len(t, res.All(spans.SpanSummary), c.summaries)
			assert.Empty(t, res.Counts.Rejected)
		})
	}
}

// The rows come from the summary when the table of its session is gone, or is not read.
func TestSummaryWithoutItsTable(t *testing.T) {
	dir := fixture(t, "merged")
	require.NoError(t, os.Remove(dir+"/perf_metrics_20260410_080000.log"))
	require.NoError(t, os.Remove(dir+"/perf_realtime.log"))
	res := read(t, config(dir+"/*"))
	assert.Len(t, ids(t, res), 3)
	peak, ok := res.All(spans.SpanStep)[0].Attributes().Get(spans.AttrMemoryPeak)
	require.True(t, ok)
	assert.InDelta(t, 61.0*(1<<30), peak.Double(), 0)
	cfg := config()
	cfg.Include, cfg.Document = nil, []string{dir + "/*.json"}
	assert.Len(t, ids(t, read(t, cfg)), 3)
}

func TestBrokenSummary(t *testing.T) {
	dir := t.TempDir()
	filereceivertest.Put(t, dir, "perf_summary_20260410_080000.json", `{"session_info": {"start_time": "2026`)
	res := read(t, config(dir+"/*"))
	assert.Equal(t, map[string]int64{"bad_summary": 1}, res.Counts.Rejected)
	assert.Zero(t, res.Traces.SpanCount())
}

func TestTimezone(t *testing.T) {
	row := "2026-03-29 01:59:50  10       74.83        598.66     6.6          13442        4875.4     52.31     \n2026-03-29 03:00:40  20       74.83        598.66     6.6          13442        4875.4     52.31     \n"
	for zone, want := range map[string][2]string{
		"Asia/Shanghai": {"2026-03-28T17:59:50Z", "2026-03-28T19:00:40Z"},
		"Europe/Berlin": {"2026-03-29T00:59:50Z", "2026-03-29T01:00:40Z"}, // the clock was set on in between
		"UTC":           {"2026-03-29T01:59:50Z", "2026-03-29T03:00:40Z"},
	} {
		cfg := config(filereceivertest.Put(t, t.TempDir(), "perf_realtime.log", row))
		cfg.Timezone = zone
		got := read(t, cfg).All(spans.SpanStep)
		require.Len(t, got, 2)
		for i := range got {
			assert.Equal(t, want[i], got[i].EndTimestamp().AsTime().Format(time.RFC3339), zone)
		}
	}
}

func TestConfig(t *testing.T) {
	require.NoError(t, config("/logs/*").Validate())
	require.ErrorContains(t, createDefaultConfig().(*Config).Validate(), "'include'")
	cfg := config("/logs/*")
	cfg.Timezone = "Mars/Olympus"
	require.ErrorContains(t, cfg.Validate(), "'timezone'")
	cfg.StartAt = "middle"
	err := cfg.Validate()
	require.ErrorContains(t, err, "'timezone'")
	require.ErrorContains(t, err, "'start_at'")
	_, err = newParts(&filereceiver.Receiver{}, cfg)
	require.ErrorContains(t, err, "'timezone'")
}

// Summaries are documents wherever the globs match, so that `include: [dir/*]` is enough.
func TestDocuments(t *testing.T) {
	files := []string{"/x/perf_summary_20260612_103000.json", "/x/perf_monitor/perf_summary_20260101_000000.json", "perf_summary_20260101_000000.json", "/x/perf_metrics_20260612_103000.log", "/x/a.json", "/x/perf_summary_20260612_103000.log"}
	for include, want := range map[string][]int{
		"/x/perf_monitor/*":                    {1},
		"/x/**":                                {0, 1},
		"/x/**/*":                              {0, 1},
		"/x/*.json":                            {0},
		"perf_*":                               {2},
		"/x/perf_summary_202606*.json":         {0},
		"/x/perf_summary_20260612_103000.json": {0},
		"/x/*.log":                             nil,
		"/x/perf_metrics_*":                    nil,
		"/x/{a/b,perf_monitor/*}":              {1},
	} {
		c := config(include)
		var got []int
		for i, path := range files {
			if c.Includes(path) && isSummary(path) {
				got = append(got, i)
			}
		}
		assert.Equal(t, want, got, include)
	}
}

// lines is a step.Out that keeps texts.
type lines struct {
	rec    record.Record
	prefix line.Prefix
	got    []string
}

func (l *lines) Record() *record.Record   { l.rec.Reset(); return &l.rec }
func (l *lines) Emit(rec *record.Record)  { l.got = append(l.got, recordtest.Show(rec)) }
func (l *lines) Model(m *spans.Model)     { l.got = append(l.got, fmt.Sprintf("%+v", *m)) }
func (l *lines) Prefix() *line.Prefix     { return &l.prefix }
func (l *lines) Restarted()               { l.got = append(l.got, "restarted") }
func (*lines) Retold()                    {}
func (l *lines) give(p *parser, s string) { p.Line([]byte(s), l) }

// A restart of the collector between any two lines changes no record.
func TestSaveRestore(t *testing.T) {
	for _, name := range []string{"megatron/host_0_localhost.output", "merged/perf_metrics_20260410_080000.log", "restart/perf_metrics_20260413_100000.log"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		var want, got lines
		p := newParser("", nil)
		var peeler line.Peeler
		for text := range strings.Lines(string(b)) {
			text = string(peeler.Peel([]byte(strings.TrimSuffix(text, "\n")), &got.prefix))
			want.prefix = got.prefix
			want.give(p, text)
		}
		require.NotEmpty(t, want.got)
		var state []byte
		for text := range strings.Lines(string(b)) {
			q := newParser("", nil)
			if state != nil {
				q.Restore(state)
			}
			text = string(peeler.Peel([]byte(strings.TrimSuffix(text, "\n")), &got.prefix))
			got.give(q, text)
			state = q.Save()
		}
		assert.Equal(t, want.got, got.got)
	}
	p := newParser("", nil)
	p.Restore([]byte("no json"))
	assert.Nil(t, p.Save())
}

// The sample logs, where available: nothing is rejected, and every row is one step.
func TestSamples(t *testing.T) {
	for name, want := range map[string]struct {
		glob               string
		steps, evaluations int
	}{
		"first writer":  {"flagscale_perf_monitor/generated_douzi/*", 6, 0},
		"merged writer": {"flagscale_perf_monitor/generated_merged_pr1216/*", 6, 0},
		"Megatron":      {"megatron_flagscale_stdout/*.log", 6, 1},
	} {
		glob := filepath.Join("../../../shared/logs", want.glob)
		if files, err := filepath.Glob(glob); err != nil || len(files) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			glob, err := filepath.Abs(glob)
			require.NoError(t, err)
			res := read(t, config(glob))
			assert.Empty(t, res.Counts.Rejected)
			assert.Len(t, res.All(spans.SpanStep), want.steps)
			assert.Len(t, res.All(spans.SpanEvaluation), want.evaluations)
			for _, s := range res.All(spans.SpanStep) {
				assert.Greater(t, s.EndTimestamp(), s.StartTimestamp())
			}
			for _, s := range res.All(spans.SpanSummary) {
				for k, v := range s.Attributes().All() {
					if strings.HasSuffix(k, ".disagreement") {
						assert.Zero(t, v.Double(), k)
					}
				}
			}
		})
	}
}

// State saved by an older version, with the members of the table's state beside megatron, is still read.
func TestRestoreUnnamed(t *testing.T) {
	old := []byte(`{"copied":true,"table":"` + base64.StdEncoding.EncodeToString([]byte(`{"Block":1,"Iteration":7}`)) + `","megatron":"` +
		base64.StdEncoding.EncodeToString([]byte(`{"Open":true}`)) + `"}`)
	p := newParser("", nil)
	p.Restore(old)
	assert.True(t, p.readers[0].(*tableReader).copied)
	var states map[string][]byte
	require.NoError(t, json.Unmarshal(p.Save(), &states))
	assert.Len(t, states, 2)
	q := newParser("", nil)
	q.Restore(p.Save())
	assert.Equal(t, p.Save(), q.Save())
}

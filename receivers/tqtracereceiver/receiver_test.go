package tqtracereceiver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// bench holds a receiver read with tail.ReadAll, and what came out of it.
type bench struct {
	traces  consumertest.TracesSink
	metrics consumertest.MetricsSink
	counts  tail.Counts
}

var observed = time.Date(2026, 2, 12, 8, 0, 0, 0, time.UTC)

func makeParts(r *filereceiver.Receiver, cfg component.Config) (filereceiver.Parts, error) {
	_, parts, err := newReceiver(r, cfg)
	return parts, err
}

// read reads files whole and checks the accounts.
func read(t *testing.T, change func(*Config), paths ...string) *bench {
	t.Helper()
	return readWith(t, receivertest.NewNopSettings(metadata.Type), change, paths...)
}

func readWith(t *testing.T, set receiver.Settings, change func(*Config), paths ...string) *bench {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Include = paths
	cfg.RunID = "run"
	cfg.Timezone = "UTC"
	if change != nil {
		change(cfg)
	}
	b := &bench{}
	var err error
	b.counts, err = filereceiver.ReadAll(context.Background(), set, cfg, makeParts, func() time.Time { return observed }, &b.traces, &b.metrics)
	require.NoError(t, err)
	checkAccounts(t, b.counts)
	return b
}

func checkAccounts(t *testing.T, c tail.Counts) {
	t.Helper()
	sum := c.Records
	for _, n := range c.Ignored {
		sum += n
	}
	for _, n := range c.Rejected {
		sum += n
	}
	assert.Equal(t, c.Lines, sum, "lines = records + ignored + rejected: %+v", c)
	assert.Equal(t, c.Records, c.Sent+c.Refused+c.Pending, "records = sent + refused + pending: %+v", c)
	assert.Zero(t, c.Pending)
}

// write makes a log of lines; the file's time is fixed, so that what depends on it can be compared.
func write(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	require.NoError(t, os.Chtimes(path, observed, observed))
	return path
}

// all returns every span with its resource.
func (b *bench) all() []spanOf {
	var out []spanOf
	for _, td := range b.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					out = append(out, spanOf{s, rs.Resource().Attributes()})
				}
			}
		}
	}
	return out
}

type spanOf struct {
	ptrace.Span
	res pcommon.Map
}

func (b *bench) named(name string) []spanOf {
	var out []spanOf
	for _, s := range b.all() {
		if s.Name() == name {
			out = append(out, s)
		}
	}
	return out
}

// waterfall draws the spans as text: start relative to the first, duration, name, attributes.
func (b *bench) waterfall() string {
	all := b.all()
	sort.SliceStable(all, func(i, j int) bool { return all[i].StartTimestamp() < all[j].StartTimestamp() })
	children := map[pcommon.SpanID][]spanOf{}
	ids := map[pcommon.SpanID]bool{}
	for _, s := range all {
		ids[s.SpanID()] = true
	}
	var roots []spanOf
	for _, s := range all {
		if s.Name() == spans.SpanRun {
			continue
		}
		if s.ParentSpanID().IsEmpty() {
			roots = append(roots, s)
		} else {
			children[s.ParentSpanID()] = append(children[s.ParentSpanID()], s)
		}
	}
	var w bytes.Buffer
	var draw func(s spanOf, depth int)
	draw = func(s spanOf, depth int) {
		fmt.Fprintf(&w, "%s%s %s +%.6f", strings.Repeat("  ", depth), s.Name(), s.StartTimestamp().AsTime().Format("15:04:05.000000"), s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds())
		var attrs []string
		for k, v := range s.Attributes().All() {
			if k == spans.AttrTQStage || k == spans.AttrTQFunction {
				continue
			}
			attrs = append(attrs, strings.TrimPrefix(k, "tq.")+"="+v.AsString())
		}
		if depth == 0 {
			if v, ok := s.res.Get(spans.AttrHostName); ok {
				attrs = append(attrs, "host="+v.Str())
			}
		}
		sort.Strings(attrs)
		fmt.Fprintf(&w, " %s\n", strings.Join(attrs, " "))
		for _, c := range children[s.SpanID()] {
			draw(c, depth+1)
		}
	}
	for _, s := range roots {
		draw(s, 0)
	}
	return w.String()
}

// merged is everything in one ptrace.Traces, one ResourceSpans per resource; the path of the log is cut to its name.
func (b *bench) merged() ptrace.Traces {
	out := ptrace.NewTraces()
	for _, td := range b.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			var to ptrace.ResourceSpans
			found := false
			for _, o := range out.ResourceSpans().All() {
				if o.Resource().Attributes().Equal(rs.Resource().Attributes()) {
					to, found = o, true
				}
			}
			if !found {
				to = out.ResourceSpans().AppendEmpty()
				rs.CopyTo(to)
			} else {
				for _, s := range rs.ScopeSpans().At(0).Spans().All() {
					s.CopyTo(to.ScopeSpans().At(0).Spans().AppendEmpty())
				}
			}
		}
	}
	for _, rs := range out.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			if v, ok := s.Attributes().Get(spans.AttrLogFile); ok {
				v.SetStr(filepath.Base(v.Str()))
			}
		}
	}
	return out
}

// fixture copies one to a place with a fixed modification time.
func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.NoError(t, os.Chtimes(path, observed, observed))
	return path
}

var fixtures = []string{"coroutines", "pids", "ray", "dedup", "ops", "seed", "seed_stamped", "neighbours", "broken"}

func TestGolden(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			b := read(t, nil, fixture(t, name+".log"))
			if got := b.merged(); got.SpanCount() > 0 {
				want, err := golden.ReadTraces(filepath.Join("testdata", name+".traces.yaml"))
				require.NoError(t, err)
				assert.NoError(t, ptracetest.CompareTraces(want, got, ptracetest.IgnoreResourceSpansOrder(), ptracetest.IgnoreScopeSpansOrder(), ptracetest.IgnoreSpansOrder()))
			}
			if all := b.metrics.AllMetrics(); len(all) > 0 {
				want, err := golden.ReadMetrics(filepath.Join("testdata", name+".metrics.yaml"))
				require.NoError(t, err)
				assert.NoError(t, pmetrictest.CompareMetrics(want, mergedMetrics(all),
					pmetrictest.IgnoreResourceMetricsOrder(), pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
			}
			want, err := os.ReadFile(filepath.Join("testdata", name+".waterfall.txt"))
			require.NoError(t, err)
			assert.Equal(t, string(want), b.waterfall())
		})
	}
}

func mergedMetrics(all []pmetric.Metrics) pmetric.Metrics {
	out := pmetric.NewMetrics()
	for _, md := range all {
		for _, rm := range md.ResourceMetrics().All() {
			rm.CopyTo(out.ResourceMetrics().AppendEmpty())
		}
	}
	return out
}

// Reading the same bytes again gives the same ids, whatever else there was; another run gives others.
func TestIDsAreDeterministic(t *testing.T) {
	ids := func(run string) map[string]int {
		got := map[string]int{}
		for _, name := range fixtures {
			b := read(t, func(c *Config) { c.RunID = run }, fixture(t, name+".log"))
			for _, s := range b.all() {
				got[s.TraceID().String()+s.SpanID().String()]++
				if s.TraceID().IsEmpty() || s.SpanID().IsEmpty() {
					t.Error("empty id")
				}
			}
		}
		return got
	}
	first := ids("a")
	assert.Equal(t, first, ids("a"))
	for id := range ids("b") {
		// Only a UUID is the same in every run.
		if _, ok := first[id]; ok && !strings.HasPrefix(id, "3f0c9a527d614e0b9f6e2b1f7f0c8d11") {
			t.Errorf("%s in both runs", id)
		}
	}
}

// Every parent exists, in the same trace; every trace of one id text holds all its functions.
func TestNoOrphans(t *testing.T) {
	for _, name := range fixtures {
		b := read(t, nil, fixture(t, name+".log"))
		known := map[pcommon.SpanID]pcommon.TraceID{}
		for _, s := range b.all() {
			if old, ok := known[s.SpanID()]; ok {
				t.Errorf("%s: span id %s twice (%s)", name, s.SpanID(), old)
			}
			known[s.SpanID()] = s.TraceID()
			_, ok := s.Attributes().Get(spans.AttrTimeSource)
			assert.True(t, ok)
			assert.LessOrEqual(t, s.StartTimestamp(), s.EndTimestamp())
		}
		for _, s := range b.all() {
			if p := s.ParentSpanID(); !p.IsEmpty() {
				assert.Equal(t, s.TraceID(), known[p], "%s: parent of %s", name, s.Name())
			}
		}
	}
	b := read(t, nil, fixture(t, "pids.log"))
	shared := 0
	for _, s := range b.named("generate_sequences") {
		if s.TraceID().String() == "3f0c9a527d614e0b9f6e2b1f7f0c8d11" {
			shared++
			assert.True(t, s.ParentSpanID().IsEmpty())
			require.Equal(t, 1, s.Links().Len())
			trace, id := spans.RunIDs("run")
			assert.Equal(t, trace, s.Links().At(0).TraceID())
			assert.Equal(t, id, s.Links().At(0).SpanID())
		}
	}
	assert.Equal(t, 2, shared)
	require.Len(t, b.named(spans.SpanRun), 1)
}

func TestAccounts(t *testing.T) {
	b := read(t, nil, fixture(t, "broken.log"))
	assert.Equal(t, map[string]int64{"no_stage": 1, "unknown_stage": 1, "bad_duration": 1, "no_duration": 1, "bad_timestamp": 1, "no_func": 1, "unknown_op": 1, "unknown_tag": 1}, b.counts.Rejected)
	assert.Equal(t, map[string]int64{"not_tq": 1, "empty": 1}, b.counts.Ignored)
	b = read(t, nil, fixture(t, "neighbours.log"))
	assert.Equal(t, map[string]int64{"bad_cost_time": 1, "bad_performance": 1}, b.counts.Rejected)
	assert.Equal(t, map[string]int64{"not_tq": 1, "task_getting": 1, "task_putting": 1, "tensordict_keys": 1}, b.counts.Ignored)
	assert.Equal(t, int64(10), b.counts.Records)
}

// The shared sample logs, where this checkout has them: the expected numbers are counted from the text.
func TestSampleLogs(t *testing.T) {
	paths, err := filepath.Glob("../../../shared/logs/verl_tq/*.log")
	require.NoError(t, err)
	if len(paths) == 0 {
		t.Log("no sample logs beside this checkout")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			b := read(t, nil, path)
			assert.Empty(t, b.counts.Rejected)
			count := func(what string) int { return strings.Count(string(text), what) }
			functions := 0
			for _, s := range b.all() {
				if v, ok := s.Attributes().Get(spans.AttrTQStage); ok && v.Str() == spans.StageFunction {
					functions++
				}
			}
			dedup := strings.Contains(path, "dedup")
			if !dedup { // there, START lines are lost
				assert.Equal(t, count("stage=FUNCTION_START"), functions)
				assert.Len(t, b.named(spans.SpanTQGet), count("stage=GET_END"))
				assert.Len(t, b.named(spans.SpanTQPut), count("stage=PUT_END"))
				assert.Len(t, b.named(spans.SpanTQCompute), count("stage=COMPUTE_END"))
				assert.Len(t, b.named(spans.SpanTQClientGet), count("stage=TQ_CLIENT_GET_END")+count("op=TQ_GET | func=compute_log_prob | stage=END"))
				assert.Len(t, b.named(spans.SpanTQClientPut), count("stage=TQ_CLIENT_PUT_END")+strings.Count(string(text), "op=TQ_PUT")/2)
			} else {
				assert.Equal(t, 5, functions)
			}
			// Every reported ratio agrees with the spans to the two digits printed.
			kids := map[pcommon.SpanID]map[string]float64{}
			for _, s := range b.all() {
				if kids[s.ParentSpanID()] == nil {
					kids[s.ParentSpanID()] = map[string]float64{}
				}
				kids[s.ParentSpanID()][s.Name()] += float64(s.EndTimestamp() - s.StartTimestamp())
			}
			for _, s := range b.all() {
				if _, bad := s.Attributes().Get(spans.AttrIncomplete); bad {
					continue
				}
				for name, attr := range map[string]string{spans.SpanTQGet: spans.AttrTQGetUtilizationReported, spans.SpanTQCompute: spans.AttrTQComputeUtilizationReported, spans.SpanTQPut: spans.AttrTQPutUtilizationReported} {
					if v, ok := s.Attributes().Get(attr); ok {
						assert.InDelta(t, v.Double(), kids[s.SpanID()][name]/float64(s.EndTimestamp()-s.StartTimestamp()), 0.00005001, "%s of %s", name, s.Name())
					}
				}
			}
		})
	}
}

package tqtracereceiver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

var observed = time.Date(2026, 2, 12, 8, 0, 0, 0, time.UTC)

func init() { filereceivertest.Written = observed }

func makeParts(r *filereceiver.Receiver, cfg component.Config) (filereceiver.Parts, error) {
	_, parts, err := newReceiver(r, cfg)
	return parts, err
}

// read reads files whole and checks the accounts.
func read(t *testing.T, change func(*Config), paths ...string) *filereceivertest.Result {
	t.Helper()
	return readWith(t, receivertest.NewNopSettings(metadata.Type), change, paths...)
}

func readWith(t *testing.T, set receiver.Settings, change func(*Config), paths ...string) *filereceivertest.Result {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Include, cfg.RunID, cfg.Timezone = paths, "run", "UTC"
	if change != nil {
		change(cfg)
	}
	return filereceivertest.Read(t, set, cfg, makeParts)
}

var write, fixture = filereceivertest.Write, filereceivertest.Fixture

// resource returns the resource of a span.
func resource(r *filereceivertest.Result, of ptrace.Span) pcommon.Map {
	for _, td := range r.Traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if s.SpanID() == of.SpanID() && s.TraceID() == of.TraceID() {
					return rs.Resource().Attributes()
				}
			}
		}
	}
	return pcommon.NewMap()
}

// waterfall draws the spans as text: start relative to the first, duration, name, attributes.
func waterfall(r *filereceivertest.Result) string {
	all := r.All("")
	sort.SliceStable(all, func(i, j int) bool { return all[i].StartTimestamp() < all[j].StartTimestamp() })
	children := map[pcommon.SpanID][]ptrace.Span{}
	ids := map[pcommon.SpanID]bool{}
	for _, s := range all {
		ids[s.SpanID()] = true
	}
	var roots []ptrace.Span
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
	var draw func(s ptrace.Span, depth int)
	draw = func(s ptrace.Span, depth int) {
		fmt.Fprintf(
			&w, "%s%s %s +%.6f", strings.Repeat("  ", depth), s.Name(), s.StartTimestamp().AsTime().Format("15:04:05.000000"),
			s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds(),
		)
		var attrs []string
		for k, v := range s.Attributes().All() {
			if k == spans.AttrTQStage || k == spans.AttrTQFunction {
				continue
			}
			attrs = append(attrs, strings.TrimPrefix(k, "tq.")+"="+v.AsString())
		}
		if depth == 0 {
			if v, ok := resource(r, s).Get(spans.AttrHostName); ok {
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

var fixtures = []string{"coroutines", "pids", "ray", "dedup", "ops", "seed", "seed_stamped", "neighbours", "broken"}

func TestGolden(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			b := read(t, nil, fixture(t, name+".log"))
			base := filepath.Join("testdata", name)
			filereceivertest.GoldenText(t, base+".waterfall.txt", waterfall(b))
			b.Golden(t, base)
		})
	}
}

// Reading the same bytes again gives the same ids, whatever else was read; another run gives other ids.
func TestIDsAreDeterministic(t *testing.T) {
	ids := func(run string) map[string]int {
		got := map[string]int{}
		for _, name := range fixtures {
			b := read(t, func(c *Config) { c.RunID = run }, fixture(t, name+".log"))
			for _, s := range b.All("") {
				if s.Name() == spans.SpanRun { // the id follows from the folder too, a new one each time
					continue
				}
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

// TestDied: every parent exists, in the same trace; every trace of one id text holds all its functions. A call with a death in compute must not look like a
// healthy bar of 273 ms; a finished call without one of its lines did not die.
func TestDied(t *testing.T) {
	const start = `INFO:2026-03-05 09:30:00,000:[TQ-TRACE] trace_id=N/A | func=generate_sequences | pid=9 | stage=FUNCTION_START | timestamp=100.000000
INFO:2026-03-05 09:30:00,000:[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=GET_START | batch_size=4 | timestamp=100.000020
INFO:2026-03-05 09:30:00,273:[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=GET_END | duration=0.273000s | timestamp=100.273020
INFO:2026-03-05 09:30:00,273:[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=COMPUTE_START | timestamp=100.273030
`
	const end = `INFO:2026-03-05 09:30:01,273:[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=PUT_START | timestamp=101.273040
INFO:2026-03-05 09:30:01,373:[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=PUT_END | duration=0.100000s | timestamp=101.373040
INFO:2026-03-05 09:30:01,373:[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=FUNCTION_END | total_duration=1.373040s | get_ratio=19.88% | compute_ratio=72.83% | put_ratio=7.28% | timestamp=101.373040
`
	const died = "COMPUTE began and never ended: the process died in it, or its line was lost"
	for name, tt := range map[string]struct {
		log, reason, message string
		code                 ptrace.StatusCode
	}{
		"in compute":              {start, "no_compute_end", died, ptrace.StatusCodeError},
		"not: COMPUTE_END lost":   {start + end, "stage_missing", "", ptrace.StatusCodeUnset},
		"not: all of GET is lost": {start[:strings.Index(start, "\n")+1] + end, "stage_missing", "", ptrace.StatusCodeUnset},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, nil, write(t, "worker-9.err", tt.log)).All("generate_sequences")
			require.Len(t, f, 1)
			assert.Equal(t, tt.code, f[0].Status().Code())
			assert.Equal(t, tt.message, f[0].Status().Message())
			assert.Equal(t, tt.reason, spans.AttrText(f[0].Attributes(), spans.AttrIncompleteReason))
		})
	}
}

func TestNoOrphans(t *testing.T) {
	for _, name := range fixtures {
		b := read(t, nil, fixture(t, name+".log"))
		known := map[pcommon.SpanID]pcommon.TraceID{}
		for _, s := range b.All("") {
			if old, ok := known[s.SpanID()]; ok {
				t.Errorf("%s: span id %s twice (%s)", name, s.SpanID(), old)
			}
			known[s.SpanID()] = s.TraceID()
			_, ok := s.Attributes().Get(spans.AttrTimeSource)
			assert.True(t, ok)
			assert.LessOrEqual(t, s.StartTimestamp(), s.EndTimestamp())
		}
		for _, s := range b.All("") {
			if p := s.ParentSpanID(); !p.IsEmpty() {
				assert.Equal(t, s.TraceID(), known[p], "%s: parent of %s", name, s.Name())
			}
		}
	}
	b := read(t, func(c *Config) { c.SpanLinks = true }, fixture(t, "pids.log"))
	shared := 0
	for _, s := range b.All("generate_sequences") {
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
	require.Len(t, b.All(spans.SpanRun), 1)
}

func TestAccounts(t *testing.T) {
	b := read(t, nil, fixture(t, "broken.log"))
	assert.Equal(
		t,
		map[string]int64{"no_stage": 1, "unknown_stage": 1, "bad_duration": 1, "no_duration": 1, "bad_timestamp": 1, "no_func": 1, "unknown_op": 1, "unknown_tag": 1},
		b.Counts.Rejected,
	)
	assert.Equal(t, map[string]int64{"not_tq": 1, "empty": 1}, b.Counts.Ignored)
	b = read(t, nil, fixture(t, "neighbours.log"))
	assert.Equal(t, map[string]int64{"bad_cost_time": 1, "bad_performance": 1}, b.Counts.Rejected)
	assert.Equal(t, map[string]int64{"not_tq": 1, "task_getting": 1, "task_putting": 1, "tensordict_keys": 1}, b.Counts.Ignored)
	assert.Equal(t, int64(10), b.Counts.Records)
}

// The wrapping of a line does not change its record.
func TestWrapped(t *testing.T) {
	const record = "INFO:2026-02-11 16:40:00,120:[TQ-TRACE] trace_id=a1b2c3d4 | func=get_data | stage=%s | duration=0.5s | timestamp=%d.5"
	log := func(format string) string {
		var b strings.Builder
		for i, stage := range []string{"FUNCTION_START", "GET_START", "GET_END", "FUNCTION_END"} {
			b.WriteString(strings.ReplaceAll(format, "LINE", fmt.Sprintf(record, stage, 1000+i)) + "\n")
		}
		return b.String()
	}
	records := func(format string) (out []string) {
		r := read(t, nil, write(t, "x.log", log(format)))
		assert.Equal(t, int64(4), r.Counts.Records, format)
		for _, s := range r.All("") {
			out = append(out, s.Name(), s.TraceID().String(), s.StartTimestamp().String(), s.EndTimestamp().String())
		}
		return out
	}
	bare := records("LINE")
	for _, format := range []string{
		`{"log":"LINE\n","stream":"stdout","time":"2026-02-11T16:40:01.7Z"}`, "[1,3]<stdout>: LINE", "[pod/train-0/pytorch] LINE", "trainer-1  | LINE",
		`{"MESSAGE":"(W pid=1) LINE","__REALTIME_TIMESTAMP":"1770828001000000","__CURSOR":"s"}`, `2026-02-11T16:40:01+0000 gpu-01 python3[7]: LINE`,
	} {
		assert.Equal(t, bare, records(format), format)
	}
}

// The shared sample logs, where available: the expected numbers are counted from the text.
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
			assert.Empty(t, b.Counts.Rejected)
			count := func(what string) int { return strings.Count(string(text), what) }
			functions := 0
			for _, s := range b.All("") {
				if spans.AttrText(s.Attributes(), spans.AttrKind) == spans.KindFunction {
					functions++
				}
			}
			dedup := strings.Contains(path, "dedup")
			if !dedup { // without START lines
				assert.Equal(t, count("stage=FUNCTION_START"), functions)
				assert.Len(t, b.All(spans.SpanTQGet), count("stage=GET_END"))
				assert.Len(t, b.All(spans.SpanTQPut), count("stage=PUT_END"))
				assert.Len(t, b.All(spans.SpanTQCompute), count("stage=COMPUTE_END"))
				assert.Len(t, b.All(spans.SpanTQClientGet), count("stage=TQ_CLIENT_GET_END")+count("op=TQ_GET | func=compute_log_prob | stage=END"))
				assert.Len(t, b.All(spans.SpanTQClientPut), count("stage=TQ_CLIENT_PUT_END")+strings.Count(string(text), "op=TQ_PUT")/2)
			} else {
				assert.Equal(t, 5, functions)
			}
			// Every reported ratio agrees with the spans to the two digits printed.
			kids := map[pcommon.SpanID]map[string]float64{}
			for _, s := range b.All("") {
				if kids[s.ParentSpanID()] == nil {
					kids[s.ParentSpanID()] = map[string]float64{}
				}
				kids[s.ParentSpanID()][s.Name()] += float64(s.EndTimestamp() - s.StartTimestamp())
			}
			for _, s := range b.All("") {
				if _, bad := s.Attributes().Get(spans.AttrIncomplete); bad {
					continue
				}
				for name, attr := range map[string]string{
					spans.SpanTQGet: spans.AttrTQGetUtilizationReported, spans.SpanTQCompute: spans.AttrTQComputeUtilizationReported,
					spans.SpanTQPut: spans.AttrTQPutUtilizationReported,
				} {
					if v, ok := s.Attributes().Get(attr); ok {
						assert.InDelta(t, v.Double(), kids[s.SpanID()][name]/float64(s.EndTimestamp()-s.StartTimestamp()), 0.00005001, "%s of %s", name, s.Name())
					}
				}
			}
		})
	}
}

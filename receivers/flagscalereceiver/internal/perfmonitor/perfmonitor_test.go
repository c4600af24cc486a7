package perfmonitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/record/recordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink keeps records as text.
type sink struct {
	rec record.Record
	got []string
}

func (s *sink) Record() *record.Record { s.rec.Reset(); return &s.rec }

func (s *sink) Emit(rec *record.Record) {
	text := strings.TrimPrefix(recordtest.Show(rec), "step median open dedup rank=0 ")
	if rec.RawUnix != nil {
		text += " unix=" + string(rec.RawUnix) + "→" + time.Unix(0, rec.Unix).UTC().Format(time.RFC3339Nano)
	}
	if rec.Start != 0 {
		text += " start=" + time.Unix(0, rec.Start).UTC().Format(time.RFC3339Nano)
	}
	s.got = append(s.got, text)
}

const (
	header = "Timestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    Tokens/s     Time(ms)   Memory(GB)"
	row    = "2026-06-12 10:30:57  10       74.83        598.66     6.6          13442        4875.4     52.31     "
	values = `iteration=10 duration=4.8754(ms) samples/s=6.6 tokens/s=13442 flop/s=5.9866e+14(TFLOP/s) device_flop/s=7.483e+13(TFLOP/s) mem=56167434813.44(GiBy)`
	want   = `stamp="2026-06-12 10:30:57" ` + values
)

// lineTest is a line with the parser's result.
type lineTest struct {
	text    string
	stamped bool
	result  Result
	reason  string
	records []string
}

// readLines reads the lines of each case with one parser. A restart between any two of them changes nothing.
func readLines(t *testing.T, cases map[string][]lineTest) {
	t.Helper()
	for name, lines := range cases {
		t.Run(name, func(t *testing.T) {
			var p, restored Parser
			for _, l := range lines {
				restored = Parser{}
				if state := p.Save(); state != nil {
					restored.Restore(state)
				}
				var out, again sink
				result, reason := p.Line([]byte(l.text), l.stamped, &out)
				assert.Equal(t, l.result, result, l.text)
				assert.Equal(t, l.reason, reason, l.text)
				assert.Equal(t, l.records, out.got, l.text)
				result, reason = restored.Line([]byte(l.text), l.stamped, &again)
				assert.Equal(t, l.result, result, l.text)
				assert.Equal(t, l.reason, reason, l.text)
				assert.Equal(t, out.got, again.got)
			}
		})
	}
}

func TestRows(t *testing.T) {
	rest := strings.TrimPrefix(row, "2026-06-12 10:30:57 ")
	readLines(t, map[string][]lineTest{
		"first writer": {
			{text: strings.Repeat("=", 80), result: Ignored, reason: "rule"},
			{text: "Performance Monitor Session Started: 2026-06-12 10:30:00", result: Session},
			{text: strings.Repeat("=", 80), result: Ignored, reason: "rule"},
			{text: header, result: Session},
			{text: strings.Repeat("-", 80), result: Ignored, reason: "rule"},
			{text: row, result: Records, records: []string{want}},
			{text: "", result: Other},
			{text: "Performance Monitor Session Completed: 2026-06-12 10:34:11", result: Ignored, reason: "session"},
			{text: "Summary saved to: logs/perf_summary_20260612_103000.json", result: Ignored, reason: "session"},
			{text: "Performance monitor initialized. Logging every 10 iterations.", result: Ignored, reason: "session"},
			{text: "[Performance Monitor] Initialized with log interval: 10", result: Ignored, reason: "session"},
		},
		"rules": {
			{text: strings.Repeat("=", 300), result: Ignored, reason: "rule"},
			{text: strings.Repeat("-", 19)},
			{text: strings.Repeat("-", 30) + "=", result: Other},
			{text: "---------------------- arguments ----------------------"},
		},
		"read from the middle":     {{text: row, result: Records, records: []string{want}}},
		"stamp peeled off":         {{text: rest, stamped: true, result: Records, records: []string{values}}, {text: rest}},
		"behind logging's default": {{text: "INFO:FlagScale.perf_monitor:" + row, result: Records, records: []string{want}}},
		"wider than the columns": {{
			text:   "2026-06-12 10:30:57  123456789 1234567890123.00 12345678901.25 123456789012.5 1234567890123456 12345678901.5 1234567890.25",
			result: Records, records: []string{
				`stamp="2026-06-12 10:30:57" iteration=123456789 duration=12345678.9015(ms) samples/s=123456789012.5 tokens/s=1.234567890123e+15 flop/s=1.234567890125e+22(TFLOP/s) device_flop/s=1.234567890123e+24(TFLOP/s) mem=1.325607178329e+18(GiBy)`,
			},
		}},
	})
}

func TestOddRows(t *testing.T) {
	readLines(t, map[string][]lineTest{
		"nothing measured is no zero": {
			{
				text: "2026-06-12 10:30:57  10       0.00         0.00       6.6          0            4875.4     0.00      ", result: Records,
				records: []string{`stamp="2026-06-12 10:30:57" iteration=10 duration=4.8754(ms) samples/s=6.6`},
			},
		},
		"not finite": {{
			text: "2026-06-12 10:30:57  10       nan          inf        -inf         NaN          4875.4     52.31", result: Records,
			records: []string{
				`stamp="2026-06-12 10:30:57" iteration=10 duration=4.8754(ms) samples/s=-Inf tokens/s=NaN flop/s=+Inf(TFLOP/s) device_flop/s=NaN(TFLOP/s) mem=56167434813.44(GiBy)`,
			},
		}},
		"another header": {
			{text: "Timestamp Rank Step Loss Phase Memory(GB)", result: Session},
			{
				text: "2026-06-12 10:30:57  3  10  2.5 warmup 1.5", result: Records,
				records: []string{`stamp="2026-06-12 10:30:57" iteration=10 mem=1610612736(GiBy) extra:Rank=3 extra:Loss=2.5 extra:Phase="warmup"`},
			},
			{text: row, result: Malformed, reason: "too_many_columns"},
			{text: "Performance Monitor Session Started: 2026-06-12 11:00:00", result: Session},
			{text: "Estimated FLOPS Breakdown (Iteration 10):", result: Ignored, reason: "breakdown_title"}, // a state without a header
			{text: row, result: Records, records: []string{want}},
		},
		"a value that is no number is kept": {
			{
				text: "2026-06-12 10:30:57  10  74.83  n/a  6.6  13442  4875.4  52.31", result: Records,
				records: []string{strings.Replace(want, " flop/s=5.9866e+14(TFLOP/s)", "", 1) + ` extra:TFLOPS="n/a"`},
			},
			{
				text: "2026-06-12 10:30:57  10  n/a  598.66  6.6  13442  4875.4  52.31", result: Records,
				records: []string{strings.Replace(want, " device_flop/s=7.483e+13(TFLOP/s)", "", 1) + ` extra:TFLOPS/GPU="n/a"`},
			},
			{text: "2026-06-12 10:30:57  10  n/a  n/a  6.6  13442  4875.4  52.31"},
		},
		"broken rows": {
			{text: "2026-06-12 10:30:57  10       74.83        598.6", result: Malformed, reason: "row_cut_short"},
			{text: row + " 1.0", result: Malformed, reason: "too_many_columns"},
			{text: strings.Replace(row, " 10 ", " x10 ", 1), result: Malformed, reason: "bad_step"},
			{text: "2026-06-12 10:30:57 rank 0 is saving a checkpoint"},
			{text: "2026-06-12 10:30:57"},
			{text: "7 of 9"},
			{text: "2026-06-12 10:30:57 step 10 took 3.5 s on node n17"},
		},
	})
}

func TestBreakdown(t *testing.T) {
	readLines(t, map[string][]lineTest{
		"breakdown": {
			{text: row, result: Records, records: []string{want}},
			{text: "Estimated FLOPS Breakdown (Iteration 10):", result: Ignored, reason: "breakdown_title"},
			{text: "  forward: 972.91 TFLOPS", result: Records, records: []string{"side rank=0 iteration=10 flop_forward=9.7291e+14(TFLOP)"}},
			{text: "  backward: 1945.81 TFLOPS", result: Records, records: []string{"side rank=0 iteration=10 flop_backward=1.94581e+15(TFLOP)"}},
			{text: "  optimizer: 0.00 TFLOPS", result: Records, records: []string{"side rank=0 iteration=10 flop_optimizer=0(TFLOP)"}},
			{text: "  total: 2918.72 TFLOPS", result: Records, records: []string{"side rank=0 iteration=10 flop=2.91872e+15(TFLOP)"}},
			{text: "  embedding: nan TFLOPS", result: Records, records: []string{"side rank=0 iteration=10 extra:breakdown.embedding=NaN"}},
			{text: "loading took: 3 s"},
			{text: "  forward: 972.91 TFLOPS"},
		},
		"breakdown of times": {
			{text: "  Performance Breakdown (Iteration 10):", result: Ignored, reason: "breakdown_title"},
			{text: "    attention           :   120.50 ms", result: Records, records: []string{"side rank=0 iteration=10 stage:attention=0.1205"}},
			{text: "    total: 5.0 TFLOPS"},
		},
		"titles that are none": {
			{text: "Estimated FLOPS Breakdown (Iteration x):"}, {text: "Estimated FLOPS Breakdown (Iteration 10)"}, {text: "  forward: 972.91 TFLOPS"},
		},
	})
}

func TestRestoreOfWhatIsNoState(t *testing.T) {
	var p Parser
	p.Restore([]byte("no json"))
	p.Restore([]byte(`{"header":"no header"}`))
	assert.Nil(t, p.Save())
}

var shanghai = time.FixedZone("CST", 8*3600)

type summaryTest struct {
	text    string
	rows    bool
	records []string
	bad     bool
}

func readSummaries(t *testing.T, cases map[string]summaryTest) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out sink
			s := Summary{Zone: shanghai, Rows: c.rows, Metric: "m", Unit: "1"}
			assert.Equal(t, !c.bad, s.Read([]byte(c.text), &out))
			assert.Equal(t, c.records, out.got)
		})
	}
}

func TestSummary(t *testing.T) {
	readSummaries(t, map[string]summaryTest{
		"rows and statistics": {
			text: `{"session_info": {"start_time": "20260612_103000", "end_time": "2026-06-12T10:34:11.251641+08:00", "total_iterations": 50},
				"final_statistics": {"avg_tflops_per_gpu": 60.0, "min_step_time_ms": 4.0, "peak_memory_gb": 4},
				"iteration_logs": [{"iteration": 1, "timestamp": "2026-06-12 10:30:13", "TFLOPS_per_GPU": 50.0, "peak_memory_GB": 2.5},
					{"iteration": 10, "timestamp": "2026-06-12 10:30:57", "TFLOPS_per_GPU": 75.0, "TFLOPS_total": 600, "samples_per_sec": 6.5, "tokens_per_sec": 13442.5, "step_time_ms": 4875.5, "memory_GB": 1.5, "peak_memory_GB": 2}]}`,
			rows: true,
			records: []string{
				"step median dedup rank=0 iteration=1 device_flop/s=5e+13(TFLOP/s) mem_peak=2684354560(GiBy) unix=2026-06-12 10:30:13→2026-06-12T02:30:13Z",
				"step median dedup rank=0 iteration=10 duration=4.8755(ms) samples/s=6.5 tokens/s=13442.5 flop/s=6e+14(TFLOP/s) device_flop/s=7.5e+13(TFLOP/s) mem=1610612736(GiBy) mem_peak=2147483648(GiBy) unix=2026-06-12 10:30:57→2026-06-12T02:30:57Z",
				"summary dedup rank=0 extra:total_iterations=50 extra:avg_tflops_per_gpu=60 extra:min_step_time_ms=4 extra:peak_memory_gb=4 " +
					"extra:avg_tflops_per_gpu.disagreement=0.2 extra:peak_memory_gb.disagreement=0.6 unix=2026-06-12T10:34:11.251641+08:00→2026-06-12T02:34:11.251641Z start=2026-06-12T02:30:00Z",
			},
		},
		"rows left to the table": {
			text:    `{"iteration_logs": [{"iteration": 1, "tokens_per_sec": 10}, {"tokens_per_sec": 30}], "final_statistics": {"avg_throughput_tokens": 20, "max_tflops_per_gpu": 3}}`,
			records: []string{"summary dedup rank=0 extra:avg_throughput_tokens=20 extra:max_tflops_per_gpu=3 extra:avg_throughput_tokens.disagreement=0"},
		},
		"without a zone": {
			text:    `{"session_info": {"start_time": "20260612_103000", "end_time": "2026-06-12T11:30:00"}}`,
			records: []string{"summary dedup rank=0 unix=2026-06-12T11:30:00→2026-06-12T03:30:00Z start=2026-06-12T02:30:00Z"},
		},
		"the job's zone is in its end": {
			text: `{"session_info": {"start_time": "20260612_103000", "end_time": "2026-06-12T10:34:11-04:00"}, "iteration_logs": [{"iteration": 1, "timestamp": "2026-06-12 10:30:13"}]}`,
			rows: true,
			records: []string{
				"step median dedup rank=0 iteration=1 unix=2026-06-12 10:30:13→2026-06-12T14:30:13Z",
				"summary dedup rank=0 unix=2026-06-12T10:34:11-04:00→2026-06-12T14:34:11Z start=2026-06-12T14:30:00Z",
			},
		},
	})
}

func TestOddSummary(t *testing.T) {
	readSummaries(t, map[string]summaryTest{
		"not JSON by the letter": {
			text:    "\n" + `{"final_statistics": {"min_step_time_ms": Infinity, "a": -Infinity, "b": NaN, "c": null, "d": "NaN, \"Infinity\"", "e": [NaN]}}`,
			records: []string{`summary dedup rank=0 extra:a=-Inf extra:b=NaN extra:d="NaN, \"Infinity\"" extra:e="[\"NaN\"]" extra:min_step_time_ms=+Inf`},
		},
		"odd rows": {
			text: `{"iteration_logs": [1, null, "x", {}, {"iteration": 2.5, "timestamp": 5, "memory_GB": 0, "step_time_ms": "fast", "loss": 2}]}`,
			rows: true,
			records: []string{
				`step median dedup rank=0 extra:iteration=2.5 extra:loss=2 extra:step_time_ms="fast" extra:timestamp=5`,
				"summary dedup rank=0 extra:iteration_logs_skipped=3",
			},
		},
		"empty session":  {text: `{"session_info": {}}`, records: []string{"summary dedup rank=0"}},
		"cut off":        {text: `{"session_info": {"start_time": "2026`, bad: true},
		"another format": {text: `{"log_history": []}`, bad: true},
		"an array":       {text: `[]`, bad: true},
		"nothing":        {text: ``, bad: true},
		"odd parts": {
			text: `{"session_info": 5, "final_statistics": [], "iteration_logs": {}, "version": "2", "host": null}`, rows: true,
			records: []string{`summary dedup rank=0 extra:final_statistics="[]" extra:iteration_logs="{}" extra:session_info=5 extra:version="2"`},
		},
		"wrong root": {text: `5`, bad: true},
	})
}

// A summary knows daylight saving time where the configured zone does.
func TestSummaryZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	s := Summary{Zone: berlin}
	var out sink
	require.True(t, s.Read([]byte(`{"session_info": {"start_time": "20260328_120000", "end_time": "2026-03-29T12:00:00+02:00"}}`), &out))
	assert.Equal(t, []string{"summary dedup rank=0 unix=2026-03-29T12:00:00+02:00→2026-03-29T10:00:00Z start=2026-03-28T11:00:00Z"}, out.got)
}

// The statistics of _calculate_statistics() against means computed here, independently.
func TestStatisticsOfRows(t *testing.T) {
	tflops := []float64{61.25, 80.5, 70.75}
	var rows []string
	sum := 0.0
	for _, v := range tflops {
		sum += v
		rows = append(rows, fmt.Sprintf(`{"TFLOPS_per_GPU": %g, "TFLOPS_total": %g, "memory_GB": %g, "tokens_per_sec": %g, "step_time_ms": 5}`, v, v*8, v/2, v*100))
	}
	mean := sum / 3
	stats := fmt.Sprintf(`"avg_tflops_per_gpu": %g, "min_tflops_per_gpu": %g, "max_tflops_per_gpu": %g, "avg_throughput_tokens": %g, "avg_memory_gb": %g, "max_step_time_ms": 1, "peak_memory_gb": 9`,
		mean*2, 61.25*2, 80.5*2, mean*200, mean)
	var rec record.Record
	s := Summary{Zone: time.UTC, Metric: "m", Unit: "1"}
	require.True(t, s.Read([]byte(`{"final_statistics": {`+stats+`}, "iteration_logs": [`+strings.Join(rows, ",")+`]}`), keep{&rec}))
	got := map[string]float64{}
	for _, e := range rec.Extra {
		if e.Metric != "" {
			assert.Equal(t, e.Statistic+".disagreement", string(e.Name))
			got[e.Statistic] = e.Value
		}
	}
	require.Len(t, got, 5)
	for name, v := range got {
		assert.InDelta(t, 1.0, v, 1e-12, name) // every statistic is twice the value of the rows
	}
}

// keep keeps the last record.
type keep struct{ rec *record.Record }

func (k keep) Record() *record.Record { k.rec.Reset(); return k.rec }
func (keep) Emit(*record.Record)      {}

func FuzzLine(f *testing.F) {
	for _, s := range []string{
		row, header, "Estimated FLOPS Breakdown (Iteration 10):\n  forward: 972.91 TFLOPS", "INFO:a:" + row, "Timestampx Step\n" + row,
		"Timestamp Step Timestamp\n" + row,
	} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, stamped bool) {
		var p Parser
		var out sink
		for line := range strings.SplitSeq(string(text), "\n") {
			before := len(out.got)
			result, reason := p.Line([]byte(line), stamped, &out)
			assert.Equal(t, result == Records, len(out.got) > before)
			assert.Equal(t, result == Ignored || result == Malformed, reason != "")
			if state := p.Save(); state != nil {
				p = Parser{}
				p.Restore(state)
			}
		}
	})
}

func FuzzSummary(f *testing.F) {
	names, err := filepath.Glob("../../testdata/*/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var out sink
		s := Summary{Zone: time.UTC, Rows: true}
		assert.Equal(t, s.Read(text, &out), len(out.got) > 0)
	})
}

func BenchmarkLine(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"row", strings.TrimPrefix(row, "2026-06-12 10:30:57 ")},
		{"rule", strings.Repeat("-", 96)},
		{"other", "loading checkpoint shards from disk: iteration 100, this may take a while"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var p Parser
			var rec record.Record
			var out Out = keep{&rec}
			line := []byte(bb.text)
			b.ReportAllocs()
			for b.Loop() {
				p.Line(line, true, out)
			}
		})
	}
}

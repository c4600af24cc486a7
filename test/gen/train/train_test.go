package train

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// truthFile is the content of a truth file.
type truthFile = gentest.Truth[Run, Record]

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func trainOptions(t *testing.T, format string, change func(*Options)) Options {
	t.Helper()
	o := DefaultOptions(format)
	o.Out = filepath.Join(t.TempDir(), "logs")
	o.Start = time.Date(2026, 2, 11, 8, 40, 0, 120_000_000, time.UTC)
	o.Timezone = time.FixedZone("CST", 8*3600)
	o.Seed, o.Steps = 42, 300
	if change != nil {
		change(&o)
	}
	return o
}

func writeTrain(t *testing.T, o Options) *truthFile {
	t.Helper()
	run, err := Generate(t.Context(), o, io.Discard)
	require.NoError(t, err)
	truth, err := gentest.ReadTruth[Run, Record](o.truthPath())
	require.NoError(t, err)
	require.Equal(t, run.Lines, truth.Run.Lines)
	var lines int64
	for _, f := range truth.Run.Files {
		assert.Equal(t, f.Lines, f.Records+f.Sides+f.Ignored+f.Rejected, f.Path)
		text := gentest.Text(t, f.Path)
		assert.EqualValues(t, strings.Count(text, "\n"), f.Lines-int64(min(1, len(text)-len(strings.TrimSuffix(text, "}")))), f.Path)
		lines += f.Lines
	}
	assert.Equal(t, run.Lines, lines)
	var spans int64
	for kind, n := range truth.Run.Spans {
		if kind != "stages" {
			spans += n
		}
	}
	assert.Len(t, truth.Records, int(spans))
	return truth
}

// recordsOf returns the records of a file; its name may be a pattern.
func recordsOf(truth *truthFile, pattern string) (rs []*Record) {
	for i := range truth.Records {
		if ok, _ := filepath.Match(pattern, truth.Records[i].File); ok {
			rs = append(rs, &truth.Records[i])
		}
	}
	return rs
}

func (r *Record) value(t *testing.T, attr string) float64 {
	t.Helper()
	v, ok := r.Values[attr]
	require.True(t, ok, "%s: %v", attr, r.Values)
	return float64(v)
}

// The totals of upstream's own functions, executed.
func TestFlops(t *testing.T) {
	for i, want := range []struct{ samples, megatron, flagscale float64 }{
		{32, 2813096204697600, 2918718577311744},
		{8, 6537477095424, 7001333563392},
	} {
		assert.InEpsilon(t, want.megatron, megatronFlops(&models[i], want.samples), 1e-12)
		assert.InEpsilon(t, want.flagscale, flagscaleFlops(&models[i], want.samples), 1e-12)
	}
}

func TestWindowIsTheMedianOfTheLaterHalf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var w window
	var all []int64
	for n := 1; n <= 20_000; n++ {
		v := rng.Int64N(5000) // many are equal
		all = append(all, v)
		w.add(v)
		if n%2 == 0 {
			w.remove(all[n/2-1])
		}
		if n < 50 || n%997 == 0 {
			half := slices.Clone(all[n/2:])
			slices.Sort(half)
			k := len(half)
			assert.InDelta(t, float64(half[(k-1)/2]+half[k/2])/2, w.median(), 0)
		}
	}
}

func TestRepr(t *testing.T) {
	for _, tt := range []struct {
		v            float64
		python, json string
	}{
		{0, "0.0", "0.0"},
		{1, "1.0", "1.0"},
		{-2.5, "-2.5", "-2.5"},
		{4e-5, "4e-05", "0.00004"},
		{1.2e-6, "1.2e-06", "1.2e-6"},
		{1e-4, "0.0001", "0.0001"},
		{1e15, "1000000000000000.0", "1000000000000000.0"},
		{1e16, "1e+16", "1e16"},
		{8.391511416816489e-09, "8.391511416816489e-09", "8.391511416816489e-9"},
		{math.NaN(), "nan", "null"},
		{math.Inf(-1), "-inf", "null"},
	} {
		assert.Equal(t, tt.python, string(logfile.AppendRepr(nil, tt.v)))
		assert.Equal(t, tt.json, string(appendORJSON(nil, tt.v)))
	}
}

var reRow = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) +(\d+) +(\d+\.\d\d) +(\d+\.\d\d) +(\d+\.\d) +(\d+) +(\d+\.\d) +(\d+\.\d\d) *$`)

// flagRow reads a row and compares it with Python's format, which upstream prints with.
func flagRow(t *testing.T, line string) []string {
	t.Helper()
	m := reRow.FindStringSubmatch(line)
	require.NotNil(t, m, line)
	n := func(i int) float64 { return gentest.Number(t, m[i]) }
	assert.Equal(t, fmt.Sprintf("%-20s %-8s %-12.2f %-10.2f %-12.1f %-12.0f %-10.1f %-10.2f", m[1], m[2], n(3), n(4), n(5), n(6), n(7), n(8)), line)
	return m
}

func TestFlagScale(t *testing.T) {
	original := gentest.Samples(t, "flagscale_perf_monitor/generated_*/perf_*.log")
	for _, tt := range []struct {
		name   string
		change func(*Options)
	}{
		{"merged", func(*Options) {}},
		{"breakdown", func(o *Options) { o.Breakdown, o.Interval = true, 7 }},
		{"douzi", func(o *Options) { o.Writer, o.WorldSize = "douzi", 1 }},
		{"restart, all of the batch", func(o *Options) { o.Restart, o.DPOmitted, o.WorldSize = true, false, 16 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := trainOptions(t, FormatFlagScale, tt.change)
			truth := writeTrain(t, o)
			files, err := filepath.Glob(filepath.Join(o.Out, "perf_metrics_*.log"))
			require.NoError(t, err)
			sessions := 1
			if o.Restart {
				sessions = 2
			}
			require.Len(t, files, sessions)
			var last []string
			for session, file := range files {
				recs := recordsOf(truth, filepath.Base(file))
				for _, r := range recs {
					assert.Equal(t, session+1, r.Session)
				}
				last = checkFlagLog(t, o, truth, recs, gentest.Text(t, file), original)
				require.Len(t, last, len(recs))
			}
			realtime := strings.Split(strings.TrimSuffix(gentest.Text(t, filepath.Join(o.Out, "perf_realtime.log")), "\n"), "\n")
			assert.Equal(t, last, realtime[5:])
			checkFlagSummary(t, o, truth, last)
		})
	}
}

// checkFlagLog compares a session's log with its records, and returns the log's rows.
func checkFlagLog(t *testing.T, o Options, truth *truthFile, recs []*Record, text string, original []string) (rows []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range 5 {
		if i != 1 && o.Writer == "merged" && len(original) > 0 {
			assert.Contains(t, original, lines[i])
		}
	}
	assert.Equal(t, "Timestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    Tokens/s     Time(ms)   Memory(GB)", lines[3])
	for i := 5; i < len(lines); i++ {
		if lines[i] == "" {
			assert.Equal(t, "douzi", o.Writer)
			assert.Regexp(t, "^={80}\nPerformance Monitor Session Completed: .{19}\nSummary saved to: .*json\n={80}$", strings.Join(lines[i+1:], "\n"))
			break
		}
		r := recs[len(rows)]
		rows = append(rows, lines[i])
		checkFlagRow(t, o, truth, r, lines[i])
		if o.Breakdown {
			total := gentest.Number(t, r.Printed["total"])
			assert.Equal(t,
				fmt.Sprintf("Estimated FLOPS Breakdown (Iteration %s):\n  forward: %.2f TFLOPS\n  backward: %s TFLOPS\n  optimizer: 0.00 TFLOPS\n  total: %.2f TFLOPS",
					r.Printed["iteration"], total/3, r.Printed["backward"], total), strings.Join(lines[i+1:i+6], "\n"))
			i += 5
		}
	}
	return rows
}

// checkFlagRow compares a row of the table with its record: printed and derived values.
func checkFlagRow(t *testing.T, o Options, truth *truthFile, r *Record, row string) {
	t.Helper()
	m := flagRow(t, row)
	assert.Equal(t, m[2], strconv.FormatInt(r.Iteration, 10))
	for k, name := range []string{
		"timestamp", "iteration", "TFLOPS_per_GPU", "TFLOPS_total", "samples_per_sec", "tokens_per_sec", "step_time_ms", "memory_GB",
	} {
		assert.Equal(t, m[k+1], r.Printed[name])
	}
	global := gentest.Number(t, fmt.Sprint(truth.Run.Model["global_batch_size"]))
	batch := global
	if o.DPOmitted {
		batch /= gentest.Number(t, fmt.Sprint(truth.Run.Model["data_parallel_size"]))
	}
	seconds := gentest.Number(t, m[7]) / 1e3
	assert.InEpsilon(t, seconds, r.value(t, "ml.train.step.duration"), 1e-15)
	assert.InEpsilon(t, gentest.Number(t, m[3])*1e12, r.value(t, "ml.train.device.flop.throughput.reported"), 1e-15)
	assert.InEpsilon(t, gentest.Number(t, m[8])*(1<<30), r.value(t, "ml.train.device.memory.usage"), 1e-15)
	assert.InDelta(t, batch, gentest.Number(t, m[6])*seconds/2048, batch*1e-3)
	share := batch / global
	assert.InEpsilon(t, truth.Run.FlopsFlagScale*share/seconds/float64(o.WorldSize), gentest.Number(t, m[3])*1e12, 1e-3)
	assert.InEpsilon(t, truth.Run.FlopsMegatron/seconds/float64(o.WorldSize)/truth.Run.Peak, r.MFU, 1e-12)
	at, err := time.ParseInLocation(time.DateTime, m[1], o.Timezone)
	require.NoError(t, err)
	assert.Equal(t, at.UnixNano(), r.EndUnixNano)
	assert.Less(t, r.TrueEndUnixNano-r.EndUnixNano, int64(1e9))
}

// checkFlagSummary compares the summary of the last session with the rows of its log.
func checkFlagSummary(t *testing.T, o Options, truth *truthFile, rows []string) {
	t.Helper()
	summaries, err := filepath.Glob(filepath.Join(o.Out, "perf_summary_*.json"))
	require.NoError(t, err)
	require.Len(t, summaries, 1)
	var summary struct {
		Session struct {
			Start string `json:"start_time"`
			End   string `json:"end_time"`
			Total int    `json:"total_iterations"`
		} `json:"session_info"`
		Final map[string]float64 `json:"final_statistics"`
		Logs  []struct {
			Iteration int64
			Timestamp string
			PerGPU    float64 `json:"TFLOPS_per_GPU"`
			MS        float64 `json:"step_time_ms"`
		} `json:"iteration_logs"`
	}
	text := gentest.Text(t, summaries[0])
	require.NoError(t, json.Unmarshal([]byte(text), &summary))
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, []byte(text), "", "  "))
	assert.Equal(t, indented.String(), text)
	assert.Equal(t, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(summaries[0]), "perf_summary_"), ".json"), summary.Session.Start)
	_, err = time.Parse("2006-01-02T15:04:05.000000-07:00", summary.Session.End)
	require.NoError(t, err)
	require.Len(t, summary.Logs, len(rows))
	for i, row := range rows {
		m := flagRow(t, row)
		assert.Equal(t, m[2], strconv.FormatInt(summary.Logs[i].Iteration, 10))
		assert.Equal(t, m[3], strconv.FormatFloat(summary.Logs[i].PerGPU, 'f', 2, 64))
		assert.Equal(t, m[7], strconv.FormatFloat(summary.Logs[i].MS, 'f', 1, 64))
	}
	records := recordsOf(truth, "perf_summary_*")
	require.Len(t, records, 1)
	assert.Equal(t, KindSummary, records[0].Kind)
	for _, k := range []string{"avg_tflops_per_gpu", "avg_tflops_total", "avg_step_time_ms", "min_step_time_ms", "max_step_time_ms", "peak_memory_gb"} {
		assert.InEpsilon(t, gentest.Number(t, records[0].Printed[k]), summary.Final[k], 1e-15)
	}
	switch {
	case o.Writer == "douzi":
		assert.Equal(t, len(rows), summary.Session.Total)
	case o.Restart:
		assert.Equal(t, o.Steps*2/5, summary.Session.Total)
	default:
		assert.Equal(t, o.Steps, summary.Session.Total)
	}
}

var (
	reIteration = regexp.MustCompile(`^ \[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?)\] iteration +(\d+)/ *(\d+) \| (.*) \|$`)
	reTimer     = regexp.MustCompile(`^    (([a-z-]+) \.+): \((\d+\.\d\d), (\d+\.\d\d)\)$`)
	reMemory    = regexp.MustCompile(`^\[Rank (\d+)\] \(after (\d+) iterations\) memory \(MB\) \| (.*)$`)
	reValid     = regexp.MustCompile(`^ validation loss at iteration (\d+) \| lm loss value: (\S+) \| lm loss PPL: (\S+) \| $`)
)

// pairs reads "name: text | name: text".
func pairs(t *testing.T, text string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for kv := range strings.SplitSeq(text, " | ") {
		k, v, ok := strings.Cut(kv, ": ")
		require.True(t, ok, kv)
		m[k] = strings.TrimSpace(v)
	}
	return m
}

func TestMegatron(t *testing.T) {
	for _, line := range gentest.Samples(t, "megatron_flagscale_stdout/GENERATED_*.log") {
		known := line == "" || strings.HasPrefix(line, "(min, max)") || strings.Trim(line, "-") == ""
		assert.True(t, known || reIteration.MatchString(line) || reTimer.MatchString(line) || reMemory.MatchString(line) || reValid.MatchString(line), line)
	}
	for _, tt := range []struct {
		prefix string
		change func(*Options)
	}{
		{"[default7]:", func(*Options) {}},
		{"[rank15]:", func(o *Options) { o.Prefix, o.WorldSize, o.Out = "rank", 16, o.Out+".log" }},
		{"6: ", func(o *Options) { o.Prefix, o.WorldSize, o.Interval, o.Slow, o.NaNLossAt = "srun", 7, 1, 0.1, 13 }},
		{"", func(o *Options) { o.Prefix, o.Timers, o.EvalInterval = "none", false, 0 }},
	} {
		t.Run("prefix "+tt.prefix, func(t *testing.T) {
			o := trainOptions(t, FormatMegatron, tt.change)
			truth := writeTrain(t, o)
			lines := strings.Split(strings.TrimSuffix(gentest.Text(t, truth.Run.Files[0].Path), "\n"), "\n")
			dump := checkArguments(t, lines, tt.prefix, truth.Run.Model)
			checkMegatronLog(t, o, truth, lines[dump+2:], tt.prefix)
		})
	}
}

// checkArguments compares the dump of the arguments with the model, and returns the number of its last line.
func checkArguments(t *testing.T, lines []string, prefix string, model map[string]any) int {
	t.Helper()
	args := map[string]string{}
	dump := 1
	for ; !strings.HasSuffix(lines[dump], "-------------------- end of arguments ---------------------"); dump++ {
		if name, value, ok := strings.Cut(lines[dump], " ."); ok {
			fields := strings.Fields(strings.TrimPrefix(name, prefix))
			name = fields[len(fields)-1]
			assert.True(t, strings.HasSuffix(lines[dump], "  "+name+" "+strings.Repeat(".", 48-len(name))+" "+strings.TrimLeft(value, ". ")), lines[dump])
			args[name] = strings.TrimLeft(value, ". ")
		}
	}
	assert.Equal(t, fmt.Sprint(model["hidden_size"]), args["hidden_size"])
	assert.Equal(t, fmt.Sprint(model["global_batch_size"]), args["global_batch_size"])
	assert.Equal(t, "True", args["swiglu"])
	return dump
}

// checkMegatronLog compares the lines after the arguments with the records, in order.
func checkMegatronLog(t *testing.T, o Options, truth *truthFile, lines []string, prefix string) {
	t.Helper()
	var r *Record
	next, stages := 0, 0
	take := func(kind string) {
		if r != nil {
			assert.Len(t, r.Stages, stages)
		}
		r, stages = &truth.Records[next], 0
		next++
		require.Equal(t, kind, r.Kind)
	}
	printed := map[string]string{}
	for _, line := range lines {
		line, ok := strings.CutPrefix(line, prefix)
		require.True(t, ok, line)
		if m := reIteration.FindStringSubmatch(line); m != nil {
			take(KindStep)
			printed = pairs(t, m[4])
			printed["timestamp"], printed["iteration"], printed["iterations"] = m[1], m[2], m[3]
			if r.Step != int64(o.Interval) { // memory follows the first
				assert.Equal(t, printed, r.Printed)
			}
			checkIteration(t, o, truth, r, line)
		} else if m := reMemory.FindStringSubmatch(line); m != nil {
			for k, v := range pairs(t, m[3]) {
				assert.Equal(t, v, r.Printed[k])
				printed[k] = v
			}
			assert.Equal(t, printed, r.Printed)
			assert.InEpsilon(t, gentest.Number(t, r.Printed["max allocated"])*(1<<20), r.value(t, "ml.train.device.memory.peak"), 1e-15)
		} else if m := reTimer.FindStringSubmatch(line); m != nil {
			assert.Len(t, m[1], 48)
			assert.Equal(t, m[2], r.Stages[stages].Name)
			assert.InEpsilon(t, gentest.Number(t, m[3])/1e3, r.Stages[stages].Min, 1e-15)
			assert.InEpsilon(t, gentest.Number(t, m[4])/1e3, r.Stages[stages].Seconds, 1e-15)
			stages++
		} else if m := reValid.FindStringSubmatch(line); m != nil {
			take(KindEvaluation)
			assert.Equal(t, m[1], strconv.FormatInt(r.Iteration, 10))
			assert.InEpsilon(t, gentest.Number(t, m[2]), r.value(t, "ml.train.validation.loss"), 1e-15)
			assert.InEpsilon(t, math.Exp(gentest.Number(t, m[2])), r.value(t, "ml.train.validation.perplexity"), 1e-5)
		} else {
			require.True(t, line == "(min, max) time across ranks (ms):" || strings.Trim(line, "-") == "", line)
		}
	}
	require.Equal(t, len(truth.Records), next)
}

func checkIteration(t *testing.T, o Options, truth *truthFile, r *Record, line string) {
	t.Helper()
	p := r.Printed
	assert.Contains(
		t, line,
		fmt.Sprintf(
			" [%s] iteration %8s/%8s | consumed samples: %12s | elapsed time per iteration (ms): ", p["timestamp"], p["iteration"], p["iterations"],
			p["consumed samples"],
		),
	)
	assert.Contains(
		t, line,
		fmt.Sprintf(" | global batch size: %5s | lm loss: %s | loss scale: 1.0 | grad norm: %s | num zeros: ", p["global batch size"], p["lm loss"], p["grad norm"]),
	)
	assert.True(t, strings.HasSuffix(line, " | number of skipped iterations:   0 | number of nan iterations:   0 |"))
	seconds := gentest.Number(t, p["elapsed time per iteration (ms)"]) / 1e3
	assert.InEpsilon(t, seconds, r.value(t, "ml.train.step.duration"), 1e-14)
	assert.InDelta(t, r.TrueDuration/float64(r.StepsCovered), seconds, 0.5001e-4)
	assert.InDelta(t, truth.Run.FlopsMegatron/seconds/1e12/float64(o.WorldSize), gentest.Number(t, p["throughput per GPU (TFLOP/s/GPU)"]), 0.06)
	at, err := time.ParseInLocation("2006-01-02 15:04:05.000000", p["timestamp"], o.Timezone)
	require.NoError(t, err)
	assert.Equal(t, at.UnixNano(), r.EndUnixNano)
	if int64(o.NaNLossAt) == r.Step {
		assert.Equal(t, "NAN", p["lm loss"])
		assert.Equal(t, "nan", p["grad norm"])
		assert.True(t, math.IsNaN(r.value(t, "ml.train.loss")))
	} else {
		assert.Regexp(t, `^\d\.\d{6}E[+-]\d\d$`, p["lm loss"])
		assert.InDelta(t, gentest.Number(t, p["lm loss"]), r.value(t, "ml.train.loss"), 0)
	}
	assert.Equal(t, r.Slow, r.MFU < 0.3 && r.Step > 1, "%v", r.MFU)
}

func TestJSONL(t *testing.T) {
	keys := map[string][]string{
		"minimal": {"loss", "throughput"}, "recommended": {"gpu_util", "loss", "lr", "step_time_s", "throughput"},
		"full": {"gpu_util", "loss", "lr", "step", "step_time_s", "throughput", "timestamp"},
		"7":    {"gpu_util", "loss", "lr", "step", "step_time_s", "throughput", "timestamp"},
	}
	keys["40"] = slices.Clone(keys["full"])
	for i := range 33 {
		keys["40"] = append(keys["40"], fmt.Sprintf("layers.%d.linear.%s", i/4, []string{"grad_norm", "weight_rms", "act_max", "update_lr"}[i%4]))
	}
	slices.Sort(keys["40"])
	for fields, want := range keys {
		o := trainOptions(t, FormatJSONL, func(o *Options) { o.Fields, o.Slow = fields, 0.1 })
		truth := writeTrain(t, o)
		require.Len(t, truth.Records, o.Steps)
		for i, line := range strings.Split(strings.TrimSpace(gentest.Text(t, truth.Run.Files[0].Path)), "\n") {
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &got))
			r := truth.Records[i]
			var names []string
			for k, v := range got {
				names = append(names, k)
				switch v := v.(type) {
				case float64:
					assert.InDelta(t, v, gentest.Number(t, r.Printed[k]), 0)
				case string:
					assert.Equal(t, v, r.Printed[k])
					at, err := time.Parse(time.RFC3339Nano, v)
					require.NoError(t, err)
					assert.Equal(t, at.UnixNano(), r.EndUnixNano)
				default:
					text, err := json.Marshal(v)
					require.NoError(t, err)
					assert.JSONEq(t, r.Printed[k], string(text))
				}
			}
			slices.Sort(names)
			assert.Equal(t, want, names)
			assert.InDelta(t, got["loss"], r.value(t, "ml.train.loss"), 0)
			assert.InDelta(t, got["throughput"], r.value(t, "ml.train.sample.throughput"), 0)
			assert.Equal(t, r.Printed["layers.3.linear.act_max"] != "", fields == "40")
			if fields == "40" {
				assert.InDelta(t, got["layers.3.linear.act_max"], r.value(t, "ml.train.field.layers.3.linear.act_max"), 0)
				assert.InDelta(t, 1800, len(line), 100) // the size of lines of W&B-like loggers
			}
			if fields == "full" || fields == "40" {
				assert.EqualValues(t, i+1, r.Iteration)
				assert.InDelta(t, got["step_time_s"], r.TrueDuration, 1e-6)
				assert.Equal(t, r.Slow, r.MFU < 0.3 && i > 0)
			}
		}
	}
}

func TestJSONLTraps(t *testing.T) {
	o := trainOptions(t, FormatJSONL, func(o *Options) { o.Nasty, o.Steps, o.NaNLossAt = 0.7, 2000, 77 })
	truth := writeTrain(t, o)
	text, ok := strings.CutPrefix(gentest.Text(t, truth.Run.Files[0].Path), "\ufeff")
	assert.True(t, ok)
	next, ignored, rejected := 0, int64(0), int64(0)
	seen := map[string]int{}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case !strings.HasPrefix(line, "{"):
			ignored++
			continue
		case !strings.HasSuffix(strings.TrimSuffix(line, "\r"), "}"):
			rejected++
			assert.False(t, json.Valid([]byte(line)))
			continue
		}
		r := truth.Records[next]
		next++
		if strings.HasSuffix(line, "\r") {
			seen["CRLF"]++
		}
		strict := strings.NewReplacer("NaN", `"NaN"`, "Infinity", `"Inf"`).Replace(line)
		if strict != line {
			seen["NaN"]++
		}
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(strict), &got), line)
		if data, ok := got["data"]; ok {
			got = data.(map[string]any)
			seen["nested"]++
		}
		if v, ok := got["Loss"]; ok {
			got["loss"], got["throughput"] = v, got["samples_per_second"]
			seen["alias"]++
		}
		if _, ok := got["step_time_s"].(string); ok {
			seen["strings"]++
		}
		for k, attr := range map[string]string{
			"loss": "ml.train.loss", "throughput": "ml.train.sample.throughput", "step_time_s": "ml.train.step.duration", "lr": "ml.train.learning_rate",
		} {
			assert.Equal(t, fmt.Sprint(gentest.Number(t, fmt.Sprint(got[k]))), fmt.Sprint(r.value(t, attr))) // as texts, for NaN
		}
	}
	assert.Equal(t, o.Steps, next)
	assert.Equal(t, truth.Run.Ignored, ignored)
	assert.Equal(t, truth.Run.Rejected, rejected)
	assert.Positive(t, ignored*rejected)
	assert.Len(t, seen, 5, "%v", seen)
}

var (
	reDict = regexp.MustCompile(`\{('[^{}]*)\} *$`)
	reBar  = regexp.MustCompile(`^\r *(\d+)%\|[ ▏▎▍▌▋▊▉█]{10}\| (\d+)/(\d+) \[[\d:]+<[\d:]+, +\d+\.\d\d(s/it|it/s)\](\r +\r)?$`)
)

// dict reads a Python dict of numbers (4) or texts (5).
func dict(t *testing.T, version int, text string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for kv := range strings.SplitSeq(text, ", ") {
		k, v, ok := strings.Cut(kv, ": ")
		require.True(t, ok, text)
		if version == 5 {
			require.Regexp(t, "^'[^']*'$", v)
		}
		m[strings.Trim(k, "'")] = strings.Trim(v, "'")
	}
	return m
}

func TestHF(t *testing.T) {
	for _, line := range gentest.Samples(t, "hf_trainer/real_v*.log") {
		assert.True(t, line == "" || reDict.MatchString(line), line)
	}
	for _, version := range []int{4, 5} {
		o := trainOptions(t, FormatHF, func(o *Options) {
			o.Version, o.Steps, o.EvalInterval, o.Interval, o.Progress = version, 1500, 500, 5, version == 4
			o.NaNLossAt = 23
		})
		truth := writeTrain(t, o)
		logged, kept := recordsOf(truth, "train.log"), recordsOf(truth, "trainer_state.json")
		require.Len(t, logged, 300+3+1)
		require.Len(t, kept, len(logged))
		checkHFLog(t, o, logged)
		checkHFState(t, o, kept, logged)
	}
}

// checkHFLog compares the lines of standard output, with or without the bar of the progress, with the records.
func checkHFLog(t *testing.T, o Options, logged []*Record) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSuffix(gentest.Text(t, filepath.Join(o.Out, "train.log")), "\n"), "\n") {
		at := reDict.FindStringSubmatchIndex(line)
		require.NotNil(t, at, line)
		assert.Equal(t, dict(t, o.Version, line[at[2]:at[3]]), logged[i].Printed)
		if !o.Progress {
			assert.Zero(t, at[0])
			continue
		}
		if i > 0 { // the bar of the record before, drawn anew
			again := strings.IndexByte(line[1:], '\r') + 1
			m := reBar.FindStringSubmatch(line[:again])
			if assert.NotNil(t, m, "%q", line) {
				assert.Equal(t, strconv.FormatInt(logged[i-1].Step, 10), m[2])
			}
			line, at[0] = line[again:], at[0]-again
		}
		if m := reBar.FindStringSubmatch(line[:at[0]]); assert.NotNil(t, m, "%q", line) {
			assert.Equal(t, strconv.FormatInt(logged[i].Step, 10), m[2])
		}
	}
}

// checkHFState compares trainer_state.json with its records: the same steps as in the log, with more digits.
func checkHFState(t *testing.T, o Options, kept, logged []*Record) {
	t.Helper()
	var state struct {
		GlobalStep int              `json:"global_step"`
		History    []map[string]any `json:"log_history"`
	}
	text := gentest.Text(t, filepath.Join(o.Out, "trainer_state.json"))
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(text, "NaN", `"nan"`)), &state))
	assert.Equal(t, o.Steps, state.GlobalStep)
	require.Len(t, state.History, len(kept))
	for i, h := range state.History {
		r := kept[i]
		assert.Len(t, r.Printed, len(h))
		for k, v := range h {
			if text, ok := v.(string); ok {
				assert.Equal(t, "nan", text)
				assert.Equal(t, "NaN", r.Printed[k])
				continue
			}
			assert.InDelta(t, v, gentest.Number(t, r.Printed[k]), 0)
			if k != "step" && k != "total_flos" {
				assert.InEpsilon(t, 1+v.(float64), 1+gentest.Number(t, logged[i].Printed[k]), 1e-3)
			}
		}
		assert.InDelta(t, h["step"], r.Iteration, 0)
		assert.Equal(t, r.Kind, logged[i].Kind)
		if r.Kind == KindStep {
			assert.EqualValues(t, 5, r.StepsCovered)
			assert.Equal(t, r.Step == 25, math.IsNaN(r.value(t, "ml.train.loss")))
		}
	}
}

var reVerl = regexp.MustCompile(`^(?:\x1b\[36m\(TaskRunner pid=\d+\)\x1b\[0m |\(TaskRunner pid=\d+\) )?step:(\d+) - (.*)$`)

func TestVerl(t *testing.T) {
	for _, prefix := range []string{writer.PrefixNone, writer.PrefixRay, writer.PrefixRayANSI} {
		o := trainOptions(t, FormatVerl, func(o *Options) {
			o.Prefix, o.FileLogger, o.Steps, o.NaNLossAt, o.Slow = prefix, true, 100, 9, 0.1
		})
		truth := writeTrain(t, o)
		console, file := recordsOf(truth, "verl.log"), recordsOf(truth, "filelogger.jsonl")
		require.Len(t, console, o.Steps)
		require.Len(t, file, o.Steps)
		jsons := strings.Split(gentest.Text(t, filepath.Join(o.Out, "filelogger.jsonl")), "\n")
		for i, line := range strings.Split(strings.TrimSuffix(gentest.Text(t, filepath.Join(o.Out, "verl.log")), "\n"), "\n") {
			m := reVerl.FindStringSubmatch(line)
			require.NotNil(t, m, line)
			var row struct {
				Step int64
				Data map[string]*float64
			}
			require.NoError(t, json.Unmarshal([]byte(jsons[i]), &row))
			assert.Equal(t, m[1], strconv.FormatInt(row.Step, 10))
			got := map[string]string{"step": m[1]}
			stages := map[string]float64{}
			for kv := range strings.SplitSeq(m[2], " - ") {
				at := strings.LastIndexByte(kv, ':')
				k, v := kv[:at], kv[at+1:]
				if n, ok := strings.CutPrefix(v, "np.float64("); ok {
					v = strings.TrimSuffix(n, ")")
				}
				got[k] = v
				if x := row.Data[k]; x != nil {
					assert.InDelta(t, gentest.Number(t, v), *x, 0, k)
					if name, ok := strings.CutPrefix(k, "timing_s/"); ok && name != "step" {
						stages[name] = *x
					}
				} else {
					assert.Equal(t, "nan", v, k)
				}
			}
			r := console[i]
			assert.Equal(t, got, r.Printed)
			assert.Len(t, row.Data, len(got)-1)
			require.Len(t, r.Stages, len(stages))
			sum := 0.0
			for _, st := range r.Stages {
				assert.InDelta(t, stages[st.Name], st.Seconds, 0)
				if st.Name != "testing" {
					sum += st.Seconds
				}
			}
			step := r.value(t, "ml.train.step.duration")
			assert.Less(t, sum, step)
			assert.InDelta(t, step, r.TrueDuration, 1e-6)
			assert.Equal(t, row.Step%20 == 0, stages["testing"] > 0)
			assert.InEpsilon(t, gentest.Number(t, got["perf/total_num_tokens"])/step/8, r.value(t, "ml.train.device.token.throughput"), 1e-12)
		}
	}
}

func TestTrainSameSeedSameBytes(t *testing.T) {
	all := func(format string, change func(*Options)) string {
		o := trainOptions(t, format, func(o *Options) {
			o.Slow, o.Nasty, o.Restart = 0.1, 0.2, format == FormatFlagScale
			change(o)
		})
		writeTrain(t, o)
		files, err := filepath.Glob(filepath.Join(o.Out, "*"))
		require.NoError(t, err)
		var text strings.Builder
		for _, f := range files {
			text.WriteString(filepath.Base(f) + "\n" + strings.ReplaceAll(gentest.Text(t, f), o.Out, ""))
		}
		return text.String()
	}
	for _, format := range slices.AppendSeq([]string{FormatFlagScale, FormatMegatron, FormatJSONL, FormatHF, FormatVerl}, maps.Keys(trainers)) {
		first := all(format, func(*Options) {})
		assert.Equal(t, first, all(format, func(*Options) {}), format)
		assert.NotEqual(t, first, all(format, func(o *Options) { o.Seed++ }), format)
	}
}

func TestSlowSteps(t *testing.T) {
	o := trainOptions(t, FormatJSONL, func(o *Options) { o.Slow, o.SlowFactor, o.Steps = 0.2, 3, 3000 })
	slow := 0
	for i, r := range writeTrain(t, o).Records {
		if r.Slow {
			slow++
			assert.InEpsilon(t, 0.14, r.MFU, 0.05)
		} else if i > 0 {
			assert.InEpsilon(t, 0.42, r.MFU, 0.05)
		}
	}
	assert.InDelta(t, 600, slow, 100)
}

func TestTrainEndsNowWithoutStart(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, format := range []string{FormatFlagScale, FormatMegatron, FormatVerl} {
		o := trainOptions(t, format, func(o *Options) { o.Start, o.Restart, o.Steps = time.Time{}, format == FormatFlagScale, 200 })
		run, err := generate(t.Context(), o, io.Discard, logfile.Clock{Now: func() time.Time { return now }})
		require.NoError(t, err)
		assert.Equal(t, now.UnixNano(), run.EndUnixNano)
	}
}

// A paced run writes a record when the clock has reached its end, at the requested rate, of a model with believable steps of that length.
func TestTrainRate(t *testing.T) {
	for _, rate := range []float64{0.1, 1, 20, 500, 5000} {
		o := trainOptions(t, FormatJSONL, func(o *Options) { o.Start, o.Rate, o.Out, o.Fields, o.Steps = time.Time{}, rate, "-", "full", 400 })
		o.Truth = filepath.Join(t.TempDir(), "t.json")
		c := &gentest.Clock{At: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
		begin := c.At
		w := gentest.Writer(func(p []byte) (int, error) {
			var row struct{ Timestamp time.Time }
			require.NoError(t, json.Unmarshal(p, &row))
			assert.False(t, row.Timestamp.After(c.At))
			assert.Less(t, c.At.Sub(row.Timestamp), time.Millisecond)
			return len(p), nil
		})
		run, err := generate(t.Context(), o, w, c.Clock())
		require.NoError(t, err)
		assert.InEpsilon(t, rate, float64(run.Records)/c.At.Sub(begin).Seconds(), 0.02)
		truth, err := gentest.ReadTruth[Run, Record](o.Truth)
		require.NoError(t, err)
		assert.InEpsilon(t, 0.42, truth.Records[50].MFU, 0.35)
	}
}

// Stopped from outside, the logs are ended and the truth is closed.
func TestTrainStopped(t *testing.T) {
	for _, format := range []string{FormatFlagScale, FormatHF} {
		ctx, cancel := context.WithCancel(t.Context())
		c := &gentest.Clock{At: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC), Stop: cancel}
		c.Until = c.At.Add(5 * time.Second)
		o := trainOptions(t, format, func(o *Options) { o.Start, o.Rate, o.Steps, o.SaveInterval = time.Time{}, 20, 0, 30 })
		run, err := generate(ctx, o, io.Discard, c.Clock())
		require.NoError(t, err)
		cancel()
		truth, err := gentest.ReadTruth[Run, Record](o.truthPath())
		require.NoError(t, err)
		assert.InDelta(t, 5*20*o.Interval, run.Steps, 100)
		assert.Equal(t, KindSummary, truth.Records[len(truth.Records)-1].Kind)
	}
}

func TestTrainOptionErrors(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"jsonl", "--steps", "0"}, "needs --rate"},
		{[]string{"jsonl", "--fields", "some"}, `--fields "some"`},
		{[]string{"jsonl", "--fields", "6"}, "a number from 7 to 256"},
		{[]string{"jsonl", "--fields", "257"}, "a number from 7 to 256"},
		{[]string{"jsonl", "--nasty", "2"}, "--nasty 2: use 0 to 1"},
		{[]string{"jsonl", "--slow", "NaN"}, "--slow NaN"},
		{[]string{"jsonl", "--slow-factor", "0.5"}, "--slow-factor"},
		{[]string{"jsonl", "--out", ""}, "--out is empty"},
		{[]string{"jsonl", "--rate", "5", "--start", "2026-02-11T16:40:00Z"}, "drop one"},
		{[]string{"jsonl", "--rate", "-5"}, "--rate -5"},
		{[]string{"jsonl", "--timezone", "Mars/Base"}, "IANA"},
		{[]string{"megatron", "--log-interval", "0"}, "--log-interval 0"},
		{[]string{"megatron", "--prefix", "ray"}, `--prefix "ray"`},
		{[]string{"megatron", "--eval-interval", "-1"}, "--eval-interval"},
		{[]string{"megatron", "--world-size", "0"}, "--world-size 0"},
		{[]string{"flagscale", "--writer", "old"}, `--writer "old"`},
		{[]string{"flagscale", "--writer", "douzi", "--breakdown"}, "--breakdown"},
		{[]string{"flagscale", "--out", "-"}, "directory"},
		{[]string{"flagscale", "--restart", "--steps", "4"}, "--restart"},
		{[]string{"torchtitan", "--log-freq", "0"}, "--log-freq 0"},
		{[]string{"nemo", "--prefix", "ray"}, `--prefix "ray"`},
		{[]string{"openrlhf", "--prefix", "rank"}, `--prefix "rank"`},
		{[]string{"hf", "--transformers", "3"}, "--transformers 3"},
		{[]string{"hf", "--save-steps", "0"}, "--save-steps"},
		{[]string{"verl", "--filelogger", "--out", "x.log"}, "--filelogger"},
	} {
		cmd := &cobra.Command{}
		cmd.AddCommand(Commands()...)
		cmd.SetArgs(tt.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		require.ErrorIs(t, err, logfile.ErrOptions, "%v", tt.args)
		assert.ErrorContains(t, err, tt.says)
	}
}

func TestTrainCommand(t *testing.T) {
	var out, errs bytes.Buffer
	cmd := &cobra.Command{}
	cmd.AddCommand(Commands()...)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	path := filepath.Join(t.TempDir(), "t.json")
	cmd.SetArgs([]string{"jsonl", "--out", "-", "--truth", path, "--steps", "3"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	assert.Equal(t, 3, strings.Count(out.String(), "\n"))
	assert.Contains(t, errs.String(), "wrote 3 lines to 1 file(s) at -: 3 records of 3 steps")
	truth, err := gentest.ReadTruth[Run, Record](path)
	require.NoError(t, err)
	assert.Len(t, truth.Records, 3)

	require.NoError(t, os.WriteFile(path, []byte("{\"kind\":\"train.step\",\"values\":{\"a\":\"NaN\",\"b\":\"-Inf\"}}\n"), 0o600))
	truth, err = gentest.ReadTruth[Run, Record](path)
	require.ErrorIs(t, err, gentest.ErrTruthUnfinished)
	assert.True(t, math.IsNaN(float64(truth.Records[0].Values["a"])))
	assert.True(t, math.IsInf(float64(truth.Records[0].Values["b"]), -1))
}

func BenchmarkGenerateTrain(b *testing.B) {
	for _, format := range []string{FormatMegatron, FormatJSONL, FormatHF, FormatVerl, FormatTorchTitan} {
		b.Run(format, func(b *testing.B) {
			o := DefaultOptions(format)
			o.Out, o.Steps, o.Interval, o.Start = "-", 10_000, 1, time.Unix(1770000000, 0)
			b.ReportAllocs()
			var lines int64
			for b.Loop() {
				run, err := Generate(b.Context(), o, io.Discard)
				if err != nil {
					b.Fatal(err)
				}
				lines += run.Lines
			}
			b.ReportMetric(float64(lines)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

package tq

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// truthFile is the content of a truth file.
type truthFile = gentest.Truth[Run, Function]

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T, change func(*Options)) Options {
	t.Helper()
	o := DefaultOptions()
	o.Out = filepath.Join(t.TempDir(), "logs")
	o.Start = time.Date(2026, 2, 11, 8, 40, 0, 120_000_000, time.UTC)
	o.Timezone = time.FixedZone("CST", 8*3600)
	o.Seed, o.Workers, o.Batches = 42, 3, 6
	if change != nil {
		change(&o)
	}
	return o
}

func write(t *testing.T, o Options) (Run, *truthFile) {
	t.Helper()
	run, err := Generate(t.Context(), o, io.Discard)
	require.NoError(t, err)
	truth, err := gentest.ReadTruth[Run, Function](o.truthPath())
	require.NoError(t, err)
	require.Equal(t, run, truth.Run)
	return run, truth
}

// record is a line, read with regular expressions independent of the generator.
type record struct {
	pid, ip, level, stamp string
	kind                  string // TRACE or DETAIL
	fields                map[string]string
	used                  bool
}

var (
	rePrefix = regexp.MustCompile(`^(?:\x1b\[36m)?\(\w+ pid=(\d+)(?:, ip=([\d.]+))?\)(?:\x1b\[0m)? (.*)$`)
	reStamp  = regexp.MustCompile(`^(INFO|DEBUG):(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}):(.*)$`)
	reTQ     = regexp.MustCompile(`^\[TQ-(TRACE|DETAIL)\] (.*) \| timestamp=(\d+\.\d{6})$`)
	reFile   = regexp.MustCompile(`worker-[0-9a-f]{56}-01000000-(\d+)\.err$`)
	reSide   = regexp.MustCompile(
		`^(Task \w+ \(pid=\d+\) (is getting len_samples=\d+, global_idx=\[\d+(, \d+)*\]|putting output data to TransferQueue with batch_size=torch\.Size\(\[\d+\]\),)|tensordict keys=\['\w+'(, '\w+')*\])$`,
	)
)

// parse reads all files of a run. It returns the records by process, and the counts of lines by kind.
func parse(t *testing.T, run *Run) (byPID map[string][]*record, trace, detail, side int64) {
	t.Helper()
	byPID = map[string][]*record{}
	for _, f := range run.Files {
		data, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		require.True(t, bytes.HasSuffix(data, []byte("\n")))
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		require.Len(t, lines, int(f.Lines))
		filePID := ""
		if m := reFile.FindStringSubmatch(f.Path); m != nil {
			filePID = m[1]
		}
		for _, line := range lines {
			r := &record{pid: filePID, fields: map[string]string{}}
			text := line
			if m := rePrefix.FindStringSubmatch(text); m != nil {
				r.pid, r.ip, text = m[1], m[2], m[3]
			}
			if m := reStamp.FindStringSubmatch(text); m != nil {
				r.level, r.stamp, text = m[1], m[2], m[3]
			}
			m := reTQ.FindStringSubmatch(text)
			if m == nil {
				require.Regexp(t, reSide, text)
				side++
				continue
			}
			r.kind = m[1]
			r.fields["timestamp"] = m[3]
			for kv := range strings.SplitSeq(m[2], " | ") {
				k, v, ok := strings.Cut(kv, "=")
				require.True(t, ok, line)
				r.fields[k] = v
			}
			if r.kind == "TRACE" {
				trace++
				require.Equal(t, "INFO", r.level)
			} else {
				detail++
				require.Equal(t, "DEBUG", r.level)
			}
			byPID[r.pid] = append(byPID[r.pid], r)
		}
	}
	return byPID, trace, detail, side
}

// us reads "12.345678" or "12.345678s" as µs.
func us(t *testing.T, text string) int64 {
	t.Helper()
	text = strings.TrimSuffix(text, "s")
	v, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	require.NoError(t, err)
	require.Equal(t, len(text)-7, strings.IndexByte(text, '.'))
	return v
}

// TestTextAgreesWithTruth finds every line of every function at its place in the truth.
func TestTextAgreesWithTruth(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
	}{
		{"workers", nil},
		{"coroutines without ids", func(o *Options) { o.Concurrency, o.NA = 5, 0.5 }},
		{"driver, ANSI, hosts", func(o *Options) {
			o.Out, o.IPs, o.Concurrency = o.Out+".log", []string{"10.4.1.33", "10.4.1.34"}, 2
		}},
		{"driver, plain", func(o *Options) { o.Out, o.Prefix = o.Out+".log", writer.PrefixRay }},
		{"broken", func(o *Options) { o.Crash, o.ComputeOnly, o.Batches = 0.3, 0.3, 20 }},
		{"no detail", func(o *Options) { o.Detail, o.Crash = false, 0.1 }},
		{"tiny durations", func(o *Options) { o.Scale, o.Concurrency = 0, 8 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, tt.change)
			run, truth := write(t, o)
			byPID, trace, detail, side := parse(t, &run)
			assert.Equal(t, run.Trace, trace)
			assert.Equal(t, run.Detail, detail)
			assert.Equal(t, run.Neighbours, side)
			assert.Equal(t, run.Lines, trace+detail+side)
			assert.Len(t, truth.Records, int(run.Functions))
			require.Len(t, truth.Records, o.Workers*o.Batches*len(o.Functions)*o.Concurrency)

			at := recordsAt(t, byPID)
			var spans, open, complete int64
			ids := map[string]bool{}
			for i := range truth.Records {
				f := &truth.Records[i]
				checkFunction(t, o, f, at)
				spans += int64(f.Spans)
				open += int64(f.OpenSpans)
				if f.Outcome == Complete {
					complete++
				}
				if f.TraceID != "N/A" {
					ids[f.TraceID] = true
				}
			}
			assert.Equal(t, run.Spans, spans)
			assert.Equal(t, run.OpenSpans, open)
			assert.Equal(t, run.Complete, complete)
			assert.Len(t, ids, int(run.TraceIDs))
			for key, r := range at {
				require.True(t, r.used, "no function of the truth has %s", key)
			}
		})
	}
}

// recordsAt keys the records by process, time and stage. The clock of a process never shows the same µs twice, but PUT_END and FUNCTION_END share one.
func recordsAt(t *testing.T, byPID map[string][]*record) map[string]*record {
	t.Helper()
	at := map[string]*record{}
	for pid, recs := range byPID {
		last := int64(-1)
		for _, r := range recs {
			ts := us(t, r.fields["timestamp"])
			if r.fields["stage"] == "FUNCTION_END" {
				require.Equal(t, last, ts)
			} else {
				require.Greater(t, ts, last)
			}
			last = ts
			at[pid+" "+r.fields["timestamp"]+" "+r.fields["stage"]] = r
		}
	}
	return at
}

// lines takes the lines of a function, each once.
type lines struct {
	o  *Options
	f  *Function
	at map[string]*record
}

func (l lines) take(t *testing.T, stage, perf string, wall int64) *record {
	t.Helper()
	f := l.f
	r := l.at[fmt.Sprintf("%d %s %s", f.PID, perf, stage)]
	require.NotNil(t, r, "%+v has no line %s", f, stage)
	require.False(t, r.used)
	r.used = true
	require.Equal(t, f.TraceID, r.fields["trace_id"])
	if fn, ok := r.fields["func"]; ok {
		require.Equal(t, f.Func, fn)
	}
	if pid, ok := r.fields["pid"]; ok {
		require.Equal(t, strconv.Itoa(f.PID), pid)
	}
	require.Equal(t, f.IP, r.ip)
	stamp, err := time.ParseInLocation("2006-01-02 15:04:05,000", r.stamp, l.o.Timezone)
	require.NoError(t, err)
	late := stamp.UnixNano() - wall // truncated to ms, logged within 20 µs of the reading
	require.True(t, late > -1e6 && late < 20_000, "stamp is %d ns after the reading", late)
	return r
}

func checkFunction(t *testing.T, o Options, f *Function, at map[string]*record) {
	t.Helper()
	l := lines{&o, f, at}
	spans, open := 1, 0
	count := func(done bool) {
		if done {
			spans++
		} else {
			open++
		}
	}
	require.Contains(t, l.take(t, "FUNCTION_START", f.PerfStart, f.StartUnixNano).fields, "pid")
	begin, edge := us(t, f.PerfStart), us(t, f.PerfStart)
	durations := map[string]int64{}
	for _, st := range f.Stages {
		upper := strings.ToUpper(st.Stage)
		l.take(t, upper+"_START", st.PerfStart, st.StartUnixNano)
		require.Greater(t, us(t, st.PerfStart), edge)
		edge = us(t, st.PerfStart)
		if c := st.Client; c != nil {
			require.Greater(t, us(t, c.PerfStart), edge)
			checkClient(t, l, &st)
			count(c.Done)
		}
		if st.Done {
			r := l.take(t, upper+"_END", st.PerfEnd, st.EndUnixNano)
			require.Equal(t, st.DurationUS, us(t, r.fields["duration"]))
			require.InDelta(t, us(t, st.PerfEnd)-us(t, st.PerfStart), st.DurationUS, 1)
			edge = us(t, st.PerfEnd)
			durations[st.Stage] = st.DurationUS
		}
		count(st.Done)
	}
	require.Equal(t, f.Spans, spans)
	require.Equal(t, f.OpenSpans, open)
	if f.Outcome != Complete {
		require.Nil(t, f.Ratios)
		require.Equal(t, f.Outcome == Open, open > 0)
		return
	}
	r := l.take(t, "FUNCTION_END", f.PerfEnd, f.EndUnixNano)
	require.Len(t, f.Stages, 3)
	require.Equal(t, f.DurationUS, us(t, r.fields["total_duration"]))
	require.InDelta(t, us(t, f.PerfEnd)-begin, f.DurationUS, 1)
	require.Equal(t, edge, us(t, f.PerfEnd))
	checkRatios(t, f, durations, r.fields)
}

// checkClient compares the lines of a stage's client with the truth.
func checkClient(t *testing.T, l lines, st *Stage) {
	t.Helper()
	c, name := st.Client, "TQ_CLIENT_"+strings.ToUpper(st.Stage)
	start := l.take(t, name+"_START", c.PerfStart, c.StartUnixNano)
	if !c.Done {
		return
	}
	size := ""
	end := l.take(t, name+"_END", c.PerfEnd, c.EndUnixNano)
	require.Equal(t, c.DurationUS, us(t, end.fields["duration"]))
	require.InDelta(t, us(t, c.PerfEnd)-us(t, c.PerfStart), c.DurationUS, 1)
	require.Less(t, us(t, c.PerfEnd), us(t, st.PerfEnd))
	if st.Stage == "get" {
		size = end.fields["data_size_mb"]
		require.Equal(t, strconv.Itoa(l.f.BatchSize), start.fields["batch_size"])
	} else {
		size = start.fields["data_size_mb"]
		require.Equal(t, fmt.Sprintf("torch.Size([%d])", l.f.BatchSize), start.fields["batch_size"])
		require.Equal(t, c.ThroughputMBps, end.fields["throughput_mbps"])
		rate, err := strconv.ParseFloat(c.ThroughputMBps, 64)
		require.NoError(t, err)
		seconds := float64(c.EndUnixNano-c.StartUnixNano) / 1e9
		require.InDelta(t, float64(c.TrueBytes)/(1<<20)/seconds, rate, 0.00501)
	}
	require.Equal(t, c.DataSizeMB, size)
	mib, err := strconv.ParseFloat(size, 64)
	require.NoError(t, err)
	require.Equal(t, int64(math.Round(mib*(1<<20))), c.DataSizeBytes)
	require.InDelta(t, float64(c.TrueBytes)/(1<<20), mib, 0.00501)
}

// checkRatios compares the shares of a complete function with its durations and with the printed ratios.
func checkRatios(t *testing.T, f *Function, durations map[string]int64, fields map[string]string) {
	t.Helper()
	for stage, ratio := range map[string]Ratio{"get": f.Ratios.Get, "compute": f.Ratios.Compute, "put": f.Ratios.Put} {
		require.Equal(t, durations[stage], ratio.Num)
		require.Equal(t, f.DurationUS, ratio.Den)
		require.InDelta(t, float64(ratio.Num)/float64(ratio.Den), ratio.Value, 1e-15)
		require.Equal(t, ratio.Printed+"%", fields[stage+"_ratio"])
		printed, err := strconv.ParseFloat(ratio.Printed, 64)
		require.NoError(t, err)
		// two decimals, and half a µs of rounding in each duration
		require.InDelta(t, ratio.Value*100, printed, 0.00501+100/float64(ratio.Den))
	}
	require.Equal(t, durations["get"]+durations["put"], f.Ratios.Overhead.Num)
}

func TestSameSeedSameBytes(t *testing.T) {
	text := func(change func(*Options)) string {
		o := options(t, func(o *Options) {
			o.Concurrency, o.NA, o.Crash = 2, 0.2, 0.1
			change(o)
		})
		o.Out = "-"
		var out bytes.Buffer
		_, err := Generate(t.Context(), o, &out)
		require.NoError(t, err)
		return out.String()
	}
	first := text(func(*Options) {})
	assert.Equal(t, first, text(func(*Options) {}))
	assert.NotEqual(t, first, text(func(o *Options) { o.Seed++ }))
}

func TestOverheadHigh(t *testing.T) {
	for _, share := range []float64{0, 1} {
		o := options(t, func(o *Options) { o.OverheadHigh, o.Batches = share, 30 })
		_, truth := write(t, o)
		for _, f := range truth.Records {
			assert.Equal(t, share == 1, f.Ratios.Overhead.Value > 0.30, "%v", f.Ratios.Overhead)
		}
	}
}

func TestEndsNowWithoutStart(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	o := options(t, func(o *Options) { o.Start = time.Time{} })
	run, err := generate(t.Context(), o, io.Discard, logfile.Clock{Now: func() time.Time { return now }})
	require.NoError(t, err)
	assert.InDelta(t, now.UnixNano(), run.EndUnixNano, 1e9)
}

// A paced run writes a line when the clock has reached its stamp, at the requested rate.
func TestRate(t *testing.T) {
	for _, rate := range []float64{1, 500, 20_000} {
		o := options(t, func(o *Options) { o.Start, o.Rate, o.Out, o.Batches = time.Time{}, rate, "-", 40 })
		c := &gentest.Clock{At: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
		begin := c.At
		w := gentest.Writer(func(p []byte) (int, error) { // called per flush: once per message
			if m := reStamp.FindSubmatch(bytes.TrimRight(rePrefix.ReplaceAll(bytes.SplitN(p, []byte("\n"), 2)[0], []byte("$3")), "\n")); m != nil {
				stamp, err := time.ParseInLocation("2006-01-02 15:04:05,000", string(m[2]), o.Timezone)
				assert.NoError(t, err)
				assert.False(t, stamp.After(c.At))
				assert.Less(t, c.At.Sub(stamp), 5*time.Millisecond)
			}
			return len(p), nil
		})
		run, err := generate(t.Context(), o, w, c.Clock())
		require.NoError(t, err)
		assert.InEpsilon(t, rate, float64(run.Lines)/c.At.Sub(begin).Seconds(), 0.02)
	}
}

// After a stop from outside the truth is closed, and running functions are open.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &gentest.Clock{At: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC), Stop: cancel}
	c.Until = c.At.Add(10 * time.Second)
	o := options(t, func(o *Options) { o.Start, o.Rate, o.Batches, o.Out = time.Time{}, 200, 0, o.Out+".log" })
	run, err := generate(ctx, o, io.Discard, c.Clock())
	require.NoError(t, err)
	truth, err := gentest.ReadTruth[Run, Function](o.truthPath())
	require.NoError(t, err)
	_, trace, detail, side := parse(t, &run)
	assert.Equal(t, run.Lines, trace+detail+side)
	assert.Equal(t, Open, truth.Records[len(truth.Records)-1].Outcome)
	assert.Positive(t, run.Complete)
}

func TestRotate(t *testing.T) {
	whole := options(t, func(o *Options) { o.Out += ".log" })
	write(t, whole)
	want, err := os.ReadFile(whole.Out)
	require.NoError(t, err)

	parts := options(t, func(o *Options) { o.Out, o.RotateEvery = o.Out+".log", 100 })
	run, _ := write(t, parts)
	require.Greater(t, run.Files[0].Rotated, 3)
	var got []byte
	for i := 1; i <= run.Files[0].Rotated; i++ {
		data, err := os.ReadFile(parts.Out + "." + strconv.Itoa(i))
		require.NoError(t, err)
		got = append(got, data...)
	}
	last, err := os.ReadFile(parts.Out)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(append(got, last...)))
}

func TestOptionErrors(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--workers", "0"}, "--workers 0: use 1 to 10000"},
		{[]string{"--batches", "0"}, "needs --rate"},
		{[]string{"--crash", "0.6", "--compute-only", "0.6"}, "crash + compute-only"},
		{[]string{"--prefix", "k8s"}, "--prefix \"k8s\""},
		{[]string{"--functions", "a|b"}, "--functions"},
		{[]string{"--rate", "5", "--duration-scale", "2"}, "drop one"},
		{[]string{"--start", "yesterday"}, "RFC 3339"},
		{[]string{"--timezone", "Mars/Base"}, "IANA"},
		{[]string{"--detail", "some"}, "use on or off"},
		{[]string{"--out", "-", "--rotate-every", "5"}, "cannot be rotated"},
		{[]string{"--concurrency", "0"}, "--concurrency"},
		{[]string{"--na", "NaN"}, "--na"},
		{[]string{"--duration-scale", "-1"}, "--duration-scale"},
	} {
		cmd := newCommand()
		cmd.SetArgs(tt.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		require.ErrorIs(t, err, logfile.ErrOptions)
		assert.ErrorContains(t, err, tt.says)
	}
}

func TestForeignLogIsNotOverwritten(t *testing.T) {
	o := options(t, func(o *Options) { o.Out += ".log" })
	require.NoError(t, os.WriteFile(o.Out, []byte("a real log\n"), 0o600))
	_, err := Generate(t.Context(), o, io.Discard)
	require.ErrorIs(t, err, logfile.ErrOptions)
	data, err := os.ReadFile(o.Out)
	require.NoError(t, err)
	assert.Equal(t, "a real log\n", string(data))
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(
		[]string{
			"--out", "-", "--truth", filepath.Join(dir, "t.json"), "--workers", "1", "--batches", "1", "--functions", "generate_sequences", "--detail", "off",
			"--prefix", "none",
		},
	)
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	assert.True(t, strings.HasPrefix(out.String(), "[TQ-TRACE] trace_id="), out.String())
	assert.Contains(t, errs.String(), "wrote 11 lines to 1 file(s) at -: 1 functions (1 complete) in 1 batches, 4 spans")
	truth, err := gentest.ReadTruth[Run, Function](filepath.Join(dir, "t.json"))
	require.NoError(t, err)
	assert.Len(t, truth.Records, 1)
}

func TestTruthOfARunningGenerator(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	require.NoError(t, os.WriteFile(path, []byte("{\"trace_id\":\"N/A\",\"stages\":[]}\n"), 0o600))
	truth, err := gentest.ReadTruth[Run, Function](path)
	require.ErrorIs(t, err, gentest.ErrTruthUnfinished)
	assert.Len(t, truth.Records, 1)
}

func BenchmarkGenerate(b *testing.B) {
	o := DefaultOptions()
	o.Out, o.Workers, o.Batches, o.Start = "-", 8, 100, time.Unix(1770000000, 0)
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
}

//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/spans"
)

// says waits for lines of the collector's log, in any order.
func (c *collector) says(tb testing.TB, lines ...string) {
	tb.Helper()
	eventually(tb, func() error {
		out := c.output(tb)
		for _, l := range lines {
			if !regexp.MustCompile(l).MatchString(out) {
				return fmt.Errorf("no line like %q in\n%s", l, out)
			}
		}
		return nil
	})
}

// lineCount is the number of lines in the log, without the lines about the terminating signal.
func (c *collector) lineCount(tb testing.TB) int {
	tb.Helper()
	return strings.Count(c.output(tb), "\n")
}

var (
	blob  = regexp.MustCompile(`service\.instance\.id|otelcol\.signal|otelcol\.component\.kind`)
	dumps = regexp.MustCompile(`\{"[A-Z]\w+":\{|\{0x[0-9a-f]+|&\{`)
)

// checkPlain checks that the log is short and readable.
func (c *collector) checkPlain(tb testing.TB) {
	tb.Helper()
	out := c.output(tb)
	assert.LessOrEqual(tb, c.lineCount(tb), 6, out)
	assert.NotRegexp(tb, blob, out)
	assert.NotRegexp(tb, dumps, out)
	assert.NotRegexp(tb, stack, out)
}

// withoutLogs is a collector with the defaults of the shipped config, except its ports, in a directory of its own.
func withoutLogs(tb testing.TB, backend string, env ...string) *collector {
	tb.Helper()
	c := newCollector(tb, trainbridgeBin(tb), "", backend)
	c.env = append(slices.DeleteFunc(c.env, func(v string) bool { return strings.HasPrefix(v, "TRAINBRIDGE_TQ_LOGS=") }), env...)
	return c
}

// A start that finds nothing to read reports the searched places and a remedy, in one of at most six lines.
func TestSilenceOfEmptyGlobs(t *testing.T) {
	t.Parallel()
	c := withoutLogs(t, freeAddr(t))
	c.up(t)
	c.says(t, `No log to read: nothing matches .*worker-\*\.err \(tq_trace\).*logs/nccl/\* \(nccl\).*Name your logs in TRAINBRIDGE_LOGS`)
	time.Sleep(2 * time.Second) // nothing more is to come
	c.checkPlain(t)
	c.assertQuiet(t)
	c.stop(t)

	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "run"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "real"), nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "a.link")))
	c = withoutLogs(t, freeAddr(t), fmt.Sprintf("TRAINBRIDGE_LOGS=%[1]s/run,%[1]s/*.link", dir))
	c.up(t)
	c.says(
		t, regexp.QuoteMeta(dir+"/run is a directory: write "+dir+"/run/* for its files"),
		`1 symbolic link passed over, such as .*/a\.link: 'follow_symlinks: true' reads`,
	)
	c.checkPlain(t)
	c.stop(t)
}

// An unrecognized log is named within seconds, with its first line, without its secrets; ten thousand such logs are one line.
func TestSilenceOfUnknownLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := "sk-" + strings.Repeat("a1B2", 10)
	text := strings.Repeat("some words api_key="+secret+"\n", 200)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.log"), []byte(text), 0o600))
	c := withoutLogs(t, freeAddr(t), "TRAINBRIDGE_LOGS="+dir+"/*")
	c.up(t)
	c.says(t, `/x\.log: 200 lines, no record: no receiver understands it so far; first line: some words api_key=\[redacted\]`)
	c.checkPlain(t)
	assert.NotContains(t, c.output(t), secret)
	c.stop(t)

	c = withoutLogs(t, freeAddr(t), "TRAINBRIDGE_TRAIN_LOGS="+dir+"/*")
	c.up(t)
	c.says(t, `train_log: .*/x\.log: 200 lines, no record; it looks like none of the logs that are known here; first line: some words api_key=\[redacted\]`)
	c.stop(t)

	zmq := generateZMQ(t, filepath.Join(t.TempDir(), "zmq.log"), "zeromq", "--passes", "5")
	c = withoutLogs(t, freeAddr(t), "TRAINBRIDGE_TRAIN_LOGS="+zmq.path)
	c.up(t)
	c.says(
		t,
		`train_log: .*/zmq\.log: \d+ lines, no record; it looks like a log for zmq_rpc: name it in 'include' of that one, or all logs in TRAINBRIDGE_LOGS; `+
			`first line: ZeroMQ`,
	)
	c.stop(t)

	many := t.TempDir()
	for i := range 10_000 {
		require.NoError(t, os.WriteFile(filepath.Join(many, fmt.Sprintf("%05d.txt", i)), []byte("one\ntwo\n"), 0o600))
	}
	c = withoutLogs(t, freeAddr(t), "TRAINBRIDGE_LOGS="+many+"/*")
	c.up(t)
	eventually(t, func() error {
		if !c.logged("No receiver understands 10000 files with 20000 lines so far, such as ") {
			return errors.New("not said yet")
		}
		return nil
	})
	c.checkPlain(t)
	c.stop(t)
}

// Logs whose ids are all N/A, and Ray's deduplication: each gets one line with a remedy.
func TestSilenceOfTransferQueue(t *testing.T) {
	t.Parallel()
	j, logs := startJaeger(t), t.TempDir()
	generate(t, logs, "--workers", "3", "--batches", "10", "--na", "1", "--seed", "3")
	ray := "\x1b[36m(AgentLoopWorker pid=17)\x1b[0m INFO:2026-03-05 09:30:00,005:[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=COMPUTE_END | " +
		"duration=0.400000s | timestamp=50000.435029\x1b[32m [repeated 7x across cluster]\x1b[0m\n"
	require.NoError(t, os.WriteFile(filepath.Join(logs, "driver.log"), []byte(strings.Repeat(ray, 20)), 0o600))
	c := newCollector(t, trainbridgeBin(t), logs+"/*.err,"+logs+"/*.log", j.otlp)
	c.up(t)
	c.says(t, `tq_trace: trace_id is N/A in all \d+ records of .*extra_info\["trace_id"\]`, `tq_trace: Ray drops lines that are alike .*RAY_DEDUP_LOGS=0`)
	c.stop(t)
	for _, words := range []string{"trace_id is N/A", "RAY_DEDUP_LOGS"} {
		assert.Equal(t, 1, strings.Count(c.output(t), words), words)
	}
}

// logsOfAnyKind writes logs of all kinds into a directory. It returns the expected number of lines per receiver, and the number of files.
func logsOfAnyKind(t *testing.T, dir string) (lines map[string]int64, files int) {
	t.Helper()
	generate(t, filepath.Join(dir, "tq"), "--workers", "3", "--batches", "5", "--seed", "3")
	generateTrainIn(t, filepath.Join(dir, "megatron"), "megatron", "train_log", "--steps", "20")
	generateTrainIn(t, filepath.Join(dir, "perf"), "flagscale", "flagscale", "--steps", "20")
	generateTrainIn(t, filepath.Join(dir, "hf"), "hf", "train_log", "--steps", "50")
	generateTrainIn(t, filepath.Join(dir, "jsonl"), "jsonl", "train_log", "--steps", "50")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "zmq"), 0o755))
	generateZMQ(t, filepath.Join(dir, "zmq", "zmq.log"), "zeromq", "--passes", "2", "--seed", "7")
	generateNCCLInto(t, filepath.Join(dir, "nccl"), "nccl", "--ranks", "4", "--steps", "10", "--seed", "7")
	receivers := map[string]string{
		"tq": "tq_trace", "megatron": "train_log", "hf": "train_log", "jsonl": "train_log", "perf": "flagscale", "zmq": "zmq_rpc", "nccl": "nccl",
	}
	lines = map[string]int64{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasSuffix(path, "truth.json") {
			return os.Remove(path)
		}
		text, err := os.ReadFile(path)
		n := int64(bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r"))) // progress bars end their lines with \r
		if strings.HasSuffix(path, ".json") {                                         // read whole
			n = 1
		}
		rel, _ := filepath.Rel(dir, path)
		kind, _, _ := strings.Cut(rel, "/")
		lines[receivers[kind]] += n
		files++
		return err
	}))
	return lines, files
}

// hasSpans returns an error with the names missing among the spans of a service.
func hasSpans(j *jaeger, service string, names ...string) error {
	td, err := j.find(service)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				there[s.Name()] = true
			}
		}
	}
	for _, name := range names {
		if !there[name] {
			return fmt.Errorf("no %s among the spans of %s", name, service)
		}
	}
	return nil
}

// One variable for logs of all kinds: each file is read once, by the receiver of its format, and belongs to the job. A second start reports why nothing more
// comes.
func TestLogsOfAnyKind(t *testing.T) {
	t.Parallel()
	j, dir := startJaeger(t), t.TempDir()
	want, files := logsOfAnyKind(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty.log"), nil, 0o600))
	c := withoutLogs(t, j.otlp, "TRAINBRIDGE_LOGS="+dir+"/**", "TRAINBRIDGE_SERVICE=job-17")
	c.up(t)
	c.says(t, fmt.Sprintf(`Reading %d files, .*: `, files))
	eventually(t, func() error {
		all, err := c.accounts()
		if err != nil {
			return err
		}
		delete(all, "run_events") // no log is left for run_events
		got := map[string]int64{}
		for receiver, a := range all {
			got[receiver] = a["lines"]
			if a["lines"] != a["records"]+a["ignored"]+a["rejected"] || a["records"] != a["sent"] || a["rejected"]+a["refused"]+a["pending"] != 0 || a["records"] == 0 {
				return fmt.Errorf("%s: %v", receiver, a)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("lines %v, want %v", got, want)
		}
		return nil
	})
	eventually(t, func() error {
		return hasSpans(j, "job-17", "generate_sequences", spans.SpanStep, spans.SpanRPCPass)
	})
	c.stop(t)
	assert.NotContains(t, c.output(t), "no record")

	// Formerly empty files, and new files, go to their receivers, too.
	c.up(t)
	c.says(t, fmt.Sprintf(`Reading %d files, .* already read to the end: to read them again, stop, remove /\S+ and start`, files))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty.log"), []byte("{\"step\": 1, \"loss\": 2.5}\n"), 0o600))
	eventually(t, func() error {
		all, err := c.accounts()
		if err != nil {
			return err
		}
		for receiver, a := range all {
			if n := a["lines"]; n != map[bool]int64{true: 1}[receiver == "train_log"] {
				return fmt.Errorf("%s: %d lines", receiver, n)
			}
		}
		return nil
	})
	c.stop(t)
}

// The fixtures of each receiver, covering all its formats, go to no other receiver.
func TestFixturesByContent(t *testing.T) {
	t.Parallel()
	for dir, receiver := range map[string]string{
		"tqtracereceiver": "tq_trace", "trainlogreceiver": "train_log", "flagscalereceiver": "flagscale", "zmqrpcreceiver": "zmq_rpc", "ncclreceiver": "nccl",
	} {
		fixtures, err := filepath.Abs(filepath.Join(repoRoot, "receivers", dir, "testdata"))
		require.NoError(t, err)
		c := withoutLogs(t, freeAddr(t), fmt.Sprintf("TRAINBRIDGE_LOGS=%[1]s/**/*.log,%[1]s/**/*.json,%[1]s/**/*.jsonl,%[1]s/**/*.csv", fixtures))
		c.up(t)
		c.says(t, "Reading ")
		eventually(t, func() error {
			list, err := c.ownMetrics()
			watched := make(map[string]bool) // by receivers
			for _, m := range list {
				if m.name == "trainbridge_tail_files" && m.labels["state"] == "watched" && m.value > 0 {
					watched[m.labels["receiver"]] = true
				}
			}
			if err == nil && !maps.Equal(watched, map[string]bool{receiver: true}) {
				err = fmt.Errorf("%s is read by %v", dir, watched)
			}
			return err
		})
		c.kill()
	}
}

// The output of verl's driver holds steps of verl, and lines of TransferQueue that Ray forwards from the workers. Two receivers read the file, whichever line
// comes first, also behind a restart of the collector. An error is told once.
func TestTwoKindsInOneLog(t *testing.T) {
	t.Parallel()
	step := func(n int) string {
		return fmt.Sprintf("(TaskRunner pid=42) step:%d - actor/pg_loss:-0.01 - timing_s/gen:60.5 - timing_s/step:90.5\n", n)
	}
	const died = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
	for name, log := range map[string][]string{"a call first": {waterfall("N/A", time.Now()), step(1) + died}, "a step first": {step(1), waterfall("N/A", time.Now()) + died}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink, dir := startSpanSink(t), t.TempDir()
			c := withoutLogs(t, sink.addr, "TRAINBRIDGE_LOGS="+dir+"/*", "TRAINBRIDGE_SERVICE=rl")
			c.up(t)
			file, err := os.OpenFile(filepath.Join(dir, "driver.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			require.NoError(t, err)
			defer file.Close()
			await := func(steps, calls int) {
				eventually(t, func() error {
					n := map[string]int{}
					for _, text := range sink.with(func(string) bool { return true }) {
						n[strings.Fields(text)[0]]++
					}
					if n["train.step"] != steps || n["rollout"] != calls || n[spans.SpanEvent] != 1 {
						return fmt.Errorf("%v", n)
					}
					return nil
				})
			}
			for _, part := range log {
				_, err := file.WriteString(part)
				require.NoError(t, err)
			}
			await(1, 1)
			c.stop(t)
			c.up(t)
			_, err = file.WriteString(step(2) + waterfall("N/A", time.Now().Add(time.Second)))
			require.NoError(t, err)
			await(2, 2)
			c.stop(t)
			assert.Zero(t, sink.copies)
		})
	}
}

// Metrics report the reading progress: here with a backlog that waits for its backend.
func TestProgress(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	generate(t, logs, "--workers", "4", "--batches", "3000", "--seed", "3")
	size := int64(0)
	names, err := filepath.Glob(globOf(logs))
	require.NoError(t, err)
	for _, name := range names {
		fi, err := os.Stat(name)
		require.NoError(t, err)
		size += fi.Size()
	}
	c := newCollector(t, trainbridgeBin(t), globOf(logs), freeAddr(t))
	c.up(t)
	eventually(t, func() error {
		list, err := c.ownMetrics()
		if err != nil {
			return err
		}
		got := map[string]float64{}
		for _, m := range list {
			if m.labels["receiver"] == "tq_trace" {
				got[strings.TrimPrefix(m.name, "trainbridge_tail_")] += m.value
			}
		}
		read := got["bytes_total"] + got["bytes"]
		if int64(got["size"]) != size || read == 0 || int64(read+got["lag"]) != size || got["lag_time"]+got["lag_time_seconds"] <= 0 {
			return fmt.Errorf("%v of %d", got, size)
		}
		return nil
	})
	eventually(t, func() error {
		if !regexp.MustCompile(`tq_trace: [\d.]+( [KMG]iB)? of [\d.]+ [KMG]iB read \(\d+ %\)`).MatchString(c.output(t)) {
			return errors.New("no line says how far it is")
		}
		return nil
	})
	c.kill()
}

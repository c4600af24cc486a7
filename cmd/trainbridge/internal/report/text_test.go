package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/test/gen/commands"
)

var update = flag.Bool("update", false, "write the golden files anew")

const testStart = "2026-11-20T08:00:00Z"

// generate makes logs by `trainbridge gen run`, or of a kind by bin/gen.
func generate(t *testing.T, args ...string) {
	t.Helper()
	cmd := commands.New()
	if args[0] == "run" {
		cmd = gen.NewCommand()
	}
	cmd.SetArgs(args)
	cmd.SetOut(testWriter{t})
	cmd.SetErr(testWriter{t})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(b))
	return len(b), nil
}

// truth is the truth of `gen run` about its job.
type truth struct {
	Ranks int `json:"ranks"`
	Steps []struct {
		Step  int `json:"step"`
		Cause *struct {
			Kind    string  `json:"kind"`
			Rank    int     `json:"rank"`
			Seconds float64 `json:"seconds"`
		} `json:"cause"`
	} `json:"steps"`
}

// job makes the logs of a job, and takes the truth from beside them.
func job(t *testing.T, dir string, args ...string) truth {
	t.Helper()
	generate(t, append([]string{"run", dir, "--start", testStart}, args...)...)
	path := filepath.Join(dir, "truth.json")
	body, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	var out truth
	require.NoError(t, json.Unmarshal(body, &out))
	return out
}

// text is the report of logs.
func textOf(t *testing.T, args ...string) string {
	t.Helper()
	out, err := report(t, "", append(args, "--full")...)
	require.NoError(t, err)
	return out
}

var (
	claimLine = regexp.MustCompile(`(?m)^ *(\d+)\. ([\d.]+) (s|ms) \(([\d.]+) GPU-seconds\) (.+?), in (\d+) steps?\.$`)
	ofRank    = regexp.MustCompile(`^waiting for rank (\d+)`)
)

// told are the causes of a report: seconds and steps by name.
func told(t *testing.T, text string) (costs map[string]float64, steps map[string]int, order []float64) {
	t.Helper()
	costs, steps = map[string]float64{}, map[string]int{}
	for _, m := range claimLine.FindAllStringSubmatch(text, -1) {
		seconds, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err)
		if m[3] == "ms" {
			seconds /= 1e3
		}
		what := m[5]
		if rank := ofRank.FindStringSubmatch(what); rank != nil {
			what = "rank " + rank[1]
		}
		costs[what], steps[what] = seconds, func() int { n, _ := strconv.Atoi(m[6]); return n }()
		order = append(order, seconds)
	}
	return costs, steps, order
}

// The causes in a report, their ranks and costs are the generator's.
func TestTruth(t *testing.T) {
	for seed, ids := range map[string]string{"1": "uuid", "2": "none", "3": "uuid"} {
		dir := t.TempDir()
		truth := job(t, dir, "--ranks", "4", "--steps", "70", "--seed", seed, "--ids", ids, "--faults", "straggler,get,data_loading")
		want, count := map[string]float64{}, map[string]int{}
		for _, s := range truth.Steps {
			if s.Cause == nil {
				continue
			}
			what := map[string]string{"get": "in TransferQueue GET", "data_loading": "loading data"}[s.Cause.Kind]
			if s.Cause.Kind == "straggler" {
				what = fmt.Sprintf("rank %d", s.Cause.Rank)
			}
			want[what] += s.Cause.Seconds
			count[what]++
		}
		text := textOf(t, dir)
		costs, steps, order := told(t, text)
		delete(costs, "that no log explains")
		assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(costs)), text)
		for what, seconds := range want {
			assert.InDelta(t, seconds, costs[what], 0.1*seconds, "seed %s: %s", seed, what)
			assert.Equal(t, count[what], steps[what], "seed %s: %s", seed, what)
		}
		assert.True(t, slices.IsSortedFunc(order, func(a, b float64) int { return int(math.Copysign(1, b-a)) }), "%v", order)
		for what := range want {
			if strings.HasPrefix(what, "rank") {
				assert.Regexp(t, what+` was .* late, nccl/rank_\d+\.json:\d+, trace [0-9a-f]{32}\n`, text)
			}
		}
		assert.Regexp(t, `\n    step \d+ \([\d.]+ m?s\), train/train\.jsonl:\d+, trace [0-9a-f]{32}\n`, text)
	}
}

// The named line is the record of the step.
func TestEvidence(t *testing.T) {
	dir := t.TempDir()
	job(t, dir, "--ranks", "2", "--steps", "40", "--faults", "data_loading")
	text := textOf(t, dir)
	m := regexp.MustCompile(`step (\d+) \([^)]*\), (train/train\.jsonl):(\d+), trace ([0-9a-f]{32})\n`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, m)
	body, err := os.ReadFile(filepath.Join(dir, m[0][2]))
	require.NoError(t, err)
	lines := strings.Split(string(body), "\n")
	for _, m := range m {
		n, err := strconv.Atoi(m[3])
		require.NoError(t, err)
		assert.Contains(t, lines[n-1], `"step": `+m[1]+`,`)
		assert.Contains(t, strings.ReplaceAll(lines[n-1], "-", ""), m[4])
	}
}

// A healthy run is called healthy, and nobody is accused.
func TestHealthy(t *testing.T) {
	dir := t.TempDir()
	job(t, dir, "--ranks", "4", "--steps", "70", "--fault-every", "1000000", "--checkpoint-every", "0", "--eval-every", "0")
	text := textOf(t, dir)
	assert.Contains(t, text, "\nHealthy. None of 70 steps was slow. ")
	assert.NotContains(t, text, "Why, what it cost")
	assert.NotContains(t, text, "slow and took")
	assert.Contains(t, textOf(t, dir, "--lang", "zh"), "\n正常：70 步中没有偏慢的。")
}

// Calls without an id are each counted, as stated.
func TestWithoutIDs(t *testing.T) {
	dir := t.TempDir()
	job(t, dir, "--ranks", "2", "--steps", "40", "--clocks", "na", "--ids", "none", "--faults", "get")
	text := textOf(t, dir)
	assert.Contains(t, text, "  240 of 240 calls have no id (N/A). Each is counted here; analyze_tq_logs.py keeps one of each")
	assert.Contains(t, text, "- Which calls belong to one batch: 240 of 240 TransferQueue calls have no trace")
	assert.Equal(t, 3, strings.Count(text, "  Calls:                    80\n"), text)
	assert.Contains(t, text, " in TransferQueue GET, in ")
}

// Calls with an id that did not end leave no question about ids.
func TestIncompleteWithIDs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tq.log")
	line := "INFO:2026-11-23 02:00:00,005:[TQ-TRACE] trace_id=b0a9f2ce-6d0e-4c53-9a55-0b4d9a8f0c11 | func=rollout | pid=7 | stage=FUNCTION_START | timestamp=1795399200.005000\n"
	require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
	text := textOf(t, file)
	assert.Contains(t, text, "  Without an end:           1\n")
	assert.NotContains(t, text, "Which calls belong to one batch")
}

// Each of two jobs is told as if alone.
func TestTwoJobs(t *testing.T) {
	dir := t.TempDir()
	generate(t, "run", dir, "--start", testStart, "--ranks", "2", "--steps", "30", "--clocks", "twojobs", "--faults", "straggler,get")
	for _, name := range []string{"job-0", "job-1"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name, "truth.json")))
	}
	both := textOf(t, dir)
	assert.Equal(t, 2, strings.Count(both, "\nRun "), both)
	for _, name := range []string{"job-0", "job-1"} {
		one := textOf(t, filepath.Join(dir, name))
		_, body, ok := strings.Cut(one, filepath.Join(dir, name)+"\n")
		require.True(t, ok)
		body = regexp.MustCompile(`trace [0-9a-f]{32}`).ReplaceAllString(body, "")
		assert.Contains(t, regexp.MustCompile(`trace [0-9a-f]{32}`).ReplaceAllString(both, ""), strings.TrimRight(body, "\n"))
	}
}

// The same logs give the same report, in English and in Chinese.
func TestGolden(t *testing.T) {
	dir := t.TempDir()
	job(t, dir, "--ranks", "2", "--steps", "30", "--faults", "straggler,data_loading")
	for _, lang := range []string{"en", "zh"} {
		file := filepath.Join("testdata", "job."+lang+".txt")
		for range 5 {
			got := strings.ReplaceAll(textOf(t, dir, "--lang", lang, "--run", "job", "--device", "H100 SXM"), dir, "/logs")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		}
	}
}

// Compressed logs and the standard input give the same figures.
func TestWaysIn(t *testing.T) {
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "plain"), filepath.Join(dir, "packed")
	require.NoError(t, os.Mkdir(plain, 0o700))
	generate(t, "zmq", "--out", filepath.Join(plain, "zmq.log"), "--passes", "3", "--truth", "none", "--start", testStart)
	body, err := os.ReadFile(filepath.Join(plain, "zmq.log"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(packed, 0o700))
	f, err := os.Create(filepath.Join(packed, "zmq.log.gz"))
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write(body)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	figures := func(text string) string {
		_, text, ok := strings.Cut(text, "OVERALL STATISTICS")
		require.True(t, ok, text)
		return strings.ReplaceAll(text, "zmq.log.gz", "zmq.log")
	}
	want := figures(textOf(t, plain))
	assert.Equal(t, want, figures(textOf(t, packed)))
	out, err := report(t, string(body), "-", "--full")
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(want, "zmq.log", "-"), strings.ReplaceAll(figures(out), "zmq.log", "-"))
	assert.Contains(t, out, " in 1 file of the standard input\n")
}

// Names of logs cannot inject into a terminal.
func TestHostileNames(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[31m\u202e\u009b"
	dir := filepath.Join(t.TempDir(), "logs\x1b[2J")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, body := range map[string]string{
		"tq.log": strings.Repeat(
			"INFO:2026-02-11 16:40:00,120:[TQ-TRACE] trace_id=a"+evil+" | func=f"+evil+" | stage=FUNCTION_END | total_duration=0.9s | get_ratio=90.00% | "+
				"compute_ratio=5.00% | put_ratio=5.00% | timestamp=98231.4\n", 3),
		"nccl\n.jsonl": `{"timestamp":1693958400.123,"rank":0,"operation":"all` + "\\u001b[31m" + `","message_size":4194304,"duration_us":1250.5,"bandwidth_gbps":26.8,` +
			`"src_rank":0,"dst_rank":1,"error_count":3}` + "\n",
		"zmq.log": "ZeroMQ Performance Log - Transport: IPC\n====\nID Method Serialize(ms) Send(ms) Recv(ms) Deserialize(ms) Total(ms) Sent(KB) Recv(KB) Throughput(MB/s)\n====\n" +
			"1 M" + evil + " 0.1 0.1 0.1 0.1 0.5 0.15 125.34 255.23\n",
		"train.jsonl": `{"step":1,"loss":"NaN","source":"` + `\u001b[2J"` + "}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	for _, lang := range []string{"en", "zh"} {
		out := textOf(t, dir, "--lang", lang, "--run", "r"+evil)
		for _, r := range out {
			require.True(t, r == '\n' || unicode.IsPrint(r), "%q in %q", r, out)
		}
	}
}

// A loss is told with its step if the log numbers steps, several are losses, and a number of hundreds of digits keeps to its column.
func TestLossesInWords(t *testing.T) {
	var body strings.Builder
	for i, rest := range []string{`"step":0,"loss":1.5`, `"step":1,"loss":NaN`, `"step":2,"loss":NaN`, `"step":3,"loss":2.5,"tokens_per_second":1e308,"mfu":1e300`} {
		fmt.Fprintf(&body, `{"timestamp":"2026-01-02T03:04:%02dZ","step_time_s":1.0,%s}`+"\n", i, rest)
	}
	log := write1(t, "train.jsonl", body.String())
	out := textOf(t, log)
	assert.Contains(t, out, "1.5 at step 0 → 2.5 at step 3, lowest 1.5 at step 0\n")
	assert.Contains(t, out, "2 losses\n")
	assert.Contains(t, textOf(t, log, "--lang", "zh"), "1.5（第 0 步）→ 2.5（第 3 步），最低 1.5（第 0 步）\n")
	assert.Equal(t, "1.5", new(page).lossAt(&digest.LossAt{Value: 1.5}))
	for line := range strings.Lines(out) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 120, line)
	}
	assert.Contains(t, out, "1e+308")
}

// An interval of time may be empty, and a log may have no record.
func TestNothingBetween(t *testing.T) {
	dir := t.TempDir()
	job(t, dir, "--ranks", "2", "--steps", "12")
	assert.Contains(t, textOf(t, dir, "--until", "2001-01-01"), "There is nothing in these logs between --since and --until.")
	head := write1(t, "performance.csv", "ID,Method,Serialize_ms,Send_ms,Recv_ms,Deserialize_ms,Total_ms,Sent_KB,Recv_KB,Throughput_MBps\n")
	assert.Contains(t, textOf(t, head), "There is nothing in these logs.\n")
}

// A rank late in each step makes no step slower than usual: the cost for the others is told by itself.
func TestStraggler(t *testing.T) {
	dir := t.TempDir()
	generate(t, "nccl", "--out", dir, "--ranks", "8", "--nodes", "1", "--slow-rank", "5", "--slow-by", "0.1", "--steps", "80", "--verbose", "--truth", "none",
		"--start", testStart)
	text := textOf(t, dir)
	assert.Regexp(t, `\n[\d.]+ ms of [\d.]+ s lost \([\d.]+%\) in the job: waiting\s+for\s+rank\s+5\s+on\s+\S+\.`, text)
	assert.Regexp(t, `\n 1. The others waited [\d.]+ GPU-seconds for rank 5 on \S+, [\d.]+% of all time, in \d+\s+of\s+\d+\s+collectives`, text)
	assert.Equal(t, 1, strings.Count(text, "\n 1. The others waited"), text)
	assert.NotContains(t, text, "\n 2. ")
}

// Records of several steps are not called steps.
func TestSeveralSteps(t *testing.T) {
	file := filepath.Join(t.TempDir(), "megatron.log")
	generate(t, "megatron", "--out", file, "--truth", "none", "--start", testStart)
	text := textOf(t, file)
	assert.Regexp(t, `\n[\d.]+ s of [\w ]+ lost \([\d.]+%\) in 991 steps: start-up\. None\s+of\s+100\s+records\s+of\s+steps\s+was\s+slow[.;]`, text)
	assert.Regexp(t, `\n  evaluations +72\.7 s `, text, "the log has their results, and not how long they took")
	assert.Contains(t, textOf(t, file, "--device", "H100 SXM"), "MFU is 11.2%")
}

// Of a short run nothing is said to be usual.
func TestShortRun(t *testing.T) {
	dir := t.TempDir()
	job(t, dir, "--ranks", "2", "--steps", "8", "--fault-every", "1000000")
	text := textOf(t, dir)
	assert.Contains(t, text, "  - Whether slow: 8 of 8 steps; too few are alike, or logs are missing.\n")
	assert.NotContains(t, text, "Healthy")
}

// Logs in several directories below the root are not of the standard input.
func TestSource(t *testing.T) {
	p := &page{}
	assert.Equal(t, "/data/job", p.source("/data/job/"))
	assert.Equal(t, "/", p.source("/"))
	assert.Equal(t, "the standard input", p.source(""))
}

package csv

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const receivers = "../../../../../receivers/"

// read makes the tables of logs, and reads the tables as a user's program does: by the names of columns.
func read(t *testing.T, paths ...string) (map[string][]map[string]string, *offline.Reading) {
	t.Helper()
	in, err := offline.Open(paths, strings.NewReader(""))
	require.NoError(t, err)
	defer in.Close()
	all := records.New(t.TempDir(), in.Name)
	reading, err := offline.Read(t.Context(), in, offline.Options{Positions: true}, format.Records(all))
	require.NoError(t, err)
	require.True(t, all.Jobs((&format.Request{}).Concluded(reading)))
	out := make(map[string][]map[string]string)
	for _, name := range records.Names() {
		var text bytes.Buffer
		require.NoError(t, all.Write(name, &text))
		lines, err := csv.NewReader(&text).ReadAll()
		require.NoError(t, err)
		require.NotEmpty(t, lines)
		for _, line := range lines[1:] {
			row := make(map[string]string)
			for i, name := range lines[0] {
				row[name] = line[i]
			}
			at, err := time.Parse(time.RFC3339Nano, row["time"])
			require.NoError(t, err)
			require.Equal(t, "Z", row["time"][len(row["time"])-1:])
			require.Len(t, row["time"], len("2006-01-02T15:04:05.000000000Z"), at)
			require.NotEmpty(t, row["run"])
			out[name] = append(out[name], row)
		}
		require.Equal(t, int64(len(out[name])), all.Rows(name))
	}
	require.NoError(t, all.Close())
	return out, reading
}

// equal compares a cell with the log.
func equal(t *testing.T, logged, cell, what string) {
	t.Helper()
	want, err := strconv.ParseFloat(logged, 64)
	require.NoError(t, err, what)
	got, err := strconv.ParseFloat(cell, 64)
	require.NoError(t, err, "%s: log %s", what, logged)
	if math.IsNaN(want) || math.IsInf(want, 0) {
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(got), what)
		return
	}
	assert.InDelta(t, want, got, 1e-9*math.Max(1, math.Abs(want)), what)
}

// lineAt is the line of a log from an offset on.
func lineAt(t *testing.T, row map[string]string) string {
	t.Helper()
	at, err := strconv.ParseInt(row["offset"], 10, 64)
	require.NoError(t, err)
	file, err := os.Open(row["file"])
	require.NoError(t, err)
	defer file.Close()
	text := make([]byte, 4096)
	n, err := file.ReadAt(text, at)
	if err != nil {
		require.ErrorIs(t, err, io.EOF)
	}
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	return line
}

// The export of the ZeroMQ log: each row has the numbers of its line, by the guide's names and units.
func TestRPCCalls(t *testing.T) {
	for _, file := range []string{"v1.log", "v2.log", "v3.log", "v4.log", "tcp.log", "crashed.log"} {
		path := receivers + "zmqrpcreceiver/testdata/" + file
		tables, reading := read(t, path)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var header []string
		lines := 0
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) == 0 {
				continue
			}
			if f[0] == "ID" {
				header = f
			}
			if _, err := strconv.Atoi(f[0]); err == nil && len(f) == len(header) {
				lines++
			}
		}
		names := map[string]string{
			"ID": "ID", "Serialize(ms)": "Serialize_ms", "Ser(ms)": "Serialize_ms", "Send(ms)": "Send_ms", "Recv(ms)": "Recv_ms", "Deserialize(ms)": "Deserialize_ms",
			"Deser(ms)": "Deserialize_ms", "Total(ms)": "Total_ms", "Sent(KB)": "Sent_KB", "Recv(KB)": "Recv_KB", "Throughput(MB/s)": "Throughput_MBps",
			"GPU(ms)": "Server_ms", "Compute(ms)": "Server_ms", "Offline(ms)": "Offline_ms",
		}
		calls := tables["rpc_calls"]
		require.Len(t, calls, lines, file)
		for _, row := range calls {
			cells := strings.Fields(lineAt(t, row))
			require.Len(t, cells, len(header), "%s: %v", file, row)
			assert.Equal(t, cells[1], row["Method"])
			for i, name := range header {
				if column := names[name]; column != "" && (column != "Throughput_MBps" || row["transport"] == "IPC" || row["transport"] == "TCP") {
					equal(t, cells[i], row[column], file+" "+name)
				}
			}
		}
		// Every record is a row: of calls, or of the summary.
		assert.Equal(t, reading.Files[0].Records, int64(lines+len(tables["summaries"])-derived(tables["summaries"])), file)
	}
}

// derived counts the statistics without a line of their own: compared figures, and figures in parentheses behind a name.
func derived(rows []map[string]string) (n int) {
	for _, row := range rows {
		if row["statistic"] == "disagreement" || strings.HasSuffix(row["statistic"], ".detail") {
			n++
		}
	}
	return n
}

// VCCL's telemetry by its own names.
func TestCollectiveRanks(t *testing.T) {
	dir := receivers + "ncclreceiver/testdata/vccl_json"
	tables, reading := read(t, dir)
	type key struct{ at, rank, operation string }
	keyOf := func(at, rank float64, operation string) key {
		return key{fmt.Sprintf("%.6f", at), fmt.Sprint(rank), strings.ReplaceAll(strings.ToLower(operation), "_", "")}
	}
	logged := make(map[key]map[string]any)
	for _, f := range reading.Files {
		text, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
			var one json.RawMessage
			require.NoError(t, d.Decode(&one))
			var recs []map[string]any
			if one[0] != '[' {
				one = json.RawMessage("[" + string(one) + "]")
			}
			require.NoError(t, json.Unmarshal(one, &recs))
			for _, rec := range recs {
				logged[keyOf(rec["timestamp"].(float64), rec["rank"].(float64), rec["operation"].(string))] = rec
			}
		}
	}
	ranks := tables["collective_ranks"]
	require.Len(t, ranks, len(logged))
	for _, row := range ranks {
		at, err := strconv.ParseFloat(row["timestamp"], 64)
		require.NoError(t, err)
		rank, err := strconv.ParseFloat(row["rank"], 64)
		require.NoError(t, err)
		rec := logged[keyOf(at, rank, row["operation"])]
		require.NotNil(t, rec, row)
		for _, name := range []string{
			"timestamp", "message_size", "duration_us", "bandwidth_gbps", "src_rank", "dst_rank", "channel_id", "stream_id", "error_count", "retry_count",
		} {
			if x, ok := rec[name].(float64); ok && (name == "timestamp" || x >= 0) {
				equal(t, strconv.FormatFloat(x, 'g', -1, 64), row[name], fmt.Sprint(name, " ", rec))
			}
		}
		if rec["algorithm"] != nil {
			assert.Equal(t, rec["algorithm"], row["algorithm"])
		}
	}
}

// A job in all formats: every row names its place, numbers equal the line there, every record is a row, and derived figures add up.
func TestJob(t *testing.T) {
	dir := t.TempDir()
	opt := gen.DefaultOptions()
	opt.Out, opt.Faults = dir, gen.Faults()
	truths, err := gen.Generate(t.Context(), opt)
	require.NoError(t, err)
	require.Len(t, truths, 1)
	require.NoError(t, os.Remove(filepath.Join(dir, "truth.json")))
	tables, reading := read(t, dir)
	counts := make(map[string]int64)
	for _, f := range reading.Files {
		counts[f.Receiver] += f.Records
	}
	assert.Equal(t, counts["nccl"], int64(len(tables["collective_ranks"])))
	assert.Equal(t, counts["zmq_rpc"], int64(len(tables["rpc_calls"])))
	assert.Equal(t, counts["tq_trace"], int64(2*(len(tables["tq_functions"])+len(tables["tq_operations"]))), "each has a line for its start and one for its end")
	assert.Equal(t, counts["train_log"], int64(len(tables["steps"])+len(tables["evaluations"])))
	assert.Len(t, tables["steps"], opt.Steps)
	assert.Len(t, tables["breakdowns"], opt.Steps)
	assert.NotEmpty(t, tables["causes"])
	for _, row := range tables["collective_ranks"] {
		var rec map[string]any
		require.NoError(t, json.Unmarshal([]byte(lineAt(t, row)), &rec))
		for _, name := range []string{"timestamp", "rank", "message_size", "duration_us", "bandwidth_gbps", "src_rank", "dst_rank", "error_count"} {
			equal(t, strconv.FormatFloat(rec[name].(float64), 'g', -1, 64), row[name], name)
		}
	}
	for _, row := range tables["rpc_calls"] {
		cells := strings.Fields(lineAt(t, row))
		for i, name := range []string{"ID", "", "Serialize_ms", "Send_ms", "Recv_ms", "Deserialize_ms", "", "Server_ms", "Total_ms", "Sent_KB", "Recv_KB"} {
			if name != "" {
				equal(t, cells[i], row[name], name)
			}
		}
	}
	for _, row := range tables["steps"] {
		var rec map[string]any
		require.NoError(t, json.Unmarshal([]byte(lineAt(t, row)), &rec))
		for column, name := range map[string]string{"iteration": "step", "loss": "loss", "throughput": "throughput", "step_time_s": "step_time_s", "lr": "lr"} {
			equal(t, strconv.FormatFloat(rec[name].(float64), 'g', -1, 64), row[column], name)
		}
	}
	for _, row := range tables["tq_functions"] {
		assert.Contains(t, lineAt(t, row), "func="+row["func"]+" ")
		equal(t, row["total_duration"], strconv.FormatFloat(sum(t, row, "get_duration", "compute_duration", "put_duration"), 'g', -1, 64), row["func"])
	}
	for i, row := range tables["breakdowns"] {
		var names []string
		for name := range row {
			if strings.HasPrefix(name, "time_") && name != "time_source" {
				names = append(names, name)
			}
		}
		equal(t, tables["steps"][i]["step_time_s"], strconv.FormatFloat(sum(t, row, names...), 'g', -1, 64), "step "+row["iteration"])
	}
}

// sum adds up non-empty cells.
func sum(t *testing.T, row map[string]string, names ...string) (sum float64) {
	t.Helper()
	for _, name := range names {
		if row[name] != "" {
			x, err := strconv.ParseFloat(row[name], 64)
			require.NoError(t, err)
			sum += x
		}
	}
	return sum
}

// The fixtures of all receivers make the same rows each time. A directory of fixtures is taken for a single run, so its verdicts, which depend on the order
// of reading, are not the same each time.
func TestFixtures(t *testing.T) {
	for _, receiver := range []string{"flagscale", "nccl", "tqtrace", "trainlog", "zmqrpc"} {
		var before map[string][]map[string]string
		for range 2 {
			tables, reading := read(t, receivers+receiver+"receiver/testdata")
			for _, f := range reading.Files {
				assert.False(t, f.Receiver != "" && f.Records == 0 && f.Lines > 0 && len(f.Rejected) == 0 && len(f.Ignored) == 0, f.Name)
			}
			delete(tables, "verdicts")
			for name, rows := range tables {
				for _, row := range rows {
					if !slices.Contains([]string{"breakdowns", "causes", "runs", "lateness", "metrics"}, name) {
						require.NotEmpty(t, row["file"], "%s %v", name, row)
					}
					delete(row, "verdicts")
					delete(row, "severity")
				}
			}
			for name := range before {
				require.Equal(t, before[name], tables[name], "%s %s", receiver, name)
			}
			before = tables
		}
		assert.NotEmpty(t, before)
	}
}

// Harmful names in a log are cells of text, and nothing else.
func TestHostileLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "=cmd.log")
	methods := []string{"=HYPERLINK(1)", "@SUM(1)", `"quoted"`, "a,b", "bad\xff", "+1", "-1", "'", "<script>"}
	var text strings.Builder
	text.WriteString("ZeroMQ Performance Log - Transport: =IPC\nID    Method  Serialize(ms)  Send(ms)  Recv(ms)  Deserialize(ms)  Total(ms)  Sent(KB)  Recv(KB)  Throughput(MB/s)\n")
	for i, m := range methods {
		fmt.Fprintf(&text, "%d  %s  0.123  0.045  0.234  0.089  0.491  0.15  125.34  255.23\n", i+1, m)
	}
	require.NoError(t, os.WriteFile(log, []byte(text.String()), 0o600))
	tables, _ := read(t, log)
	require.Len(t, tables["rpc_calls"], len(methods))
	for i, row := range tables["rpc_calls"] {
		want := strings.ToValidUTF8(methods[i], "\uFFFD")
		if strings.ContainsRune("=+-@", rune(want[0])) {
			want = "'" + want
		}
		assert.Equal(t, want, row["Method"])
		for name, cell := range row {
			assert.True(t, cell == "" || !strings.ContainsRune("=+@\t\r", rune(cell[0])), "%s %q", name, cell)
			assert.True(t, utf8.ValidString(cell))
		}
	}
}

// FlagScale's iteration_logs and the JSON lines of training jobs by their own names.
func TestSteps(t *testing.T) {
	path := receivers + "flagscalereceiver/testdata/douzi/perf_summary_20260411_211530.json"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var summary struct {
		Logs []map[string]any `json:"iteration_logs"`
	}
	require.NoError(t, json.Unmarshal(text, &summary))
	tables, _ := read(t, copied(t, path))
	steps := tables["steps"]
	require.Len(t, steps, len(summary.Logs))
	for i, rec := range summary.Logs {
		for _, name := range []string{
			"iteration", "TFLOPS_per_GPU", "TFLOPS_total", "samples_per_sec", "tokens_per_sec", "step_time_ms", "memory_GB", "peak_memory_GB",
		} {
			if x, ok := rec[name].(float64); ok {
				equal(t, strconv.FormatFloat(x, 'g', -1, 64), steps[i][name], name)
			}
		}
	}

	tables, _ = read(t, receivers+"trainlogreceiver/testdata/jsonl.log")
	row := tables["steps"][0]
	for name, want := range map[string]string{
		"iteration": "10", "loss": "2.345", "throughput": "512.3", "step_time_s": "0.25", "lr": "0.000012", "grad_norm": "1.073", "tokens_per_sec": "1049190.4",
		"gpu_util_min": "96", "memory_GB": "61.5", "peak_memory_GB": "70.25", "batch_size": "128", "rank": "0", "mfu_reported": "0.412",
	} {
		assert.Equal(t, want, row[name], name)
	}
	equal(t, "97.5", row["gpu_util_mean"], "gpu_util")
	assert.Equal(t, "NaN", tables["steps"][2]["loss"])
	assert.Equal(t, "2.41", tables["evaluations"][0]["validation_loss"])
}

// copied puts a file into a directory of its own, away from its neighbours.
func copied(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	require.NoError(t, os.WriteFile(to, text, 0o600))
	return to
}

// TransferQueue's functions, with the values of FUNCTION_END.
func TestFunctions(t *testing.T) {
	tables, _ := read(t, receivers+"tqtracereceiver/testdata/seed_stamped.log")
	require.NotEmpty(t, tables["tq_functions"])
	text, err := os.ReadFile(receivers + "tqtracereceiver/testdata/seed_stamped.log")
	require.NoError(t, err)
	ends := 0
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "stage=FUNCTION_END") {
			continue
		}
		ends++
		found := false
		for _, row := range tables["tq_functions"] {
			if field(line, "func") != row["func"] || !strings.Contains(row["tq_trace_id"], field(line, "trace_id")) {
				continue
			}
			found = true
			equal(t, strings.TrimSuffix(field(line, "total_duration"), "s"), row["total_duration"], line)
			for _, name := range []string{"get_ratio", "compute_ratio", "put_ratio"} {
				if share := field(line, name); share != "" {
					equal(t, strings.TrimSuffix(share, "%"), row[name], name)
				}
			}
		}
		assert.True(t, found, line)
	}
	assert.Positive(t, ends)
}

func field(line, name string) string {
	_, rest, _ := strings.Cut(line, name+"=")
	value, _, _ := strings.Cut(rest, " ")
	return strings.TrimSpace(value)
}

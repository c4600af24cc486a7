package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write golden files")

// resolved is a Resolve without the checks of a collector.
func resolved(_ context.Context, files []string) (map[string]any, error) {
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	r, err := confmap.NewRetrievedFromYAML(text)
	if err != nil {
		return nil, err
	}
	conf, err := r.AsConf()
	if err != nil {
		return nil, err
	}
	if _, broken := conf.ToStringMap()["broken"]; broken {
		err = errors.New("it has a fault:\n\n'broken' is no key")
	}
	return conf.ToStringMap(), err
}

func run(t *testing.T, stdin string, args ...string) (stdout string, code int) {
	t.Helper()
	cmd := NewCommand(resolved)
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SilenceErrors = true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	switch {
	case err == nil:
	case errors.As(err, new(*reading.UsageError)):
		code = 2
	default:
		require.ErrorIs(t, err, errOff)
		code = 1
	}
	return out.String(), code
}

// logs writes files into a directory.
func logs(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	}
	return dir
}

const (
	zmqHead = "ZeroMQ Performance Log - Transport: %s\n" +
		"ID    Method               Serialize(ms)   Send(ms)     Recv(ms)     Deserialize(ms)   Total(ms)    Sent(KB)     Recv(KB)     Throughput(MB/s)\n"
	zmqRow     = "1     Init                 0.085           0.030        2.057        0.091             2.268        0.02         266.33       114.68\n"
	zmqSummary = "\n====\nSUMMARY\n====\nTotal RPC Calls: 1\nAverage Total Time: 2.268 ms\n"

	table = "Performance Monitor Session Started: 2026-06-12 10:30:00\n" +
		"Timestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    Tokens/s     Time(ms)   Memory(GB)\n" +
		"2026-06-12 10:30:57  10       74.83        598.66     6.6          13442        4875.4     52.31\n"

	step = `{"timestamp": "2026-06-12T10:30:00Z", "step": 1, "loss": 2.5, "mfu": 0.4}` + "\n"
)

const outOfMemory = "Traceback (most recent call last):\n" + `  File "/job/train.py", line 9, in <module>` + "\n    step()\n" +
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free.\n"

func tq(id, tail string) string {
	line := "INFO:2026-02-11 16:40:00,%03d:[TQ-TRACE] trace_id=%s | func=rollout | pid=7 | stage=%s | timestamp=%d.%06d%s\n"
	return fmt.Sprintf(line, 100, id, "FUNCTION_START", 98231, 0, tail) +
		fmt.Sprintf(line, 150, id, "GET_END | duration=0.050000s", 98231, 50000, "") +
		fmt.Sprintf(line, 200, id, "FUNCTION_END | total_duration=0.100000s", 98231, 100000, "")
}

const detail = "DEBUG:2026-02-11 16:40:00,300:[TQ-DETAIL] trace_id=a1b2c3d4 | stage=TQ_CLIENT_GET_END | duration=0.010000s | data_size_mb=15.20 | timestamp=98231.200000\n"

func vccl(rank, at int) string {
	return fmt.Sprintf(`{"timestamp": %d.%03d, "rank": %d, "operation": "allreduce", "message_size": 4194304, "duration_us": 1250.5, "src_rank": 0, "dst_rank": 1}`+"\n",
		1693958400+at, at%7, rank)
}

func inspector(verbose string) string {
	return `{"header":{"id":"0x9e7a","rank":0,"n_ranks":1,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"x",` +
		`"rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1749490229087081,"hostname":"h","pid":4},"coll_perf":{"coll":"ReduceScatter","coll_sn":129,` +
		`"coll_msg_size_bytes":65536,"coll_exec_time_us":110,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":19.065018,"coll_busbw_gbs":18.469236` + verbose + `}}` + "\n"
}

func packed(body string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(body))
	_ = w.Close()
	return b.String()
}

// inspectors are the logs of the first ranks of 16, with 40 collectives each; rank 5 has only last of them.
func inspectors(ranks, last int) map[string]string {
	files := map[string]string{}
	for rank := range ranks {
		for at := range 40 {
			if rank != 5 || at < last {
				start := 1749490229087000 + 1e6*at
				files[fmt.Sprintf("rank_%d.log", rank)] += fmt.Sprintf(`{"header":{"id":"0x7f8c","rank":%d,"n_ranks":16,"nnodes":2},"metadata":{"dump_timestamp_us":%d,`+
					`"hostname":"node-%d","pid":%d},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1048576,"coll_exec_time_us":64,`+
					`"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[]}}}`+"\n", rank, start+500, rank/8, rank, at, start, start+64)
			}
		}
	}
	return files
}

func ranks(has func(rank, at int) bool) map[string]string {
	files := map[string]string{}
	for rank := range 4 {
		for at := range 40 {
			if has(rank, at) {
				files[fmt.Sprintf("rank_%d.jsonl", rank)] += vccl(rank, at)
			}
		}
	}
	return files
}

var findingTests = map[string]struct {
	files      map[string]string
	off, notes []string
	code       int
}{
	"steps":                  {files: map[string]string{"a.jsonl": step}},
	"steps, compressed":      {files: map[string]string{"a.jsonl.gz": packed(step)}},
	"steps without times":    {files: map[string]string{"a.jsonl": `{"step": 1, "loss": 2.5, "mfu": 0.4}` + "\n"}, notes: []string{"no_time"}},
	"steps without a model":  {files: map[string]string{"a.jsonl": `{"timestamp": 1781253000, "step": 1, "loss": 2.5}` + "\n"}, notes: []string{"no_model"}},
	"steps without a device": {files: map[string]string{"a.jsonl": `{"timestamp": 1781253000, "step": 1, "loss": 2.5, "tflops": 100}` + "\n"}, notes: []string{"no_device"}},
	"beside the logs": {
		files: map[string]string{"a.jsonl": step, "README": "Read me.\n", "b.log": "", "lib.out": "\x7fELF\x00\x01\x02\x00\x00\x00\x00"},
		notes: []string{"not_understood", "binary", "empty"},
	},
	"torn last line":     {files: map[string]string{"a.jsonl": strings.Repeat(step, 2) + `{"step": 2, "lo`}},
	"many torn lines":    {files: map[string]string{"a.jsonl": strings.Repeat(step+`{"step": 2, "lo`+"\n", 3)}, off: []string{"rejected"}, code: 1},
	"an archive":         {files: map[string]string{"a.jsonl": step, "b.log.xz": "\xfd7zXZ\x00\x00\x04"}, off: []string{"not_read"}, code: 1},
	"a gzip without .gz": {files: map[string]string{"a.jsonl": step, "b.log.1": packed(step)}, off: []string{"not_read"}, code: 1},
	"a damaged archive":  {files: map[string]string{"a.jsonl": step, "b.log.gz": "nothing of the kind"}, off: []string{"unreadable"}, code: 1},
	"TensorBoard beside": {files: map[string]string{"a.jsonl": step, "events.out.tfevents.1": "\x18\x00\x00\x00\x00"}, notes: []string{"not_read"}},
	"NCCL's debug":       {files: map[string]string{"a.log": "node01:42:42 [0] NCCL INFO Bootstrap : Using eth0\n"}, off: []string{"not_read"}, code: 2},
	"a pickle":           {files: map[string]string{"dump.pickle": "\x80\x02}q\x00X\x09\x00\x00\x00pg_configq\x01"}, off: []string{"not_read"}, code: 2},
	"a dump cut off":     {files: map[string]string{"nccl_trace_rank_0": "\x80\x02}q\x00X\x09\x00\x00\x00pg_configq\x01"}, off: []string{"rejected"}, code: 1},
	"a dump with code":   {files: map[string]string{"nccl_trace_rank_0": "\x80\x02cos\nsystem\n."}, off: []string{"rejected"}, code: 1},
	"no log":             {files: map[string]string{"notes.txt": "Nothing of interest.\n"}, off: []string{"not_understood"}, code: 2},
	"binaries":           {files: map[string]string{"a.out": "\x7fELF\x00\x01\x02\x00\x00\x00\x00"}, off: []string{"binary"}, code: 2},
	"empty":              {files: map[string]string{"a.log": ""}, off: []string{"empty"}, code: 2},

	"TransferQueue":              {files: map[string]string{"a.err": tq("a1b2c3d4", "") + detail}},
	"TransferQueue, no details":  {files: map[string]string{"a.err": tq("a1b2c3d4", "")}, notes: []string{"tq_detail_off"}},
	"TransferQueue, no ids":      {files: map[string]string{"a.err": tq("N/A", "") + strings.ReplaceAll(detail, "a1b2c3d4", "N/A")}, notes: []string{"tq_no_ids"}},
	"TransferQueue, some no ids": {files: map[string]string{"a.err": tq("N/A", "") + detail}},
	"TransferQueue, dedup": {
		files: map[string]string{"a.log": tq("a1b2c3d4", " [repeated 12001x across cluster]") + detail}, off: []string{"ray_dedup"}, code: 1,
	},
	"TransferQueue, upstream": {
		files: map[string]string{"a.log": "Task update_actor (pid=54223) is getting len_samples=256, cost time: 0.183\n"}, notes: []string{"tq_trace_off"},
	},
	"TransferQueue, silent": {
		files: map[string]string{"a.log": "(TaskRunner pid=9) TransferQueueController started\n" +
			"(TaskRunner pid=9) INFO:2026-02-11 16:40:00,100:step:1 - actor/loss:0.1 - timing_s/step:10.5 - perf/mfu/actor:0.4\n"},
		off: []string{"tq_trace_off"}, code: 1,
	},
	"TransferQueue, silent, no steps": {
		files: map[string]string{"a.err": "(TaskRunner pid=9) TransferQueueController started\n"}, off: []string{"not_read"}, code: 2,
	},
	"TransferQueue, ended": {
		files: map[string]string{"a.err": tq("a1b2c3d4", "") + detail + outOfMemory}, off: []string{"run_ended"}, code: 1,
	},
	"ZeroMQ, ended": {
		files: map[string]string{"z.log": fmt.Sprintf(zmqHead, "IPC") + zmqRow + zmqSummary + outOfMemory}, off: []string{"run_ended"}, code: 1,
	},

	"ZeroMQ":             {files: map[string]string{"z.log": fmt.Sprintf(zmqHead, "IPC") + zmqRow + zmqSummary}},
	"ZeroMQ, no summary": {files: map[string]string{"z.log": fmt.Sprintf(zmqHead, "IPC") + zmqRow}, notes: []string{"zmq_no_summary"}},
	"ZeroMQ, no second summary": {
		files: map[string]string{"z.log": fmt.Sprintf(zmqHead, "IPC") + zmqRow + zmqSummary + zmqRow}, notes: []string{"zmq_no_summary"},
	},
	"ZeroMQ, TCP": {files: map[string]string{"z.log": fmt.Sprintf(zmqHead, "TCP") + zmqRow + zmqSummary}, notes: []string{"zmq_tcp"}},

	"perf_monitor": {
		files: map[string]string{"perf_metrics_1.log": table + "\nPerformance Monitor Session Completed: 2026-06-12 10:31:00\n"},
		notes: []string{"perf_monitor_rank_0", "no_device"},
	},
	"perf_monitor, cut short": {
		files: map[string]string{"perf_metrics_1.log": table}, notes: []string{"perf_monitor_rank_0", "perf_monitor_unfinished", "no_device"},
	},

	"VCCL":                      {files: ranks(func(int, int) bool { return true })},
	"VCCL, sampled by rank":     {files: ranks(func(rank, at int) bool { return at%4 == rank }), off: []string{"nccl_sampled"}, code: 1},
	"Inspector, 12 of 16 ranks": {files: inspectors(12, 40), off: []string{"nccl_ranks_unheard"}, code: 1},
	"Inspector, 1 of 16 ranks":  {files: inspectors(1, 40), notes: []string{"nccl_ranks_unheard"}},
	"Inspector, cut off":        {files: inspectors(16, 38), off: []string{"nccl_ranks_end_early"}, code: 1},
	"Inspector, one late line":  {files: inspectors(16, 39)},
	"Inspector, all ranks":      {files: inspectors(16, 40)},
	"Inspector, without times":  {files: map[string]string{"i.log": inspector("")}, notes: []string{"nccl_no_start"}},
	"Inspector, with times": {files: map[string]string{"i.log": inspector(
		`,"event_trace_ts":{"coll_start_ts":1749490229087000,"coll_stop_ts":1749490229087064,"kernel_events":[]}`,
	)}},
	"Inspector, beheaded":   {files: map[string]string{"i.log": `{"coll_perf":{"coll":"AllReduce","coll_sn":1}}` + "\n"}, off: []string{"not_read"}, code: 2},
	"Inspector, Prometheus": {files: map[string]string{"i.prom": `nccl_bus_bandwidth_gbs{gpu="0"} 5` + "\n", "a.jsonl": step}, notes: []string{"not_read"}},
}

// Each mistake has its finding, and logs without one have none.
func TestFindings(t *testing.T) {
	for name, tt := range findingTests {
		t.Run(name, func(t *testing.T) {
			out, code := run(t, "", logs(t, tt.files), "--format=json")
			var d document
			require.NoError(t, json.Unmarshal([]byte(out), &d), out)
			var off, notes []string
			for _, f := range d.Findings {
				for _, text := range []string{f.What, f.Why, f.Fix} {
					assert.NotEmpty(t, text, f.Name)
				}
				assert.NotRegexp(t, `\.$`, f.What, "text adds the period")
				for _, p := range f.Seen {
					_, err := os.Stat(p.File)
					require.NoError(t, err)
				}
				if f.Off {
					off = append(off, f.Name)
				} else {
					notes = append(notes, f.Name)
				}
			}
			assert.Equal(t, tt.off, off, out)
			assert.Equal(t, tt.notes, notes, out)
			assert.Equal(t, tt.code, code)
			assert.Equal(t, code, d.Exit)
			for _, f := range d.Files {
				lines := f.Records
				for _, r := range slices.Concat(f.Ignored, f.Rejected) {
					lines += r.Lines
				}
				assert.Equal(t, f.Lines, lines, f.Path)
			}
		})
	}
}

// Findings about paths that name nothing, links, and unreadable files.
func TestPaths(t *testing.T) {
	dir := logs(t, map[string]string{"in/a.jsonl": step, "out/b.jsonl": step})
	require.NoError(t, os.Symlink(filepath.Join(dir, "out", "b.jsonl"), filepath.Join(dir, "in", "b.jsonl")))
	require.NoError(t, os.Symlink("a.jsonl", filepath.Join(dir, "in", "latest")))
	require.NoError(t, os.Symlink("nothing", filepath.Join(dir, "in", "dangling")))
	names := func(out string) (names []string) {
		var d document
		require.NoError(t, json.Unmarshal([]byte(out), &d), out)
		for _, f := range d.Findings {
			names = append(names, f.Name)
		}
		return names
	}
	out, code := run(t, "", filepath.Join(dir, "in"), "--format=json")
	assert.Equal(t, []string{"links"}, names(out))
	assert.Contains(t, out, "1 symbolic link is")
	assert.Zero(t, code)
	out, code = run(t, "", dir, "--format=json")
	assert.Empty(t, names(out), "each leads to what is read")
	assert.Zero(t, code)
	out, code = run(t, "", filepath.Join(dir, "in"), filepath.Join(dir, "*.log"), filepath.Join(dir, "nothing"), "--format=json")
	assert.Equal(t, []string{"no_file", "no_file", "links"}, names(out))
	assert.Equal(t, 1, code)
	out, code = run(t, "", filepath.Join(dir, "nothing"), "--format=json")
	assert.Equal(t, []string{"no_file"}, names(out))
	assert.Equal(t, 2, code)
	out, code = run(t, step, "-")
	assert.Contains(t, out, "-: train_log, 1 line: 1 record\n")
	assert.Zero(t, code)
	_, code = run(t, "", "-")
	assert.Equal(t, 2, code)
}

// A state directory without write permission is off; a directory that the start would make is not.
func TestStateDirectory(t *testing.T) {
	dir := logs(t, map[string]string{"a.jsonl": step})
	t.Setenv("TRAINBRIDGE_STATE_DIR", filepath.Join(dir, "new", "state"))
	_, code := run(t, "", filepath.Join(dir, "a.jsonl"))
	assert.Zero(t, code)
	t.Setenv("TRAINBRIDGE_STATE_DIR", filepath.Join(dir, "a.jsonl", "state"))
	out, code := run(t, "", filepath.Join(dir, "a.jsonl"))
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "nothing can be written to")
}

// The text of a job with everything, and its JSON, without secrets and terminal control sequences.
func TestGolden(t *testing.T) {
	dir := logs(t, map[string]string{
		"tq/driver.log": "\x1b[36m(TaskRunner pid=9)\x1b[0m api_key=sk-abcdefghijklmnopqrstuvwxyz0123456789 hello\r\n" + tq("N/A", " [repeated 3x across cluster]") +
			"[TQ-TRACE] trace_id=N/A | func=rollout | stage=GET_END\n",
		"train.jsonl": strings.Repeat(step, 2) + "\x1b]0;owned\x07 text\n", "zmq.log": fmt.Sprintf(zmqHead, "TCP") + zmqRow, "notes.txt": "password=hunter2hunter2 \x1b[2J\n",
	})
	for name, args := range map[string][]string{"text": nil, "json": {"--format=json"}} {
		out, code := run(t, "", append([]string{dir}, args...)...)
		assert.Equal(t, 1, code)
		got := strings.ReplaceAll(out, dir, "DIR")
		assert.NotContains(t, got, "abcdefghijklmnop")
		assert.NotContains(t, got, "hunter2")
		assert.NotContains(t, got, "\x1b")
		file := filepath.Join("testdata", "job."+name)
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), got)
	}
}

// However many the files, the text is bounded.
func TestManyFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("%02d.jsonl", i)] = strings.Repeat(step, i)
	}
	out, code := run(t, "", logs(t, files))
	assert.Zero(t, code, out)
	assert.Contains(t, out, "and 9 more files with 495 records, which --format json lists\n59 files: 1,770 lines: 1,770 records\n")
	assert.Equal(t, 51, strings.Count(out, ".jsonl: train_log")+1, slices.Sorted(maps.Keys(files)))
}

const (
	idle = "  nvml:\n"
	end  = "service: {pipelines: {traces: {receivers: [tq_trace, train_log, train_log/own], exporters: [otlp_acked]}}}\n"
)

var configTests = map[string]struct {
	yaml     string
	findings []string
	files    []string // with their readers
	code     int
}{
	"by content": {
		yaml: "receivers:\n  tq_trace: {include_by_content: ['DIR/**'], storage: s}\n  train_log: {include_by_content: ['DIR/**'], storage: s}\n" + idle + end,
		// The records of own.jsonl need settings of fields, the records of zmq.log a receiver of their own.
		findings: []string{"links", "not_understood"},
		files:    []string{"driver.log tq_trace train_log", "notes.txt", "tq/a.err tq_trace", "train/a.jsonl train_log", "train/own.jsonl train_log", "zmq.log"},
	},
	"by name": {
		yaml: "receivers:\n  train_log/own: {include: ['DIR/train/own.jsonl'], fields: {error: {metric: ml.train.loss}}, storage: s}\n" +
			"  train_log: {include: ['DIR/train/*'], exclude: ['DIR/train/own*'], storage: s}\n" + end,
		findings: []string{"links"},
		files:    []string{"train/a.jsonl train_log", "train/own.jsonl train_log/own"},
	},
	"one that does not run": {
		yaml:     "receivers:\n  zmq_rpc: {include: ['DIR/zmq.log']}\n  train_log: {include: ['DIR/train/a.jsonl']}\n" + end,
		findings: []string{"no_storage"},
		files:    []string{"train/a.jsonl train_log"},
	},
	"twice": {
		yaml:     "receivers:\n  train_log: {include: ['DIR/train/a.jsonl'], storage: s}\n  train_log/own: {include: ['DIR/train/a*', '/nothing/*'], storage: s}\n" + end,
		findings: []string{"no_file", "read_twice"},
		files:    []string{"train/a.jsonl train_log"},
		code:     1,
	},
	"verl's driver by both": {
		yaml:     "receivers:\n  tq_trace: {include: ['DIR/driver.log'], storage: s}\n  train_log: {include: ['DIR/driver.log'], storage: s}\n" + end,
		findings: []string{"no_model"}, // and not read_twice
		files:    []string{"driver.log tq_trace train_log"},
	},
	"by the wrong one": {
		yaml:     "receivers:\n  tq_trace: {include: ['DIR/train/a.jsonl'], storage: s}\n" + end,
		findings: []string{"wrong_receiver"},
		files:    []string{"train/a.jsonl tq_trace"},
		code:     1,
	},
	"a fault": {
		yaml:     "broken: true\nreceivers:\n  tq_trace: {include: ['DIR/tq/*'], storage: s}\n" + end,
		findings: []string{"config"},
		files:    []string{"tq/a.err tq_trace"},
		code:     1,
	},
	"nothing": {yaml: "receivers:\n  tq_trace: {include: [logs/nothing/*]}\n" + end, findings: []string{"no_file", "no_log"}, code: 2},
}

// The files that a collector with a configuration would read, and their receivers.
func TestConfig(t *testing.T) {
	dir := logs(t, map[string]string{
		"tq/a.err": tq("a1b2c3d4", "") + detail, "train/a.jsonl": step, "train/own.jsonl": strings.ReplaceAll(step, "loss", "error"),
		"zmq.log": fmt.Sprintf(zmqHead, "IPC") + zmqRow + zmqSummary, "notes.txt": "Nothing of interest.\n",
		"driver.log": tq("a1b2c3d4", "") + detail + "2026-01-05 09:30:09,000 step:1 - actor/pg_loss:0.1 - timing_s/gen:2.5 - timing_s/step:4.5\n",
	})
	require.NoError(t, os.Symlink(filepath.Join(dir, "zmq.log"), filepath.Join(dir, "train", "link.jsonl")))
	for name, tt := range configTests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.yaml")
			require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(tt.yaml, "DIR", dir)), 0o600))
			out, code := run(t, "", "--config", file, "--format=json")
			var d document
			require.NoError(t, json.Unmarshal([]byte(out), &d), out)
			assert.Equal(t, tt.code, code, out)
			var findings, files []string
			for _, f := range d.Findings {
				findings = append(findings, f.Name)
			}
			for _, f := range d.Files {
				files = append(files, strings.TrimSpace(strings.TrimPrefix(f.Path, dir+"/")+" "+f.Receiver+" "+f.Also))
			}
			assert.Equal(t, tt.findings, findings, out)
			assert.Equal(t, tt.files, files, out)
		})
	}
	for _, args := range [][]string{{"--config", filepath.Join(dir, "nothing.yaml")}, {"--config", "x.yaml", dir}} {
		out, code := run(t, "", args...)
		assert.Equal(t, 2, code)
		assert.Empty(t, out)
	}
}

// docs/reference/check.md has each finding, and no more.
func TestDoc(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/check.md")
	require.NoError(t, err)
	var said []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_0-9` ]+) \\|").FindAllStringSubmatch(string(text), -1) {
		said = append(said, strings.Fields(strings.ReplaceAll(row[1], "`", ""))...)
	}
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var found []string
	for _, file := range sources {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`\bName: "([a-z_0-9]+)"`).FindAllStringSubmatch(string(source), -1) {
			found = append(found, m[1])
		}
	}
	slices.Sort(said)
	slices.Sort(found)
	assert.Equal(t, slices.Compact(found), said)
}

// Of the receivers' test logs, only logs damaged on purpose are off.
func TestFixtures(t *testing.T) {
	const receivers = "../../../../receivers/"
	off := map[string][]string{ // by file
		"tqtracereceiver/testdata/broken.log": {"rejected"},
		"tqtracereceiver/testdata/dedup.log":  {"ray_dedup"},
		"flagscalereceiver/testdata/realtime": {"rejected"},
	}
	// Its tables have no zone; its summary has one, different from the zone of the machine that runs the test.
	flags := map[string][]string{"flagscalereceiver/testdata/merged": {"--timezone", "perf_*.log=Asia/Shanghai"}}
	var paths []string
	for _, glob := range []string{
		"tqtracereceiver/testdata/*.log", "trainlogreceiver/testdata/*.log", "trainlogreceiver/testdata/trainers/*.log", "flagscalereceiver/testdata/*",
		"ncclreceiver/testdata/*", "zmqrpcreceiver/testdata",
	} {
		found, err := filepath.Glob(receivers + glob)
		require.NoError(t, err)
		require.NotEmpty(t, found, glob)
		paths = append(paths, found...)
	}
	n := 0
	for _, path := range paths {
		name := strings.TrimPrefix(path, receivers)
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".txt" || filepath.Base(name) == "fuzz" {
			continue
		}
		n++
		out, code := run(t, "", append([]string{path, "--format=json"}, flags[name]...)...)
		var d document
		require.NoError(t, json.Unmarshal([]byte(out), &d), out)
		var got []string
		for _, f := range d.Findings {
			if f.Off {
				got = append(got, f.Name)
			}
		}
		assert.Equal(t, off[name], got, name)
		assert.Equal(t, min(len(got), 1), code, name)
	}
	assert.Greater(t, n, 50)
}

// Files that are no logs by their names are passed over, with a note, unless the configuration asks for them.
func TestPassedOver(t *testing.T) {
	dir := logs(t, map[string]string{"a.jsonl": step, "ckpt/a.pt": step, "ckpt/b.pt": step, ".git/HEAD": "x\n", ".git/x/y": "x\n"})
	passed := func(args ...string) string {
		out, _ := run(t, "", append(args, "--format=json")...)
		var d document
		require.NoError(t, json.Unmarshal([]byte(out), &d), out)
		for _, f := range d.Findings {
			if f.Name == "passed_over" {
				assert.False(t, f.Off)
				return f.What
			}
		}
		return ""
	}
	const want = "Passed over by name, as no logs: 2 .pt, 1 .git"
	assert.Equal(t, want, passed(dir))
	assert.Equal(t, want, passed(filepath.Join(dir, "**")))
	assert.Empty(t, passed(filepath.Join(dir, "ckpt", "a.pt")))
	for all, want := range map[string]string{"false": want, "true": ""} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "receivers: {train_log: {include_by_content: [%q], include_non_logs: %s}, nccl: {include_by_content: [%[1]q], "+
			"include_non_logs: %[2]s}}\nservice: {pipelines: {traces: {receivers: [train_log, nccl]}}}\n", filepath.Join(dir, "**"), all), 0o600))
		assert.Equal(t, want, passed("--config", file), all)
	}
}

// Copies are told by the file with all of their steps.
func TestCopiesOfSeveral(t *testing.T) {
	state := func(steps int, loss float64) string {
		var rows []string
		for s := 10; s <= steps; s += 10 {
			rows = append(rows, fmt.Sprintf(`{"epoch": %g, "loss": %g, "learning_rate": 0.001, "step": %d}`, float64(s)/100, loss, s))
		}
		return fmt.Sprintf(`{"global_step": %d, "log_history": [%s]}`, steps, strings.Join(rows, ", "))
	}
	dir := logs(t, map[string]string{
		"a/checkpoint-500/trainer_state.json": state(500, 3), "a/checkpoint-900/trainer_state.json": state(900, 3),
		"b/checkpoint-500/trainer_state.json": state(500, 4), "b/checkpoint-900/trainer_state.json": state(900, 4),
	})
	out, _ := run(t, "", dir)
	for _, job := range []string{"a", "b"} {
		assert.Contains(t, out, "1 file is not read, all of whose steps are in "+filepath.Join(dir, job, "checkpoint-900/trainer_state.json"))
	}
}

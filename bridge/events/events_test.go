package events

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/reference/events.md")

// found are the events of a text.
func found(path, text string) (all []Event) {
	return foundIn(path, text, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
}

// foundIn are the events of a text that was written at a time.
func foundIn(path, text string, wrote time.Time) (all []Event) {
	s := NewScanner(path, time.UTC, wrote)
	for line := range strings.Lines(text) {
		all = append(all, s.Line([]byte(strings.TrimRight(line, "\n")))...)
	}
	return append(all, s.Flush()...)
}

// A stamp without a year is of the year nearest to the last full stamp, also across New Year; an unknown month is no stamp.
func TestYears(t *testing.T) {
	const fell = " node1 kernel: NVRM: GPU at PCI:0000:dc:00: GPU has fallen off the bus."
	for _, c := range []struct{ before, line, want string }{
		{"2025-12-31 23:59:58 step 7", "Jan  1 00:00:03" + fell, "2026-01-01 00:00:03"},
		{"2026-01-01 00:00:01 step 7", "Dec 31 23:59:58" + fell, "2025-12-31 23:59:58"},
		{"2025-12-30 10:00:00 step 7", "Dec 31 23:59:58" + fell, "2025-12-31 23:59:58"},
		{"step 7", "Dec 31 23:59:58" + fell, "2025-12-31 23:59:58"},
		{"step 7", "[Mon Foo 12 10:00:00 2025] " + fell, ""},
	} {
		all := found("job.log", c.before+"\nTraceback (most recent call last):\n"+c.before+"\n"+c.line)
		require.NotEmpty(t, all, c.line)
		at := ""
		if ns := all[len(all)-1].Time; ns != 0 {
			at = time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05")
		}
		assert.Equal(t, c.want, at, c.line)
	}
}

// A line without a stamp does not have the time of a line after which jobs go on.
func TestTimeBehindSlowing(t *testing.T) {
	all := found("job.log", "2026-01-02 09:00:00 saved checkpoint to /ckpt/100\n2026-01-02 09:30:00 step 900\nLoss is nan, stopping training\n")
	require.Len(t, all, 2)
	assert.NotZero(t, all[0].Time)
	assert.Zero(t, all[1].Time)
}

// The 29th of February is of the last leap year before the log's modification.
func TestLeapDay(t *testing.T) {
	const line = "Feb 29 10:00:00 node1 kernel: NVRM: GPU at PCI:0000:dc:00: GPU has fallen off the bus."
	all := foundIn("job.log", line, time.Date(2025, 1, 10, 0, 0, 0, 0, time.UTC))
	require.Len(t, all, 1)
	assert.Equal(t, time.Date(2024, 2, 29, 10, 0, 0, 0, time.UTC), time.Unix(0, all[0].Time).UTC())
}

// TestExamples: each example is found, as an event of its form or of an earlier form of the same class.
func TestExamples(t *testing.T) {
	names := make(map[string]bool)
	for _, f := range Forms {
		assert.False(t, names[f.Name], "twice: %s", f.Name)
		names[f.Name] = true
		assert.GreaterOrEqual(t, len(f.Text), 5, f.Name)
		assert.NotEmpty(t, f.Writer, f.Name)
		all := found("job.log", f.Example)
		if !assert.NotEmpty(t, all, "%s: %s", f.Name, f.Example) {
			continue
		}
		assert.Equal(t, f.Class, all[0].Class, "%s: %s found instead", f.Name, all[0].Form.Name)
	}
	assert.LessOrEqual(t, len(Forms), maxForms)
	claimed := make(map[Class]bool)
	for _, c := range Claims {
		claimed[c.Class] = true
	}
	for _, f := range Forms {
		assert.True(t, claimed[f.Class], f.Class)
	}
}

// Prefixes of launchers, colours, a bar without a line end, and wrapped lines hide no event, and name the process that printed it.
func TestPlaces(t *testing.T) {
	const text = "RuntimeError: CUDA error: unspecified launch failure"
	for _, c := range []struct {
		line        string
		rank, local int64
		host        string
		pid         int64
	}{
		{text, -1, -1, "", 0},
		{"[rank3]: " + text, 3, -1, "", 0},
		{"[default5]:[rank13]: " + text, 13, -1, "", 0},
		{"[rank13]:[default5]: " + text, 13, -1, "", 0},
		{"7: " + text, 7, -1, "", 0},
		{"192.168.13.81: [rank19]: " + text, 19, -1, "192.168.13.81", 0},
		{"(WorkerDict pid=27497, ip=10.0.0.7) [rank2]: " + text, 2, -1, "10.0.0.7", 27497},
		{"\x1b[36m(WorkerDict pid=27497)\x1b[0m " + text, -1, -1, "", 27497},
		{"[1,3]<stderr>:" + text, 3, -1, "", 0},
		{"train-0.cn-d003.nolog [stderr] [rank3]: " + text, 3, -1, "", 0},
		{"Epoch 0:  50%|█████     | 10/20 [00:04<00:04,  2.30it/s][rank2]: " + text, 2, -1, "", 0},
		{"│ " + text + "          │", -1, -1, "", 0},
		{"[2024-02-27T21:35:32.106313Z] fa88a9df || [rank1]: " + text, 1, -1, "", 0},
		{"<info>    [2021-12-07 10:43:05] fa88a9df || [rank1]: " + text, 1, -1, "", 0},
	} {
		all := found("job.log", c.line)
		if assert.Len(t, all, 1, c.line) {
			e := all[0]
			assert.Equal(t, "unspecified launch failure", strings.TrimSpace(e.What), c.line)
			assert.Equal(t, []any{c.rank, c.local, c.host, c.pid}, []any{e.Rank, e.Local, e.Host, e.PID}, c.line)
		}
	}
	for path, want := range map[string][2]int64{
		"/log/none_ab/attempt_0/3/stderr.log": {-1, 3}, "/log/rank_12.log": {12, -1}, "/log/rank7/out.txt": {7, -1}, "/log/frank_1.log": {-1, -1},
	} {
		all := found(path, text)
		require.Len(t, all, 1)
		assert.Equal(t, want, [2]int64{all[0].Rank, all[0].Local}, path)
	}
}

func TestFields(t *testing.T) {
	all := found("job.log", "[rank3]:[E909 09:55:46.996672294 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank 3] Timeout at NCCL work: 2070, last enqueued \nNCCL work: 2082, last completed NCCL work: 2069.\nnext\n")
	require.Len(t, all, 1)
	e := all[0]
	assert.Equal(t, []any{int64(3), int64(3), "0 (default_pg)", int64(2070), int64(2082), int64(2069)}, []any{e.Rank, e.GroupRank, e.Group, e.Seq, e.Enqueued, e.Completed})
	// The nine digits are no fraction of the second, and no line is younger than its log.
	assert.Equal(t, time.Date(2025, 9, 9, 9, 55, 46, 0, time.UTC), time.Unix(0, e.Time).UTC())

	all = found("job.log", `[rank1]: Traceback (most recent call last):
[rank1]:   File "/job/train.py", line 10, in <module>
[rank0]: Traceback (most recent call last):
[rank1]:     main()
[rank0]:   File "/job/train.py", line 10, in <module>
[rank1]:   File "/job/train.py", line 7, in main
[rank0]:   File "/job/other.py", line 3, in load
[rank1]: ValueError: bad
[rank0]: KeyError: 'x'
`)
	require.Len(t, all, 2, "tracebacks of two ranks in one another")
	assert.Equal(t, []any{int64(1), "ValueError", "bad", "/job/train.py:7 in main"}, []any{all[0].Rank, all[0].Exception, all[0].What, all[0].Last.String()})
	assert.Equal(t, []any{int64(0), "KeyError", "/job/other.py:3 in load"}, []any{all[1].Rank, all[1].Exception, all[1].Last.String()})

	// A log that begins with a traceback names no rank.
	for _, text := range []string{
		"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n",
		"  traceback : Traceback (most recent call last):\n    File \"a.py\", line 1, in f\n  ValueError: x\n",
	} {
		all = found("job.log", text)
		require.Len(t, all, 1, text)
		assert.Equal(t, []int64{-1, -1}, []int64{all[0].Rank, all[0].Local}, text)
	}

	all = found("job.log", `Root Cause (first observed failure):
[0]:
  time      : 2024-05-01_12:33:44
  host      : node0
  rank      : 10 (local_rank: 2)
  exitcode  : -9 (pid: 4711)
  error_file: <N/A>
`)
	require.Len(t, all, 1)
	e = all[0]
	assert.Equal(t, []any{[]int64{10}, int64(2), int64(9), int64(4711), "node0"}, []any{e.Ranks, e.Local, e.Signal, e.PID, e.Host})
}

// Ordinary lines of healthy jobs are no events.
func TestNoEvents(t *testing.T) {
	for _, line := range []string{
		"iter 12: loss 2.3, time 45.67ms, mfu 30.1%", "sample: the dragon was Killed. Segmentation fault, cried the king; out of memory and out of time!",
		"INFO: rank 3 joined", "loading checkpoint from /ckpt", "{'loss': 2.1, 'grad_norm': 0.3}", "error rate 0.12, exit criteria met", "Killed time: 3 s",
	} {
		assert.Empty(t, found("job.log", line), line)
	}
}

// TestDocument checks that docs/reference/events.md is current; -update writes it.
func TestDocument(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Events: how runs end, line by line\n\nWritten by `go test ./bridge/events -run TestDocument -update` from `bridge/events`. A line of a log is looked for behind any prefix of a launcher.\n[Why dead](why-dead.md) says what is made of them.\n\n## What a class may claim\n\n| class | claim |\n| --- | --- |\n")
	for _, c := range Claims {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Class, c.Claim)
	}
	b.WriteString("\n## Forms\n\n| form | class | writer | since | example |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range Forms {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | `%s` |\n", f.Name, f.Class, f.Writer, f.Since, strings.NewReplacer("|", `\|`, "`", "'", "\n", " ").Replace(f.Example))
	}
	path := filepath.Join("..", "..", "docs", "reference", "events.md")
	if *update {
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String(), "run go test ./bridge/events -run TestDocument -update")
}

func FuzzScanner(f *testing.F) {
	for _, form := range Forms {
		f.Add(form.Example)
	}
	f.Add("[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a\", line 1, in f\n[rank1]: X: y\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range found("job.log", text) {
			if len(e.Text) > 4*MaxText || e.Form == nil {
				t.Fatal(e)
			}
			Again(e.Form.Name, e.Class, e.Text)
		}
	})
}

// An ordinary line without a record costs one pass of the filter.
func BenchmarkOrdinary(b *testing.B) {
	s := NewScanner("job.log", time.UTC, time.Now())
	line := []byte("2026-11-26 09:01:18,651 INFO train.py:88 prefetched 128 batches of shard 00017-of-02048, queue depth 12, cache hits 99.2 %, next shard in 3.1 s")
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		s.Line(line)
	}
}

func BenchmarkEvent(b *testing.B) {
	line := []byte(Forms[1].Example)
	s := NewScanner("job.log", time.UTC, time.Now())
	for b.Loop() {
		s.Line(line)
	}
}

// A million warnings of one form are a thousand events.
func TestEnough(t *testing.T) {
	line := "node0:3468:3905 [4] NCCL WARN NET/Plugin: Could not find: libnccl-net.so"
	all := found("job.log", strings.Repeat(line+"\n", 2*mostOfForm)+"[rank1]: ValueError\n[rank3]: RuntimeError: CUDA error: unspecified launch failure")
	require.Len(t, all, mostOfForm+1)
	assert.Equal(t, ClassCUDAError, all[mostOfForm].Class)
}

// The first lines of a traceback may be missing: of a log that was cut, or of a buffer that lost them. Frames alone, such as those of a warning, are no end.
func TestHeadless(t *testing.T) {
	const frames = "    return self.forward(x)\n  File \"/job/model.py\", line 12, in forward\n    return x @ w\n"
	for _, c := range []struct {
		text, want string
		rank       int64
	}{
		{frames + "RuntimeError: mat1 and mat2 shapes cannot be multiplied\nW0313 19:13:52.928000 57031 api.py:897] next\n", "RuntimeError /job/model.py:12 in forward", -1},
		{"[rank1]:   File \"/job/model.py\", line 12, in forward\n[rank1]:     return x @ w\n[rank1]: ValueError: y\n", "ValueError /job/model.py:12 in forward", 1},
		{"[rank2]: RuntimeError: The size of tensor a (0) must match the size of tensor b (4096)\n", "RuntimeError ", 2},
		{"  File \"/job/v1.py\", line 12, in get\nvllm.v1.engine.exceptions.EngineGenerateError: x\n", "vllm.v1.engine.exceptions.EngineGenerateError /job/v1.py:12 in get", -1},
		{"0: [rank2]: torch.distributed.elastic.RendezvousError: bad\n", "torch.distributed.elastic.RendezvousError ", 2},
		{frames, "", 0},
		{"step 1 ValueError: retried\n0: ValueError: retried\n", "", 0},
		{"UserWarning: Error detected in MulBackward0. Traceback of forward call that caused the error:\n" + frames + strings.Repeat(" (Triggered internally)\nloss is 1.2\n", 9), "", 0},
		{frames + "UserWarning: x\n" + strings.Repeat("loss is 1.2\n", 9), "", 0},
		{frames + "Traceback (most recent call last):\n  File \"/job/a.py\", line 1, in f\nKeyError: 'x'\n", "KeyError /job/a.py:1 in f", -1},
	} {
		all := found("job.log", c.text)
		if c.want == "" {
			assert.Empty(t, all, c.text)
			continue
		}
		if assert.Len(t, all, 1, c.text) {
			assert.Equal(t, c.want, all[0].Exception+" "+all[0].Last.String(), c.text)
			assert.Equal(t, c.rank, all[0].Rank, c.text)
		}
	}
}

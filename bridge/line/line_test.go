package line_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/line"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// want is a Prefix with strings, for readable tables.
type want struct {
	ray, ip, level, stamp, logger, source, container string
	pid, rank, repeated                              int64
	hasRank                                          bool
}

const tq = "[TQ-TRACE] trace_id=N/A | func=f | stage=GET_START"

func TestPeelLoggers(t *testing.T) {
	checkPeel(t, []peelCase{
		{"nothing", tq, tq, want{}},
		{"empty", "", "", want{}},
		{"python logging", "INFO:2026-02-11 16:40:00,120:" + tq, tq, want{level: "INFO", stamp: "2026-02-11 16:40:00,120"}},
		{"no fraction", "DEBUG:2026-02-11 16:40:00:" + tq, tq, want{level: "DEBUG", stamp: "2026-02-11 16:40:00"}},
		{"megatron", " [2025-08-01 07:19:37] iteration        1/    5000 | x", "iteration        1/    5000 | x", want{stamp: "2025-08-01 07:19:37"}},
		{"brackets", "[2026-02-11 16:40:00,120] [INFO] [a.py:12:main] hello", "hello", want{stamp: "2026-02-11 16:40:00,120", level: "INFO", source: "a.py:12:main"}},
		{"brackets no func", "[2026-02-11 16:40:00,120][INFO][a.py:12] hello", "hello", want{stamp: "2026-02-11 16:40:00,120", level: "INFO", source: "a.py:12"}},
		{
			"dashes", "2026-08-20 10:15:00,123 - INFO - transfer_queue.utils.perf_utils - TQ_STORAGE_UNIT_4f: [Performance] x - y - z",
			"TQ_STORAGE_UNIT_4f: [Performance] x - y - z",
			want{stamp: "2026-08-20 10:15:00,123", level: "INFO", logger: "transfer_queue.utils.perf_utils"},
		},
		{"dashes, name first", "2026-08-20 10:15:00,123 - a.b - WARNING - x", "x", want{stamp: "2026-08-20 10:15:00,123", level: "WARNING", logger: "a.b"}},
		{"dashes, no name", "2026-08-20 10:15:00,123 - INFO - some text - x", "some text - x", want{stamp: "2026-08-20 10:15:00,123", level: "INFO"}},
		{"slashes", "2024/05/07 12:12:19 - mmengine - INFO - x", "x", want{stamp: "2024/05/07 12:12:19", level: "INFO", logger: "mmengine"}},
		{"two separators", "2024/05-07 12:12:19 x", "2024/05-07 12:12:19 x", want{}},
		{"stamp alone", "2026-08-20 10:15:00 hello", "hello", want{stamp: "2026-08-20 10:15:00"}},
		{"not a level", "INFORMATION:2026-02-11 16:40:00,120:x", "INFORMATION:2026-02-11 16:40:00,120:x", want{}},
		{
			"a file called rank", "[2026-02-11 16:40:00][INFO] [rank_utils.py:12:f] [default_trainer.py:88:run] hello", "hello",
			want{stamp: "2026-02-11 16:40:00", level: "INFO", source: "default_trainer.py:88:run"},
		},
		{"not a source", "[a:b:c] x", "[a:b:c] x", want{}},
		{"Rank 6", "[Rank 6] (after 1 iterations) memory", "[Rank 6] (after 1 iterations) memory", want{}},
	})
}

func TestPeelRay(t *testing.T) {
	checkPeel(t, []peelCase{
		{
			"ray", "(AgentLoopWorker pid=2642022) INFO:2026-02-11 16:40:00,120:" + tq, tq,
			want{ray: "AgentLoopWorker", pid: 2642022, level: "INFO", stamp: "2026-02-11 16:40:00,120"},
		},
		{
			"ray colour", "\x1b[36m(AgentLoopWorker pid=2642022)\x1b[0m INFO:2026-02-11 16:40:00,120:" + tq, tq,
			want{ray: "AgentLoopWorker", pid: 2642022, level: "INFO", stamp: "2026-02-11 16:40:00,120"},
		},
		{"ray ip", "(TaskRunner pid=15930, ip=10.4.1.33) " + tq, tq, want{ray: "TaskRunner", pid: 15930, ip: "10.4.1.33"}},
		{"ray ipv6", "(A pid=1, ip=fe80::1) x", "x", want{ray: "A", pid: 1, ip: "fe80::1"}},
		{"ray class", "(worker:0(WorkerDict) pid=7) x", "x", want{ray: "worker:0(WorkerDict)", pid: 7}},
		{"ray dots", "(verl.x.Y.gen pid=7) x", "x", want{ray: "verl.x.Y.gen", pid: 7}},
		{
			"ray repeated", "\x1b[36m(W pid=1)\x1b[0m INFO:2026-02-11 16:40:00,120:" + tq + "\x1b[32m [repeated 7x across cluster]\x1b[0m", tq,
			want{ray: "W", pid: 1, level: "INFO", stamp: "2026-02-11 16:40:00,120", repeated: 7},
		},
		{
			"ray repeated, explained",
			tq +
				" [repeated 2x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://docs.ray.io for " +
				"more options.)",
			tq,
			want{repeated: 2},
		},
		{"repeated inside", "x [repeated 2x across cluster] y", "x [repeated 2x across cluster] y", want{}},
		{"osc title", "\x1b]0;title\x07(W pid=1) x", "x", want{ray: "W", pid: 1}},
		{"indentation stays", "(W pid=1)   forward: 1", "  forward: 1", want{ray: "W", pid: 1}},
		{"not ray", "(see pid=12 there) x", "(see pid=12 there) x", want{}},
		{"number too long", "(A pid=9999999999999999999) x", "(A pid=9999999999999999999) x", want{}},
	})
}

func TestPeelRanks(t *testing.T) {
	checkPeel(t, []peelCase{
		{"rank", "[rank3]: " + tq, tq, want{rank: 3, hasRank: true}},
		{
			"torchrun, megatron", "[default0]: [2026-09-11 12:06:52.987995] iteration        3/ 7629408 | x", "iteration        3/ 7629408 | x",
			want{rank: 0, hasRank: true, stamp: "2026-09-11 12:06:52.987995"},
		},
		{
			"srun, megatron", "3:  [2026-05-29 03:52:45] iteration      300/     300", "iteration      300/     300",
			want{rank: 3, hasRank: true, stamp: "2026-05-29 03:52:45"},
		},
		{"srun and rank", "12: [rank3]: x", "x", want{rank: 3, hasRank: true}},
		{"not a rank", "[rank3] x", "[rank3] x", want{}},
		{"not srun", "12:30:00 x", "12:30:00 x", want{}},
	})
}

func TestPeelContainersAndTerminals(t *testing.T) {
	checkPeel(t, []peelCase{
		{
			"docker", "2026-02-11T16:40:00.123456789Z INFO:2026-02-11 16:40:00,120:" + tq, tq,
			want{container: "2026-02-11T16:40:00.123456789Z", level: "INFO", stamp: "2026-02-11 16:40:00,120"},
		},
		{"cri", "2026-02-11T16:40:00.123456789+08:00 stderr F hello", "hello", want{container: "2026-02-11T16:40:00.123456789+08:00"}},
		{"cri partial", "2026-02-11T16:40:00.1Z stdout P hello", "hello", want{container: "2026-02-11T16:40:00.1Z"}},
		{"docker and own", "2026-02-11T16:40:00.1Z 2026-02-11T16:40:01Z hello", "hello", want{container: "2026-02-11T16:40:00.1Z", stamp: "2026-02-11T16:40:01Z"}},
		{"osc with ST", "\x1b]8;;http://a\x1b\\x", "x", want{}},
		{"unfinished csi", "x\x1b[3", "x", want{}},
		{"lone escape", "\x1b\x1b[0m[31mx", "[31mx", want{}},
	})
}

func TestPeelLaunchers(t *testing.T) {
	checkPeel(t, []peelCase{
		{"kubectl", "[pod/train-0/pytorch] " + tq, tq, want{ip: "train-0"}},
		{"kubectl, time", "[pod/train-0/pytorch] 2026-08-03T09:14:22.7Z  x", " x", want{ip: "train-0", container: "2026-08-03T09:14:22.7Z"}},
		{"Kubeflow", "[Pod train-0]: x", "x", want{ip: "train-0"}},
		{"compose", "trainer-1  | \t x", "\t x", want{}},
		{"swarm", "trainer.1.x8m0@gpu-01    | x", "x", want{}},
		{"mpirun", "[1,12]<stdout>:x y", "x y", want{rank: 12, hasRank: true}},
		{"mpirun, times", "Thu Nov 26 12:22:35 2026[1,0]<stderr>:x", "x", want{hasRank: true, container: "2026-11-26 12:22:35"}},
		{"mpirun 5", "[Mon Aug  3 09:14:22 2026][1,3]<stdout>: x", "x", want{rank: 3, hasRank: true, container: "2026-08-03 09:14:22"}},
		{"mpirun 5, time alone", "[Mon Aug  3 09:14:22 2026]<stdout>: x", "x", want{container: "2026-08-03 09:14:22"}},
		{"prterun", "[1,3][gpu01:41233]<stdout>: x", "x", want{rank: 3, hasRank: true, ip: "gpu01"}},
		{"SageMaker", "[1,mpirank:3,algo-1]<stdout>:x", "x", want{rank: 3, hasRank: true, ip: "algo-1"}},
		{"Determined", "[2026-08-03T09:14:23.8Z] f6114bb3 [rank=1] || INFO: x", "x", want{rank: 1, hasRank: true, level: "INFO", container: "2026-08-03T09:14:23.8Z"}},
		{"Determined's tag without a container", "[2026-08-03T09:14:23Z] a!b [rank=1] || x", "a!b [rank=1] || x", want{stamp: "2026-08-03T09:14:23Z"}},
		{"Determined, no rank", "[2026-08-03T09:14:23Z] f6114bb3 || x", "x", want{container: "2026-08-03T09:14:23Z"}},
		{"not Determined", "[2026-08-03T09:14:23.8Z] a+b [rank=1] || x", "a+b [rank=1] || x", want{stamp: "2026-08-03T09:14:23.8Z"}},
		{"Determined's container", "[rank=1] x", "x", want{rank: 1, hasRank: true}},
		{"het job", "P1 3: x", "x", want{rank: 3, hasRank: true}},
		{"syslog", "Aug  3 09:14:22 gpu-01 python3[41233]: x", "x", want{ip: "gpu-01", pid: 41233, container: "Aug  3 09:14:22"}},
		{"journal, iso", "2026-08-03T09:14:22+0000 gpu-01 python3[7]: x", "x", want{ip: "gpu-01", pid: 7, container: "2026-08-03T09:14:22+0000"}},
		{"journal, full", "Mon 2026-08-03 09:14:22 UTC gpu-01 python3[7]: x", "x", want{ip: "gpu-01", pid: 7, container: "2026-08-03 09:14:22Z"}},
		{"journal, monotonic", "[ 5000.523417] gpu-01 python3[7]: x", "x", want{ip: "gpu-01", pid: 7}},
		{"journal, unix", "1785748462.523417 gpu-01 python3[7]: x", "x", want{ip: "gpu-01", pid: 7, container: "2026-08-03T09:14:22.523417Z"}},
		{"Loki", `2026-08-03T09:14:51Z {app="train", pod="a"} x`, "x", want{container: "2026-08-03T09:14:51Z"}},
		{"CloudWatch", "2026-08-03T09:14:22.7+00:00 train/algo-1-1785748462 x", "x", want{container: "2026-08-03T09:14:22.7+00:00"}},
	})
}

// Words of records that look like a launcher's stay, even when repeated.
func TestPeelLeavesRecords(t *testing.T) {
	for _, text := range []string{
		"step: 5 loss: 2", "step1: loss 2 x", "epoch1: step 5 loss 2", "loss1: 0.5", "val_loss_2: 0.5 x", "top5: 0.9 x", "f1: 0.5", "p50: 12.3ms", "rank0: step 5 loss 2",
		"val_2 | 3", "epoch-1 | loss 2", "2026-08 | 5 x", "train | epoch 1 | loss 2", "[epoch1]: x", "[0]: 5 x", "[1,2]: 5 x", "[1, 2] <stdout>: x", "[batch=4/6]:", "\t Train loss: 1",
		"May 5 epochs remain until 2027", "Mon is a day of the week, and not more", "[pod] x y", "[rank=a] x", "P5 loss: 2", "gpu-01 python3[a]: x", "12:30:00.5 x", "worker: x y",
		"{'loss': 2}", `{"log": "x", "time": 5}`, "100%|##| 1/1 [00:00<00:00]", "iter 0: loss 4.2, time 34ms", "2.3 step[1]: x",
	} {
		var pl line.Peeler
		var p line.Prefix
		for range 40 {
			assert.Equal(t, text, string(pl.Peel([]byte(text), &p)))
			assert.Equal(t, line.Prefix{}, p, text)
		}
	}
}

// A word is a host of pdsh where the same words begin nearly all lines.
func TestPeelHosts(t *testing.T) {
	var pl line.Peeler
	var p line.Prefix
	rest := func(text string) string { return string(pl.Peel([]byte(text), &p)) }
	assert.Equal(t, "gpu01: step: 1 loss: 2", rest("gpu01: step: 1 loss: 2"))
	assert.Equal(t, "10.4.1.33: step: 1 loss: 2", rest("10.4.1.33: step: 1 loss: 2"))
	assert.Equal(t, "step: 2 loss: 2", rest("gpu01: step: 2 loss: 2"))
	assert.Equal(t, "gpu01", string(p.IP))
	assert.Equal(t, "\t x", rest("10.4.1.33: \t x"))
	assert.Equal(t, "1", rest("gpu01: 1"), "of a block of values")
	for range 20 {
		rest("a line of another program")
	}
	assert.Equal(t, "gpu01: step: 2 loss: 2", rest("gpu01: step: 2 loss: 2"))
}

type peelCase struct {
	name, in, rest string
	want           want
}

func checkPeel(t *testing.T, cases []peelCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			var pl line.Peeler
			var p line.Prefix
			in := []byte(tt.in)
			rest := pl.Peel(in, &p)
			assert.Equal(t, tt.rest, string(rest))
			assert.Equal(t, tt.want, want{
				string(p.RayName), string(p.IP), string(p.Level), string(p.Stamp), string(p.Logger), string(p.Source), string(p.Container),
				p.PID, p.Rank, p.Repeated, p.HasRank,
			})
			assert.Equal(t, tt.in, string(in), "the line must stay as it was")
		})
	}
}

func FuzzPeel(f *testing.F) {
	for _, s := range []string{
		"", "\x1b[36m(AgentLoopWorker pid=2642022)\x1b[0m INFO:2026-02-11 16:40:00,120:[TQ-TRACE] x\x1b[32m [repeated 7x across cluster]\x1b[0m",
		"3: [default0]: [2026-09-11 12:06:52.987995] x", "2026-02-11T16:40:00.1Z stdout F x", "2026-08-20 10:15:00,123 - a - INFO - x",
		"[2026-02-11 16:40:00,120] [INFO] [a.py:12:main] x",
		"[1,mpirank:3,algo-1]<stdout>:x", "Thu Nov 26 12:22:35 2026[1,0]<stdout>:x", "[2026-08-03T09:14:23.8Z] f6114bb3 [rank=1] || INFO: x", "a-1  | x", "P1 3: x",
		"Mon 2026-08-03 09:14:22 UTC gpu-01 python3[7]: x", "1785748462.523417 g p[7]: x", "[ 5.523417] g p[7]: x", `2026-08-03T09:14:51Z {app="a"} x`, "[pod/a/b] x",
		"\x1b]0;\x1b\\", "(a pid=1, ip=b)", "2026-02-11T16:40:00.+00:00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var pl, pl2 line.Peeler
		var p, p2 line.Prefix
		rest := pl.Peel(in, &p)
		if bytes.IndexByte(in, 0x1b) < 0 && len(rest) > 0 {
			if i := bytes.Index(in, rest); i < 0 {
				t.Fatalf("%q is no part of %q", rest, in)
			}
		}
		if again := pl2.Peel(rest, &p2); !bytes.Equal(again, rest) {
			t.Fatalf("peeling %q gave %q, and again %q", in, rest, again)
		}
	})
}

func BenchmarkPeel(b *testing.B) {
	for name, s := range map[string]string{
		"python": "INFO:2026-02-11 16:40:00,120:[TQ-TRACE] trace_id=N/A | func=generate_sequences | stage=COMPUTE_END | duration=6.047038s | timestamp=98237.505756",
		"ray": "\x1b[36m(AgentLoopWorker pid=2642022)\x1b[0m INFO:2026-02-11 16:40:00,120:[TQ-TRACE] trace_id=N/A | func=generate_sequences | " +
			"stage=COMPUTE_END | duration=6.047038s | timestamp=98237.505756",
	} {
		b.Run(name, func(b *testing.B) {
			in := []byte(s)
			var pl line.Peeler
			var p line.Prefix
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				pl.Peel(in, &p)
			}
		})
	}
}

package postmortem_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

type truth struct {
	File      string   `json:"file"`
	Kind      string   `json:"kind"`
	Rank      *int64   `json:"rank"`
	May       []int64  `json:"may_name"`
	MustNot   []int64  `json:"must_not_name"`
	Ambiguous bool     `json:"ambiguous"`
	First     string   `json:"first_cause"`
	Files     []string `json:"files"`
}

// end reads logs as `trainbridge report` does, and says how their job ended.
func end(t *testing.T, paths ...string) postmortem.End {
	t.Helper()
	in, err := offline.Open(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	jobs := digest.New()
	read, err := offline.Read(t.Context(), in, offline.Options{Run: "r", Positions: true}, format.Digest(jobs))
	if err != nil {
		t.Fatal(err)
	}
	rows := format.Jobs(jobs, read)
	if len(rows) == 0 {
		return postmortem.Of(new(digest.Ends), in.Files, 0, -1, 0)
	}
	return postmortem.Of(&rows[0].Ends, in.Files, 0, -1, 0)
}

func TestCases(t *testing.T) {
	var sum score
	truths, _ := filepath.Glob("testdata/cases/*.json")
	for _, path := range truths {
		sum.judge(t, path, strings.TrimSuffix(path, ".json")+".log")
	}
	sum.hold(t, 200)
}

// TestEndings: logs of real jobs ended by tools/endings.
func TestEndings(t *testing.T) {
	var sum score
	truths, _ := filepath.Glob("testdata/endings/*/truth.json")
	for _, path := range truths {
		sum.judge(t, path)
	}
	sum.hold(t, 80)
}

// score counts right and wrong conclusions.
type score struct{ all, kinds, innocents, ranks, missed, clear, clearWrong int }

func (s *score) judge(t *testing.T, path string, logs ...string) {
	t.Helper()
	var want truth
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	for _, f := range want.Files {
		logs = append(logs, filepath.Join(filepath.Dir(path), f))
	}
	got := end(t, logs...)
	if got.Sentence == "" || got.Kind == "" {
		t.Errorf("%s: no sentence", path)
	}
	s.all++
	var marks []string
	alive := want.Kind == "healthy" || want.Kind == "after_end"
	wrong := got.Kind != want.Kind && (!alive || got.Failed())
	if wrong {
		s.kinds++
		marks = append(marks, "KIND")
		if want.Ambiguous {
			marks[0] += "?"
		}
	}
	if !want.Ambiguous {
		if s.clear++; wrong {
			s.clearWrong++
		}
	}
	for _, r := range got.Ranks {
		if slices.Contains(want.MustNot, r) {
			s.innocents++
			marks = append(marks, "INNOCENT")
		} else if !slices.Contains(want.May, r) {
			marks = append(marks, "UNKNOWN")
		}
	}
	if want.Rank != nil {
		if s.ranks++; len(got.Ranks) != 1 || got.Ranks[0] != *want.Rank {
			s.missed++
			marks = append(marks, "RANK")
		}
	}
	if len(marks) > 0 {
		t.Logf("%s: %s\n   want %s %v may %v not %v: %s\n   got  %s %v: %s", path, marks, want.Kind, deref(want.Rank), want.May, want.MustNot, want.First, got.Kind, got.Ranks, got.Sentence)
	}
}

// hold checks the promise: no innocent rank is named, and of unambiguous cases at least 95 in 100 are right.
func (s *score) hold(t *testing.T, least int) {
	t.Helper()
	t.Logf("%d cases: %d kinds wrong (%d of %d that are not ambiguous), %d innocents, %d of %d ranks missed",
		s.all, s.kinds, s.clearWrong, s.clear, s.innocents, s.missed, s.ranks)
	if s.all < least || s.innocents > 0 || s.clearWrong*20 > s.clear {
		t.Error("see above")
	}
}

func deref(p *int64) any {
	if p == nil {
		return nil
	}
	return *p
}

// TestLastWords: an event that waits for more lines is none the less told where its line is the last of a log with steps.
func TestLastWords(t *testing.T) {
	log := filepath.Join(t.TempDir(), "driver.log")
	text := "step:1 - actor/pg_loss:0.1 - timing_s/step:9.5\nstep:2 - actor/pg_loss:0.1 - timing_s/step:9.5\n" +
		"ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: Worker\n\tpid: 4711\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := end(t, log)
	if got.Kind != "process_gone" || len(got.Evidence) != 1 || got.Evidence[0].At.File == "" {
		t.Errorf("%s: %s %+v", got.Kind, got.Sentence, got.Evidence)
	}
}

// TestFinished: a trainer's record of the whole run ends training, unless steps or an error come after.
func TestFinished(t *testing.T) {
	const step, whole = "{'loss': 1.5, 'grad_norm': 1.1, 'learning_rate': 1e-05, 'epoch': 0.5}\n", "{'train_runtime': 38.6, 'train_loss': 1.5, 'epoch': 1.0}\n"
	const state = `{"global_step": 20, "max_steps": 20, "log_history": [{"step": 10, "loss": 1.5, "epoch": 0.5}, {"step": 20, "loss": 1.4, "epoch": 1.0}`
	for _, c := range []struct{ name, file, text, want string }{
		{"the record of the run", "train.log", step + step + whole, "healthy"},
		{"no record", "train.log", step + step, "silent"},
		{"more steps", "train.log", step + whole + step + step, "silent"},
		{"an error after", "train.log", step + whole + "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n", "exception"},
		{"the end of a worker's thread after", "train.log", step + whole + "Exception in thread QueueFeederThread:\nTraceback (most recent call last):\n" +
			"  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 178, in close\nOSError: [Errno 9] Bad file descriptor\n", "after_end"},
		{"a document", "trainer_state.json", state + `, {"step": 20, "train_runtime": 38.6, "train_loss": 1.5, "epoch": 1.0}]}`, "healthy"},
		{"a document of a run that goes on", "trainer_state.json", state + `]}`, "silent"},
	} {
		log := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(log, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := end(t, log); got.Kind != c.want {
			t.Errorf("%s: %s, not %s: %s", c.name, got.Kind, c.want, got.Sentence)
		}
	}
}

// TestWriters: logs after the sources of their writers (torchrun: torch/distributed/elastic; c10d: socket.cpp; Composer: composer/cli/launcher.py at 640518880;
// NCCL: src/os/linux.cc at 5067397c; Slurm: slurmstepd/task.c at 284c3b95; datasets: utils/py_utils.py at b7cb10b0), with heads cut off and lines behind a bar.
func TestWriters(t *testing.T) { //nolint:funlen // a table
	const bar = " 59%|█████▊    | 1663/2840 [6:59:31<4:51:53, 14.88s/it]"
	const wiped = "                                                       \n" // tqdm.write wipes the bar before a row, and draws it again after
	const before = " 59%|█████▊    | 1662/2840 [6:59:16<4:51:54, 14.87s/it]\n"
	const rows = before + wiped + "{'loss': 0.0554, 'grad_norm': 0.65, 'learning_rate': 4.3e-06, 'epoch': 23.41}\n\n" + before + bar + "\n" + wiped +
		"{'loss': 0.0605, 'grad_norm': 0.61, 'learning_rate': 4.3e-06, 'epoch': 23.42}\n\n"
	const frames = "  File \"/job/model.py\", line 12, in forward\n    return x @ w\n"
	const again = "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/job/model.py\", line 12, in forward\n[rank3]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n"
	const failed = "E0213 12:07:20.086000 870572 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 4712) of binary: /usr/bin/python3\n"
	for _, c := range []struct{ name, text, kind, says string }{
		{"a signal behind a bar", rows + bar + "W1229 16:43:25.650000 190834 torch/distributed/elastic/agent/server/api.py:723] Received 1 death signal, shutting down workers\n", "signal", "killed by SIGHUP"},
		{"an interrupt behind a bar", rows + bar + "/lib/distributed.py:25: UserWarning: Detected KeyboardInterrupt, attempting graceful shutdown...\n" + bar + "\n", "cancelled", "interrupted"},
		{"a traceback without its head", frames + "RuntimeError: mat1 and mat2\n" + failed, "exception", "raised RuntimeError: mat1 and mat2, at /job/model.py:12"},
		{"an exception of a rank alone", "[rank1]: RuntimeError: mat1 and mat2\nW0313 19:13:52.928000 57031 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 57125 closing signal SIGTERM\n", "exception", "Rank 1 raised RuntimeError: mat1 and mat2"},
		{
			"a more specific error behind a cut traceback", frames + "RuntimeError: unhandled system error\nnode0:12:34 [4] misc/ibvwrap.cc:276 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110\n",
			"network", "ibv_modify_qp",
		},
		{"Composer", "Building trainer...\nERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.\n", "signal", "(rank 2) crashed (SIGBUS)"},
		{"Composer's exit code", "ERROR:composer.cli.launcher:Rank 2 crashed with exit code 1.\nINFO:composer.cli.launcher:Killing global rank 0 (PID 11) with SIGTERM\n", "exception", "(rank 2) ended with exit code 1"},
		{
			"NCCL's last error", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1331, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.5\n" +
				"ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\nsocketStartConnect: Connect to 10.0.0.7<45069> failed : Software caused connection abort\n",
			"network", "on the way to 10.0.0.7<45069>: Software caused connection abort",
		},
		{"NCCL of today", "node0:12:34 [4] os/linux.cc:302 NCCL WARN ncclOsSocketPollConnect: connect to 10.0.0.7<45069> returned Connection refused, exceeded error retry count after 35 attempts\n", "network", "on the way to 10.0.0.7<45069>"},
		{"NCCL retries", "node0:12:34 [4] NCCL INFO ncclOsSocketPollConnect: connect to 10.0.0.7<45069> returned Connection refused, retrying (1/34) after sleep for 100 msec\n" + rows, "silent", ""},
		{"a reset", "node0:12:34 [4] misc/socket.cc:46 NCCL WARN socketProgressOpt: Call to send to 10.0.0.7<52905> failed : Connection reset by peer\n", "network", "(10.0.0.7<52905>)"},
		{"a port in use", "[W socket.cpp:401] [c10d] The server socket has failed to bind to 0.0.0.0:47531 (errno: 98 - Address already in use).\n", "network", "bind to 0.0.0.0:47531 (errno: 98 - Address already in use)"},
		{
			"a port in use, by the exception", "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n",
			"network", "port: 29500",
		},
		{"no IPv6", "[W socket.cpp:401] [c10d] The server socket has failed to bind to [::]:29500 (errno: 97 - Address family not supported by protocol).\n" + rows, "silent", ""},
		{"the port of torch 1.8", "RuntimeError: Address already in use\n", "network", "Address already in use"},
		{
			"the store's barrier", "RuntimeError: Timed out initializing process group in store based barrier on rank: 4, for key: store_based_barrier_key:1 (world_size=16, worker_count=12, timeout=0:30:00)\n",
			"collective_timeout", "store based barrier, world_size=16, worker_count=12",
		},
		{
			"torchrun's first failure behind the others", "[1]:\n  time      : 2023-06-03_22:45:52\n  host      : node0\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 4713)\n" +
				"Root Cause (first observed failure):\n[0]:\n  time      : 2023-06-03_22:45:52\n  host      : node0\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 4711)\n",
			"exception", "Process 4711 ended",
		},
		{
			"torchrun fails in the restart", failed + "I0213 12:07:20.086000 870572 torch/distributed/elastic/agent/server/api.py:889] [default] Worker group FAILED. 3/3 attempts left; will restart worker group\n" +
				"Traceback (most recent call last):\n  File \"/usr/bin/torchrun\", line 8, in <module>\n",
			"exception", "Process 4712",
		},
		{
			"tasks on two nodes", "srun: error: node1: task 1: Segmentation fault (core dumped)\nsrun: Terminating job step 4711.1\nsrun: error: node0: task 0: Segmentation fault (core dumped)\n",
			"signal", "Tasks 1 (host node1), 0 (host node0) crashed (SIGSEGV)",
		},
		{"no program to start", "slurmstepd: error: execve(): torchrun: No such file or directory\nsrun: error: node1: task 0: Exited with exit code 2\n", "exception", "execve(): torchrun: No such file"},
		{"bash", "/job/run.sh: line 3: 4711 Segmentation fault      (core dumped) python3 train.py\n", "signal", "Process 4711 crashed"},
		{"the loss scale", "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n[2023-07-26 15:19:24,960] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 45098\n", "exception", "Current loss scale"},
		{"a map's process", "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing.\n", "process_gone", "disappeared during map operation"},
		{
			"tasks that could not start", "srun: error: Task launch for StepId=20.0 failed on node node07: Communication connection failure\nsrun: error: Application launch failed: Communication connection failure\n" +
				"slurmstepd: error: *** STEP 20.0 ON node01 CANCELLED AT 2026-01-14T22:00:41 ***\n",
			"process_gone", "could not start the tasks on node07: Communication connection failure",
		},
		{"a port in use is no failure of a network", "[rank0]: torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, name: EADDRINUSE\n", "network", "Rank 0 cannot listen on a port in use"},
		{"an evicted pod", "65s  Warning  Evicted  pod/trainer-1  The node was low on resource: ephemeral-storage. Threshold quantity: 1\n", "cancelled", "evicted the pod trainer-1: The node was low on resource: ephemeral-storage."},
		{"a preempted pod", "118s  Normal  Preempted  pod/worker-0  Preempted by pod 8f1c2b1e on node node7\n", "cancelled", "preempted the pod worker-0: Preempted by pod 8f1c2b1e on node node7."},
		{"a pod described", "Name:             worker-2\nNamespace:        train\n    Last State:     Terminated\n      Reason:       OOMKilled\n", "host_oom", "(pod worker-2)"},
		{
			"a worker of the loader, whose rank the next line has", "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n" +
				"[rank3]: RuntimeError: DataLoader worker (pid 1411) is killed by signal: Bus error.\n",
			"data_loader", "data loader died on rank 3:",
		},
		{"the same error behind steps, as in a log that a second job appends to", again + rows + rows + again, "gpu_ecc", "(ECC) on rank 3"},
		{
			"the same error in the second attempt", again + "I0213 12:07:20.086000 870572 torch/distributed/elastic/agent/server/api.py:889] [default] Worker group FAILED. 1/1 attempts left; will restart worker group\n" + again,
			"gpu_ecc", "(ECC) on rank 3",
		},
		{"a launcher's words alone", "[2023-07-26 15:19:24,960] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 45098\n", "not_understood", "A launcher ended the processes"},
	} {
		log := filepath.Join(t.TempDir(), "train.log")
		if err := os.WriteFile(log, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := end(t, log); got.Kind != c.kind || !strings.Contains(got.Sentence, c.says) {
			t.Errorf("%s: %s, not %s: %s", c.name, got.Kind, c.kind, got.Sentence)
		}
	}
}

package postmortem

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestJudge(t *testing.T) { //nolint:funlen // a table
	const (
		cuda = "[rank9]: torch.AcceleratorError: CUDA error: unknown error\n"
		peer = "[rank0]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process exited or there was a network error, NCCL version 2.27.5\n"
		bus  = "Jun 12 09:38:17 gpu7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.\n"
		user = "Jun 12 09:38:17 gpu7 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, MMU Fault\n"
		torn = "Traceback (most recent call last):\n  File \"/venv/torch/serialization.py\", line 9, in save\nRuntimeError: PytorchStreamWriter failed writing file data/9: file write failed\n"
		late = "[rank3]:[E612 09:48:20.456945123 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from rank 0 " +
			"and we will try our best to dump the debug info. Last enqueued NCCL work: 30, last completed NCCL work: 30.\n"
		full = "Traceback (most recent call last):\n  File \"/app/trainer.py\", line 3, in _save_checkpoint\nOSError: [Errno 28] No space left on device\n"
	)
	waits := func(group string, ranks ...int) string {
		var b strings.Builder
		for _, r := range ranks {
			fmt.Fprintf(&b, "[rank%d]:[E612 09:48:20.456945123 ProcessGroupNCCL.cpp:685] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=31, OpType=ALLREDUCE, "+
				"NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600037 milliseconds before timing out.\n", r, r)
			fmt.Fprintf(&b, "[rank%d]:[E612 09:48:20.456945123 ProcessGroupNCCL.cpp:2252] [PG ID 0 PG GUID 0(%s) Rank %d]  failure detected by watchdog at work sequence id: 31 "+
				"PG status: last enqueued work: 31, last completed work: 30\n", r, group, r)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, log, kernel string
		kind              string
		ranks             []int64
		hosts             []string
		says              string
	}{
		{
			name: "a lost GPU is why CUDA failed, whatever the clock of the other log", log: cuda + peer, kernel: bus,
			kind: "xid", ranks: []int64{9}, hosts: []string{"gpu7"}, says: "CUDA failed on rank 9 alone",
		},
		{name: "a lost GPU, and CUDA failed on two ranks", log: cuda + strings.ReplaceAll(cuda, "rank9", "rank3"), kernel: bus, kind: "xid", hosts: []string{"gpu7"}, says: "Xid 79"},
		{name: "a fault of the program explains no lost GPU", log: cuda, kernel: user, kind: "cuda_error", ranks: []int64{9}, says: "unknown error on rank 9"},
		{name: "an exception before a lost GPU is of another origin", log: "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 1, in f\n[rank1]: KeyError: 'x'\n", kernel: bus, kind: "exception", ranks: []int64{1}, says: "KeyError"},
		{
			name: "a node that failed, by srun", kind: "process_gone", hosts: []string{"node05"}, says: "the node failed: node05",
			log: "slurmstepd: error: *** JOB 5 ON node01 CANCELLED AT 2026-06-12T10:30:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\nsrun: error: Node failure on node05\n",
		},
		{
			name: "slurmstepd's own node lives", kind: "process_gone", says: "because a node failed",
			log: "slurmstepd: error: *** JOB 5 ON node01 CANCELLED AT 2026-06-12T10:30:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
		},
		{name: "the full disk is why torch.save failed", log: torn + "\nDuring handling of the above exception, another exception occurred:\n\n" + full, kind: "checkpoint", says: "No space left on device"},
		{name: "torch.save failed", log: torn, kind: "checkpoint", says: "PytorchStreamWriter"},
		{
			name: "the rank in Megatron's own words", kind: "exception", ranks: []int64{3}, hosts: []string{"node1"}, says: "Rank 3 raised",
			log: "Traceback (most recent call last):\n  File \"rerun.py\", line 5, in validate\nRuntimeError: Rank 3, node node1, device 3, iteration 81: Unexpected result nan (message='found NaN in local forward loss calculation')\n",
		},
		{
			name: "Lightning's exception is a signal", kind: KindSIGTERM, says: "no log says by whom",
			log: "[rank: 0] Received SIGTERM: 15\nTraceback (most recent call last):\n  File \"call.py\", line 48, in f\nlightning.pytorch.utilities.exceptions.SIGTERMException\n",
		},
		{
			name: "Ray's node without memory", kind: "host_oom", hosts: []string{"10.0.0.7"}, says: "(host 10.0.0.7)",
			log: "(raylet) Task was killed due to the node running low on memory.\n(raylet) Memory on the node (IP: 10.0.0.7, ID: ab) where the task (actor ID: cd, name=f, pid=4711, memory used=7.72GB) was running was 29.06GB / 30.20GB\n" +
				"(Main pid=1) ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n(Main pid=1) \tclass_name: Worker\n(Main pid=1) \tpid: 4711\n(Main pid=1) \tip: 10.0.0.7\n",
		},
		{name: "the only silent rank", log: waits("default_pg", 0, 1, 3), kind: "collective_timeout", says: "rank 2 alone is silent"},
		{name: "the rank with fewer works", log: waits("default_pg", 0, 1, 2) + late, kind: "rank_behind", ranks: []int64{3}, says: "did not finish enqueueing work 31"},
		{name: "two silent ranks", log: waits("default_pg", 0, 1, 4), kind: "collective_timeout", says: "no log says which rank was behind"},
		{name: "ranks of a smaller group", log: waits("tp", 0, 1, 3), kind: "collective_timeout", says: "no log says which rank was behind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := &Case{LastStep: -1}
			of.scan("job.log", []byte(c.log))
			of.scan("kern.log", []byte(c.kernel))
			end := Judge(of)
			assert.Equal(t, c.kind, end.Kind)
			assert.Equal(t, c.ranks, end.Ranks)
			assert.Equal(t, c.hosts, end.Hosts)
			assert.Contains(t, end.Sentence, c.says)
		})
	}
}

// A log that ends at the last planned step is not told as cut off, nor as healthy.
func TestLastPlannedStep(t *testing.T) {
	for planned, says := range map[int64]string{0: "just stops at step 500", 500: "ends at the last planned step, 500 of 500", 600: "just stops at step 500"} {
		end := Judge(&Case{LastStep: 500, Planned: planned})
		assert.Equal(t, KindSilent, end.Kind)
		assert.Contains(t, end.Sentence, says)
	}
}

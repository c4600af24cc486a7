package postmortem

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/internal/traces/digest"
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
	counts := func(enqueued, completed int, ranks ...int) string {
		var b strings.Builder
		for _, r := range ranks {
			fmt.Fprintf(&b, "[rank%d]:[E612 09:48:20.456945123 ProcessGroupNCCL.cpp:2252] [PG ID 0 PG GUID 0(default_pg) Rank %d]  failure detected by watchdog at work sequence id: %d "+
				"PG status: last enqueued work: %d, last completed work: %d\n", r, r, enqueued, enqueued, completed)
		}
		return b.String()
	}
	const async = "[rank0]:[E612 09:48:20.456945123 ProcessGroupNCCL.cpp:612] [Rank 0] Collective WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=10000) raised " +
		"the following async exception: NCCL error: remote process exited or there was a network error, NCCL version 2.28.9\n"
	const killed = "E612 09:48:21.013000 2074 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: -9) local_rank: 1 (pid: 2159) of binary: /opt/venv/bin/python3\n"
	const missing = "Traceback (most recent call last):\n  File \"utils.py\", line 44, in <module>\n    import apex\nModuleNotFoundError: No module named 'apex'\n"
	const completion = "2025-11-13 09:30:00 step 300\nnode01:6123:6333 [2] transport/net_ib.cc:2244 NCCL WARN NET/IB: Got completion from peer 10.0.0.1<48811> with status=12 " +
		"opcode=129 len=1048576 vendor err 129 (Recv)\n2025-11-13 09:30:24 CRITICAL Fatal Python error: Aborted\n"
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
		{
			name: "nodes that Ray lost (gcs_node_manager.cc, worker.py)", kind: "process_gone", hosts: []string{"10.0.0.7", "10.0.0.9"}, says: "Ray lost 10.0.0.7, 10.0.0.9, which",
			log: "2026-06-12 09:38:17,294\tWARNING worker.py:2047 -- The node with node id: 0fc1 and address: 10.0.0.7 and node name: 10.0.0.7 has been marked dead because the detector has missed too many heartbeats from it.\n" +
				"2026-06-12 09:38:18,301\tWARNING worker.py:1228 -- The node with node id: 9d2c and ip: 10.0.0.9 has been marked dead because the detector has missed too many heartbeats from it.\n",
		},
		{
			name: "Ray's summary, wrapped by a terminal (node_manager.cc)", kind: "host_oom", hosts: []string{"10.0.0.7"}, says: "(host 10.0.0.7)",
			log: "(raylet) node_manager.cc:3277: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at \nnode (ID: 8289, IP: 10.0.0.7) over the last time period.\n",
		},
		{
			name: "Ray's reason stands before the actor's id (exceptions.py)", kind: "process_gone", says: "WorkerDict disappeared (process 71876)",
			log: "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.\n" +
				"ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.\n\tclass_name: WorkerDict\n\tactor_id: 52a4\n\tpid: 71876\n",
		},
		{
			name: "an exception's class is no host (vllm/v1/engine/exceptions.py)", kind: "engine", says: "The engine died, cause unknown: vllm.v1",
			log: "(APIServer pid=83023) ERROR 02-23 18:49:03 [serving_chat.py:1343] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.\n",
		},
		{name: "a task of JAX without heartbeats (coordination_service.cc)", kind: "process_gone", ranks: []int64{37}, says: "The process of rank 37 disappeared", log: "UNAVAILABLE: Task /job:jax_worker/replica:0/task:37 heartbeat timeout.\n"},
		{
			name: "tasks of JAX without heartbeats, a line each (coordination_service.cc, 2025)", kind: "process_gone", ranks: []int64{2, 5}, says: "The process of ranks 2, 5 disappeared",
			log: "F client.h:80] Terminating process because the JAX distributed service detected fatal errors. absl::Status: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n2\n5\n" +
				"The tasks have crashed. Check the task logs for an earlier error, or scheduler events (e.g. preemption, eviction) to debug further.\n",
		},
		{name: "an error in a destructor ends nothing (PyErr_WriteUnraisable)", kind: "silent", says: "just stops", log: "Exception ignored in: <function LLM.__del__ at 0x7f12>\nTraceback (most recent call last):\n" +
			"  File \"core_client.py\", line 5, in shutdown\nAttributeError: 'NoneType' object has no attribute 'close'\n"},
		{
			name: "an import that a program does without", kind: "silent", says: "just stops",
			log: missing + strings.Repeat("> building data sets\n", 12),
		},
		{name: "a loop that stops itself (MAE engine_pretrain.py)", kind: "exception", says: "Loss is nan, stopping training", log: "Loss is nan, stopping training\n" + killed[:67] +
			"failed (exitcode: 1) local_rank: 2 (pid: 41212) of binary: python3\n"},
		{name: "an import that ended the program", kind: "exception", says: "No module named 'apex'", log: missing + "> goodbye\n"},
		{name: "a wrong argument (argparse.py)", kind: "exception", says: "failed: unrecognized arguments: --learning-rat 3e-4", log: "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --learning-rat 3e-4\n"},
		{
			name: "Kubernetes says who sent SIGTERM (kubelet, nodeshutdown)", kind: "cancelled", hosts: []string{"trainer-0"}, says: "imminent node shutdown",
			log: "2025-11-13 09:31:21 WARNING received SIGTERM, saving checkpoint and exiting\n", kernel: "60s  Warning  NodeShutdown  pod/trainer-0  Pod was terminated in response to imminent node shutdown.\n",
		},
		{
			name: "the kernel saw a link go down (mlx5_core)", kind: "network", hosts: []string{"node01", "10.0.0.1"}, says: "The kernel's log says before: mlx5_core 0000:5e:00.0 ibp94s0: Link down",
			log: completion, kernel: "[Thu Nov 13 09:30:01 2025] mlx5_core 0000:5e:00.0 ibp94s0: Link down\n",
		},
		{
			name: "a link that came up again", kind: "network", hosts: []string{"node01", "10.0.0.1"}, says: "vendor err 129 (R….",
			log:    completion,
			kernel: "[Thu Nov 13 09:30:01 2025] mlx5_core 0000:5e:00.0 ibp94s0: Link down\n[Thu Nov 13 09:30:09 2025] mlx5_core 0000:5e:00.0 ibp94s0: Link up\n",
		},
		{
			name: "a task of JAX that began anew (coordination_service.cc)", kind: "process_gone", ranks: []int64{1}, says: "a new one took its place",
			log: "E coordination_service.cc:962] /job:jax_worker/replica:0/task:1 unexpectedly tried to connect with a different incarnation. It has likely restarted.\n" +
				"F client.h:80] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died\n",
		},
		{
			name: "tasks of JAX that never came, a line each (coordination_service.cc)", kind: "rank_behind", ranks: []int64{1, 2, 6}, says: "Ranks 1, 2, 6 did not reach",
			log: "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. Timed out task names:\n/job:jax_worker/replica:0/task:1\n/job:jax_worker/replica:0/task:6\n/job:jax_worker/replica:0/task:2\n\nAdditional GRPC error information\n",
		},
		{name: "the memory of a TPU", kind: "cuda_oom", says: "The accelerator's memory ran out: Ran out of memory in memory space hbm. Used 21.90G of 7.48G", log: "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.90G of 7.48G hbm.\n"},
		{name: "gRPC's messages are no memory", kind: "silent", says: "just stops", log: "RESOURCE_EXHAUSTED: Received message larger than max (5000000 vs. 4194304)\n"},
		{
			name: "MPICH: the exit code is the signal's number (mpiexec.c)", kind: "sigkill", hosts: []string{"node1"}, says: "Process 9665 was killed by SIGKILL",
			log: "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 9665 RUNNING AT node1\n=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n",
		},
		{name: "Intel MPI", kind: "sigkill", ranks: []int64{3}, hosts: []string{"node1"}, says: "(rank 3) was killed by SIGKILL", log: "=   RANK 3 PID 1234 RUNNING AT node1\n=   KILLED BY SIGNAL: 9 (Killed)\n====\n"},
		{name: "Composer (cli/launcher.py)", kind: "signal", ranks: []int64{2}, says: "(rank 2) crashed (SIGBUS)", log: "Building trainer...\nERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.\nWaiting up to 30 seconds\n"},
		{
			name: "horovodrun, elastic (runner/gloo_run.py)", kind: "process_gone", says: "on host worker-1 ended with exit code 137 (128 + 9: SIGKILL)",
			log: "Traceback (most recent call last):\n  File \"/opt/bin/horovodrun\", line 8, in <module>\n  File \"/opt/horovod/runner/gloo_run.py\", line 318, in launch_gloo_elastic\n" +
				"RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. The first process to do so was:\nProcess name: worker-1[0]\nExit code: 137\n",
		},
		{name: "a worker of vLLM ended by SIGTERM is no cause (multiproc_worker_utils.py)", kind: "sigterm", says: "no log says by whom", log: "ERROR 08-11 16:59:41 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 143 died, exit code: -15\n"},
		{name: "torchrun's line, wrapped by a terminal", kind: "sigkill", ranks: []int64{6}, says: "Process 541332 (rank 6)", log: "E0424 01:17:26.952000 521279 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 6 (pid\n: 541332) of binary: /usr/bin/python\n"},
		{name: "Slurm's PMIx saw a client go (pmixp_client_v2.c)", kind: "process_gone", says: "no log says which process ended first", log: "slurmstepd: error:  mpi/pmix_v4: _errhandler: node01 [0]: pmixp_client_v2.c:211: Error handler invoked: status = -61, source = [slurm.pmix.4711.0:21]\n"},
		{
			name: "a log that begins within a traceback", kind: "cuda_oom", says: "GPU memory ran out: No available memory for the cache blocks",
			log: "vllm-1  | ERROR 11-18 18:07:28 engine.py:366]   File \"/app/vllm/worker/worker.py\", line 493, in raise_if_cache_size_invalid\n" +
				"vllm-1  | ERROR 11-18 18:07:28 engine.py:366]     raise ValueError(\"No available memory for the cache blocks. \"\n" +
				"vllm-1  | ERROR 11-18 18:07:28 engine.py:366] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
		},
		{name: "frames without head and end are perhaps a warning's", kind: "silent", says: "just stops", log: "  File \"a.py\", line 3, in f\n    g()\nstep 4\n"},
		{
			name: "the process whose task Ray quotes (exceptions.py)", kind: "cuda_error", hosts: []string{"10.0.0.7"}, says: "(host 10.0.0.7)",
			log: "ray.exceptions.RayTaskError(RuntimeError): ray::main_task() (pid=1, ip=10.0.0.3)\n  File \"main.py\", line 3, in main\nray::WorkerDict.generate() (pid=124798, ip=10.0.0.7, actor_id=bd, repr=<x>)\n" +
				"  File \"base.py\", line 399, in func\nRuntimeError: CUDA error: an illegal memory access was encountered\n",
		},
		{name: "Ray's GCS (gcs_rpc_client.h)", kind: "process_gone", says: "(GCS) did not answer", log: "[2023-06-14 23:54:11,900 E 869 1530] gcs_rpc_client.h:542: Failed to connect to GCS within 60 seconds. GCS may have been killed.\n"},
		{
			name: "torch_npu's call failed, and CANN says why", kind: "cuda_error", ranks: []int64{3}, says: "The NPU failed: fftsplus aicore error on rank 3",
			log: "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"utils.py\", line 60, in synchronize\n[rank3]: RuntimeError: npuSynchronizeDevice:NPUStream.cpp:506 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is 507015\n" +
				"[rank3]: EZ9999: [PID: 12] 2026-06-12-09:38:17.904.479 The error from device(chipId:7, dieId:0), serial number is 134, there is an exception of fftsplus aicore error, core id is 32\n",
		},
		{
			name: "torch_npu's call failed in a collective", kind: "collective_timeout", says: "Ranks waited in a collective",
			log: "RuntimeError: npuSynchronizeDevice:NPUStream.cpp:479 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is 507048\nEI0002: [PID: 12] 2026-06-12-09:38:17.586.187 The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify record from remote rank: [unknown].\n",
		},
		{name: "CANN's wait", kind: "collective_timeout", says: "A wait for the device timed out", log: "EH9999: Inner Error!\n        rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]\n"},
		{name: "a GPU of AMD hangs (ROCr runtime.cpp)", kind: "cuda_error", says: "The GPU failed: HW Exception by GPU node-9", log: "HW Exception by GPU node-9 (Agent handle: 0x631351bb5a20) reason :GPU Hang\nAborted (core dumped)\n"},
		{name: "amdgpu's driver resets (amdgpu_job.c)", kind: "xid", says: "on the GPU at 0000:c5:00.0: ring gfx_0.0.0 timeout", log: "[127033.279661] amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=2662395, emitted seq=2662397\n[127035.492304] amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!\n"},
		{name: "amdgpu's start", kind: "silent", says: "just stops", log: "[  869.722447] amdgpu 0000:44:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0\n"},
		{name: "systemd-oomd", kind: "host_oom", hosts: []string{"node1"}, says: "(host node1)", log: "Dec 18 19:34:56 node1 systemd[1837]: job-4711.scope: systemd-oomd killed 12 process(es) in this unit.\n"},
		{name: "a pod without a node", kind: "not_understood", says: "Kubernetes could not start a pod: 0/2 nodes are available: 1 Insufficient nvidia.com/gpu", log: "  Warning  FailedScheduling  40s  default-scheduler  0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable.\n"},
		{name: "a container killed, and Docker saw no lack of memory", kind: "process_gone", says: "exit code 137 (128 + 9: SIGKILL)", log: "        \"OOMKilled\": false,\n        \"ExitCode\": 137,\n"},
		{name: "DLRover's node (reporter.py)", kind: "process_gone", says: "job-worker-30 disappeared (NoHeartBeat, says DLRover)", log: "[2026-01-27, 08:56:08][warn][job-worker-30][status_update][Running to Failed][{\"from_state\": \"Running\", \"to_state\": \"Failed\", \"node\": \"job-worker-30\", \"exit reason\": \"NoHeartBeat\"}]\n"},
		{name: "DLRover's node without memory", kind: "host_oom", says: "ran out", log: "[2026-01-27, 08:56:08][warn][job-worker-30][status_update][Running to Failed][{\"node\": \"job-worker-30\", \"exit reason\": \"OOMKilled\"}]\n"},
		{name: "a memory fault of a GPU of AMD (ROCr runtime.cpp)", kind: "cuda_error", says: "The GPU failed: Memory access fault by GPU node-4", log: "Memory access fault by GPU node-4 (Agent handle: 0x56387095fa40) on address (nil). Reason: Unknown.\n"},
		{name: "Horovod warns (stall_inspector.cc)", kind: "collective_timeout", says: "waited in a collective for ranks that did not come", log: "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.\n"},
		{name: "docker inspect's OOMKilled is false", log: "        \"OOMKilled\": false,\n        \"Dead\": false,\n", kind: "silent", says: "just stops"},
		{name: "docker inspect's OOMKilled is true", log: "        \"OOMKilled\": true,\n        \"Dead\": false,\n", kind: "host_oom", says: "ran out"},
		{name: "the status of kubectl get pods", log: "train-worker-3   0/1   OOMKilled   0   3m12s\n", kind: "host_oom", says: "ran out"},
		{
			name: "the rank that reports a socket's time-out did not fail by that (HCCL EI0006)", kind: "network", says: "Rank 1 reports a failure of the network",
			log: "[rank1]: EI0006: [PID: 12] 2026-06-12-09:38:17.444.436 Getting socket times out. Reason: Remote Rank did not send the data in time.\n",
		},
		{name: "the only silent rank", log: waits("default_pg", 0, 1, 3), kind: "collective_timeout", says: "rank 2 alone is silent"},
		{name: "the rank with fewer works", log: waits("default_pg", 0, 1, 2) + late, kind: "rank_behind", ranks: []int64{3}, says: "did not finish enqueueing work 31"},
		{name: "a majority waits for a work that the rank ahead has completed", log: counts(16, 15, 0, 1, 3) + counts(17, 16, 2), kind: "collective_timeout", says: "no log says which rank was behind"},
		{name: "a majority is behind, and waits for nothing", log: counts(16, 16, 0, 1, 3) + counts(17, 16, 2), kind: "rank_behind", ranks: []int64{0, 1, 3}, says: "work 17"},
		{name: "counts behind an exception tell no time-out", log: async + counts(15, 14, 0) + killed, kind: KindSIGKILL, ranks: []int64{1}, says: "Process 2159 (rank 1)"},
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

// TestFarEnd: a lost connection, and NCCL's words for one, are of a process that failed elsewhere, if the log of another host tells of such a failure.
func TestFarEnd(t *testing.T) {
	const (
		remote  = "[rank3]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
		refused = "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 5, in f\n[rank0]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, " +
			"remote process exited or there was a network error, NCCL version 2.26.2\n[rank0]: Last error:\n[rank0]: socketPollConnect: connect to 10.1.0.2<49817> returned Connection refused, exceeded error retry count (35)\n"
		raised  = "[rank6]: Traceback (most recent call last):\n[rank6]:   File \"a.py\", line 1, in f\n[rank6]: ValueError: x\n"
		clients = "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 3/4 clients joined.\n"
		failed  = "E1120 09:50:05.354198 41200 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -7) local_rank: 1 (pid: 41211) of binary: python\n"
	)
	for _, c := range []struct{ name, here, there, kind, says string }{
		{"a rank of another host raised", refused, raised, "exception", "Rank 6 raised ValueError: x"},
		{"nobody else failed", refused, "", "network", "Rank 0 reports a failure of the network"},
		{"the same log, in the order of its lines", refused + raised, "", "network", "Rank 0 reports a failure of the network"},
		{"a process of another host crashed", remote, failed, "signal", "crashed (SIGBUS)"},
		{"NCCL's words alone", remote, "", "exception", "Rank 3 raised ncclRemoteError"},
		{"a program that is not installed on one host", clients, "slurmstepd: error: execve(): torchrun: No such file or directory\n", "exception", "execve(): torchrun"},
		{"processes that did not come", clients, "", "network", "Not all processes came to the start: Timed out after 901 seconds waiting for clients. 3/4 clients joined."},
	} {
		of := &Case{LastStep: -1}
		of.scan("a.log", []byte(c.here))
		of.scan("b.log", []byte(c.there))
		end := Judge(of)
		assert.Equal(t, c.kind, end.Kind, c.name)
		assert.Contains(t, end.Sentence, c.says, c.name)
	}
}

// TestMute: ranks with steps and without a word of the wait that all others tell of are a hint, and none is named.
func TestMute(t *testing.T) {
	var log strings.Builder
	stepping := make(map[int64]string)
	for r := range int64(8) {
		stepping[r] = "node" + strconv.FormatInt(r/2, 10) + ".log"
		if r/2 != 2 {
			fmt.Fprintf(&log, "[rank%d]:[E612 09:48:20.456945123 ProcessGroupNCCL.cpp:685] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=31, OpType=ALLREDUCE, "+
				"NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600037 milliseconds before timing out.\n", r, r)
		}
	}
	of := &Case{LastStep: 30, Stepped: true, Stepping: stepping}
	of.scan("job.log", []byte(log.String()))
	end := Judge(of)
	assert.Contains(t, end.Sentence, "as ranks 0–3, 6, 7 say; ranks 4, 5, with steps before, are silent (node2.log): behind, gone, or frozen.")
	assert.Empty(t, end.Ranks)
	stepping[8], stepping[9], stepping[10], stepping[11], stepping[12], stepping[13] = "a", "a", "a", "a", "a", "a"
	assert.Contains(t, Judge(of).Sentence, "no log says which rank was behind", "as many are silent as have told")
}

// TestClocks: the kernel's log of a host may have a clock of another zone; the process that both logs name says so.
func TestClocks(t *testing.T) {
	const job = "2025-11-13 09:40:03 step 200\nE1113 09:40:11.000000 41200 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 5 (pid: 41215) of binary: python3\n"
	for _, c := range []struct{ name, kernel, kind, says string }{
		{"eight hours behind", "[Thu Nov 13 01:40:01 2025] NVRM: Xid (PCI:0000:5d:00): 79, pid=41215, name=python3, GPU has fallen off the bus.\n", "xid", "(by a clock 8 h behind)"},
		{"three days before", "[Mon Nov 10 01:40:01 2025] NVRM: Xid (PCI:0000:5d:00): 79, pid=41215, name=python3, GPU has fallen off the bus.\n", "xid", "fallen off the bus"},
		{"some time before", "[Thu Nov 13 01:33:01 2025] NVRM: Xid (PCI:0000:5d:00): 79, pid=41215, name=python3, GPU has fallen off the bus.\n", "xid", "fallen off the bus"},
	} {
		of := &Case{LastStep: 200}
		of.scan("job.log", []byte(job))
		of.scan("dmesg", []byte(c.kernel))
		of.setClocks()
		end := Judge(of)
		assert.Equal(t, c.kind, end.Kind, c.name)
		assert.Contains(t, end.Sentence, c.says, c.name)
		assert.Equal(t, strings.Contains(c.says, "clock"), strings.Contains(end.Sentence, "clock"), c.name)
	}
}

// TestKernelBeside: what the kernel's log says beside a job's own: file servers that do not answer (net/sunrpc/clnt.c, Lustre's ptlrpc/import.c), and
// processes of others.
func TestKernelBeside(t *testing.T) {
	const (
		stamp   = "[Mon May  5 05:20:56 2025] "
		lost    = stamp + "nfs: server 10.0.0.5 not responding, still trying\n"
		hung    = stamp + "INFO: task python3:4711 blocked for more than 120 seconds.\n"
		back    = stamp + "nfs: server 10.0.0.5 OK\n"
		evicted = "Oct 18 02:18:11 node1 kernel: LustreError: 167-0: scratch-OST0012-osc-ffff9f2b4c5f8000: This client was evicted by scratch-OST0012; in progress operations using this service will fail.\n"
		monitor = stamp + "Memory cgroup out of memory: Killed process 4410 (node_exporter) total-vm:733212kB\n"
		other   = stamp + "NVRM: Xid (PCI:0000:e1:00): 31, pid=777, name=jupyter-lab, Ch 00000013, MMU Fault\n"
	)
	for _, c := range []struct {
		name, log, kernel  string
		kind, says, remark string
	}{
		{name: "a process hangs, and a file server is away", kernel: lost + hung, kind: "frozen_host", says: "NFS server 10.0.0.5 did not respond"},
		{name: "a file server that came back", kernel: lost + back + hung, kind: "frozen_host", says: "blocked for more than 120 seconds."},
		{name: "a file server is away, and the log just stops", kernel: lost, kind: KindSilent, says: "just stops", remark: "NFS server 10.0.0.5"},
		{name: "a client of Lustre was evicted", kernel: evicted, kind: KindSilent, says: "just stops", remark: "scratch-OST0012 evicted the client (host node1)"},
		{name: "a monitor was killed", kernel: monitor, kind: KindSilent, says: "just stops", remark: "none of the job's"},
		{name: "a program of another user failed", kernel: other, kind: KindSilent, says: "just stops", remark: "jupyter-lab"},
		{name: "a monitor was killed, and later a rank failed", log: "[rank1]: RuntimeError: x\n", kernel: monitor, kind: "exception", says: "RuntimeError: x"},
		{name: "a task of an unknown name was killed", log: "srun: error: node1: task 3: Killed\n", kernel: strings.ReplaceAll(monitor, "node_exporter", "gpt2cu"), kind: "host_oom", says: "gpt2cu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := &Case{LastStep: -1}
			of.scan("job.log", []byte(c.log))
			of.scan("kern.log", []byte(c.kernel))
			end := Judge(of)
			assert.Equal(t, c.kind, end.Kind)
			assert.Contains(t, end.Sentence, c.says)
			assert.Contains(t, end.Remark, c.remark)
			of.Finished = new(digest.At)
			if c.log == "" {
				assert.Equal(t, KindHealthy, Judge(of).Kind, "a trainer's record of the whole run")
			}
		})
	}
}

// Ranks that wait for the others to start (torch/distributed/distributed_c10d.py, _store_based_barrier).
func TestStarting(t *testing.T) {
	waits := func(came int, ranks ...int) string {
		var b strings.Builder
		for _, r := range ranks {
			fmt.Fprintf(&b, "2025-06-02 09:00:10 | INFO | Waiting in store based barrier to initialize process group for rank: %d, key: store_based_barrier_key:1 "+
				"(world_size=4, worker_count=%d, timeout=0:30:00)\n", r, came)
		}
		return b.String()
	}
	const passed = "Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 4 nodes.\n"
	const meeting = "I1113 09:20:01.114000 41200 torch/distributed/elastic/agent/server/api.py:677] [default] Rendezvous'ing worker group\n"
	const vain = "RuntimeError: Timed out initializing process group in store based barrier on rank: 1, for key: store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)\n"
	for _, c := range []struct {
		name, log string
		stepped   bool
		kind      string
		says      string
	}{
		{"one is missing", waits(2, 0) + waits(3, 0, 1, 3), false, KindWaiting, "3 of 4 have come; rank 2 has no line of it"},
		{"logs of ranks are missing", waits(3, 0, 1), false, KindWaiting, "3 of 4 have come."},
		{"all came", waits(3, 0, 1, 3) + passed, false, KindSilent, "just stops"},
		{"steps", waits(3, 0, 1, 3), true, KindSilent, "just stops"},
		{"nodes, in torchrun's rendezvous (agent/server/api.py)", meeting, false, KindWaiting, "the rendezvous is not complete"},
		{"all nodes came", meeting + "[default] Rendezvous complete for workers. Result:\n", false, KindSilent, "just stops"},
		{"in vain", waits(3, 0, 1, 3) + vain, false, "collective_timeout", "as rank 1 says; rank 2 has no line of it"},
	} {
		of := &Case{LastStep: -1, Stepped: c.stepped}
		of.scan("job.log", []byte(c.log))
		end := Judge(of)
		assert.Equal(t, c.kind, end.Kind, c.name)
		assert.Contains(t, end.Sentence, c.says, c.name)
		assert.Empty(t, end.Ranks, c.name)
	}
}

// A pod that waited for a node is no end of a run with steps.
func TestWaitingPod(t *testing.T) {
	for lastStep, kind := range map[int64]string{-1: KindNotUnderstood, 7: KindSilent} {
		c := &Case{LastStep: lastStep}
		c.scan("events.txt", []byte("  Warning  FailedScheduling  40s  default-scheduler  0/2 nodes are available: 1 Insufficient nvidia.com/gpu.\n"))
		assert.Equal(t, kind, Judge(c).Kind)
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

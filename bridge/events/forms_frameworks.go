package events

// ray are lines of Ray: python/ray/exceptions.py, src/ray/raylet (worker exits, memory monitor).
var ray = []Form{
	{
		Name: "ray.memory_monitor", Writer: "Ray memory monitor", Since: "2.2", Class: ClassHostOOM, Text: " due to the node running low on memory", Open: true,
		Pattern: `due to the node running low on memory(?:.*?Memory on the node \(IP: (?P<host>[\d.]+).*?\bpid=(?P<pid>\d+))?`,
		Example: "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory. Memory on the node (IP: 10.0.0.7, ID: ab) where the task (task ID: cd, name=f, pid=4711, memory used=7.72GB) was running was 29.06GB / 30.20GB",
	},
	{
		Name: "ray.memory_pressure", Writer: "Ray raylet", Class: ClassHostOOM, Text: "killed due to memory pressure", Open: true, Pattern: `(?P<code>[1-9]\d*) Workers \(tasks / actors\) killed due to memory pressure \(OOM\)(?:.*?ID: \w+, IP: (?P<host>[\d.]+))?`,
		Example: "(raylet) [2024-05-01 12:33:44,123 E 12 12] (raylet) node_manager.cc:3007: 3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: ab12, IP: 10.0.0.7) over the last time period.",
	},
	{
		Name: "ray.workers_killed", Writer: "Ray raylet", Since: "2.56", Class: ClassHostOOM, Text: "killed due to the node running low on memory", Example: "(raylet) 1 worker(s) were killed due to the node running low on memory.",
	},
	{
		Name: "ray.oom_error", Writer: "Ray", Class: ClassHostOOM, Text: "ray.exceptions.OutOfMemoryError", Example: "ray.exceptions.OutOfMemoryError: Task was killed",
	},
	{
		Name: "ray.old_oom", Writer: "Ray memory_monitor.py", Since: "until 1.13", Class: ClassHostOOM, Text: "RayOutOfMemoryError", Pattern: `RayOutOfMemoryError: More than \d+% of the memory on node(?: (?P<host>\S+))?`,
		Example: "ray.memory_monitor.RayOutOfMemoryError: More than 95% of the memory on node node0 is used (11.8 / 12.3 GB).",
	},
	{
		Name: "ray.actor_died", Writer: "Ray exceptions.py", Class: ClassGone, Text: "The actor died unexpectedly before", Open: true,
		Pattern: `The actor died unexpectedly before.*?class_name: (?P<process>\S+).*?pid: (?P<pid>\d+)(?:.*?ip: (?P<host>\S+))?`,
		Example: "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task. class_name: WorkerDict actor_id: ab pid: 319017 namespace: x ip: 10.0.0.7",
	},
	{
		Name: "ray.worker_exit", Writer: "Ray", Class: ClassGone, Text: "Worker exit type: ", Pattern: `Worker exit type: (?P<what>\w+)`,
		Example: "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.",
	},
	{
		Name: "ray.worker_crashed", Writer: "Ray", Class: ClassGone, Text: "WorkerCrashedError", Example: "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task.",
	},
	{
		Name: "ray.actor_unavailable", Writer: "Ray", Class: ClassGone, Text: "ActorUnavailableError", Example: "ray.exceptions.ActorUnavailableError: The actor ab is unavailable",
	},
	{
		Name: "ray.node_died", Writer: "Ray", Class: ClassGone, Text: "has been marked dead because", Pattern: `node with (?:node id|client ID):? \w+(?: and (?:ip|address): (?P<host>\S+))?(?: and node name: \S+)? has been marked dead`,
		Example: "The node with node id: ab and address: 10.0.0.7 and node name: 10.0.0.7 has been marked dead because the detector has missed too many heartbeats from it.",
	},
	{
		Name: "ray.gcs_lost", Writer: "Ray gcs_rpc_client.h", Class: ClassGone, Text: "Failed to connect to GCS within ",
		Example: "[2023-06-14 23:54:11,900 E 869 1530] gcs_rpc_client.h:542: Failed to connect to GCS within 60 seconds. GCS may have been killed.",
	},
	{
		Name: "ray.out_of_disk", Writer: "Ray exceptions.py", Since: "2.0", Class: ClassDisk, Text: "ray.exceptions.OutOfDiskError", Example: "ray.exceptions.OutOfDiskError: Local disk is full",
	},
	{
		Name: "ray.task_error", Writer: "Ray", Class: ClassTeardown, Text: "ray.exceptions.RayTaskError", Pattern: `ray\.exceptions\.RayTaskError(?:\(\w+\))?(?:: |$)`,
		Example: "ray.exceptions.RayTaskError: ray::main_task() (pid=1, ip=10.0.0.7)",
	},
}

// engines are lines of vLLM and SGLang.
var engines = []Form{
	{
		Name: "vllm.engine_core", Writer: "vLLM v1/engine/core.py", Class: ClassEngine, Text: "EngineCore ", Pattern: `EngineCore (?P<what>encountered (?:a fatal error|an issue)|failed to start)`,
		Example: "ERROR 05-01 12:33:44 [core.py:387] EngineCore encountered a fatal error.",
	},
	{
		Name: "vllm.engine_dead", Writer: "vLLM v1/engine/exceptions.py", Class: ClassEngine, Text: "EngineDeadError", Example: "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
	},
	{
		Name: "vllm.async_dead", Writer: "vLLM engine/async_llm_engine.py", Class: ClassEngine, Text: "AsyncEngineDeadError", Example: "vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop has errored already.",
	},
	{
		Name: "vllm.core_died", Writer: "vLLM v1/engine/core_client.py", Class: ClassEngine, Text: "Engine core proc ", Pattern: `Engine core proc (?P<process>\S+) died unexpectedly`,
		Example: "ERROR 01-16 17:16:49 [core_client.py:605] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
	},
	{
		Name: "vllm.output_handler", Writer: "vLLM v1/engine/async_llm.py", Class: ClassEngine, Text: "AsyncLLM output_handler failed", Example: "ERROR 06-02 01:41:21 [async_llm.py:704] AsyncLLM output_handler failed.",
	},
	{
		Name: "vllm.worker_died", Writer: "vLLM multiproc_executor.py", Class: ClassGone, Text: " died unexpectedly", Pattern: `(?P<process>Worker ?proc \S+) died unexpectedly`,
		Example: "ERROR 05-01 12:33:44 [multiproc_executor.py:140] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
	},
	{
		Name: "vllm.worker_exit", Writer: "vLLM multiproc_worker_utils.py", Since: "0.4 to 0.8", Class: ClassSummary, Text: " died, exit code: ", Pattern: `Worker (?P<process>\S+) pid (?P<pid>\d+) died, exit code: (?P<code>-?\d+)`,
		Example: "ERROR 07-01 13:54:43 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 1159 died, exit code: -9",
	},
	{
		Name: "vllm.no_cache_memory", Writer: "vLLM kv_cache_utils.py, worker.py", Class: ClassCUDAOOM, Text: "No available memory for the cache blocks", Pattern: `Error: (?P<what>No available memory for the cache blocks)`,
		Example: "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
	},
	{
		Name: "vllm.cache_too_small", Writer: "vLLM kv_cache_utils.py", Since: "0.8", Class: ClassCUDAOOM, Text: "than the available KV cache memory", Pattern: `(?P<what>[\d.]+ \w+ KV cache is needed, which is larger than the available KV cache memory \([^)]*\))`,
		Example: "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (9.10 GiB).",
	},
	{
		Name: "vllm.no_free_memory", Writer: "vLLM gpu_worker.py", Since: "0.9", Class: ClassCUDAOOM, Text: "is less than desired GPU memory utilization", Pattern: `(?P<what>Free memory on device \S* ?\([^)]*\) on startup is less than desired GPU memory utilization \([^)]*\))`,
		Example: "ValueError: Free memory on device (59.32/79.15 GiB) on startup is less than desired GPU memory utilization (0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
	},
	{
		Name: "sglang.no_memory", Writer: "SGLang model_runner.py", Class: ClassCUDAOOM, Text: "Not enough memory. Please try", Pattern: `Error: (?P<what>Not enough memory)`,
		Example: "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
	},
	{
		Name: "sglang.cache_full", Writer: "SGLang mem_cache/common.py", Class: ClassCUDAOOM, Text: " out of memory. Try to lower your batch size", Pattern: `(?P<what>(?:Prefill|Decode) out of memory)`,
		Example: "RuntimeError: Prefill out of memory. Try to lower your batch size.",
	},
	{
		Name: "triton.stub", Writer: "Triton python_be.cc", Class: ClassGone, Text: "Stub process ", Pattern: `(?P<process>Stub process(?: '\S+')?) is (?:not healthy|unhealthy)`,
		Example: "E1025 09:40:38.075506 9121 python_be.cc:2066] Stub process is unhealthy and it will be restarted.",
	},
	{
		Name: "tensorrt_llm.error", Writer: "TensorRT-LLM tllmException.cpp", Class: ClassException, Text: "[TensorRT-LLM][ERROR]", Pattern: `(?:\[RANK (?P<rank>\d+)\].*)?\[TensorRT-LLM\]\[ERROR\] (?P<what>(?:Assertion failed|CUDA runtime error)[^\n]{0,160})`,
		Example: "[11/18/2025-09:33:30] [TRT-LLM] [RANK 0] [E] Failed to initialize executor on rank 0: [TensorRT-LLM][ERROR] Assertion failed: Failed, NCCL error ../tensorrt_llm/runtime/ncclCommunicator.cpp:90 'invalid usage'",
	},
	{
		Name: "vllm.shm", Writer: "vLLM shm_broadcast.py", Class: ClassWarning, Text: "No available shared memory broadcast block found",
		Example: "INFO 05-01 12:33:44 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.",
	},
	{
		Name: "sglang.watchdog", Writer: "SGLang scheduler.py", Class: ClassEngine, Text: "atchdog timeout (self.", Example: "[2025-03-01 12:33:44 TP5] Watchdog timeout (self.watchdog_timeout=300)",
	},
	{
		Name: "sglang.crashed", Writer: "SGLang", Since: "0.5", Class: ClassGone, Text: " crashed with exit code ", Pattern: `Subprocess (?P<process>\S+) \(pid=(?P<pid>\d+)\) crashed with exit code (?P<code>-?\d+)`, Example: "[2025-03-01 12:33:44] Subprocess scheduler_1 (pid=4711) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
	},
	{
		Name: "sglang.scheduler_dead", Writer: "SGLang", Class: ClassGone, Text: "Rank ", Pattern: `Rank (?P<group_rank>\d+) (?P<process>scheduler) (?:is dead|died during initialization)`, Example: "Rank 0 scheduler is dead. Please check if there are relevant logs.",
	},
	{
		Name: "vllm.core_failed", Writer: "vLLM", Class: ClassEngine, Text: "Engine core initialization failed", Example: "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}",
	},
	{
		Name: "vllm.rpc", Writer: "vLLM multiproc_executor.py", Class: ClassEngine, Text: "RPC call to ", Pattern: `RPC call to \w+ timed out`, Example: "TimeoutError: RPC call to execute_model timed out.",
	},
	{
		Name: "sglang.exception", Writer: "SGLang scheduler.py", Class: ClassTeardown, Text: "Scheduler hit an exception", Example: "[2025-03-01 12:33:44 TP5] Scheduler hit an exception: x",
	},
	{
		Name: "sglang.sigquit", Writer: "SGLang engine.py", Class: ClassTeardown, Text: "eceived sigquit from a child process", Example: "[2025-03-01 12:33:44] Received sigquit from a child process. It usually means the child failed.",
	},
}

// jax are lines of JAX's coordination service (xla/tsl/distributed_runtime/coordination).
var jax = []Form{
	{
		Name: "jax.barrier", Writer: "XLA coordination_service.cc", Class: ClassBehind, Text: "Barrier timed out. ", Open: true, Pattern: `Barrier timed out\. .*?Timed out task names:(?P<tasks>(?:\s+/job:\S+/task:\d+)+)`,
		Example: "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: x. Timed out task names: /job:jax_worker/replica:0/task:3",
	},
	{
		Name: "jax.heartbeat", Writer: "XLA coordination_service.cc", Class: ClassGone, Text: " heartbeat timeout", Pattern: `Task \S+/task:(?P<rank>\d+) heartbeat timeout`,
		Example: "/job:jax_worker/replica:0/task:37 has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:37 heartbeat timeout.",
	},
	{
		Name: "jax.unhealthy", Writer: "XLA coordination_service.cc", Since: "0.4.36", Class: ClassGone, Text: "tasks are unhealthy (stopped sending heartbeats)", Open: true,
		Pattern: `tasks are unhealthy \(stopped sending heartbeats\):(?:(?P<tasks>(?:\s+/job:\S+/task:\d+)+)|\s+(?P<rank>\d+(?:[\s,]+\d+)*)(?:\s|$))`,
		Example: "UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats): 2 The tasks have crashed.",
	},
	{
		Name: "jax.restarted", Writer: "XLA coordination_service.cc", Class: ClassGone, Text: " unexpectedly tried to connect with a different", Pattern: `/task:(?P<rank>\d+) unexpectedly tried to connect with a different incarnation`,
		Example: "/job:jax_worker/replica:0/task:1 unexpectedly tried to connect with a different incarnation. It has likely restarted.",
	},
	{
		Name: "xla.hbm", Writer: "XLA for TPUs", Class: ClassCUDAOOM, Text: "Ran out of memory in memory space ", Pattern: `(?P<what>Ran out of memory in memory space \w+(?:\. Used \S+ of \S+)?)`,
		Example: "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.90G of 7.48G hbm. Exceeded hbm capacity by 14.42G.",
	},
	{
		Name: "xla.exhausted", Writer: "XLA, TensorFlow bfc_allocator.cc", Class: ClassCUDAOOM, Text: "RESOURCE_EXHAUSTED: ", Pattern: `RESOURCE_EXHAUSTED: (?P<what>(?:Attempting to (?:reserve|allocate) \S+|Out of memory (?:while trying to allocate|allocating) (?:\d+ bytes|[\d.]+[KMGT]iB)|Failed to allocate request for \S+))`,
		Example: "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 596.05GiB with allocator GPU_0_bfc on device 0.",
	},
	{
		Name: "tensorflow.oom", Writer: "TensorFlow op_requires.h", Class: ClassCUDAOOM, Text: "OOM when allocating tensor ", Pattern: `(?P<what>OOM when allocating tensor with shape ?\[[\d,]*\]).*?device:(?:GPU|TPU):`,
		Example: "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[8192,1024] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
	},
	{
		Name: "jax.terminating", Writer: "XLA client.h", Class: ClassPeer, Text: "JAX distributed service detected fatal errors", Example: "Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died",
	},
}

// ascend are error codes of CANN and HCCL, the collectives of Ascend NPUs.
var ascend = []Form{
	{
		Name: "hccl.notify", Writer: "HCCL EI0002", Class: ClassTimeout, Text: "EI0002", Pattern: `EI0002.*?(?:remote rank:? ?\[(?P<peer>\d+)\])?`,
		Example: "EI0002: [PID: 2969] 2025-10-11-15:09:34.713.335 The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify record from remote rank: [24].",
	},
	{
		Name: "hccl.socket", Writer: "HCCL EI0006", Class: ClassNetwork, Text: "EI0006", Example: "EI0006: [PID: 2969] 2025-10-11-15:09:34.713.335 Getting socket times out. Reason: Remote Rank did not send the data in time.",
	},
	{
		Name: "hccl.unconnected", Writer: "HCCL EI0015", Class: ClassBehind, Text: "List of unconnected ranks", Pattern: `List of unconnected ranks: "?\[(?P<rank>[\d, ]+)`, Example: `Ranktable_Detect(EI0015): No rank in the communicator can connect to the root node within the timeout period. List of unconnected ranks: "[3,]"`,
	},
	{
		Name: "hccl.arguments", Writer: "HCCL EI0005", Class: ClassMismatch, Text: "EI0005", Example: "EI0005: [PID: 2969] 2025-10-11-15:09:34.713.335 The arguments for collective communication are inconsistent between ranks",
	},
	{
		Name: "hccl.bind", Writer: "HCCL EJ0003", Class: ClassNetwork, Text: "EJ0003", Example: "[PID: 3354790] 2026-04-28-16:56:52.897.463 Communication_Error_Bind_IP_Port(EJ0003): Failed to bind the IP port.",
	},
	{
		Name: "hccl.listen", Writer: "HCCL hccl_socket.cc", Class: ClassNetwork, Text: "HCCL(", Pattern: `\[(?P<what>Listen|LinkEstablish)\].*(?:fail|timeout)`,
		Example: "[ERROR] HCCL(2717288,python3):2025-07-23-03:47:57.070.463 [hccl_socket.cc:100] [2717288][HcclSocket][Listen] socket type[1], listen on ip[192.168.20.160] and specific port[16666] fail.",
	},
	{
		Name: "hccl.transport", Writer: "HCCL EI0009", Class: ClassNetwork, Text: "EI0009", Pattern: `EI0009.*?(?P<what>Transport init error\. Reason: [^\n]{0,160})`,
		Example: "EI0009: [PID: 2969] 2025-10-11-15:09:34.713.335 Transport init error. Reason: [Create][DestLink]Create Dest error! createLink para:rank[1]-localUserrank[1]-localIpAddr[10.0.0.7], dst_rank[0]-remoteUserrank[0]-remote_ip_addr[10.0.0.8]",
	},
	{
		Name: "hccl.busy", Writer: "HCCL EJ0001", Class: ClassException, Text: "Failed to initialize the HCCP process", Pattern: `(?P<what>Failed to initialize the HCCP process\.(?: Reason: [^\n.]*)?)`,
		Example: "EJ0001: [PID: 2969] 2025-10-11-15:09:34.713.335 Failed to initialize the HCCP process. Reason: Maybe the last training process is running.",
	},
	{
		Name: "acl.device", Writer: "CANN device_error_core_proc.cc", Class: ClassCUDAError, Text: ", there is an exception of ", Pattern: `there is an exception of (?P<what>[\w ]+? error)`,
		Example: "EZ9999: [PID: 2969] 2025-10-11-15:09:34.713.335 The error from device(chipId:7, dieId:0), serial number is 6, there is an exception of fftsplus aicore error, core id is 12, error code = 0x20000",
	},
	{
		Name: "acl.core", Writer: "torch_npu, CANN", Class: ClassCUDAError, Text: " core ex", Pattern: `(?P<what>(?:vector|AI) core (?:exception|execution is abnormal))`,
		Example: "[Error]: The vector core execution is abnormal.",
	},
	{
		Name: "acl.aicore", Writer: "torch_npu, CANN", Class: ClassCUDAError, Text: "aicore ex", Pattern: `(?P<what>aicore (?:exception|execution is abnormal))`,
		Example: "[Error]: The aicore execution is abnormal.",
	},
	{
		Name: "acl.ecc", Writer: "torch_npu NPUException.cpp", Class: ClassECC, Text: "HBM MULTI BIT ECC ERROR",
		Example: "RuntimeError: HBM MULTI BIT ECC ERROR.",
	},
	{
		Name: "acl.uce", Writer: "torch_npu NPUException.cpp", Class: ClassECC, Text: "UCE ERROR", Example: "RuntimeError: UCE ERROR.",
	},
	{
		// The reason follows, as an error code of CANN or HCCL.
		Name: "acl.function", Writer: "torch_npu NPUException.h", Class: ClassNCCL, Text: " function error: ", Pattern: `(?:NPU|HCCL|OPS|PTA) function error: (?P<what>[^\n]{1,120})`,
		Example: "RuntimeError: npuSynchronizeDevice:torch_npu/csrc/core/npu/NPUStream.cpp:506 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is 507015",
	},
	{
		Name: "hccl.error", Writer: "torch_npu ProcessGroupHCCL.cpp", Since: "until 2.1", Class: ClassNCCL, Text: "HCCL error in: ", Example: "RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64",
	},
	{
		Name: "acl.wait", Writer: "CANN error_message_manage.cc", Class: ClassTimeout, Text: "execute failed, reason=[", Pattern: `reason=\[[\w ]*timeout\]`,
		Example: "rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]",
	},
	{
		Name: "acl.oom", Writer: "torch_npu", Class: ClassCUDAOOM, Text: "EL0004", Example: "EL0004: [PID: 2969] 2025-10-11-15:09:34.713.335 Failed to allocate memory.",
	},
	{
		Name: "acl.sync", Writer: "CANN EE1002", Class: ClassTimeout, Text: "EE1002", Example: "EE1002: [PID: 2969] 2025-10-11-15:09:34.713.335 Stream synchronize timeout",
	},
	{
		Name: "acl.api", Writer: "torch_npu", Class: ClassTeardown, Text: "PTA call acl api failed", Example: "[ERROR] 2025-10-11-15:09:34 (PID:2969, Device:0, RankID:101) ERR00100 PTA call acl api failed.",
	},
	{
		Name: "acl.dist", Writer: "torch_npu", Class: ClassTeardown, Text: "DIST call hccl api failed", Example: "[ERROR] 2025-10-11-15:09:34 (PID:2969, Device:0, RankID:101) ERR02200 DIST call hccl api failed.",
	},
}

// trainers are lines in which trainings state completion, or the reason for a stop.
var trainers = []Form{
	{
		Name: "megatron.done", Writer: "Megatron-LM training.py", Class: ClassEnded, Text: "[after training is done]", Example: "[after training is done] datetime: 2024-05-01 12:33:44",
	},
	{
		Name: "megatron.exiting", Writer: "Megatron-LM training.py", Class: ClassEnded, Text: "exiting program a", Pattern: `exiting program (?:after \d+|at iteration)`, Example: "exiting program after 230.1 minutes",
	},
	{
		Name: "dlrover.failed", Writer: "DLRover common/event/reporter.py", Class: ClassGone, Text: "][status_update][", Pattern: `\[(?P<process>[\w.-]+)\]\[status_update\]\[\w+ to Failed\](?:.*?"exit reason": "(?P<what>\w+)")?`,
		Example: `[2026-01-27, 08:56:08][warn][job-worker-30][status_update][Running to Failed][{"from_state": "Running", "to_state": "Failed", "node": "job-worker-30", "exit reason": "NoHeartBeat"}]`,
	},
	{
		Name: "deepspeed.saving", Writer: "DeepSpeed checkpoint_engine/torch_checkpoint_engine.py", Class: ClassSlowing, Text: " is about to be saved!", Pattern: `Checkpoint (?P<what>\S+) is about to be saved!`,
		Example: "[2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] [Torch] Checkpoint global_step50 is about to be saved!",
	},
	{
		Name: "deepspeed.received", Writer: "DeepSpeed launcher/launch.py", Class: ClassSignal, Text: "Main process received ", Pattern: `Main process received (?P<what>SIG\w+)`, Example: "[2024-05-01 10:00:00,123] [INFO] [launch.py:316:sigkill_handler] Main process received SIGTERM, exiting",
	},
	{
		Name: "lightning.interrupt", Writer: "Lightning", Class: ClassCancelled, Text: "Detected KeyboardInterrupt", Pattern: `Detected (?P<what>KeyboardInterrupt)`, Example: "Detected KeyboardInterrupt, attempting graceful shutdown ...",
	},
	{
		Name: "lightning.child", Writer: "Lightning subprocess_script.py", Class: ClassSummary, Text: "Child process with PID ", Pattern: `\[rank: (?P<local>\d+)\] Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+)`, Example: "[rank: 1] Child process with PID 4711 terminated with code 1. Forcefully terminating all other processes to avoid zombies 🧟",
	},
	{
		Name: "deepspeed.loss_scale", Writer: "DeepSpeed runtime/fp16/loss_scaler.py", Class: ClassException, Text: "Current loss scale already at minimum", Pattern: `(?P<what>Current loss scale already at minimum[^\n.]*)`, Example: "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
	},
	{
		Name: "fairseq.loss_scale", Writer: "fairseq optim/fp16_optimizer.py", Class: ClassException, Text: "Minimum loss scale reached", Pattern: `(?P<what>Minimum loss scale reached \([\d.e-]+\)[^\n.]*)`, Example: "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate, using gradient clipping or increasing the batch size.",
	},
	{
		Name: "megatron.old_nan", Writer: "Megatron-LM", Since: "until core 0.9", Class: ClassException, Text: "found NaN in local ", Pattern: `Rank (?P<rank>\d+): (?P<what>found NaN in local [^\n]*)`, Example: "AssertionError: Rank 11: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 3",
	},
	{
		Name: "megatron.nan", Writer: "Megatron-LM rerun_state_machine.py", Class: ClassException, Text: "Unexpected result ", Pattern: `Rank (?P<rank>\d+), node (?P<host>\S+), device \S+, iteration \d+: (?P<what>Unexpected result [^\n]*)`, Example: "RuntimeError: Rank 3, node node1, device 3, iteration 812: Unexpected result nan (message='found NaN in local forward loss calculation')",
	},
	{
		Name: "megatron.sigterm", Writer: "Megatron-LM training.py", Class: ClassSignal, Text: "exiting program after receiving SIGTERM", Pattern: `receiving (?P<what>SIGTERM)`, Example: "exiting program after receiving SIGTERM.",
	},
	{
		Name: "hf.done", Writer: "transformers trainer.py", Class: ClassEnded, Text: "train_runtime", Pattern: `['"]train_runtime['"]: |train_runtime\s+=`, Example: "{'train_runtime': 1234.5, 'train_samples_per_second': 8.1, 'epoch': 3.0}",
	},
	{
		Name: "hf.completed", Writer: "transformers trainer.py", Class: ClassEnded, Text: "Training completed", Pattern: `Training completed(?:\. Do not forget| successfully|\b)`, Example: "Training completed. Do not forget to share your model on huggingface.co/models =)",
	},
	{
		Name: "lightning.done", Writer: "Lightning", Class: ClassEnded, Text: "`Trainer.fit` stopped: ", Example: "`Trainer.fit` stopped: `max_steps=100` reached.",
	},
	{
		Name: "lightning.signal", Writer: "Lightning signal_connector.py", Class: ClassSignal, Text: "eceived SIGTERM: ", Pattern: `eceived (?P<what>SIGTERM): `, Example: "[rank: 0] Received SIGTERM: 15",
	},
	{
		Name: "lightning.terminated", Writer: "Lightning utilities/exceptions.py", Since: "2.5", Class: ClassSignal, Text: "SIGTERMException", Pattern: `(?:^|\.)(?P<what>SIGTERM)Exception`, Example: "lightning.pytorch.utilities.exceptions.SIGTERMException",
	},
	{
		Name: "deepspeed.success", Writer: "DeepSpeed launcher/launch.py", Class: ClassEnded, Text: " exits successfully.", Example: "[2024-05-01 12:33:44,123] [INFO] [launch.py:347:main] Process 3127 exits successfully.",
	},
	{
		Name: "loop.sigterm", Writer: "training loops", Class: ClassSignal, Text: "SIGTERM", Pattern: `(?i:\b(?:received|caught|got|handling)(?: signal)?:?) (?P<what>SIGTERM)\b`,
		Example: "2025-11-13 09:31:21 WARNING received SIGTERM, saving checkpoint and exiting",
	},
	{
		Name: "loop.saved", Writer: "loops of users, transformers trainer.py, Ray Train, nanoGPT", Class: ClassSlowing, Text: "heckpoint",
		Pattern: `(?i)\b(?:sav(?:ed|ing) (?:(?:a|the|model|training|new) )?checkpoint\b|checkpoint (?:successfully )?(?:saved|created|written)\b)`,
		Example: "[2024-05-01 10:00:00] saved checkpoint to /ckpt/step_100.pt",
	},
	{
		Name: "accelerate.saving", Writer: "Accelerate accelerator.py", Class: ClassSlowing, Text: "Saving current state to ",
		Example: "05/01/2024 10:00:00 - INFO - accelerate.accelerator - Saving current state to out/checkpoint-500",
	},
	{
		Name: "loop.evaluating", Writer: "loops of users, transformers trainer.py, diffusers", Class: ClassSlowing, Text: "unning ", Pattern: `\b(?i:running (?:evaluation|validation))\b`,
		Example: "05/01/2024 10:00:00 - INFO - __main__ - Running validation... ",
	},
	{
		Name: "deepspeed.cache_flush", Writer: "DeepSpeed runtime/zero/stage3.py, SageMaker", Class: ClassSlowing, Text: " pytorch allocator cache flushes since last step",
		Example: "[2024-05-01 10:00:00,123] [WARNING] [stage3.py:2236:step] 1 pytorch allocator cache flushes since last step. this happens when there is high memory pressure",
	},
	{
		Name: "loop.nan", Writer: "MAE engine_pretrain.py, DETR engine.py, torchvision references", Class: ClassException, Text: ", stopping training",
		Pattern: `(?P<what>(?i:loss is) -?(?:nan|inf), stopping training)`, Example: "Loss is nan, stopping training",
	},
}

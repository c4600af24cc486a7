package events

// pytorch are lines of PyTorch's C++: torch/csrc/distributed/c10d (ProcessGroupNCCL.cpp, Utils.hpp, ProcessGroupWrapper.cpp, TCPStore.cpp), gloo, c10/cuda. The
// rank in "[PG ID 0 PG GUID 0(default_pg) Rank 1]" is the group's; the rank in "[rank1]:" is global.
var pytorch = []Form{
	{
		// The counts are always the default group's, even where another group timed out.
		Name: "pytorch.dump_signal", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "2.3", Class: ClassTimeout, Text: " this local rank",
		Pattern: `Received a (?:timeout|dump) signal (?:due to a collective timeout )?from this local rank`,
		Example: "[rank1]:[E1128 21:11:49.041194513 ProcessGroupNCCL.cpp:1870] [PG ID 0 PG GUID 0(default_pg) Rank 1] Received a dump signal due to a collective timeout from this local rank and we will try our best to dump the debug info. Last enqueued NCCL work: 22, last completed NCCL work: 21.",
	},
	{
		Name: "pytorch.work_counts", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "2.3", Class: ClassTimeout, Text: "ast enqueued ", Open: true,
		Pattern: `(?:at (?:NCCL )?work(?: sequence id)?: (?P<seq>\d+).*?)?[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)`,
		Example: "[rank2]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 2] Timeout at NCCL work: 7487, last enqueued NCCL work: 7487, last completed NCCL work: 7486.",
	},
	{
		// The output of torch.distributed.flight_recorder's fr_trace.
		Name: "pytorch.fr_trace", Writer: "PyTorch flight_recorder", Class: ClassBehind, Text: "missing ranks: {", Pattern: `missing ranks: \{(?P<rank>[\d, ]+)\}`, Example: "missing ranks: {3, 4, 5, 6, 7}",
	},
	{
		Name: "pytorch.watchdog_timeout", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "1.9", Class: ClassTimeout, Text: "Watchdog caught collective operation timeout",
		Pattern: `Watchdog caught collective operation timeout(?:: WorkNCCL\((?:SeqNum=(?P<seq>\d+), )?(?:OpType=(?P<op>\w+))?.*?ran for (?P<ms>\d+) milli)?`,
		Example: "[E ProcessGroupNCCL.cpp:475] [Rank 13] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800096 milliseconds before timing out.",
	},
	{
		Name: "pytorch.nccl2_timeout", Writer: "PyTorch nccl2", Since: "2.15", Class: ClassTimeout, Text: "Operation timed out after ", Pattern: `(?:\[rank=(?P<group_rank>\d+)\])?.*Operation timed out after (?P<ms>\d+) ?ms`,
		Example: "[TC][rank=1][name=default_pg] Operation timed out after 600000 ms",
	},
	{
		Name: "pytorch.caught_timeout", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "until 2.0", Class: ClassTimeout, Text: "Caught collective operation timeout", Pattern: `Caught collective operation timeout: WorkNCCL\((?:SeqNum=(?P<seq>\d+), )?(?:OpType=(?P<op>\w+))?`,
		Example: "RuntimeError: [Rank 1] Caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, TensorShape=[1], Timeout(ms)=1800000) ran for 1800060 milliseconds before timing out.",
	},
	{
		Name: "pytorch.blocking_wait", Writer: "PyTorch ProcessGroupNCCL.cpp", Class: ClassTimeout, Text: " timed out in ", Pattern: `WorkNCCL\(.*timed out in (?:blocking wait|call to wait)`,
		Example: "[rank0]: torch.distributed.DistBackendError: [Rank 0] Work WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=60000) timed out in blocking wait.",
	},
	{
		Name: "pytorch.async_exception", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "2.5", Class: ClassPeer, Text: "raised the following async exception", Example: "[Rank 1] Collective WorkNCCL(SeqNum=12, OpType=ALLREDUCE) raised the following async exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5",
	},
	{
		Name: "pytorch.aborted", Writer: "PyTorch NCCLUtils.hpp", Class: ClassTeardown, Text: "NCCL communicator was aborted", Example: "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1.  Original reason for failure was: timeout",
	},
	{
		Name: "pytorch.operation_timeout", Writer: "PyTorch nccl backend", Since: "2.15", Class: ClassTimeout, Text: "NCCL operation timed out",
		Example: "[rank1]:[E1128 21:11:49.041194513 watchdog.cpp:211] NCCL operation timed out",
	},
	{
		Name: "pytorch.watchdog_detected_timeout", Writer: "PyTorch nccl backend", Since: "2.15", Class: ClassTimeout, Text: "timeout watchdog detected operation timeout",
		Example: "[rank1]:[E1128 21:11:49.041194513 watchdog.cpp:211] Aborting process on rank 1 due to timeout - timeout watchdog detected operation timeout",
	},
	{
		Name: "pytorch.dump_observed", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "2.4", Class: ClassTeardown, Text: "dump signal from ",
		Pattern: `(?:Observed flight recorder|Received a) dump signal from (?:another rank|rank (?P<peer>\d+))`,
		Example: "[rank0]:[E1128 21:11:49.041188078 ProcessGroupNCCL.cpp:1806] [PG ID 0 PG GUID 0(default_pg) Rank 0] Observed flight recorder dump signal from another rank via TCPStore.",
	},
	{
		Name: "pytorch.heartbeat", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "2.2", Class: ClassTimeout, Text: "Heartbeat monitor timed out",
		Example: "[rank3]:[F ProcessGroupNCCL.cpp:1156] [PG 0 Rank 3] [PG 0 Rank 3] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=1",
	},
	{
		Name: "pytorch.watchdog_stuck", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "2.4", Class: ClassTimeout, Text: "watchdog got stuck for ",
		Pattern: `watchdog got stuck for (?P<seconds>\d+) ?seconds`,
		Example: "[rank5]:[F1210 11:01:22.000000000 ProcessGroupNCCL.cpp:1306] [PG 0 Rank 5] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.",
	},
	{
		// The first list of the line, "joined but didn't finish", is of waiting ranks.
		Name: "pytorch.desync", Writer: "PyTorch TraceUtils.h", Since: "1.10", Class: ClassBehind, Text: ", but didn't join collective ", Pattern: `\[(?P<rank>[\d, ]+)\] finished collective #\d+, but didn't join collective #(?P<seq>\d+)`,
		Example: "     [0] finished collective #56, but didn't join collective #57 (count from 1)",
	},
	{
		Name: "pytorch.desync_never", Writer: "PyTorch TraceUtils.h", Since: "1.10", Class: ClassBehind, Text: "are the lagging ranks that caused this timeout", Pattern: `ranks \[(?P<rank>[\d, ]+)\] are the lagging ranks`,
		Example: "  - To our best knowledge, ranks [2, 3] are the lagging ranks that caused this timeout. They never joined any collectives",
	},
	{
		Name: "pytorch.desync_failed", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "2.0", Class: ClassTimeout, Text: "NCCL_DESYNC_DEBUG report",
		Example: "[E ProcessGroupNCCL.cpp:988] Failed to retrieve NCCL_DESYNC_DEBUG report.  Please file an issue.",
	},
	{
		Name: "pytorch.barrier_reached", Writer: "PyTorch ProcessGroupGloo.cpp", Since: "1.8", Class: ClassTimeout, Text: "successfully reached monitoredBarrier",
		Pattern: `Rank (?P<group_rank>\d+) successfully reached monitoredBarrier`,
		Example: "RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
	},
	{
		Name: "pytorch.unique_id", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "1.13", Class: ClassNetwork, Text: "retrieving ncclUniqueId from ",
		Pattern: `\[(?P<group_rank>\d+)\] is setting up NCCL communicator and retrieving ncclUniqueId from \[(?P<peer>\d+)\].*got error: (?P<what>[^\n.]*)`,
		Example: "torch.distributed.DistBackendError: [4] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Socket Timeout",
	},
	{
		Name: "pytorch.store_barrier", Writer: "PyTorch distributed_c10d.py", Since: "1.7", Class: ClassTimeout, Text: "in store based barrier on rank", Pattern: `Timed out initializing process group in (?P<op>store based barrier) on rank:? (?P<group_rank>\d+), for key: \S+ \((?P<what>world_size=\d+, \w+=\d+)`,
		Example: "RuntimeError: Timed out initializing process group in store based barrier on rank: 4, for key: store_based_barrier_key:1 (world_size=16, worker_count=12, timeout=0:30:00)",
	},
	{
		Name: "pytorch.store_waiting", Writer: "PyTorch distributed_c10d.py", Since: "1.7", Class: ClassWaiting, Text: "Waiting in store based barrier ",
		Pattern: `Waiting in (?P<op>store based barrier) to initialize process group for rank: (?P<rank>\d+), key: (?P<process>\S+) \((?P<what>world_size=\d+, \w+=\d+)`,
		Example: "Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=16, worker_count=12, timeout=0:30:00)",
	},
	{
		Name: "pytorch.store_passed", Writer: "PyTorch distributed_c10d.py", Since: "1.10", Class: ClassWaiting, Text: "Completed store-based barrier for key:", Pattern: `barrier for key: ?(?P<process>\S+) with`,
		Example: "Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 16 nodes.",
	},
	{
		Name: "pytorch.socket_timeout", Writer: "PyTorch socket.cpp", Class: ClassNetwork, Text: "Socket Timeout", Pattern: `Error: (?P<what>Socket Timeout)`,
		Example: "torch.distributed.DistStoreError: Socket Timeout",
	},
	{
		Name: "pytorch.monitored_barrier", Writer: "PyTorch ProcessGroupGloo.cpp", Since: "1.8", Class: ClassBehind, Text: "failed to pass monitoredBarrier",
		Pattern: `Ranks? (?P<rank>[\d, ]+) failed to pass monitoredBarrier in (?P<ms>\d+) ms`,
		Example: "RuntimeError: Rank 0 timed out: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 8000 ms",
	},
	{
		Name: "pytorch.fingerprint", Writer: "PyTorch ProcessGroupWrapper.cpp", Since: "1.10", Class: ClassMismatch, Text: "Detected mismatch between collectives on ranks", Open: true,
		Pattern: `mismatch between collectives on ranks\. ?Rank (?P<rank>\d+) is running (?:inconsistent )?collective: \w+\((?:SequenceNumber=(?P<seq>\d+),? ?)?OpType=(?P<op>\w+).*? but Rank (?P<peer>\d+) is running`,
		Example: "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=3104, OpType=ALLREDUCE, TensorShape=[2]), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=3104, OpType=ALLREDUCE, TensorShape=[1])",
	},
	{
		Name: "pytorch.ecc", Writer: "PyTorch CUDAException.cpp", Class: ClassECC, Text: "uncorrectable ECC error",
		Example: "RuntimeError: CUDA error: uncorrectable ECC error encountered",
	},
	{
		Name: "pytorch.cuda_oom", Writer: "PyTorch CUDACachingAllocator.cpp", Class: ClassCUDAOOM, Text: " out of memory. Tried to allocate",
		Pattern: `(?P<what>(?:CUDA|HIP|NPU|XPU|MPS backend) out of memory\. Tried to allocate [\d.]+ \wi?B)(?:.*?GPU (?P<device>\d+))?`,
		Example: "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.00 GiB is free.",
	},
	{
		Name: "pytorch.cuda_oom_error", Writer: "PyTorch CUDAException.cpp", Class: ClassCUDAOOM, Text: "error: out of memory",
		Example: "RuntimeError: CUDA error: out of memory",
	},
	{
		Name: "pytorch.driver_shutting_down", Writer: "CUDA", Class: ClassExiting, Text: "driver shutting down", Example: "RuntimeError: CUDA error: driver shutting down",
	},
	{
		Name: "pytorch.cuda_error", Writer: "PyTorch CUDAException.cpp", Class: ClassCUDAError, Text: "CUDA error: ",
		Pattern: `CUDA error: (?P<what>[^\n]{1,120})`,
		Example: "[rank19]:[E808 10:31:07.406255799 ProcessGroupNCCL.cpp:1895] [PG ID 1 PG GUID 1 Rank 19] Process group watchdog thread terminated with exception: CUDA error: unspecified launch failure",
	},
	{
		Name: "pytorch.device_assert", Writer: "CUDA kernels of PyTorch", Class: ClassCUDAError, Text: " Assertion `", Pattern: `\.(?:cu|cuh|hip):\d+.*(?P<what>Assertion .[^\n]{1,120}. failed)`,
		Example: "../aten/src/ATen/native/cuda/Indexing.cu:1231: indexSelectSmallIndex: block: [31,0,0], thread: [29,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
	},
	{
		Name: "pytorch.thc", Writer: "PyTorch THC", Since: "until 1.10", Class: ClassCUDAError, Text: "THCudaCheck FAIL", Pattern: `error=\d+ ?: (?P<what>[^\n]+)`,
		Example: "THCudaCheck FAIL file=/pytorch/aten/src/THC/THCTensorCopy.cu line=84 error=74 : misaligned address",
	},
	{
		Name: "pytorch.runtime_error", Writer: "PyTorch THC", Since: "until 1.10", Class: ClassCUDAError, Text: "cuda runtime error (", Pattern: `cuda runtime error \(\d+\) ?: (?P<what>[^\n]+)`,
		Example: "RuntimeError: cuda runtime error (59) : device-side assert triggered at /pytorch/aten/src/THC/generic/THCTensorMath.cu:26",
	},
	{
		Name: "pytorch.cuda_driver_error", Writer: "PyTorch", Class: ClassCUDAError, Text: "CUDA driver error: ", Pattern: `CUDA driver error: (?P<what>[^\n]{1,120})`,
		Example: "RuntimeError: CUDA driver error: device not ready",
	},
	{
		Name: "pytorch.hip_error", Writer: "PyTorch for ROCm", Class: ClassCUDAError, Text: "HIP error: ", Pattern: `HIP error: (?P<what>[^\n]{1,120})`,
		Example: "RuntimeError: HIP error: unspecified launch failure",
	},
	{
		Name: "pytorch.cublas", Writer: "PyTorch CUDABlas.cpp", Class: ClassCUDAError, Text: "CUBLAS_STATUS_", Pattern: `(?P<what>CUBLAS_STATUS_[A-Z_]+)`,
		Example: "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`",
	},
	{
		Name: "pytorch.cudnn", Writer: "PyTorch", Class: ClassCUDAError, Text: "CUDNN_STATUS_", Pattern: `(?P<what>CUDNN_STATUS_(?:[A-RT-Z]|S[A-TV-Z])\w+)`,
		Example: "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
	},
	{
		Name: "pytorch.illegal_access", Writer: "CUDA", Class: ClassCUDAError, Text: "an illegal memory access was encountered", Pattern: `(?P<what>an illegal memory access was encountered)`,
		Example: "terminate called after throwing an instance of 'thrust::system::system_error'  what():  an illegal memory access was encountered",
	},
	{
		Name: "pytorch.dataloader", Writer: "PyTorch torch/utils/data/_utils/signal_handling.py", Class: ClassDataLoader, Text: "DataLoader worker (pid",
		Pattern: `DataLoader worker \(pid(?:\(s\))? (?:(?P<pid>\d+)[\d, ]*|\{\})\) (?:is killed by signal: (?P<what>[A-Z][\w ]+)|exited unexpectedly(?: with exit code (?P<code>\d+))?)`,
		Example: "RuntimeError: DataLoader worker (pid 4321) is killed by signal: Killed.",
	},
	{
		Name: "pytorch.worker_raised", Writer: "PyTorch torch/_utils.py", Class: ClassException, Text: " in DataLoader worker process ", Example: "RuntimeError: Caught RuntimeError in DataLoader worker process 0.",
	},
	{
		Name: "pytorch.dataloader_timeout", Writer: "PyTorch torch/utils/data/dataloader.py", Class: ClassDataLoader, Text: "DataLoader timed out after", Pattern: `DataLoader timed out after (?P<what>[\d.]+ seconds)`,
		Example: "RuntimeError: DataLoader timed out after 60 seconds",
	},
	{
		Name: "pytorch.dataloader_full", Writer: "PyTorch", Class: ClassDataLoader, Text: "shared memory", Pattern: `(?P<what>unable to (?:write to file </torch_|allocate shared memory|mmap \d+ bytes from file </torch_|open shared memory)[^\n]{0,80})`, Example: "RuntimeError: unable to allocate shared memory(shm) for file </torch_4711_1>: No space left on device (28)",
	},
	{
		Name: "gluon.dataloader_timeout", Writer: "MXNet gluon", Class: ClassDataLoader, Text: "Worker timed out after ", Pattern: `Worker timed out after (?P<what>\d+ seconds)`, Example: "Worker timed out after 120 seconds. This might be caused by",
	},
	{
		Name: "pytorch.dataloader_shm", Writer: "PyTorch signal_handling.py", Class: ClassDataLoader, Text: "Unexpected bus error encountered in worker",
		Example: "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
	},
	{
		Name: "pytorch.gloo_timeout", Writer: "gloo transport/tcp", Class: ClassTimeout, Text: "Timed out waiting ", Pattern: `Timed out waiting (?P<ms>\d+) ?ms for (?:recv|send) operation to complete`,
		Example: "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
	},
	{
		Name: "pytorch.gloo_pair_timeout", Writer: "gloo transport/tcp/pair.cc", Class: ClassTimeout, Text: "Application timeout caused pair closure",
		Example: "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Application timeout caused pair closure",
	},
	{
		Name: "pytorch.gloo_closed", Writer: "gloo transport/tcp/pair.cc", Class: ClassPeer, Text: "Connection closed by peer", Pattern: `Connection closed by peer(?: \[(?P<peer>[^\]]+)\])?`,
		Example: "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.2.3]:4321",
	},
	{
		Name: "pytorch.gloo_sizes", Writer: "gloo transport/tcp/pair.cc", Class: ClassMismatch, Text: "op.preamble.length", Pattern: `(?P<what>op\.preamble\.length <= op\.nbytes\. \d+ vs \d+)`,
		Example: "terminate called after throwing an instance of 'gloo::EnforceNotMet'  what():  [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 500 vs 252",
	},
	{
		Name: "pytorch.gloo_io", Writer: "gloo transport/tcp/pair.cc", Class: ClassPeer, Text: "gloo/transport/tcp", Pattern: `(?P<what>(?:Read|Write) error|Socket closed|writev|connectFullMesh failed).*?(?P<peer>\[[^\]]+\]:\d+)?`,
		Example: "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] Read error [192.168.70.92]:25266: Connection reset by peer",
	},
	{
		Name: "pytorch.store", Writer: "PyTorch TCPStore.cpp, socket.cpp", Class: ClassPeer, Text: "TCPStore",
		Pattern: `(?:recvValue failed|sendBytes failed|[Ff]ailed to recv|[Cc]onnection was likely closed|Broken pipe|Failed to check the "should dump" flag|Connection reset by peer)`,
		Example: "[rank4]:[W1128 21:11:50.000000000 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=65): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
	},
	{
		Name: "pytorch.store_lost", Writer: "PyTorch Utils.hpp", Class: ClassPeer, Text: "Did the remote server shutdown or crash",
		Example: "torch.distributed.DistNetworkError: failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
	},
	{
		Name: "pytorch.store_reset", Writer: "PyTorch Utils.hpp", Class: ClassPeer, Text: "Connection reset by peer", Pattern: `^(?:\[[\w.]+\]:?\s*)*(?:RuntimeError|torch\.distributed\.DistNetworkError|\S*ConnectionResetError): .*Connection reset by peer`,
		Example: "RuntimeError: Connection reset by peer",
	},
	{
		Name: "pytorch.clients", Writer: "PyTorch TCPStore.cpp", Class: ClassNetwork, Text: " clients joined", Pattern: `(?P<what>[Tt]imed out after [\d.]+ ?\w* waiting for clients\. \d+/\d+ clients joined)`,
		Example: "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 3/4 clients joined.",
	},
	{
		// Where a host has no IPv6, or no IPv4, the failure of one is no failure: the line about all addresses is, or an address in use.
		Name: "pytorch.listen", Writer: "PyTorch socket.cpp", Class: ClassNetwork, Text: "server socket has failed to ",
		Pattern: `server socket has failed to (?P<what>listen on any local network address(?:\.[^\n]*bind to [^\n]*?\)|\. port: \d+[^\n]*)?|(?:listen on|bind to) \S+ \(errno: 98[^\n)]*\))`,
		Example: "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
	},
	{
		Name: "pytorch.in_use", Writer: "PyTorch", Since: "until 1.8", Class: ClassNetwork, Text: "Address already in use", Pattern: `(?:RuntimeError|OSError): (?P<what>(?:\[Errno 98\] )?Address already in use)`,
		Example: "RuntimeError: Address already in use",
	},
	{
		Name: "pytorch.rocm_fault", Writer: "ROCr", Class: ClassCUDAError, Text: "emory access fault by GPU node", Pattern: `(?P<what>[Mm]emory access fault by GPU node-\d+)`,
		Example: "Memory access fault by GPU node-3 (Agent handle: 0x7f) on address 0x7f. Reason: Page not present or supervisor privilege.",
	},
	{
		Name: "rocm.hang", Writer: "ROCr runtime.cpp", Class: ClassCUDAError, Text: "HW Exception by GPU node", Pattern: `(?P<what>HW Exception by GPU node-\d+)`,
		Example: "HW Exception by GPU node-9 (Agent handle: 0x631351bb5a20) reason :GPU Hang",
	},
	{
		Name: "rocm.queue", Writer: "ROCm CLR rocdevice.cpp", Class: ClassCUDAError, Text: " aborting with error : ", Pattern: `Queue \w+ aborting with error : (?P<what>HSA_STATUS_ERROR\w*)`,
		Example: ":0:rocdevice.cpp            :3586: 92087492418 us:  Callback: Queue 0x772c40900000 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016",
	},
	{
		Name: "pytorch.connect", Writer: "PyTorch socket.cpp", Class: ClassNetwork, Text: "The client socket has ", Pattern: `The client socket has (?:timed out after (?P<what>\w+) while trying to connect to|failed to connect to any network address of) ?(?P<peer>\([^)]*\))`,
		Example: "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 29500).",
	},
	{
		Name: "pytorch.store_wait", Writer: "PyTorch TCPStore.cpp", Class: ClassTimeout, Text: "timeout after ", Pattern: `wait timeout after (?P<ms>\d+)ms, keys`,
		Example: "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cuda//5",
	},
	{
		Name: "pytorch.nccl_cuda", Writer: "PyTorch NCCLUtils.hpp", Class: ClassCUDAError, Text: "unhandled cuda error", Pattern: `(?P<what>unhandled cuda error)`,
		Example: "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, unhandled cuda error, NCCL version 2.18.1",
	},
	{
		Name: "pytorch.nccl_remote", Writer: "PyTorch NCCLUtils.hpp", Class: ClassPeer, Text: "remote process exited or there was a network error",
		Example: "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error, NCCL version 2.18.1",
	},
	{
		Name: "pytorch.nccl_error", Writer: "PyTorch NCCLUtils.hpp", Class: ClassNCCL, Text: "NCCL error", Pattern: `NCCL error(?: in: [^,]+)?[:,] ?(?P<what>(?:unhandled system error|internal error|invalid usage|invalid argument|unknown result code)[^,\n]*)`,
		Example: "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5",
	},
	{
		Name: "pytorch.watchdog_cuda", Writer: "PyTorch ProcessGroupNCCL.cpp", Class: ClassCUDAError, Text: "watchdog thread terminated with exception: CUDA", Example: "[rank0]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 0] Process group watchdog thread terminated with exception: CUDA erro",
	},
	{
		Name: "pytorch.watchdog_terminated", Writer: "PyTorch ProcessGroupNCCL.cpp", Class: ClassTeardown, Text: "watchdog thread terminated with exception",
		Example: "[E ProcessGroupNCCL.cpp:916] [Rank 1] NCCL watchdog thread terminated with exception: [Rank 1] Caught collective operation timeout",
	},
	{
		Name: "pytorch.taking_down", Writer: "PyTorch ProcessGroupNCCL.cpp", Class: ClassTeardown, Text: "taking the entire process down",
		Example: "[E ProcessGroupNCCL.cpp:577] To avoid data inconsistency, we are taking the entire process down.",
	},
	{
		Name: "pytorch.inconsistent", Writer: "PyTorch ProcessGroupNCCL.cpp", Class: ClassTeardown, Text: "Some NCCL operations have failed",
		Example: "[E ProcessGroupNCCL.cpp:571] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
	},
	{
		Name: "pytorch.terminate", Writer: "libstdc++", Class: ClassTeardown, Text: "terminate called ",
		Example: "terminate called after throwing an instance of 'c10::DistBackendError'",
	},
	{
		Name: "pytorch.not_destroyed", Writer: "PyTorch ProcessGroupNCCL.cpp", Since: "2.4", Class: ClassWarning, Text: "before we destruct ProcessGroupNCCL",
		Example: "[rank0]:[W1128 21:11:49.041188078 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL.",
	},
	{
		// TORCH_LOGS=recompiles; the failed guards are on the lines below.
		Name: "dynamo.recompile", Writer: "PyTorch _dynamo/guards.py", Since: "2.2", Class: ClassSlowing, Text: "Recompiling function ", Pattern: `Recompiling function (?P<process>\S+) in (?P<what>\S+)`,
		Example: "V0920 13:54:44.535000 3904 torch/_dynamo/guards.py:4760] [0/1] [__recompiles] Recompiling function forward in /app/model.py:4",
	},
	{
		Name: "dynamo.limit", Writer: "PyTorch _dynamo/convert_frame.py", Since: "2.2", Class: ClassSlowing, Text: "torch._dynamo hit config.", Pattern: `torch\._dynamo hit config\.(?P<what>\w+) \((?P<code>\d+)\)`,
		Example: "W0920 13:54:44.535000 3904 torch/_dynamo/convert_frame.py:906] [0/8] torch._dynamo hit config.recompile_limit (8)",
	},
}

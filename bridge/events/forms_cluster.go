package events

// slurm are lines of slurmstepd, srun, sbatch (slurm: src/slurmd/slurmstepd, src/srun).
var slurm = []Form{
	{
		Name: "slurm.time_limit", Writer: "slurmstepd", Class: ClassTimeLimit, Text: "DUE TO TIME LIMIT", Pattern: `\*\*\* (?P<process>JOB|STEP) (?P<step>\S+) ON (?P<host>\S+) CANCELLED AT (?P<what>\S+) DUE TO TIME LIMIT`,
		Example: "slurmstepd: error: *** JOB 4711 ON node01 CANCELLED AT 2024-05-20T11:20:33 DUE TO TIME LIMIT ***",
	},
	{
		Name: "slurm.preempted", Writer: "slurmstepd", Class: ClassCancelled, Text: "DUE TO PREEMPTION", Pattern: `\*\*\* (?P<process>JOB|STEP) (?P<step>\S+) ON (?P<host>\S+) CANCELLED AT \S+ (?P<what>DUE TO PREEMPTION)`,
		Example: "slurmstepd: error: *** JOB 4711 ON node01 CANCELLED AT 2024-05-20T11:20:33 DUE TO PREEMPTION ***",
	},
	{
		Name: "slurm.requeued", Writer: "slurmstepd", Class: ClassCancelled, Text: "DUE TO JOB REQUEUE", Pattern: `\*\*\* (?P<process>JOB|STEP) (?P<step>\S+) ON (?P<host>\S+) CANCELLED AT \S+ (?P<what>DUE TO JOB REQUEUE)`,
		Example: "slurmstepd: error: *** JOB 608 ON node01 CANCELLED AT 2022-08-12T02:06:12 DUE TO JOB REQUEUE ***",
	},
	{
		Name: "slurm.node_failure", Writer: "slurmstepd", Class: ClassGone, Text: "DUE TO NODE FAILURE", Pattern: `\*\*\* (?P<process>JOB|STEP) (?P<step>\S+) ON (?P<host>\S+) CANCELLED AT \S+ (?P<what>DUE TO NODE FAILURE)`,
		Example: "slurmstepd: error: *** JOB 4711 ON node01 CANCELLED AT 2024-05-20T11:20:33 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
	},
	{
		Name: "slurm.task_failure", Writer: "slurmstepd", Since: "25.05", Class: ClassTeardown, Text: "DUE TO TASK FAILURE", Example: "slurmstepd: error: *** STEP 4711.0 ON node01 CANCELLED AT 2025-05-20T11:20:33 DUE TO TASK FAILURE ***",
	},
	{
		Name: "slurm.unkillable", Writer: "slurmstepd", Since: "18.08", Class: ClassGone, Text: " STEPD TERMINATED ON ", Pattern: `STEPD TERMINATED ON (?P<host>\S+) AT \S+ (?P<what>DUE TO [A-Z ]+)`, Example: "slurmstepd: error: *** JOB 4711 STEPD TERMINATED ON node01 AT 2024-05-20T11:20:33 DUE TO JOB NOT ENDING WITH SIGNALS ***",
	},
	{
		Name: "slurm.memory_error", Writer: "slurmstepd", Class: ClassGone, Text: "UNCORRECTABLE MEMORY ERROR", Pattern: `ON (?P<host>\S+) (?P<what>UNCORRECTABLE MEMORY ERROR)`, Example: "slurmstepd: error: *** STEP 4711.0 ON node01 UNCORRECTABLE MEMORY ERROR AT 2024-05-20T11:20:33 ***",
	},
	{
		Name: "slurm.signalled_old", Writer: "slurmstepd", Since: "until 14.11", Class: ClassCancelled, Text: " CANCELLED AT ", Pattern: `\*\*\* (?P<process>JOB|STEP) (?P<step>\d\S*) CANCELLED AT (?P<what>\S+) \*\*\* on (?P<host>\S+)`,
		Example: "slurmstepd: *** JOB 1479012 CANCELLED AT 2015-02-04T06:33:25 *** on node01",
	},
	{
		Name: "slurm.wtermsig", Writer: "slurmctld", Class: ClassSummary, Text: " WTERMSIG ", Pattern: `JobId=(?P<step>\d+) WTERMSIG (?P<signal>\d+)`, Example: "[2022-05-27T11:37:57.377] _job_complete: JobId=127441 WTERMSIG 9",
	},
	{
		Name: "gcp.preempted", Writer: "Google Cloud", Class: ClassCancelled, Text: "termination is imminent", Example: "GCP Metadata Service says termination is imminent",
	},
	{
		Name: "slurm.signalled", Writer: "slurmstepd", Class: ClassCancelled, Text: " CANCELLED AT ", Pattern: `\*\*\* (?P<process>JOB|STEP) (?P<step>\S+) ON (?P<host>\S+) CANCELLED AT (?P<what>\S+)`,
		Example: "slurmstepd: error: *** JOB 4711 ON node01 CANCELLED AT 2024-05-20T11:20:33 ***",
	},
	{
		Name: "slurm.oom", Writer: "slurmstepd", Since: "18.08", Class: ClassHostOOM, Text: "Detected ", Pattern: `Detected (?P<code>\d+) oom[-_]kill event(?:\(s\)|s)? in (?:[Ss]tep(?:Id=)?|StepId=) ?(?P<step>\S+?)\.? (?:cgroup|Some)`,
		Example: "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=37205392.0. Some of your processes may have been killed by the cgroup out-of-memory handler.",
	},
	{
		Name: "slurm.oom_any", Writer: "slurmstepd", Class: ClassHostOOM, Text: "oom-kill event", Pattern: `(?:StepId=|step ?)(?P<step>[\w.+]+)`,
		Example: "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=4711.batch cgroup.",
	},
	{
		Name: "slurm.being_killed", Writer: "slurmstepd", Class: ClassHostOOM, Text: "exceeded ", Pattern: `[eE]xceeded (?:virtual )?(?:job |step )?memory limit.*, being killed`, Example: "slurmstepd: error: Job 7518 exceeded memory limit (626359956 > 512000000), being killed",
	},
	{
		Name: "slurm.oom_kill_event", Writer: "slurmstepd", Since: "23.02", Class: ClassHostOOM, Text: "oom_kill event", Pattern: `oom_kill events? in StepId=(?P<step>[\w.+]+?)\.(?: |$)`,
		Example: "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.",
	},
	{
		Name: "slurm.memory_limit", Writer: "slurmstepd", Since: "until 18.08", Class: ClassWarning, Text: "xceeded ", Pattern: `[Ee]xceeded (?:job|step) memory limit`,
		Example: "slurmstepd: error: Exceeded job memory limit at some point.",
	},
	{
		Name: "slurm.task_oom", Writer: "srun", Class: ClassHostOOM, Text: ": Out Of Memory", Pattern: `srun: error: (?P<host>\S+): tasks? (?P<rank>[\d,-]+): Out Of Memory`,
		Example: "srun: error: node107: task 0: Out Of Memory",
	},
	{
		Name: "slurm.task_exit", Writer: "srun", Class: ClassSummary, Text: "srun: error: ", Pattern: `srun: error: (?P<host>\S+): tasks? (?P<process>[\d,-]+): (?:Exited with exit code (?P<code>\d+)|(?P<what>Killed|Segmentation fault|Aborted|Bus error|Terminated|Illegal instruction)(?: \(core dumped\))?)`,
		Example: "srun: error: node01: task 3: Exited with exit code 1",
	},
	{
		Name: "slurm.execve", Writer: "slurmstepd task.c", Class: ClassException, Text: "error: execve(): ", Pattern: `error: (?P<what>execve\(\): [^\n]+)`,
		Example: "slurmstepd: error: execve(): torchrun: No such file or directory",
	},
	{
		Name: "slurm.node_fail", Writer: "srun", Class: ClassGone, Text: "Node failure on ", Pattern: `Node failure on (?P<host>\S+)`,
		Example: "srun: error: Node failure on node07",
	},
	{
		Name: "slurm.launch_failed", Writer: "srun launch.c", Class: ClassGone, Text: "Task launch for ", Pattern: `Task launch for (?:StepId=)?(?P<step>\S+) failed on node (?P<host>\S+): (?P<what>[^\n]+)`,
		Example: "srun: error: Task launch for StepId=4711.0 failed on node node07: Communication connection failure",
	},
	{
		Name: "slurm.terminating", Writer: "srun", Class: ClassTeardown, Text: "Terminating StepId=", Example: "srun: Terminating StepId=4711.0",
	},
	{
		Name: "slurm.force", Writer: "srun", Class: ClassTeardown, Text: "Job step aborted", Example: "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
	},
	{
		// The pod of the lines below (Scanner.emit).
		Name: "kubernetes.pod", Writer: "kubectl describe", Class: ClassWarning, Text: "Name:        ", Pattern: `^Name: {8,}(?P<host>\S+)$`, Example: "Name:             train-worker-2",
	},
	{
		// docker inspect prints "OOMKilled": false of any container.
		Name: "kubernetes.oom", Writer: "kubelet, docker inspect", Class: ClassHostOOM, Text: "OOMKilled", Pattern: `OOMKilled["']?\s*(?:[:=]\s*["']?(?:[Tt]rue\b|[^\sfFn0"'])|[^\s:="']|$)`,
		Example: "    Reason:       OOMKilled",
	},
	{
		Name: "oomd.killed", Writer: "systemd", Since: "247", Class: ClassHostOOM, Text: ": systemd-oomd killed ", Pattern: `systemd-oomd killed (?P<code>\d+) process`,
		Example: "Dec 18 19:34:56 node1 systemd[1837]: job-4711.scope: systemd-oomd killed 12 process(es) in this unit.",
	},
	{
		Name: "oomd.pressure", Writer: "systemd-oomd oomd-manager.c", Since: "247", Class: ClassHostOOM, Text: "systemd-oomd[", Pattern: `(?:Killed|Marked) \S+ (?:for killing )?due to memory`,
		Example: "Dec 18 19:34:56 node1 systemd-oomd[840]: Killed /system.slice/job-4711.scope due to memory pressure for /system.slice being 51.07% > 50.00% for > 20s with reclaim activity",
	},
	{
		Name: "docker.oom", Writer: "docker events", Class: ClassHostOOM, Text: "container oom ", Pattern: `container oom [0-9a-f]{12}`,
		Example: "2019-05-04T18:05:45.011072877-05:00 container oom 29d72966e0beb17d9b0b9fbcbfc734e2df2eb5428690115f9b24430357de08e5 (image=train)",
	},
	{
		Name: "containerd.oom", Writer: "containerd", Class: ClassHostOOM, Text: "TaskOOM event", Example: `time="2024-05-01T10:00:00Z" level=info msg="TaskOOM event container_id:\"29d72966e0be\""`,
	},
	{
		Name: "kubernetes.preempted", Writer: "kube-scheduler", Class: ClassCancelled, Text: "Preempted by ", Pattern: `Preempted\s.*?(?P<what>Preempted by (?:pod )?\S+ on node \S+)`,
		Example: "Warning  Preempted  12s  default-scheduler  Preempted by default/high-priority on node node1",
	},
	{
		Name: "kubernetes.shutdown", Writer: "kubelet nodeshutdown", Since: "1.20", Class: ClassCancelled, Text: "imminent node shutdown", Pattern: `(?P<what>[Pp]od was terminated in response to imminent node shutdown)`,
		Example: "Message:  Pod was terminated in response to imminent node shutdown.",
	},
	{
		Name: "kubernetes.spot", Writer: "aws-node-termination-handler", Class: ClassCancelled, Text: "Interruption event received", Pattern: `(?P<what>(?:Spot Interruption|ASG Lifecycle Termination|Scheduled Maintenance) event received\.[^\n]{0,80})`,
		Example: "Warning  SpotInterruption  node/node-1  Spot Interruption event received. Instance will be interrupted at 2025-11-13T09:33:20Z",
	},
	{
		Name: "kubernetes.tainted", Writer: "kube-controller-manager", Class: ClassCancelled, Text: "TaintManagerEviction", Example: "Normal  TaintManagerEviction  2m  taint-eviction-controller  Marking for deletion Pod default/train-worker-3",
	},
	{
		Name: "kubernetes.node", Writer: "kube-controller-manager", Class: ClassGone, Text: "NodeNotReady", Pattern: `NodeNotReady\s.*?Node(?: (?P<host>\S+))? (?:is not ready|status is now: NodeNotReady)`,
		Example: "Warning  NodeNotReady  2m  node-controller  Node is not ready",
	},
	{
		Name: "kubernetes.unschedulable", Writer: "kube-scheduler", Class: ClassFatal, Text: "FailedScheduling", Pattern: `FailedScheduling\s.*?(?P<what>\d+/\d+ nodes are available: [^\n]*)`,
		Example: "Warning  FailedScheduling  40s  default-scheduler  0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable.",
	},
	{
		Name: "kubernetes.image", Writer: "kubelet", Class: ClassFatal, Text: "Failed to pull image ", Pattern: `(?P<what>Failed to pull image \S+: [^\n]*)`,
		Example: `Warning  Failed  20s  kubelet  Failed to pull image "registry/train:1": rpc error: code = NotFound`,
	},
	{
		Name: "kubernetes.exit_code", Writer: "kubectl describe", Class: ClassSummary, Text: "Exit Code: ", Pattern: `^\s*Exit Code: +(?P<code>[1-9]\d*)\s*$`,
		Example: "      Exit Code:    137",
	},
	{
		Name: "docker.exit_code", Writer: "docker inspect", Class: ClassSummary, Text: `"ExitCode": `, Pattern: `"ExitCode": (?P<code>[1-9]\d*)`,
		Example: `        "ExitCode": 137,`,
	},
	{
		Name: "kubernetes.memory", Writer: "kubelet", Class: ClassHostOOM, Text: "The node was low on resource: memory",
		Example: "Message: The node was low on resource: memory. Container train was using 61Gi, which exceeds its request of 32Gi.",
	},
	{
		Name: "kubernetes.storage", Writer: "kubelet", Class: ClassCancelled, Text: "usage exceeds the total limit", Pattern: `(?P<what>(?:Pod|Container) .* usage exceeds the total limit[^\n]*)`,
		Example: "Warning  Evicted  109s  kubelet  Pod ephemeral local storage usage exceeds the total limit of containers 5Gi.",
	},
	{
		Name: "kubernetes.evicted", Writer: "kubelet", Class: ClassCancelled, Text: "The node was low on resource: ", Pattern: `(?P<what>The node was low on resource: [\w-]+)`,
		Example: "Message: The node was low on resource: ephemeral-storage.",
	},
	{
		Name: "kubernetes.deadline", Writer: "kube-controller-manager", Class: ClassTimeLimit, Text: "DeadlineExceeded", Pattern: `(?P<what>DeadlineExceeded)\b.*?(?:active longer than|Job was active|Reason)`,
		Example: "Warning  DeadlineExceeded  job-controller  Job was active longer than specified deadline",
	},
}

// kernel are lines of Linux (mm/oom_kill.c) and of NVIDIA's driver, in dmesg, the journal or syslog.
var kernel = []Form{
	{
		Name: "kernel.xid", Writer: "NVIDIA driver", Class: ClassXid, Text: "NVRM: Xid", Pattern: `NVRM: Xid \((?:PCI:)?(?P<bus>[0-9a-fA-F:.]+)\): (?P<xid>\d+),? ?(?:pid='?(?P<pid>\d+)'?,? ?)?(?P<what>[^\n]*)`,
		Example: "[12345.678901] NVRM: Xid (PCI:0000:dc:00): 79, pid=4711, name=python3, GPU has fallen off the bus.",
	},
	{
		Name: "kernel.sxid", Writer: "NVIDIA driver", Class: ClassXid, Text: "SXid (PCI:", Pattern: `SXid \(PCI:(?P<bus>[0-9a-fA-F:.]+)\): (?P<xid>\d+), (?P<what>(?:Fatal|Non-fatal)[^\n]*)`, Example: "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
	},
	{
		Name: "kernel.gpu_gone", Writer: "NVIDIA driver", Class: ClassXid, Text: "The NVIDIA GPU ", Open: true, Pattern: `The NVIDIA GPU (?:at )?(?P<bus>[0-9a-fA-F:.]+).*(?P<what>fallen off the bus)`,
		Example: "NVRM: The NVIDIA GPU 0000:b3:00.0 NVRM: (PCI ID: 10de:26b5) installed in this system has NVRM: fallen off the bus and is not responding to commands.",
	},
	{
		Name: "kernel.gpu_lost", Writer: "NVIDIA driver", Class: ClassXid, Text: "fallen off the bus", Pattern: `GPU (?:at )?(?:PCI:)?(?P<bus>[0-9a-fA-F]{4}[0-9a-fA-F:.]+)`,
		Example: "NVRM: GPU at PCI:0000:dc:00: GPU has fallen off the bus.",
	},
	{
		Name: "kernel.amdgpu", Writer: "amdgpu amdgpu_job.c, amdgpu_ras.c, gmc_v9_0.c", Class: ClassXid, Text: ": amdgpu: ", Pattern: `amdgpu (?P<bus>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): amdgpu: (?P<what>ring \S+ timeout, signaled|GPU reset begin|\[\w+\] (?:no-retry )?page fault|.*uncorrectable hardware errors? detected)(?:.*?process \S+ pid (?P<pid>\d+))?`,
		Example: "[22340.105945] amdgpu 0000:83:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32775, for process python3 pid 172865 thread python3 pid 172865)",
	},
	{
		Name: "kernel.cgroup_oom", Writer: "Linux mm/oom_kill.c", Class: ClassHostOOM, Text: "out of memory: Killed process ", Pattern: `Killed process (?P<pid>\d+) \((?P<process>[^)]*)\)`,
		Example: "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:83886080kB, anon-rss:67108864kB",
	},
	{
		Name: "kernel.oom", Writer: "Linux mm/oom_kill.c", Class: ClassHostOOM, Text: "Out of memory: Kill", Pattern: `Out of memory: Kill(?:ed)? process (?P<pid>\d+) \((?P<process>[^)]*)\)`,
		Example: "[ 1234.567890] Out of memory: Killed process 4711 (python3) total-vm:83886080kB, anon-rss:67108864kB",
	},
	{
		Name: "kernel.oom_kill", Writer: "Linux mm/oom_kill.c", Class: ClassHostOOM, Text: "oom-kill:constraint=", Pattern: `oom-kill:constraint=(?P<what>\w+).*?,task=(?P<process>[^,]+),pid=(?P<pid>\d+)`,
		Example: "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job_4711,task=python3,pid=4711,uid=1000",
	},
	{
		Name: "nvml.gpu_lost", Writer: "NVML", Class: ClassXid, Text: "GPU is lost", Pattern: `(?P<what>GPU is lost)`, Example: "error: Failed to get GPU memory usage: GPU is lost",
	},
	{
		Name: "kernel.hung_task", Writer: "Linux kernel/hung_task.c", Class: ClassFrozen, Text: " blocked for more than ", Pattern: `task (?P<process>.+):(?P<pid>\d+) blocked for more than (?P<what>\d+ seconds)`, Example: "Jun 17 20:18:08 node1 kernel: INFO: task python3:78808 blocked for more than 120 seconds.",
	},
	{
		Name: "kernel.link_up", Writer: "Linux, mlx5_core", Class: ClassWaiting, Text: ": Link up", Pattern: `mlx5_core (?P<bus>[0-9a-f:.]+\d) (?P<what>\S+): Link up`,
		Example: "[Thu Nov 13 09:30:09 2025] mlx5_core 0000:5e:00.0 ibp94s0: Link up",
	},
	{
		Name: "kernel.nfs", Writer: "Linux net/sunrpc/clnt.c", Class: ClassWaiting, Text: " not responding, ", Pattern: `nfs: server (?P<peer>\S+) not responding, (?:still trying|timed out)`,
		Example: "[12345.678901] nfs: server 10.0.0.5 not responding, still trying",
	},
	{
		Name: "kernel.nfs_back", Writer: "Linux net/sunrpc/clnt.c", Class: ClassWaiting, Text: "nfs: server ", Pattern: `nfs: server (?P<peer>\S+) OK`, Example: "[12345.678901] nfs: server 10.0.0.5 OK",
	},
	{
		Name: "kernel.link_down", Writer: "Linux mlx5 en_main.c", Class: ClassSlowing, Text: ": Link down", Pattern: `(?:mlx5_core (?P<bus>[0-9a-f:.]+\d) )?(?P<what>\S+): Link down$`,
		Example: "mlx5_core 0000:9c:00.0 ens10np0: Link down",
	},
	{
		Name: "kernel.nic_down", Writer: "Linux bnxt_en, ice, ixgbe", Class: ClassSlowing, Text: "NIC Link is Down", Pattern: `(?P<what>\S+?):? NIC Link is Down`,
		Example: "bnxt_en 0000:3b:00.0 ens3f0np0: NIC Link is Down",
	},
	{
		Name: "kernel.lustre_lost", Writer: "Lustre ptlrpc/import.c", Class: ClassWaiting, Text: "in progress operations using this service will wait", Pattern: `Lustre\S*: (?:\S+ )?(?P<peer>\S+?-\w+-\w+): Connection to (?P<what>\S+)`,
		Example: "Lustre: scratch-OST0012-osc-ffff9f2b4c5f8000: Connection to scratch-OST0012 (at 10.0.0.5@o2ib) was lost; in progress operations using this service will wait for recovery to complete",
	},
	{
		Name: "kernel.lustre_back", Writer: "Lustre ptlrpc/import.c", Class: ClassWaiting, Text: ": Connection restored to ", Pattern: `Lustre\S*: (?:\S+ )?(?P<peer>\S+?-\w+-\w+): Connection restored`,
		Example: "Lustre: scratch-OST0012-osc-ffff9f2b4c5f8000: Connection restored to 10.0.0.5@o2ib (at 10.0.0.5@o2ib)",
	},
	{
		Name: "kernel.lustre_evicted", Writer: "Lustre ptlrpc/import.c", Class: ClassWaiting, Text: "This client was evicted by ", Pattern: `evicted by (?P<what>[^\s;]+)`,
		Example: "LustreError: 167-0: scratch-OST0012-osc-ffff9f2b4c5f8000: This client was evicted by scratch-OST0012; in progress operations using this service will fail.",
	},
	{
		Name: "kernel.segfault", Writer: "Linux arch/x86/mm/fault.c", Class: ClassSignal, Text: ": segfault at ", Pattern: `(?P<process>(?:python|pt_|ray|torchrun|vllm|sglang)[^\s\[]*)\[(?P<pid>\d+)\]: (?P<what>segfault) at`,
		Example: "kernel: python3[4711]: segfault at 0 ip 00007f0000000000 sp 00007ffd00000000 error 4 in libc.so.6",
	},
}

// nccl are lines of NCCL ("host:pid:tid [device] file:line NCCL WARN …"); lines without a row are warnings. PyTorch prints the text of the last warning again
// after its own error ("Last error:"), without NCCL's prefix.
var nccl = []Form{
	{
		Name: "nccl.ib_completion", Writer: "NCCL net_ib.cc", Class: ClassNetwork, Text: "Got completion ", Pattern: `Got completion (?:from peer (?P<peer>\S+) )?with (?:status=(?:IBV_\w+\()?|error )(?P<code>\d+)`,
		Example: "node0:3468:3905 [4] transport/net_ib.cc:1615 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
	},
	{
		Name: "nccl.ib_async", Writer: "NCCL net_ib.cc", Class: ClassNetwork, Text: "Got async ", Pattern: `NET/IB ?: .*Got async (?:error )?event ?:? ?(?P<what>[^\n]*(?:port error|fatal|catastrophic|access violation)[^\n]*)`,
		Example: "node0:3468:3905 [4] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
	},
	{
		Name: "nccl.ib_port", Writer: "NCCL net_ib.cc", Since: "2.24", Class: ClassSlowing, Text: "Got non-fatal async event", Pattern: `NET/IB : (?P<what>\S+) Got non-fatal async event: port error`,
		Example: "node0:3468:3905 [4] transport/net_ib.cc:253 NCCL WARN NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)",
	},
	{
		Name: "nccl.ib_fatal", Writer: "NCCL net_ib.cc", Since: "2.28", Class: ClassNetwork, Text: "async fatal event", Pattern: `(?P<what>async fatal event[^\n]*)`, Example: "[2026-01-05 10:00:00] node0:3468:3905 [4] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_0:1 async fatal event: port error",
	},
	{
		Name: "nccl.duplicate_gpu", Writer: "NCCL init.cc", Class: ClassException, Text: "Duplicate GPU detected", Pattern: `(?P<what>Duplicate GPU detected : rank \d+ and rank \d+ both on CUDA device \w+)`, Example: "node0:3468:3905 [0] init.cc:525 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000",
	},
	{
		Name: "mlx5.completion", Writer: "rdma-core providers/mlx5/cq.c", Class: ClassNetwork, Text: ": got completion with error", Pattern: `mlx5: (?P<what>\S+: got completion with error)`,
		Example: "mlx5: node1: got completion with error:",
	},
	{
		Name: "nccl.ibv", Writer: "NCCL ibvwrap.cc", Class: ClassNetwork, Text: "Call to ibv_", Pattern: `Call to (?P<what>ibv_\w+ failed[^\n]*)`,
		Example: "node0:3468:3905 [4] misc/ibvwrap.cc:276 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110",
	},
	{
		Name: "nccl.mismatch", Writer: "NCCL", Class: ClassMismatch, Text: "Mismatched collective", Example: "node0:3468:3905 [4] NCCL WARN Mismatched collective detected, please check your collective calls",
	},
	{
		Name: "nccl.truncated", Writer: "NCCL net_socket.cc", Class: ClassMismatch, Text: " message truncated : receiving ",
		Example: "NET/Socket : peer 10.0.0.7<43148> message truncated : receiving 250880 bytes instead of 65536. If you believe your socket network is in a healthy state, there may be a mismatch in collective sizes or environment settings (e.g. NCCL_PROTO, NCCL_ALGO) between ranks",
	},
	{
		Name: "nccl.ib_mismatch", Writer: "NCCL net_ib.cc", Class: ClassMismatch, Text: " collective mismatch error, local size ",
		Example: "node0:3468:3905 [4] transport/net_ib.cc:1402 NCCL WARN NET/IB : req 0/1 tag 7 peer 10.0.0.7<54862> collective mismatch error, local size 65536 remote size 32768",
	},
	{
		Name: "nccl.no_interface", Writer: "NCCL bootstrap.cc", Class: ClassNetwork, Text: "no socket interface found", Pattern: `(?P<what>Bootstrap ?: no socket interface found)`,
		Example: "node0:3468:3905 [0] bootstrap.cc:60 NCCL WARN Bootstrap : no socket interface found",
	},
	{
		Name: "nccl.cuda_oom", Writer: "NCCL", Class: ClassCUDAOOM, Text: "Cuda failure ", Pattern: `Cuda failure (?:2 )?'out of memory'`,
		Example: "node0:3468:3905 [4] include/alloc.h:201 NCCL WARN Cuda failure 'out of memory'",
	},
	{
		Name: "nccl.ecc", Writer: "NCCL", Class: ClassECC, Text: "Cuda failure ", Pattern: `Cuda failure (?:\d+ )?'[^']*ECC`, Example: "node0:3468:3905 [4] NCCL WARN Cuda failure 'uncorrectable ECC error encountered'",
	},
	{
		Name: "nccl.cuda", Writer: "NCCL", Class: ClassCUDAError, Text: "Cuda failure ", Pattern: `Cuda failure (?:\d+ )?'(?P<what>[^']*)'`,
		Example: "node0:3468:3905 [4] enqueue.cc:1115 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'",
	},
	{
		Name: "nccl.connect", Writer: "NCCL socket.cc, os/linux.cc", Since: "2.15", Class: ClassNetwork, Text: "onnect to ", Pattern: `(?:socket|Socket)(?:Start|Poll)Connect: [Cc]onnect to (?P<peer>\S+<\d+>) (?:failed ?: (?P<what>[^\n]+)|returned [^\n]*(?:errno|exceeded)[^\n]*)`,
		Example: "node0:3468:3905 [4] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.0.0.7<41234> failed : Software caused connection abort",
	},
	{
		Name: "nccl.reset", Writer: "NCCL socket.cc, os/linux.cc", Since: "2.15", Class: ClassPeer, Text: "ProgressOpt: Call to ", Pattern: `Call to (?:recv from|send to) (?P<peer>\S+<\d+>) failed ?: (?P<what>Connection reset by peer|Broken pipe)`,
		Example: "node0:3468:3905 [4] misc/socket.cc:46 NCCL WARN socketProgressOpt: Call to send to 10.0.0.7<41234> failed : Connection reset by peer",
	},
	{
		Name: "nccl.progress", Writer: "NCCL socket.cc, os/linux.cc", Since: "2.15", Class: ClassNetwork, Text: "ProgressOpt: Call to ", Pattern: `Call to (?:recv from|send to) (?P<peer>\S+<\d+>) failed ?: (?P<what>[^\n]+)`,
		Example: "node0:3468:3905 [4] misc/socket.cc:46 NCCL WARN socketProgressOpt: Call to recv from 10.0.0.7<41234> failed : Connection timed out",
	},
	{
		Name: "nccl.peer", Writer: "NCCL socket.cc, proxy.cc", Class: ClassPeer, Text: "NCCL WARN", Pattern: `NCCL WARN .*(?:Connection reset by peer|Broken pipe|Connection closed by (?:remote peer|localRank)|[Rr]emote process|socketProgress(?:Opt)?: (?:abort|Connection closed))(?: (?P<peer>[\w.:-]+<\d+>))?`,
		Example: "node0:3468:3905 [4] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node1<41234>",
	},
	{
		Name: "nccl.socket", Writer: "NCCL socket.cc", Class: ClassNetwork, Text: "NCCL WARN", Pattern: `NCCL WARN .*?(?P<what>(?:Net|socket|Call to (?:connect|recv|send))\w*.*(?:wrong type|Connection timed out|No route to host|Connection refused|Network is unreachable|timed? ?out))`,
		Example: "node0:3468:3905 [4] misc/socket.cc:455 NCCL WARN socketStartConnect: Connect to 10.0.0.7<41234> failed : No route to host",
	},
	{
		Name: "nccl.warn", Writer: "NCCL", Class: ClassWarning, Text: "NCCL WARN", Example: "node0:3468:3905 [4] NCCL WARN NET/Plugin: Could not find: libnccl-net.so",
	},
}

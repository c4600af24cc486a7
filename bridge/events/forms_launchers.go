package events

// launchers are lines of the starters of a job's processes: torch/distributed/elastic (torchrun), deepspeed/launcher, accelerate, mpirun,
// torch/multiprocessing/spawn.py.
var launchers = []Form{
	{
		Name: "torchrun.root_cause", Writer: "torchrun errors/__init__.py", Since: "1.9", Class: ClassSummary, Text: "Root Cause (first observed failure)", Open: true,
		Pattern: `Root Cause \(first observed failure\):(?:.*?host\s*: (?P<host>\S+))?.*?rank\s*: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\).*?exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)`,
		Example: "Root Cause (first observed failure): [0]:   time      : 2024-05-01_12:33:44   host      : node0   rank      : 1 (local_rank: 1)   exitcode  : -9 (pid: 123)   error_file: <N/A>   traceback : Signal 9 (SIGKILL) received by PID 123",
	},
	{
		Name: "torchrun.failure", Writer: "torchrun errors/__init__.py", Since: "1.9", Class: ClassSummary, Text: " (local_rank: ", Open: true,
		Pattern: `rank\s*: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\).*?exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)`,
		Example: "  rank      : 3 (local_rank: 3)   exitcode  : 1 (pid: 126)",
	},
	{
		Name: "torchrun.failed", Writer: "torchrun multiprocessing/api.py", Since: "1.9", Class: ClassSummary, Text: "failed (exitcode: ", Open: true,
		Pattern: `failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid ?: (?P<pid>\d+)\)`,
		Example: "E0813 06:19:49.809000 161210 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 2 (pid: 161617) of binary: /usr/bin/python3",
	},
	{
		Name: "torchrun.child_failed", Writer: "torchrun", Class: ClassTeardown, Text: "ChildFailedError",
		Example: "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
	},
	{
		Name: "torchrun.closing", Writer: "torchrun multiprocessing/api.py", Class: ClassTeardown, Text: " closing signal ", Pattern: `Sending process (?P<pid>\d+) closing signal (?P<what>\w+)`,
		Example: "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 3127 closing signal SIGTERM",
	},
	{
		Name: "torchrun.signal", Writer: "torchrun agent/server/api.py", Class: ClassSignal, Text: " death signal, shutting down workers", Pattern: `Received (?:Signals\.)?(?P<what>\w+) death signal`,
		Example: "WARNING:torch.distributed.elastic.agent.server.api:Received Signals.SIGTERM death signal, shutting down workers",
	},
	{
		Name: "torchrun.signal_exception", Writer: "torchrun multiprocessing/api.py", Class: ClassSignal, Text: "SignalException: Process ", Pattern: `SignalException: Process (?P<pid>\d+) got signal: (?P<signal>\d+)`,
		Example: "torch.distributed.elastic.multiprocessing.api.SignalException: Process 3100 got signal: 15",
	},
	{
		Name: "torchrun.restart", Writer: "torchrun agent/server/api.py", Class: ClassBegan, Text: " attempts left; will restart worker group",
		Example: "INFO:torch.distributed.elastic.agent.server.api:[default] Worker group FAILED. 3/3 attempts left; will restart worker group",
	},
	{
		Name: "torchrun.meeting", Writer: "torchrun agent/server/api.py", Class: ClassWaiting, Text: "Rendezvous'ing worker group",
		Example: "I1113 09:20:01.114000 41200 torch/distributed/elastic/agent/server/api.py:677] [default] Rendezvous'ing worker group",
	},
	{
		Name: "torchrun.met", Writer: "torchrun agent/server/api.py", Class: ClassWaiting, Text: "Rendezvous complete for workers",
		Example: "I1113 09:20:04.114000 41200 torch/distributed/elastic/agent/server/api.py:525] [default] Rendezvous complete for workers. Result:",
	},
	{
		Name: "torchrun.gone", Writer: "torchrun rendezvous/dynamic_rendezvous.py", Class: ClassTeardown, Text: "failed to shutdown the rendezvous",
		Example: "WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node 'node0_12_0' has failed to shutdown the rendezvous 'none' due to an error of type RendezvousConnectionError.",
	},
	{
		Name: "torchrun.rendezvous", Writer: "torchrun rendezvous", Class: ClassNetwork, Text: "Rendezvous", Pattern: `(?P<what>Rendezvous(?:Timeout|Connection|State)Error\b[^\n]{0,100})`,
		Example: "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
	},
	{
		Name: "torchrun.rendezvous_closed", Writer: "torchrun rendezvous", Class: ClassPeer, Text: "RendezvousClosedError",
		Example: "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
	},
	{
		Name: "spawn.terminated", Writer: "PyTorch torch/multiprocessing/spawn.py", Class: ClassSummary, Text: "ProcessExitedException: process ", Pattern: `ProcessExitedException: process (?P<local>\d+) terminated with (?:signal (?P<what>SIG\w+)|exit code (?P<code>\d+))`,
		Example: "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL",
	},
	{
		Name: "spawn.error", Writer: "PyTorch torch/multiprocessing/spawn.py", Class: ClassTeardown, Text: "-- Process ", Pattern: `^-- Process (?P<local>\d+) terminated with the following error`, Example: "-- Process 2 terminated with the following error:",
	},
	{
		Name: "spawn.raised", Writer: "PyTorch torch/multiprocessing/spawn.py", Class: ClassTeardown, Text: "ProcessRaisedException",
		Example: "torch.multiprocessing.spawn.ProcessRaisedException:",
	},
	{
		Name: "deepspeed.killing", Writer: "DeepSpeed launcher/launch.py", Class: ClassTeardown, Text: "Killing subprocess ", Pattern: `Killing subprocess (?P<pid>\d+)`,
		Example: "[2024-05-01 12:33:44,123] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 3127",
	},
	{
		Name: "deepspeed.return_code", Writer: "DeepSpeed launcher/launch.py", Class: ClassSummary, Text: "exits with return code = ", Pattern: `exits with return code = (?P<code>-?\d+)`,
		Example: "[2024-05-01 12:33:45,120] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', 'train.py'] exits with return code = -9",
	},
	{
		Name: "python.died_with", Writer: "subprocess", Class: ClassSummary, Text: " died with <Signals.", Pattern: `died with <Signals\.(?P<what>SIG\w+): (?P<signal>\d+)>`,
		Example: "subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' died with <Signals.SIGKILL: 9>.",
	},
	{
		Name: "python.exit_status", Writer: "subprocess", Class: ClassTeardown, Text: "returned non-zero exit status ", Pattern: `returned non-zero exit status (?P<code>\d+)`,
		Example: "subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' returned non-zero exit status 1.",
	},
	{
		Name: "mpirun.signal", Writer: "Open MPI", Class: ClassSummary, Text: "exited on signal ", Pattern: `process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) exited on signal (?P<signal>\d+)`,
		Example: "mpirun noticed that process rank 1 with PID 4567 on node node1 exited on signal 9 (Killed).",
	},
	{
		Name: "mpirun.exit_code", Writer: "Open MPI", Class: ClassSummary, Text: "Process name: [[", Open: true, Pattern: `Process name: \[\[\d+,\d+\],(?P<rank>\d+)\]\s+Exit code: +(?P<code>\d+)`,
		Example: "  Process name: [[29973,1],0]   Exit code:    1",
	},
	{
		Name: "composer.crashed", Writer: "Composer composer/cli/launcher.py", Class: ClassSummary, Text: " crashed with exit code ", Pattern: `\bRank (?P<rank>\d+) crashed with exit code (?P<code>-?\d+)`,
		Example: "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.",
	},
	{
		Name: "composer.exited", Writer: "Composer composer/cli/launcher.py", Class: ClassSummary, Text: ") exited with code ", Pattern: `Global rank (?P<rank>\d+) \(PID (?P<pid>\d+)\) exited with code (?P<code>-?\d+)`,
		Example: "ERROR:composer.cli.launcher:Global rank 0 (PID 4711) exited with code -11",
	},
	{
		Name: "composer.closing", Writer: "Composer composer/cli/launcher.py", Class: ClassTeardown, Text: "illing global rank ", Pattern: `Killing global rank \d+ \(PID (?P<pid>\d+)\) with (?P<what>SIG\w+)`,
		Example: "INFO:composer.cli.launcher:Killing global rank 1 (PID 4712) with SIGTERM",
	},
	{
		Name: "horovod.exit", Writer: "Horovod runner/gloo_run.py", Class: ClassSummary, Text: "Horovod detected that one or more processes exited", Open: true,
		Pattern: `Horovod detected that one or more processes exited with non-zero status(?:.*?Process name: (?:(?P<rank>\d+)|(?P<host>[A-Za-z][\w.-]*)\[\d+\])(?:\s+Exit code: (?P<code>-?\d+))?)?`,
		Example: "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. The first process to do so was: Process name: 1 Exit code: 1",
	},
	{
		// MPICH's and Intel MPI's mpiexec. The exit code is the number of the signal where a signal ended the process.
		Name: "hydra.terminated", Writer: "MPICH hydra", Class: ClassSummary, Text: " RUNNING AT ", Open: true, Pattern: `(?:RANK (?P<rank>\d+) )?PID (?P<pid>\d+) RUNNING AT (?P<host>\S+)\s+=\s+(?:KILLED BY SIGNAL: (?P<signal>\d+)|EXIT CODE: (?P<code>\d+))`,
		Example: "=   RANK 3 PID 1234 RUNNING AT c001-001 =   KILLED BY SIGNAL: 9 (Killed)",
	},
	{
		Name: "hydra.exit_string", Writer: "MPICH hydra mpiexec.c", Class: ClassSummary, Text: "TERMINATED WITH THE EXIT STRING: ", Pattern: `EXIT STRING: [\w ]+ \(signal (?P<signal>\d+)\)`,
		Example: "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
	},
	{
		Name: "pmix.lost", Writer: "Slurm pmixp_client_v2.c", Class: ClassPeer, Text: "Error handler invoked: status = ", Example: "slurmstepd: error:  mpi/pmix_v4: _errhandler: node01 [0]: pmixp_client_v2.c:211: Error handler invoked: status = -61, source = [slurm.pmix.4711.0:21]",
	},
	{
		Name: "horovod.stalled", Writer: "Horovod stall_inspector.cc", Class: ClassBehind, Text: "missing ranks: ", Pattern: `\[missing ranks: (?P<rank>[\d, ]+)\]`, Example: "HorovodBroadcast_fully_connected_weights_0 [missing ranks: 0]",
	},
	{
		Name: "horovod.waiting", Writer: "Horovod stall_inspector.cc", Class: ClassTimeout, Text: "by subset of ranks and are waiting for remainder of ranks", Example: "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.",
	},
	{
		Name: "horovod.shut_down", Writer: "Horovod", Class: ClassPeer, Text: "Horovod has been shut down", Example: "Aborted: Horovod has been shut down. This was caused by an exception on one of the ranks",
	},
	{
		Name: "mpirun.nonzero", Writer: "Open MPI", Class: ClassTeardown, Text: "returned a non-zero exit code",
		Example: "Primary job  terminated normally, but 1 process returned a non-zero exit code. Per user-direction, the job has been aborted.",
	},
}

"""Runs real distributed jobs to their ends, each in a directory of its own: what the launcher printed, the ranks' Flight Recorder dumps, and truth.json.

    tools/endings/machine.sh VENV OUT python3 /job/endings.py [NAME...]

Truth is what was done to the job, less what its files cannot show.
"""

import ctypes
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

JOB = pathlib.Path("/job")
TORCHRUN = ["/opt/venv/bin/python", "/opt/venv/bin/torchrun"]
PYTHON = "/opt/venv/bin/python "
DEEPSPEED = PYTHON + "/opt/venv/bin/deepspeed --no_local_rank --num_gpus 4 /job/train.py"
ACCELERATE = PYTHON + "/opt/venv/bin/accelerate launch --multi_gpu --num_machines 1 --num_processes 4 --mixed_precision no --dynamo_backend no /job/train.py"
LIGHTNING = PYTHON + "/job/lightning_train.py"
SPAWN = PYTHON + "/job/spawn.py"
NAMES = {DEEPSPEED: "deepspeed 0.19.8", ACCELERATE: "accelerate 1.15.0", LIGHTNING: "Lightning 2.6.6", SPAWN: "multiprocessing.spawn"}
ENV = {"PATH": "/opt/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "TORCH_FR_BUFFER_SIZE": "2000", "GLOO_SOCKET_IFNAME": "eth0"}
MEMORY = pathlib.Path("/sys/fs/cgroup/memory/job")
NO_DUMP = "It wrote no dump: that is why it may be named."


@dataclasses.dataclass
class Case:
    ending: str
    cause: str
    kind: str
    who: int = -1
    may: list = dataclasses.field(default_factory=list)
    sure: bool = True  # the files tell it beyond doubt
    innocent: list | None = None  # None: all that may not be named
    note: str = ""
    args: str = ""
    env: dict = dataclasses.field(default_factory=dict)
    launch: str = "--standalone"
    launcher: str = ""  # another one than torchrun
    nodes: int = 1
    outside: object = None  # what someone else does to the running job
    disk: str = ""  # size of the file system below ckpt
    shm: str = ""
    dmesg: str = ""  # keep the kernel's lines, as this command prints them
    oracle: bool = False  # keep torch's JSON of the dumps too


def tree(pid):
    found = []
    for p in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in p.read_text().split():
                found += [int(child), *tree(int(child))]
        except OSError:
            pass
    return found


def send(pids, sig):
    for pid in pids:
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            pass


def wait_for(path, pattern, seconds=90):
    until = time.time() + seconds
    while not re.search(pattern, path.read_text()):
        if time.time() > until:
            raise TimeoutError(f"{path} never said {pattern}")
        time.sleep(0.05)


# What comes from outside, when the job is under way. They get the launchers, one per node.
def at_step(do):
    def outside(dir, jobs):
        wait_for(dir / ("job.log" if len(jobs) == 1 else "node0.log"), r"iter(ation)? +9\b")
        do(jobs)

    return outside


def kill_all(jobs):
    send([jobs[-1].pid, *tree(jobs[-1].pid)], signal.SIGKILL)  # with two nodes: the last one


def cut_link(jobs):
    subprocess.run(["ip", "link", "set", "eth0", "down"], check=True)


term = at_step(lambda jobs: jobs[0].send_signal(signal.SIGTERM))
interrupt = at_step(lambda jobs: os.killpg(jobs[0].pid, signal.SIGINT))  # Ctrl-C reaches all of the terminal's group
kill_launcher = at_step(lambda jobs: jobs[0].kill())
freeze_node = at_step(lambda jobs: send([jobs[1].pid, *tree(jobs[1].pid)], signal.SIGSTOP))

LOGS = " --log-dir {dir}/logs --redirects 3"
TEE = " --log-dir {dir}/logs --tee 3"
WATCH = "--watch"

CASES = {
    # Nobody ends it.
    "healthy": Case("none", "none", "healthy", args="--steps 8", oracle=True),
    "healthy-megatron-tee": Case("none", "none", "healthy", args="--style megatron --steps 10", launch="--standalone" + TEE),
    "healthy-warnings": Case(
        "warnings", "none", "healthy", note="A caught exception, a helper killed by 9, a text with Killed in it, a loss spike, no destroy_process_group."
    ),
    "restart-healthy": Case(
        "raise", "none: attempt 0 ended by rank 1's ValueError, attempt 1 trained to the end", "healthy", who=1, args="--restarts 1",
        launch="--standalone --max-restarts 1", note="The exception is of an attempt that was restarted; the job ended well.",
    ),
    "cut": Case(
        "none", "not told: launcher and ranks were killed by 9 at once, the log simply stops", "healthy", args="--steps 4000 --pace 0.2", outside=at_step(kill_all),
        sure=False, note="No sentence of an end: killed, or still running. \"Training ended well\" would be false.",
    ),
    # A rank does not come.
    "hang": Case(
        "sleep", "rank 2 slept, the others waited for it", "collective_timeout", who=2, may=[2], args="--at 7", note=NO_DUMP, oracle=True
    ),
    "hang-all-dumps": Case("sleep", "rank 2 slept, the others waited for it", "rank_behind", who=2, may=[2], args="--at 7 " + WATCH, oracle=True),
    "hang-redirects": Case(
        "sleep", "rank 1 slept, the others waited for it", "rank_behind", who=1, may=[1], args="--style megatron " + WATCH, launch="--standalone" + LOGS
    ),
    "hang-two-nodes": Case(
        "sleep", "rank 5 (local rank 1 of node1) slept, the others waited for it", "rank_behind", who=5, may=[5], args="--steps 10 --at 7 " + WATCH, nodes=2,
        launch="--master-addr node0 --master-port 29500",
    ),
    "stop": Case("stop", "rank 2 stood still (SIGSTOP)", "collective_timeout", who=2, may=[2], note=NO_DUMP),
    "monitored-barrier": Case(
        "monitored", "rank 2 did not come to monitored_barrier, says rank 0", "rank_behind", who=2, may=[2], note="Only rank 0 tells; it names the rank."
    ),
    "group-hang": Case(
        "group", "rank 3 slept; rank 2 waits for it in their group of two, ranks 0 and 1 wait for both in the world", "rank_behind", who=3, may=[3], args="--at 5 " + WATCH,
        note="In the world both 2 and 3 are behind; only 3 is behind in its own group.", oracle=True,
    ),
    "group-crossed": Case(
        "crossed", "rank 3 calls the world before its group, rank 2 the group before the world", "mismatch", who=3, may=[2, 3], sure=False, args=WATCH,
        note="Neither order is the wrong one.",
    ),
    "leave": Case(
        "leave", "rank 1's loop ended early, it exited with code 0", "process_gone", who=1, may=[1], sure=False, note="torchrun's list of failures has all ranks but it. A rank that was sent SIGTERM may have no dump either."
    ),
    # Ranks do not call the same.
    "mismatch-size": Case("size", "rank 2 reduces 500 elements, the others 1000", "mismatch", who=2, may=[0, 1, 2, 3], sure=False, args=WATCH),
    "mismatch-size-detail": Case(
        "size", "rank 2 reduces 500 elements, the others 1000", "mismatch", who=2, may=[0, 1, 2, 3], args="--at 5", sure=False, env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    ),
    "mismatch-dtype-detail": Case(
        "dtype", "rank 1 reduces float64, the others float32", "mismatch", who=1, may=[0, 1, 2, 3], args="--at 5", sure=False, env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    ),
    "mismatch-op": Case("op", "rank 2 calls broadcast, the others all_reduce", "mismatch", who=2, may=[0, 1, 2, 3], sure=False, args="--at 7 " + WATCH, oracle=True),
    "mismatch-op-detail": Case(
        "op", "rank 2 calls broadcast, the others all_reduce", "mismatch", who=2, may=[0, 1, 2, 3], args="--at 5", sure=False, env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    ),
    # A process dies.
    "kill": Case("kill", "rank 1 was killed by 9; by whom is not told", "sigkill", who=1, may=[1]),
    "kill-two-nodes": Case(
        "kill", "rank 6 (local rank 2 of node1) was killed by 9; by whom is not told", "sigkill", who=6, may=[6], args="--steps 10 --at 7", nodes=2,
        launch="--rdzv-backend c10d --rdzv-endpoint node0:29400 --rdzv-id 4711" + TEE,
    ),
    "segv": Case("segv", "rank 3: segmentation fault", "signal", who=3, may=[3]),
    "segv-faulthandler": Case("segv", "rank 0: segmentation fault", "signal", who=0, may=[0], env={"PYTHONFAULTHANDLER": "1"}),
    "abort": Case("abort", "rank 2: abort()", "signal", who=2, may=[2], env={"PYTHONFAULTHANDLER": "1"}),
    "bus": Case("bus", "rank 1: bus error, its mapped file was truncated", "signal", who=1, may=[1], launch="--standalone" + LOGS),
    "exit-3": Case(
        "exit", "rank 1 left with exit code 3", "process_gone", who=1, may=[1], note="Why is not told."
    ),
    "term-rank": Case("term", "rank 3 was sent signal 15", "sigterm", who=3, may=[3]),
    "raise": Case("raise", "rank 3: ValueError", "exception", who=3, may=[3]),
    "raise-recorded": Case("raise", "rank 2: ValueError", "exception", who=2, may=[2], env={"RECORD": "1"}, launch="--standalone" + TEE),
    "raise-all": Case("missing", "all ranks: FileNotFoundError", "exception", sure=False, innocent=[], note="All ranks raise the same; none is guilty."),
    "raise-import": Case("import", "all ranks: ModuleNotFoundError", "exception", sure=False, innocent=[], note="All ranks raise the same; none is guilty."),
    "raise-nan": Case("assert", "rank 0: AssertionError, the loss is nan", "exception", who=0, may=[0], args="--style megatron"),
    "restart-dies": Case(
        "raise", "rank 1: ValueError, in the first attempt and in the second", "exception", who=1, may=[1], launch="--standalone --max-restarts 1"
    ),
    "restart-refused": Case(
        "raise", "rank 1: ValueError; the ranks of the second attempt did not find each other", "network", who=1, args="--restarts 1 --env-store", sure=False, may=[1],
        launch="--standalone --max-restarts 1", note="Or exception: without rank 1's in attempt 0 there was no restart.",
    ),
    "threads": Case("threads", "rank 1 may start no more processes (EAGAIN, limit of its cgroup)", "exception", who=1, may=[1]),
    # Memory.
    "memory-python": Case("memory_python", "rank 2: MemoryError (RLIMIT_AS)", "exception", who=2, may=[2], note="host_oom says the same."),
    "memory-torch": Case("memory_torch", "rank 2: DefaultCPUAllocator can't allocate memory (RLIMIT_AS)", "exception", who=2, may=[2], note="host_oom says the same."),
    "oom-cgroup": Case("memory_cgroup", "rank 1 was killed by its cgroup's out-of-memory killer", "host_oom", who=1, may=[1], dmesg="dmesg -T",
                       note="The kernel's pid is the one of torchrun's line: that makes it rank 1."),
    "oom-cgroup-untold": Case("memory_cgroup", "rank 1 was killed by 9; by whom is not told", "sigkill", who=1, may=[1], note="Without the kernel's lines nothing tells of memory."),
    # Data loader.
    "loader-kill": Case("loader_kill", "rank 1's DataLoader worker was killed by 9", "data_loader", who=1, may=[1]),
    "loader-shm": Case("loader_shm", "rank 1's DataLoader worker: no room in /dev/shm", "data_loader", who=1, may=[1], shm="4m", args="--at 0"),
    "loader-raise": Case("loader_raise", "rank 2's DataLoader worker: ValueError", "exception", who=2, may=[2]),
    "loader-timeout": Case("loader_sleep", "rank 2's DataLoader timed out after 5 s", "data_loader", who=2, may=[2]),
    # Checkpoints.
    "save-full": Case("save", "rank 0: torch.save failed, no space left", "checkpoint", who=0, may=[0], disk="1m",
                      note="That there was no space is not told: torch says \"unexpected pos\"."),
    "save-dcp-full": Case("save_dcp", "no space left for the checkpoint, say all ranks", "checkpoint", who=1, innocent=[], disk="1m",
                          note="Rank 1's shard filled the disk that all write to: no rank is guilty."),
    "save-hang": Case("save_sleep", "rank 0 stood in save() for longer than the others' time-out", "checkpoint", who=0, may=[0], launch="--standalone" + LOGS, note="Its stack is in its stderr.log."),
    "load-truncated": Case("load", "rank 0: the checkpoint is not complete", "checkpoint", who=0, may=[0]),
    # From outside.
    "term-launcher": Case("none", "torchrun was sent signal 15 from outside", "sigterm", args="--steps 4000 --pace 0.2", outside=term),
    "interrupt": Case("none", "Ctrl-C", "cancelled", args="--steps 4000 --pace 0.2", outside=interrupt, sure=False, note="Signal 2, from a person or not."),
    "kill-launcher": Case(
        "none", "none of the training: torchrun was killed by 9, the ranks trained to the end", "healthy", args="--steps 24 --pace 0.1", outside=kill_launcher, sure=False,
        note="The launcher does not tell of its end; ranks that train to the end are fine.",
    ),
    "node-gone": Case(
        "none", "all processes of node1 were killed by 9 at once", "process_gone", args="--steps 4000 --pace 0.2", nodes=2, outside=at_step(kill_all), sure=False,
        innocent=[0, 1, 2, 3], may=[4, 5, 6, 7], launch="--master-addr node0 --master-port 29500", note="node1's log simply stops.",
    ),
    "node-frozen": Case(
        "none", "all processes of node1 stood still (SIGSTOP)", "frozen_host", args="--steps 4000 --pace 0.2", nodes=2, outside=freeze_node, sure=False,
        innocent=[0, 1, 2, 3], may=[4, 5, 6, 7], launch="--master-addr node0 --master-port 29500", note="Or collective_timeout: ranks 4 to 7 have no dump.",
    ),
    "link-cut": Case(
        "none", "the link between node0 and node1 went down", "stuck_in_flight", args="--steps 4000 --pace 0.2", nodes=2, outside=at_step(cut_link), sure=False,
        launch="--master-addr node0 --master-port 29500", note="Or network, where a line says so; all ranks waited in the same collective.",
    ),
    # Before the first step.
    "no-master": Case(
        "none", "node1 alone: no one listens at node0:29500", "network", launch="--nnodes 2 --node-rank 1 --master-addr node0 --master-port 29500 --rdzv-conf timeout=20",
        innocent=[],
    ),
    "port-taken": Case("none", "port 29500 of node0 is taken", "network", launch="--master-addr node0 --master-port 29500", innocent=[]),
    # Other launchers.
    "deepspeed-raise": Case("raise", "rank 2: ValueError", "exception", who=2, may=[2], launcher=DEEPSPEED),
    "deepspeed-kill": Case("kill", "rank 1 was killed by 9; by whom is not told", "sigkill", who=1, innocent=[0, 2, 3], launcher=DEEPSPEED, note="No line says which rank."),
    "accelerate-raise": Case("raise", "rank 3: ValueError", "exception", who=3, may=[3], launcher=ACCELERATE),
    "accelerate-kill": Case("kill", "rank 1 was killed by 9; by whom is not told", "sigkill", who=1, may=[1], launcher=ACCELERATE),
    "lightning-raise": Case("raise", "rank 2: ValueError", "exception", who=2, may=[2], launcher=LIGHTNING),
    "lightning-kill": Case("kill", "rank 1 was killed by 9; the launcher does not say so", "process_gone", who=1, may=[1], sure=False, launcher=LIGHTNING,
                           note="The others say that a connection was closed; rank 1 is the one that says nothing."),
    "spawn-raise": Case("raise", "rank 2: ValueError", "exception", who=2, may=[2], launcher=SPAWN),
    "spawn-kill": Case("kill", "rank 1 was killed by 9; by whom is not told", "sigkill", who=1, may=[1], launcher=SPAWN),
    # After the last.
    "after": Case("after", "rank 2: abort() in teardown, the training was done", "after_end", who=2, may=[2], note="The training is complete; nothing is lost."),
}


def run(name, case):
    dir = JOB / name
    shutil.rmtree(dir, ignore_errors=True)
    dir.mkdir()
    subprocess.run(["ip", "link", "set", "eth0", "up"], check=True)
    shm = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={case.shm}", "shm", "/dev/shm"], check=True) if case.shm else None
    if case.disk:
        (dir / "ckpt").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={case.disk}", "ckpt", dir / "ckpt"], check=True)
    for cgroup in MEMORY, pathlib.Path("/sys/fs/cgroup/pids/job"):
        cgroup.mkdir(exist_ok=True)
    taken = None
    if name == "port-taken":
        import socket

        taken = socket.create_server(("", 29500))
    kernel = subprocess.run(["dmesg"], capture_output=True, text=True).stdout.count("\n")
    started = datetime.datetime.now()
    jobs = []
    for node in range(case.nodes):
        launch = case.launch.format(dir=dir if case.nodes == 1 else dir / f"node{node}")
        if case.nodes > 1:
            launch += " --nnodes 2" + ("" if "rdzv" in launch else f" --node-rank {node}")
        argv = case.launcher.split() or [*TORCHRUN, *launch.split(), "--nproc-per-node", "4", str(JOB / "train.py")]
        argv += ["--ending", case.ending, "--who", str(case.who), *case.args.split()]
        if node:
            argv = ["nsenter", "-t", os.environ["NODE1"], "--net", "--uts", *argv]
        out = open(dir / ("job.log" if case.nodes == 1 else f"node{node}.log"), "w")
        jobs.append(subprocess.Popen(argv, cwd=dir, env=ENV | case.env, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True))
    if case.outside:
        try:
            case.outside(dir, jobs)
        except TimeoutError as e:
            print(e)
    until = time.time() + (60 if case.outside else 180)
    codes = []
    for job in jobs:
        try:
            codes.append(job.wait(max(1, until - time.time())))
        except subprocess.TimeoutExpired:
            codes.append(None)
    if name == "kill-launcher":
        time.sleep(25)  # the ranks outlive it
    send(tree(os.getpid()), signal.SIGKILL)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    if taken:
        taken.close()
    if case.disk:
        subprocess.run(["umount", dir / "ckpt"], check=True)
    if shm:
        subprocess.run(["umount", "/dev/shm"], check=True)
    shutil.rmtree(dir / "ckpt", ignore_errors=True)
    (dir / "data.bin").unlink(missing_ok=True)
    if not case.oracle:
        shutil.rmtree(dir / "oracle", ignore_errors=True)
    if case.dmesg:
        lines = subprocess.run(case.dmesg.split(), capture_output=True, text=True).stdout.splitlines(keepends=True)[kernel:]
        (dir / "dmesg.log").write_text("".join(re.sub(r"-fc-v\d+", "", line) for line in lines))
    dumps = sorted(int(p.name.rsplit("_", 1)[1]) for p in dir.glob("nccl_trace_rank_*"))
    truth(dir, name, case)
    print(f"{name}: exit {codes}, {(datetime.datetime.now() - started).seconds} s, dumps of {dumps}, "
          f"{sum(p.stat().st_size for p in dir.rglob('*') if p.is_file()) // 1024} KiB", flush=True)


def truth(dir, name, case, framework=""):
    files = sorted(str(p.relative_to(dir)) for p in dir.rglob("*") if p.is_file() and p.name != "truth.json" and p.parent.name != "oracle" and p.stat().st_size)
    innocent = [r for r in range(4 * case.nodes) if r not in case.may] if case.innocent is None else case.innocent
    (dir / "truth.json").write_text(json.dumps({
        "file": next(f for f in files if re.match(r"job.log|node0.log|slurm-|driver.log", f)), "source": f"tools/endings, {name}", "framework": framework or "torch 2.15.0 (gloo), " + NAMES.get(case.launcher, "torchrun"),
        "first_cause": case.cause, "kind": case.kind, "rank": case.may[0] if len(case.may) == 1 else None, "may_name": case.may, "must_not_name": innocent,
        "ambiguous": not case.sure, "note": case.note, "files": files,
    }, indent=1) + "\n")


def main():
    ctypes.CDLL(None).prctl(36, 1)  # ranks that outlive their launcher become our children (PR_SET_CHILD_SUBREAPER)
    names = sys.argv[1:] or CASES
    for name in names:
        run(name, CASES[name])


if __name__ == "__main__":
    main()

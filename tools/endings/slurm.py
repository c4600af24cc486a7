"""The endings of slurm.sh."""

import datetime
import pathlib
import re
import shutil
import subprocess
import sys
import time

import endings
from endings import Case


def sh(command):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def under_way(do):
    def outside(dir, job):
        endings.wait_for(dir / f"slurm-{job}.out", r"iter 9\b", 240)
        sh(do.format(job=job))

    return outside


FOUR = "srun -l -n 4 --overcommit --kill-on-bad-exit=1 /opt/venv/bin/python -u /job/train.py"
TORCHRUN = "srun /opt/venv/bin/python /opt/venv/bin/torchrun --nproc-per-node 4 /job/train.py"
FOREVER = dict(args="--steps 100000 --pace 0.5")

# launch is what the batch script runs, disk what sbatch is told.
CASES = {
    "slurm-time-limit": Case("none", "Slurm's time limit of the job", "time_limit", **FOREVER, launch=FOUR, disk="-t 1"),
    "slurm-time-limit-torchrun": Case("none", "Slurm's time limit of the job", "time_limit", **FOREVER, launch=TORCHRUN, disk="-t 1"),
    "slurm-scancel": Case("none", "scancel", "cancelled", **FOREVER, launch=FOUR, outside=under_way("scancel {job}")),
    "slurm-scancel-torchrun": Case("none", "scancel", "cancelled", **FOREVER, launch=TORCHRUN, outside=under_way("scancel {job}")),
    "slurm-scancel-step": Case("none", "scancel of the step", "cancelled", **FOREVER, launch=FOUR, outside=under_way("scancel {job}.0")),
    "slurm-requeue": Case("none", "the job was put back into the queue", "cancelled", **FOREVER, launch=FOUR, outside=under_way("scontrol requeue {job}; scontrol hold {job}")),
    "slurm-preempted": Case(
        "none", "preempted by a job of a higher partition", "cancelled", **FOREVER, launch=FOUR, disk="--mem=6000",
        outside=under_way("sbatch -p high --mem=8000 -o /dev/null --wrap 'sleep 5'"),
    ),
    "slurm-oom": Case("memory_cgroup", "the memory limit of the job; task 1 asked for more and more", "host_oom", who=1, may=[1], launch=FOUR, disk="--mem=3000", dmesg="dmesg -T"),
    "slurm-oom-torchrun": Case("memory_cgroup", "the memory limit of the job; rank 1 asked for more and more", "host_oom", who=1, may=[1], launch=TORCHRUN, disk="--mem=3000",
                               note="Slurm's task 0 is torchrun, not rank 0."),
    "slurm-kill": Case("kill", "task 2 was killed by 9; by whom is not told", "sigkill", who=2, may=[2], launch=FOUR),
    "slurm-raise": Case("raise", "task 3: ValueError", "exception", who=3, may=[3], launch=FOUR),
    "slurm-segv": Case("segv", "task 0: segmentation fault", "signal", who=0, may=[0], launch=FOUR),
    "slurm-hang": Case("sleep", "task 2 slept, the others waited for it", "rank_behind", who=2, may=[2], args="--at 7 --watch", launch=FOUR),
    "slurm-over-memory": Case("memory_cgroup", "Slurm saw more memory than the job may have", "host_oom", who=1, launch=FOUR, disk="--mem=4000", innocent=[0, 2, 3],
                              note="Only with JobAcctGatherParams=OverMemoryKill."),
}


def run(name, case):
    dir = endings.JOB / name
    shutil.rmtree(dir, ignore_errors=True)
    dir.mkdir()
    script = dir / "job.sh"
    exports = "".join(f"export {k}={v}\n" for k, v in ({"TORCH_FR_BUFFER_SIZE": 2000, "GLOO_SOCKET_IFNAME": "eth0", "MASTER_ADDR": "node0", "MASTER_PORT": 29500} | case.env).items())
    script.write_text(f"#!/bin/bash\n#SBATCH --job-name=train --nodes=1 --open-mode=append {case.disk or '--mem=6000'}\n{exports}{case.launch} --ending {case.ending} --who {case.who} {case.args}\n")
    kernel = sh("dmesg").count("\n")
    started = datetime.datetime.now()
    job = int(sh(f"cd {dir} && sbatch --parsable {script}"))
    out = dir / f"slurm-{job}.out"
    while not out.exists():
        time.sleep(0.2)
    if case.outside:
        case.outside(dir, job)
    for _ in range(300):
        if re.search(r"JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|OUT_OF_MEMORY|NODE_FAIL|PREEMPTED|PENDING)", state := sh(f"scontrol show job {job}")):
            break
        time.sleep(1)
    time.sleep(8)  # srun and slurmstepd write their last lines
    sh("scancel -u root")
    while sh("squeue -h"):
        time.sleep(1)
    if case.dmesg:
        lines = sh(case.dmesg).splitlines(keepends=True)[kernel:]
        (dir / "dmesg.log").write_text("".join(re.sub(r"-fc-v\d+", "", line) for line in lines))
    script.unlink()
    shutil.rmtree(dir / "oracle", ignore_errors=True)
    endings.truth(dir, name, case, "torch 2.15.0 (gloo), Slurm 22.05.8" + (", torchrun" if case.launch is TORCHRUN else ""))
    print(name, state.split("JobState=")[1].split("Dependency")[0].replace("\n", " "), (datetime.datetime.now() - started).seconds, "s", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        run(name, CASES[name])

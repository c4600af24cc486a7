"""Endings of jobs on a GPU: four ranks on NCCL share one, each a host of its own for NCCL (NCCL_HOSTID), with sockets between them.

    PYTHON tools/endings/gpu.py OUT [NAME...]    # a Python with torch for CUDA and cupy, as root for the kernel's lines

Kernels that fault write to addresses that do not exist: the driver ends their process, and tells so with an Xid.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import endings
from endings import Case

TRAIN = endings.JOB / "gpu_train.py"
KERNEL = "dmesg -T"
CASES = {
    "nccl-healthy": Case("none", "none", "healthy", env={"NCCL_DEBUG": "INFO"}),
    "nccl-late": Case("late", "none: rank 2 came 4 s late to step 7", "healthy", who=2),
    "nccl-hang": Case("sleep", "rank 2 slept, the others waited for it", "rank_behind", who=2, may=[2]),
    "nccl-kill": Case("kill", "rank 1 was killed by 9; by whom is not told", "sigkill", who=1, may=[1]),
    "nccl-raise": Case("raise", "rank 3: ValueError", "exception", who=3, may=[3]),
    "nccl-mismatch-op": Case("op", "rank 2 calls broadcast, the others all_reduce", "mismatch", who=2, may=[0, 1, 2, 3], sure=False),
    "nccl-mismatch-size": Case("size", "rank 2 reduces 500000 elements, the others 1000000", "mismatch", who=2, may=[0, 1, 2, 3], sure=False),
    "nccl-save-hang": Case("save", "rank 0 stood in save() for longer than the others' time-out", "rank_behind", who=0, may=[0]),
    "nccl-duplicate": Case("none", "ranks share a GPU", "exception", sure=False, innocent=[], args="--shared-host", note="All ranks say the same; none is guilty."),
    "nccl-no-interface": Case("none", "no network interface called eth9", "network", sure=False, innocent=[], env={"NCCL_SOCKET_IFNAME": "eth9"}),
    "cuda-spin": Case("spin", "rank 0's GPU was in a kernel that does not end", "stuck_in_flight", who=0, innocent=[1, 2, 3], sure=False,
                      note="Its collective waits behind that kernel, as no file can show: without TORCH_NCCL_ENABLE_TIMING all ranks' collectives are \"scheduled\"."),
    "cuda-launch": Case("threads", "rank 1: a launch with too many threads", "exception", who=1, may=[1]),
    "cuda-assert": Case("assert", "rank 1: device-side assert, an index beyond the embedding", "cuda_error", who=1, may=[1]),
    # One at a time, for the kernel's lines.
    "cuda-illegal": Case("wild", "rank 2: illegal memory access", "cuda_error", who=2, may=[2], dmesg=KERNEL),
    "cuda-misaligned": Case("odd", "rank 3: misaligned address", "cuda_error", who=3, may=[3], dmesg=KERNEL),
    "cuda-trap": Case("trap", "rank 0: a trap in a kernel", "cuda_error", who=0, may=[0], dmesg=KERNEL),
    "cuda-oom": Case("memory", "rank 3: no GPU memory left", "cuda_oom", who=3, may=[3], dmesg=KERNEL),
}


def run(out, name):
    case, dir, started = CASES[name], out / name, time.time()
    shutil.rmtree(dir, ignore_errors=True)
    dir.mkdir(parents=True)
    lines = subprocess.run(KERNEL.split(), capture_output=True, text=True).stdout.count("\n")
    trace = str(dir / "nccl_trace_rank_")
    env = os.environ | {
        "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "TORCH_FR_DUMP_TEMP_FILE": trace,
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": trace, "NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1",
    } | case.env
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", str(TRAIN)]
    with open(dir / "job.log", "w") as log:
        job = subprocess.Popen(
            [*argv, "--ending", case.ending, "--who", str(case.who), *case.args.split()], cwd=dir, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
        )
        try:
            code = job.wait(150)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            code = "too long"
    (dir / "model.pt").unlink(missing_ok=True)
    if case.dmesg:
        kernel = subprocess.run(KERNEL.split(), capture_output=True, text=True).stdout.splitlines(keepends=True)[lines:]
        (dir / "dmesg.log").write_text("".join(re.sub(r"(GPU-|Number: )[0-9a-f-]+", r"\1…", line) for line in kernel))
    import torch

    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    endings.truth(dir, name, case, f"torch {torch.__version__} (NCCL {nccl}), torchrun")
    print(f"{name}: exit {code}, {time.time() - started:.0f} s, {[p.name for p in sorted(dir.iterdir())]}", flush=True)


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    TRAIN.parent.mkdir(exist_ok=True)
    shutil.copy(pathlib.Path(__file__).with_name(TRAIN.name), TRAIN)
    names = sys.argv[2:] or list(CASES)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: run(out, name), [n for n in names if not CASES[n].dmesg]))
    for name in names:
        if CASES[name].dmesg:
            run(out, name)


if __name__ == "__main__":
    main()

"""A small data-parallel training on gloo of which one rank (--who) comes to --ending at step --at. See endings.py."""

import argparse
import ctypes
import datetime
import faulthandler
import logging
import math
import mmap
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--ending", default="none")
parser.add_argument("--who", type=int, default=-1, help="the rank that it befalls; -1 is all of them")
parser.add_argument("--at", type=int, default=12)
parser.add_argument("--steps", type=int, default=16)
parser.add_argument("--restarts", type=int, default=99, help="it befalls the first so many attempts only")
parser.add_argument("--style", default="nanogpt", choices=["nanogpt", "megatron"])
parser.add_argument("--pace", type=float, default=0.03, help="seconds of computing in a step")
parser.add_argument("--env-store", action="store_true", help="init_process_group by env://, as most do")
parser.add_argument("--watch", action="store_true", help="who waits in vain has all ranks dump, as the watchdog of NCCL does")
args = parser.parse_args()

HERE = pathlib.Path.cwd()
RANK, WORLD = int(os.environ.get("RANK") or os.environ["SLURM_PROCID"]), int(os.environ.get("WORLD_SIZE") or os.environ["SLURM_NTASKS"])
ATTEMPT = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
MINE = args.who in (RANK, -1) and ATTEMPT < args.restarts
TIMEOUT = datetime.timedelta(seconds=8)
log = logging.getLogger("train")


def dump():
    """As ProcessGroupNCCL names it. What torch says of the same in JSON lies beside, for the tests of who reads the pickle."""
    (HERE / f"nccl_trace_rank_{RANK}").write_bytes(torch._C._distributed_c10d._dump_fr_trace())
    (HERE / "oracle").mkdir(exist_ok=True)
    (HERE / "oracle" / f"rank_{RANK}.json").write_bytes(torch._C._distributed_c10d._dump_fr_trace_json())


def signals(host=False):
    """The store over which ranks ask each other for dumps: a connection of its own, because a wait holds the one of the process group."""
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=host, wait_for_workers=False, timeout=TIMEOUT * 15)


def watch(store):
    while not store.check([f"dump{ATTEMPT}"]):
        time.sleep(0.2)
    dump()


class Data(Dataset):
    def __len__(self):
        return args.steps * 4

    def __getitem__(self, i):
        if MINE and i // 4 == args.at:
            if args.ending == "loader_kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if args.ending == "loader_raise":
                return torch.tensor(float("n/a"))
            if args.ending == "loader_sleep":
                time.sleep(3600)
        return torch.zeros(2_000_000 if MINE and args.ending == "loader_shm" else 100)


def ask(cgroup, file, value):
    path = pathlib.Path("/sys/fs/cgroup") / cgroup
    (path / file).write_text(str(value))
    (path / "cgroup.procs").write_text(str(os.getpid()))


def save(step, model):
    path = HERE / "ckpt" / f"step_{step:06d}"
    if args.ending == "save_dcp":
        import torch.distributed.checkpoint as dcp

        dcp.save({f"shard_{RANK}": torch.zeros(2_000_000 if MINE else 100), "model": model}, checkpoint_id=path)
    elif MINE:
        path.parent.mkdir(exist_ok=True)
        if args.ending == "save_sleep":
            time.sleep(3600)  # a file server that does not answer
        torch.save({"model": torch.zeros(2_000_000), "step": step}, path.with_suffix(".pt"))
        if args.ending == "load":
            os.truncate(path.with_suffix(".pt"), 5_000_000)
            torch.load(path.with_suffix(".pt"))


def end(step, model, groups):
    """True to leave the loop."""
    match args.ending:
        case "sleep":
            time.sleep(3600)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "term":
            os.kill(os.getpid(), signal.SIGTERM)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "segv":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "exit":
            os._exit(3)
        case "bus":
            with open(HERE / "data.bin", "w+b") as f:
                f.write(bytes(8192))
                f.flush()
                data = mmap.mmap(f.fileno(), 8192)
                f.truncate(0)  # someone writes the data anew
                data[4096]
        case "raise":
            float("n/a")
        case "assert":
            loss = float("nan")
            assert math.isfinite(loss), f"loss is {loss} at step {step}"
        case "missing":
            open(HERE / "data" / "train_0042.bin", "rb")
        case "leave":
            return True  # its data ends before the others'
        case "memory_python" | "memory_torch":
            used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
            bytearray(1 << 30) if args.ending == "memory_python" else torch.zeros(1 << 28)
        case "memory_cgroup":
            if "SLURM_JOB_ID" not in os.environ:
                ask("memory/job", "memory.limit_in_bytes", 200 << 20)
            keep = []
            while True:
                keep.append(torch.ones(1 << 22))
        case "threads":
            ask("pids/job", "pids.max", 1)
            next(iter(DataLoader(Data(), num_workers=2)))
        case "size":
            dist.all_reduce(torch.ones(500))
        case "dtype":
            dist.all_reduce(torch.ones(1000, dtype=torch.float64))
        case "op":
            dist.broadcast(model, src=args.who)
        case "monitored":
            time.sleep(3600)
        case "group":
            time.sleep(3600)
        case "crossed":  # the others of its group do it the other way round
            dist.all_reduce(torch.ones(1))
            dist.all_reduce(model, group=groups[RANK * len(groups) // WORLD])
    return False


def warn(step):
    """What healthy jobs print all the time."""
    if step == 3 and RANK == 1:
        warnings.warn("The given buffer is not writable, and PyTorch does not support non-writable tensors.", stacklevel=2)
    if step == 6 and RANK == 2:
        try:
            open("/job/cache/tokens.bin", "rb")
        except OSError:
            log.exception("no cached tokens, reading the text instead (try 1 of 3)")
    if step == 9 and RANK == 0:
        print("sample: The dragon was Killed. Segmentation fault, cried the king; out of memory and out of time! <|endoftext|>", flush=True)
    if step == 4 and RANK == 3:
        subprocess.run(["sh", "-c", "kill -9 $$"], check=False)  # a helper that nobody needs
        log.error("nvidia-smi ended with code -9, no GPU metrics")


def main():
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    if args.ending == "import" and MINE:
        import flash_attn_3  # noqa: F401
    sys.stdout.reconfigure(line_buffering=True)
    store = signals(RANK == 0 and "TORCHELASTIC_RUN_ID" not in os.environ)
    store.add(f"here{ATTEMPT}", 1)
    while store.add(f"here{ATTEMPT}", 0) < WORLD:  # on a busy machine imports take longer than the time-out
        time.sleep(0.1)
    if args.env_store:
        dist.init_process_group("gloo", timeout=TIMEOUT)
    else:  # after a restart gloo meets the addresses of the attempt before in the store of env://
        dist.init_process_group("gloo", timeout=TIMEOUT, rank=RANK, world_size=WORLD, store=dist.PrefixStore(f"attempt{ATTEMPT}", signals()))
    if args.watch:
        threading.Thread(target=watch, args=(signals(),), daemon=True).start()
    if args.ending == "save_sleep":
        faulthandler.dump_traceback_later(5, exit=False)
    half = WORLD // 2
    groups = [dist.new_group(list(range(i, i + half)), timeout=TIMEOUT) for i in (0, half)] if args.ending in ("group", "crossed") else []
    loader = iter(DataLoader(Data(), batch_size=4, num_workers=1, timeout=5 if args.ending == "loader_sleep" else 0)) if args.ending.startswith("loader") else None
    torch.manual_seed(1234)
    model = torch.zeros(1000)
    try:
        for step in range(args.steps):
            started = time.perf_counter()
            if loader:
                next(loader)
            time.sleep(args.pace + 0.01 * torch.rand(1).item())
            leave = args.ending == "warnings" and warn(step)
            if step == args.at and MINE:
                leave = end(step, model, groups)
            if leave:
                break
            if step == args.at:
                if args.ending == "monitored":
                    dist.monitored_barrier(timeout=TIMEOUT)
                if args.ending.startswith(("save", "load")) and not args.ending.startswith("loader"):
                    save(step, model)
            if groups:
                dist.all_reduce(model, group=groups[RANK * 2 // WORLD])
            dist.all_reduce(model)
            loss = torch.tensor([10.8 * math.exp(-step / 40) + 0.1 * torch.rand(1).item()])
            if args.ending == "warnings" and step == 7:
                loss *= 9
            dist.all_reduce(loss, op=dist.ReduceOp.SUM)
            took, loss = (time.perf_counter() - started) * 1e3, loss.item() / WORLD
            if args.style == "nanogpt" and RANK == 0:
                print(f"iter {step}: loss {loss:.4f}, time {took:.2f}ms, mfu -100.00%")
            if args.style == "megatron" and RANK == WORLD - 1:  # the last rank prints
                now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")
                print(f" [{now}] iteration {step + 1:8}/{args.steps:8} | consumed samples: {(step + 1) * 8:12} | elapsed time per iteration (ms): {took:.1f} "
                      f"| learning rate: 1.000000E-04 | global batch size: {8:5} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 1.000 "
                      f"| number of skipped iterations: {0:3} | number of nan iterations: {0:3} |")
    except Exception:
        if args.watch:
            store.set(f"dump{ATTEMPT}", str(RANK))
        dump()
        time.sleep(2)  # the others write theirs, before the launcher ends them
        raise
    if args.ending in ("none", "warnings", "after"):
        dist.barrier()
        dump()
    if RANK == 0 and args.ending != "leave":
        print("[after training is done] datetime: " + datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"))
    if args.ending == "after" and MINE:
        os.abort()
    if args.ending != "warnings":
        dist.destroy_process_group()


if __name__ == "__main__":
    if os.environ.get("RECORD"):  # torchrun's summary has the traceback then
        from torch.distributed.elastic.multiprocessing.errors import record

        main = record(main)
    main()

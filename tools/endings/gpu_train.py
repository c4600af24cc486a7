"""A small data-parallel training on NCCL, all ranks on one GPU, of which one rank (--who) comes to --ending at step --at. See gpu.py."""

import argparse
import datetime
import math
import os
import pathlib
import signal
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--ending", default="none")
parser.add_argument("--who", type=int, default=-1)
parser.add_argument("--at", type=int, default=7)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--shared-host", action="store_true", help="NCCL is not told that each rank is a host: it refuses ranks that share a GPU")
args = parser.parse_args()

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if not args.shared_host:
    os.environ["NCCL_HOSTID"] = f"host{RANK}"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

KERNELS = r"""
extern "C" __global__ void wild(float *p) { *(float *)(0x10 + threadIdx.x * 4) = 1; }
extern "C" __global__ void odd(char *p) { *(double *)(p + 1) = 1; }
extern "C" __global__ void trap(float *p) { asm("trap;"); }
extern "C" __global__ void spin(volatile float *p) { while (p[0] == 0) { } }
"""


def launch(kernel, threads=32):
    import cupy

    cupy.RawModule(code=KERNELS).get_function(kernel)((1,), (threads,), (int(torch.zeros(1024, device="cuda").data_ptr()),))


def end(step, model):
    match args.ending:
        case "sleep":
            time.sleep(3600)
        case "late":
            time.sleep(4)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            float("n/a")
        case "op":
            dist.broadcast(model, src=args.who)
        case "size":
            dist.all_reduce(torch.ones(500_000, device="cuda"))
        case "assert":
            torch.nn.functional.embedding(torch.tensor([50304], device="cuda"), torch.zeros(50257, 8, device="cuda"))
        case "wild" | "odd" | "trap" | "spin":
            launch(args.ending)
        case "threads":
            launch("wild", threads=2048)
        case "memory":
            free, _ = torch.cuda.mem_get_info()
            keep = [torch.empty(int(free * 0.9), dtype=torch.uint8, device="cuda")]
            keep.append(torch.empty(32, 1024, 128256, device="cuda"))
        case "save":
            torch.save({"model": model}, pathlib.Path("model.pt"))
            time.sleep(3600)  # a file server that does not answer


def main():
    sys.stdout.reconfigure(line_buffering=True)
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=10), device_id=torch.device("cuda:0"))
    model = torch.zeros(1_000_000, device="cuda")
    weight = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    for step in range(args.steps):
        started = time.perf_counter()
        for _ in range(50):
            weight = torch.nn.functional.normalize(weight @ weight)
        if step == args.at and args.who in (RANK, -1):
            end(step, model)
        dist.all_reduce(model)
        loss = torch.tensor([10.8 * math.exp(-step / 40)], device="cuda")
        dist.all_reduce(loss)
        took, loss = (time.perf_counter() - started) * 1e3, loss.item() / WORLD
        if RANK == 0:
            print(f"iter {step}: loss {loss:.4f}, time {took:.2f}ms, mfu -100.00%")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

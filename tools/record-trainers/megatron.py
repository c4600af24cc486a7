"""Records what Megatron-LM prints of the times of its ranks: `--timing-log-option all`, `minmax` and `max`, and `--log-straggler`.

    python -m venv venv && venv/bin/pip install torch==2.6.0 numpy packaging
    git -C Megatron-LM checkout d98e8a64ddf34856e74b24714e3bedb2f5a39553
    venv/bin/python megatron.py Megatron-LM DIRECTORY

Recorded with Python 3.11.7, torch 2.6.0 (gloo) and Megatron-LM d98e8a64 (2026-08-22). Four processes take the times of megatron/core/timers.py and make
the reports of StragglerDetector in megatron/core/utils.py; both are Megatron's own files, and so is the handler that prints. Not Megatron's are the work,
which is sleep; the line of the iteration, which training_log() writes in the middle of a trainer (its format is repeated here); and what a GPU would
say, since there is none: synchronize() does nothing, events are CPU times, temperature and power are made up.

In slow_*.log rank 2 computes half as long again as the others; in healthy_*.log nobody does.
"""

import datetime
import io
import logging
import os
import sys
import time
import types

import torch
import torch.distributed
import torch.multiprocessing

WORLD, INTERVAL = 4, 2


def megatron(root):
    """Imports the two modules without the rest of Megatron, which wants a GPU."""
    for name in ("megatron", "megatron.core", "megatron.training"):
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(root, *name.split("."))]
        sys.modules[name] = package
    import megatron.core.parallel_state  # it and utils import each other, in this order
    import megatron.core.timers as timers
    import megatron.core.utils as utils
    from megatron.training.log_handler import CustomHandler

    return timers, utils, CustomHandler


class Event:
    """torch.cuda.Event by the CPU's clock."""

    def __init__(self, enable_timing=True):
        self.at = 0.0

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


def no_gpu(rank):
    torch.cuda.is_available = lambda: True
    torch.cuda.synchronize = lambda: None
    torch.cuda.current_device = lambda: "cpu"
    torch.cuda.Event = Event
    torch.cuda.temperature = lambda: 60 + rank
    torch.cuda.power_draw = lambda: 601_000 + 100 * rank
    torch.cuda.utilization = lambda: 97 + rank % 3
    torch.cuda.clock_rate = lambda: 1950 + 10 * rank


def train(rank, root, out, option, iterations, slow, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=WORLD)
    no_gpu(rank)
    timers_module, utils, handler = megatron(root)
    logging.basicConfig(handlers=[handler()], level=logging.INFO)
    text = io.StringIO()
    logging.getLogger().handlers[0].setStream(text)
    timers = timers_module.Timers(log_level=2, log_option=option)
    detector = utils.StragglerDetector()
    detector.configure(WORLD, rank, mmcnt=2, port=port + 1, enabled=True)

    factor = 1.5 if rank == slow else 1.0
    texts = []

    def flush():  # the terminal of the job: what the ranks print, rank after rank
        torch.distributed.barrier()
        gathered = [None] * WORLD if rank == 0 else None
        torch.distributed.gather_object(text.getvalue(), gathered)
        text.seek(0)
        text.truncate()
        if rank == 0:
            for r in reversed(range(WORLD)):  # the last rank logs the iteration first, rank 0 reports after it
                texts.extend(f"[default{r}]:{line}\n" for line in gathered[r].splitlines())

    timers("interval-time", log_level=0).start(barrier=True)
    for iteration in range(1, iterations + 1):
        timers("forward-backward", log_level=1).start(barrier=True)
        for _ in range(2):
            timers("forward-compute", log_level=2).start()
            timers("batch-generator", log_level=2).start()
            with detector(bdata=True):
                time.sleep(0.002)
            timers("batch-generator").stop()
            with detector:
                time.sleep(0.02 * factor)
            timers("forward-compute").stop()
            timers("backward-compute", log_level=2).start()
            time.sleep(0.04 * factor)
            timers("backward-compute").stop()
        timers("all-grads-sync", log_level=1).start(barrier=True)
        time.sleep(0.003)
        timers("all-grads-sync").stop()
        timers("forward-backward").stop()
        timers("optimizer", log_level=1).start(barrier=True)
        for name in ("optimizer-copy-to-main-grad", "optimizer-clip-main-grad", "optimizer-inner-step", "optimizer-copy-main-to-model-params"):
            timers(name, log_level=1).start(barrier=True)
            time.sleep(0.002)
            timers(name).stop()
        timers("optimizer").stop()
        if iteration % INTERVAL:
            continue
        elapsed = timers("interval-time").elapsed(barrier=True)
        if rank == WORLD - 1:
            now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")
            print(
                f" [{now}] iteration {iteration:8d}/{iterations:8d} | consumed samples: {iteration * 8:12d} | elapsed time per iteration (ms): "
                f"{elapsed * 1000 / INTERVAL:.1f} | global batch size: {8:5d} | lm loss: {10 / iteration:.6E} | loss scale: 1.0 | grad norm: 1.000 | "
                "number of skipped iterations:   0 | number of nan iterations:   0 |",
                file=text,
            )
        timers.log(
            [
                "forward-backward", "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "all-grads-sync", "params-all-gather", "optimizer-copy-to-main-grad",
                "optimizer-unscale-and-check-inf", "optimizer-clip-main-grad", "optimizer-count-zeros", "optimizer-inner-step",
                "optimizer-copy-main-to-model-params", "optimizer", "batch-generator", "forward-compute", "backward-compute",
            ],
            normalizer=INTERVAL,
        )
        detector.report(1e12 * INTERVAL, INTERVAL)
        flush()
    if rank == 0:
        with open(out, "w") as f:
            f.writelines(texts)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    root, directory = sys.argv[1:]
    port = 29631
    for name, slow in (("slow", 2), ("healthy", -1)):
        for option, iterations in (("all", 24), ("minmax", 4), ("max", 4)):
            if slow < 0 and option != "all":
                continue
            out = os.path.join(directory, f"{name}_{option}.log")
            torch.multiprocessing.spawn(train, (root, out, option, iterations, slow, port), nprocs=WORLD)
            port += 2

"""train.py by torch.multiprocessing.spawn, which many scripts do instead of torchrun."""

import os

import torch.multiprocessing as mp


def work(rank):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "4", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
    import train

    train.main()


if __name__ == "__main__":
    mp.spawn(work, nprocs=4)

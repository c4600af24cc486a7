#!/usr/bin/env python3
"""Trains a model."""
import argparse
import torch

CONFIG = {'lr': 1e-4, 'batch_size': 32, 'epoch': 3}
DEFAULT = {"step": 0, "loss": None}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-iters", type=int, default=1000)
    for step, batch in enumerate(loader):
        loss = model(batch).loss
        loss.backward()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, time {dt * 1000:.2f}ms, mfu {mfu * 100:.2f}%")
            log = {'loss': loss.item(), 'learning_rate': lr, 'epoch': epoch}
            print(log)
        # iteration 100/1000 | consumed samples: 3200 | elapsed time per iteration (ms): 24379.9 |


if __name__ == "__main__":
    main()

"""Draws tqdm's bars with the calls of OpenRLHF's trainer/sft_trainer.py: the postfix is set before the bar goes on, and evaluations have a bar of their own.

    pip install tqdm==4.70.1
    python openrlhf_bar.py 2> openrlhf.log
"""
import time

from tqdm import tqdm

step = 0
for epoch in range(2):
    bar = tqdm(range(4), desc="Train step of epoch %d" % epoch)
    for _ in range(4):
        step += 1
        time.sleep(0.15)
        bar.set_postfix({"gpt_loss": 2.0 / step, "lr": 1e-6 * step, "grad_norm": 1.5})
        bar.update()
        if step % 4 == 0:
            results = tqdm(range(2), desc="Eval stage of steps %d" % step)
            for n in range(2):
                time.sleep(0.15)
                results.update()
                results.set_postfix({"eval gpt_loss": 2.5 / step - 0.01 * n})

#!/usr/bin/env bash
# Trains a tiny model on CPU with nanoGPT's train.py (karpathy/nanoGPT at 3adf61e), interrupts it and resumes it from its checkpoint.
#   pip install torch==2.6.0 numpy
#   tools/record-trainers/nanogpt.sh CHECKOUT > nanogpt.log
set -eu
cd "$1"
mkdir -p data/tiny
python -c 'import numpy as np
rng = np.random.default_rng(1)
for n in "train", "val":
    rng.integers(0, 64, 20000).astype(np.uint16).tofile(f"data/tiny/{n}.bin")'
train() {
    python -W ignore train.py --dataset=tiny --device=cpu --compile=False --dtype=float32 --eval_iters=2 --eval_interval=10 --log_interval=2 --block_size=32 --batch_size=4 \
        --gradient_accumulation_steps=2 --n_layer=2 --n_head=2 --n_embd=32 --dropout=0.0 --always_save_checkpoint=True "$@"
}
train --max_iters=16
train --max_iters=22 --init_from=resume

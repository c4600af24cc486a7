#!/usr/bin/env bash
set -euo pipefail
export NCCL_DEBUG=INFO VERL_LOGGING_LEVEL=DEBUG
torchrun --nproc_per_node 8 train.py --train-iters 1000 --lr 1e-4 --log-interval 10
echo "step: 1, loss: $LOSS"

"""Lets torchtune's DiskLogger (FILE) and StdoutLogger write what recipes/full_finetune_single_device.py and full_dpo_distributed.py hand them.

    pip install torchtune==0.6.1 torchao==0.9.0 torch==2.6.0
    python -W ignore torchtune_loggers.py FILE > torchtune.log
"""
import os
import sys

import torch
from torchtune.training.metric_logging import DiskLogger, StdoutLogger

path = sys.argv[1]
disk, stdout = DiskLogger(os.path.dirname(path) or ".", filename=os.path.basename(path)), StdoutLogger()
torch.manual_seed(1)
loss = 2.5
for step in range(1, 9):
    loss *= 0.95
    log = {"loss": loss, "lr": 2e-5 * step / 8, "tokens_per_second_per_gpu": 1234.5 + step, "grad_norm": torch.rand(()) + 1}
    for logger in disk, stdout:
        logger.log_dict(log, step=step)
    if step % 4 == 0:
        for logger in disk, stdout:
            logger.log_dict({"val_loss": loss + 0.1}, step=step)
for logger in disk, stdout:
    logger.log_dict({"loss": 0.69, "rewards/chosen": torch.tensor(0.0125), "rewards/accuracies": torch.tensor(0.5)}, step=9)
    logger.log("loss", 0.68, step=10)
    logger.close()

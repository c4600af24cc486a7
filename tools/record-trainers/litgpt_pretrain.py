"""Pretrains a tiny model on CPU with LitGPT's own loop, on random tokens: DIR/logs/csv/version_0/metrics.csv is CSVLogger's.

    pip install litgpt==0.5.13 torch==2.15.0 requests
    python -W ignore litgpt_pretrain.py DIR > litgpt.log 2>&1
"""

import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader
import litgpt.pretrain as pretrain
from litgpt import Config
from litgpt.args import EvalArgs, TrainArgs
from litgpt.data import DataModule


class Random(DataModule):
    def connect(self, tokenizer=None, batch_size=1, max_seq_length=None):
        self.batch_size = batch_size

    def setup(self, stage=""):
        pass

    def train_dataloader(self):
        g = torch.Generator().manual_seed(1)
        return DataLoader(torch.randint(0, 64, (256, 17), generator=g), batch_size=self.batch_size)

    val_dataloader = train_dataloader


out = Path(sys.argv[1])
pretrain.setup(
    model_name="pythia-14m", model_config=Config(name="tiny", block_size=16, vocab_size=64, padded_vocab_size=64, n_layer=1, n_head=2, n_embd=16), out_dir=out, precision="32-true", data=Random(),
    train=TrainArgs(save_interval=None, log_interval=2, global_batch_size=8, micro_batch_size=4, max_tokens=16*4*24, max_norm=1.0, min_lr=1e-5, lr_warmup_steps=2, tie_embeddings=False),
    eval=EvalArgs(interval=4, max_iters=2, initial_validation=False, final_validation=True), devices=1, logger_name="csv",
)

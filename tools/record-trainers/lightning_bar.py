"""Trains a tiny model on CPU with Lightning: its bar goes to standard output, and DIR/version_0/metrics.csv is CSVLogger's.

    pip install lightning==2.6.6 torch==2.6.0
    python -W ignore lightning_bar.py DIR 2>&1 | cat > lightning.log
"""
import sys
import time

import lightning as L
import torch
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def training_step(self, batch, _):
        time.sleep(0.02)
        loss = self.loss(batch)
        self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        self.log("lr", self.optimizers().param_groups[0]["lr"])
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", self.loss(batch), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main(out):
    L.seed_everything(1)
    x = torch.randn(64, 8)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=8)
    L.Trainer(
        max_epochs=3, accelerator="cpu", devices=1, log_every_n_steps=2, check_val_every_n_epoch=2, enable_checkpointing=False, callbacks=[L.pytorch.callbacks.TQDMProgressBar()],
        logger=CSVLogger(out, name="", flush_logs_every_n_steps=4),
    ).fit(Model(), loader, loader)


main(sys.argv[1])

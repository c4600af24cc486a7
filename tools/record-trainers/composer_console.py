"""Trains a tiny model on CPU with Composer: ConsoleLogger writes to standard error, FileLogger to FILE. DURATION is 6ba or 1ep.

    pip install mosaicml==0.32.1 torch==2.6.0
    python -W ignore composer_console.py FILE DURATION 2> composer.log
    python -W ignore composer_console.py FILE 2ep bar 2>&1 | cat > composer_bar.log
"""
import sys

import torch
from composer import Trainer
from composer.callbacks import LRMonitor, SpeedMonitor
from composer.loggers import FileLogger
from composer.models import ComposerModel
from torch.utils.data import DataLoader
from torchmetrics import MeanSquaredError


class Model(ComposerModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, batch):
        return self.layer(batch[0])

    def loss(self, outputs, batch):
        return torch.nn.functional.mse_loss(outputs, batch[1])

    def get_metrics(self, is_train=False):
        return {} if is_train else {"MeanSquaredError": MeanSquaredError()}

    def eval_forward(self, batch, outputs=None):
        return outputs if outputs is not None else self.forward(batch)

    def update_metric(self, batch, outputs, metric):
        metric.update(outputs, batch[1])


def main(out, duration, bar=None):
    torch.manual_seed(1)
    x = torch.randn(64, 8)
    data = list(zip(x, x.sum(1, keepdim=True)))
    model = Model()
    Trainer(
        model=model, train_dataloader=DataLoader(data, batch_size=8), eval_dataloader=DataLoader(data, batch_size=16), max_duration=duration, eval_interval="4ba",
        optimizers=torch.optim.SGD(model.parameters(), lr=0.01), device="cpu", progress_bar=bar is not None, log_to_console=bar is None, console_log_interval="1ba",
        callbacks=[LRMonitor(), SpeedMonitor(window_size=2)], loggers=[FileLogger(filename=out, remote_file_name="log.txt", overwrite=True, log_traces=False)],
    ).fit()


main(*sys.argv[1:])

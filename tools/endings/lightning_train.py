"""Lightning's own launcher: four ranks of DDP on gloo, one of which comes to an end at its tenth step."""

import os
import signal
import sys

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

ending, who = sys.argv[2], int(sys.argv[4])


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, i):
        if i == 10 and self.global_rank == who:
            if ending == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if ending == "raise":
                float("n/a")
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


trainer = L.Trainer(accelerator="cpu", strategy="ddp", devices=4, max_steps=20, logger=False, enable_checkpointing=False, log_every_n_steps=1)
trainer.fit(Model(), DataLoader(TensorDataset(torch.rand(400, 8)), batch_size=4))

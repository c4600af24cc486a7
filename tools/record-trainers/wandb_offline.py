"""Lets the SDK of Weights & Biases write files of offline runs, as fixtures for internal/wandb, and beside each what the SDK itself reads from the file.

    pip install --target sdk wandb==0.31.0            # and 0.19.11, 0.16.6 for the jobs "plain" and "blocks", 0.19.11 for "gpu"; Python 3.11
    pip install --target old --no-deps wandb==0.28.2  # its reader, datastore.py, is the same as in 0.16; 0.30 has none
    PYTHONPATH=sdk python wandb_offline.py JOB old/wandb/sdk/internal/datastore.py ../../internal/wandb/testdata

JOB is one of those below. "hf" needs transformers==5.24.0, accelerate==1.15.0 and torch==2.15.0, "lightning" needs lightning==2.6.6. Runs as who may make
the folder /train, and deletes it; without network and GPU. Writes JOB-VERSION.wandb.gz and JOB-VERSION.json.gz.
"""

import collections
import glob
import gzip
import importlib.util
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import time

NEUTRAL = dict(
    MODE="offline", DIR="/train", PROJECT="fixtures", ENTITY="team", DISABLE_GIT="true", DISABLE_CODE="true", HOST="host", USERNAME="user", EMAIL="user@host",
    ERROR_REPORTING="false", SILENT="true", PROGRAM="train.py", X_DISABLE_META="true", X_EXECUTABLE="python",
    X_SAVE_REQUIREMENTS="false", X_STATS_SAMPLING_INTERVAL="0.5", _DISABLE_META="true", _SAVE_REQUIREMENTS="false", _STATS_SAMPLE_RATE_SECONDS="0.5",
    _STATS_SAMPLES_TO_AVERAGE="1", _EXECUTABLE="python", LOG_MODEL="false", WATCH="false",
)


def plain():
    import wandb

    config = {"lr": 1e-3, "model": {"layers": 2, "name": "é\"\n"}}
    run = wandb.init(id="plain001", name="plain", group="group", job_type="train", tags=["a", "b"], config=config)
    wandb.define_metric("val/*", step_metric="epoch")
    for step in range(4):
        print("step", step)
        wandb.log({"loss": 2.5 / (step + 1), "train": {"acc": step / 4, "deep/er": {"x": step}}, "tokens": 2**53 + 1, "a.b": 1})
        time.sleep(0.4)
    odd = {"nan": math.nan, "inf": math.inf, "minus": -math.inf, "text": "quote \" é \u2028 \x01", "list": [1, 2.5, "x"]}
    odd |= {"none": None, "flag": True, "tiny": 5e-324}
    wandb.log({**odd, "nested": odd})
    wandb.log({"loss": 0.5, "val/loss": 0.6, "epoch": 1}, commit=False)
    wandb.log({"hist": wandb.Histogram(np_histogram=([1, 2], [0.0, 0.5, 1.0]))})
    wandb.log({"loss": 0.4}, step=100)
    wandb.log({"lr": 0.1}, step=100)
    wandb.log({"loss": 0.3}, step=99)
    wandb.log({"loss": 0.2, "_timestamp": 1700000000.25}, step=200)
    run.config.update({"late": {"x": [1]}})
    time.sleep(1)
    wandb.finish(exit_code=3)


def gpu():
    """Steps among samples of two GPUs, those of internal/fakenvml: LD_LIBRARY_PATH names the folder of its libnvidia-ml.so.1, FAKE_NVML 64 KiB of zeros."""
    import wandb

    def become(step):
        lines = ["devices 2"]
        for device in range(2):
            now = dict(gpu_util_now=60 + 4 * step + device, power_now_mw=412345 + 1111 * step, temperature=50 + step, mem_used=(11 + 3 * step + device) << 30)
            lines += [f"value {device} {name} {value}" for name, value in now.items()]
        with open(os.environ["FAKE_NVML"], "r+b") as f:
            f.write(struct.pack("=Q", 2 * step + 2) + "\n".join(lines).encode() + b"\0")

    become(0)
    wandb.init(id="gpu00001", name="gpu")
    for step in range(8):
        become(step)
        wandb.log({"loss": 2.5 / (step + 1), "lr": 1e-3})
        time.sleep(0.5)
    wandb.finish()


def typed():
    """Values as JSON and by type: 0.31 refuses to leave out the JSON."""
    plain()


def blocks():
    """Records that end before, at and behind the end of a block, and some that are longer than a block."""
    import wandb

    wandb.init(id="blocks01")
    for step in range(12):
        wandb.log({"loss": 1 / (step + 1), "text": "x" * (32768 - 7 * step)})
    wandb.log({"text": "x" * 100_000})
    for step in range(60):
        wandb.log({"loss": 0.5, "text": "x" * (step * 7)})
    wandb.finish()


def hf():
    os.environ.update(WANDB_RUN_ID="hf000001", WANDB_NAME="hf")
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    torch.manual_seed(0)
    small = dict(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=32)
    data = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 64, (64, 16))]
    args = TrainingArguments(
        output_dir="out", max_steps=12, logging_steps=3, eval_steps=6, eval_strategy="steps", save_strategy="no", report_to="wandb", run_name="hf",
        per_device_train_batch_size=2, use_cpu=True, disable_tqdm=True,
    )
    Trainer(LlamaForCausalLM(LlamaConfig(**small)), args, train_dataset=data, eval_dataset=data[:8]).train()
    import wandb

    wandb.finish()


def lightning():
    os.environ.update(WANDB_RUN_ID="lightn01")
    import torch
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.loggers import WandbLogger

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            loss = self.layer(batch).square().mean()
            self.log("train_loss", loss)
            return loss

        def validation_step(self, batch, _):
            self.log("val_loss", self.layer(batch).square().mean())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    torch.manual_seed(0)
    data = torch.utils.data.DataLoader(torch.rand(20, 4), batch_size=2)
    trainer = Trainer(
        max_epochs=2, log_every_n_steps=2, accelerator="cpu", logger=WandbLogger(project="fixtures", save_dir="/train"), enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Module(), data, data)
    import wandb

    wandb.finish()


def value(item):
    """The text of an item's value, and for the typed form what Python says of the value."""
    kind = item.WhichOneof("value") if "value" in item.DESCRIPTOR.oneofs_by_name else None
    return item.value_json or (kind == "json" and item.json) or (json.dumps(None if kind == "none" else getattr(item, kind)) if kind else "")


def items(of):
    return [[".".join(i.nested_key) if hasattr(i, "nested_key") and i.nested_key else i.key, value(i)] for i in of]


def seconds(t):
    return t.seconds + t.nanos / 1e9


def row(record, kind):
    r = getattr(record, kind)
    if kind == "history":
        return dict(step=r.step.num if r.HasField("step") else None, items=items(r.item))
    if kind == "stats":
        return dict(timestamp=seconds(r.timestamp), items=items(r.item))
    if kind == "config":
        return dict(items=items(r.update), removed=[key for key, _ in items(r.remove)])
    if kind == "exit":
        return dict(code=r.exit_code, runtime=r.runtime, not_complete=getattr(r, "not_complete", False))
    return dict(
        id=r.run_id, entity=r.entity, project=r.project, group=r.run_group, job_type=r.job_type, name=r.display_name, host=r.host,
        start=seconds(r.start_time), starting_step=r.starting_step, resumed=r.resumed, config=items(r.config.update),
    )


def truth(path, datastore):
    from wandb.proto import wandb_internal_pb2

    spec = importlib.util.spec_from_file_location("datastore", datastore)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    store = module.DataStore()
    store.open_for_scan(path)
    records, skipped = [], collections.Counter()
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        kind = record.WhichOneof("record_type")
        if kind in ("history", "stats", "config", "exit", "run"):
            records.append({kind: row(record, kind)})
        else:
            skipped[kind] += 1
    return dict(records=records, skipped=skipped)


def run(job):
    sys.argv = ["train.py"]
    os.environ.update({"WANDB_" + k: v for k, v in NEUTRAL.items()})
    if job == "typed":
        os.environ["WANDB_X_HISTORY_VALUE_ENCODING"] = "json,typed"
    if job in ("blocks", "lightning"):  # Lightning's warnings name the folder of the installation.
        os.environ["WANDB_CONSOLE"] = "off"
    if job == "blocks":
        os.environ.update(WANDB_X_DISABLE_STATS="true", WANDB__DISABLE_STATS="true")
    globals()[job]()


def main(job, datastore, out):
    import wandb

    script, datastore, out = (os.path.abspath(path) for path in (__file__, datastore, out))
    shutil.rmtree("/train", ignore_errors=True)
    os.makedirs("/train")
    os.chdir("/train")
    # A process of its own: wandb.finish of 0.31 returns before the last records are in the file, which are there when the process has ended.
    subprocess.run([sys.executable, script, "run", job], check=True)
    (path,) = glob.glob("/train/wandb/offline-run-*/run-*.wandb")
    stem = f"{out}/{job}-{wandb.__version__}"
    with open(path, "rb") as f, open(stem + ".wandb.gz", "wb") as to:
        to.write(gzip.compress(f.read(), mtime=0))
    text = json.dumps(truth(path, datastore), indent=0).encode()
    with open(stem + ".json.gz", "wb") as to:
        to.write(gzip.compress(text, mtime=0))
    shutil.rmtree("/train")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2])
    else:
        main(*sys.argv[1:])

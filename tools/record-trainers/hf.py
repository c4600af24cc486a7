"""Records what the Trainer of Hugging Face Transformers and its relatives print, as fixtures for the train_log receiver.

    python -m venv venv && venv/bin/pip install -r requirements-hf.txt
    venv/bin/python hf.py all ../../receivers/trainlogreceiver/testdata/recorded

needs no network and no GPU: the model is a Llama of some thousand random weights, the data are random tokens. Each training step
sleeps, so that a log has the bars of a real job. Beside each log lies its truth, NAME.json: what a callback saw of each
step that was logged. `one NAME` runs a job in this process, as `all` does in children whose output it keeps.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# name: environment and Trainer arguments; _… are ours.
JOBS = {
    "bar": dict(max_steps=12, logging_steps=1, eval_steps=4, eval_strategy="steps", gradient_accumulation_steps=2),
    "fast": dict(max_steps=60, logging_steps=5, _sleep=0.0),
    "buffered": dict(max_steps=12, logging_steps=1, eval_steps=4, eval_strategy="steps", _buffered=True),
    "blocks": dict(max_steps=150, logging_steps=1, _buffered=True, _sleep=0.12),
    "printer": dict(max_steps=6, logging_steps=2, disable_tqdm=True),
    "tokens": dict(max_steps=6, logging_steps=2, include_num_input_tokens_seen="all"),
    "epochs": dict(num_train_epochs=3, logging_steps=5, eval_strategy="epoch", eval_on_start=True),
    "resumed": dict(max_steps=12, logging_steps=2, save_steps=6, save_strategy="steps", _parts=[dict(_stop=6), dict(_resume=True), dict(max_steps=4)]),
    "ranks": dict(max_steps=6, logging_steps=2, _ranks=2, use_cpu=True, ddp_backend="gloo"),
    "sft": dict(max_steps=6, logging_steps=2, eval_steps=3, eval_strategy="steps", _trainer="sft"),
    "grpo": dict(max_steps=4, logging_steps=1, num_generations=4, max_completion_length=4, _trainer="grpo", _sleep=0.0),
    "axolotl": dict(max_steps=6, logging_steps=2, eval_steps=3, eval_strategy="steps", include_tkps=True, _trainer="axolotl"),
    "llamafactory": dict(max_steps=12, logging_steps=2, eval_steps=6, eval_strategy="steps", include_num_input_tokens_seen=True, _trainer="llamafactory", _sleep=0.7),
    # With requirements-hf4.txt, llamafactory too: python hf.py bar4,llamafactory …
    "bar4": dict(max_steps=6, logging_steps=1, eval_steps=3, eval_strategy="steps"),
}


def trainer(job, out):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

    torch.manual_seed(0)
    job = dict(job)
    sleep, stop, kind = job.pop("_sleep", 0.3), job.pop("_stop", 0), job.pop("_trainer", "")
    for ours in ("_buffered", "_resume", "_ranks", "_parts"):
        job.pop(ours, None)

    class Truth(TrainerCallback):
        """Sleeps in each step, and remembers how long it took."""

        def __init__(self):
            self.last, self.took, self.rows = None, [], []

        def on_step_begin(self, *_, **__):
            self.last = time.perf_counter()
            time.sleep(sleep)

        def on_step_end(self, args, state, control, **__):
            self.took.append(time.perf_counter() - self.last)
            if state.global_step == stop:
                control.should_training_stop = True

        def on_log(self, args, state, control, logs=None, **__):
            row = {"step": state.global_step, "of": state.max_steps, **{k: v for k, v in logs.items() if k in ("loss", "eval_loss", "eval_runtime", "train_runtime")}}
            if "loss" in logs:
                row["seconds"] = sum(self.took) / max(len(self.took), 1)
                self.took = []
            self.rows.append(row)

    config = LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64)
    model = LlamaForCausalLM(config)
    rows = torch.randint(0, 8, (40, 16)).tolist()
    defaults = dict(output_dir=out, report_to=[], per_device_train_batch_size=4, per_device_eval_batch_size=4, learning_rate=0.01, save_strategy="no", seed=1)
    truth = Truth()
    if kind in ("sft", "grpo"):
        from datasets import Dataset
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast
        from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

        words = Tokenizer(models.WordLevel({str(i): i for i in range(62)} | {"<unk>": 62, "<eos>": 63}, unk_token="<unk>"))
        words.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<eos>", unk_token="<unk>")
        if kind == "grpo":
            data = Dataset.from_dict({"prompt": [" ".join(map(str, r[:4])) for r in rows]})
            args = GRPOConfig(**{**defaults, "bf16": False, **job})

            def words_used(completions, **_):
                time.sleep(0.3)
                return [float(len(set(c.split()))) for c in completions]

            return GRPOTrainer(model, reward_funcs=words_used, args=args, train_dataset=data, processing_class=tokenizer, callbacks=[truth]), truth
        data = Dataset.from_dict({"text": [" ".join(map(str, r)) for r in rows]})
        args = SFTConfig(**{**defaults, "max_length": 32, "bf16": False, **job})
        return SFTTrainer(model, args=args, train_dataset=data, eval_dataset=data.select(range(8)), processing_class=tokenizer, callbacks=[truth]), truth
    data = [{"input_ids": r, "labels": r} for r in rows]
    if kind == "axolotl":
        import axolotl.core.trainers.base as axolotl
        from axolotl.core.training_args import AxolotlTrainingArguments
        from datasets import Dataset

        axolotl.get_gpu_memory_usage = lambda *_: (1.5, 1.75, 2.25)  # GiB: there is no GPU
        data = Dataset.from_list([{**r, "attention_mask": [1] * len(r["input_ids"])} for r in data]).with_format("torch")
        return axolotl.AxolotlTrainer(model, args=AxolotlTrainingArguments(**{**defaults, **job}), train_dataset=data, eval_dataset=data.select(range(24)), callbacks=[truth]), truth
    if kind == "llamafactory":
        from llamafactory.train.callbacks import LogCallback

        truth = [truth, LogCallback()]
        return Trainer(model, TrainingArguments(**{**defaults, **job}), train_dataset=data, eval_dataset=data[:24], callbacks=truth), truth[0]
    return Trainer(model, TrainingArguments(**{**defaults, **job}), train_dataset=data, eval_dataset=data[:24], callbacks=[truth]), truth


def one(name, out, part):
    job = dict(JOBS[name])
    parts = job.get("_parts")
    if parts:
        job |= parts[int(part)]
    t, truth = trainer(job, out)
    t.train(resume_from_checkpoint=bool(job.get("_resume")))
    if t.is_world_process_zero():
        t.save_state()
        pathlib.Path(out, f"truth{part}.json").write_text(json.dumps(truth.rows))


def record(name, into):
    job = JOBS[name]
    with tempfile.TemporaryDirectory() as out:
        log, rows = b"", []
        for part in range(len(job.get("_parts", [0]))):
            command = [sys.executable] + ([] if job.get("_buffered") else ["-u"])
            if job.get("_ranks"):
                command += ["-m", "torch.distributed.run", f"--nproc-per-node={job['_ranks']}", "--tee=3", f"--log-dir={out}/log"]
            env = {**{k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}, "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1", "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1", "COLUMNS": "80"}
            if not job.get("_buffered"):
                env["PYTHONUNBUFFERED"] = "1"
            done = subprocess.run(command + [__file__, "one", name, out, str(part)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
            log += done.stdout
            if done.returncode:
                sys.exit(log.decode(errors="replace"))
            rows.append(json.loads(pathlib.Path(out, f"truth{part}.json").read_text()))
        into.mkdir(parents=True, exist_ok=True)
        (into / f"{name}.log").write_bytes(log)
        (into / f"{name}.json").write_text("[\n" + ",\n".join(json.dumps(r) for part in rows for r in part) + "\n]\n")
        if name == "llamafactory":
            (into / "trainer_log.jsonl").write_bytes(pathlib.Path(out, "trainer_log.jsonl").read_bytes())
        if name == "bar":
            (into / "trainer_state.json").write_bytes(pathlib.Path(out, "trainer_state.json").read_bytes())


if __name__ == "__main__":
    if sys.argv[1] == "one":
        one(*sys.argv[2:])
    else:
        for job in JOBS if sys.argv[1] == "all" else sys.argv[1].split(","):
            record(job, pathlib.Path(sys.argv[2]))
            print(job)

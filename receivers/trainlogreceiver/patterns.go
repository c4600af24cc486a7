package trainlogreceiver

import (
	"slices"

	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pairs"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
)

// builtin are the lines of trainers with a fixed form: a pattern covers them. Repository, file and commit, or the version of the package that was run, stand
// beside each. A new pattern needs a line in patterns_test.go. Patterns with the same beginning are adjacent: the common part is matched once.
var builtin = slices.Concat(nanoGPT, nanochat, litGPT, torchtune, maxText, compile(pattern.Source,
	// KellerJordan/modded-nanogpt, train_gpt.py: until 2024-12 with the loss of each step, since then without; track 3 has seconds. train_time is a clock.
	"step:{iteration}/{iterations} train_loss:{loss} train_time:{elapsed:ms}ms step_avg:{*}",
	"step:{iteration}/{iterations} train_time:{elapsed:ms}ms step_avg:{*}",
	"step:{iteration}/{iterations} val_loss:{val_loss} train_time:{elapsed:ms}ms step_avg:{*}",
	"step:{iteration}/{iterations} train_loss:{loss} train_time:{elapsed:s}s step_avg:{*}",
	"step:{iteration}/{iterations} train_time:{elapsed:s}s step_avg:{*}",
	"step:{iteration}/{iterations} val_loss:{val_loss} train_time:{elapsed:s}s step_avg:{*}",
	// karpathy/llm.c, train_gpt2.cu and llmc/logger.h (main.log).
	"step {iteration}/{iterations} | loss {loss} ({*}z)| norm {grad_norm} ({*}z)| lr {lr} | {step_time:ms} ms | {mfu:%}% bf16 MFU | {tokens_per_sec} tok/s",
	"step {iteration}/{iterations} | loss {loss} ({*}z)| norm {grad_norm} ({*}z)| lr {lr} | {step_time:ms} ms | {*} MFU | {tokens_per_sec} tok/s",
	"s:{iteration} trl:{loss} lr:{lr} norm:{grad_norm}",
	"s:{iteration} trl:{loss} lr:{lr}",
	"s:{iteration} trl:{loss}",
	"s:{iteration} tel:{val_loss}",
	// ml-explore/mlx-lm 0.31.3, mlx_lm/tuner/callbacks.py and trainer.py. Until 0.20 without the memory.
	"Iter {iteration}: Train loss {loss}, Learning Rate {lr}, It/sec {it/s}, Tokens/sec {tokens_per_sec}, Trained Tokens {consumed_tokens}, Peak mem {peak_memory:GB} GB",
	"Iter {iteration}: Train loss {loss}, {*}It/sec {it/s}, Tokens/sec {tokens_per_sec}, Trained Tokens {consumed_tokens}",
	"Iter {iteration}: Val loss {val_loss}, Val took {eval_runtime}s",
	// PrimeIntellect-ai/prime-rl, trainer and orchestrator, since 2026-06.
	"Step {iteration} | {step_time:auto} | Loss {loss} | {*}Throughput {tokens_per_sec} tokens/s | MFU {mfu:%}% | Peak Mem. {peak_memory:GiB} GiB{*}",
	"Step {iteration} | {step_time:auto} | Loss {loss} | {*}",
	"Step {iteration} | {step_time:auto} | Reward {reward} | {*}",
	"Step {iteration} | Time: {step_time:auto} | Reward: {reward} | Throughput: {tokens_per_sec} tokens/s | {*}",
	// pytorch/examples, imagenet/main.py and mnist/main.py, with a number of samples; pytorch/tutorials, quickstart.
	"Epoch: [{epoch}][{iteration}/{steps}] Time {step_time} ({*}) Data {data_time} ({*}) Loss {loss} ({*}){*}",
	"Train Epoch: {epoch} [{samples}/{*} ({*}%)] Loss: {loss}",
	"loss: {loss} [{samples}/{*}]",
	// huggingface/pytorch-image-models 1.0, train.py.
	"Train: {epoch} [{iteration}/{steps} ({*}%)] Loss: {loss} ({*}) Time: {step_time}s, {samples_per_sec}/s ({*}) LR: {lr} Data: {data_time} ({*})",
	// mindspore-lab/mindformers, core/callback/callback.py, with data sink and without.
	"{{ Epoch:[{epoch}/{epochs}], step:[{iteration}/{steps}], loss:[{loss}/{*}], per_step_time: {step_time:ms}ms, lr: {lr}, overflow cond: {*}, loss_scale: {loss_scale}{*}",
	"{{ Epoch:[{epoch}/{epochs}], step:[{iteration}/{steps}], loss: {loss}, per_step_time: {step_time:ms}ms, lr: {lr}, overflow cond: {*}, loss_scale: {loss_scale}{*}",
	// wenet-e2e/wenet, wenet/utils/executor.py, with the batch after the epoch.
	"TRAIN | steps/sec {it/s}| Batch {epoch}/{iteration} loss {loss} {*}lr {lr} grad_norm {grad_norm} rank {rank}",
	"CV | steps/sec {*}| Batch {epoch}/{iteration} loss {val_loss} {*}",
	// apple/axlearn, common/trainer.py.
	"trainer process {*} step {iteration}] loss={loss} aux={*}",
	// espnet/espnet, espnet2/train/reporter.py, with a step of several batches.
	"{epoch}epoch:train:{*}-{iteration}batch: iter_time={data_time}, forward_time={forward_time}, {*}, loss={loss}, backward_time={backward_time}, grad_norm={grad_norm}, {*}, train_time={step_time}{*}",
	// tensorflow/estimator, basic_session_run_hooks.py; tensorflow/models, cifar10_train.py.
	"loss = {loss}, step = {iteration} ({interval:s} sec)",
	"loss = {loss}, step = {iteration}",
	// keras.io, guides on writing a training loop.
	"Training loss (for 1 batch) at step {iteration}: {loss}",
	"Training loss (for one batch) at step {iteration}: {loss}",
	// karpathy/makemore, makemore.py.
	"step {iteration} train loss: {*} test loss: {val_loss}",
	// harvardnlp/annotated-transformer; pytorch/tutorials, seq2seq.
	"Epoch Step: {iteration} | Accumulation Step: {*} | Loss: {loss} | Tokens / Sec: {tokens_per_sec} | Learning Rate: {lr}",
	"{*}m {*}s (- {*}) ({iteration} {*}%) {loss}",
	// marian-nmt/marian, src/training/scheduler.h; OpenNMT/OpenNMT-py, onmt/utils/statistics.py, with a clock as the last number; flairNLP/flair,
	// trainers/trainer.py.
	"Ep. {epoch} : Up. {iteration} : Sen. {*} : Cost {loss} {*}: Time {interval:s}s : {tokens_per_sec} words/s{*}",
	"Step {iteration}/{iterations}; acc: {acc}; ppl: {ppl}; xent: {loss}; lr: {lr}; {*} tok/s; {elapsed:s} sec;",
	"Step {iteration}/{iterations}; acc: {acc}; ppl: {ppl}; xent: {loss}; lr: {lr}; {*} tok/s, {elapsed:s} sec;",
	"epoch {epoch} - iter {iteration}/{iterations} - loss {loss} - time (sec): {elapsed:s} - samples/sec: {samples_per_sec}{*}",
	// NVIDIA/tacotron2, train.py; BVLC/caffe, src/caffe/solver.cpp.
	"Train loss {iteration} {loss} Grad Norm {grad_norm} {step_time:s}s/it",
	"Iteration {iteration} ({it/s} iter/s, {*}s/{*} iters), loss = {loss}",
	// tensorflow/tensorflow, examples/tutorials/word2vec/word2vec_basic.py.
	"Average loss at step {iteration} : {loss}",
	"Average loss at step {iteration}: {loss}",
	// mlcommons/logging, mlperf_logging/mllog.
	":::MLLOG {{{*}\"key\": \"train_loss\", \"value\": {loss}, {*}\"step_num\": {iteration}{*}",
	// XGBoost 3.1, LightGBM 4.6 and CatBoost 1.2. The first metric is of the training data.
	"[{iteration}] train-{*}:{loss}{*}",
	"[{iteration}] validation_0-{*}:{loss}{*}",
	"[{iteration}] training's {*}: {loss}{*}",
	"[{iteration}] train's {*}: {loss}{*}",
	"[{iteration}] train_set's {*}: {loss}{*}",
	"[{iteration}] valid_0's {*}: {val_loss}{*}",
	"[{iteration}] valid's {*}: {val_loss}{*}",
	"{iteration}: learn: {loss} {*}total: {elapsed:auto} remaining: {*}",
))

// The lines of trainers with a source of their own, for the content of a step's time (internal/trainers).
var (
	// karpathy/nanoGPT, train.py, and the many scripts derived from it. The time is of the iteration itself, including an evaluation. mfu is a running mean over
	// the process's own device, in units of an A100's peak on any device, and -100 until known. The results of an evaluation are printed before the iteration of
	// the same number; their train loss is of the evaluation's own batches.
	nanoGPT = compile("nanogpt",
		"iter {iteration}: loss {loss}, time {step_time:ms}ms, mfu {mfu:%}%{*}",
		"iter {iteration}: loss {loss}, time {step_time:ms}ms{*}",
		"step {iteration}: train loss {train_loss:result}, val loss {val_loss}",
	)
	// karpathy/nanochat, scripts/base_train.py, mid_train.py, chat_sft.py and chat_rl.py, 2025-10 to 2026-07. Steps count from 0. dt is the time of the step
	// itself, without evaluation; tok/sec is of all devices together; mfu is a percentage over all devices; the loss is a running mean; lrm multiplies the
	// learning rates. Bits per byte are no loss, and stay a field.
	nanochat = compile("nanochat",
		"step {iteration}/{iterations} ({*}%) | loss: {loss} | lrm: {lrm} | dt: {step_time:ms}ms | tok/sec: {tokens_per_sec} | {*}mfu: {mfu:%} | epoch: {epoch}{*}",
		"step {iteration}/{iterations} ({*}%) | loss: {loss} | lrm: {lrm} | dt: {step_time:ms}ms | tok/sec: {tokens_per_sec} | {*}mfu: {mfu:%}{*}",
		"step {iteration}/{iterations} ({*}%) | loss: {loss} | grad norm: {grad_norm} | lrm: {lrm} | dt: {step_time:ms}ms | tok/sec: {tokens_per_sec} | {*}mfu: {mfu:%}{*}",
		"step {iteration} ({*}%) | loss: {loss} | lrm: {lrm} | dt: {step_time:ms}ms | tok/sec: {tokens_per_sec} | {*}mfu: {mfu:%} | epoch: {epoch}{*}",
		"step {iteration} ({*}%) | loss: {loss} | lrm: {lrm} | dt: {step_time:ms}ms | tok/sec: {tokens_per_sec} | {*}mfu: {mfu:%}{*}",
		"Step {iteration} | Validation bpb: {Validation bpb:result}",
		"Step {iteration} | Validation loss: {val_loss}",
		"Step {iteration} | CORE metric: {CORE metric:result}",
		"Step {iteration} | ChatCORE: {ChatCORE:result} | ChatCORE_cat: {ChatCORE_cat:result}",
		"Step {iteration} | Pass@1: {Pass@1:result}{*}",
		"Step {iteration}/{iterations} | Training loss: {loss}| lrm: {lrm}| num_tokens: {perf/total_num_tokens}", // of the step
		"Step {iteration}/{iterations} | Average reward: {Average reward} | Average sequence length: {Average sequence length}",
	)
	// Lightning-AI/litgpt, pretrain.py and finetune/*.py, and its predecessor Lit-GPT. iter counts batches and step the optimizer's steps; lines come every
	// log_interval batches or steps, and the time is that of one batch, so the iteration is iter. val is the result of the evaluation before, already printed on a
	// separate line.
	litGPT = compile("litgpt",
		"Epoch {epoch} | iter {iteration} step {step:field} | loss train: {loss}{*} | iter time: {step_time:ms} ms{*}",
		"iter {iteration} step {step:field} | loss train: {loss}{*} | iter time: {step_time:ms} ms{*}",
		"iter {iteration} step {step:field}: loss {loss}, iter time: {step_time:ms}ms{*}",
		"iter {iteration}: val loss {val_loss}, val time: {duration:ms} ms{*}",
		"iter {iteration}: val loss {val_loss}, val time: {duration:ms}ms{*}",
		"iter {iteration}: val loss {val_loss}",
		"Final evaluation | val loss: {val_loss} | val ppl: {val_ppl}{*}",
	)
	// pytorch/torchtune, torchtune/training/metric_logging.py (DiskLogger, StdoutLogger). Memory is in GiB (training/memory.py), its peaks since the line before.
	// Lines have neither times nor the durations of steps.
	torchtune = compile("torchtune",
		"Step {iteration} | {...} peak_memory_alloc:{peak_memory:GiB} peak_memory_reserved:{peak_memory_reserved:GiB} {...}",
		"Step {iteration} | {...} peak_memory_alloc:{peak_memory:GiB} peak_memory_reserved:{peak_memory_reserved:GiB}",
		"Step {iteration} | {...}",
	)
	// AI-Hypercomputer/maxtext, src/maxtext/common/metric_logger.py. The lines are pairs, and the source is that of pairs.
	maxText = compile(pairs.Source,
		"completed step: {iteration}, seconds: {step_time}, TFLOP/s/device: {TFLOP/s/device}, Tokens/s/device: {Tokens/s/device}, total_weights: {total_weights}, loss: {loss}",
		"completed step: {iteration}, seconds: {step_time}, TFLOP/s/device: {TFLOP/s/device}, loss: {loss}",
		"eval metrics after step: {iteration}, loss={val_loss}, total_weights={total_weights}",
	)
)

// compile makes built-in patterns with the source of their records. A pattern with a mistake panics at the start of the program.
func compile(source string, texts ...string) []*pattern.Pattern {
	out := make([]*pattern.Pattern, len(texts))
	for i, text := range texts {
		out[i] = pattern.MustWhole(source, text)
	}
	return out
}

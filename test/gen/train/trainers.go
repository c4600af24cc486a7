package train

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
)

// The trainers whose logs are rows of numbers. To add a trainer, add its lines, from the print statements of its source.
var trainers = map[string]*trainer{
	// deepspeed/runtime/engine.py (_report_progress, step) and utils/timer.py (ThroughputTimer.stop, SynchronizedWallClockTimer.log) of deepspeedai/DeepSpeed
	// @007cca6a and
	FormatDeepSpeed: {
		flag: "steps-per-print", interval: 10,
		step: []textLine{
			{head: stamped("[", "] [INFO] [logging.py:107:log_dist] [Rank 0] "), cells: []cell{
				{before: "step=", attr: spans.AttrIteration, print: whole, value: iteration},
				{before: ", skipped=", attr: spans.AttrSkippedIterations, print: whole, value: none},
				{before: ", lr=[", attr: spans.AttrLearningRate, print: logfile.AppendRepr, value: learningRate},
			}, tail: "], mom=[(0.9, 0.95)]"},
			{class: logfile.Side, has: func(r *reading) bool { return r.due && r.n > 2 }, head: stamped("[", "] [INFO] [timer.py:264:stop] "), cells: []cell{
				{before: "epoch=", attr: spans.AttrEpoch, print: whole, value: none},
				{before: "/micro_step=", attr: named("micro_step"), print: whole, value: iteration},
				{before: "/global_step=", attr: spans.AttrIteration, print: whole, value: iteration},
				{before: ", RunningAvgSamplesPerSec=", attr: named("RunningAvgSamplesPerSec"), print: logfile.AppendRepr, value: meanSamplesPerSecond},
				{before: ", CurrSamplesPerSec=", attr: spans.AttrSampleThroughput, print: logfile.AppendRepr, value: samplesPerSecond},
				{before: ", MemAllocated=", attr: spans.AttrMemoryUsage, scale: gib, print: logfile.AppendRepr, value: roundedMemory},
				{before: "GB, MaxMemAllocated=", attr: spans.AttrMemoryPeak, scale: gib, print: logfile.AppendRepr, value: roundedPeak},
			}, tail: "GB"},
			{class: logfile.Side, has: timed, head: timersHead, cells: microTimers},
			{class: logfile.Side, has: timed, head: timersHead, cells: globalTimers},
			{class: logfile.Ignored, has: timedBetween, head: timersHead, cells: microTimers},
			{class: logfile.Ignored, has: timedBetween, head: timersHead, cells: globalTimers},
		},
	},
	// beb63, without accumulation of gradients. The throughput is not measured in the first two steps. The timers are printed after each step, whatever
	// steps_per_print is: timers of steps between two records belong to no record.
	FormatTorchTitan: {
		flag: "log-freq", interval: 10, evalInterval: 100, first: true,
		step: []textLine{{head: stamped("[titan] ", " - root - INFO - "), cells: []cell{
			{before: "step: ", attr: spans.AttrIteration, print: wide(2, whole), value: iteration},
			{before: "  loss: ", attr: spans.AttrLoss, print: wide(7, fixed(4)), value: loss},
			{before: "  grad_norm: ", attr: spans.AttrGradientNorm, print: wide(7, fixed(4)), value: func(r *reading) float64 { return r.gradNorm }},
			{before: "  memory: ", attr: spans.AttrMemoryReservedPeak, scale: gib, print: wide(5, fixed(2)), value: peakGiB},
			{before: "GiB(", attr: spans.AttrMemoryUtilization, scale: 0.01, print: fixed(2), value: peakPercent},
			{before: "%)  tps: ", attr: spans.AttrDeviceTokenThroughput, print: grouped(whole), value: deviceTokensPerSecond},
			{before: "  tflops: ", attr: spans.AttrDeviceFlopThroughputReported, scale: 1e12, print: grouped(fixed(2)), value: deviceTeraFlops},
			{before: "  mfu: ", attr: spans.AttrMFUReported, scale: 0.01, print: fixed(2), value: mfuPercent},
		}, tail: "%"}},
		eval: []textLine{{has: always, head: stamped("[titan] ", " - root - INFO - "), cells: []cell{
			{before: "validate step: ", attr: spans.AttrIteration, print: wide(2, whole), value: iteration},
			{before: "  loss: ", attr: spans.AttrValidationLoss, print: wide(7, fixed(4)), value: validation},
			{before: "  memory: ", attr: spans.AttrMemoryReservedPeak, scale: gib, print: wide(5, fixed(2)), value: peakGiB},
			{before: "GiB(", attr: spans.AttrMemoryUtilization, scale: 0.01, print: fixed(2), value: peakPercent},
			{before: "%)  tps: ", attr: spans.AttrDeviceTokenThroughput, print: grouped(whole), value: evalTokensPerSecond},
		}}},
	},
	// nemo/lightning/pytorch/callbacks/progress_printer.py of NVIDIA/NeMo @01f7dbc5. The first iteration counts within the epoch, the global one from the start.
	FormatNeMo: {
		flag: "log-interval", interval: 10, evalInterval: 100,
		step: []textLine{{cells: []cell{
			{before: "Training epoch ", attr: spans.AttrEpoch, print: whole, value: func(r *reading) float64 { return float64((r.n - 1) / stepsPerEpoch) }},
			{before: ", iteration ", print: whole, value: func(r *reading) float64 { return float64((r.n - 1) % stepsPerEpoch) }},
			{before: "/", attr: spans.AttrIterations, print: whole, value: horizon},
			{before: " | lr: ", attr: spans.AttrLearningRate, print: general, value: learningRate},
			{before: " | global_batch_size: ", attr: spans.AttrBatchSize, print: general, value: batchSize},
			{before: " | global_step: ", attr: spans.AttrIteration, print: general, value: index},
			{before: " | max_memory_allocated: ", attr: spans.AttrMemoryPeak, print: general, value: func(r *reading) float64 { return math.Trunc(r.peak) }},
			{before: " | reduced_train_loss: ", attr: spans.AttrLoss, print: general, value: loss},
			{before: " | train_step_timing in s: ", attr: spans.AttrStepDuration, print: general, value: seconds},
			{before: " | TFLOPS_per_GPU: ", attr: spans.AttrDeviceFlopThroughputReported, scale: 1e12, print: general, value: deviceTeraFlops},
			{
				before: " | consumed_samples: ", attr: spans.AttrConsumedSamples, print: general,
				value: func(r *reading) float64 { return float64(r.n) * batchSize(r) },
			},
			{before: " | val_loss: ", attr: spans.AttrValidationLoss, print: general, value: validation, has: validated},
		}}},
		eval: []textLine{
			{class: logfile.Ignored, has: always, cells: []cell{{before: "Validation: iteration ", print: whole, value: constant(1)}}, tail: "/2"},
			{class: logfile.Ignored, has: always, cells: []cell{{before: "Validation: iteration ", print: whole, value: constant(2)}}, tail: "/2"},
		},
	},
	// openrlhf/trainer/ppo_trainer.py (train_step, fit, evaluate) and utils/logging_utils.py of OpenRLHF/OpenRLHF @3c3be623.
	FormatOpenRLHF: {
		evalInterval: 20, ray: "PPOTrainer",
		step: []textLine{
			{class: logfile.Ignored, head: unclocked("INFO ", openRLHFStamp, " ppo_trainer.py:214] "), tail: "Sample: ['The loss of step 5 is: 2', 0.5]"},
			{head: unclocked("INFO ", openRLHFStamp, " ppo_trainer.py:547] "), cells: []cell{
				{before: "✨ Global step ", attr: spans.AttrIteration, print: whole, value: iteration},
				{
					before: ": {'policy_loss': ", attr: named("policy_loss"), print: logfile.AppendRepr,
					value: func(r *reading) float64 { return r.losses / 1000 },
				},
				{before: ", 'actor_lr': ", attr: named("actor_lr"), print: logfile.AppendRepr, value: learningRate},
				{
					before: ", 'actor_grad_norm': ", attr: named("actor_grad_norm"), print: logfile.AppendRepr,
					value: func(r *reading) float64 { return r.gradNorm },
				},
				{before: ", 'kl': ", attr: named("kl"), print: logfile.AppendRepr, value: func(r *reading) float64 { return r.lr * 10 }},
				{before: ", 'reward': ", attr: named("reward"), print: logfile.AppendRepr, value: func(r *reading) float64 { return 1 / (1 + r.losses) }},
				{
					before: ", 'response_length': ", attr: named("response_length"), print: logfile.AppendRepr,
					value: func(r *reading) float64 { return r.tokens() / batchSize(r) },
				},
				inSeconds(", 'timing/make_experience': ", 0.15), inSeconds(", 'timing/ppo_train': ", 0.5), inSeconds(", 'timing/broadcast': ", 0.02),
				inSeconds(", 'timing/generation': ", 0.33),
				{before: ", 'timing/step_total': ", attr: spans.AttrStepDuration, print: logfile.AppendRepr, value: seconds},
			}, tail: "}"},
		},
		eval: []textLine{{has: always, head: unclocked("INFO ", openRLHFStamp, " ppo_trainer.py:594] "), cells: []cell{
			{before: "✨ Evaluation completed in ", print: clock, value: func(r *reading) float64 { return r.evalSeconds }},
			{before: ", global_step ", attr: spans.AttrIteration, print: whole, value: iteration},
			{
				before: ", eval_metrics: {'eval_default_pass1': ", attr: named("eval_default_pass1"), print: logfile.AppendRepr,
				value: func(r *reading) float64 { return min(1, 1/r.validation) },
			},
		}, tail: "}"}},
	},
	// slime/observability/train_metric_utils.py (gather_log_data, log_perf_data), rollout_metrics.py (log_eval_rollout_data) and
	// slime/backends/megatron_utils/model.py (train) of THUDM/slime @624b824a, with one step per rollout. Rollouts count from 0.
	FormatSlime: {
		evalInterval: 20, ray: "MegatronTrainRayActor",
		step: []textLine{
			{class: logfile.Ignored, head: bracketed("] train_metric_utils.py:135 - "), cells: []cell{
				{before: "rollout ", print: whole, value: index},
				{before: ": {'rollout/raw_reward': ", print: logfile.AppendRepr, value: func(r *reading) float64 { return 1 / (1 + r.losses) }},
			}, tail: "}"},
			{head: bracketed("] model.py:918 - "), cells: []cell{
				{before: "step ", attr: spans.AttrIteration, print: whole, value: index},
				{before: ": {'train/loss': ", attr: spans.AttrLoss, print: logfile.AppendRepr, value: loss},
				{before: ", 'train/kl_loss': ", attr: named("train/kl_loss"), print: logfile.AppendRepr, value: func(r *reading) float64 { return r.lr * 10 }},
				{before: ", 'train/grad_norm': ", attr: spans.AttrGradientNorm, print: logfile.AppendRepr, value: func(r *reading) float64 { return r.gradNorm }},
				{before: ", 'train/lr-pg_0': ", attr: spans.AttrLearningRate, print: logfile.AppendRepr, value: learningRate},
				{before: ", 'train/global_batch_size': ", attr: spans.AttrBatchSize, print: whole, value: batchSize},
				{before: ", 'train/step': ", print: whole, value: index},
			}, tail: "}"},
			{class: logfile.Side, head: bracketed("] train_metric_utils.py:401 - "), cells: []cell{
				{before: "perf ", print: whole, value: index},
				inSeconds(": {'perf/update_weights_time': ", 0.05), inSeconds(", 'perf/data_preprocess_time': ", 0.01),
				inSeconds(", 'perf/train_wait_time': ", 0.55), inSeconds(", 'perf/log_probs_time': ", 0.05), inSeconds(", 'perf/actor_train_time': ", 0.35),
				inSeconds(", 'perf/train_time': ", 0.45),
				{before: ", 'perf/step_time': ", attr: spans.AttrStepDuration, print: logfile.AppendRepr, value: seconds},
				{before: ", 'perf/wait_time_ratio': ", attr: named("perf/wait_time_ratio"), print: logfile.AppendRepr, value: constant(0.55)},
			}, tail: "}"},
		},
		eval: []textLine{{has: always, head: bracketed("] rollout_metrics.py:247 - "), cells: []cell{
			{before: "eval ", attr: spans.AttrIteration, print: whole, value: index},
			{before: ": {'eval/aime': ", attr: named("eval/aime"), print: logfile.AppendRepr, value: func(r *reading) float64 { return min(1, 1/r.validation) }},
		}, tail: "}"}},
	},
	// scripts/base_train.py of karpathy/nanochat @00255c19. Steps count from 0; a step is evaluated before its training.
	FormatNanochat: {
		evalInterval: 250,
		step: []textLine{{cells: []cell{
			{before: "step ", attr: spans.AttrIteration, print: zeros, value: index},
			{before: "/", attr: spans.AttrIterations, print: zeros, value: horizon},
			{before: " (", print: fixed(2), value: func(r *reading) float64 { return 100 * index(r) / horizon(r) }},
			{before: "%) | loss: ", attr: spans.AttrLoss, print: fixed(6), value: loss},
			{before: " | lrm: ", attr: named("lrm"), print: fixed(2), value: func(r *reading) float64 { return r.lr / lrMax }},
			{before: " | dt: ", attr: spans.AttrStepDuration, scale: 1e-3, print: fixed(2), value: milliseconds},
			{
				before: "ms | tok/sec: ", attr: spans.AttrTokenThroughput, print: grouped(whole),
				value: func(r *reading) float64 { return math.Trunc(r.tokens() / r.seconds) },
			},
			{before: " | bf16_mfu: ", attr: spans.AttrMFUReported, scale: 0.01, print: fixed(2), value: mfuPercent},
			{before: " | epoch: ", attr: spans.AttrEpoch, print: whole, value: func(r *reading) float64 { return 1 + math.Floor(index(r)/stepsPerEpoch) }},
			{before: " pq: ", print: whole, value: none},
			{before: " rg: ", print: whole, value: func(r *reading) float64 { return 8 * index(r) }},
			{before: " | total time: ", print: fixed(2), value: func(r *reading) float64 { return r.elapsed / 60 }},
			{
				before: "m | eta: ", print: fixed(1), value: func(r *reading) float64 { return r.elapsed / float64(r.n) * float64(r.horizon-r.n) / 60 },
				has: func(r *reading) bool { return r.n > 11 },
			},
		}, tail: "m"}},
		eval: []textLine{{has: always, cells: []cell{
			{before: "Step ", attr: spans.AttrIteration, print: zeros, value: iteration},
			{
				before: " | Validation bpb: ", attr: named("Validation bpb"), print: fixed(6),
				value: func(r *reading) float64 { return r.validation / math.Ln2 / 4.8 },
			},
		}}},
	},
	// nemo_rl/algorithms/sft.py (sft_train) of NVIDIA-NeMo/RL @7ea279ab. Steps count within the epoch.
	FormatNeMoRL: {
		step: []textLine{
			{class: logfile.Ignored, cells: []cell{
				{before: "========================= Step ", print: whole, value: iteration}, {before: "/", print: whole, value: horizon},
			}, tail: " ========================="},
			{class: logfile.Ignored, tail: "▶ Taking a training step..."},
			{class: logfile.Ignored, tail: "📊 Training Results:"},
			{cells: []cell{{before: "  • Loss: ", attr: spans.AttrLoss, print: fixed(4), value: loss}}},
			{class: logfile.Ignored, tail: "⏱️  Timing:"},
			{class: logfile.Side, has: always, cells: []cell{{before: "  • Total step time: ", attr: spans.AttrStepDuration, print: fixed(2), value: seconds}}, tail: "s"},
		},
	},
	// src/maxtext/common/metric_logger.py (_log_training_metrics, _log_eval_metrics) of AI-Hypercomputer/maxtext @0a8aa8f3, through absl's logging.
	FormatMaxText: {
		evalInterval: 100,
		step: []textLine{{head: unclocked("I", abslStamp, " 125344476638336 metric_logger.py:181] "), cells: []cell{
			{before: "completed step: ", attr: spans.AttrIteration, print: whole, value: index},
			{before: ", seconds: ", attr: spans.AttrStepDuration, print: fixed(3), value: seconds},
			{before: ", TFLOP/s/device: ", attr: spans.AttrDeviceFlopThroughputReported, scale: 1e12, print: fixed(3), value: deviceTeraFlops},
			{before: ", Tokens/s/device: ", attr: spans.AttrDeviceTokenThroughput, print: fixed(3), value: deviceTokensPerSecond},
			{before: ", total_weights: ", attr: named("total_weights"), print: whole, value: func(r *reading) float64 { return r.tokens() }},
			{before: ", loss: ", attr: spans.AttrLoss, print: fixed(3), value: loss},
		}}},
		eval: []textLine{{has: always, head: unclocked("I", abslStamp, " 125344476638336 metric_logger.py:213] "), cells: []cell{
			{before: "eval metrics after step: ", attr: spans.AttrIteration, print: whole, value: index},
			{before: ", loss=", attr: spans.AttrValidationLoss, print: fixed(3), value: validation},
			{before: ", total_weights=", attr: named("total_weights"), print: whole, value: func(r *reading) float64 { return r.tokens() }},
		}}},
	},
}

var (
	microTimers = []cell{
		part(" | fwd_microstep: ", 0.31), part(" | bwd_microstep: ", 0.62), part(" | bwd_inner_microstep: ", 0.6), part(" | bwd_allreduce_microstep: ", 0.02),
		part(" | step_microstep: ", 0.04),
	}
	globalTimers = []cell{part(" | fwd: ", 0.31), part(" | bwd: ", 0.62), part(" | bwd_inner: ", 0.6), part(" | bwd_allreduce: ", 0.02), part(" | step: ", 0.04)}
)

const (
	openRLHFStamp = "01-02 15:04:05"
	abslStamp     = "0102 15:04:05.000000"
	deviceMemory  = 80 * gib
)

// part is a timer in ms, as a share of the step.
func part(before string, share float64) cell {
	return cell{before: before, stage: true, scale: 1e-3, print: fixed(2), value: func(r *reading) float64 { return milliseconds(r) * share }}
}

// inSeconds is a part of a dict, in seconds.
func inSeconds(before string, share float64) cell {
	return cell{before: before, stage: true, print: logfile.AppendRepr, value: func(r *reading) float64 { return r.seconds * share }}
}

func constant(v float64) func(*reading) float64 { return func(*reading) float64 { return v } }

// timed: before the first record, timers are values of no known step.
func timed(r *reading) bool               { return r.timers && (r.due || !r.recorded) }
func timedBetween(r *reading) bool        { return r.timers && !r.due && r.recorded }
func always(*reading) bool                { return true }
func validated(r *reading) bool           { return !math.IsNaN(r.validation) }
func none(*reading) float64               { return 0 }
func iteration(r *reading) float64        { return float64(r.n) }
func index(r *reading) float64            { return float64(r.n - 1) }
func horizon(r *reading) float64          { return float64(r.horizon) }
func loss(r *reading) float64             { return r.losses }
func validation(r *reading) float64       { return r.validation }
func learningRate(r *reading) float64     { return r.lr }
func batchSize(r *reading) float64        { return float64(r.sim.model.GlobalBatchSize) }
func seconds(r *reading) float64          { return r.seconds }
func milliseconds(r *reading) float64     { return r.seconds * 1e3 }
func samplesPerSecond(r *reading) float64 { return batchSize(r) / r.seconds }
func meanSamplesPerSecond(r *reading) float64 {
	return batchSize(r) * float64(r.n) / r.elapsed
}
func deviceTokensPerSecond(r *reading) float64 { return r.tokens() / (r.seconds * r.devices()) }
func evalTokensPerSecond(r *reading) float64 {
	return r.sim.evalSteps() * r.tokens() / (r.evalSeconds * r.devices())
}
func deviceTeraFlops(r *reading) float64 { return r.deviceFlops() / 1e12 }
func mfuPercent(r *reading) float64      { return 100 * r.deviceFlops() / devicePeak }
func roundedMemory(r *reading) float64   { return round(r.memory/gib, 2) }
func roundedPeak(r *reading) float64     { return round(r.peak/gib, 2) }
func peakGiB(r *reading) float64         { return r.peak / gib }
func peakPercent(r *reading) float64     { return 100 * r.peak / deviceMemory }

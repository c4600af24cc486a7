package object

import (
	"strings"

	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// action says what Parser does with the value of a name.
type action uint8

const (
	keep         action = iota // an unknown field
	set                        // a record.Field
	inverse                    // a record.Field that is 1/value: steps per second
	ratio                      // a record.Field printed as 0..1 or as a percentage
	rank                       // the logging rank
	stamp                      // a time of day; of the name time possibly a duration
	gpus                       // GPU utilization, one number or a list
	unwrap                     // an object whose members stand for themselves
	slashed                    // of verl, or of a logger with similar groups
	evalTime                   // seconds of an evaluation
	totalTime                  // seconds of the whole training in the last row, or since its beginning (judge)
	runTime                    // running time of the job
	traceID                    // an id of the record's trace
	part                       // a part of the step's time
	ofGPU                      // a value of one GPU in a sample
	eitherTokens               // of the step, or since the run began
	perGPU                     // values of GPUs, one number or a list
	host                       // where the rank runs
)

// flags say what a name proves of its record: entries have them, and Parser collects those of a record to find the record's kind (judge).
type flags uint16

const (
	training     flags = 1 << iota // a number of training steps alone
	measured                       // a number of training, but possible elsewhere too
	evaluation                     // a result on held-out data
	stepped                        // the number of the step
	wrapped                        // members of "data"
	message                        // the record of a logger
	numbers                        // an unknown number, or one that may be a setting
	running                        // the loss of steps; a run's summary has train_loss
	llamaFactory                   // the progress as LLaMA-Factory names it
	epochal                        // the mean over an epoch
	momentary                      // a loss of no epoch and no evaluation
	wholeEpoch                     // the number of the epoch has no fraction
	unseen                         // the row is about held-out data
	iter                           // the iteration by mmengine's name beside the step
	swift                          // the speed as ms-swift names it
)

// Target is the meaning of a log's name: where a value goes, and in which unit the log has the value. The zero Target keeps a value as an unknown field.
type Target struct {
	action action
	flags  flags
	Field  record.Field
	Unit   record.Unit
	Mean   bool             // a duration that is a mean
	ID     logids.Field     // of the action traceID: which of the ids
	GPU    record.GPUMetric // of Device, or of the GPUs of a list
	Device uint16
	Listed bool // a list has a value of each GPU; one number is as in action

	// Of names mapped in the configuration. Scale 0: not mapped.
	Scale        float64
	Metric, UCUM string // the name and unit of a gauge of the user's; Metric empty: Field
}

// field returns the target of a value that is a known field in a unit. The flags say how sure the field is a training's: times and losses are, settings and
// numbers of the step's place are not, and the state of a device may be any program's.
func field(f record.Field, u record.Unit) Target {
	t := Target{action: set, Field: f, Unit: u, flags: training}
	switch f {
	case record.Iteration:
		t.flags = stepped
	case record.Iterations, record.Epoch, record.WorldSize, record.LocalRank, record.ConsumedSamples, record.ConsumedTokens:
		t.flags = 0
	case record.ValidationLoss, record.Perplexity:
		t.flags = evaluation
	case record.LearningRate, record.BatchSize:
		t.flags = numbers // an unknown number may be a setting, too: settings are printed as objects before the first step
	case record.MFU, record.DeviceTokenThroughput, record.FlopThroughput, record.DeviceFlopThroughput, record.MemoryUsage, record.MemoryPeak,
		record.MemoryReserved,
		record.MemoryReservedPeak, record.MemoryUtilization, record.DeviceEnergy, record.DevicePower:
		t.flags = measured
	}
	return t
}

// Mapped returns the target of a name that the configuration maps to a Field.
func Mapped(f record.Field, scale float64) Target {
	t := field(f, record.Base)
	t.Scale = scale
	return t
}

// MappedGPU returns the target of a name that the configuration maps to the GPU utilization.
func MappedGPU(scale float64) Target { return Target{action: gpus, flags: measured, Scale: scale} }

// Gauge returns the target of a name that the configuration maps to a separate metric.
func Gauge(metric, unit string, scale float64) Target {
	return Target{flags: measured, Scale: scale, Metric: metric, UCUM: unit}
}

// TraceID returns the target of the configured name of the trace id.
func TraceID() Target { return Target{action: traceID, ID: logids.Trace} }

// aliases are the known names, in normal form.
var aliases = makeAliases()

// makeAliases lists the names of trainers for values, each with its target. An entry that is added later replaces the earlier.
func makeAliases() map[string]Target {
	out := map[string]Target{
		"global_step/max_steps": field(record.Iteration, record.Base), // ms-swift
		"epoch":                 field(record.Epoch, record.Base),
		"mfu_percent":           field(record.MFU, record.Percent),
		"mfu_pct":               field(record.MFU, record.Percent),
		"mfu(%)":                field(record.MFU, record.Percent),
		// ms-swift's speed is the mean since the start of training (swift/trainers/patcher.py).
		"train_speed(s/it)":    {action: set, Field: record.Duration, Mean: true, flags: training | swift},
		"train_speed(iter/s)":  {action: inverse, Field: record.Duration, Mean: true, flags: training | swift},
		"memory(gib)":          field(record.MemoryReservedPeak, record.Gibibytes), // ms-swift: max_memory_reserved
		"data":                 {action: unwrap},
		"eval_runtime":         {action: evalTime, flags: evaluation},
		"train_runtime":        {action: totalTime, flags: training},
		"valid_loss":           field(record.ValidationLoss, record.Base),
		"max_memory_allocated": field(record.MemoryPeak, record.Base), // as returned by torch.cuda
		"max_memory_reserved":  field(record.MemoryReservedPeak, record.Base),
		// Of the summary of a run.
		"train_steps_per_second": {},

		// LLaMA-Factory's trainer_log.jsonl (train/callbacks.py, LogCallback). The throughput is tokens, the memory a peak.
		"current_steps":  {action: set, Field: record.Iteration, flags: stepped | llamaFactory},
		"elapsed_time":   {action: runTime},
		"vram_allocated": field(record.MemoryPeak, record.Gibibytes),
		"vram_reserved":  field(record.MemoryReservedPeak, record.Gibibytes),

		// Axolotl (core/trainers/base.py, log), today's names and older ones.
		"tokens/train_per_sec_per_gpu":    field(record.DeviceTokenThroughput, record.Base),
		"tokens/total":                    field(record.ConsumedTokens, record.Base),
		"memory/max_allocated_(gib)":      field(record.MemoryPeak, record.Gibibytes),
		"memory/max_mem_allocated(gib)":   field(record.MemoryPeak, record.Gibibytes),
		"memory/device_reserved_(gib)":    field(record.MemoryReserved, record.Gibibytes),
		"memory/device_mem_reserved(gib)": field(record.MemoryReserved, record.Gibibytes),
		"memory/max_active_(gib)":         {flags: measured},
		"memory/max_mem_active(gib)":      {flags: measured},

		// torchtitan (components/metrics.py, MetricsProcessor.log) in TensorBoard and W&B. The first step's time is wrong, so the stamps give the time.
		"loss_metrics/global_avg_loss": field(record.Loss, record.Base),
		"throughput(tps)":              field(record.DeviceTokenThroughput, record.Base),
		"memory/max_reserved(gib)":     field(record.MemoryReservedPeak, record.Gibibytes),
		"memory/max_active(gib)":       {flags: measured},

		// Megatron (training/training.py, training_log and evaluate_and_print_results) in TensorBoard and W&B.
		"lm_loss_validation":      field(record.ValidationLoss, record.Base),
		"lm_loss_validation_ppl":  field(record.Perplexity, record.Base),
		"mem_max_allocated_bytes": field(record.MemoryPeak, record.Base),

		// Keras (src/callbacks/tensorboard.py).
		"batch_loss": field(record.Loss, record.Base),
		// Lightning's LearningRateMonitor, by the optimizer's class.
		"lr_sgd":   field(record.LearningRate, record.Base),
		"lr_adam":  field(record.LearningRate, record.Base),
		"lr_adamw": field(record.LearningRate, record.Base),
	}
	add := func(t Target, names ...string) {
		for _, n := range names {
			out[n] = t
		}
	}
	all := func(f record.Field, names ...string) { add(field(f, record.Base), names...) }
	all(record.Loss, "loss", "training_loss", "lm_loss", "total_loss", "reduced_train_loss", "loss_step", "train_loss_step", "gpt_loss", "loss/train/total")
	all(record.Loss, "train_loss", "main/loss") // Chainer's PrintReport
	loss := out["loss"]
	loss.flags |= running
	add(loss, "loss")
	all(record.LearningRate, "lr", "learning_rate", "learningrate")
	all(record.GradientNorm, "grad_norm", "gradient_norm", "gradnorm", "global_grad_norm", "total_norm", "gnorm")
	all(record.ParamsNorm, "params_norm", "param_norm")
	all(record.LossScale, "loss_scale")
	all(record.GradientZeros, "num_zeros")
	all(
		record.Iteration, "step", "global_step", "iteration", "iter", "global_steps", "_step", "training_step", "train_step", "trainer/global_step", "iter_num",
		"training/global_step", "num_updates", "micro_step", "microstep",
	)
	byIter := out["iter"]
	byIter.flags |= iter
	add(byIter, "iter")
	all(record.Iterations, "max_steps", "total_steps", "num_steps", "max_iterations", "train_iters", "total_iterations")
	all(record.SampleThroughput, "throughput", "samples_per_sec", "samples_per_second", "samples/s", "samples/sec", "sample_throughput",
		"train_samples_per_second",
		"samplespersec", "currsamplespersec", "examples_per_second", "examples_per_sec", "examples/s")
	all(
		record.TokenThroughput, "tokens_per_sec", "tokens_per_second", "tokens/s", "tokens/sec", "tok/s", "tok/sec", "tok_per_sec", "token_throughput",
		"train_tokens_per_second", "wps",
	)
	all(record.DeviceTokenThroughput, "tgs", "tokens_per_gpu_per_sec", "tokens_per_gpu_per_second", "tokens_per_sec_per_gpu", "tokens_per_second_per_gpu",
		"tokens/s/gpu", "tokens/sec/gpu",
		"tokens_per_device_per_second", "tokens_per_second_per_device")
	add(
		field(record.DeviceFlopThroughput, record.TeraFlopPerSecond), "tflops", "tflops_per_gpu", "tflops/gpu", "tflops_per_device", "device_tflops",
		"throughput_tflops", "tflop/s/gpu", "achieved_tflops",
	)
	add(field(record.FlopThroughput, record.TeraFlopPerSecond), "total_tflops", "tflops_total")
	mfu := field(record.MFU, record.Base)
	mfu.action = ratio
	add(mfu, "mfu", "model_flops_utilization", "flops_utilization")
	all(record.ConsumedSamples, "consumed_samples", "consumed_train_samples")
	all(record.ConsumedTokens, "consumed_tokens", "num_input_tokens_seen", "tokens_seen", "total_tokens", "num_tokens")
	add(Target{action: eitherTokens, flags: numbers}, "tokens")
	all(record.Tokens, "step_tokens", "tokens_per_step", "batch_tokens", "num_tokens_in_batch")
	all(record.WorldSize, "world_size", "num_gpus", "num_devices", "n_gpus")
	all(record.LocalRank, "local_rank")
	all(record.BatchSize, "batch_size", "global_batch_size", "train_batch_size", "bsz", "gbs")
	all(record.DevicePower, "power_w", "gpu_power_w", "power_watts", "gpu_power")
	add(Target{action: rank}, "rank", "global_rank", "process_index", "dl.rank")
	add(Target{action: stamp}, "timestamp", "time", "ts", "_timestamp", "@timestamp", "datetime", "wall_time", "date")
	add(Target{action: gpus, flags: measured}, "gpu_util", "gpu_utilization", "gpu_utils", "utilization.gpu", "gpu_util_percent", "gpu_util_pct", "gpu_util(%)")
	add(Target{action: host}, "hostname", "host", "host_name", "node_name", "nodename", "host.name")
	add(Target{action: perGPU, GPU: record.GPUTemperature, Listed: true},
		"gpu_temp", "gpu_temps", "gpu_temperature", "gpu_temperatures", "gpu_temp_c", "temperature.gpu")
	add(Target{flags: message}, "msg", "message", "level", "levelname", "severity", "lvl")
	all(record.ValidationLoss, "eval_loss", "val_loss", "validation_loss", "val_loss_epoch", "valid_loss_epoch", "validation_loss_epoch", "eval_main/loss",
		"eval_gpt_loss")
	all(record.Perplexity, "eval_ppl", "val_ppl", "eval_perplexity", "val_perplexity", "validation_ppl", "validation_perplexity")

	for _, name := range logids.Names {
		out[name] = Target{action: traceID, ID: logids.Named(name)}
	}

	second := field(record.Duration, record.Base)
	milli := field(record.Duration, record.Milliseconds)
	for _, base := range []string{
		"step_time", "iteration_time", "iter_time", "time_per_step", "time_per_iteration", "time_per_iter", "step_duration", "iteration_duration", "train_step_time",
		"elapsed_time_per_iteration", "train_step_timing", "time_step", "t_step", "t_iter",
	} {
		add(second, base, base+"_s", base+"_sec", base+"_seconds", base+"(s)", base+"_(s)", base+"_in_s")
		add(milli, base+"_ms", base+"(ms)", base+"_(ms)", base+"_in_ms")
	}
	add(second, "dt_s") // ambiguous without a unit
	add(milli, "dt_ms")
	add(second, "sec_per_step", "seconds_per_step", "s/it", "sec/it", "s/iter", "sec_per_iter", "seconds_per_iteration")
	add(
		Target{action: inverse, Field: record.Duration, Mean: true, flags: training}, "steps_per_second", "steps_per_sec", "it/s", "iter/s",
		"iterations_per_second", "ups", "steps/sec", "it/sec", "iter/sec",
	)
	add(second, "s/step", "sec/step", "s/batch", "sec/batch")
	add(milli, "ms/batch", "ms/step", "ms/iter", "ms/it")

	addParts(out)
	out["power.draw"] = out["power_w"] // nvidia-smi --query-gpu
	for _, name := range []string{"power_w", "gpu_power_w", "power_watts", "gpu_power", "power.draw"} {
		t := out[name]
		t.GPU, t.Listed = record.GPUPower, true
		out[name] = t
	}

	// MaxText (metric_logger.py) and PaddleNLP (trainer/trainer.py), with speeds that are means since the line before.
	all(record.Iteration, "completed_step", "metrics_after_step")
	all(record.DeviceTokenThroughput, "tokens/s/device")
	add(field(record.DeviceFlopThroughput, record.TeraFlopPerSecond), "tflop/s/device")
	all(record.SampleThroughput, "interval_samples_per_second")
	add(out["steps_per_second"], "interval_steps_per_second")

	for f, bases := range map[record.Field]string{
		record.MemoryUsage: "memory mem gpu_memory gpu_mem memory_allocated mem_allocated gpu_memory_allocated memory_used gpu_memory_used " +
			"gpu_mem_used memory_usage gpu_memory_usage allocated vram",
		record.MemoryPeak: "max_memory max_mem peak_memory peak_mem max_memory_allocated peak_memory_allocated max_mem_allocated memory_peak mem_peak " +
			"peak_gpu_memory max_gpu_memory max_allocated",
		record.MemoryReserved:     "memory_reserved mem_reserved gpu_memory_reserved reserved",
		record.MemoryReservedPeak: "max_memory_reserved peak_memory_reserved max_reserved",
	} {
		for base := range strings.FieldsSeq(bases) {
			add(field(f, record.Gibibytes), base+"_gb", base+"_gib", base+"(gb)")
			add(field(f, record.Mebibytes), base+"_mb", base+"_mib", base+"(mb)", base+"(mib)")
			add(field(f, record.Base), base+"_bytes")
		}
	}
	// A number is the process's own GPU memory. A list is a sampler's view of the GPUs of its host, as of nvidia-smi.
	for name, t := range out {
		if t.Field == record.MemoryUsage && strings.HasPrefix(name, "gpu_mem") && strings.Contains(name, "used") {
			t.GPU, t.Listed = record.GPUMemoryUsage, true
			out[name] = t
		}
	}
	return out
}

// addParts adds the names of training scripts for the timers of parts of a step: data_time is of pytorch/examples (imagenet/main.py), timm and mmcv,
// data_loading(s) of torchtitan (components/metrics.py), the others of scripts derived from them.
func addParts(out map[string]Target) {
	seconds := []string{"_s", "_sec", "_secs", "_seconds", "(s)", "_(s)"}
	add := func(base string, suffixes []string) {
		second, milli := Target{action: part, flags: measured}, Target{action: part, flags: measured, Unit: record.Milliseconds}
		for _, suffix := range suffixes { // time_metrics is torchtitan's group
			out[base+suffix], out["time_metrics/"+base+suffix] = second, second
		}
		for _, suffix := range []string{"_ms", "(ms)", "_(ms)"} {
			out[base+suffix] = milli
		}
	}
	for base := range strings.FieldsSeq(`data_time data_loading_time data_load_time dataload_time data_wait_time dataloader_time data_fetch_time
		batch_fetch_time fetch_time forward_time fwd_time backward_time bwd_time forward_backward_time fwd_bwd_time optimizer_time optim_time
		optimizer_step_time compute_time
		comm_time communication_time allreduce_time all_reduce_time sync_time grad_sync_time barrier_time
		checkpoint_time ckpt_time save_checkpoint_time save_time eval_time evaluation_time validation_time
		t_data t_fetch t_forward t_fwd t_backward t_bwd t_optim t_optimizer t_compute t_comm t_allreduce t_sync t_ckpt t_eval`) {
		add(base, append(seconds, ""))
	}
	for base := range strings.FieldsSeq(`data data_loading data_load data_wait dataloader data_fetch forward fwd backward bwd forward_backward fwd_bwd optimizer
		optimizer_step compute
		comm communication allreduce all_reduce sync grad_sync gradient_sync barrier
		checkpoint ckpt save_checkpoint`) { // without a unit a share, a size or a name, perhaps
		add(base, seconds)
	}
}

var underlined = strings.NewReplacer(" ", "_", "-", "_")

// normal writes a name in the form of aliases.
func normal(name string) string { return underlined.Replace(strings.ToLower(strings.TrimSpace(name))) }

var (
	// Groups of nested objects end in a dot; names with a slash may be verl's.
	trainPrefixes = []string{
		"train/", "train.", "train_", "training/", "training.", "metrics.", "metrics/",
		"perf.", "performance.", "timing.", "timings.", "time.", "times.", "speed.", "stats.", "optim.", "optimizer.",
	}
	evalPrefixes = []string{
		"eval/", "eval.", "eval_", "val/", "val.", "val_", "validation/", "validation.", "validation_", "test/", "test_", "val_core/", "val_aux/",
	}
)

// lookUp finds a name in the configuration: as written there, or else without regard to case, of several names the first in byte order.
func lookUp(name string, mapped map[string]Target) (Target, bool) {
	if t, ok := mapped[name]; ok {
		return t, true
	}
	first := ""
	for key := range mapped {
		if strings.EqualFold(key, name) && (first == "" || key < first) {
			first = key
		}
	}
	t, ok := mapped[first]
	return t, ok
}

// resolve finds the meaning of a name: of the configuration, of W&B's samples of GPUs, of aliases, or of aliases without a prefix ("train/loss",
// "eval/loss"). Behind the prefix of an evaluation, "loss" is "eval_loss", and an unknown name is an evaluation's; a name with a slash is read as
// verl's groups are.
func resolve(name string, mapped map[string]Target) Target {
	if t, ok := lookUp(name, mapped); ok {
		return t
	}
	if t, ok := sampled(name); ok {
		return t
	}
	n := normal(name)
	if t, ok := aliases[n]; ok {
		return t
	}
	for _, p := range trainPrefixes {
		if rest, ok := strings.CutPrefix(n, p); ok {
			if t, ok := aliases[rest]; ok && t.action != unwrap { // "data" unwraps by its bare name only
				return t
			}
		}
	}
	for _, p := range evalPrefixes {
		if rest, ok := strings.CutPrefix(n, p); ok {
			if t, ok := aliases["eval_"+rest]; ok {
				return t
			}
			t := Target{flags: evaluation}
			if strings.Contains(name, "/") {
				t.action = slashed
			}
			return t
		}
	}
	if strings.Contains(name, "/") {
		return Target{action: slashed}
	}
	return Target{}
}

package trainers

// The sources of the flags: Megatron-LM d98e8a64 megatron/training/arguments.py:3319 and config/training_config.py:267, 516; transformers v4.57.1
// training_args.py:991, 1161, 1170; verl b178a3cd verl/trainer/config/data/legacy_data.yaml:68 and ppo_trainer.yaml:159; torchtitan b5bcd76c
// torchtitan/components/checkpointer/dcp.py:137; NeMo 8cfedd72 nemo/lightning/pytorch/strategies/megatron_strategy.py:284, 350; DeepSpeed edaa7221
// deepspeed/runtime/constants.py:382.

// Timers is the way to make a trainer log the parts of its step, in English and in Chinese; for a source without a switch, the way for any training loop.
func Timers(source string) (english, chinese string) {
	switch source {
	case "megatron", "perf_monitor":
		return "set --timing-log-level 2 in Megatron", "请在 Megatron 中设置 --timing-log-level 2"
	case "nemo":
		return "set megatron_log_level=2 of NeMo's MegatronStrategy", "请在 NeMo 的 MegatronStrategy 中设置 megatron_log_level=2"
	case "deepspeed":
		return `set "wall_clock_breakdown": true in DeepSpeed's configuration`, `请在 DeepSpeed 配置中设置 "wall_clock_breakdown": true`
	}
	return "have the training loop log the time of loading data, such as data_time in JSON lines", "请让训练循环记录加载数据的耗时，例如在 JSON 行中写 data_time"
}

// Flags are a trainer's names of the settings in an advice; "": unknown.
type Flags struct {
	Loading    string // number of workers that load data
	Checkpoint string // asynchronous saving, or its frequency
}

// FlagsOf are the Flags of a source, the name of the log format with the steps ("megatron", "hf"). Empty flags: the trainer's names are not known.
func FlagsOf(source string) Flags {
	switch source {
	case "megatron", "perf_monitor":
		return Flags{"--num-workers", "--async-save"}
	case "hf", "trainer_state":
		return Flags{"dataloader_num_workers, dataloader_prefetch_factor", "save_steps"}
	case "verl":
		return Flags{"data.dataloader_num_workers", "trainer.save_freq"}
	case "torchtitan":
		return Flags{Checkpoint: "checkpoint.async_mode"}
	}
	return Flags{}
}

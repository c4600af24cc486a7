// Package megatron reads the training output of Megatron-LM and its descendants (FlagScale, Primus, Megatron-DeepSpeed): training_log() of
// megatron/training/training.py, the timers of megatron/core/timers.py, report_memory() of megatron/training/utils.py and the argument dump of
// megatron/training/arguments.py.
package megatron

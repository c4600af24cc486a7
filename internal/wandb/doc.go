// Package wandb reads the files of runs (run-ID.wandb) of the SDK of Weights & Biases, growing ones and finished ones: of offline runs (WANDB_MODE=offline, in
// wandb/offline-run-*), and of runs with a server, for whose recovery the SDK keeps the same file.
//
// # Format
//
// wandb/wandb, commit b6e29505884ea60c79ca12091f1f75bd39d2f955: core/pkg/leveldb/record.go and core/internal/transactionlog write and read the file,
// before them wandb/sdk/internal/datastore.py (gone in 0.30). A header of 7 bytes (":W&B", 0xBEE1 little-endian, version 0) begins a log of LevelDB: blocks of
// 32 KiB, the first with the header in, and in the blocks fragments: CRC-32 (IEEE, not LevelDB's masked Castagnoli) of type and data, length of the data
// (uint16, little-endian), type, data. Each record is a message wandb_internal.Record of wandb/proto/wandb_internal.proto.
//
// # Meaning of the numbers
//
// The step of a history row numbers the calls of wandb.log unless the caller gave a step: the trainers' own step is an item. transformers 5.24.0,
// src/transformers/integrations/integration_utils.py, has "train/global_step", the number of steps done; Lightning 2.6.6,
// src/lightning/pytorch/loggers/wandb.py, "trainer/global_step", the index of the last step, from 0. A row with the results of an evaluation repeats the
// number of the training row before.
//
// 0.19 and 0.31 write items in random order, and flatten nested values; 0.16 writes a nested value as an object. The typed forms of values (0.31,
// x_history_value_encoding) stand beside the JSON, without which 0.31 refuses to write.
//
// Metrics of the system come every 15 s (x_stats_sampling_interval) from core/internal/monitor and xpu/src: "cpu" in %, "memory_percent" ("memory" in 0.16),
// "proc.memory.rssMB", "network.sent" and "network.recv" in bytes, "disk./.usageGB"; of GPU N "gpu.N.gpu" and "gpu.N.memory" in %,
// "gpu.N.memoryAllocatedBytes", "gpu.N.temp" in °C, "gpu.N.powerWatts", "gpu.N.smClock" in MHz (xpu/src/gpu_nvidia.rs), and "gpu.process.N.…" where
// the run's own process uses the GPU.
//
// # Delay
//
// 0.31 writes every 15 s (x_transaction_log_flush_interval) and when a block is full, 0.19 and 0.28 only when a block is full, 0.16 about every 4 KiB.
// Records that a killed job had not written are lost, and the file has no exit. With 0.31 the last records come after wandb.finish has returned.
package wandb

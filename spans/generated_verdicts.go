// Code generated from spans/registry by tools/semconv. DO NOT EDIT.

package spans

// verdicts are the verdicts of the registry by name and cause.
var verdicts = map[[2]string]Verdict{
	{"step_slow", ""}: {
		"step_slow", "warning", "s",
		"a step, a batch (or a function of TransferQueue) or an RPC pass, as `ml.step.window` says, took 10 % longer than the median of comparable ones (same steps covered, same batch), and six robust standard deviations (1.4826 MAD): of finished logs of the 64 before and after it in its regime, live of the 64 before it; a checkpoint and an evaluation are each held against 32 of their kind, where there are five others. Names the parts that took more than usual, and a rank where it alone is most of it; where no log explains most of it, which log would",
		"Look at what the sentence names first. Where it names nothing, write the log that it asks for.",
	},
	{"nccl_hang", ""}: {
		"nccl_hang", "bad", "s",
		"`nccl.hang`: it did not complete within the receiver's `hang_timeout`. Names the ranks that miss and those that are stuck",
		"Look at what is missing first (crashed, in other code, waiting for data): the others wait for it. Where none is missing, look at the network between the ranks, and at whether all run the same call.",
	},
	{"nccl_rank_missing", ""}: {
		"nccl_rank_missing", "bad", "{rank}",
		"ranks that took part before have no record, and did not go on: `trainbridge.incomplete.reason` is `hang_timeout`, `rank_gone`, `end` or `evicted`. Not beside `nccl_hang`",
		"See whether the rank still runs, and still writes its log.",
	},
	{"nccl_rank_missing", "sequence_gap"}: {
		"nccl_rank_missing", "warning", "{rank}",
		"the ranks that miss have gone on (`gap`): records are missing",
		"Look for lost records: full disks, dropped lines.",
	},
	{"nccl_straggler", ""}: {
		"nccl_straggler", "bad", "s",
		"`nccl.straggler.rank`: one rank is late again and again, by the receiver's window. Where that begins, where that rank was late and where it is over. Says how late, its score, and what it cost the others",
		"Check the clocks and temperature of its GPU, its host, and whether it has more work than the others.",
	},
	{"nccl_late", ""}: {
		"nccl_late", "warning", "s",
		"the last rank came more than 1 ms after the first, and more than the transfer took; where that is not known, nothing is said: clocks of two hosts may be seconds apart",
		"See what it did before: data loading, a checkpoint, more work than the others.",
	},
	{"nccl_bandwidth_low", ""}: {
		"nccl_bandwidth_low", "warning", "By/s",
		"the third in a row, or a later one, that is 20 % and the receiver's `anomaly_threshold` (`nccl.bandwidth.deviation`) below the baseline; where bandwidths vary more, a longer row. Not where a rank has no record: its lateness would count as transfer",
		"Look for a slow link or NIC, and for other traffic on the network.",
	},
	{"nccl_errors", ""}: {
		"nccl_errors", "bad", "{error}",
		"`nccl.errors` above 0",
		"Check the links, NICs and switch ports of its ranks.",
	},
	{"nccl_errors", "retries"}: {
		"nccl_errors", "warning", "{retry}",
		"`nccl.retries` above 0",
		"Check the links, NICs and switch ports of its ranks for errors.",
	},
	{"nccl_mismatch", ""}: {
		"nccl_mismatch", "bad", "",
		"`nccl.mismatch`: the ranks disagree about the message size, or (Flight Recorder) about the operation",
		"The ranks do not run the same call, which corrupts data or hangs: compare their spans, and the code or data that they branch on.",
	},
	{"nccl_link", ""}: {
		"nccl_link", "warning", "",
		"links differ from the others, over the run so far",
		"By the cause.",
	},
	{"nccl_link", "slow"}: {
		"nccl_link", "warning", "",
		"`nccl.link.slow` names links, of the run so far",
		"Check the cable, NIC and switch port.",
	},
	{"nccl_link", "hot"}: {
		"nccl_link", "warning", "",
		"`nccl.link.hot` names links, of the run so far",
		"Check how ranks are placed on hosts, and which rings or trees NCCL made of them.",
	},
	{"nccl_bandwidth_unit", ""}: {
		"nccl_bandwidth_unit", "warning", "1",
		"`nccl.bandwidth.disagreement`: the logged bandwidth is more than 5 % off what size and duration give",
		"See whether its unit is GB/s or Gbit/s, and whether its size is of one rank or of all. Use the recomputed one.",
	},
	{"zeromq_serialize_high", ""}: {
		"zeromq_serialize_high", "warning", "1",
		"serialize > 30 %; on one in 100 where it is true of nearly all",
		"Use shared memory instead of msgpack, or a leaner encoding (protobuf), or send fewer bytes (bfloat16).",
	},
	{"zeromq_transport_high", ""}: {
		"zeromq_transport_high", "warning", "1",
		"transport > 30 %, and either over TCP, or moving the bytes at 1 GiB/s alone takes > 30 %. Waiting is no proof: receive has the server's queue and compute in it. All public logs (IPC, up to 162 MiB/s) wait 80 to 99 % and get none",
		"Use IPC where client and server share a host, else check the network; use shared memory for tensors, or send fewer bytes (bfloat16).",
	},
	{"zeromq_calls_high", ""}: {
		"zeromq_calls_high", "warning", "{call}",
		"more than 50 calls; on the first, then on one in 100",
		"Fuse operators so that fewer calls are needed, batch several operations into one call, cache results that are computed again.",
	},
	{"zeromq_transport_tcp", ""}: {
		"zeromq_transport_tcp", "warning", "",
		"TCP, where IPC is expected; it has no value and threshold; on the first, then on one in 100",
		"If client and server share a host, set the address of both to ipc:///… in place of tcp://….",
	},
	{"tq_overhead", ""}: {
		"tq_overhead", "bad", "1",
		"bad: get + put > 30 %; a warning: 20 % ≤ get + put ≤ 30 %; of either, on one in 100 where it is true of nearly all",
		"Check the storage backend's configuration (Redis or distributed storage), tune the batch size so that fewer transfers are needed, consider compressing the data. Watch what is a warning, and do so when it grows.",
	},
	{"tq_fluctuating", ""}: {
		"tq_fluctuating", "warning", "1",
		"coefficient of variation of the last 100 of a stage (`tq.stage` is `get` or `put`) > 0.5; said at once, then at most once per window",
		"The network or the storage is not stable: see what else uses them at those times.",
	},
	{"tq_throughput_low", ""}: {
		"tq_throughput_low", "bad", "By/s",
		"< 100 MiB/s; on one in 100 where it is true of nearly all",
		"Check the network bandwidth, the IOPS of the storage, and how the data is serialised.",
	},
	{"train_throughput_low", ""}: {
		"train_throughput_low", "warning", "",
		"below the P10 of the run's last 100 records, and 20 % below their median, and six robust standard deviations (1.4826 MAD, of logarithms)",
		"See what else ran on its hosts then: a checkpoint, an evaluation, another job.",
	},
	{"train_slowdown", ""}: {
		"train_slowdown", "bad", "",
		"steps of the last 100 records take 10 % longer (median) than those of the run's best 100, and noise does not explain it; then again once per 100",
		"Check for a slow or throttled device, other jobs on the network or the storage, and memory fragmentation.",
	},
	{"train_loss_not_finite", ""}: {
		"train_loss_not_finite", "bad", "",
		"the loss is NaN or infinite",
		"The run has diverged or overflowed: go back to the last good checkpoint, and check the learning rate, the loss scale and the data of this step.",
	},
	{"train_loss_spike", ""}: {
		"train_loss_spike", "warning", "{loss}",
		"10 robust standard deviations and 10 % above the median of the last 100; said at its start",
		"Check the data of this step, the gradient norm and the learning rate.",
	},
	{"train_rank_slow", ""}: {
		"train_rank_slow", "bad", "1",
		"a rank computed for more than 10 % (`slowdown`) longer than its peers, which cost at least 1 % of the step, in 9 of the last 10 records; said once, then again once per 100",
		"Check the clock, temperature and errors of its device, what else runs on its host, and its share of the work (experts, lengths of sequences).",
	},
	{"train_flops_wrong", ""}: {
		"train_flops_wrong", "warning", "1",
		"the log's FLOPs, or what they are made of or held against, cannot be right; the cause says what is wrong",
		"By the cause.",
	},
	{"train_flops_wrong", "dp_omitted"}: {
		"train_flops_wrong", "warning", "1",
		"perf_monitor's FLOPs or samples are 1/n of what its formula makes, n being the data-parallel size, or a divisor of the world size. Seen without a model, by its samples/s × time",
		"Read the recomputed number.",
	},
	{"train_flops_wrong", "gqa_as_mha"}: {
		"train_flops_wrong", "warning", "1",
		"its FLOPs are those of full attention heads: the earlier branch counts grouped queries so where it has no model_name, which Megatron has no argument for",
		"Read the recomputed number.",
	},
	{"train_flops_wrong", "moe_as_dense"}: {
		"train_flops_wrong", "warning", "1",
		"they are those of a dense model (`--perf-model-type mixtral`)",
		"Read the recomputed number, and set --perf-model-type.",
	},
	{"train_flops_wrong", "swiglu_omitted"}: {
		"train_flops_wrong", "warning", "1",
		"they are those of experts without SwiGLU (the earlier branch of perf_monitor)",
		"Read the recomputed number.",
	},
	{"train_flops_wrong", "flops_disagree"}: {
		"train_flops_wrong", "warning", "1",
		"the log's FLOPs are more than 5 % off. perf_monitor is held against its own formula, others against Megatron's with none to all of the attention matrix. Names what fits (recomputation or embedding counted, one device for all, another batch, another unit), else what to compare. Never of a model that is not counted",
		"Compare the model in the configuration with the job's.",
	},
	{"train_flops_wrong", "throughput_disagrees"}: {
		"train_flops_wrong", "warning", "1",
		"the log's samples/s × step time are more than 5 % off the batch. Says when that fits samples/s of one device, or the time of several steps",
		"Trust the step time.",
	},
	{"train_flops_wrong", "mfu_impossible"}: {
		"train_flops_wrong", "bad", "1",
		"MFU above 1 (2 with `fp8`, 4 with `fp4`). Says which causes fit the numbers, in the order in which they mostly are it: another device, more devices, GFLOP/s for TFLOP/s or ms for s, steps covered, FP8, the model",
		"Correct what the sentence names in the configuration.",
	},
	{"train_mfu_low", ""}: {
		"train_mfu_low", "warning", "1",
		"MFU < 30 %, but for the first iteration. Not of perf_monitor's own number, which leaves the data-parallel size out",
		"Check data loading, the size of the micro batch, communication that is not overlapped, and the pipeline bubble.",
	},
}

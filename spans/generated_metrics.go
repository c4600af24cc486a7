// Code generated from spans/registry by tools/semconv. DO NOT EDIT.

package spans

// metrics are the metrics of the registry by name.
var metrics = map[string]Metric{
	"trainbridge.verdicts": {
		"trainbridge.verdicts", "{verdict}", "Verdicts about spans.", Counter,
	},
	"trainbridge.incomplete.spans": {
		"trainbridge.incomplete.spans", "{span}", "Spans whose end, start or stages were never seen; they are in no duration histogram.", Counter,
	},
	"trainbridge.run.collector.info": {
		"trainbridge.run.collector.info", "{info}", "1. Where the collector runs that counts for a run.", Gauge,
	},
	"ml.step.time": {
		"ml.step.time", "s", "Exclusive wall-clock time of steps, batches and passes, by part.", Counter,
	},
	"nccl.collective.duration": {
		"nccl.collective.duration", "s", "Time of complete collectives, from the first rank's arrival to the end.", Histogram,
	},
	"nccl.collective.late": {
		"nccl.collective.late", "s", "How long after the first rank the last came.", Histogram,
	},
	"nccl.collective.late.cost": {
		"nccl.collective.late.cost", "s", "Time that the ranks lost together waiting for the last.", Counter,
	},
	"nccl.collective.io": {
		"nccl.collective.io", "By", "Data of complete collectives, S of algbw = S/t.", Counter,
	},
	"nccl.collective.bandwidth": {
		"nccl.collective.bandwidth", "By/s", "Bandwidth of complete collectives, of all communicators.", Histogram,
	},
	"nccl.rank.late.cost": {
		"nccl.rank.late.cost", "s", "Time that the other ranks lost together waiting for a rank that came last.", Counter,
	},
	"nccl.collective.errors": {
		"nccl.collective.errors", "{error}", "Errors that the log tells of.", Counter,
	},
	"nccl.collective.retries": {
		"nccl.collective.retries", "{retry}", "Retries that the log tells of.", Counter,
	},
	"nccl.collective.missing": {
		"nccl.collective.missing", "{record}", "Ranks without a record.", Counter,
	},
	"nccl.link.io": {
		"nccl.link.io", "By", "What went from rank to rank, as far as records name both.", Counter,
	},
	"nccl.link.bandwidth": {
		"nccl.link.bandwidth", "By/s", "Bandwidth from rank to rank, of the last record.", Gauge,
	},
	"nccl.node.io": {
		"nccl.node.io", "By", "What went from host to host, as far as records name both ranks.", Counter,
	},
	"nccl.device.bandwidth": {
		"nccl.device.bandwidth", "By/s", "Bandwidth of a NIC as VCCL logs it.", Gauge,
	},
	"nccl.device.abnormal": {
		"nccl.device.abnormal", "{status}", "VCCL's status of a NIC: 1 is abnormal.", Gauge,
	},
	"nccl.records.dropped": {
		"nccl.records.dropped", "{record}", "Records that NCCL Inspector itself dropped, since the process began.", Counter,
	},
	"nccl.rank.score": {
		"nccl.rank.score", "1", "The best rank's time between collectives over this rank's, over the window.", Gauge,
	},
	"nccl.clock.offset": {
		"nccl.clock.offset", "s", "How much a host's clock is ahead of the reference host's.", Gauge,
	},
	"nccl.clock.uncertainty": {
		"nccl.clock.uncertainty", "s", "± of nccl.clock.offset.", Gauge,
	},
	"nccl.ras.ranks": {
		"nccl.ras.ranks", "{rank}", "Ranks of all communicators of a live job, by what NCCL's RAS says of them. A GPU counts in each of its communicators.", Gauge,
	},
	"nccl.ras.still": {
		"nccl.ras.still", "s", "How long no process of a live job has launched a collective that NCCL's RAS counts, at least.", Gauge,
	},
	"ml.run.events": {
		"ml.run.events", "{event}", "Lines that tell how a run ends.", Counter,
	},
	"trainbridge.gpu.clock.frequency": {
		"trainbridge.gpu.clock.frequency", "Hz", "Current frequency of a clock.", Gauge,
	},
	"trainbridge.gpu.field.supported": {
		"trainbridge.gpu.field.supported", "{status}", "1 where the GPU and its driver have the field, 0 where they said that they do not.", Gauge,
	},
	"trainbridge.gpu.nvlink.io": {
		"trainbridge.gpu.nvlink.io", "By", "Bytes over all NVLinks of the GPU.", Counter,
	},
	"trainbridge.gpu.nvlink.throughput": {
		"trainbridge.gpu.nvlink.throughput", "By/s", "Bytes per second over all NVLinks of the GPU, since the last scrape.", Gauge,
	},
	"trainbridge.gpu.pcie.throughput": {
		"trainbridge.gpu.pcie.throughput", "By/s", "Bytes per second over PCIe.", Gauge,
	},
	"trainbridge.gpu.process.memory.usage": {
		"trainbridge.gpu.process.memory.usage", "By", "Device memory that a process with a compute context uses.", UpDownCounter,
	},
	"trainbridge.run.gpu.info": {
		"trainbridge.run.gpu.info", "{info}", "1. Which run a GPU works for, and as which rank where a log says that.", Gauge,
	},
	"trainbridge.gpu.throttle.active": {
		"trainbridge.gpu.throttle.active", "{status}", "1 where the reason holds the clocks down at the moment of the scrape, else 0.", Gauge,
	},
	"trainbridge.gpu.throttle.time": {
		"trainbridge.gpu.throttle.time", "s", "Time in which the clocks were held down, since the driver was loaded.", Counter,
	},
	"rpc.client.call.duration": {
		"rpc.client.call.duration", "s", "Measures the duration of an outgoing Remote Procedure Call (RPC).", Histogram,
	},
	"rpc.client.request.size": {
		"rpc.client.request.size", "By", "Size of requests.", Histogram,
	},
	"rpc.client.response.size": {
		"rpc.client.response.size", "By", "Size of responses.", Histogram,
	},
	"zeromq.pass.duration": {
		"zeromq.pass.duration", "s", "Duration of complete forward passes.", Histogram,
	},
	"zeromq.pass.calls": {
		"zeromq.pass.calls", "{call}", "Calls in a complete forward pass.", Histogram,
	},
	"zeromq.stage.utilization": {
		"zeromq.stage.utilization", "1", "Share of the calls' time in the last pass, by stage.", Gauge,
	},
	"zeromq.stage.time": {
		"zeromq.stage.time", "s", "Time of complete calls, by method and stage; that of the server is within receive. Of calls whose stages have spans.", Counter,
	},
	"zeromq.throughput.disagreement": {
		"zeromq.throughput.disagreement", "1", "Largest difference of a pass between reported and recomputed throughput, as a share of the latter.", Histogram,
	},
	"zeromq.final.disagreement": {
		"zeromq.final.disagreement", "1", "Difference between a line of the log's summary and what its rows add up to, as a share of the latter. 0: print rounding explains it.", Gauge,
	},
	"tq.function.duration": {
		"tq.function.duration", "s", "Duration of complete TransferQueue functions.", Histogram,
	},
	"tq.stage.duration": {
		"tq.stage.duration", "s", "Duration of complete stages and client operations.", Histogram,
	},
	"tq.function.time": {
		"tq.function.time", "s", "Time of functions whose shares are known.", Counter,
	},
	"tq.stage.time": {
		"tq.stage.time", "s", "Time of those functions in each stage.", Counter,
	},
	"tq.client.throughput": {
		"tq.client.throughput", "By/s", "Throughput of client operations.", Histogram,
	},
	"tq.utilization.reported.disagreement": {
		"tq.utilization.reported.disagreement", "1", "Largest difference between a reported and a recomputed share.", Histogram,
	},
	"tq.stage.utilization": {
		"tq.stage.utilization", "1", "Share of the last function's time, by stage.", Gauge,
	},
	"tq.overhead.utilization": {
		"tq.overhead.utilization", "1", "Share of the last function's time in GET and PUT.", Gauge,
	},
	"tq.task.duration": {
		"tq.task.duration", "s", "How long a task took to get its input from TransferQueue, or to put its output there.", Gauge,
	},
	"tq.storage.requests": {
		"tq.storage.requests", "{request}", "Successful requests to a storage unit within the record's time range.", Gauge,
	},
	"tq.storage.request.rate": {
		"tq.storage.request.rate", "{request}/s", "Successful requests to a storage unit per second.", Gauge,
	},
	"tq.storage.request.duration.avg": {
		"tq.storage.request.duration.avg", "s", "Mean time a storage unit took for a request.", Gauge,
	},
	"tq.storage.operation.requests": {
		"tq.storage.operation.requests", "{request}", "Requests of one operation within the record's time range.", Gauge,
	},
	"tq.storage.operation.rate": {
		"tq.storage.operation.rate", "{request}/s", "Requests of one operation per second.", Gauge,
	},
	"tq.storage.operation.duration.avg": {
		"tq.storage.operation.duration.avg", "s", "Mean time of one operation.", Gauge,
	},
	"tq.storage.operation.duration.max": {
		"tq.storage.operation.duration.max", "s", "Longest time of one operation within the record's time range.", Gauge,
	},
	"tq.storage.operation.duration.min": {
		"tq.storage.operation.duration.min", "s", "Shortest time of one operation within the record's time range.", Gauge,
	},
	"ml.train.step.duration": {
		"ml.train.step.duration", "s", "Time of one training step, one value per record of the log.", Histogram,
	},
	"ml.train.step.duration.reported": {
		"ml.train.step.duration.reported", "s", "Time of one training step, one value per record of the log.", Gauge,
	},
	"ml.train.stage.duration": {
		"ml.train.stage.duration", "s", "Duration of the parts of training steps.", Histogram,
	},
	"ml.train.steps": {
		"ml.train.steps", "{step}", "Training steps.", Counter,
	},
	"ml.train.samples": {
		"ml.train.samples", "{sample}", "Samples trained on.", Counter,
	},
	"ml.train.tokens": {
		"ml.train.tokens", "{token}", "Tokens trained on.", Counter,
	},
	"ml.train.flop.throughput": {
		"ml.train.flop.throughput", "{flop}/s", "Recomputed FLOP/s of all devices.", Gauge,
	},
	"ml.train.device.flop.throughput": {
		"ml.train.device.flop.throughput", "{flop}/s", "Recomputed FLOP/s of one device.", Gauge,
	},
	"ml.train.flop.utilization": {
		"ml.train.flop.utilization", "1", "Model FLOP/s utilization (MFU).", Gauge,
	},
	"ml.train.hardware.flop.utilization": {
		"ml.train.hardware.flop.utilization", "1", "Hardware FLOP/s utilization (HFU): recomputed activations count as work too.", Gauge,
	},
	"ml.run.time": {
		"ml.run.time", "s", "Where the wall-clock time of a run went, from its first step to the last that was told.", UpDownCounter,
	},
	"ml.run.ended": {
		"ml.run.ended", "{run}", "1 where the run has ended so, else 0. Of runs whose steps came while they ran.", Gauge,
	},
	"ml.train.step.last.time": {
		"ml.train.step.last.time", "s", "When the latest step came, by the collector's clock, since 1970. Of runs whose steps came while they ran.", Gauge,
	},
	"ml.train.goodput": {
		"ml.train.goodput", "1", "Share of the run's time in steps that counted, none of them longer than is usual.", Gauge,
	},
	"ml.train.flop.throughput.disagreement": {
		"ml.train.flop.throughput.disagreement", "1", "Difference between reported and recomputed FLOP/s, as a share of the latter.", Histogram,
	},
	"ml.train.iteration": {
		"ml.train.iteration", "{iteration}", "The iteration that was logged last.", Gauge,
	},
	"ml.train.loss": {
		"ml.train.loss", "{loss}", "Training loss.", Gauge,
	},
	"ml.train.learning_rate": {
		"ml.train.learning_rate", "{learning_rate}", "Learning rate.", Gauge,
	},
	"ml.train.gradient.norm": {
		"ml.train.gradient.norm", "{norm}", "Norm of the gradient.", Gauge,
	},
	"ml.train.params.norm": {
		"ml.train.params.norm", "{norm}", "Norm of the parameters.", Gauge,
	},
	"ml.train.loss.scale": {
		"ml.train.loss.scale", "{scale}", "Loss scale of mixed-precision training.", Gauge,
	},
	"ml.train.validation.loss": {
		"ml.train.validation.loss", "{loss}", "Validation loss.", Gauge,
	},
	"ml.train.validation.perplexity": {
		"ml.train.validation.perplexity", "{perplexity}", "Validation perplexity.", Gauge,
	},
	"ml.train.iterations.skipped": {
		"ml.train.iterations.skipped", "{iteration}", "Skipped iterations, as the log counts them.", Gauge,
	},
	"ml.train.iterations.nan": {
		"ml.train.iterations.nan", "{iteration}", "Iterations with a NaN, as the log counts them.", Gauge,
	},
	"ml.train.sample.throughput": {
		"ml.train.sample.throughput", "{sample}/s", "Samples per second.", Gauge,
	},
	"ml.train.token.throughput": {
		"ml.train.token.throughput", "{token}/s", "Tokens per second, all devices.", Gauge,
	},
	"ml.train.device.token.throughput": {
		"ml.train.device.token.throughput", "{token}/s", "Tokens per second and device.", Gauge,
	},
	"ml.train.flop.throughput.reported": {
		"ml.train.flop.throughput.reported", "{flop}/s", "FLOP/s of all devices, as the log states it.", Gauge,
	},
	"ml.train.device.flop.throughput.reported": {
		"ml.train.device.flop.throughput.reported", "{flop}/s", "FLOP/s of one device, as the log states it.", Gauge,
	},
	"ml.train.flop.utilization.reported": {
		"ml.train.flop.utilization.reported", "1", "Model FLOP/s utilization (MFU), as the log states it.", Gauge,
	},
	"ml.train.flop.count.reported": {
		"ml.train.flop.count.reported", "{flop}", "FLOPs of one step, all devices, as the log states it.", Gauge,
	},
	"ml.train.flop.count.forward": {
		"ml.train.flop.count.forward", "{flop}", "FLOPs of the forward pass of one step, as the log states it.", Gauge,
	},
	"ml.train.flop.count.backward": {
		"ml.train.flop.count.backward", "{flop}", "FLOPs of the backward pass of one step, as the log states it.", Gauge,
	},
	"ml.train.flop.count.optimizer": {
		"ml.train.flop.count.optimizer", "{flop}", "FLOPs of the optimizer in one step, as the log states it.", Gauge,
	},
	"ml.train.device.memory.usage": {
		"ml.train.device.memory.usage", "By", "Device memory allocated on the rank that logs.", Gauge,
	},
	"ml.train.device.memory.peak": {
		"ml.train.device.memory.peak", "By", "Most device memory allocated so far on the rank that logs.", Gauge,
	},
	"ml.train.device.memory.reserved": {
		"ml.train.device.memory.reserved", "By", "Device memory reserved by the allocator on the rank that logs.", Gauge,
	},
	"ml.train.device.memory.reserved.peak": {
		"ml.train.device.memory.reserved.peak", "By", "Most device memory reserved so far on the rank that logs.", Gauge,
	},
	"ml.train.device.memory.utilization": {
		"ml.train.device.memory.utilization", "1", "Share of the device memory in use.", Gauge,
	},
	"ml.train.device.energy": {
		"ml.train.device.energy", "J", "Energy of one device in one step.", Gauge,
	},
	"ml.train.device.power": {
		"ml.train.device.power", "W", "Power of one device.", Gauge,
	},
	"ml.train.final.disagreement": {
		"ml.train.final.disagreement", "1", "As the log states it.", Gauge,
	},
}

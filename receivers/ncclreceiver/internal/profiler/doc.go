// Package profiler reads the Chrome trace of NCCL's example profiler plugin: NVIDIA/nccl v2.23 to v2.30, ext-profiler/example and
// plugins/profiler/example, print_event.c and print_event.cc; v2.31's copy engine events (CE_COLL) too. 2.28 and 2.29 do not write JSON:
// "datatype": ncclFloat32, "Stream": 0x262ca50.
//
// The plugin prints an event per line when a communicator is destroyed, each group depth first: GROUP_API (GROUP before 2.28) > COLL_API,
// P2P_API, KERNEL_LAUNCH > COLL, P2P > KernelCh (GPU) > PROXY > NET > NET_IB, NET_SOCK. Every event is a line with "ph": "b" and one with "e",
// which have name, cat, id and pid in common.
//
// # What the times are
//
// "ts" is µs since the profiler's start by the CPU's clock, and 0.000000 where something did not happen. A kernel's StartGpuClk and
// StopGpuClk are ns by its GPU's globaltimer, which is Unix time, roughly: GPUs of one host were seen 4 s apart. So a file is put onto Unix
// time by the first KernelCh in it that has both (the anchor), and the clock of every other GPU in the file is related to the anchor in the same
// way. Both are late by the time between the kernel's start and the moment when NCCL's proxy thread saw it, usually some µs, ms where that
// thread is busy. Times within a file are consistent, between files they are as good as the GPUs' clocks.
//
// The "e" of COLL and P2P is when its last child (KernelCh, PROXY) ended, but when it was enqueued where the plugin tracks none or one of them
// never ended (plugin.cc: updateEvent): that is no duration and is not taken for one. Nor does the "e" say that the operation completed; it is
// taken so all the same, because kernels whose end was not recorded are usual.
package profiler

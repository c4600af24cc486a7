// Package profiler reads the Chrome trace of NCCL's example profiler plugin: NVIDIA/nccl v2.23 to v2.30, ext-profiler/example and plugins/profiler/example,
// print_event.c and print_event.cc; v2.31's copy engine events (CE_COLL) too. 2.28 and 2.29 do not write JSON: "datatype": ncclFloat32, "Stream": 0x262ca50.
//
// The plugin prints an event per line when a communicator is destroyed, each group depth first: GROUP_API (GROUP before 2.28) > COLL_API, P2P_API,
// KERNEL_LAUNCH > COLL, P2P > KernelCh (GPU) > PROXY > NET > NET_IB, NET_SOCK. Every event is a line with "ph": "b" and one with "e", which have name, cat, id
// and pid in common.
//
// # Times
//
// "ts" is µs since the profiler's start by the CPU's clock, and 0.000000 for an event that did not happen. A kernel's StartGpuClk and StopGpuClk are ns by its
// GPU's globaltimer, which is Unix time, roughly: GPUs of one host were seen 4 s apart. So the first KernelCh with both clocks relates a file to Unix time (the
// anchor), and the clock of every other GPU in the file is related to the anchor in the same way. Both relations are late by the time between the kernel's
// start and its detection by NCCL's proxy thread, usually some µs, or ms if the thread is busy. Times within a file are consistent, between files they are as
// good as the GPUs' clocks.
//
// The "e" of COLL and P2P is the end of its last child (KernelCh, PROXY). If the plugin tracks no child, or one of them never ended, the "e" is the time of
// enqueueing (plugin.cc: updateEvent): then there is no duration. The "e" does not prove that the operation completed; completion is assumed all the same,
// because kernels without a recorded end are usual.
package profiler

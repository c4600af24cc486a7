// Package vccl reads the telemetry logs of VCCL: the documented JSON schema (leoda1/VCCL_DOC docs/features/flow-telemetry.md @f8878b1), without a writer in
// VCCL's code, and CSV with its keys; and the real output of sii-research/VCCL, one file per NIC and not per rank (src/transport/timer_log.cc,
// src/include/timer_log.h; tags v0.3.1 and v0.3.2, main @af1ca510, and b62e3e5 for the form in between).
package vccl

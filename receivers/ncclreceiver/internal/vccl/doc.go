// Package vccl reads what VCCL's telemetry logs: the documented JSON schema (leoda1/VCCL_DOC docs/features/flow-telemetry.md @f8878b1), which
// no code of VCCL writes, and CSV with its keys; and what sii-research/VCCL really writes, one file per NIC and not per rank (src/transport/timer_log.cc,
// src/include/timer_log.h; tags v0.3.1 and v0.3.2, main @af1ca510, and b62e3e5 for the form in between).
package vccl

// Package inspector reads the log of NVIDIA's NCCL Inspector (NVIDIA/nccl, plugins/profiler/inspector; before 2.29 ext-profiler/inspector): compact JSON, one
// object per line, of all communicators and ranks of a process. Its versions, by inspector_output_format_version:
//
//   - v4.0 (v2.28.3-1 f1308997, v2.30.7-1 73cf1122), v4.1 and v4.2 (35d819ec): every record has its communicator and process in "header" and "metadata".
//     v4.1 adds records of "dump_stats", v4.2 the algorithm and protocol.
//   - v4.3 and v4.4 (08618d4a, 3c867cce; inspector_json.cc, inspector_json_reader.py): a "dump_stats" record with "header" and "metadata" is the marker
//     of the next records, whose number is in the marker. Adds "proxy_trace".
//
// Variants: the flat form also read by Datadog's agent (pkg/collector/corechecks/nccl), the ACCL profiler of a ROCm fork ("decomposition", no metadata), and a
// fork's v4.1 that nests "events".
package inspector

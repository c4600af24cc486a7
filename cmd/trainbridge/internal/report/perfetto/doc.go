// Package perfetto writes spans and metrics as a trace that ui.perfetto.dev and Perfetto's trace_processor open.
//
// The file is a stream of TracePacket messages, deflated in blocks. Its schema is protos/perfetto/trace/perfetto_trace.proto of
// github.com/google/perfetto, as of commit ec5d16b; wire.go names the fields that are used, with the file that each stands in. The
// bytes are written by protowire: the schema is large, and some forty fields of it are needed.
//
// Who did the work of a span decides which track it is on: a process track per run of a job and host, below it a track per rank,
// worker, client, communicator and so on (tracks.go). A track is several lanes of the same name, which Perfetto draws as one: slices
// of a lane lie in one another or side by side, as the format wants it, and what overlaps is on another lane (lanes.go). Perfetto
// sorts all packets by time, so nothing here waits for earlier spans: a span that comes late gets a lane on which no slice is in its
// way.
//
// No time is moved. What is known about clocks is written beside the slices.
package perfetto

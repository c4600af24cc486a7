package gen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// The formats of logs of collectives.
const (
	NCCLVCCL      = "vccl_json"
	NCCLInspector = "nccl_inspector"
)

// ncclEvent is a collective of all ranks, who leave it together.
type ncclEvent struct {
	*collective
	kind     *kind
	sequence uint64 // of the operation, from 0
	size     int64  // By, S of nccl-tests
	flaky    int    // rank whose sends are retried; -1: none
	traceID  string // empty: not logged
}

// ncclLogs are the logs of all ranks.
type ncclLogs struct {
	write  func(e *ncclEvent, rank int) // writes a rank's record: vccl or inspector
	ranks  []ncclRank
	header string           // of NCCL Inspector: a format of a whole record for dump
	counts map[*kind]uint64 // collectives so far
	end    int64            // of the last collective, ns
}

// ncclRank is the log of a rank. NCCL Inspector's thread dumps the collectives completed since its last dump.
type ncclRank struct {
	*logfile.Log
	pending []string // records of NCCL Inspector, without their time
	next    int64    // true time of the next dump
}

const dumpInterval = int64(time.Second)

// openNCCL creates a log per rank in nccl/, in the format of the options, and draws the communicator's hash and the times of NCCL Inspector's first dumps.
func (j *job) openNCCL() (err error) {
	o := j.opt
	j.nccl = ncclLogs{counts: map[*kind]uint64{}, end: j.truth.Start}
	rng := rand.New(rand.NewPCG(o.Seed+uint64(o.job), 0x6c6f_6773))
	hash := rng.Uint64() | 1<<63 // above the largest int64, as half of NCCL's hashes
	for range 2 * len(j.hosts) {
		rng.Float64() // keeps seeds stable: the generator for collectives (test/gen) draws clocks here
	}
	j.nccl.write = j.vccl
	if o.ncclFormat() == NCCLInspector {
		j.comm = "DP Group 0"
		j.nccl.write = j.inspector
		j.nccl.header = fmt.Sprintf(`{"header":{"id":"0x%x","comm_name":"%s","rank":%%d,"n_ranks":%d,"nnodes":%d},`+
			`"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%%d,`+
			`"hostname":"%%s","pid":%%d},%%s}}`, hash, j.comm, o.Ranks, len(j.hosts))
	}
	buffer := min(max(1<<26/o.Ranks, 1<<12), 1<<16) // By for each file: 64 MiB for all, 4 to 64 KiB each
	for rank, pid := range j.pids {
		h := j.host(rank)
		f, name := logfile.File{Host: h.name}, "rank_"+strconv.Itoa(rank)+".json"
		next := int64(0)
		if o.ncclFormat() == NCCLInspector {
			rng.IntN(97) // keeps seeds stable, likewise
			f.PID, name = pid, fmt.Sprintf("%s-pid%d.log", h.name, pid)
			next = j.truth.Start + 1 + rng.Int64N(dumpInterval)
		}
		log, err := j.create("nccl", name, f, buffer)
		if err != nil {
			return err
		}
		j.nccl.ranks = append(j.nccl.ranks, ncclRank{Log: log, next: next})
	}
	return nil
}

// collect writes the records of all ranks about a collective, and numbers the collective.
func (j *job) collect(e *ncclEvent) error {
	n := &j.nccl
	e.sequence = n.counts[e.kind]
	n.counts[e.kind]++
	n.end = e.end
	for rank := range n.ranks {
		n.write(e, rank)
		n.ranks[rank].Operations++
	}
	return j.logs.Err
}

// vccl writes a record by the document of VCCL (leoda1/VCCL_DOC @f8878b1, docs/features/flow-telemetry.md), as Python's json.dumps. message_size is taken for
// the size of the data, S of nccl-tests; the document does not say.
func (j *job) vccl(e *ncclEvent, rank int) {
	clock := &j.host(rank).clock
	start := clock.Local(e.arrive[rank])
	took := (clock.Local(e.end) - start + 50) / 100 // in 0.1 µs, as printed
	// If the link from the rank is slow (FaultLink), the rank states a retry. bandwidth_gbps is in Gbit/s, the same as bits per ns.
	retried := 0
	if rank == e.flaky {
		retried = 1
	}
	b := fmt.Appendf(j.logs.Text(), `{"timestamp": %s, "rank": %d, "operation": "%s", "algorithm": "ring", "message_size": %d, "duration_us": %.1f, `+
		`"bandwidth_gbps": %.1f, "src_rank": %d, "dst_rank": %d, "channel_id": 0, "stream_id": 7, "error_count": 0, "retry_count": %d`,
		logfile.AppendSeconds(nil, start/1000), rank, e.kind.vccl, e.size, float64(took)/10, float64(e.size)*8/float64(took*100), rank, (rank+1)%j.opt.Ranks, retried)
	if e.traceID != "" {
		b = fmt.Appendf(b, `, "trace_id": "%s"`, e.traceID)
	}
	j.logs.Line(j.nccl.ranks[rank].Log, append(b, '}'), logfile.Record)
}

// inspector keeps a rank's record of a collective for the rank's next dump, as NVIDIA's NCCL Inspector does, after the dumps that are due before:
// NVIDIA/nccl plugins/profiler/inspector/inspector_json.cc, v4.0 of v2.30.7-1.
func (j *job) inspector(e *ncclEvent, rank int) {
	r, clock := &j.nccl.ranks[rank], &j.host(rank).clock
	for ; r.next < e.end; r.next += dumpInterval {
		j.dump(rank, r.next)
	}
	start, us := clock.Local(e.arrive[rank])/1000, (clock.Local(e.end)-clock.Local(e.arrive[rank])+500)/1000 // µs; the duration is rounded
	// NCCL Inspector states the message of a rank: of AllGather and ReduceScatter a share of the data, of AllReduce the whole.
	message, n := e.size, float64(j.opt.Ranks)
	factor := (n - 1) / n // of the bus bandwidth: nccl-tests, doc/PERFORMANCE.md
	if e.kind.shared {
		message /= int64(j.opt.Ranks)
	} else {
		factor = 2 * (n - 1) / n
	}
	gbs := float64(e.size) / 1e3 / float64(us) // GB/s
	text := fmt.Sprintf(`"coll_perf":{"coll":"%s","coll_sn":%d,"coll_msg_size_bytes":%d,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu",`+
		`"coll_algobw_gbs":%.6f,"coll_busbw_gbs":%.6f`, e.kind.name, e.sequence, message, us, gbs, gbs*factor)
	// By NCCL_INSPECTOR_DUMP_VERBOSE=1: the events in order of arrival, with the CPU's times. The call begins 60 µs before the kernel, and takes 5 µs.
	if !j.opt.clock(ClockNoStart) {
		text += fmt.Sprintf(`,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":5,`+
			`"kernel_record_sn":4}]},"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,`+
			`"kernel_stop_ts":%d,"kernel_record_ts":%d}]}`, start-60, start-55, start, start+us, start+us)
	}
	r.pending = append(r.pending, text)
}

// dump writes the pending records of a rank, at a true time; each has the stamp of the dump, with a µs between records.
func (j *job) dump(rank int, at int64) {
	r, h := &j.nccl.ranks[rank], j.host(rank)
	us := h.clock.Local(at) / 1000
	for i, text := range r.pending {
		j.logs.Line(r.Log, fmt.Appendf(j.logs.Text(), j.nccl.header, rank, us+int64(i)+1, h.name, j.pids[rank], text), logfile.Record)
	}
	r.pending = r.pending[:0]
}

// dumpAll writes the pending records of all ranks at the end.
func (j *job) dumpAll() {
	for rank := range j.nccl.ranks {
		j.dump(rank, j.nccl.end+5*ms)
	}
}

package nccl

import (
	"fmt"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// inspectorLog writes logs of NVIDIA's NCCL Inspector: NVIDIA/nccl plugins/profiler/inspector/inspector_json.cc, v4.0 of v2.30.7-1, v4.2 of @35d819ec, v4.3 and
// v4.4 as in the README of @08618d4a. A file per process, whose thread dumps the collectives completed since the last dump.
type inspectorLog struct {
	*log
	version string
	procs   []*inspectorProc
	tail    []byte // the end of an event trace
}

type inspectorProc struct {
	*logfile.Log
	host  *ncclHost
	first int // rank
	pid   int
	next  int64 // true time of the next dump
	ranks []inspectorRank
	text  []byte // the metadata without the time of the dump
}

// inspectorRank is a rank's communicator in a process.
type inspectorRank struct {
	header   string
	pending  []inspectorRecord
	dropped  int64 // records
	reported int64 // dropped records of earlier dumps
}

type inspectorRecord struct {
	*ncclKind
	start, end int64 // of the host's clock
}

// us is coll_exec_time_us.
func (r *inspectorRecord) us() int64 { return (r.end - r.start + 500) / 1000 }

func (p *inspectorLog) open() error {
	n := p.opt.Ranks / p.opt.RanksPerFile
	for i := range n {
		first := i * p.opt.RanksPerFile
		h := p.host(first)
		c := &inspectorProc{host: h, first: first, pid: 40_000 + 97*(i%p.opt.perNode()) + p.rng.IntN(97), next: h.Start}
		if p.opt.DumpInterval > 0 {
			c.next += 1 + p.rng.Int64N(int64(p.opt.DumpInterval))
		}
		var err error
		c.Log, err = p.file(fmt.Sprintf("%s-pid%d.log", h.name, c.pid), h, n)
		if err != nil {
			return err
		}
		c.PID = c.pid
		c.text = fmt.Appendf(nil, `,"hostname":"%s","pid":%d},`, h.name, c.pid)
		for k := range p.opt.RanksPerFile {
			header := fmt.Sprintf(`{"header":{"id":"0x%x","comm_name":"%s","rank":%d,"n_ranks":%d,"nnodes":%d},"metadata":{"inspector_output_format_version":"%s","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":`,
				p.hash, p.opt.CommName, first+k, p.opt.Ranks, p.opt.Nodes, p.version)
			c.ranks = append(c.ranks, inspectorRank{header: header})
		}
		p.procs = append(p.procs, c)
	}
	return p.Err
}

func (p *inspectorLog) collective(c *ncclCollective) {
	if p.opt.DumpInterval > 0 {
		p.due(c)
	}
	per := p.opt.RanksPerFile
	p.ranks(c, func(rank int) int64 {
		h := p.host(rank)
		r := inspectorRecord{c.ncclKind, h.Local(c.arrive[rank]), h.Local(c.leave[rank])}
		to := &p.procs[rank/per].ranks[rank%per]
		to.pending = append(to.pending, r)
		return r.us() * 1000
	})
	if p.opt.GapRank >= 0 && c.index == p.opt.GapAt {
		p.procs[p.opt.GapRank/per].ranks[p.opt.GapRank%per].dropped++
	}
}

// due makes the dumps before the ranks leave a collective.
func (p *inspectorLog) due(c *ncclCollective) {
	for _, proc := range p.procs {
		until := c.leave[proc.first]
		for _, at := range c.leave[proc.first : proc.first+len(proc.ranks)] {
			until = min(until, at)
		}
		for ; proc.next < until; proc.next += int64(p.opt.DumpInterval) {
			p.dump(proc, proc.next)
		}
	}
}

func (p *inspectorLog) close() {
	for _, proc := range p.procs {
		p.dump(proc, p.run.EndUnixNano+5e6)
	}
}

// dump writes the pending records, communicator by communicator.
func (p *inspectorLog) dump(proc *inspectorProc, at int64) {
	us := proc.host.Local(at) / 1000
	for i := range proc.ranks {
		r := &proc.ranks[i]
		if len(r.pending) == 0 {
			continue
		}
		if p.version != "v4.0" {
			p.stats(proc, r, us)
		}
		for k := range r.pending {
			us++
			b := p.Buf[:0]
			if p.version < "v4.3" {
				b = p.context(b, proc, r, us)
			} else {
				b = append(b, '{')
			}
			proc.Operations++
			p.Line(proc.Log, append(p.perf(b, &r.pending[k]), '}', '}'), logfile.Record)
			if p.version == "v4.4" && p.opt.Verbose {
				p.Line(proc.Log, p.proxy(p.Buf[:0], proc.first+i, &r.pending[k]), logfile.Record)
			}
		}
		r.pending = r.pending[:0]
	}
	if p.Paced && p.Err == nil {
		p.Err = proc.W.Flush()
	}
}

// context writes the communicator and the process.
func (p *inspectorLog) context(b []byte, proc *inspectorProc, r *inspectorRank, us int64) []byte {
	return append(strconv.AppendInt(append(b, r.header...), us, 10), proc.text...)
}

// stats writes the record before the records of a communicator.
func (p *inspectorLog) stats(proc *inspectorProc, r *inspectorRank, us int64) {
	b := p.context(p.Buf[:0], proc, r, us)
	b = fmt.Appendf(b,
		`"dump_stats":{"coll_records":%d,"coll_dropped_total":%d,"coll_dropped_since_last_dump":%d,"p2p_records":0,"p2p_dropped_total":0,"p2p_dropped_since_last_dump":0`,
		len(r.pending), r.dropped, r.dropped-r.reported)
	r.reported = r.dropped
	if p.version == "v4.4" {
		proxy := 0
		if p.opt.Verbose {
			proxy = len(r.pending)
		}
		b = fmt.Appendf(b, `,"proxy_records":%d,"proxy_dropped_total":0,"proxy_dropped_since_last_dump":0,"proxy_ops_dropped_total":0,"proxy_ops_dropped_since_last_dump":0,`+
			`"proxy_steps_overwritten_total":0,"proxy_steps_overwritten_since_last_dump":0,"proxy_output_mode":"nested","proxy_segment_step_capacity":8,`+
			`"proxy_pxn_skipped_process_total":0,"proxy_steps_enabled":1`, proxy)
	}
	p.Line(proc.Log, append(b, '}', '}'), logfile.Side)
}

// perf writes a collective without the closing braces.
func (p *inspectorLog) perf(b []byte, r *inspectorRecord) []byte {
	b = append(append(append(b, `"coll_perf":{"coll":"`...), r.name...), '"')
	if p.version >= "v4.2" {
		b = append(b, `,"coll_algo":"RING","coll_proto":"SIMPLE"`...)
	}
	b = strconv.AppendUint(append(b, `,"coll_sn":`...), r.sequence, 10)
	b = strconv.AppendInt(append(b, `,"coll_msg_size_bytes":`...), r.message, 10)
	us := r.us()
	b = strconv.AppendInt(append(b, `,"coll_exec_time_us":`...), us, 10)
	b = append(b, `,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":`...)
	gbs := float64(r.data) / 1e3 / float64(us)
	b = strconv.AppendFloat(b, gbs, 'f', 6, 64)
	b = strconv.AppendFloat(append(b, `,"coll_busbw_gbs":`...), gbs*r.traffic(p.opt.Ranks), 'f', 6, 64)
	if p.opt.Verbose {
		b = p.trace(b, r)
	}
	return b
}

// trace writes the part of NCCL_INSPECTOR_DUMP_VERBOSE=1: the events in order of arrival, with the CPU's times.
func (p *inspectorLog) trace(b []byte, r *inspectorRecord) []byte {
	n := p.opt.Channels
	start := r.start / 1000
	b = append(b, `,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[`...)
	p.tail = fmt.Appendf(p.tail[:0], `]},"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[`, start-60, start-55)
	for ch := range n {
		if ch > 0 {
			b = append(b, ',')
			p.tail = append(p.tail, ',')
		}
		b = fmt.Appendf(b, `{"channel_id":%d,"kernel_start_sn":%d,"kernel_stop_sn":%d,"kernel_record_sn":%d}`, ch, 3+ch, 4+n+2*ch, 3+n+2*ch)
		late := int64(0) // the first channel has the times of the kernel
		if ch > 0 {
			late = p.rng.Int64N(3)
		}
		stop := start + r.us() - late
		p.tail = fmt.Appendf(p.tail, `{"channel_id":%d,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}`, ch, start+late, stop, stop)
	}
	return append(append(b, p.tail...), "]}"...)
}

// proxy writes a single-step record of the network's proxy, in nested mode.
func (p *inspectorLog) proxy(b []byte, rank int, r *inspectorRecord) []byte {
	took := max(9, r.us()/2)
	start := r.end/1000 - took
	size := max(1, r.message/int64(p.opt.Channels))
	b = fmt.Appendf(b, `{"proxy_trace":{"record_type":"proxy_op","record_sn":%d,"parent_type":"coll","parent_sn":%d,"proxy_op_sn":%d,"rank":%d,"channel_id":0,"peer":%d,`+
		`"direction":"send","timing_source":"proxy_cpu","is_final":true,"n_steps":1,"chunk_size_bytes":%d,"n_steps_started":1,"n_steps_completed":1,"n_steps_dropped":0,`+
		`"trans_size_bytes":%d,"total_us":%d,"op_bw_gbs":`, r.index+1, r.sequence, r.index+1, rank, (rank+1)%p.opt.Ranks, size, size, took)
	b = strconv.AppendFloat(b, float64(size)/1e3/float64(took), 'f', 6, 64)
	third := (took - 6) / 3
	return fmt.Appendf(b, `,"event_trace_ts":{"proxy_op_start_ts":%d,"proxy_op_in_progress_ts":%d,"proxy_op_stop_ts":%d},"steps":[{"proxy_step_sn":1,"step":0,"trans_size_bytes":%d,`+
		`"total_us":%d,"gpu_produce_us":%d,"peer_credit_us":%d,"wire_us":%d,"event_trace_ts":{"proxy_step_start_ts":%d,"send_gpu_wait_ts":%d,"send_peer_wait_ts":%d,`+
		`"send_wait_ts":%d,"proxy_step_stop_ts":%d}}]}}`,
		start, start+1, start+took, size, took-4, third, third, third,
		start+2, start+3, start+3+third, start+3+2*third, start+took-2)
}

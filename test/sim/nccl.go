package sim

import (
	"fmt"
	"io"
	"slices"
)

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// collectives are the logs of NCCL's inspector, verbose, of each rank: two collectives per step of all ranks.
type collectives struct {
	files  []io.Writer
	id     uint64
	number int
	tries  int
	offset map[string]float64 // s, of each host's clock
	usual  float64            // s, of a transfer
}

// open makes the logs of an attempt.
func (c *collectives) open(j *job) {
	c.files, c.id, c.number = nil, j.rng.Uint64(), 0
	for r := range j.ranks {
		c.files = append(c.files, j.create(fmt.Sprintf("nccl/%s-pid%d.log", j.host(r), 4000+1000*c.tries+r)))
	}
	c.tries++
}

// host of a rank.
func (j *job) host(rank int) string { return j.hosts[rank*len(j.hosts)/j.ranks] }

// step has both collectives of a step: lateness comes before the first, a slow link within the first.
func (c *collectives) step(j *job, s *step) {
	c.number++
	most := slices.Max(s.late)
	work := s.took - most - s.slowLink
	if c.usual == 0 {
		c.usual = 0.02 * s.usual
	}
	arrive := func(at float64, late []float64) []float64 {
		out := make([]float64, j.ranks)
		for r := range out {
			out[r] = at + 0.001*s.usual*j.rng.Float64()
			if late != nil {
				out[r] += late[r]
			}
		}
		return out
	}
	first := arrive(s.start+0.55*work, s.late)
	ended := slices.Max(first) + c.usual*j.uniform(0.97, 1.03) + s.slowLink
	c.write(j, "ReduceScatter", first, ended)
	second := arrive(ended+0.3*work, nil)
	c.write(j, "AllGather", second, slices.Max(second)+c.usual*j.uniform(0.97, 1.03))
}

// write has the record of each rank.
func (c *collectives) write(j *job, op string, arrived []float64, ended float64) {
	size := int64(c.usual*120e9) / int64(j.ranks) >> 10 << 10
	for r, at := range arrived {
		host := j.host(r)
		us := func(at float64) int64 { return j.when(at + c.offset[host]).UnixMicro() }
		from, to := us(at), us(ended+2e-6*j.rng.Float64())
		took := to - from
		speed := float64(size*int64(j.ranks)) / float64(took) / 1e3
		fmt.Fprintf(c.files[r], `{"header":{"id":"0x%x","rank":%d,"n_ranks":%d,"nnodes":%d},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"%s","pid":%d},`+
			`"coll_perf":{"coll":"%s","coll_sn":%d,"coll_msg_size_bytes":%d,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":%.6f,"coll_busbw_gbs":%.6f,`+
			`"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":5,"kernel_record_sn":4}]},`+
			`"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}}}`+"\n",
			c.id, r, j.ranks, len(j.hosts), to+5000, host, 4000+1000*(c.tries-1)+r,
			op, c.number, size, took, speed, speed*float64(j.ranks-1)/float64(j.ranks), from-4, from, from, to, to)
	}
}

package nccl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// flightLog writes the JSON form of PyTorch's Flight Recorder, a file per rank: pytorch/pytorch torch/csrc/distributed/c10d/FlightRecorder*, version 2.5 of the
// dump,
// with the layout of python's json.dump(indent=1).
type flightLog struct {
	*log
	files []*logfile.Log
	watch []int64 // by rank: when the watchdog looks, of the host's clock
}

const (
	flightGroup = "0"         // the default process group
	flightPoll  = 100_000_000 // ns, kWatchdogThreadSleepMillis
)

func (p *flightLog) open() error {
	for rank := range p.opt.Ranks {
		h := p.host(rank)
		f, err := p.file(fmt.Sprintf("nccl_trace_rank_%d.json", rank), h, p.opt.Ranks)
		if err != nil {
			return err
		}
		p.files = append(p.files, f)
		p.watch = append(p.watch, h.Local(h.Start)+p.rng.Int64N(flightPoll))
		p.put(f, p.head(rank))
	}
	return p.Err
}

// put writes text, on a single line with Compact.
func (p *flightLog) put(f *logfile.Log, b []byte) {
	if p.opt.Compact {
		n := 0
		for i := 0; i < len(b); i++ {
			if b[i] == '\n' {
				for i+1 < len(b) && b[i+1] == ' ' {
					i++
				}
				continue
			}
			b[n] = b[i]
			n++
		}
		b = b[:n]
	}
	p.raw(f, b)
}

// entries is the number of entries of a rank, and of the completed ones.
func (p *flightLog) entries(rank int) (all, completed int) {
	o := p.opt
	all = o.collectives()
	completed = all
	if o.MissingRank >= 0 && o.MissingFrom < all {
		completed = o.MissingFrom
		all = (o.MissingFrom/o.PerStep + 1) * o.PerStep
		if rank == o.MissingRank {
			all = completed
		}
	}
	return all, completed
}

func (p *flightLog) head(rank int) []byte {
	all, completed := p.entries(rank)
	started := strconv.Itoa(min(all, completed+1))
	if p.opt.NoTiming {
		started = "-1" // no start time
	}
	return fmt.Appendf(p.Buf[:0], `{
 "version": "2.5",
 "nccl_version": "2.21.5",
 "pg_config": {
  "%s": {
   "name": "%s",
   "desc": "default_pg",
   "ranks": "%s"
  }
 },
 "pg_status": {
  "%s": {
   "last_enqueued_collective": "%d",
   "last_started_collective": "%s",
   "last_completed_collective": "%d"
  }
 },
 "entries": [`, flightGroup, flightGroup, listOf(p.opt.Ranks), flightGroup, all, started, completed)
}

func (p *flightLog) collective(c *ncclCollective) {
	p.rec.Sequence = uint64(c.index) + 1
	p.rec.MessageSize, _ = c.buffers()
	if p.hung(c) {
		p.rec.EndUnixNano = 0
		p.rec.State = "scheduled"
		if c.index == p.opt.MissingFrom {
			p.rec.State = "started"
		}
	}
	p.ranks(c, func(rank int) int64 { return p.entry(c, rank) })
}

// seen is when the watchdog noticed an event.
func (p *flightLog) seen(rank int, at int64) int64 {
	at -= p.watch[rank]
	return p.watch[rank] + (at+flightPoll-1)/flightPoll*flightPoll
}

func (p *flightLog) entry(c *ncclCollective, rank int) int64 {
	h, f := p.host(rank), p.files[rank]
	start, end := h.Local(c.arrive[rank]), h.Local(c.leave[rank])
	state, ns := p.rec.State, int64(-1)
	if state == "" {
		state = "completed"
	}
	b := p.Buf[:0]
	if f.Operations > 0 {
		b = append(b, ',')
	}
	id := f.Operations
	f.Operations++
	b = fmt.Appendf(b, `
  {
   "record_id": %d,
   "pg_id": 0,
   "process_group": [
    "%s",
    "default_pg"
   ],
   "thread_id": "139872",
   "thread_name": "pt_main_thread",
   "collective_seq_id": %d,
   "p2p_seq_id": 0,
   "op_id": %d,
   "profiling_name": "%s",
   "time_created_ns": %d`, id, flightGroup, c.index+1, c.index+1, c.torch, start-20_000)
	if state == "completed" && !p.opt.NoTiming {
		ns = end - start
		b = strconv.AppendFloat(append(b, ",\n   \"duration_ms\": "...), float64(ns)/1e6, 'f', 6, 64)
	}
	in, out := c.buffers()
	b = p.shape(b, "input", in/2) // bfloat16
	b = p.shape(b, "output", out/2)
	started, completed := "null", "null"
	if state != "scheduled" && !p.opt.NoTiming {
		started = strconv.FormatInt(p.seen(rank, start), 10)
	}
	if state == "completed" {
		completed = strconv.FormatInt(p.seen(rank, end), 10)
	}
	if state == "started" && p.opt.NoTiming {
		state = "scheduled" // no sign of a start
	}
	b = fmt.Appendf(b, `,
   "state": "%s",
   "time_discovered_started_ns": %s,
   "time_discovered_completed_ns": %s,
   "retired": %v,
   "timeout_ms": 600000,
   "is_p2p": false
  }`, state, started, completed, state == "completed")
	p.put(f, b)
	return ns
}

// buffers are the sizes of a rank's input and output, By.
func (k *ncclKind) buffers() (in, out int64) {
	in, out = k.message, k.message
	switch k.name {
	case "AllGather":
		out = k.data
	case "ReduceScatter":
		in = k.data
	}
	return in, out
}

func (p *flightLog) shape(b []byte, which string, elements int64) []byte {
	return fmt.Appendf(b, `,
   "%s_sizes": [
    [
     %d
    ]
   ],
   "%s_dtypes": [
    "BFloat16"
   ]`, which, elements, which)
}

func (p *flightLog) close() {
	for _, f := range p.files {
		end := "\n ]\n}\n"
		if p.opt.Compact {
			end = "]}\n"
		}
		p.raw(f, append(p.Buf[:0], end...))
	}
}

// listOf is the first n ranks, as PyTorch prints a list of ranks.
func listOf(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strconv.Itoa(i)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

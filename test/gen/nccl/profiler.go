package nccl

import (
	"fmt"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// profilerLog writes the files of NCCL's example profiler, written when a communicator ends: NVIDIA/nccl plugins/profiler/example/{plugin,print_event}.cc of
// v2.30.7-1, or of 2.28 and 2.29. A file per communicator and rank, <dump>_<hash>_<rank>.json, a Chrome trace with times since the start of the plugin.
type profilerLog struct {
	*log
	files []*logfile.Log
	base  []int64 // by rank, of the host's clock
	pids  []int
	ids   []int // the next id of an event, by rank; all kinds of events share the ids, but for the steps of proxies
}

const gpuTick = 32 // ns of the GPU's globaltimer

func (p *profilerLog) open() error {
	for rank := range p.opt.Ranks {
		h := p.host(rank)
		f, err := p.file(fmt.Sprintf("nccl_profiler_%d_%d.json", p.hash, rank), h, p.opt.Ranks)
		if err != nil {
			return err
		}
		f.PID = 225_000 + 31*(rank%p.opt.perNode()) + p.rng.IntN(31)
		p.files = append(p.files, f)
		p.pids = append(p.pids, f.PID)
		p.base = append(p.base, h.Local(h.Start)-1_400_000_000-p.rng.Int64N(100_000_000))
		p.Line(f, p.Text("["), logfile.Ignored)
	}
	p.ids = make([]int, p.opt.Ranks)
	return p.Err
}

// event writes a line. Times are of the host's clock; 0 stands for no time, and is printed as 0.
func (p *profilerLog) event(rank int, name, cat, phase string, id int, at int64, args string) {
	if at != 0 {
		at -= p.base[rank]
	}
	b := fmt.Appendf(p.Buf[:0], `{"name": "%s", "cat": "%s", "ph": "%s", "id": %d, "pid": %d, "tid": 1, "ts": `, name, cat, phase, id, p.pids[rank])
	b = strconv.AppendFloat(b, float64(at)/1e3, 'f', 6, 64)
	if args != "" {
		b = append(append(append(b, `, "args": {`...), args...), '}')
	}
	p.Line(p.files[rank], append(b, "},"...), logfile.Record)
}

func (p *profilerLog) collective(c *ncclCollective) {
	p.ranks(c, func(rank int) int64 { return p.record(c, rank) })
}

func (p *profilerLog) record(c *ncclCollective, rank int) int64 {
	h := p.host(rank)
	start, stop := h.Local(c.arrive[rank])/gpuTick*gpuTick, h.Local(c.leave[rank])/gpuTick*gpuTick
	id, called := p.ids[rank], start-60_000
	p.ids[rank]++
	p.files[rank].Operations++
	quote, blank := `"`, " "
	if p.opt.InvalidTokens {
		quote, blank = "", ""
	}
	stream := fmt.Sprintf(`"Stream": %s0x5020000567d0%s`, quote, quote)
	p.event(rank, "Group API", "GROUP_API", "b", id, called, fmt.Sprintf(`"groupApiId": %d, "groupDepth":%s1`, id, blank))
	p.event(rank, "KernelLaunch", "KERNEL_LAUNCH", "b", id, 0, fmt.Sprintf(`"groupId": %d, %s`, id, stream))
	p.event(rank, "KernelLaunch", "KERNEL_LAUNCH", "e", id, called+20_000, "")
	count, datatype, size := c.message/4, "ncclFloat32", c.message/4
	p.event(
		rank, c.name, "COLL_API", "b", id, 0,
		fmt.Sprintf(`"count": %d, "datatype": %s%s%s, "root": 0, "GraphCaptured":%s0, %s`, size, quote, datatype, quote, blank, stream),
	)
	if c.name == "AllGather" || c.name == "Broadcast" { // src/enqueue.cc, collTaskAppend: bytes
		count, datatype = c.message, "ncclInt8"
	}
	p.event(rank, c.name, "COLL", "b", id, called+22_000,
		fmt.Sprintf(`"SeqNum": %d, "CommHash": %d, "Rank": %d, "Count": %d, "Datatype": "%s", "Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": %d`,
			c.sequence, p.hash, rank, count, datatype, p.opt.Channels))
	for ch := range p.opt.Channels {
		late := int64(0) // the first channel has the times of the kernel
		if ch > 0 {
			late = gpuTick * p.rng.Int64N(8)
		}
		p.event(rank, "KernelCh", "GPU", "b", 0, start+late+1500, fmt.Sprintf(`"Channel": %d, "StartGpuClk": %d, "StopGpuClk": %d`, ch, start+late, stop-late))
		p.event(rank, "KernelCh", "GPU", "e", 0, stop-late+1500, "")
	}
	if p.opt.Verbose {
		p.proxy(rank, id, c.message, start, stop)
	}
	p.event(rank, c.name, "COLL", "e", id, stop+2500, "")
	p.event(rank, c.name, "COLL_API", "e", id, called+24_000, "")
	p.event(rank, "Group API", "GROUP_API", "e", id, called+26_000, "")
	return stop - start
}

// proxy writes a two-step operation of the network's proxy, in the second half of the time.
func (p *profilerLog) proxy(rank, id int, size, start, stop int64) {
	from := (start + stop) / 2
	at := func(eighths int64) int64 { return from + (stop-from)*eighths/8 }
	args := fmt.Sprintf(`"Channel": 0, "Peer": %d, "Steps": 2, "ChunkSize": 4194304, "transSize": %d`, (rank+1)%p.opt.Ranks, size/int64(p.opt.Channels))
	p.event(rank, "ScheduleSend", "PROXY", "b", id, at(0), args)
	p.event(rank, "ScheduleSend", "PROXY", "e", id, at(1), "")
	p.event(rank, "ProgressSend", "PROXY", "b", id, at(1), args)
	for step := range 2 {
		first := int64(1 + 3*step)
		for i, name := range []string{"SendGpuWait", "SendPeerWait", "SendWait"} {
			p.event(rank, name, "NET", "b", 2*id+step, at(first+int64(i)), fmt.Sprintf(`"Step": %d`, step))
			p.event(rank, name, "NET", "e", 2*id+step, at(first+int64(i)+1), "")
		}
	}
	p.event(rank, "ProgressSend", "PROXY", "e", id, at(8), "")
}

func (p *profilerLog) close() {
	if p.opt.NoEnd {
		return
	}
	for _, f := range p.files {
		p.Line(f, p.Text("{}]"), logfile.Ignored)
	}
}

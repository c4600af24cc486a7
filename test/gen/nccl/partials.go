package nccl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/collectives/partial"
	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// The layouts of `gen partials`.
const (
	Layout3D   = "3d"
	LayoutHSDP = "hsdp"
	LayoutFSDP = "fsdp"
)

const (
	gpusOfHost = 8
	slots      = 10        // consecutive operations of a rank in a step
	dataSize   = 256 << 20 // By, S of a collective
	jitter     = 0.01      // standard deviation of a rank's compute time
)

// PartialsOptions are of a job whose hosts send packed records of collectives.
type PartialsOptions struct {
	Layout    string
	GPUs      int
	TP, PP    int     // of Layout3D
	Shard     int     // of LayoutHSDP: ranks that share the parameters
	Rate      float64 // records of a GPU per second
	Duration  time.Duration
	Interval  time.Duration // between messages of a host
	Run       string
	Kafka     []string // brokers; empty: to Out
	Topic     string
	Out       string
	Truth     string
	Seed      uint64
	Start     time.Time
	Live      bool
	SlowRank  int     // of the job; -1: none
	SlowBy    float64 // of its compute time
	SlowFrom  int     // step
	Missing   int     // rank of the job whose records stop; -1: none
	MissingAt int     // step
	AwayHost  int     // whose agent is cut off; -1: none
	AwayFrom  time.Duration
	AwayFor   time.Duration
}

// DefaultPartialsOptions are the flags' defaults.
func DefaultPartialsOptions() PartialsOptions {
	return PartialsOptions{
		Layout: Layout3D, GPUs: 1000, TP: 8, PP: 5, Shard: 8, Rate: 100, Duration: 10 * time.Second, Interval: time.Second, Run: "job-17", Topic: "otlp_nccl",
		Out: "partials.bin", Seed: 1, SlowRank: -1, SlowBy: 0.05, Missing: -1, AwayHost: -1, AwayFor: time.Minute,
	}
}

// PartialsRun sums up a run of `gen partials`: the last line of its truth, {"run": PartialsRun}. The lines before are a Collective each, with ranks of the
// communicator. Send and Recv are not joined: their line has all records of the ranks of a communicator in one step.
type PartialsRun struct {
	Layout        string   `json:"layout"`
	Seed          uint64   `json:"seed"`
	Ranks         int      `json:"ranks"`
	Hosts         int      `json:"hosts"`
	Communicators int      `json:"communicators"`
	Steps         int      `json:"steps"`
	Collectives   int      `json:"collectives"` // joined ones
	Records       int64    `json:"records"`
	Messages      int64    `json:"messages"`
	Bytes         int64    `json:"bytes"` // of the messages
	StartUnixNano int64    `json:"start_unix_nano"`
	EndUnixNano   int64    `json:"end_unix_nano"`
	SlowRank      int      `json:"slow_rank"`    // of the job; -1: none
	MissingRank   int      `json:"missing_rank"` // as SlowRank
	Slow          []Member `json:"slow,omitempty"`
}

// Member is a rank of a communicator.
type Member struct {
	Communicator string `json:"communicator"`
	Rank         int    `json:"rank"`
}

// phase is a part of the layout: communicators that do the same at the same time.
type phase struct {
	name      string
	n, stride int // ranks of a communicator, and the distance of neighbours
	groups    []*group
}

// group is a communicator.
type group struct {
	*phase
	id     string
	first  int // its rank 0
	counts map[*operation]uint64
	done   []done
	before int // number dropped from done, because all hosts have sent them
}

// done is one operation of a communicator's ranks.
type done struct {
	*ncclKind
	us []int32 // by rank: printed duration; -1: no record
}

// slot is the operation of all ranks in one part of a step.
type slot struct {
	*phase
	op *operation
}

type host struct {
	name    string
	members []members
	held    []message // while its agent is cut off
	dumped  int64     // the time of the last dump, Unix ns
}

// members are the ranks of a communicator on a host.
type members struct {
	*group
	ranks []int
	sent  int // number of operations sent
}

// message is a message to Kafka with its key.
type message struct{ key, value []byte }

// pointToPoint are operations that are not joined.
var pointToPoint = []operation{{name: "Recv"}, {name: "Send"}}

// partials simulates the job and packs the records.
type partials struct {
	writer.Sink
	opt   *PartialsOptions
	rng   *rand.Rand
	plan  []slot
	hosts []host
	now   []int64 // by rank: when the rank is free
	run   PartialsRun
	rec   Collective
	send  func(m message) error

	writer partial.Writer
	op     op.Op
}

// GeneratePartials sends the messages of the agents of a job's hosts, and writes the truth. A context that ends stops it early without an error.
func GeneratePartials(ctx context.Context, opt PartialsOptions, stdout io.Writer) (PartialsRun, error) {
	return generatePartials(ctx, opt, logfile.RealClock, func() (func(message) error, func() error, error) { return opt.open(ctx, stdout) })
}

func generatePartials(
	ctx context.Context, opt PartialsOptions, clock logfile.Clock, open func() (send func(message) error, finish func() error, err error),
) (PartialsRun, error) {
	if err := opt.validate(); err != nil {
		return PartialsRun{}, err
	}
	start := opt.Start
	if start.IsZero() {
		start = clock.Now()
		if !opt.Live {
			start = start.Add(-opt.Duration)
		}
	}
	p := &partials{Sink: writer.Sink{Sink: logfile.Sink{Clock: clock, Paced: opt.Live, Ctx: ctx}}, opt: &opt, rng: rand.New(rand.NewPCG(opt.Seed, 0x7061_7274))}
	p.run = PartialsRun{
		Layout: opt.Layout, Seed: opt.Seed, Ranks: opt.GPUs, SlowRank: opt.SlowRank, MissingRank: opt.Missing,
		StartUnixNano: start.UnixNano(), EndUnixNano: start.UnixNano(),
	}
	p.layout()
	send, finish, err := open()
	if err != nil {
		return p.run, err
	}
	p.send = send
	err = p.OpenTruth(opt.truthPath())
	if err == nil {
		p.simulate()
		err = p.Err
	}
	err = errors.Join(err, finish())
	return p.run, p.Close(&p.run, new([]logfile.File), err)
}

// layout makes the communicators and the plan of a step.
func (p *partials) layout() {
	o := p.opt
	width := len(strconv.Itoa(o.GPUs/gpusOfHost - 1))
	for i := range (o.GPUs + gpusOfHost - 1) / gpusOfHost {
		p.hosts = append(p.hosts, host{name: fmt.Sprintf("gpu-node-%0*d", width, i)})
	}
	p.run.Hosts = len(p.hosts)
	p.now = make([]int64, o.GPUs)
	for i := range p.now {
		p.now[i] = p.run.StartUnixNano
	}
	named := func(name string) *operation {
		return &ncclOperations[slices.IndexFunc(ncclOperations, func(op operation) bool { return op.name == name })]
	}
	reduce, gather, scatter := named("AllReduce"), named("AllGather"), named("ReduceScatter")
	add := func(f *phase, times int, op *operation) {
		for range times {
			p.plan = append(p.plan, slot{f, op})
		}
	}
	switch o.Layout {
	case Layout3D: // ranks in Megatron's order: the ranks of a TP group are neighbours, then DP, then PP
		tp, dp := p.communicators("TP", o.TP, 1), o.GPUs/o.TP/o.PP
		stages, data := p.communicators("PP", o.PP, o.TP*dp), p.communicators("DP", dp, o.TP)
		add(tp, 6, reduce)
		add(stages, 1, &pointToPoint[0])
		add(stages, 1, &pointToPoint[1])
		add(data, 1, scatter)
		add(data, 1, gather)
	case LayoutHSDP:
		shard, replicas := p.communicators("shard", o.Shard, 1), p.communicators("replicas", o.GPUs/o.Shard, o.Shard)
		add(shard, 6, gather)
		add(shard, 3, scatter)
		add(replicas, 1, reduce)
	case LayoutFSDP:
		all := p.communicators("FSDP", o.GPUs, 1)
		add(all, 6, gather)
		add(all, 3, scatter)
		add(all, 1, reduce)
	}
}

// communicators makes the communicators of n ranks each, stride apart. A single rank needs none.
func (p *partials) communicators(name string, n, stride int) *phase {
	f := &phase{name: name, n: n, stride: stride}
	for first := range p.opt.GPUs {
		if n == 1 || first/stride%n != 0 {
			continue
		}
		g := &group{phase: f, id: fmt.Sprintf("0x%x", p.rng.Uint64()|1<<63), first: first, counts: make(map[*operation]uint64)}
		f.groups = append(f.groups, g)
		for rank := range n {
			at := first + rank*stride
			h := &p.hosts[at/gpusOfHost]
			if k := len(h.members); k == 0 || h.members[k-1].group != g {
				h.members = append(h.members, members{group: g})
			}
			m := &h.members[len(h.members)-1]
			m.ranks = append(m.ranks, rank)
			if at == p.opt.SlowRank {
				p.run.Slow = append(p.run.Slow, Member{g.id, rank})
			}
		}
	}
	p.run.Communicators += len(f.groups)
	return f
}

// simulate goes through the steps. The hosts send in turn within an interval, as processes dump, and so split collectives over messages.
func (p *partials) simulate() {
	o := p.opt
	step := slots / o.Rate
	steps := max(1, int(math.Round(o.Duration.Seconds()/step)))
	every := max(1, int(math.Round(o.Interval.Seconds()/step)))
	for i := range steps {
		if p.Err != nil || p.Ctx.Err() != nil {
			break
		}
		for k := range p.plan {
			p.slot(i, k)
		}
		p.run.Steps++
		at := slices.Max(p.now)
		p.run.EndUnixNano = at
		p.Wait(at)
		for k := range p.hosts {
			if (i+k)%every == 0 {
				p.dump(k, at)
			}
		}
		if i%every == every-1 {
			p.forget()
		}
	}
	for k := range p.hosts {
		p.dump(k, p.run.EndUnixNano)
		p.deliver(&p.hosts[k])
	}
}

// slot has all communicators of a phase do one operation.
func (p *partials) slot(step, k int) {
	s := p.plan[k]
	compute, transfer := int64(0.7e9/p.opt.Rate), int64(0.2e9/p.opt.Rate)
	slow := int64(0)
	if step >= p.opt.SlowFrom {
		slow = int64(p.opt.SlowBy * float64(compute))
	}
	for _, g := range s.groups {
		kind := &ncclKind{operation: s.op, index: p.run.Collectives, sequence: g.counts[s.op], data: dataSize, message: dataSize}
		if s.op.shared {
			kind.message = dataSize / int64(g.n) &^ 3
			kind.data = kind.message * int64(g.n)
		}
		g.counts[s.op]++
		d := done{ncclKind: kind, us: make([]int32, g.n)}
		p.rec = Collective{
			Index: kind.index, Step: step, Communicator: g.id, Operation: kind.name, Sequence: kind.sequence, MessageSize: kind.message, DataSize: kind.data,
			Missing: p.rec.Missing[:0],
		}
		if s.op.torch == "" {
			p.sends(g, &d, transfer)
		} else {
			p.collective(g, &d, compute, slow, int64(float64(transfer)*(1+bandwidthSD*logfile.Noise(p.rng))))
		}
		for rank, us := range d.us {
			if us >= 0 && g.first+rank*g.stride == p.opt.Missing && step >= p.opt.MissingAt {
				p.rec.Missing = append(p.rec.Missing, rank)
				d.us[rank] = -1
			} else if us >= 0 {
				p.rec.record(rank, int64(us)*1000)
			}
		}
		if t := p.rec.ShortestNS; t > 0 && s.op.torch != "" {
			p.rec.AlgBandwidth = float64(kind.data) / (float64(t) / 1e9)
			p.rec.BusBandwidth = p.rec.AlgBandwidth * kind.traffic(g.n)
		}
		g.done = append(g.done, d)
		p.run.Records += int64(p.rec.Records)
		if err := p.Truth(&p.rec); err != nil && p.Err == nil {
			p.Err = err
		}
	}
}

// collective lets the ranks compute, wait for the last, and leave together.
func (p *partials) collective(g *group, d *done, compute, slow, transfer int64) {
	first, begun, before := int64(math.MaxInt64), int64(0), int64(0)
	for rank := range g.n {
		at := g.first + rank*g.stride
		p.now[at] += int64(float64(compute) * (1 + jitter*logfile.Noise(p.rng)))
		if at == p.opt.SlowRank {
			p.now[at] += slow
		}
		arrive := p.now[at]
		first = min(first, arrive)
		if arrive > begun {
			begun, before = arrive, begun
			p.rec.LateRank = rank
		} else {
			before = max(before, arrive)
		}
	}
	end := begun + transfer
	for rank := range g.n {
		at := g.first + rank*g.stride
		d.us[rank] = int32((end - p.now[at] + 500) / 1000)
		p.now[at] = end
	}
	p.rec.StartUnixNano, p.rec.BegunUnixNano, p.rec.EndUnixNano, p.rec.TransferNS = first, begun, end, transfer
	p.rec.LateNS, p.rec.CostNS = begun-first, (begun-before)*int64(g.n-1)
	p.run.Collectives++
}

// sends lets each stage of a pipeline but the first receive, and each but the last send.
func (p *partials) sends(g *group, d *done, transfer int64) {
	edge := g.n - 1
	if d.name == "Recv" {
		edge = 0
	}
	for rank := range d.us {
		took := int64(float64(transfer) * (1 + bandwidthSD*logfile.Noise(p.rng)))
		p.now[g.first+rank*g.stride] += took
		d.us[rank] = int32((took + 500) / 1000)
	}
	d.us[edge] = -1
}

// dump has the agent of a host send the operations since the last dump: a message for each communicator, a span for each log.
func (p *partials) dump(k int, at int64) {
	h, o := &p.hosts[k], p.opt
	for i := range h.members {
		m := &h.members[i]
		out := spans.NewBatch("", "")
		for _, rank := range m.ranks {
			p.pack(out, h, m, rank, at)
		}
		m.sent = m.before + len(m.done)
		for _, msg := range out.Messages() {
			value, err := new(ptrace.ProtoMarshaler).MarshalTraces(msg.Traces)
			if err != nil && p.Err == nil {
				p.Err = err
			}
			trace := spans.KeyTraceID(o.Run, spans.SpanNCCLPartial, []byte(m.id))
			h.held = append(h.held, message{fmt.Appendf(nil, "%x", trace[:]), value}) // the key of a kafka exporter with partition_traces_by_id
			p.run.Messages++
			p.run.Bytes += int64(len(value))
		}
	}
	h.dumped = at
	if since := time.Duration(at - p.run.StartUnixNano); k != o.AwayHost || since < o.AwayFrom || since >= o.AwayFrom+o.AwayFor {
		p.deliver(h)
	}
}

// pack packs the operations of a rank, with the values of its log.
func (p *partials) pack(out *spans.Batch, h *host, m *members, rank int, at int64) {
	at0 := m.first + rank*m.stride
	pid := int64(40_000 + 97*(at0%gpusOfHost))
	id, name, hostName := []byte(m.id), []byte(m.name), []byte(h.name)
	nodes := int32(min(m.n, (m.n*m.stride+gpusOfHost-1)/gpusOfHost))
	for i, d := range m.done[m.sent-m.before:] {
		us := d.us[rank]
		if us < 0 {
			continue
		}
		o := &p.op
		o.Init()
		o.Comm, o.CommName, o.CommSize, o.Nodes, o.Rank, o.Host, o.PID = id, name, int32(m.n), nodes, int32(rank), hostName, pid
		o.Kind, o.Seq, o.HasSeq, o.Size, o.Total = op.KindOf(d.name), d.sequence, d.torch != "", d.message, d.data
		o.Duration, o.Waits, o.Timing, o.ReportedUnit = int64(us)*1000, true, timing, "GB/s"
		o.End, o.Time = at+int64(i)*1000, spans.TimeSynthetic
		switch d.name {
		case "Recv":
			o.Peer = int32(rank - 1)
		case "Send":
			o.Peer = int32(rank + 1)
		default:
			gbs := float64(d.data) / 1e3 / float64(us)
			o.ReportedAlg, o.ReportedBus = math.Round(gbs*1e6)*1e3, math.Round(gbs*d.traffic(m.n)*1e6)*1e3
		}
		p.writer.Add(o)
	}
	if p.writer.Len() == 0 {
		return
	}
	s := partial.Stretch{
		From:    collectives.From{Run: p.opt.Run, Path: fmt.Sprintf("/var/log/nccl/%s-pid%d.log", h.name, pid), Family: "nccl_inspector"},
		Service: "nccl", Host: h.name, ReadTo: h.dumped,
	}
	p.writer.Pack(&s)
	s.Add(out)
}

var timing = []byte("kernel_gpu")

// deliver sends the messages of a host.
func (p *partials) deliver(h *host) {
	for _, m := range h.held {
		if p.Err == nil {
			p.Err = p.send(m)
		}
	}
	clear(h.held)
	h.held = h.held[:0]
}

// forget drops operations that all hosts have sent.
func (p *partials) forget() {
	sent := make(map[*group]int)
	for i := range p.hosts {
		for _, m := range p.hosts[i].members {
			if n, ok := sent[m.group]; !ok || m.sent < n {
				sent[m.group] = m.sent
			}
		}
	}
	for g, n := range sent {
		g.done = slices.Delete(g.done, 0, n-g.before)
		g.before = n
	}
}

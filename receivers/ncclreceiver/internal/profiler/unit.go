package profiler

import (
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
	"github.com/trainbridge/trainbridge/spans"
)

// frame is an open event: its beginning was read, its end was not.
type frame struct {
	category category
	name     string
	id, pid  int64
	begin    int64 // ts of the event's beginning: ns since the profiler's start; 0: unknown
	op       int32 // index in Parser.ops of the operation that the event is, or stands in; -1: none
	detail   int32 // index in the operation's Details of the detail that was made of the event; -1: none
}

// pending is an operation of the current unit. Its times, also the Start and End of its details, are as logged until finish converts them: ns of the GPU's
// clock (isGPUTime), else ns since the profiler's start (ts). 0: unknown.
type pending struct {
	op         op.Op
	comm       uint64
	begin, end int64 // ts of the beginning and the end of the operation's own event
	ended      bool  // the end was read, with a ts
	// Of the parts that the plugin waits for (KernelCh, PROXY): the number begun, the number ended, and the last end.
	parts, partsEnded int
	lastEnd           int64
	// Of kernels with clocks: the numbers started and stopped, the first start and the last stop.
	started, stopped int32
	start, stop      int64
}

// A GPU's clock between these bounds is taken as Unix time, ns: from 2001 to 2096. Other GPUs count ticks since boot.
const minEpoch, maxEpoch = 1e18, 4e18

// isGPUTime reports whether a logged time of a pending operation is of the GPU's clock, ns since the epoch, and not a ts, ns since the profiler's start: no
// profiler runs for the 31 years that a ts would need to reach minEpoch.
func isGPUTime(t int64) bool { return t >= minEpoch }

const detailBytes = int(unsafe.Sizeof(op.Detail{}))

// find returns the index of the open event with the current end; -1: none.
func (p *Parser) find(c category) int {
	e := &p.event
	for i := len(p.stack) - 1; i >= 0; i-- {
		if f := &p.stack[i]; f.category == c && f.id == e.id && f.pid == e.pid && f.name == string(e.name) {
			return i
		}
	}
	return -1
}

// begin opens the current event, of category c: an operation, a detail of the operation around it, or an event that only has others within.
func (p *Parser) begin(c category) {
	if !p.open {
		p.open = true
		p.text = p.text[:0] // the previous operations are no longer in use
	}
	// An event still open when another of its level begins has lost its end.
	n := len(p.stack)
	for n > 0 && levels[p.stack[n-1].category] >= levels[c] {
		n--
	}
	p.stack = p.stack[:n]
	e := &p.event
	f := frame{category: c, name: nameOf(e.name), id: e.id, pid: e.pid, begin: e.ts, op: -1, detail: -1}
	if n := len(p.stack); n > 0 {
		f.op = p.stack[n-1].op
	}
	switch c {
	case group:
		p.stream = op.Unknown
	case api:
		p.stream = streamOf(e.stream)
	case collective, pointToPoint, copyEngine:
		f.op = p.operation(c, f.name)
	case gpu, proxy, net, netPlugin:
		if f.op >= 0 {
			f.detail = p.detail(c, f.name)
		}
	}
	p.stack = append(p.stack, f)
}

// operation adds the operation of the current event and returns its index. What the event lacks comes from the file's name: communicator, rank and host.
func (p *Parser) operation(c category, name string) int32 {
	e := &p.event
	n := len(p.ops)
	if n < cap(p.ops) {
		p.ops = p.ops[:n+1]
	} else {
		p.ops = append(p.ops, pending{})
	}
	q := &p.ops[n]
	*q = pending{op: op.Op{Details: q.op.Details}, begin: e.ts, start: math.MaxInt64}
	o := &q.op
	o.Init()
	o.Kind = op.KindOf(name)
	if o.Kind == op.Other {
		o.Name = p.keep(e.name)
	}
	hash, known := e.comm, e.hasComm
	if !known {
		hash, known = p.origin.comm, p.origin.hasComm
	}
	q.comm = hash
	if known {
		from := len(p.text)
		p.text = strconv.AppendUint(append(p.text, "0x"...), hash, 16)
		o.Comm = p.text[from:len(p.text):len(p.text)]
	}
	o.Rank = e.rank
	if o.Rank < 0 {
		o.Rank = p.origin.rank
	}
	o.Host, o.PID = p.origin.host, e.pid
	o.Seq, o.HasSeq = e.seq, e.hasSeq && c == collective
	if c == pointToPoint {
		o.Peer = e.peer
	}
	if size := bytesOf(e.datatype); size > 0 && e.hasCount && e.count <= math.MaxInt64/size {
		o.Size = int64(e.count * size)
		switch o.Kind {
		case op.AllReduce, op.Broadcast, op.Reduce, op.Send, op.Recv:
			o.Total = o.Size
		}
		// For other operations Count is of one rank's sends or receives, and the number of ranks is not in the trace.
	}
	o.Algorithm, o.Protocol, o.Datatype = p.keep(e.algorithm), p.keep(e.protocol), p.keep(e.datatype)
	o.Channels, o.Stream = max(0, e.channels), p.stream
	if c == copyEngine {
		o.Duration, o.Timing = e.gpuTime, timingCopyEngine
		if o.Duration < 0 {
			o.Duration, o.Timing = e.cpuTime, timingCPU
		}
	}
	return int32(n)
}

// detail adds the current event to the details of the operation that is open around it, and returns its index there; -1: the event is no detail. The caller has
// made sure that an operation is open.
func (p *Parser) detail(c category, name string) int32 {
	e := &p.event
	parent := p.stack[len(p.stack)-1]
	q := &p.ops[parent.op]
	d := op.Detail{Start: e.ts, Duration: op.Unknown, Channel: e.channel, Peer: e.peer, Step: e.step, Size: e.size, Under: op.Unknown}
	switch c {
	case gpu:
		if name != "KernelCh" { // KernelStep: thousands
			return -1
		}
		d.Name = spans.SpanNCCLChannel
		q.parts++
		p.kernel(q, &d)
	case proxy:
		// In the trace the PROXY event stands within the kernel of its channel, but it is not a part of the kernel.
		d.Name, d.Operation = spans.SpanNCCLProxyOp, name
		if strings.HasSuffix(name, "Send") {
			d.Direction = "send"
		} else if strings.HasSuffix(name, "Recv") {
			d.Direction = "receive"
		}
		q.parts++
	default:
		d.Name, d.Operation = spans.SpanNCCLProxyStep, name
		if parent.detail >= 0 && parent.category != gpu { // else the PROXY event is missing: below the operation itself
			above := &q.op.Details[parent.detail] // of the PROXY event, or for a plugin's event of the NET event
			d.Under, d.Channel, d.Peer, d.Direction = parent.detail, above.Channel, above.Peer, above.Direction
			if c == netPlugin {
				d.Step = above.Step
			}
		}
	}
	q.op.Details = append(q.op.Details, d)
	p.room += detailBytes
	return int32(len(q.op.Details) - 1)
}

// kernel puts the GPU's clocks of a KernelCh, the current event, into the operation and its detail, unless they count ticks since boot. The first KernelCh sets
// the clock of the trace; the first KernelCh of a GPU, of maxGPUs at most, relates the GPU's clock to the trace.
func (p *Parser) kernel(q *pending, d *op.Detail) {
	e := &p.event
	if e.start < minEpoch || e.start >= maxEpoch {
		return
	}
	start := int64(e.start)
	d.Start = start
	q.started++
	q.start = min(q.start, start)
	if stop := int64(e.stop); e.stop < maxEpoch && stop >= start {
		d.End, d.Duration = stop, stop-start
		q.stopped++
		q.stop = max(q.stop, stop)
	}
	if e.ts == 0 { // nothing to relate the clock to
		return
	}
	if !p.anchored {
		p.anchored, p.anchor = true, start-e.ts
	}
	if p.device(q) == nil && len(p.gpus) < maxGPUs {
		p.gpus = append(p.gpus, device{q.comm, q.op.Rank, start - e.ts})
	}
}

// device returns the known clock of an operation's GPU; nil: none.
func (p *Parser) device(q *pending) *device {
	for i := range p.gpus {
		if d := &p.gpus[i]; d.comm == q.comm && d.rank == q.op.Rank {
			return d
		}
	}
	return nil
}

// end ends the event at stack[n] with the ts of the current line. Events above in the stack, whose own end is not in the trace, are closed too, without a time.
func (p *Parser) end(n int) {
	f := p.stack[n]
	p.stack = p.stack[:n]
	if f.op < 0 { // a group or a call, or an event whose operation has left (emit)
		return
	}
	q, ts := &p.ops[f.op], p.event.ts
	switch {
	case f.category.isOperation():
		q.end, q.ended = ts, ts > 0
	case f.detail >= 0:
		q.endDetail(&f, ts)
	}
}

// endDetail ends the detail of an event at ts, ns since the profiler's start. 0: the end is unknown, and the detail stays as begun.
func (q *pending) endDetail(f *frame, ts int64) {
	if ts == 0 {
		return
	}
	d := &q.op.Details[f.detail]
	if !isGPUTime(d.Start) { // else kernel has set Start, End and Duration by the GPU's clock, which is more exact
		d.End = ts
		if f.begin > 0 && ts >= f.begin {
			d.Duration = ts - f.begin
		}
	}
	if f.category == gpu || f.category == proxy { // the parts that the plugin waits for
		q.partsEnded++
		q.lastEnd = max(q.lastEnd, ts)
	}
}

// keep copies bytes that have to outlive the line, until the operations of the unit are used.
func (p *Parser) keep(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	from := len(p.text)
	p.text = append(p.text, b...)
	return p.text[from:len(p.text):len(p.text)]
}

// streamOf reads the pointer of a CUDA stream, such as 0x262ca50; op.Unknown for any other text.
func streamOf(v []byte) int64 {
	if len(v) < 3 || v[0] != '0' || v[1] != 'x' || len(v) > 2+15 { // 15 digits fit into int64
		return op.Unknown
	}
	n := int64(0)
	for _, c := range v[2:] {
		switch {
		case ascii.IsDigit(c):
			n = n<<4 | int64(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | int64(c|0x20-'a'+10) // 0x20: the small letter
		default:
			return op.Unknown
		}
	}
	return n
}

// endUnit ends the unit: its operations are added to out.
func (p *Parser) endUnit(out *parse.Out) {
	p.emit(out)
	p.open, p.stack, p.stream = false, p.stack[:0], op.Unknown
}

// emit moves the operations so far to out. Events that are still open belong to no operation from now on.
func (p *Parser) emit(out *parse.Out) {
	for i := range p.ops {
		q := &p.ops[i]
		p.finish(q)
		o := out.Add()
		*o, q.op = q.op, *o // keeps the memory of both
	}
	for i := range p.stack {
		p.stack[i].op, p.stack[i].detail = -1, -1
	}
	p.ops, p.lines, p.room = p.ops[:0], 0, 0
}

var (
	timingGPU        = []byte("kernel_gpu") // as NCCL Inspector's coll_timing_source
	timingCPU        = []byte("collective_cpu")
	timingCopyEngine = []byte("copy_engine_gpu")
)

// finish converts the logged times of an operation to Unix times, and sets the duration: of the kernels by the GPU's clock, else of the operation's event, if
// all parts have ended within. Without a duration the operation begins with its first kernel, if known. An operation without an end of its own is still running
// (op.Started), unless the kernels of all its channels have stopped.
func (p *Parser) finish(q *pending) {
	o := &q.op
	ahead := int64(0) // how far this GPU's clock is ahead of the clock of the trace
	if d := p.device(q); d != nil {
		ahead = d.offset - p.anchor
	}
	for i := range o.Details {
		d := &o.Details[i]
		d.Start, d.End = p.unixOf(d.Start, ahead), p.unixOf(d.End, ahead)
	}
	if !q.ended && (o.Channels == 0 || q.stopped < o.Channels) {
		o.State = op.Started
	}
	begin := q.begin
	switch {
	case o.Duration >= 0: // of a copy engine
	case q.started > 0 && q.stopped == q.started:
		begin, o.Duration, o.Waits, o.Timing = q.start, q.stop-q.start, true, timingGPU
	case q.begin > 0 && q.parts > 0 && q.partsEnded == q.parts && q.end >= q.lastEnd && q.end >= q.begin:
		o.Duration, o.Timing = q.end-q.begin, timingCPU
	case q.started > 0:
		begin = q.start
	}
	o.Time = spans.TimeSynthetic
	o.Start = p.unixOf(begin, ahead)
	if o.Start > 0 {
		o.Time = spans.TimeAnchored
		if o.Duration >= 0 {
			o.End = o.Start + o.Duration
		}
	}
}

// unixOf returns a logged time in Unix ns; 0: unknown. ahead is how far the GPU's clock is ahead of the clock of the trace.
func (p *Parser) unixOf(t, ahead int64) int64 {
	switch {
	case t == 0:
		return 0
	case isGPUTime(t):
		return t - ahead
	case p.anchored:
		return t + p.anchor
	}
	return 0
}

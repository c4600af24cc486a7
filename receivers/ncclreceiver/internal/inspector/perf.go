package inspector

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// gigabyteUnit is the unit of the plugin's bandwidths: 1e9 By/s.
const gigabyteUnit = "GB/s"

// trace is the verbose trace of the current operation, Unix ns; 0: none.
type trace struct {
	start                   int64 // of the call: the CPU begins to enqueue
	kernelStart, kernelStop int64 // the first start and the last stop of a kernel
	kernels                 int32 // number of kernels, one a channel
}

// kernelEvent is one channel's kernel.
type kernelEvent struct {
	channel     int32
	start, stop int64 // Unix ns; 0: unknown
	duration    int64 // ns, as logged; op.Unknown: not logged
}

var noKernelEvent = kernelEvent{channel: op.Unknown, duration: op.Unknown}

// perf reads the value at b[i] of the member n of "coll_perf" or "p2p_perf" into the current operation, and returns the end of the value (-1: malformed), as
// all readers of members do.
func (p *Parser) perf(b []byte, i int, n name) int {
	o := p.op
	switch n {
	case operation:
		o.Name, i = p.text(b, i)
	case sequence:
		var v uint64
		v, i = p.integer(b, i)
		if v != unknown {
			o.Seq, o.HasSeq = v, true
		}
	case messageSize:
		o.Size, i = p.int64(b, i)
	case execTime:
		o.Duration, i = p.micros(b, i)
	case timing:
		o.Timing, i = p.text(b, i)
	case algBandwidth:
		o.ReportedAlg, i = p.gigabytes(b, i)
	case busBandwidth:
		o.ReportedBus, i = p.gigabytes(b, i)
	case algorithm:
		o.Algorithm, i = p.known(b, i)
	case protocol:
		o.Protocol, i = p.known(b, i)
	case peer:
		o.Peer, i = p.int32(b, i)
	case channels:
		o.Channels, i = p.int32(b, i)
	case traceTS:
		i = p.object(b, i, perfTrace)
	case kernelEvents: // of the fork with nested events
		i = p.list(b, i, kernelObject)
	default:
		i = skip(b, i)
	}
	return i
}

// known reads the text at b[i], and returns the text and its end; "unknown" is the plugin's word for none, and gives nil.
func (p *Parser) known(b []byte, i int) ([]byte, int) {
	t, i := p.text(b, i)
	if string(t) == "unknown" {
		t = nil
	}
	return t, i
}

// perfTrace reads a member of "event_trace_ts". The numbers of "event_trace_sn" are the order of the callbacks, redundant with the times.
func (p *Parser) perfTrace(b []byte, i int, n name) int {
	switch n {
	case opStart:
		p.trace.start, i = p.stamp(b, i)
	case kernelEvents:
		i = p.list(b, i, kernelObject)
	default:
		i = skip(b, i)
	}
	return i
}

// kernelMember reads a member of one of "kernel_events". In a fork's "events" the times are one level below; the times of its proxies have other names.
func (p *Parser) kernelMember(b []byte, i int, n name) int {
	if n == traceTS {
		return p.object(b, i, kernelTimes)
	}
	return p.kernel(b, i, n)
}

// kernel reads the value at b[i] of the member n into the current kernel: channel, times and duration. It returns the end of the value; -1: malformed.
func (p *Parser) kernel(b []byte, i int, n name) int {
	e := &p.kernelEvent
	switch n {
	case channel:
		e.channel, i = p.int32(b, i)
	case kernelStart:
		e.start, i = p.stamp(b, i)
	case kernelStop:
		e.stop, i = p.stamp(b, i)
	case kernelTime:
		e.duration, i = p.micros(b, i)
	default:
		i = skip(b, i)
	}
	return i
}

// addKernel adds the kernel of a channel to the details of the operation, unless no time and no duration of the kernel is known.
func (p *Parser) addKernel() {
	e, t := &p.kernelEvent, &p.trace
	if e.channel != op.Unknown {
		t.kernels++
	}
	// The logged duration, cut to microseconds, must agree with start and stop. In ACCL's logs these are ticks of the GPU's clock, and of no use as times.
	if took := e.stop - e.start; e.duration != op.Unknown && (took < e.duration || took >= e.duration+1000) {
		e.start, e.stop = 0, 0
	}
	if e.start == 0 && e.stop == 0 && e.duration == op.Unknown {
		return
	}
	if e.start > 0 && (t.kernelStart == 0 || e.start < t.kernelStart) {
		t.kernelStart = e.start
	}
	t.kernelStop = max(t.kernelStop, e.stop)
	p.op.Details = append(p.op.Details, op.Detail{
		Name: spans.SpanNCCLChannel, Start: e.start, End: e.stop, Duration: elapsed(e.duration, e.start, e.stop), Channel: e.channel,
		Peer: op.Unknown, Step: op.Unknown, Size: op.Unknown, Under: op.Unknown,
	})
}

// finishPerf combines the members of an operation: its kind, and when it began and ended by the best clock there is. finish does the rest, with the context. ok
// is false where the operation has no name.
func (p *Parser) finishPerf(pointToPoint bool) (ok bool) {
	o, t := p.op, &p.trace
	o.Kind = op.KindOf(o.Name)
	if o.Kind != op.Other {
		o.Name = nil
	} else if len(o.Name) == 0 {
		return false
	}
	o.HasSeq = o.HasSeq && !pointToPoint // numbers of sends differ between ranks
	o.ReportedUnit = gigabyteUnit
	o.Channels = max(o.Channels, 0)
	if o.Channels == 0 {
		o.Channels = t.kernels
	}
	o.Start = t.kernelStart
	switch string(o.Timing) {
	case "", "kernel_gpu", "kernel_cpu", "gpu_globaltimer":
		// From the kernel's start, when this rank had arrived, to its end: including the wait for other ranks. The CPU sees both a little late.
		o.Waits = true
	case "cpu_wallclock":
		o.Waits = t.kernels > 0 // ACCL: the duration of the kernels, or else of the call
	case "collective_cpu":
		// From the call on, long before the kernel if kernels are queued, and without a seen kernel to the call's return: neither begins with the arrival, so
		// durations of ranks cannot be compared.
		o.Start = t.start
	}
	if o.Start == 0 {
		o.Start = t.start
	}
	if o.Start == 0 {
		return true
	}
	o.Time = spans.TimeLogged
	if o.Duration == op.Unknown && t.kernelStop >= o.Start {
		o.Duration = t.kernelStop - o.Start
	}
	if o.Duration != op.Unknown {
		o.End = o.Start + o.Duration
	}
	return true
}

// dataSize returns S of algbw = S/t, in bytes; op.Unknown if S depends on an unknown size or number of ranks. Where the data of all ranks together is larger
// than one rank's part, the plugin states the size of the part (inspectorComputeCollBw multiplies too, but does not know Gather and Scatter).
func dataSize(k op.Kind, size int64, ranks int32) int64 {
	switch k {
	case op.AllGather, op.ReduceScatter, op.AllToAll, op.Gather, op.Scatter:
		if size < 0 || ranks <= 0 || size > math.MaxInt64/int64(ranks) {
			return op.Unknown
		}
		return size * int64(ranks)
	}
	return size
}

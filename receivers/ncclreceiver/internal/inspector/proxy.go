package inspector

import (
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// The names of operations from records of the network proxy. They belong to a collective or a point-to-point operation by parent_type and parent_sn, a count
// per kind of collective: the kind is not in the record.
var (
	proxyOpName   = []byte("ProxyOp")
	proxyStepName = []byte("ProxyStep")
	proxyOpType   = []byte("proxy_op")
)

// The phases of a step, named by the awaited party: the states of NCCL's profiler interface (ncclProfilerProxyStep…, profiler_v4.h).
const (
	phaseSendGPU = iota
	phaseSendPeer
	phaseSend
	phaseRecv
	phaseRecvFlush
	phaseRecvGPU
	numPhases
)

var phases = [numPhases]string{"SendGPUWait", "SendPeerWait", "SendWait", "RecvWait", "RecvFlushWait", "RecvGPUWait"}

// The values of op.Detail.Direction.
const (
	directionSend    = "send"
	directionReceive = "receive"
)

// proxyRecord is the current "proxy_trace".
type proxyRecord struct {
	kind        []byte // record_type
	direction   string
	start, stop int64 // Unix ns; 0: unknown
	open        bool  // is_final is false: the operation had not ended
	// parent is parent_sn; ofCollective says that parent_type is coll.
	parent       uint64
	ofCollective bool
}

// step is a step of a proxy's operation: one chunk sent or received.
type step struct {
	start, stop int64 // Unix ns; 0: unknown
	total       int64 // duration, ns; op.Unknown: not logged
	wire        int64 // time on the network, ns; op.Unknown: not logged
	index       int32
	size        int64            // By
	at          [numPhases]int64 // beginning of each phase, Unix ns; 0: unknown
	took        [numPhases]int64 // duration of each phase, ns; op.Unknown: not logged
}

// noStep is a step without any value.
var noStep = step{
	total: op.Unknown, wire: op.Unknown, index: op.Unknown, size: op.Unknown,
	took: [numPhases]int64{op.Unknown, op.Unknown, op.Unknown, op.Unknown, op.Unknown, op.Unknown},
}

// proxy reads the value at b[i] of the member n of "proxy_trace". If a step is a record of its own ("proxy_step"), its members are among those of an operation,
// and are read into p.step. It returns the end of the value; -1: malformed.
func (p *Parser) proxy(b []byte, i int, n name) int {
	o, r := p.op, &p.record
	switch n {
	case recordType:
		r.kind, i = p.text(b, i)
	case parentType:
		var t []byte
		t, i = p.text(b, i)
		r.ofCollective = string(t) == "coll"
	case parentSN:
		r.parent, i = p.integer(b, i)
	case proxySN:
		var v uint64
		v, i = p.integer(b, i)
		if v != unknown {
			o.Seq = v
		}
	case rank:
		o.Rank, i = p.int32(b, i)
	case channel:
		o.Channel, i = p.int32(b, i)
	case peer:
		o.Peer, i = p.int32(b, i)
	case direction:
		var t []byte
		switch t, i = p.text(b, i); string(t) {
		case "send":
			r.direction = directionSend
		case "recv":
			r.direction = directionReceive
		}
	case isSend:
		var send bool
		send, i = p.truth(b, i)
		if send {
			r.direction = directionSend
		} else {
			r.direction = directionReceive
		}
	case timing:
		o.Timing, i = p.text(b, i)
	case isFinal:
		var final bool
		final, i = p.truth(b, i)
		r.open = !final
	case traceTS:
		i = p.object(b, i, proxyTimes)
	case steps: // read one by one through p.step, which may have members of this record already
		own := p.step
		i = p.list(b, i, stepObject)
		p.step = own
	case proxyStart, proxyStop: // Datadog's
		i = p.proxyTimes(b, i, n)
	default:
		i = p.stepMember(b, i, n)
	}
	return i
}

// proxyTimes reads the value at b[i] of the member n of a proxy record's "event_trace_ts". An event that did not fire has the time 0. It returns the end of the
// value; -1: malformed.
func (p *Parser) proxyTimes(b []byte, i int, n name) int {
	switch n {
	case proxyStart:
		p.record.start, i = p.stamp(b, i)
	case proxyStop:
		p.record.stop, i = p.stamp(b, i)
	default:
		i = p.stepTimes(b, i, n)
	}
	return i
}

// stepMember reads the value at b[i] of the member n into the current step: index, size, durations, and times ("event_trace_ts"). Other members are skipped. It
// returns the end of the value; -1: malformed.
func (p *Parser) stepMember(b []byte, i int, n name) int {
	s := &p.step
	switch n {
	case stepIndex:
		s.index, i = p.int32(b, i)
	case transferSize:
		s.size, i = p.int64(b, i)
	case total:
		s.total, i = p.micros(b, i)
	case wire:
		s.wire, i = p.micros(b, i)
	case gpuProduce:
		s.took[phaseSendGPU], i = p.micros(b, i)
	case peerCredit:
		s.took[phaseSendPeer], i = p.micros(b, i)
	case flush:
		s.took[phaseRecvFlush], i = p.micros(b, i)
	case gpuConsume:
		s.took[phaseRecvGPU], i = p.micros(b, i)
	case traceTS:
		i = p.object(b, i, stepTimes)
	default:
		i = skip(b, i)
	}
	return i
}

// stepTimes reads the value at b[i] of the member n of a step's "event_trace_ts": its start and stop, and the beginning of each phase. It returns the end of
// the value; -1: malformed.
func (p *Parser) stepTimes(b []byte, i int, n name) int {
	s := &p.step
	switch n {
	case stepStart:
		s.start, i = p.stamp(b, i)
	case stepStop:
		s.stop, i = p.stamp(b, i)
	case sendGPUWait, sendPeerWait, sendWait, recvWait, recvFlushWait, recvGPUWait:
		s.at[n-sendGPUWait], i = p.stamp(b, i)
	default:
		i = skip(b, i)
	}
	return i
}

// addStep adds the current step to the details of the operation and, below the step, its phases: those with a time or a duration.
func (p *Parser) addStep() {
	o, s := p.op, &p.step
	under := int32(len(o.Details))
	o.Details = append(o.Details, op.Detail{
		Name: spans.SpanNCCLProxyStep, Start: s.start, End: s.stop, Duration: elapsed(s.total, s.start, s.stop),
		Channel: op.Unknown, Peer: op.Unknown, Step: s.index, Size: s.size, Under: op.Unknown,
	})
	if s.wire != op.Unknown { // wire_us is of the sending or of the receiving phase: other members tell the direction
		if s.at[phaseRecv] > 0 || s.took[phaseRecvFlush] != op.Unknown || s.took[phaseRecvGPU] != op.Unknown || p.record.direction == directionReceive {
			s.took[phaseRecv] = s.wire
		} else {
			s.took[phaseSend] = s.wire
		}
	}
	for n, at := range s.at {
		if at == 0 && s.took[n] == op.Unknown {
			continue
		}
		d := op.Detail{
			Name: spans.SpanNCCLProxyStep, Start: at, Duration: s.took[n], Operation: phases[n],
			Channel: op.Unknown, Peer: op.Unknown, Step: s.index, Size: op.Unknown, Under: under,
		}
		if at > 0 && d.Duration != op.Unknown {
			d.End = at + d.Duration
		}
		o.Details = append(o.Details, d)
	}
}

// elapsed returns the duration of an event: as logged, or else by its times.
func elapsed(logged, start, stop int64) int64 {
	if logged == op.Unknown && start > 0 && stop >= start {
		return stop - start
	}
	return logged
}

// finishProxy combines the members of a proxy's record into the current operation: its name, state, peer and times. ok is false for a record of no known type.
func (p *Parser) finishProxy() (ok bool) {
	o, r, s := p.op, &p.record, &p.step
	o.Name, o.Proxy = proxyOpName, true
	o.ParentSeq = r.parent
	o.HasParent = r.ofCollective && r.parent != unknown // and, for a record without a context of its own, if relate knows a collective of the number
	switch string(r.kind) {
	case "proxy_op":
	case "proxy_op_start", "proxy_op_segment": // snapshots; a final record, if any, is complete
		r.open = true
	case "proxy_step":
		o.Name = proxyStepName
		r.start, r.stop = s.start, s.stop
	default:
		return false
	}
	if r.open {
		o.State = op.Started
	}
	switch r.direction {
	case directionSend:
		o.Destination = o.Peer
	case directionReceive:
		o.Source = o.Peer
	}
	o.Size = s.size
	o.Start, o.Duration = r.start, elapsed(s.total, r.start, r.stop)
	if o.Start > 0 {
		o.Time = spans.TimeLogged
		if o.Duration != op.Unknown {
			o.End = o.Start + o.Duration
		}
	}
	if string(r.kind) == "proxy_step" {
		p.addStep()
	}
	for n := range o.Details {
		d := &o.Details[n]
		d.Channel, d.Peer, d.Direction = o.Channel, o.Peer, r.direction
	}
	return true
}

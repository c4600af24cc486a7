package digest

import (
	"cmp"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// RPCOffline is the client's work before a call, which some logs have, beside the stages of view.RPCStage.
const RPCOffline = view.RPCStages

// Calls are sums over RPCs, as reported by TSQP's analyze_zmq_performance.py.
type Calls struct {
	Took           Values                     // s
	Stages         [view.RPCStages + 1]Values // s, by view.RPCSerialize, … and RPCOffline: of the calls with the stage
	Sent, Received Values                     // By
	Throughput     Values                     // By/s, of the calls whose tensors go through the messages
	Incomplete     int
	Slowest        Top[Call]
	Largest        Top[Call] // by bytes sent and received
	methods        table[string, Method]
}

// Call is an RPC. Unknown values are NaN.
type Call struct {
	ID                         view.Int
	Method                     string
	Took                       float64
	Stages                     [view.RPCStages + 1]float64 // s
	Sent, Received, Throughput float64
	parent                     pcommon.SpanID
	receive                    pcommon.SpanID // of the receive stage's span, below which the server's time is
}

// Method sums up the calls of a method.
type Method struct {
	Name                 string
	Took, Sent, Received Values
}

// CallLog has the calls of a log. The numbers of its calls may restart, as they do after a warm-up: each restart begins a block of calls.
type CallLog struct {
	File       string         // "": not said, or the calls of a service
	Transports map[string]int // calls by transport, "-" if not said; of all blocks
	WarmUp     int64          // calls of earlier blocks
	Calls                     // of the latest block
	block      int64          // number of the latest block, from 0: how often the call numbers had restarted
}

// Methods returns the methods, by time, the largest first.
func (c *Calls) Methods() []*Method {
	return c.methods.rows(func(a, b *Method) int {
		return cmp.Or(cmp.Compare(b.Took.Sum(), a.Took.Sum()), cmp.Compare(a.Name, b.Name))
	})
}

// each calls f for every distribution.
func (c *Calls) each(f func(*Values)) {
	f(&c.Took)
	for i := range c.Stages {
		f(&c.Stages[i])
	}
	f(&c.Sent)
	f(&c.Received)
	f(&c.Throughput)
	for _, m := range c.methods.by {
		f(&m.Took)
		f(&m.Sent)
		f(&m.Received)
	}
}

// Overall returns the throughput over the calls: sum of bytes by sum of time, By/s.
func (c *Calls) Overall() float64 { return (c.Sent.Sum() + c.Received.Sum()) / c.Took.Sum() }

// Total returns the time of a stage over the calls, s. view.RPCUnattributed is the rest outside of stages, at least 0; view.RPCTransport is sending and
// receiving without the server.
func (c *Calls) Total(stage view.RPCStage) float64 {
	sum := func(stage view.RPCStage) float64 { return c.Stages[stage].Sum() }
	switch stage {
	case view.RPCUnattributed:
		return max(0, c.Took.Sum()-sum(view.RPCSerialize)-sum(view.RPCSend)-sum(view.RPCReceive)-sum(view.RPCDeserialize))
	case view.RPCTransport:
		return sum(view.RPCSend) + sum(view.RPCReceive) - sum(view.RPCServer)
	}
	return sum(stage)
}

// Logs returns the logs of calls, by file.
func (d *Passes) Logs() []*CallLog {
	return d.logs.rows(func(a, b *CallLog) int { return cmp.Compare(a.File, b.File) })
}

// addCall adds an RPC to the sums of the job and of its log. A log's sums are of its latest block (CallLog): with the first call of a later block they restart,
// and all calls before count as warm-up. A call of an earlier block may come late, as passes come in any order: in its log the call only counts as warm-up,
// while its transport, its verdicts and the job's sums count as of any call.
//
// addCall leaves for addPart, which gets the call's stages next: in Passes.log the log whose sums the stages add to (nil: none, as the call is of the warm-up),
// and in Passes.stated whether the call has the times of its stages as attributes.
func (d *Digest) addCall(s ptrace.Span, res *resource) {
	ps := &d.Passes
	v := &ps.c
	v.Read(s, &res.Resource)
	// A pass is one record of the log: places has file and block of the pass, whose trace has the call too.
	at, _ := d.places.find(s.TraceID(), view.KindPass)
	file := cmp.Or(res.file, at.file)
	log := ps.logs.findOrMake(file, Other, mostLogs, func(file string) (string, *CallLog) {
		file = shortText(file)
		return file, &CallLog{File: file, Transports: map[string]int{}}
	})
	ps.log, ps.stated = log, !math.IsNaN(v.Took) // a call with its time as an attribute has the times of its stages as attributes, too
	if at.block > log.block {                    // the first call of a later block
		*log = CallLog{File: log.File, Transports: log.Transports, WarmUp: log.WarmUp + log.Took.Count(), block: at.block}
	}
	// At most mostLogs transports are counted.
	if transport := cmp.Or(v.Network, "-"); log.Transports[transport] > 0 || len(log.Transports) < mostLogs {
		log.Transports[transport]++
	}
	d.countVerdicts(s, &v.Head, res)
	ps.Calls.add(s, v, res)
	if late := at.block < log.block; late {
		log.WarmUp++
		ps.log = nil
		return
	}
	log.add(s, v, res)
}

// add adds a call; an incomplete call is only counted. The time of a call is an attribute, else the length of the span.
func (c *Calls) add(s ptrace.Span, v *view.Call, res *resource) {
	if v.Incomplete {
		c.Incomplete++
		return
	}
	took := v.Took
	if took != took { // NaN
		took = spanSeconds(s)
	}
	if took == 1e-9 { // spans.Batch makes a call without duration 1 ns long
		took = 0
	}
	c.Took.Add(took)
	c.Sent.Add(v.RequestSize)
	c.Received.Add(v.ResponseSize)
	c.Throughput.Add(v.Throughput)
	for stage, x := range v.Duration {
		c.Stages[stage].Add(x)
	}
	c.Stages[RPCOffline].Add(v.Offline)
	m := c.methods.findOrMake(v.Method, Other, mostDistributed, func(name string) (string, *Method) {
		name = shortText(name)
		return name, &Method{Name: name}
	})
	m.Took.Add(took)
	m.Sent.Add(v.RequestSize)
	m.Received.Add(v.ResponseSize)
	if call := c.Slowest.add(mostShown, took, s, res); call != nil {
		call.set(s, v, m, took)
	}
	if call := c.Largest.add(mostShown, orZero(v.RequestSize)+orZero(v.ResponseSize), s, res); call != nil {
		call.set(s, v, m, took)
	}
}

// set sets the details of one of the slowest or largest calls.
func (c *Call) set(s ptrace.Span, v *view.Call, m *Method, took float64) {
	*c = Call{
		ID: v.ID, Method: m.Name, Took: took, Sent: v.RequestSize, Received: v.ResponseSize, Throughput: v.Throughput, parent: s.ParentSpanID(),
	}
	for i := range c.Stages {
		c.Stages[i] = math.NaN()
	}
	copy(c.Stages[:], v.Duration[:])
	c.Stages[RPCOffline] = v.Offline
}

// stageOf returns the stage of a part of a call; false for rpc.unattributed, which Calls.Total computes from the others.
func stageOf(s ptrace.Span) (view.RPCStage, bool) {
	switch s.Name() {
	case spans.SpanRPCSerialize:
		return view.RPCSerialize, true
	case spans.SpanRPCSend:
		return view.RPCSend, true
	case spans.SpanRPCReceive:
		return view.RPCReceive, true
	case spans.SpanRPCDeserialize:
		return view.RPCDeserialize, true
	case spans.SpanRPCServer:
		return view.RPCServer, true
	case spans.SpanRPCOffline:
		return RPCOffline, true
	}
	return 0, false
}

// addPart adds the span of a stage to the sums of the call added last: the spans below a call follow the span of the call. If the call has the times of its
// stages as attributes, the span is left out.
func (d *Passes) addPart(s ptrace.Span, _ *resource) {
	stage, ok := stageOf(s)
	if !ok || d.stated {
		return
	}
	took := spanSeconds(s)
	d.Calls.addStage(stage, took, s)
	if d.log != nil {
		d.log.addStage(stage, took, s)
	}
}

// addStage adds the time of a stage to the distribution and, if the call is one of the slowest or largest, to the details of the call. The span of the server
// is below the receive stage, if there is one. Offline work is beside the call, and ends where the call begins. Other stages are below the call.
func (c *Calls) addStage(addStage view.RPCStage, took float64, s ptrace.Span) {
	c.Stages[addStage].Add(took)
	parent := s.ParentSpanID()
	for _, top := range [...]Top[Call]{c.Slowest, c.Largest} {
		for i := range top {
			r := &top[i]
			is := r.Span == parent || r.Of.receive == parent
			if addStage == RPCOffline {
				is = r.Of.parent == parent && r.Start == int64(s.EndTimestamp())
			}
			if is && r.Trace == s.TraceID() {
				r.Of.Stages[addStage] = took
				if addStage == view.RPCReceive {
					r.Of.receive = s.SpanID()
				}
			}
		}
	}
}

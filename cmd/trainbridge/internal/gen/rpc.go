package gen

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// The times of a call, the first four of them consecutive stages. The server's time lies within receiving; communication is the four stages together; whole is
// communication and rest.
const (
	serialize = iota
	send
	receive
	deserialize
	communication
	server
	whole
	times
)

// operation is the call at one place in a pass.
type operation struct {
	method   string
	medians  [4]float64 // µs, by stage: of a real log over IPC
	payload  [2]float64 // KiB sent and received
	overhead [2]int64   // By of the surrounding messages
	computes bool       // the server logs its compute time
}

var (
	initialize = operation{"Init", [4]float64{85, 30, 2057, 91}, [2]float64{0, 266}, [2]int64{20, 338}, false}
	embedding  = operation{"Embedding", [4]float64{12, 20, 18_000, 2900}, [2]float64{8, 8192}, [2]int64{51, 51}, false}
	head       = operation{"LMHead", [4]float64{30, 48, 8400, 260}, [2]float64{8, 501}, [2]int64{61, 51}, false}
	// A layer: the projections to q, k and v, q·k, scores·v, the output's projection, gate and up, down.
	layer = []operation{
		{"BatchLinear", [4]float64{9023, 912, 36_823, 6180}, [2]float64{8192, 12_288}, [2]int64{113, 113}, true},
		{"Matmul", [4]float64{22_967, 9880, 838_133, 115_425}, [2]float64{16_384, 131_072}, [2]int64{82, 51}, true},
		{"Matmul", [4]float64{249_941, 121_190, 478_150, 5437}, [2]float64{139_264, 8192}, [2]int64{82, 51}, true},
		{"BatchLinear", [4]float64{10_103, 980, 41_842, 1453}, [2]float64{8192, 8192}, [2]int64{102, 61}, true},
		{"BatchLinear", [4]float64{6655, 933, 437_740, 57_806}, [2]float64{8192, 65_536}, [2]int64{113, 92}, true},
		{"BatchLinear", [4]float64{55_855, 28_554, 143_796, 1727}, [2]float64{32_768, 8192}, [2]int64{102, 61}, true},
	}
)

const (
	rpcScale    = 0.1   // of the times and sizes of the real log
	rpcLayers   = 2     // of a pass
	spread      = 0.18  // sigma of the logarithm of a time
	serializing = 0.18  // largest share of serialization in a pass
	serverShare = 0.8   // the server's mean share of receiving
	rest        = 5_000 // ns of a call outside of all stages
)

// rpc is a call. Its times are whole µs, as printed, and so is the rest outside of all stages.
type rpc struct {
	*operation
	id         int
	ns         [times]int64
	sent, recv int64 // By of the messages
}

// rpcs are the consecutive calls of a pass.
type rpcs []rpc

// passes draws the calls of the client, pass by pass.
type passes struct {
	rng     *rand.Rand
	id      int  // of the last call
	session rpcs // the call before the first pass
}

// newPasses draws the call of the session, Init.
func newPasses(opt *Options) *passes {
	p := &passes{rng: rand.New(rand.NewPCG(opt.Seed+uint64(opt.job), 0x7a65_726f_6d71_7270))}
	c, _ := p.call(&initialize)
	p.session = rpcs{c}.rounded()
	return p
}

// around draws a time near a real log's median, given in µs, scaled by rpcScale: ns.
func (p *passes) around(median float64) int64 {
	return int64(rpcScale * median * 1e3 * math.Exp(spread*logfile.Noise(p.rng)))
}

// next draws a pass through a model: embedding, layers, head. Serialization is scaled down to a share of at most serializing, clearly less than 30 %, the
// limit of train_perf's warning.
func (p *passes) next() rpcs {
	operations := []*operation{&embedding}
	for range rpcLayers {
		for i := range layer {
			operations = append(operations, &layer[i])
		}
	}
	var calls rpcs
	part, all := 0.0, 0.0 // ns of serialization, and of everything
	for _, op := range append(operations, &head) {
		c, other := p.call(op)
		calls = append(calls, c)
		part += float64(c.ns[serialize])
		all += float64(c.ns[serialize] + c.ns[send] + c.ns[receive] + c.ns[deserialize] + other)
	}
	p.rng.Float64() // keeps seeds stable, as in call
	// With factor f, f·part is the share want of the new whole, f·part + (all − part).
	want := min(part/all, serializing)
	factor := want * (all - part) / ((1 - want) * part)
	for i := range calls {
		calls[i].ns[serialize] = int64(factor * float64(calls[i].ns[serialize]))
	}
	return calls.rounded()
}

// call draws a call, and a time beside its stages, ns, which only the share of serialization takes into account: the log has rest.
//
// Unused draws keep seeds stable: the generator of RPC logs in test/gen draws them.
func (p *passes) call(op *operation) (c rpc, other int64) {
	p.id++
	c = rpc{
		operation: op, id: p.id, sent: op.overhead[0] + int64(rpcScale*op.payload[0]*1024), recv: op.overhead[1] + int64(rpcScale*op.payload[1]*1024),
	}
	for i, median := range op.medians {
		c.ns[i] = p.around(median)
	}
	p.around(0)
	p.around(0)
	if op.computes { // less than all of receiving, which has the way there and back too
		c.ns[server] = int64(min(0.97, serverShare*math.Exp(spread/3*logfile.Noise(p.rng))) * float64(c.ns[receive]))
	}
	other = rest + p.rng.Int64N(45_001) // 5 to 50 µs
	p.rng.Int64N(1000)
	return c, other
}

// rounded rounds all times to whole µs, as the log prints them, and sets communication and whole to the sums of the rounded times.
func (calls rpcs) rounded() rpcs {
	for i := range calls {
		ns := &calls[i].ns
		for k := range ns {
			ns[k] = logfile.Micros(ns[k]) * 1000
		}
		ns[communication] = ns[serialize] + ns[send] + ns[receive] + ns[deserialize]
		ns[whole] = ns[communication] + rest
	}
	return calls
}

// sums are the times of all calls together.
func (calls rpcs) sums() (ns [times]int64) {
	for i := range calls {
		for k := range ns {
			ns[k] += calls[i].ns[k]
		}
	}
	return ns
}

// slow adds about ns to the serialization of the pass, spread over its calls in proportion. It returns the sum added, which is some µs less.
func (calls rpcs) slow(ns int64) (added int64) {
	sum := calls.sums()[serialize]
	for i := range calls {
		c := &calls[i].ns
		more := int64(float64(ns)*float64(c[serialize])/float64(sum)) / 1000 * 1000
		for _, k := range []int{serialize, communication, whole} {
			c[k] += more
		}
		added += more
	}
	return added
}

// ends are the ends of the calls of a pass, by its true start.
func (calls rpcs) ends(start int64) (ends []int64) {
	for i := range calls {
		start += calls[i].ns[whole]
		ends = append(ends, start)
	}
	return ends
}

// rpcLog is the log of the client: tee_gpu/tee_runner_optimized.py of amoncjj/TSQP, with an optional column of ids.
type rpcLog struct {
	log *logfile.Log
	ids bool
}

// openRPC creates the client's log, zmq/zmq_performance.log, with its head and the row of the session's call.
func (j *job) openRPC(session rpcs) (err error) {
	j.rpc = rpcLog{ids: j.opt.ids()}
	j.rpc.log, err = j.create("zmq", "zmq_performance.log", logfile.File{}, 1<<18)
	if err != nil {
		return err
	}
	columns := fmt.Sprintf("%-5s %-20s %-10s %-10s %-10s %-10s %-12s %-10s %-12s %-10s %-10s",
		"ID", "Method", "Ser(ms)", "Send(ms)", "Recv(ms)", "Deser(ms)", "Comm(ms)", "GPU(ms)", "Total(ms)", "Sent(KB)", "Recv(KB)")
	if j.rpc.ids {
		columns += fmt.Sprintf(" %-36s", "trace_id")
	}
	rule := strings.Repeat("=", 120)
	for _, text := range []string{"ZeroMQ Performance Log - Transport: IPC", rule, columns, rule} {
		j.logs.Line(j.rpc.log, j.logs.Text(text), logfile.Ignored)
	}
	return j.row("", &session[0])
}

// row writes a call, "12    Matmul               9.023 …", in ms and KiB, with the id of its trace where the log has the column; empty: N/A.
func (j *job) row(id string, c *rpc) error {
	b := fmt.Appendf(j.logs.Text(), "%-5d %-20s", c.id, c.method)
	for k, width := range [times]int{10, 10, 10, 10, 12, 10, 12} {
		b = fmt.Appendf(b, " %-*.3f", width, float64(c.ns[k])/1e6)
	}
	b = fmt.Appendf(b, " %-10.2f %-10.2f", float64(c.sent)/1024, float64(c.recv)/1024)
	if j.rpc.ids {
		b = fmt.Appendf(b, " %-36s", cmp.Or(id, "N/A"))
	}
	j.logs.Line(j.rpc.log, b, logfile.Record)
	return j.logs.Err
}

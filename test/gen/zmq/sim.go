package zmq

import (
	"math"
	"math/rand/v2"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
)

// The times of a call, the first four of them its stages. The server's time lies within receive, the time offline before the call, communication is the four
// stages as measured from outside.
const (
	serialize = iota
	send
	receive
	deserialize
	zmqTotal
	server
	zmqOffline
	zmqCommunication
	times
)

// zmqOperation is the call at one place in a pass. Times are medians in µs: of the real log over IPC, and of the logs through shared memory (OTP's for the
// time offline).
type zmqOperation struct {
	method   string
	modules  int64      // of a BatchLinear: its linear layers
	tensors  int64      // sent and received
	ipc      [4]float64 // by stage
	payload  [2]float64 // KiB sent and received
	overhead [2]int64   // By of the surrounding messages
	shm      [4]float64
	messages [2]int64 // By, with shared memory
	offline  float64
	computes bool // the server logs its compute time
}

var (
	initialize = zmqOperation{
		method: "Init", ipc: [4]float64{85, 30, 2057, 91}, payload: [2]float64{0, 266}, overhead: [2]int64{20, 338},
		shm: [4]float64{135, 28, 2729, 73}, messages: [2]int64{50, 138_076},
	}
	zmqEmbedding = zmqOperation{
		method: "Embedding", tensors: 2, ipc: [4]float64{12, 20, 18_000, 2900}, payload: [2]float64{8, 8192}, overhead: [2]int64{51, 51},
		shm: [4]float64{8, 13, 1500, 12}, messages: [2]int64{72, 72},
	}
	lMHead = zmqOperation{
		method: "LMHead", tensors: 2, ipc: [4]float64{30, 48, 8400, 260}, payload: [2]float64{8, 501}, overhead: [2]int64{61, 51},
		shm: [4]float64{7, 14, 943, 5}, messages: [2]int64{72, 72},
	}
	// A layer: the projections to q, k and v, q·k, scores·v, the output's projection, gate and up, down.
	zmqLayer = [...]zmqOperation{
		{
			method: "BatchLinear", modules: 3, tensors: 4, ipc: [4]float64{9023, 912, 36_823, 6180}, payload: [2]float64{8192, 12_288}, overhead: [2]int64{113, 113},
			shm: [4]float64{8, 16, 1417, 7}, messages: [2]int64{121, 152}, offline: 109, computes: true,
		},
		{
			method: "Matmul", tensors: 3, ipc: [4]float64{22_967, 9880, 838_133, 115_425}, payload: [2]float64{16_384, 131_072}, overhead: [2]int64{82, 51},
			shm: [4]float64{10, 21, 4166, 7}, messages: [2]int64{102, 72}, offline: 1567, computes: true,
		},
		{
			method: "Matmul", tensors: 3, ipc: [4]float64{249_941, 121_190, 478_150, 5437}, payload: [2]float64{139_264, 8192}, overhead: [2]int64{82, 51},
			shm: [4]float64{11, 21, 3304, 7}, messages: [2]int64{102, 72}, offline: 157, computes: true,
		},
		{
			method: "BatchLinear", modules: 1, tensors: 2, ipc: [4]float64{10_103, 980, 41_842, 1453}, payload: [2]float64{8192, 8192}, overhead: [2]int64{102, 61},
			shm: [4]float64{9, 17, 1084, 6}, messages: [2]int64{111, 72}, offline: 106, computes: true,
		},
		{
			method: "BatchLinear", modules: 2, tensors: 3, ipc: [4]float64{6655, 933, 437_740, 57_806}, payload: [2]float64{8192, 65_536}, overhead: [2]int64{113, 92},
			shm: [4]float64{8, 16, 2642, 6}, messages: [2]int64{121, 112}, offline: 106, computes: true,
		},
		{
			method: "BatchLinear", modules: 1, tensors: 2, ipc: [4]float64{55_855, 28_554, 143_796, 1727}, payload: [2]float64{32_768, 8192},
			overhead: [2]int64{102, 61},
			shm:      [4]float64{8, 15, 1598, 5}, messages: [2]int64{111, 72}, offline: 449, computes: true,
		},
	}
)

const (
	spread      = 0.18     // sigma of the logarithm of a time
	normalLimit = 0.18     // largest share of serialization in a normal pass
	highFrom    = 0.40     // least share of serialization in a high pass
	highTo      = 0.50     // most of a high pass
	serverShare = 0.8      // the server's mean share of receive
	leastRest   = 5_000    // ns outside of all stages
	mostRest    = 50_000   // ns
	shortPrompt = 1.0 / 16 // of the payload, through shared memory: the prompt of the real log is shorter
	pause       = 200e6    // ns between two passes
)

type zmqCall struct {
	*zmqOperation
	id         int64
	ns         [times]int64
	sent, recv int64 // By of the messages
	shared     int64 // By through shared memory
	handling   int64 // ns of the client for the tensors afterwards
	gap        int64 // ns until its next call, handling included
}

// zmqGroup is a pass, or the calls before the first pass.
type zmqGroup struct {
	kind  string // spans.SpanRPCPass or spans.SpanRPCSession
	block int    // from 1: ids restart with each
	pass  int    // from 1; 0: no pass
	high  bool
	whole bool
	calls []zmqCall
}

// simulation draws the calls, independently of layouts, except that only v2 computes offline and only v4 has times of the server.
type simulation struct {
	opt   *Options
	rng   *rand.Rand
	scale float64
	begun int // passes
	block int
	rows  int64
	id    int64
}

func newSim(opt *Options, scale float64) *simulation {
	return &simulation{opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 0x7a65_726f_6d71_7270)), scale: scale}
}

// next draws a group in place of the one before; it returns false at the end.
func (s *simulation) next(g *zmqGroup) bool {
	o := s.opt
	if o.Lines > 0 && s.rows >= o.Lines || o.Lines == 0 && o.Passes > 0 && s.begun == o.Warmup+o.Passes {
		return false
	}
	g.calls = g.calls[:0]
	if s.block == 0 {
		s.block = 1
		g.kind, g.block, g.whole = spans.SpanRPCSession, s.block, true
		s.call(g, &initialize)
		g.total()
		s.rows++
		return true
	}
	if o.Warmup > 0 && s.begun == o.Warmup {
		s.block, s.id = 2, 0
	}
	s.begun++
	g.kind, g.block, g.pass, g.whole = spans.SpanRPCPass, s.block, s.begun, true
	s.call(g, &zmqEmbedding)
	for range o.Layers {
		for i := range zmqLayer {
			s.call(g, &zmqLayer[i])
		}
	}
	s.call(g, &lMHead)
	g.calls[len(g.calls)-1].gap += int64(s.scale * pause)
	s.shape(g)
	s.cut(g)
	s.rows += int64(len(g.calls))
	return true
}

// cut ends a log in the middle of a pass.
func (s *simulation) cut(g *zmqGroup) {
	n := len(g.calls)
	if s.opt.Crash && s.begun == s.opt.Warmup+s.opt.Passes {
		n = 1 + s.rng.IntN(n-1)
	}
	if s.opt.Lines > 0 {
		n = int(min(int64(n), s.opt.Lines-s.rows))
	}
	g.whole = n == len(g.calls)
	s.id -= int64(len(g.calls) - n)
	g.calls = g.calls[:n]
}

// around draws a time near a median in µs.
func (s *simulation) around(median float64) int64 {
	return int64(s.scale * median * 1e3 * math.Exp(spread*logfile.Noise(s.rng)))
}

func (s *simulation) call(g *zmqGroup, op *zmqOperation) {
	s.id++
	c := zmqCall{zmqOperation: op, id: s.id}
	medians := &op.ipc
	c.sent, c.recv = op.overhead[0]+int64(s.scale*op.payload[0]*1024), op.overhead[1]+int64(s.scale*op.payload[1]*1024)
	if s.opt.shared() {
		medians = &op.shm
		c.sent, c.recv = op.messages[0], op.messages[1]
		if op.tensors > 0 {
			c.shared = int64(s.scale * shortPrompt * 1024 * (op.payload[0] + op.payload[1]))
		}
	}
	for i, median := range medians {
		c.ns[i] = s.around(median)
	}
	// The time between two calls follows from the size of the tensors, as the times of the calls do.
	c.handling = s.around(0.02 * medians[receive])
	c.gap = c.handling + s.around(0.05*medians[receive])
	if s.opt.Layout == "v2" {
		c.ns[zmqOffline] = s.around(op.offline)
	}
	if s.opt.Layout == "v4" && op.computes {
		c.ns[server] = int64(min(0.97, serverShare*math.Exp(spread/3*logfile.Noise(s.rng))) * float64(c.ns[receive]))
	}
	rest := leastRest + s.rng.Int64N(mostRest-leastRest+1)
	c.ns[zmqTotal] = rest // stages are added when final
	c.ns[zmqCommunication] = rest - s.rng.Int64N(1000)
	g.calls = append(g.calls, c)
}

// shape gives serialization its share of the pass: far above 30 %, the limit of train_perf's warning, or clearly below.
func (s *simulation) shape(g *zmqGroup) {
	high := s.opt.SerializeHigh
	g.high = math.Floor(float64(s.begun)*high) > math.Floor(float64(s.begun-1)*high) // high passes are spread evenly
	want := highFrom + (highTo-highFrom)*s.rng.Float64()
	var part, whole float64
	for i := range g.calls {
		c := &g.calls[i]
		part += float64(c.ns[serialize])
		whole += float64(c.ns[serialize] + c.ns[send] + c.ns[receive] + c.ns[deserialize] + c.ns[zmqTotal])
	}
	if !g.high {
		want = min(part/whole, normalLimit)
	}
	factor := want * (whole - part) / ((1 - want) * part)
	for i := range g.calls {
		c := &g.calls[i]
		c.ns[serialize] = int64(factor * float64(c.ns[serialize]))
	}
	g.total()
}

// total adds the stages to the rest.
func (g *zmqGroup) total() {
	for i := range g.calls {
		c := &g.calls[i]
		for stage := serialize; stage <= deserialize; stage++ {
			c.ns[zmqTotal] += c.ns[stage]
			c.ns[zmqCommunication] += c.ns[stage]
		}
	}
}

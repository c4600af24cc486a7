package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

const (
	us = int64(1_000)
	ms = int64(1_000_000)
	// One in slowCheckpoints is slow.
	slowCheckpoints = 8
)

// The functions of a step, in their order.
const (
	sequences = iota
	logProb
	update
	functions
)

var names = [functions]string{"generate_sequences", "compute_log_prob", "update_actor"}

// typical are the times of the functions' stages, in ms.
var typical = [functions]struct{ get, compute, put float64 }{{40, 900, 60}, {45, 260, 25}, {50, 0, 15}}

// kind is a kind of collective.
type kind struct {
	name, vccl string  // in NCCL Inspector's and VCCL's logs
	shared     bool    // a rank's message is its share of the data
	size       int64   // By, of all shares
	transfer   float64 // µs in transfer
}

// collectives are the ranks' operations, in turn, during the actor's update.
var collectives = []kind{
	{"AllReduce", "allreduce", false, 512 << 20, 12_000},
	{"AllGather", "allgather", true, 256 << 20, 6_000},
	{"ReduceScatter", "reducescatter", true, 256 << 20, 6_500},
}

// plan has the durations of a step, in ns, and its fault. The durations are drawn without regard to the fault, to know how long the step takes without.
type plan struct {
	step                            int // from 1
	traceID                         string
	tokens                          int64                  // of all ranks
	samples                         int                    // of a worker
	loading, checkpoint, evaluation int64                  // 0: the step has none
	gaps                            [7]int64               // nobody works: after loading, each function, checkpoint and evaluation, and at the end
	work                            [functions][]durations // by rank
	before, after                   int64                  // compute time of the first rank before and after its pass of RPCs
	chunks                          [][]int64              // compute time of each rank before each collective
	transfers                       []int64                // of each collective, from the last rank's arrival to the end
	tail                            int64                  // compute time of all ranks after the last collective
	fault                           *fault                 // nil: none
}

// durations are the stages of a function in a worker, ns, and late, how long after the function may begin the worker begins.
type durations struct{ late, get, compute, put int64 }

// fault makes a step slower by about by ns.
type fault struct {
	kind string // FaultStraggler and so on
	rank int    // -1: none
	at   int    // index of the function or collective
	by   int64
}

// planner draws plans, each from a generator of its own: the draws of one step do not change the next.
type planner struct {
	opt *Options
	rng *rand.Rand
}

// around draws a duration near a mean of so many units, with a standard deviation of 2 %: whole units, in ns.
func (p *planner) around(mean float64, unit int64) int64 {
	return max(1, int64(mean*(1+0.02*logfile.Noise(p.rng)))) * unit
}

// between draws a number from lo to hi, in units.
func (p *planner) between(lo, hi, unit int64) int64 { return (lo + p.rng.Int64N(hi-lo+1)) * unit }

// next draws the plan of a step. The order of the draws must not change: the same seed gives the same logs.
func (p *planner) next(step int) *plan {
	o := p.opt
	p.rng = rand.New(rand.NewPCG(o.Seed, uint64(o.job)<<32|uint64(step)))
	t := &plan{step: step, traceID: uuid(p.rng), tokens: p.between(60_000, 66_000, int64(o.Ranks)), samples: 32}
	t.loading = p.around(120, ms)
	if o.CheckpointEvery > 0 && step%o.CheckpointEvery == 0 {
		t.checkpoint = p.around(1500, ms)
	}
	if o.EvalEvery > 0 && step%o.EvalEvery == 0 {
		t.evaluation = p.around(1200, ms)
	}
	for i := range t.gaps {
		t.gaps[i] = p.between(2, 9, ms)
	}
	for i := range t.work {
		for range o.Ranks {
			t.work[i] = append(t.work[i], durations{
				late: p.between(1, 4, ms), get: p.around(typical[i].get, ms), compute: p.around(typical[i].compute, ms), put: p.around(typical[i].put, ms),
			})
		}
	}
	t.before, t.after = p.between(180_000, 200_000, us), p.around(300_000, us)
	for k := range o.Collectives {
		// At least 20 µs, however small the message: a collective has a latency.
		t.transfers = append(t.transfers, p.around(max(20, collectives[k%len(collectives)].transfer*o.share()), us))
		chunk := make([]int64, o.Ranks)
		for rank := range chunk {
			chunk[rank] = p.around(600_000/float64(o.Collectives), us)
		}
		t.chunks = append(t.chunks, chunk)
	}
	t.tail = p.around(8_000, us)
	t.fault = p.fault(t)
	return t
}

// fault draws the fault of a step; nil if none is due, and of the first steps (quiet). Due is one step of FaultEvery. If slow checkpoints are asked for, a step
// with a checkpoint has no other fault, and only one in slowCheckpoints is slow: with every second one slow none would be slower than usual.
func (p *planner) fault(t *plan) *fault {
	o := p.opt
	kinds := slices.DeleteFunc(slices.Clone(o.Faults), func(kind string) bool { return kind == FaultCheckpoint })
	turn := t.step%o.FaultEvery == o.FaultEvery/2 // with the defaults no step has a checkpoint or an evaluation too
	if t.checkpoint > 0 && len(kinds) < len(o.Faults) {
		kinds, turn = []string{FaultCheckpoint}, p.rng.IntN(slowCheckpoints) == 0
	}
	if t.step <= quiet || !turn || len(kinds) == 0 {
		return nil
	}
	f := &fault{kind: kinds[p.rng.IntN(len(kinds))], rank: -1, by: p.between(700, 1300, ms)}
	rank := p.rng.IntN(o.Ranks) // drawn for each kind of fault, used by three
	switch f.kind {
	case FaultStraggler:
		f.rank, f.at = rank, p.rng.IntN(o.Collectives)
	case FaultLink, FaultGPU:
		f.rank = rank
	case FaultSerialize:
		f.rank = 0 // the client
	case FaultGet, FaultPut:
		f.at = p.rng.IntN(functions)
	}
	return f
}

// share scales the sizes and times of collectives: more than 6 a step share the data of 6.
func (o *Options) share() float64 { return min(1, 6/float64(o.Collectives)) }

// size is the size of the k-th collective of a step, By (the S of nccl-tests): a multiple of a float for each rank.
func (o *Options) size(k int) int64 {
	unit := 4 * int64(o.Ranks)
	return max(1, int64(float64(collectives[k%len(collectives)].size)*o.share())/unit) * unit
}

// uuid draws a UUID of version 4.
func uuid(rng *rand.Rand) string {
	hi, lo := rng.Uint64(), rng.Uint64()
	hi, lo = hi&^0xf000|0x4000, lo&^(3<<62)|1<<63 // version 4 of RFC 9562
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&(1<<48-1))
}

package nccl

import (
	"math/rand/v2"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

type operation struct {
	name     string // NCCL Inspector's name
	function int    // ncclFunc_t of VCCL's src/include/nccl_common.h
	shared   bool   // a rank's message is its share of the data: S is the size of all shares
	torch    string // the name of PyTorch's profiler
}

var ncclOperations = []operation{
	{"AllReduce", 4, false, "nccl:all_reduce"},
	{"AllGather", 2, true, "nccl:_all_gather_base"},
	{"ReduceScatter", 3, true, "nccl:_reduce_scatter_base"},
	{"Broadcast", 0, false, "nccl:broadcast"},
}

func ncclNames() (names []string) {
	for _, op := range ncclOperations {
		names = append(names, op.name)
	}
	return names
}

// traffic is the factor of the bus bandwidth: nccl-tests, doc/PERFORMANCE.md.
func (op *operation) traffic(ranks int) float64 {
	n := float64(ranks)
	switch op.name {
	case "AllReduce":
		return 2 * (n - 1) / n
	case "AllGather", "ReduceScatter":
		return (n - 1) / n
	}
	return 1
}

const (
	latency     = 20 * time.Microsecond // of a collective without data
	launch      = 30_000                // ns from the end of a collective to the next of the step
	launchNoise = 3_000                 // ns
	bandwidthSD = 0.01                  // of the bandwidth of a collective
	stepSD      = 0.005                 // of the part of a step's time common to all ranks
	slowedBy    = 4                     // a slow collective
)

// ncclKind is the part of a collective known to all ranks.
type ncclKind struct {
	*operation
	index    int    // of the run, from 0
	sequence uint64 // of the operation, from 0
	message  int64  // By, of a rank
	data     int64  // By, S
}

// ncclCollective is a collective. Times are true, in ns.
type ncclCollective struct {
	*ncclKind
	step          int
	slow          bool
	transfer      int64
	begun         int64 // when data began to flow
	arrive, leave []int64
}

// ncclHost has its own clock.
type ncclHost struct {
	logfile.HostClock
	name string
	ip   string
}

// simulation draws collectives, independently of formats.
type simulation struct {
	opt        *Options
	rng        *rand.Rand
	now        []int64 // per rank: when the rank is free
	counts     [8]uint64
	index      int
	operations []*operation
}

func newSim(opt *Options, start int64) *simulation {
	s := &simulation{opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 0x6e63_636c)), now: make([]int64, opt.Ranks)}
	for i := range s.now {
		s.now[i] = start
	}
	for _, name := range opt.Operations {
		for i := range ncclOperations {
			if ncclOperations[i].name == name {
				s.operations = append(s.operations, &ncclOperations[i])
			}
		}
	}
	return s
}

// next draws a collective in place of the one before, whose kind stays valid; it returns false at the end.
func (s *simulation) next(c *ncclCollective) bool {
	o := s.opt
	if o.Steps > 0 && s.index == o.collectives() {
		return false
	}
	step, k := s.index/o.PerStep, s.index%o.PerStep
	op := s.operations[k%len(s.operations)] // every step does the same
	kind := &ncclKind{operation: op, index: s.index, sequence: s.counts[op.function], data: o.Sizes[k%len(o.Sizes)]}
	kind.message = kind.data
	if op.shared {
		kind.message = kind.data / int64(o.Ranks) &^ 3 // whole floats
		kind.data = kind.message * int64(o.Ranks)
	}
	s.counts[op.function]++
	s.index++
	*c = ncclCollective{ncclKind: kind, step: step, slow: kind.index == o.SlowCollective, arrive: c.arrive[:0], leave: c.leave[:0]}
	c.transfer = int64(latency) + int64(float64(kind.data)*op.traffic(o.Ranks)/(o.BusBandwidth*(1+bandwidthSD*logfile.Noise(s.rng))))
	if c.slow {
		c.transfer *= slowedBy
	}
	s.arrive(c, k == 0)
	s.leave(c)
	return true
}

// arrive draws the arrivals of the ranks, after computing or at once.
func (s *simulation) arrive(c *ncclCollective, computes bool) {
	o := s.opt
	common := 1 + stepSD*logfile.Noise(s.rng)
	for rank, at := range s.now {
		if computes {
			took := float64(o.Compute) * common * (1 + o.Jitter*s.rng.NormFloat64())
			if rank == o.SlowRank && c.step >= o.SlowFrom {
				took *= 1 + o.SlowBy
			}
			at += max(0, int64(took))
		} else {
			at += launch + int64(launchNoise*logfile.Noise(s.rng))
		}
		c.arrive = append(c.arrive, at)
		c.begun = max(c.begun, at)
	}
}

// leave draws the leaving of the ranks: together once the last has come, but in a broadcast each waits for rank 0 only.
func (s *simulation) leave(c *ncclCollective) {
	for rank, at := range c.arrive {
		from := c.begun
		if c.name == "Broadcast" {
			from = max(at, c.arrive[0])
		}
		jitter := int64(0)
		if j := int64(s.opt.EndJitter); j > 0 {
			jitter = s.rng.Int64N(2*j+1) - j
		}
		s.now[rank] = from + c.transfer + jitter
		c.leave = append(c.leave, s.now[rank])
	}
}

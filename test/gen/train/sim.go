package train

import (
	"math"
	"math/rand/v2"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
)

// A100's dense BF16 peak (NVIDIA's datasheet) and the share reached by healthy steps.
const (
	device     = "A100"
	devicePeak = 312e12 // {flop}/s
	healthyMFU = 0.42
	actorShare = 0.27 // of verl's step: update_actor, the part measured by its MFU
	restartGap = 90e9 // ns
	liveGap    = 3e9  // the same with a rate: stamps have seconds, and someone waits
	warmup     = 2.8  // factor on the first step: compilation, allocator, caches
	evalSteps  = 3    // length of an evaluation, in steps
	lrMax      = 1.5e-4
	lrMin      = 1.5e-5
	lrWarmup   = 100 // steps
	gib        = 1 << 30
	microBatch = 1
	firstLoss  = 11.5
	lastLoss   = 1.8
)

// The models of a run: Aquila-7B by FlagScale's examples, and GPT-2 small for short steps.
var models = []spans.Model{
	{
		Type: "aquila", NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, QueryGroups: 32, KVChannels: 128, FFNHiddenSize: 11008, SeqLength: 2048,
		PaddedVocabSize: 100008, VocabSize: 100008, SwiGLU: true,
	},
	{
		Type: "gpt", NumLayers: 12, HiddenSize: 768, AttentionHeads: 12, QueryGroups: 12, KVChannels: 64, FFNHiddenSize: 3072, SeqLength: 1024,
		PaddedVocabSize: 50304, VocabSize: 50304,
	},
}

// megatronFlops is the FLOPs of one step of a dense model: num_floating_point_operations of megatron/training/training.py @d98e8a64 (causal attention).
func megatronFlops(m *spans.Model, samples float64) float64 {
	h, l, s := float64(m.HiddenSize), float64(m.NumLayers), float64(m.SeqLength)
	q, kv := float64(m.KVChannels*m.AttentionHeads), float64(m.KVChannels*m.QueryGroups)
	matrices := 2.0
	if m.SwiGLU {
		matrices = 3
	}
	perToken := l*(h*float64(m.FFNHiddenSize)*matrices+h*(q+2*kv)+q*h) + h*float64(m.PaddedVocabSize)
	return 6*samples*s*perToken + 6*samples*s*s*l*q
}

// flagscaleFlops is the result of perf_monitor/flops_calculator.py for GPT and Aquila (full attention matrix, multi-head).
func flagscaleFlops(m *spans.Model, samples float64) float64 {
	h, f, s := float64(m.HiddenSize), float64(m.FFNHiddenSize), float64(m.SeqLength)
	ffn := 4 * h * f
	if m.SwiGLU {
		ffn = 6*h*f + f
	}
	layer := 8*h*h + 4*s*h + ffn
	return 3 * samples * s * (float64(m.NumLayers)*layer + 2*h*float64(m.VocabSize))
}

// trainStep is a step of the simulated run.
type trainStep struct {
	n          int64 // from 1
	end        int64 // wall time, ns
	took       int64 // ns
	slow       bool
	restarted  bool // the first of a session after the first
	loss       float64
	lr         float64
	gradNorm   float64
	paramsNorm float64
	memory     float64 // By, allocated
	peak       float64 // By
}

// simulation draws the steps, independently of formats: all formats of a seed have the same run.
type simulation struct {
	opt   *Options
	rng   *rand.Rand
	model spans.Model
	micro int64   // microbatches per step
	base  float64 // s of a healthy step
	now   int64
	n     int64
	slow  bool
}

func newSim(opt *Options, start int64) *simulation {
	s := &simulation{opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 0x7472_6169_6e73_7465)), now: start}
	s.fit()
	return s
}

// fit chooses model and batch for a healthy step of the length demanded by the rate, at a believable MFU.
func (s *simulation) fit() {
	seconds := s.opt.secondsPerStep()
	share := 1.0
	if s.opt.Format == FormatVerl {
		share = actorShare
	}
	work := seconds * share
	if seconds == 0 {
		work = 2.7
		if s.opt.Format == FormatVerl {
			work = 48 * share
		}
	}
	capacity := healthyMFU * devicePeak * float64(s.opt.WorldSize)
	for i := range models {
		s.model = models[i]
		for {
			s.micro = int64(math.Round(work * capacity / megatronFlops(&s.model, float64(s.dataParallel()*microBatch))))
			if s.micro >= 4 || i < len(models)-1 || s.model.SeqLength <= 16 {
				break
			}
			s.model.SeqLength /= 2
		}
		if s.micro >= 4 {
			break
		}
	}
	s.micro = max(1, s.micro)
	s.model.GlobalBatchSize = s.micro * microBatch * s.dataParallel()
	s.model.WorldSize, s.model.DataParallelSize = int64(s.opt.WorldSize), s.dataParallel()
	s.base = seconds
	if seconds == 0 {
		s.base = s.flops() / capacity / share
	}
}

func (s *simulation) flops() float64 {
	return megatronFlops(&s.model, float64(s.model.GlobalBatchSize))
}

// dataParallel is the number of replicas: tensor parallelism is 2 where possible.
func (s *simulation) dataParallel() int64 {
	return int64(s.opt.WorldSize / s.tensorParallel())
}

func (s *simulation) tensorParallel() int { return 2 - s.opt.WorldSize%2 }

// restartAfter is the last step of the first session, 0 without a restart.
func (s *simulation) restartAfter() int64 {
	if !s.opt.Restart {
		return 0
	}
	return int64(s.opt.Steps) * 3 / 5
}

func (s *simulation) next(st *trainStep) {
	s.n++
	n := float64(s.n)
	if (s.n-1)%int64(s.opt.Interval) == 0 {
		s.slow = s.opt.Slow > 0 && s.rng.Float64() < s.opt.Slow
	}
	*st = trainStep{n: s.n, slow: s.slow, restarted: s.n > 1 && s.n == s.restartAfter()+1}
	seconds := s.base * (1 + 0.01*s.noise())
	if s.slow {
		seconds *= s.opt.SlowFactor
	}
	if st.restarted {
		if s.opt.Rate > 0 {
			s.now += liveGap
		} else {
			s.now += restartGap
		}
	}
	if s.n == 1 || st.restarted {
		seconds *= warmup
	}
	st.took = int64(seconds * 1e9)
	s.now += st.took
	st.end = s.now

	decay := 1 / math.Sqrt(1+n/50)
	st.loss = (lastLoss + (firstLoss-lastLoss)*decay) * (1 + 0.006*s.noise())
	st.gradNorm = (0.4 + 30*decay*decay) * (1 + 0.1*s.noise())
	if s.n == int64(s.opt.NaNLossAt) {
		st.loss, st.gradNorm = math.NaN(), math.NaN()
	}
	st.lr = s.learningRate()
	st.paramsNorm = 496 + 470*n/(n+5000)
	st.memory, st.peak = 52.31*gib, 58.71*gib
	if s.n == 1 {
		st.memory, st.peak = 41.87*gib, 48.27*gib
	}
}

func (s *simulation) noise() float64 { return logfile.Noise(s.rng) }

// learningRate warms up linearly and decays along a cosine.
func (s *simulation) learningRate() float64 {
	if s.n < lrWarmup {
		return lrMax * float64(s.n) / lrWarmup
	}
	progress := min(1, float64(s.n-lrWarmup)/float64(max(1, s.opt.horizon()-lrWarmup)))
	return lrMin + (lrMax-lrMin)*(1+math.Cos(math.Pi*progress))/2
}

// evalSteps is the time of an evaluation in steps. verl's steps are long.
func (s *simulation) evalSteps() float64 {
	if s.opt.Format == FormatVerl {
		return 0.4
	}
	return 3
}

// evaluates says whether an evaluation follows the latest step.
func (s *simulation) evaluates() bool {
	return s.opt.EvalInterval > 0 && s.n%int64(s.opt.EvalInterval) == 0
}

// eval advances the time by an evaluation and returns its loss and duration.
func (s *simulation) eval() (loss, seconds float64) {
	seconds = s.evalSteps() * s.base * (1 + 0.02*s.noise())
	s.now += int64(seconds * 1e9)
	return lastLoss + 0.06 + (firstLoss-lastLoss)/math.Sqrt(1+float64(s.n)/50), seconds
}

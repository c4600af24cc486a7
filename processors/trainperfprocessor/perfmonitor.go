package trainperfprocessor

import (
	"math"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/flops"
	"github.com/trainbridge/trainbridge/spans"
)

// hypothesis is one way in which perf_monitor may have come to its numbers.
type hypothesis struct {
	writer flops.Writer
	dp     float64 // data-parallel size left out; 1: none
}

// judgePerfMonitor looks for a reason why perf_monitor's FLOPs are not what its own formula makes of the model. Its errors are known
// (its batch is micro batch × micro batches, without the data-parallel size; its ways to count a mixture of experts), so each is tried,
// those that assume least first.
func (t *train) judgePerfMonitor(w *work, s *scratch) {
	if !positive(w.batch) {
		return
	}
	candidates := w.dataParallelSizes()
	found := hypothesis{dp: 1}
	if counted, tolerance := w.counted(); w.res.known && counted > 0 {
		ok := false
		if found, ok = w.explain(counted, tolerance, candidates); !ok {
			expected := flops.FlagScale(&w.res.model, flops.Merged).Times(w.batch).Model()
			t.sayDisagree(expected, counted, " TFLOP per step", s)
			return
		}
		w.sayWriter(found.writer, counted, s)
	}
	t.judgeSamples(w, found, candidates, s)
}

// counted is the {flop} of one step by the log, and how far print rounding and time measurement may have moved it, relative.
func (w *work) counted() (flop, tolerance float64) {
	const printed = 0.005e12 // %.2f TFLOP(/s)
	if w.flopCountReported > 0 {
		return w.flopCountReported, 1e-3 + printed/w.flopCountReported
	}
	rate := w.flopReported
	each := rate
	if !(rate > 0) {
		each = w.deviceReported
		rate = each * w.world
	}
	return rate * w.seconds, 1e-3 + printed/each + w.timeRounding()
}

// timeRounding is that of %.1f ms, relative.
func (w *work) timeRounding() float64 { return 0.05e-3 / w.seconds }

// maxDivisors is more than a number below 2²⁰ has.
const maxDivisors = 256

// dataParallelSizes lists what the data-parallel size may be, without 1: the model's, else every divisor of the world size.
func (w *work) dataParallelSizes() []float64 {
	r := w.res
	if r.dpsWorld == w.world {
		return r.dps
	}
	r.dpsWorld, r.dps = w.world, r.dps[:0]
	if dp := r.model.DataParallelSize; dp > 0 {
		if dp > 1 {
			r.dps = append(r.dps, float64(dp))
		}
		return r.dps
	}
	for n := 2.0; n <= w.world && w.world < 1<<20 && len(r.dps) < maxDivisors; n++ {
		if math.Mod(w.world, n) == 0 {
			r.dps = append(r.dps, n)
		}
	}
	return r.dps
}

func (w *work) explain(counted, tolerance float64, dps []float64) (hypothesis, bool) {
	m := &w.res.model
	writers := [...]flops.Writer{flops.Merged, flops.MergedMixtral, flops.Douzi}
	var expected [len(writers)]float64
	for i, writer := range writers {
		expected[i] = flops.FlagScale(m, writer).Times(w.batch).Model()
	}
	fits := func(i int, dp float64) bool { return math.Abs(counted*dp/expected[i]-1) <= tolerance }
	if fits(0, 1) {
		return hypothesis{writers[0], 1}, true
	}
	for _, dp := range dps {
		if fits(0, dp) {
			return hypothesis{writers[0], dp}, true
		}
	}
	for i := 1; i < len(writers); i++ {
		if fits(i, 1) {
			return hypothesis{writers[i], 1}, true
		}
	}
	for i := 1; i < len(writers); i++ {
		for _, dp := range dps {
			if fits(i, dp) {
				return hypothesis{writers[i], dp}, true
			}
		}
	}
	return hypothesis{}, false
}

// sayWriter names the error of a writer in counting a mixture of experts. Of a dense model, Douzi has only another default size.
func (w *work) sayWriter(writer flops.Writer, counted float64, s *scratch) {
	if writer == flops.Merged || w.res.model.NumExperts == 0 {
		return
	}
	whole := flops.FlagScale(&w.res.model, flops.Merged).Times(w.batch).Model()
	share := flops.FlagScale(&w.res.model, writer).Times(w.batch).Model() / whole
	v := verdict{name: spans.VerdictFlagScaleMoE, severity: warning, value: share, threshold: 1}
	what := "perf_monitor counted the mixture of experts as a dense model (--perf-model-type mixtral does that; moe does not)"
	if writer == flops.Douzi {
		v.name = spans.VerdictFlagScaleSwiGLU
		what = "perf_monitor counted the experts without SwiGLU"
	}
	s.say(v, func(b []byte) []byte {
		b = append(b, what...)
		b = append(b, ": it found "...)
		b = appendShort(b, counted/1e12)
		b = append(b, " TFLOP per step, which is "...)
		b = appendPercent(b, share)
		b = append(b, " of what its formula makes of the model. Use the recomputed FLOP/s."...)
		return b
	})
}

// judgeSamples compares the samples of a step by the log with the batch, and says together with the FLOPs whether the data-parallel size was left out.
func (t *train) judgeSamples(w *work, found hypothesis, dps []float64, s *scratch) {
	seen := w.sampleThroughput * w.seconds
	if seen > 0 && found.dp == 1 {
		tolerance := 1e-3 + 0.05/w.sampleThroughput + w.timeRounding()
		if off := math.Abs(seen/w.batch - 1); off > tolerance {
			for _, dp := range dps {
				if math.Abs(seen*dp/w.batch-1) <= tolerance {
					found.dp = dp
					break
				}
			}
			if found.dp == 1 {
				t.saySamples(w, seen, off, tolerance, s)
			}
		}
	}
	if found.dp == 1 {
		return
	}
	s.say(verdict{name: spans.VerdictFlagScaleDP, severity: warning, value: 1 / found.dp, threshold: 1}, func(b []byte) []byte {
		b = append(b, "perf_monitor left out the data-parallel size of "...)
		b = appendShort(b, found.dp)
		b = append(b, ": it counted "...)
		b = appendShort(b, w.batch/found.dp)
		b = append(b, " of the "...)
		b = appendShort(b, w.batch)
		b = append(b, " samples of a step, so that its samples/s, tokens/s and TFLOPS are that many times too low. Use the recomputed FLOP/s."...)
		return b
	})
}

// judgeReport compares what any other log says with what was recomputed.
func (t *train) judgeReport(w *work, s *scratch) {
	reported, recomputed, unit := w.deviceReported, w.device, " TFLOP/s per device"
	if !(reported > 0 && recomputed > 0) {
		reported, recomputed, unit = w.flopReported, w.total, " TFLOP/s"
	}
	// Logs print one decimal of TFLOP/s. Who counts the other half of the attention matrix, or leaves it out, does not disagree.
	other := recomputed * w.res.other.Model() / w.res.sample.Model()
	const printed = 0.05e12
	if reported > 0 && positive(recomputed) && w.formula != formulaReported {
		limit := t.cfg.FlopsDisagreement + printed/recomputed
		if math.Abs(reported/recomputed-1) > limit && math.Abs(reported/other-1) > limit {
			t.sayDisagree(recomputed, reported, unit, s)
		}
	}
	if seen := w.sampleThroughput * w.seconds; seen > 0 && w.batchSize > 0 {
		t.saySamples(w, seen, math.Abs(seen/w.batchSize-1), 0.05/w.sampleThroughput+w.timeRounding(), s)
	}
}

func (t *train) sayDisagree(expected, counted float64, unit string, s *scratch) {
	off := math.Abs(expected-counted) / expected
	if !(off > t.cfg.FlopsDisagreement) {
		return
	}
	s.say(verdict{name: spans.VerdictFlopsDisagree, severity: warning, value: off, threshold: t.cfg.FlopsDisagreement}, func(b []byte) []byte {
		b = append(b, "The log has "...)
		b = appendShort(b, counted/1e12)
		b = append(b, unit...)
		b = append(b, " where the model makes "...)
		b = appendShort(b, expected/1e12)
		b = append(b, ", which is "...)
		b = appendPercent(b, off)
		return append(b, " off, and no known error explains it. Check the description of the model and the batch size."...)
	})
}

func (t *train) saySamples(w *work, seen, off, tolerance float64, s *scratch) {
	if !(off > t.cfg.FlopsDisagreement+tolerance) {
		return
	}
	s.say(verdict{name: spans.VerdictThroughputReported, severity: warning, value: off, threshold: t.cfg.FlopsDisagreement}, func(b []byte) []byte {
		b = append(b, "The log's "...)
		b = appendShort(b, w.sampleThroughput)
		b = append(b, " samples/s times its step time of "...)
		b = appendShort(b, w.seconds)
		b = append(b, " s make "...)
		b = appendShort(b, seen)
		b = append(b, " samples, "...)
		b = appendPercent(b, off)
		b = append(b, " off the batch of "...)
		b = appendShort(b, w.batch)
		return append(b, ": one of them is not what it says."...)
	})
}

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
// (its batch is micro batch × micro batches, without the data-parallel size; its ways to count a mixture of experts and grouped queries), so each is tried,
// those that assume least first. The data-parallel size needs no model: samples/s × time is the batch that it counted.
func (t *train) judgePerfMonitor(w *work, s *scratch) {
	if !positive(w.batch) {
		return
	}
	candidates := w.dataParallelSizes()
	found, explained := hypothesis{dp: 1}, true
	if counted, tolerance := w.counted(); w.res.known && counted > 0 {
		if found, explained = w.explain(counted, tolerance, w.bySamples(candidates)); explained {
			w.sayWriter(found.writer, counted, s)
		} else {
			found.dp = 1
			expected := flops.FlagScale(&w.res.model, flops.Merged).Times(w.batch).Model()
			t.sayDisagree(w, expected, counted, " TFLOP per step", s)
		}
	}
	t.judgeSamples(w, found, explained, candidates, s)
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

// seen is the samples of a step by perf_monitor's rates, and how far print rounding may have moved it, relative: samples/s have one decimal, and
// tokens/s, which are those times seq_length, tell more where they are of the same.
func (w *work) seen() (samples, tolerance float64) {
	rate, rounding := w.sampleThroughput, 0.05/w.sampleThroughput
	if finer := w.tokenThroughput / w.seq; math.Abs(finer-rate) <= 0.051 {
		rate, rounding = finer, 0.5/w.tokenThroughput
	}
	return rate * w.seconds, 1e-3 + rounding + w.timeRounding()
}

// bySamples keeps the data-parallel size that the samples of a step show. A model that is described wrongly may make the FLOPs look like another.
func (w *work) bySamples(dps []float64) []float64 {
	samples, tolerance := w.seen()
	if math.Abs(samples/w.batch-1) <= tolerance {
		return nil
	}
	for i, dp := range dps {
		if math.Abs(samples*dp/w.batch-1) <= tolerance {
			return dps[i : i+1]
		}
	}
	return dps
}

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
	if w.world == 0 { // what samples/s × time makes, if that is a whole share of the batch
		seen, tolerance := w.seen()
		if n := math.Round(w.batch / seen); n > 1 && math.Abs(seen*n/w.batch-1) <= tolerance && n*tolerance < 0.3 {
			r.dps = append(r.dps, n)
		}
		r.dpsWorld = -1 // of this step
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
	writers := [...]flops.Writer{flops.Merged, flops.MergedMixtral, flops.Douzi, flops.DouziUnnamed}
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

// sayWriter names the error of a writer. Of a dense model, Douzi has only another default size.
func (w *work) sayWriter(writer flops.Writer, counted float64, s *scratch) {
	m := &w.res.model
	whole := flops.FlagScale(m, flops.Merged).Times(w.batch).Model()
	share := flops.FlagScale(m, writer).Times(w.batch).Model() / whole
	v := verdict{severity: warning, value: share, threshold: 1}
	var what string
	switch {
	case writer == flops.Merged:
		return
	case m.NumExperts == 0 && m.QueryGroups > 0 && m.QueryGroups < m.AttentionHeads && share > 1:
		v.name = spans.VerdictFlagScaleGQA
		what = "perf_monitor counted as many heads for keys and values as for queries, where the model has grouped queries: it takes the formula of a GPT " +
			"where it is given no model_name, which Megatron has no argument for (the merged version with --perf-model-type gpt)"
	case m.NumExperts == 0:
		return
	case writer == flops.MergedMixtral:
		v.name = spans.VerdictFlagScaleMoE
		what = "perf_monitor counted the mixture of experts as a dense model (--perf-model-type mixtral does that; moe does not)"
	default:
		v.name = spans.VerdictFlagScaleSwiGLU
		what = "perf_monitor counted the experts without SwiGLU"
	}
	s.sayOnce(v, func(b []byte) []byte {
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
func (t *train) judgeSamples(w *work, found hypothesis, explained bool, dps []float64, s *scratch) {
	seen, tolerance := w.seen()
	if seen > 0 && found.dp == 1 {
		if off := math.Abs(seen/w.batch - 1); off > tolerance {
			for _, dp := range dps {
				if math.Abs(seen*dp/w.batch-1) <= tolerance {
					found.dp = dp
					break
				}
			}
			if found.dp == 1 && explained {
				t.saySamples(w, seen, off, tolerance, s)
			}
		}
	}
	if found.dp == 1 {
		return
	}
	s.sayOnce(verdict{name: spans.VerdictFlagScaleDP, severity: warning, value: 1 / found.dp, threshold: 1}, func(b []byte) []byte {
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
	// Logs print one decimal of TFLOP/s. How much of the attention matrix counts is the log's own convention, and with sequences packed behind masks
	// a matter of their lengths: from none of it to all.
	const printed = 0.05e12
	if reported > 0 && positive(recomputed) && w.formula != formulaReported && !w.impossible {
		limit := t.cfg.FlopsDisagreement + printed/recomputed
		least, most := w.conventions()
		if times := reported / recomputed; times < least*(1-limit) || times > most*(1+limit) {
			t.sayDisagree(w, recomputed, reported, unit, s)
		}
	}
	if seen := w.sampleThroughput * w.seconds; seen > 0 && w.batchSize > 0 {
		t.saySamples(w, seen, math.Abs(seen/w.batchSize-1), 0.05/w.sampleThroughput+w.timeRounding(), s)
	}
}

// conventions are the FLOPs without the attention matrix and with all of it, by those that are counted.
func (w *work) conventions() (least, most float64) {
	model := w.res.sample.Model()
	return 1 - 3*w.res.sample.Attention/model, max(1, w.res.other.Model()/model)
}

func (t *train) sayDisagree(w *work, expected, counted float64, unit string, s *scratch) {
	off := math.Abs(expected-counted) / expected
	if !(off > t.cfg.FlopsDisagreement) {
		return
	}
	s.sayOnce(verdict{name: spans.VerdictFlopsDisagree, severity: warning, value: off, threshold: t.cfg.FlopsDisagreement}, func(b []byte) []byte {
		b = append(b, "The log has "...)
		b = appendShort(b, counted/1e12)
		b = append(b, unit...)
		b = append(b, " where the model makes "...)
		b = appendShort(b, expected/1e12)
		b = append(b, ", which is "...)
		b = appendPercent(b, off)
		b = append(b, " off. "...)
		if w.source == sourcePerfMonitor {
			b = append(b, "None of perf_monitor's known errors fits (data-parallel size left out, a GPT's formula for grouped queries, experts as dense or without SwiGLU)"...)
		} else if fit := t.fits(w, counted/expected); fit != "" {
			return append(append(append(b, "It fits that "...), fit...), '.')
		} else {
			b = append(b, "No cause that is known fits"...)
		}
		b = append(b, ": compare the model's description, seq_length, the batch of "...)
		b = appendShort(b, w.batch)
		return append(b, " and the number of devices with what runs, before the log is doubted."...)
	})
}

// fits names what makes a log's FLOP/s so many times the recomputed ones; empty: nothing that is known.
func (t *train) fits(w *work, times float64) string {
	model := w.res.sample.Model()
	least, most := w.conventions()
	embedding := 3 * w.res.sample.Logits / model
	near := func(x float64) bool { return math.Abs(times/x-1) <= t.cfg.FlopsDisagreement }
	switch {
	case near(w.res.sample.Hardware(flops.RecomputeFull) / model):
		return "the log counts recomputed activations too (recompute: full), as HFU does"
	case times >= (least+embedding)*(1-t.cfg.FlopsDisagreement) && times <= (most+embedding)*(1+t.cfg.FlopsDisagreement):
		return "the log counts the embedding too, as 6 FLOPs per parameter and token do"
	case near(1. / 3):
		return "the log counts the forward pass only"
	case near(1000) || near(1e-3):
		return "one of them is in another unit, GFLOP/s or TFLOP/s"
	case w.res.model.DataParallelSize > 1 && near(1/float64(w.res.model.DataParallelSize)):
		return "the log leaves out the data-parallel size"
	case w.world > 1 && (near(w.world) || near(1/w.world)):
		return "one of them is of a single device and the other of all"
	case w.sampleThroughput > 0 && near(w.sampleThroughput*w.seconds/w.batch):
		return "the batch is another: the log's samples/s × time make the same share of it"
	}
	return ""
}

func (t *train) saySamples(w *work, seen, off, tolerance float64, s *scratch) {
	if !(off > t.cfg.FlopsDisagreement+tolerance) {
		return
	}
	s.sayOnce(verdict{name: spans.VerdictThroughputReported, severity: warning, value: off, threshold: t.cfg.FlopsDisagreement}, func(b []byte) []byte {
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
		if n := w.world; n > 1 && math.Abs(seen*n/w.batch-1) <= tolerance+t.cfg.FlopsDisagreement {
			return append(b, ": that fits samples/s of one device, not of all."...)
		}
		if n := w.covered; n > 1 && math.Abs(seen/n/w.batch-1) <= tolerance+t.cfg.FlopsDisagreement {
			return append(b, ": that fits a time of all steps that the record covers, not of one."...)
		}
		return append(b, ": the batch, the time or the rate is of something else (padded, of one device, of another step)."...)
	})
}

package steps

import (
	"math"

	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/flops"
)

// hypothesis is a possible origin of perf_monitor's numbers.
type hypothesis struct {
	writer flops.Writer
	dp     float64 // data-parallel size left out; 1: none
}

// judgePerfMonitor gives the verdict about the known error of perf_monitor by which its FLOPs differ from the right ones. Its batch is micro batch × micro
// batches, without the data-parallel size; its versions (flops.Writer) miscount mixtures of experts and grouped queries. Hypotheses with fewer assumptions are
// tried first. The data-parallel size needs no model: samples/s × time is the counted batch.
func (j *judge) judgePerfMonitor() {
	if !positive(j.batch) {
		return
	}
	sizes := j.dataParallelSizes()
	found, explained := hypothesis{dp: 1}, true
	if counted, tolerance := j.loggedFlops(); j.res.known && counted > 0 {
		found, explained = j.explain(counted, tolerance, j.bySamples(sizes))
		if explained {
			j.sayWriter(found.writer, counted)
		} else {
			found.dp = 1
			j.sayDisagree(flops.FlagScale(&j.res.model, flops.Merged).Times(j.batch).Model(), counted, " TFLOP per step")
		}
	}
	j.judgeSamples(found, explained, sizes)
}

// loggedFlops returns the {flop} of one step by the log, and the relative error from rounding and time measurement: FLOPs as logged, else FLOP/s × time. 1e-3
// is the allowance for the measurement of the time.
func (w *work) loggedFlops() (flop, tolerance float64) {
	const printed = 0.005e12 // %.2f TFLOP(/s)
	if w.FlopCountReported > 0 {
		return w.FlopCountReported, 1e-3 + printed/w.FlopCountReported
	}
	rate := w.FlopThroughputReported
	each := rate
	if !(rate > 0) {
		each = w.DeviceFlopThroughputReported
		rate = each * w.world
	}
	return rate * w.seconds, 1e-3 + printed/each + w.timeRounding()
}

// timeRounding returns the relative error of the time from printing with %.1f ms.
func (w *work) timeRounding() float64 { return 0.05e-3 / w.seconds }

// loggedSamples returns the samples of a step by perf_monitor's rates, and the relative error from rounding and time measurement (1e-3, as in loggedFlops).
// samples/s have one decimal; tokens/s = samples/s × seq_length is more precise, if both are about the same samples.
func (w *work) loggedSamples() (samples, tolerance float64) {
	rate, rounding := w.SampleThroughput, 0.05/w.SampleThroughput
	if finer := w.TokenThroughput / w.seq; math.Abs(finer-rate) <= 0.051 { // the rounding of rate, and 0.001 for floats
		rate, rounding = finer, 0.5/w.TokenThroughput
	}
	return rate * w.seconds, 1e-3 + rounding + w.timeRounding()
}

// bySamples returns the one of the possible data-parallel sizes that agrees with the samples of a step; nil: the samples are the whole batch; every size, if
// none agrees. Without this, a wrong description of the model could let the FLOPs suggest another size.
func (w *work) bySamples(dps []float64) []float64 {
	samples, tolerance := w.loggedSamples()
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

// maxDivisors is more than any number below 2²⁰ has divisors.
const maxDivisors = 256

// dataParallelSizes returns the possible data-parallel sizes except 1: that of the model, else every divisor of the world size (below 2²⁰), else, with an
// unknown world size and for this step alone, the size that its samples suggest.
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
	if w.world == 0 { // take batch / (samples/s × time), if a whole number and, with an error below 0.3, no other
		seen, tolerance := w.loggedSamples()
		n := math.Round(w.batch / seen)
		isWhole, noOther := math.Abs(seen*n/w.batch-1) <= tolerance, n*tolerance < 0.3
		if n > 1 && isWhole && noOther {
			r.dps = append(r.dps, n)
		}
		r.dpsWorld = -1 // valid for this step only
		return r.dps
	}
	for n := 2.0; n <= w.world && w.world < 1<<20 && len(r.dps) < maxDivisors; n++ {
		if math.Mod(w.world, n) == 0 {
			r.dps = append(r.dps, n)
		}
	}
	return r.dps
}

// explain returns the hypothesis by which the counted {flop} of a step are right within the tolerance; false: none. Fewer assumptions come first: no error;
// only the data-parallel size left out; only another writer's formula; both.
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

// sayWriter gives the verdict about the error in the formula of a writer. Merged has no error; for a dense model, Douzi only has another default size, which is
// no error.
func (j *judge) sayWriter(writer flops.Writer, counted float64) {
	m := &j.res.model
	whole := flops.FlagScale(m, flops.Merged).Times(j.batch).Model()
	share := flops.FlagScale(m, writer).Times(j.batch).Model() / whole
	var v *verdict.Verdict[judge]
	groupedQueries := m.QueryGroups > 0 && m.QueryGroups < m.AttentionHeads
	switch {
	case writer == flops.Merged:
		return
	case m.NumExperts == 0 && groupedQueries && share > 1:
		v = flagScaleGQA
	case m.NumExperts == 0:
		return
	case writer == flops.MergedMixtral:
		v = flagScaleMoE
	default:
		v = flagScaleSwiGLU
	}
	j.counted = counted
	j.sayOnce(v, share, 1)
}

// judgeSamples gives the verdict that the data-parallel size was left out, if the FLOPs (found) or else the samples of a step say so; or the verdict that the
// samples are off the batch for no known reason, unless the FLOPs were already reported as unexplained (explained is false).
func (j *judge) judgeSamples(found hypothesis, explained bool, dps []float64) {
	seen, tolerance := j.loggedSamples()
	if seen > 0 && found.dp == 1 {
		if off := math.Abs(seen/j.batch - 1); off > tolerance {
			for _, dp := range dps {
				if math.Abs(seen*dp/j.batch-1) <= tolerance {
					found.dp = dp
					break
				}
			}
			if found.dp == 1 && explained {
				j.saySamples(seen, off, tolerance)
			}
		}
	}
	if found.dp != 1 {
		j.leftOut = found.dp
		j.sayOnce(flagScaleDP, 1/found.dp, 1)
	}
}

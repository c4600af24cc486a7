package steps

import (
	"math"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/flops"
)

// judgeReport compares the logged FLOP/s with the recomputed FLOP/s, of a device if both are known, else of all; and samples/s × time with the batch. It is for
// any log but perf_monitor's (judgePerfMonitor).
func (j *judge) judgeReport() {
	logged, recomputed, unit := j.DeviceFlopThroughputReported, j.device, " TFLOP/s per device"
	if !(logged > 0 && recomputed > 0) {
		logged, recomputed, unit = j.FlopThroughputReported, j.total, " TFLOP/s"
	}
	// Logs print one decimal of TFLOP/s. The counted part of the attention matrix is the log's own convention; with sequences packed behind masks, it depends
	// on their lengths: from none to the whole matrix.
	const printed = 0.05e12
	comparable := j.formula != formulaReported && !j.impossible // an impossible MFU has its own verdict
	if logged > 0 && positive(recomputed) && comparable {
		limit := j.cfg.FlopsDisagreement + printed/recomputed
		least, most := j.rightShares() // of what may rightly be logged, as a share of the recomputed
		if times := logged / recomputed; times < least*(1-limit) || times > most*(1+limit) {
			j.sayDisagree(recomputed, logged, unit)
		}
	}
	if seen := j.SampleThroughput * j.seconds; seen > 0 && j.BatchSize > 0 {
		j.saySamples(seen, math.Abs(seen/j.BatchSize-1), 0.05/j.SampleThroughput+j.timeRounding()) // samples/s are printed with one decimal
	}
}

// rightShares returns the least and the most FLOPs that a correct log may count, as shares of the counted FLOPs: without the attention matrix, and with the
// whole matrix.
func (w *work) rightShares() (least, most float64) {
	model := w.res.sample.Model()
	return 1 - 3*w.res.sample.Attention/model, max(1, w.res.other.Model()/model)
}

// sayDisagree gives the verdict that the logged FLOPs are not those of the model, if they differ by more than the configured share; with a reason, if one fits.
func (j *judge) sayDisagree(expected, counted float64, unit string) {
	off := math.Abs(expected-counted) / expected
	if !(off > j.cfg.FlopsDisagreement) {
		return
	}
	j.expected, j.counted, j.unit, j.whatFits = expected, counted, unit, ""
	if j.Format != formatPerfMonitor {
		j.whatFits = j.reasonFor(counted / expected)
	}
	j.sayOnce(flopsDisagree, off, j.cfg.FlopsDisagreement)
}

// reasonFor returns a reason why the logged FLOP/s may be so many times the recomputed FLOP/s; empty: no known reason.
func (j *judge) reasonFor(times float64) string {
	model := j.res.sample.Model()
	least, most := j.rightShares()
	embedding := 3 * j.res.sample.Logits / model
	near := func(x float64) bool { return math.Abs(times/x-1) <= j.cfg.FlopsDisagreement }
	switch {
	case near(j.res.sample.Hardware(flops.RecomputeFull) / model):
		return "the log counts recomputed activations too (recompute: full), as HFU does"
	case times >= (least+embedding)*(1-j.cfg.FlopsDisagreement) && times <= (most+embedding)*(1+j.cfg.FlopsDisagreement):
		return "the log counts the embedding too, as 6 FLOPs per parameter and token do"
	case near(1. / 3):
		return "the log counts the forward pass only"
	case near(1000) || near(1e-3):
		return "the units differ: GFLOP/s, TFLOP/s"
	case j.res.model.DataParallelSize > 1 && near(1/float64(j.res.model.DataParallelSize)):
		return "the log leaves out the data-parallel size"
	case j.world > 1 && (near(j.world) || near(1/j.world)):
		return "the log is of a single device and the model of all, or the reverse"
	case j.SampleThroughput > 0 && near(j.SampleThroughput*j.seconds/j.batch):
		return "the batch is another: the log's samples/s times the step time make the same share"
	}
	return ""
}

// saySamples gives the verdict that samples/s × time (seen) differ from the batch by the share off, if off exceeds the tolerance for printed numbers and
// Config.FlopsDisagreement.
func (j *judge) saySamples(seen, off, tolerance float64) {
	if off > j.cfg.FlopsDisagreement+tolerance {
		j.samples, j.tolerance = seen, tolerance
		j.sayOnce(throughputDisagrees, off, j.cfg.FlopsDisagreement)
	}
}

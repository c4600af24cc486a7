package steps

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
)

// sayOnce says a verdict about the run as often as its episode allows, not on each step.
func (j *judge) sayOnce(v *verdict.Verdict[judge], value, threshold float64) {
	j.sayIf(v, j.recentBy.episodes.Holds(v.Episode()), value, threshold)
}

// sayMostly says a verdict about the step alone: on each such step, until nearly all steps have it.
func (j *judge) sayMostly(v *verdict.Verdict[judge], value, threshold float64) {
	j.sayIf(v, j.recentBy.episodes.Mostly(v.Episode()), value, threshold)
}

// sayIf says a verdict, if the answer of its episode allows.
func (j *judge) sayIf(v *verdict.Verdict[judge], answer episode.Answer, value, threshold float64) {
	j.answer = answer
	if answer.Say {
		v.Say(&j.sheet, j, value, threshold)
	}
}

// judgeStep gives the verdicts about one step: its loss, its MFU, and its speed against the steps before. Of the speeds in the log, the first in the order of
// quantity is judged.
func (j *judge) judgeStep() {
	j.judgeLoss()
	isFirst := j.place.OK && j.place.N <= 1 // compiles and allocates
	switch {
	case j.impossible:
		j.sayOnce(mfuImpossible, j.mfu, j.mfuLimit())
	// perf_monitor's FLOP/s omit the data-parallel size: the true MFU is at least the reported one.
	case j.Format == formatPerfMonitor && j.formula == formulaReported:
	case j.mfu > 0 && j.mfu < j.cfg.MFULow && !isFirst:
		j.sayMostly(mfuLow, j.mfu, j.cfg.MFULow)
	}
	flops := j.DeviceFlopThroughputReported
	if !(flops > 0) {
		flops = j.FlopThroughputReported
	}
	speeds := [...]float64{j.SampleThroughput, j.TokenThroughput, j.DeviceTokenThroughput, flops, 1 / j.seconds}
	for q, x := range speeds {
		if positive(x) {
			j.judgeSpeed(quantity(q), x)
			return
		}
	}
}

// compare compares a value of the step with the values before it in its series (by service, run, format, rank and quantity), and adds it. The result is valid
// until the next call.
func (j *judge) compare(q quantity, x float64) *finding {
	batch := j.BatchSize // another batch size restarts the series, except of a loss
	if math.IsNaN(batch) || q == quantityLoss {
		batch = 0
	}
	key := seriesKey{service: j.at.Service, run: j.at.Run, format: j.Format, rank: j.rank(), quantity: q}
	series, evicted := j.series.seriesOf(key, &j.recent)
	if evicted {
		j.tally.Evicted++
	}
	v := value{id: binary.BigEndian.Uint64(j.id[:]), x: x, batch: batch, world: j.worldOf(q), iteration: j.place.N, hasIteration: j.place.OK}
	series.add(q, &v, &j.cfg, &j.found)
	return &j.found
}

// worldOf returns the logged number of ranks; 0: not logged, or q is the loss, which does not depend on the ranks.
func (j *judge) worldOf(q quantity) int64 {
	if q == quantityLoss {
		return 0
	}
	return cmp.Or(max(0, j.WorldSize.N), max(0, j.res.world))
}

// judgeLoss gives a verdict on a loss that is not finite, or a spike.
func (j *judge) judgeLoss() {
	if j.Loss.NotFinite() != "" {
		j.sayMostly(lossNotFinite, math.NaN(), math.NaN())
		return
	}
	if math.IsNaN(j.Loss.Value) {
		return
	}
	if f := j.compare(quantityLoss, j.Loss.Value); f.spike {
		lossSpike.Say(&j.sheet, j, j.Loss.Value, f.median+max(spikeFloor*math.Abs(f.median), j.cfg.LossSpike*f.spread))
	}
}

// judgeSpeed gives the verdicts on a step that is slower than those before, and on a run that has slowed down. Where the log counts tokens and states no rate,
// steps may differ in their tokens, as with reinforcement learning: a longer step is slow only if its tokens per second are low too.
func (j *judge) judgeSpeed(q quantity, x float64) {
	low, slow := true, true
	if q == quantitySteps && positive(j.Tokens) {
		f := j.compare(quantityTokens, j.Tokens/(j.seconds*j.covered))
		low, slow = f.low, f.slow
	}
	f := j.compare(q, x)
	j.quantity, j.speed = q, x
	if f.low && low {
		limit := min(f.p10, f.median*(1-j.cfg.ThroughputDrop), f.chanceLimit()) // the speed was below all three
		throughputLow.Say(&j.sheet, j, q.stated(x), q.stated(limit))
	}
	if f.slow && slow {
		slowdown.Say(&j.sheet, j, q.stated(f.current), q.stated(f.best/(1+j.cfg.Slowdown)))
	}
}

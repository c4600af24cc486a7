package steps

import (
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
	"github.com/trainbridge/trainbridge/spans"
)

// A sentence says the fact first, then the advice.
const (
	mfuIs = "MFU is {value:percent}: {device flop/s} of {peak flop/s} TFLOP/s per device[is reported?, as logged]"

	compare = ". Compare the configured model, seq_length, batch of {batch} and number of devices with the job's."

	// found is how the sentence about an error of perf_monitor ends.
	found = ": {counted} TFLOP per step, {value:percent} of what its formula makes of the model. Use the recomputed FLOP/s."
)

var again = episode.Share("records")

var (
	lossNotFinite = verdict.New(spans.VerdictLossNotFinite, "The loss is {loss}: the run has diverged or overflowed. "+
		"Go back to the last good checkpoint; check the learning rate, the loss scale and the data of this step."+again, &places)
	lossSpike = verdict.New(spans.VerdictLossSpike, "The loss rose to {value}; the median of the last {compared} is {median loss}, "+
		"the limit {threshold}. Check the data of this step, the gradient norm and the learning rate.", &places)

	mfuLow = verdict.New(spans.VerdictMFULow, mfuIs+"; the limit is {threshold:percent}. "+
		"Check data loading, the micro batch size, exposed communication and the pipeline bubble"+
		"[is implausible?; so little may also mean a wrong device, number of devices or unit]."+again, &places)
	mfuImpossible = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseMFUImpossible,
		mfuIs+", more than the device can do. Likely causes, in this order: {causes}."+again, &places)

	throughputLow = verdict.New(spans.VerdictThroughputLow, "{step} [by time?took|ran at] {speed}; usual is {median speed}. "+
		"Check data loading, the network, and whether a checkpoint or an evaluation ran.", &places)
	slowdown = verdict.New(spans.VerdictSlowdown, "The run has slowed down: {current speed}, at best {best speed} (medians of {window}); "+
		"steps take {slowdown:percent} longer. "+
		"Check for a throttled device, other jobs on the network or the storage, and memory fragmentation.", &places)

	flopsDisagree = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseFlopsDisagree,
		"The log has {counted}{unit}, the model makes {expected}: {value:percent} off. "+
			"[perf_monitor?No known error of perf_monitor fits (data-parallel size left out, a GPT's formula for grouped queries, "+
			"experts as dense or without SwiGLU)"+compare+"|[It fits if {what fits}.|No known cause fits"+compare+"]]"+again, &places)
	throughputDisagrees = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseThroughputDisagrees,
		"The log's {samples/s} samples/s times {seconds:seconds} make {samples} samples, {value:percent} off the batch of {batch}. "+
			"[fits one device?It fits if samples/s are of one device|[fits all steps?It fits if the time is of all steps of the record"+
			"|The batch, the time or the rate is of something else (padded, of one device, of another step)]]."+again, &places)

	flagScaleGQA = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseGQAAsMHA,
		"perf_monitor counted grouped queries as full multi-head attention, by its formula of a GPT "+
			"(Megatron has no model_name; the merged version has --perf-model-type gpt)"+found+again, &places)
	flagScaleMoE = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseMoEAsDense,
		"perf_monitor counted the mixture of experts as a dense model (--perf-model-type mixtral does so; moe does not)"+found+again, &places)
	flagScaleSwiGLU = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseSwiGLUOmitted, "perf_monitor counted the experts without SwiGLU"+found+again, &places)
	flagScaleDP     = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseDPOmitted,
		"perf_monitor left out the data-parallel size of {left out} ({samples counted} of {batch} samples per step): "+
			"its samples/s, tokens/s and TFLOPS are too low by that factor. Use the recomputed FLOP/s."+again, &places)

	rankSlow = verdict.New(spans.VerdictRankSlow, "Rank {slow rank}[ and {more ranks} more] computed for {slow time:seconds}, "+
		"{value:percent} longer than the [one peer?fastest|median of the {peers} other ranks of its pipeline stage], mostly in {slow stage}: "+
		"slow in {slow records} of the last {seen records} records. All others wait. "+
		"Check the clock, temperature and errors of its GPU, its host, and its share of the work (experts, sequence lengths)."+
		again, &places)
)

// saying holds the findings about a step for its sentences, beside the step itself.
type saying struct {
	answer   episode.Answer
	quantity quantity // of the judged speed
	speed    float64

	expected, counted float64 // {flop}, or {flop}/s: of the model, and of the log
	unit              string
	whatFits          string  // "": no known reason
	samples           float64 // of a step, by the log's samples/s × time
	tolerance         float64 // of samples
	leftOut           float64 // data-parallel size

	slowest                  slowest
	slowRank                 int64
	slowRecords, seenRecords int64
	behind                   []int64 // ranks as slow as the slowest
}

var places = verdict.Places[judge]{
	Numbers: map[string]func(*judge) float64{
		"device flop/s":   func(j *judge) float64 { return j.mfu * j.peak / 1e12 },
		"peak flop/s":     func(j *judge) float64 { return j.peak / 1e12 },
		"median loss":     func(j *judge) float64 { return j.found.median },
		"slowdown":        func(j *judge) float64 { return j.found.best/j.found.current - 1 },
		"batch":           func(j *judge) float64 { return j.batch },
		"counted":         func(j *judge) float64 { return j.counted / 1e12 },
		"expected":        func(j *judge) float64 { return j.expected / 1e12 },
		"samples/s":       func(j *judge) float64 { return j.SampleThroughput },
		"seconds":         func(j *judge) float64 { return j.seconds },
		"samples":         func(j *judge) float64 { return j.samples },
		"left out":        func(j *judge) float64 { return j.leftOut },
		"samples counted": func(j *judge) float64 { return j.batch / j.leftOut },
		"slow time":       func(j *judge) float64 { return j.slowest.Duration },
	},
	Counts: map[string]func(*judge) int64{
		"held":         func(j *judge) int64 { return j.answer.HeldAgain() },
		"of":           func(j *judge) int64 { return int64(j.answer.Of) },
		"compared":     func(j *judge) int64 { return int64(j.found.n) },
		"window":       func(j *judge) int64 { return int64(j.cfg.Window) },
		"slow rank":    func(j *judge) int64 { return j.slowRank },
		"more ranks":   func(j *judge) int64 { return positiveOrUnknown(len(j.behind) - 1) },
		"peers":        func(j *judge) int64 { return j.slowest.Peers.N },
		"slow records": func(j *judge) int64 { return j.slowRecords },
		"seen records": func(j *judge) int64 { return j.seenRecords },
	},
	Texts: map[string]func([]byte, *judge) []byte{
		"loss":          func(b []byte, j *judge) []byte { return append(b, j.Loss.NotFinite()...) },
		"unit":          func(b []byte, j *judge) []byte { return append(b, j.unit...) },
		"what fits":     func(b []byte, j *judge) []byte { return append(b, j.whatFits...) },
		"slow stage":    func(b []byte, j *judge) []byte { return append(b, j.slowest.Stage...) },
		"causes":        appendCauses,
		"step":          func(b []byte, j *judge) []byte { return appendStep(b, j.Step.Step().Or(-1)) },
		"speed":         func(b []byte, j *judge) []byte { return j.quantity.append(b, j.speed) },
		"median speed":  func(b []byte, j *judge) []byte { return j.quantity.append(b, j.found.median) },
		"current speed": func(b []byte, j *judge) []byte { return j.quantity.append(b, j.found.current) },
		"best speed":    func(b []byte, j *judge) []byte { return j.quantity.append(b, j.found.best) },
	},
	When: map[string]func(*judge) bool{
		"by time":        func(j *judge) bool { return j.quantity == quantitySteps },
		"is reported":    func(j *judge) bool { return j.formula == formulaReported },
		"is implausible": func(j *judge) bool { return j.mfu < implausible },
		"perf_monitor":   func(j *judge) bool { return j.Format == formatPerfMonitor },
		"fits one device": func(j *judge) bool {
			return j.world > 1 && math.Abs(j.samples*j.world/j.batch-1) <= j.tolerance+j.cfg.FlopsDisagreement
		},
		"fits all steps": func(j *judge) bool {
			return j.covered > 1 && math.Abs(j.samples/j.covered/j.batch-1) <= j.tolerance+j.cfg.FlopsDisagreement
		},
		"one peer": func(j *judge) bool { return j.slowest.Peers.N == 1 },
	},
}

// positiveOrUnknown returns n, or −1 (unknown) if n is 0 or less.
func positiveOrUnknown(n int) int64 {
	if n > 0 {
		return int64(n)
	}
	return -1
}

// appendStep appends the subject of a sentence about a step: "Step 17", or "The step" if number is negative.
func appendStep(b []byte, number int64) []byte {
	if number < 0 {
		return append(b, "The step"...)
	}
	return strconv.AppendInt(append(b, "Step "...), number, 10)
}

var speedUnit = [...]string{quantitySamples: " samples/s", quantityTokens: " tokens/s", quantityDeviceTokens: " tokens/s per device"}

// append appends a speed with its unit; for steps per second, the time of a step.
func (q quantity) append(b []byte, x float64) []byte {
	switch q {
	case quantitySteps:
		return human.AppendSeconds(b, q.stated(x))
	case quantityFlops:
		return human.AppendFlops(b, x)
	}
	return append(human.AppendDigits(b, x), speedUnit[q]...)
}

// stated returns a speed as written on the span: for steps per second, the time of a step.
func (q quantity) stated(x float64) float64 {
	if q == quantitySteps {
		return 1 / x
	}
	return x
}

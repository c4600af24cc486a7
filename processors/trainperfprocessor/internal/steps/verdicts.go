package steps

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	mfuIs = "MFU is {value:percent}: {device flop/s} of {peak flop/s} TFLOP/s per device[is reported?, as reported by the log]"

	compare = ": compare the model's description, seq_length, the batch of {batch} and the number of devices with what runs, before the log is doubted."

	// found is how the sentence about an error of perf_monitor ends.
	found = ": it found {counted} TFLOP per step, which is {value:percent} of what its formula makes of the model. Use the recomputed FLOP/s."
)

var again = episode.Share("records")

var (
	lossNotFinite = verdict.New(spans.VerdictLossNotFinite, "The loss is {loss}: the run has diverged or overflowed. "+
		"Go back to the last good checkpoint, and check the learning rate, the loss scale and the data of this step."+again, &places)
	lossSpike = verdict.New(spans.VerdictLossSpike, "The loss rose to {value}, where the median of the last {compared} is {median loss} "+
		"and the limit {threshold}: check the data of this step, the gradient norm and the learning rate.", &places)

	mfuLow = verdict.New(spans.VerdictMFULow, mfuIs+", below the limit of {threshold:percent}: "+
		"check data loading, the size of the micro batch, communication that is not overlapped, and the pipeline bubble"+
		"[is implausible?; so little may also mean another device, fewer devices, or another unit than assumed]."+again, &places)
	mfuImpossible = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseMFUImpossible,
		mfuIs+", more than it can do. Likely causes, in this order: {causes}."+again, &places)

	throughputLow = verdict.New(spans.VerdictThroughputLow, "The step ran at {speed}, {drop:percent} below the speed of the last {compared} "+
		"(median {median speed}, P10 {P10 speed}): check data loading, the network, and whether a checkpoint or an evaluation ran.", &places)
	slowdown = verdict.New(spans.VerdictSlowdown, "The run has slowed down: the median of the last {window} is {current speed}, "+
		"where its best was {best speed}: steps take {slowdown:percent} longer, above the limit of {slowdown's limit:percent}. "+
		"Check for a slow or throttled device, other jobs on the network or the storage, and memory fragmentation.", &places)

	flopsDisagree = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseFlopsDisagree,
		"The log has {counted}{unit} where the model makes {expected}, which is {value:percent} off. "+
			"[perf_monitor?None of perf_monitor's known errors fits (data-parallel size left out, a GPT's formula for grouped queries, "+
			"experts as dense or without SwiGLU)"+compare+"|[It fits that {what fits}.|No cause that is known fits"+compare+"]]"+again, &places)
	throughputDisagrees = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseThroughputDisagrees,
		"The log's {samples/s} samples/s times its step time of {seconds:seconds} make {samples} samples, {value:percent} off the batch of {batch}: "+
			"[fits one device?that fits samples/s of one device, not of all|[fits all steps?that fits a time of all steps that the record covers, not of one"+
			"|the batch, the time or the rate is of something else (padded, of one device, of another step)]]."+again, &places)

	flagScaleGQA = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseGQAAsMHA,
		"perf_monitor counted as many heads for keys and values as for queries, where the model has grouped queries: it takes the formula of a GPT "+
			"where it is given no model_name, which Megatron has no argument for (the merged version with --perf-model-type gpt)"+found+again, &places)
	flagScaleMoE = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseMoEAsDense,
		"perf_monitor counted the mixture of experts as a dense model (--perf-model-type mixtral does that; moe does not)"+found+again, &places)
	flagScaleSwiGLU = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseSwiGLUOmitted, "perf_monitor counted the experts without SwiGLU"+found+again, &places)
	flagScaleDP     = verdict.NewCause(spans.VerdictFlopsWrong, spans.CauseDPOmitted,
		"perf_monitor left out the data-parallel size of {left out}: it counted {samples counted} of the {batch} samples of a step, "+
			"so that its samples/s, tokens/s and TFLOPS are that many times too low. Use the recomputed FLOP/s."+again, &places)

	rankSlow = verdict.New(spans.VerdictRankSlow, "Rank {slow rank}[ and {more ranks} more that were as slow] computed for {slow time} ms, "+
		"{value:percent} longer than the [one peer?fastest|median of the {peers} other ranks of its pipeline stage], most of it lost in {slow stage}; "+
		"it was slow in {slow records} of the last {seen records} records. All others wait for it: "+
		"check the clock, temperature and errors of its device, what else runs on its host, and its share of the work (experts, lengths of sequences)."+
		again, &places)
)

// saying holds the findings about a step that sentences name beside the step itself.
type saying struct {
	told     episode.Told
	quantity quantity // of the speed that is judged
	speed    float64

	expected, counted float64 // {flop}, or {flop}/s: of the model, and of the log
	unit              string
	whatFits          string  // "": nothing that is known
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
		"device flop/s":    func(j *judge) float64 { return j.mfu * j.peak / 1e12 },
		"peak flop/s":      func(j *judge) float64 { return j.peak / 1e12 },
		"median loss":      func(j *judge) float64 { return j.found.median },
		"drop":             func(j *judge) float64 { return 1 - j.speed/j.found.median },
		"slowdown":         func(j *judge) float64 { return j.found.best/j.found.current - 1 },
		"slowdown's limit": func(j *judge) float64 { return j.cfg.Slowdown },
		"batch":            func(j *judge) float64 { return j.batch },
		"counted":          func(j *judge) float64 { return j.saying.counted / 1e12 },
		"expected":         func(j *judge) float64 { return j.expected / 1e12 },
		"samples/s":        func(j *judge) float64 { return j.SampleThroughput },
		"seconds":          func(j *judge) float64 { return j.seconds },
		"samples":          func(j *judge) float64 { return j.samples },
		"left out":         func(j *judge) float64 { return j.leftOut },
		"samples counted":  func(j *judge) float64 { return j.batch / j.leftOut },
		"slow time":        func(j *judge) float64 { return 1e3 * j.slowest.Duration },
	},
	Counts: map[string]func(*judge) int64{
		"held":         func(j *judge) int64 { return j.told.HeldAgain() },
		"of":           func(j *judge) int64 { return int64(j.told.Of) },
		"compared":     func(j *judge) int64 { return int64(j.found.n) },
		"window":       func(j *judge) int64 { return int64(j.cfg.Window) },
		"slow rank":    func(j *judge) int64 { return j.slowRank },
		"more ranks":   func(j *judge) int64 { return moreThanNone(len(j.behind) - 1) },
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
		"speed":         func(b []byte, j *judge) []byte { return j.quantity.append(b, j.speed) },
		"median speed":  func(b []byte, j *judge) []byte { return j.quantity.append(b, j.found.median) },
		"P10 speed":     func(b []byte, j *judge) []byte { return j.quantity.append(b, j.found.p10) },
		"current speed": func(b []byte, j *judge) []byte { return j.quantity.append(b, j.found.current) },
		"best speed":    func(b []byte, j *judge) []byte { return j.quantity.append(b, j.found.best) },
	},
	When: map[string]func(*judge) bool{
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

// moreThanNone is n, or −1 (not known) where n is 0.
func moreThanNone(n int) int64 {
	if n > 0 {
		return int64(n)
	}
	return -1
}

var speedUnit = [...]string{quantitySamples: " samples/s", quantityTokens: " tokens/s", quantityDeviceTokens: " tokens/s per device"}

// append writes a speed with its unit; steps are told by their time.
func (q quantity) append(b []byte, x float64) []byte {
	switch q {
	case quantitySteps:
		return append(human.AppendSeconds(b, q.tell(x)), " per step"...)
	case quantityFlops:
		return human.AppendFlops(b, x)
	}
	return append(human.AppendDigits(b, x), speedUnit[q]...)
}

// tell is a speed as the span states it: steps by their time.
func (q quantity) tell(x float64) float64 {
	if q == quantitySteps {
		return 1 / x
	}
	return x
}

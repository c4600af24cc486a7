package gen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// trainLog is a training log with a JSON line per step. Values in no other log of the job are made up: a falling loss, a learning rate with linear warm-up and
// cosine decay, busy GPUs.
type trainLog struct {
	log    *logfile.Log
	layout string     // of stamps
	curve  *rand.Rand // draws losses
	busy   *rand.Rand // draws how busy GPUs are
	n      int        // lines so far
}

const (
	samplesPerGPU = 4 // of a step
	lrMax         = 1.5e-4
	lrMin         = 1.5e-5
	lrWarmup      = 100  // steps
	firstLoss     = 11.5 // a curve from the first loss towards the last
	lastLoss      = 1.8
)

// part is a part of a step, in ns.
type part struct {
	name string
	took int64
}

// openTrain creates the training log, train/train.jsonl.
func (j *job) openTrain() (err error) {
	j.train = trainLog{
		layout: "2006-01-02T15:04:05.000Z",
		curve:  rand.New(rand.NewPCG(j.opt.Seed, 0x7472_6169_6e73_7465)),
		busy:   rand.New(rand.NewPCG(j.opt.Seed, 0x7072_696e_7465_7273)),
	}
	if j.opt.clock(ClockSeconds) {
		j.train.layout = "2006-01-02T15:04:05Z"
	}
	j.train.log, err = j.create("train", "train.jsonl", logfile.File{}, 1<<18)
	return err
}

// lossAndRate draws the loss of the next line, and computes the learning rate; steps are those of the whole job.
//
// Each line takes three draws, and two of them are discarded on purpose. The training log of test/gen draws the duration of a step, the loss and the gradients'
// norm from the same generator: so a seed gives the same losses in both logs.
func (l *trainLog) lossAndRate(steps int) (loss, rate float64) {
	l.n++
	n := float64(l.n)
	logfile.Noise(l.curve) // discarded: the duration in test/gen
	loss = (lastLoss + (firstLoss-lastLoss)*(1/math.Sqrt(1+n/50))) * (1 + 0.006*logfile.Noise(l.curve))
	logfile.Noise(l.curve) // discarded: the gradients' norm in test/gen
	if l.n < lrWarmup {
		return loss, lrMax * n / lrWarmup
	}
	progress := min(1, float64(l.n-lrWarmup)/float64(max(1, steps-lrWarmup)))
	return loss, lrMin + (lrMax-lrMin)*(1+math.Cos(math.Pi*progress))/2
}

// record writes the line of the training log about a step, or about several: {"step": 12, "timestamp": "…", "loss": 9.1234, …}. end is the time of the last
// step's end by the first host's clock, took the duration of a step, of several the mean, both in ns. parts are logged as timing_s/NAME.
func (j *job) record(step int, end, took, tokens int64, traceID string, parts []part) error {
	l := &j.train
	loss, rate := l.lossAndRate(j.opt.Steps)
	seconds := float64(took) / 1e9
	b := fmt.Appendf(j.logs.Text(), `{"step": %d, "timestamp": "%s", "loss": %.4f, "throughput": %.3f, "step_time_s": %.6f, "lr": %s, "gpu_util": [`,
		step, time.Unix(0, end).UTC().Format(l.layout), loss, float64(samplesPerGPU*j.opt.Ranks)/seconds, seconds, logfile.AppendRepr(nil, math.Round(rate*1e9)/1e9))
	for i := range min(perHost, j.opt.Ranks) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = fmt.Append(b, 97+l.busy.IntN(4)) // 97 to 100 %
	}
	b = fmt.Appendf(b, `], "tokens": %d`, tokens)
	for _, p := range parts {
		b = fmt.Appendf(b, `, "timing_s/%s": %.6f`, p.name, float64(p.took)/1e9)
	}
	if traceID != "" {
		b = fmt.Appendf(b, `, "trace_id": "%s"`, traceID)
	}
	j.logs.Line(l.log, append(b, '}'), logfile.Record)
	return j.logs.Err
}

package tq

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
	"github.com/trainbridge/trainbridge/spans"
)

// A sentence says the fact first, then the advice.
const (
	took = "TransferQueue took {value:percent} of the {duration:seconds} of {name}" +
		"[ (GET {get:percent}[GET is reported? as logged], PUT {put:percent}[both are reported?, both][PUT is reported? as logged])]; "
	overheadAdvice = " Check the storage backend (Redis or distributed storage), " +
		"tune the batch size for fewer transfers, consider compressing the data."
	fluctuate = "The {stage} times of {name} fluctuate: standard deviation {value:percent} of the mean of {mean:seconds} over the last {operations} " +
		"(limit {threshold:percent}). The network or the storage is not stable."
)

var (
	overheadHigh = verdict.New(spans.VerdictTQOverhead,
		took+"the limit is {threshold:percent}."+overheadAdvice+episode.Share("calls"), &places)
	overheadElevated = verdict.New(spans.VerdictTQOverhead,
		took+"the target is below {threshold:percent}."+overheadAdvice+episode.Share("calls"), &places).As(verdict.Warning)

	throughputLow = verdict.New(spans.VerdictTQThroughputLow,
		"{stage} [moved {size:bytes}|ran] at {speed:binary rate} (limit {lowest speed:binary rate}). "+
			"Check the network bandwidth, the IOPS of the storage, and how the data is serialised."+episode.Share("operations"), &places)

	getFluctuating = verdict.New(spans.VerdictTQFluctuating, fluctuate, &places).In(spans.TQGet)
	putFluctuating = verdict.New(spans.VerdictTQFluctuating, fluctuate, &places).In(spans.TQPut)
)

var places = verdict.Places[saying]{
	Numbers: map[string]func(*saying) float64{
		"duration":     func(s *saying) float64 { return s.duration },
		"get":          func(s *saying) float64 { return s.share[spans.TQGet] },
		"put":          func(s *saying) float64 { return s.share[spans.TQPut] },
		"mean":         func(s *saying) float64 { return s.spread.mean },
		"size":         func(s *saying) float64 { return s.size },
		"speed":        func(s *saying) float64 { return s.speed },
		"lowest speed": func(s *saying) float64 { return s.limit },
	},
	Counts: map[string]func(*saying) int64{
		"held":       func(s *saying) int64 { return s.answer.HeldAgain() },
		"of":         func(s *saying) int64 { return int64(s.answer.Of) },
		"operations": func(s *saying) int64 { return int64(s.spread.n) },
	},
	Texts: map[string]func([]byte, *saying) []byte{
		"name":  func(b []byte, s *saying) []byte { return append(b, s.name...) },
		"stage": func(b []byte, s *saying) []byte { return append(b, stageTitle[s.stage]...) },
	},
	When: map[string]func(*saying) bool{
		"GET is reported":   func(s *saying) bool { return s.reported[spans.TQGet] && !s.reported[spans.TQPut] },
		"PUT is reported":   func(s *saying) bool { return s.reported[spans.TQPut] },
		"both are reported": func(s *saying) bool { return s.reported[spans.TQGet] && s.reported[spans.TQPut] },
	},
}

var stageTitle = [...]string{spans.TQGet: "GET", spans.TQCompute: "COMPUTE", spans.TQPut: "PUT", spans.TQClientGet: "GET", spans.TQClientPut: "PUT"}

// saying has the values that sentences name.
type saying struct {
	name     string // of the function
	stage    spans.TQStage
	duration float64 // s, of the function
	shares
	spread       spread
	size         float64 // By
	speed, limit float64 // By/s
	answer       episode.Answer
}

// judgeFunction gives the verdicts about a function, by its shares and by the times of its stages.
func (j *judge) judgeFunction(f *function, found *shares, children []child) {
	j.sheet.Begin()
	if !math.IsNaN(found.overhead) {
		j.judgeOverhead(f, found)
	}
	j.judgeFluctuation(f, children)
}

// judgeOverhead gives a verdict on each call that spends much of its time in TransferQueue, until nearly all calls do. The conclusion for the run is drawn over
// the whole run (internal/traces/digest).
func (j *judge) judgeOverhead(f *function, found *shares) {
	j.episodes.Lock()
	defer j.episodes.Unlock()
	e, _ := j.episodes.Of(episode.Key{Service: j.at.Service, Run: j.at.Run, Of: f.Name, Stage: spans.TQFunction})
	e.Record(binary.BigEndian.Uint64(f.key.span[:]))
	var v *verdict.Verdict[saying]
	limit := j.cfg.OverheadHigh
	switch {
	case found.overhead > limit:
		v = overheadHigh
	case found.overhead >= j.cfg.OverheadElevated:
		v, limit = overheadElevated, j.cfg.OverheadElevated
	default:
		return
	}
	s := &j.saying
	s.answer = e.Mostly(v.Episode())
	if !s.answer.Say {
		return
	}
	s.name, s.duration, s.shares = f.Name, f.seconds(), *found
	v.Say(&j.sheet, s, found.overhead, limit)
}

// seconds returns the duration of the function, s.
func (f *function) seconds() float64 {
	return float64(f.span.EndTimestamp()-f.span.StartTimestamp()) / 1e9
}

// judgeFluctuation adds the GET and PUT times of the function to their windows, in order, and gives a verdict where a window says that the times fluctuate, at
// most one for each stage.
func (j *judge) judgeFluctuation(f *function, children []child) {
	var spreads [childStages]spread // of each stage: that with a verdict, else the last
	for i := range children {
		if c := &children[i]; c.stage != spans.TQCompute && !c.open {
			sp := j.addToWindow(f.Name, c.stage, c.id, c.end-c.start)
			if !spreads[c.stage].due {
				spreads[c.stage] = sp
			}
		}
	}
	j.judgeSpread(f.Name, spans.TQGet, spreads[spans.TQGet])
	j.judgeSpread(f.Name, spans.TQPut, spreads[spans.TQPut])
}

// addToWindow adds a duration, ns, to the window of a stage of a function, and returns the spread of the window.
func (j *judge) addToWindow(fn string, st spans.TQStage, id pcommon.SpanID, ns uint64) spread {
	got, evicted := j.windows.add(windowKey{service: j.at.Service, run: j.at.Run, function: fn, stage: st}, binary.BigEndian.Uint64(id[:]), ns)
	if evicted {
		j.tally.Evicted++
	}
	return got
}

// judgeSpread gives the verdict about fluctuating times of a stage, if due.
func (j *judge) judgeSpread(fn string, st spans.TQStage, sp spread) {
	if !sp.due {
		return
	}
	v := getFluctuating
	if st == spans.TQPut || st == spans.TQClientPut {
		v = putFluctuating
	}
	j.saying.name, j.saying.stage, j.saying.spread = fn, st, sp
	v.Say(&j.sheet, &j.saying, sp.cv, j.cfg.Fluctuation.Threshold)
}

// judgeStageAlone judges a stage that came without its function, by the window of the function's name. COMPUTE has no window.
func (j *judge) judgeStageAlone(a *apart, c *child) {
	if a.judged || c.open || c.stage == spans.TQCompute || a.name == "" {
		return
	}
	j.sheet.Begin()
	j.judgeSpread(a.name, c.stage, j.addToWindow(a.name, c.stage, c.id, c.end-c.start))
	j.sheet.Put(a.span)
}

// judgeClient judges one client operation. Operations outside functions (sync workers log no function) have a window of their own; operations inside a function
// are already in the window of its GET or PUT.
func (j *judge) judgeClient(span ptrace.Span) {
	s := &j.stage
	if s.Judged || s.Incomplete || span.EndTimestamp() < span.StartTimestamp() {
		return
	}
	j.sheet.Begin()
	j.judgeThroughput(span.SpanID())
	if span.ParentSpanID().IsEmpty() {
		ns := uint64(span.EndTimestamp() - span.StartTimestamp())
		j.judgeSpread(s.Function, s.Stage, j.addToWindow(s.Function, s.Stage, span.SpanID(), ns))
	}
	j.sheet.Put(span)
}

// judgeThroughput gives a verdict on a client operation below the configured throughput, until nearly all operations are. Without a recomputed throughput, the
// logged one counts. An unknown throughput, or 0, is ignored: the log counts tensors only, so a size of 0 is no measurement.
func (j *judge) judgeThroughput(id pcommon.SpanID) {
	speed := j.stage.Throughput
	if math.IsNaN(speed) {
		speed = j.stage.ThroughputReported
	}
	if !(speed > 0) {
		return
	}
	j.episodes.Lock()
	defer j.episodes.Unlock()
	e, _ := j.episodes.Of(episode.Key{Service: j.at.Service, Run: j.at.Run, Of: j.stage.Function, Stage: j.stage.Stage})
	e.Record(binary.BigEndian.Uint64(id[:]))
	if speed >= j.cfg.ThroughputLow {
		return
	}
	s := &j.saying
	s.answer = e.Mostly(spans.VerdictTQThroughputLow)
	if !s.answer.Say {
		return
	}
	s.stage, s.speed, s.limit, s.size = j.stage.Stage, speed, j.cfg.ThroughputLow, math.NaN()
	if j.stage.Size > 0 {
		s.size = j.stage.Size
	}
	throughputLow.Say(&j.sheet, s, speed, j.cfg.ThroughputLow)
}

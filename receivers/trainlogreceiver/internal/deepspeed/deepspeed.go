// Package deepspeed reads the lines of DeepSpeed's engine, timers and loss scaler.
//
// The formats are from DeepSpeed edaa7221 (2026-08-22) in runtime/engine.py (_report_progress, print_forward_breakdown), utils/timer.py, runtime/pipe/engine.py
// and runtime/fp16/loss_scaler.py, and their older forms:
//
//	[Rank 0] step=10, skipped=4, lr=[5e-05], mom=[(0.9, 0.95)]
//	epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=25.7, MemAllocated=4.32GB, MaxMemAllocated=38.49GB
//	0/20, RunningAvgSamplesPerSec=…
//	[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8388608, reducing to 4194304
//	steps: 200 loss: 5.5508 lm loss: 5.5103 iter time (s): 0.936 samples/sec: 136.706
//	[Rank 0] time (ms) | fwd_microstep: 12.34 | bwd_microstep: 25.10
//
// All but OVERFLOW and time (ms) are records of a step, joined if of the same step. GB is GiB throughout.
package deepspeed

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "deepspeed"

var (
	progressMark   = []byte(", skipped=")
	throughputMark = []byte("RunningAvgSamplesPerSec=")
	overflowMark   = []byte("Skipping step.")
	pipelineMark   = []byte("iter time (s):")
	timersMark     = []byte("time (ms) | ")

	separator = []byte(", ")
	rankMark  = []byte("[Rank ")

	lrName         = []byte("lr")
	overflowName   = []byte("overflow")
	attemptedName  = []byte("loss_scale.attempted")
	hysteresisName = []byte("loss_scale.hysteresis")
)

// LaterStep is the reason of timers printed after a step without a record.
const LaterStep = "later_step"

// Parser reads the lines of one stream, and knows the timers of its latest record. The zero value is ready. Not safe for concurrent use.
//
// The engine logs a record every steps_per_print steps, but timers after each micro batch: repeated timers after a record are of a step without one.
type Parser struct {
	step  float64         // of the latest record
	known bool            // a record was read
	count int64           // of steps with a record
	parts map[part]*int64 // by timer: the count at the time it was last printed
}

// part is a timer of a rank. The parser knows the last record with the timer.
type part struct {
	rank int64
	name string
}

// maxParts bounds the known timers. A step has fewer.
const maxParts = 1024

// Parse is as the function Parse, but takes of repeated timers only those printed first after a record. A line of repeated timers alone is of a later step,
// without a record in the log: found is false, with LaterStep.
func (p *Parser) Parse(b []byte, rec *record.Record) (found bool, reason string) {
	found, reason = Parse(b, rec)
	switch {
	case !found:
	case rec.Kind == record.Step:
		if at := rec.Get(record.Iteration); !p.known || at != p.step {
			p.step, p.known = at, true
			p.count++
		}
	case p.known && len(rec.Stages) > 0: // timers before the first record of the log are all kept
		stages := rec.Stages[:0]
		for _, s := range rec.Stages {
			if p.first(rec.Rank, s.Name) {
				stages = append(stages, s)
			}
		}
		rec.Stages = stages
		if len(stages) == 0 {
			rec.Reset()
			return false, LaterStep
		}
	}
	return found, reason
}

// first reports whether a timer comes for the first time since the latest record began, and notes the timer. The map holds pointers so that a known timer costs
// no allocation.
func (p *Parser) first(rank int64, name []byte) bool {
	last := p.parts[part{rank, string(name)}]
	switch {
	case last == nil && len(p.parts) == maxParts: // cannot be noted
		return true
	case last == nil:
		if p.parts == nil {
			p.parts = make(map[part]*int64)
		}
		last = new(int64)
		p.parts[part{rank, string(name)}] = last
	case *last == p.count:
		return false
	}
	*last = p.count
	return true
}

// Parse fills rec with the record in b; rec must be empty. found false and no reason: b is a line of another format. A reason: the line is malformed. The
// values in rec point into b; without a record, rec stays empty.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	var start int
	switch {
	case mark(b, progressMark, &start):
		found, reason = progress(b, &start, rec)
	case mark(b, throughputMark, &start):
		found, reason = throughput(b, &start, rec)
	case mark(b, pipelineMark, &start):
		found, reason = pipeline(b, &start, rec)
	case mark(b, timersMark, &start):
		found, reason = timers(b, &start, rec)
	case mark(b, overflowMark, &start):
		found, reason = overflow(b, &start, rec)
	}
	if !found {
		if !rec.Empty() {
			rec.Reset()
		}
		return false, reason
	}
	rec.Source = Source
	// Behind a progress bar, the logger's prefix is still in the line.
	rec.Stamp = record.LastStamp(b[:start])
	return true, ""
}

// mark reports whether b has the mark m, and sets at to its position.
func mark(b, m []byte, at *int) bool {
	*at = bytes.Index(b, m)
	return *at >= 0
}

// step marks rec as one of the lines about a step. Only global rank 0 logs these lines (engine.step: report_progress), some without a rank.
func step(rec *record.Record) {
	rec.Kind, rec.Open, rec.Join = record.Step, true, true
	rec.Rank, rec.HasRank = 0, true
}

// progress reads engine._report_progress: "[Rank 0] step=10, skipped=4, lr=[5e-05], mom=[(0.9, 0.95)]". at is the position of ", skipped=", and on return the
// beginning of the record. The results are as in Parse.
func progress(b []byte, at *int, rec *record.Record) (bool, string) {
	i := bytes.LastIndex(b[:*at], []byte("step="))
	if i < 0 || i > 0 && isWord(b[i-1]) {
		return false, ""
	}
	*at = i
	for rest := b[i:]; len(rest) > 0; {
		key, after, ok := bytes.Cut(rest, []byte("="))
		if !ok {
			break // other text follows in the line
		}
		n := valueLen(after)
		if n < 0 {
			return false, "unclosed"
		}
		value := after[:n]
		v, isNumber := decimal.Float(value)
		switch {
		case string(key) == "step" && isNumber:
			rec.Set(record.Iteration, v)
		case string(key) == "step":
			return false, "bad_step"
		case string(key) == "skipped" && isNumber:
			rec.Set(record.SkippedIterations, v)
		case string(key) == "skipped":
			return false, "bad_skipped"
		case string(key) == "lr":
			learningRates(value, rec)
		default:
			rec.AddExtra(record.Extra{Name: key, Text: value})
		}
		rest, ok = bytes.CutPrefix(after[n:], separator)
		if !ok {
			break
		}
	}
	step(rec)
	if r, ok := rankIn(b[:i]); ok {
		rec.Rank = r
	}
	return true, ""
}

// learningRates takes the first parameter group's rate of "[5e-05, 1e-05]"; the list is also kept as a field if longer, or if not a list of numbers.
func learningRates(value []byte, rec *record.Record) {
	first := value
	if len(value) > 1 && value[0] == '[' { // closed, by valueLen
		first = value[1 : len(value)-1]
	}
	i := bytes.Index(first, separator)
	if i >= 0 {
		first = first[:i]
	}
	v, ok := decimal.ReprFloat(first)
	if ok {
		rec.Set(record.LearningRate, v)
	}
	if !ok || i >= 0 {
		rec.AddExtra(record.Extra{Name: lrName, Text: value})
	}
}

// valueLen returns the length of a value: a bracketed one up to its closing bracket, any other up to a comma or blank. -1: not closed.
func valueLen(b []byte) int {
	depth := 0
	for i, c := range b {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
			if depth <= 0 {
				return i + 1
			}
		case ',', ' ':
			if depth == 0 {
				return i
			}
		}
	}
	if depth > 0 {
		return -1
	}
	return len(b)
}

// throughput reads ThroughputTimer.stop: "epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.0, …". The old "0/20" counts the micro steps of the
// epoch, equal to its steps unless gradients are accumulated. at is the position of RunningAvgSamplesPerSec, and on return the beginning of the record. The
// results are as in Parse.
func throughput(b []byte, at *int, rec *record.Record) (bool, string) {
	head, ok := bytes.CutSuffix(b[:*at], separator)
	if !ok {
		return false, "no_step"
	}
	fields := b[*at:]
	*at = 1 + bytes.LastIndexAny(head, " ]") // after the logger's prefix, if any
	head = head[*at:]
	if !position(head, rec) {
		return false, "bad_step"
	}
	for len(fields) > 0 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, separator)
		key, value, ok := bytes.Cut(field, []byte("="))
		if i := bytes.IndexByte(value, ' '); i >= 0 {
			value = value[:i]
		}
		if !ok {
			continue
		}
		gib, isMemory := bytes.CutSuffix(value, []byte("GB"))
		v, isNumber := decimal.Float(gib)
		switch {
		case string(key) == "CurrSamplesPerSec" && isNumber && !isMemory:
			rec.Set(record.SampleThroughput, v)
		case string(key) == "MemAllocated" && isNumber && isMemory:
			rec.SetIn(record.MemoryUsage, v, record.Gibibytes)
		case string(key) == "MaxMemAllocated" && isNumber && isMemory:
			rec.SetIn(record.MemoryPeak, v, record.Gibibytes)
		case isNumber && !isMemory && string(key) != "MemAllocated" && string(key) != "MaxMemAllocated":
			rec.AddExtra(record.Extra{Name: key, Value: v})
		default: // no number, or memory without its unit: the line was truncated, perhaps within the number
			rec.AddExtra(record.Extra{Name: key, Text: value})
		}
	}
	if !rec.Has(record.SampleThroughput) {
		return false, "no_samples_per_second"
	}
	step(rec)
	return true, ""
}

// position reads the place of a step, "epoch=0/micro_step=40/global_step=10" or "0/20". false: there is no step.
func position(b []byte, rec *record.Record) bool {
	if epoch, n, ok := bytes.Cut(b, []byte("/")); ok {
		e, ok1 := whole(epoch)
		s, ok2 := whole(n)
		if ok1 && ok2 {
			rec.Set(record.Epoch, e)
			rec.Set(record.Iteration, s)
			return true
		}
	}
	for len(b) > 0 {
		var part []byte
		part, b, _ = bytes.Cut(b, []byte("/"))
		key, value, _ := bytes.Cut(part, []byte("="))
		v, ok := whole(value)
		if !ok {
			return false
		}
		switch string(key) {
		case "epoch":
			rec.Set(record.Epoch, v)
		case "global_step":
			rec.Set(record.Iteration, v)
		default:
			rec.AddExtra(record.Extra{Name: key, Value: v})
		}
	}
	return rec.Has(record.Iteration)
}

// pipeline reads PipelineEngine.train_batch: "steps: 200 loss: 5.5508 lm loss: 5.5103 iter time (s): 0.936 samples/sec: 136.706". Keys may have several words,
// values have no blanks. iter time is the time since the last line of this format divided by the steps since. at is the position of "iter time (s):", and on
// return the beginning of the record. The results are as in Parse.
func pipeline(b []byte, at *int, rec *record.Record) (bool, string) {
	i := bytes.LastIndex(b[:*at], []byte("steps: "))
	if i < 0 || i > 0 && isWord(b[i-1]) {
		return false, ""
	}
	*at = i
	for rest := b[i:]; len(rest) > 0; {
		var key, value []byte
		var ok bool
		key, rest, ok = bytes.Cut(rest, []byte(":"))
		if !ok {
			break
		}
		rest = bytes.TrimLeft(rest, " ")
		value, rest, _ = bytes.Cut(rest, []byte(" "))
		rest = bytes.TrimLeft(rest, " ")
		v, ok := decimal.Float(value)
		if !ok {
			switch string(key) {
			case "steps":
				return false, "bad_step"
			case "iter time (s)":
				return false, "bad_iter_time"
			}
			rec.AddExtra(record.Extra{Name: key, Text: value})
			continue
		}
		switch string(key) {
		case "steps":
			rec.Set(record.Iteration, v)
		case "loss":
			rec.Set(record.Loss, v)
		case "iter time (s)":
			rec.Set(record.Duration, v)
			rec.Of = record.Mean
		case "samples/sec":
			rec.Set(record.SampleThroughput, v)
		default:
			rec.AddExtra(record.Extra{Name: key, Value: v})
		}
	}
	step(rec)
	return true, ""
}

// places are the positions in the step of the engine's timers (runtime/engine.py EngineTimers, moe/sharded_moe.py, runtime/zero/stage_1_and_2.py). Timers of
// one micro batch show the last micro batch of the step.
var places = record.Outline(`
fwd
  fwd_moe
    top_k
    1st_a2a
    2nd_a2a
  fwd_microstep
bwd
  bwd_inner
  bwd_allreduce
  bwd_microstep
    bwd_inner_microstep
    bwd_allreduce_microstep
step
  step_microstep
    optimizer_gradients
    optimizer_step
    optimizer_allgather
`)

// timers reads SynchronizedWallClockTimer.log and print_forward_breakdown: "[Rank 0] time (ms) | fwd_microstep: 12.34 | bwd_microstep: 25.10", parts of the
// step logged before, if any (Side). The *_microstep timers are of one micro step. A line without a rank is of an old Megatron, and not read. at is the
// position of "time (ms) | "; the results are as in Parse.
func timers(b []byte, at *int, rec *record.Record) (bool, string) {
	i := *at
	rank, ok := rankIn(b[:i])
	if !ok {
		head := bytes.TrimRight(b[:i], " ")
		eq := bytes.LastIndex(head, []byte("rank=")) // DeepSpeed before 0.7
		if eq < 0 {
			return false, ""
		}
		v, ok := whole(head[eq+len("rank="):])
		if !ok {
			return false, ""
		}
		rank = int64(v)
	}
	// The nesting "fwd: 12.34 (fwd_moe: 5.00, top_k: 0.21)" needs no reading: a stage is a stage.
	for rest := b[i+len(timersMark):]; len(rest) > 0; {
		item := rest
		if n := bytes.IndexAny(rest, "|(,)"); n >= 0 {
			item, rest = rest[:n], rest[n+1:]
		} else {
			rest = nil
		}
		item = bytes.TrimSpace(item)
		if len(item) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(item, []byte(": "))
		if v, ok := decimal.Float(bytes.TrimSpace(value)); ok {
			rec.Stages = append(rec.Stages, record.Stage{Name: name, Seconds: v / 1e3, Place: places[string(name)]})
		} else {
			rec.AddExtra(record.Extra{Name: name, Text: value})
		}
	}
	if len(rec.Stages) == 0 {
		return false, "no_timers"
	}
	rec.Kind, rec.Rank, rec.HasRank = record.Side, rank, rank >= 0
	return true, ""
}

// overflow reads DynamicLossScaler.update_scale: LossScale is the next step's scale, loss_scale.attempted the scale that was too large. A skipped step is
// logged before its own number, so the line counts for the step logged before. at is the position of "Skipping step.", and on return that of "Rank "; the
// results are as in Parse.
func overflow(b []byte, at *int, rec *record.Record) (bool, string) {
	head := bytes.TrimRight(b[:*at], " ")
	i := bytes.LastIndex(head, []byte("Rank "))
	if i < 0 {
		return false, ""
	}
	rank, ok := whole(head[i+len("Rank "):])
	if !ok {
		return false, ""
	}
	rest := b[*at+len(overflowMark):]
	*at = i
	rec.Kind, rec.Rank, rec.HasRank = record.Side, int64(rank), true
	rec.AddExtra(record.Extra{Name: overflowName, Value: 1})
	rest, ok = bytes.CutPrefix(rest, []byte(" Attempted loss scale: "))
	if !ok { // bfloat16 has no loss scale
		return true, ""
	}
	text, rest, ok := bytes.Cut(rest, separator)
	attempted, isNumber := decimal.Float(text)
	if !ok || !isNumber {
		return false, "bad_loss_scale"
	}
	rec.AddExtra(record.Extra{Name: attemptedName, Value: attempted})
	text, ok = bytes.CutPrefix(rest, []byte("reducing to "))
	if ok {
		v, ok := decimal.Float(text)
		if !ok {
			return false, "bad_loss_scale"
		}
		rec.Set(record.LossScale, v)
		return true, ""
	}
	// "but hysteresis is 2. Reducing hysteresis to 1": the scale stays for now.
	rec.Set(record.LossScale, attempted)
	_, text, ok = bytes.Cut(rest, []byte("Reducing hysteresis to "))
	if ok {
		if v, ok := decimal.Float(text); ok {
			rec.AddExtra(record.Extra{Name: hysteresisName, Value: v})
		}
	}
	return true, ""
}

// rankIn finds the rank in the last "[Rank 3]". -1 is log_dist's "not initialized". false: none.
func rankIn(b []byte) (int64, bool) {
	i := bytes.LastIndex(b, rankMark)
	if i < 0 {
		return 0, false
	}
	text, _, _ := bytes.Cut(b[i+len(rankMark):], []byte("]"))
	if string(text) == "-1" {
		return -1, true
	}
	v, ok := whole(text)
	return int64(v), ok
}

// whole reads an unsigned integer of at most 15 digits.
func whole(b []byte) (float64, bool) {
	for _, c := range b {
		if !ascii.IsDigit(c) {
			return 0, false
		}
	}
	if len(b) == 0 || len(b) > 15 {
		return 0, false
	}
	return decimal.Float(b)
}

// isWord reports whether a byte may be part of a name.
func isWord(c byte) bool {
	return c == '_' || c == '/' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

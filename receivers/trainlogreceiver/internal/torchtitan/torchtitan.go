// Package torchtitan reads the step and validation lines of torchtitan b5bcd76c (2026-08-21), torchtitan/components/metrics.py:
//
//	[titan] 2025-10-30 14:32:58,990 - root - INFO - step:  2  loss:  6.1098  grad_norm:  4.6416  memory:  2.49GiB(3.14%)  tps: 177,138  tflops: 96.17  mfu: 9.72%
//	[titan] 2026-01-16 02:42:36,857 - root - INFO - validate step:  1  loss: 12.4699  memory: 69.81GiB(88.17%)  tps: 74,600
//	[titan] 2026-01-16 02:42:36,857 - root - INFO - [GC] Finished saving the checkpoint (or staging if async is enabled)in 2.31 seconds.
//
//	[titan] 2026-01-16 02:42:36,857 - root - INFO - [GC] Performing periodic GC collection took 2.31 seconds
//
// tps (once wps) and tflops are of one device. memory is the allocator's reserved peak since the line before. Lines do not have the duration of a step.
package torchtitan

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "torchtitan"

var (
	stepMark     = []byte("step:")
	validateMark = []byte("validate ")
	savedMark    = []byte("Finished saving the checkpoint")
	checkpoint   = []byte("checkpoint")

	collectedMark = []byte("[GC] Performing periodic GC collection took ")
	garbage       = []byte("garbage_collection")
)

// Parser reads the lines of a stream. Collections of garbage (tools/utils.py, GarbageCollection) are within the next logged step.
type Parser struct {
	collected float64 // s, since the last step; of several ranks in a log the longest
	last      float64 // the last step
}

// Parse is as the function Parse, with a step's collection of garbage as a part: a mean of the steps since the line before, as other trainers' timers are.
func (p *Parser) Parse(b []byte, rec *record.Record) (found bool, reason string) {
	if _, text, ok := bytes.Cut(b, collectedMark); ok {
		text, _, unit := bytes.Cut(text, []byte(" seconds"))
		if seconds, number := decimal.Float(text); unit && number && seconds < 3600 {
			p.collected = max(p.collected, seconds)
		}
		return false, ""
	}
	found, reason = Parse(b, rec)
	if !found || rec.Kind != record.Step {
		return found, reason
	}
	at := rec.Get(record.Iteration)
	if p.collected > 0 {
		rec.Stages = append(rec.Stages, record.Stage{Name: garbage, Seconds: p.collected / max(1, at-p.last)})
	}
	p.collected, p.last = 0, at
	return found, reason
}

// Parse fills rec with the record in b; rec must be empty. found false and no reason: b is a line of another format. A reason: the line is malformed. The
// values in rec point into b; without a record, rec stays empty. Many loops print "step:": a line is torchtitan's with a loss or another of torchtitan's
// fields, and whole with both.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	start, number, fields := find(b)
	if number == nil {
		return saved(b, rec), ""
	}
	done, total, hasTotal := bytes.Cut(number, []byte("/"))
	iteration, _ := decimal.Float(done)
	rec.Set(record.Iteration, iteration)
	if hasTotal { // a fork's "step: 640/644 = 99.3789%"
		if v, ok := decimal.Float(total); ok {
			rec.Set(record.Iterations, v)
		}
		if rest, ok := bytes.CutPrefix(bytes.TrimLeft(fields, " "), []byte("= ")); ok {
			_, fields, _ = bytes.Cut(rest, []byte(" "))
		}
	}
	rec.Source, rec.Kind = Source, record.Step
	loss := record.Loss
	if bytes.HasSuffix(b[:start], validateMark) {
		rec.Kind, loss = record.Evaluation, record.ValidationLoss
	}
	known := 0 // torchtitan's own fields beside the loss
	for {
		fields = bytes.TrimLeft(fields, " ")
		key, after, ok := bytes.Cut(fields, []byte(":"))
		if !ok || bytes.IndexByte(key, ' ') >= 0 {
			break // the end, or text of another writer
		}
		after = bytes.TrimLeft(after, " ")
		var value []byte
		value, fields, _ = bytes.Cut(after, []byte(" "))
		if set(key, value, loss, rec) {
			known++
		}
	}
	hasLoss := rec.Has(loss)
	if !hasLoss || known == 0 {
		rec.Reset()
	}
	switch {
	case !hasLoss && known == 0:
		return false, ""
	case !hasLoss:
		return false, "no_loss"
	case known == 0:
		return false, "only_loss"
	}
	rec.Stamp = record.LastStamp(b[:start])
	return true, ""
}

// saved reads the duration of a checkpoint (components/checkpoint.py), saved between two steps, as a part of the step before. It returns false for another
// line.
func saved(b []byte, rec *record.Record) bool {
	start := bytes.Index(b, savedMark)
	if start < 0 {
		return false
	}
	_, text, ok := bytes.Cut(b[start:], []byte("in "))
	text, _, unit := bytes.Cut(text, []byte(" seconds"))
	seconds, number := decimal.Float(text)
	if !ok || !unit || !number || !(seconds >= 0) {
		return false
	}
	rec.Source, rec.Kind, rec.Stamp = Source, record.Side, record.LastStamp(b[:start])
	rec.Stages = append(rec.Stages, record.Stage{Name: checkpoint, Seconds: seconds})
	return true
}

// find looks for "step: 12 ": two blanks follow, as between all fields, or "= " after a fork's "640/644". start is where "step:" stands, number is "12", and
// fields is the text after. number is nil without a match.
func find(b []byte) (start int, number, fields []byte) {
	for from := 0; ; {
		i := bytes.Index(b[from:], stepMark)
		if i < 0 {
			return 0, nil, nil
		}
		i += from
		from = i + len(stepMark)
		if i > 0 && isWord(b[i-1]) {
			continue
		}
		rest := bytes.TrimLeft(b[from:], " ")
		n := 0
		for n < len(rest) && (ascii.IsDigit(rest[n]) || rest[n] == '/' && n > 0) {
			n++
		}
		padded := len(rest) < len(b)-from // a blank stands before the number
		if n == 0 || !padded || len(rest) < n+2 || rest[n] != ' ' || rest[n+1] != ' ' && rest[n+1] != '=' {
			continue
		}
		return i, rest[:n], rest[n:]
	}
}

// set sets one field and reports whether the field is one of torchtitan's own beside the loss.
func set(key, value []byte, loss record.Field, rec *record.Record) bool {
	switch string(key) {
	case "loss":
		if v, ok := decimal.Float(value); ok {
			rec.Set(loss, v)
			return false
		}
	case "grad_norm":
		if v, ok := decimal.Float(value); ok {
			rec.Set(record.GradientNorm, v)
			return true
		}
	case "memory":
		if memory(value, rec) {
			return true
		}
	case "tps", "wps":
		if v, ok := decimal.GroupedFloat(value); ok {
			rec.Set(record.DeviceTokenThroughput, v)
			return true
		}
	case "tflops":
		if v, ok := decimal.GroupedFloat(value); ok {
			rec.SetIn(record.DeviceFlopThroughput, v, record.TeraFlopPerSecond)
			return true
		}
	case "mfu":
		if string(value) == "N/A" { // a device without a known peak
			return true
		}
		if percent, ok := bytes.CutSuffix(value, []byte("%")); ok {
			if v, ok := decimal.GroupedFloat(percent); ok {
				rec.SetIn(record.MFU, v, record.Percent)
				return true
			}
		}
	case "lr":
		if v, ok := decimal.Float(value); ok {
			rec.Set(record.LearningRate, v)
			return false
		}
	default:
		if v, ok := decimal.GroupedFloat(value); ok {
			rec.AddExtra(record.Extra{Name: key, Value: v})
			return false
		}
	}
	rec.AddExtra(record.Extra{Name: key, Text: value})
	return false
}

// memory reads "19.45GiB(30.39%)": the reserved peak and its share of the device's memory. It returns false for another text.
func memory(b []byte, rec *record.Record) bool {
	size, share, ok := bytes.Cut(b, []byte("GiB"))
	v, isNumber := decimal.Float(size)
	if !ok || !isNumber {
		return false
	}
	rec.SetIn(record.MemoryReservedPeak, v, record.Gibibytes)
	share, ok = bytes.CutPrefix(share, []byte("("))
	if ok {
		share, ok = bytes.CutSuffix(share, []byte("%)"))
		if ok {
			if v, ok := decimal.Float(share); ok {
				rec.SetIn(record.MemoryUtilization, v, record.Percent)
			}
		}
	}
	return true
}

// isWord reports whether a byte may be part of a name.
func isWord(c byte) bool {
	return c == '_' || c == '/' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

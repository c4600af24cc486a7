// Package nemo reads the lines of NeMo 2's MegatronProgressPrinter (nemo/lightning/pytorch/callbacks/progress_printer.py):
//
//	Training epoch 0, iteration 45/99 | lr: 6.897e-06 | global_batch_size: 128 | global_step: 45 | reduced_train_loss: 11.96 | train_step_timing in s: 6.08
//
//	[NeMo I 2026-02-17 17:58:40 nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 24 : Start time: 1771351120.135s : Save duration: 25.537s
//
// The second is of a checkpoint after the step, at its end. Numbers have four significant digits. Iterations count from 0 and are kept as printed. Lines
// without a prefix have no time. Unless every step is logged, the printer averages over the steps since the line before, so a duration is a mean. Of
// "Validation: iteration 3/8", which is progress, no record is made: the result is in the next training lines, as val_loss.
package nemo

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "nemo"

var (
	trainingMark  = []byte("Training epoch ")
	iterationMark = []byte(", iteration ")
	fieldMark     = []byte(" | ")
	valueMark     = []byte(": ")

	textName       = []byte("text")
	iterationName  = []byte("iteration")
	globalStepName = []byte("global_step")

	savedMark    = []byte("Global Checkpoint Save : Rank: 0 : ") // all ranks save, and print
	durationMark = []byte("Save duration: ")
	checkpoint   = []byte("checkpoint")
)

// Parse fills rec with the record in b; rec must be empty. found false and no reason: b is a line of another format. A reason: the line is malformed. The
// values in rec point into b; without a record, rec stays empty.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	start := bytes.Index(b, trainingMark)
	if start < 0 {
		return saved(b, rec), ""
	}
	head, fields, hasFields := bytes.Cut(b[start+len(trainingMark):], fieldMark)
	epochText, position, ok := bytes.Cut(head, iterationMark)
	epoch, isNumber := decimal.Float(epochText)
	if !ok || !isNumber {
		return false, ""
	}
	at, of, _ := bytes.Cut(position, []byte("/"))
	iteration, ok1 := decimal.Float(at)
	iterations, ok2 := decimal.Float(of)
	switch {
	case !ok1 || !ok2:
		return false, "bad_iteration"
	case !hasFields:
		return false, "no_fields"
	}
	rec.Source, rec.Kind, rec.Of = Source, record.Step, record.Mean
	rec.Stamp = record.LastStamp(b[:start])
	rec.Set(record.Epoch, epoch)
	rec.Set(record.Iteration, iteration)
	rec.Set(record.Iterations, iterations)
	for len(fields) > 0 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, fieldMark)
		set(field, iteration, rec)
	}
	return true, ""
}

// saved reads the duration of a checkpoint, as a part of the step before. It returns false for another line.
func saved(b []byte, rec *record.Record) bool {
	start := bytes.Index(b, savedMark)
	if start < 0 {
		return false
	}
	_, text, ok := bytes.Cut(b[start:], durationMark)
	text, _, unit := bytes.Cut(text, []byte("s"))
	seconds, number := decimal.Float(text)
	if !ok || !unit || !number || !(seconds >= 0) {
		return false
	}
	rec.Source, rec.Kind, rec.Stamp = Source, record.Side, record.LastStamp(b[:start])
	rec.Stages = append(rec.Stages, record.Stage{Name: checkpoint, Seconds: seconds})
	return true
}

// set puts one "key: value" into its field, or keeps an unknown one under its name. iteration is the one printed first.
func set(field []byte, iteration float64, rec *record.Record) {
	i := bytes.LastIndex(field, valueMark)
	if i < 0 {
		rec.AddExtra(record.Extra{Name: textName, Text: field}) // the line was cut short
		return
	}
	key, value := field[:i], bytes.TrimSpace(field[i+len(valueMark):])
	v, ok := decimal.Float(value)
	if !ok {
		rec.AddExtra(record.Extra{Name: key, Text: value})
		return
	}
	switch string(key) {
	case "lr":
		rec.Set(record.LearningRate, v)
	case "global_batch_size":
		rec.Set(record.BatchSize, v)
	case "reduced_train_loss":
		rec.Set(record.Loss, v)
	case "train_step_timing in s":
		rec.Set(record.Duration, v)
	case "TFLOPS_per_GPU":
		rec.SetIn(record.DeviceFlopThroughput, v, record.TeraFlopPerSecond)
	case "tokens_per_sec_per_gpu":
		rec.Set(record.DeviceTokenThroughput, v)
	case "tokens_per_sec":
		rec.Set(record.TokenThroughput, v)
	case "consumed_samples":
		rec.Set(record.ConsumedSamples, v)
	case "grad_norm":
		rec.Set(record.GradientNorm, v)
	case "val_loss":
		rec.Set(record.ValidationLoss, v)
	case "val_ppl":
		rec.Set(record.Perplexity, v)
	case "max_memory_allocated":
		rec.Set(record.MemoryPeak, v)
	case "max_memory_reserved":
		rec.Set(record.MemoryReservedPeak, v)
	case "global_step":
		globalStep(v, value, iteration, rec)
	default:
		rec.AddExtra(record.Extra{Name: key, Value: v})
	}
}

// globalStep takes the iteration of the whole job; the one printed first counts within the epoch. A value with an exponent is rounded to four digits, and
// only kept as a text. An equal number says nothing new.
func globalStep(v float64, value []byte, iteration float64, rec *record.Record) {
	switch {
	case bytes.IndexByte(value, 'e') >= 0:
		rec.AddExtra(record.Extra{Name: globalStepName, Text: value})
	case v != iteration:
		rec.Set(record.Iteration, v)
		rec.AddExtra(record.Extra{Name: iterationName, Value: iteration})
	}
}

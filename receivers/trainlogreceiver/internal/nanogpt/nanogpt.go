// Package nanogpt reads the lines of nanoGPT (karpathy/nanoGPT, train.py), and of the many scripts that began as a copy of it:
//
//	iter 100: loss 2.3456, time 45.23ms, mfu 30.12%
//	step 250: train loss 2.3012, val loss 2.4103
//
// time is the time of this very iteration, with the evaluation where there was one. mfu is a running mean over the process's own
// device, in units of an A100's peak whatever the device is, and -100.00% until it is known. The results of an evaluation are
// printed before the iteration of the same number.
package nanogpt

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "nanogpt"

var (
	iterMark  = []byte("iter ")
	stepMark  = []byte("step ")
	lossMark  = []byte(": loss ")
	timeMark  = []byte(", time ")
	mfuMark   = []byte(", mfu ")
	trainMark = []byte(": train loss ")
	valMark   = []byte(", val loss ")

	trainName = []byte("train_loss")
)

// Parse fills rec, which must be empty, with the record that b holds. found false and no reason: b is no line of this format.
// A reason: it looks like one, but is malformed. When nothing is found, rec stays empty.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	if rest, ok := bytes.CutPrefix(b, iterMark); ok {
		return iteration(rest, rec)
	}
	if rest, ok := bytes.CutPrefix(b, stepMark); ok {
		return evaluation(rest, rec), ""
	}
	return false, ""
}

func iteration(b []byte, rec *record.Record) (found bool, reason string) {
	number, rest, ok := bytes.Cut(b, lossMark)
	n, isNumber := decimal.Float(number)
	if !ok || !isNumber {
		return false, ""
	}
	lossText, rest, ok := bytes.Cut(rest, timeMark)
	if !ok { // other loops print "iter 5: loss 2.1" too
		return false, ""
	}
	timeText, mfuText, hasMFU := bytes.Cut(rest, mfuMark)
	loss, ok1 := decimal.Float(lossText)
	ms, ok2 := decimal.Float(trimUnit(timeText, "ms"))
	if !ok1 || !ok2 {
		return false, "bad_number"
	}
	rec.Source = Source
	rec.Set(record.Iteration, n)
	rec.Set(record.Loss, loss)
	rec.SetIn(record.Duration, ms, record.Milliseconds)
	if hasMFU {
		if v, ok := decimal.Float(trimUnit(mfuText, "%")); ok && v >= 0 {
			rec.SetIn(record.MFU, v, record.Percent)
		}
	}
	return true, ""
}

func evaluation(b []byte, rec *record.Record) bool {
	number, rest, ok := bytes.Cut(b, trainMark)
	n, isNumber := decimal.Float(number)
	trainText, valText, ok2 := bytes.Cut(rest, valMark)
	if !ok || !isNumber || !ok2 {
		return false
	}
	train, ok1 := decimal.Float(trainText)
	val, ok2 := decimal.Float(bytes.TrimSpace(valText))
	if !ok1 || !ok2 {
		return false
	}
	rec.Source, rec.Kind = Source, record.Evaluation
	rec.Set(record.Iteration, n)
	rec.Set(record.ValidationLoss, val)
	rec.AddExtra(record.Extra{Name: trainName, Value: train}) // of the evaluation's own batches
	return true
}

func trimUnit(b []byte, unit string) []byte {
	return bytes.TrimSuffix(bytes.TrimSpace(b), []byte(unit))
}

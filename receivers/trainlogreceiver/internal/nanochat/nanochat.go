// Package nanochat reads the lines of nanochat (karpathy/nanochat, scripts/base_train.py, mid_train.py, chat_sft.py and chat_rl.py, 2025-10 to 2026-07):
//
//	step 00012/21400 (0.06%) | loss: 4.512345 | lrm: 1.00 | dt: 345.67ms | tok/sec: 1,516,789 | bf16_mfu: 45.12 | epoch: 1 pq: 0 rg: 3 | total time: 0.05m | …
//	Step 00250 | Validation bpb: 0.912345
//
// Steps count from 0. dt is the time of this very step, without evaluation; tok/sec is of all devices together; mfu is a percentage over all
// devices; loss is a running mean; lrm multiplies the learning rates. Bits per byte are no loss, and stay a field.
package nanochat

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "nanochat"

var (
	stepMark  = []byte("step ")
	titleMark = []byte("Step ")
	bar       = []byte("|")
	valueMark = []byte(": ")
)

// Parse fills rec, which must be empty, with the record that b holds. found false and no reason: b is no line of this format.
// A reason: it looks like one, but is malformed. What it puts into rec points into b; when nothing is found, rec stays empty.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	rest, lower := bytes.CutPrefix(b, stepMark)
	if !lower {
		var ok bool
		if rest, ok = bytes.CutPrefix(b, titleMark); !ok {
			return false, ""
		}
	}
	head, fields, ok := bytes.Cut(rest, []byte(" | "))
	if !ok || !position(head, lower, rec) {
		rec.Reset()
		return false, ""
	}
	own := 0
	for len(fields) > 0 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, bar)
		own += set(bytes.TrimSpace(field), lower, rec)
	}
	switch {
	case own == 0 || lower && !rec.Has(record.Duration): // torchtune and others write "Step 5 | loss:2.1", many loops "step 5 | loss: 2.1"
		rec.Reset()
		return false, ""
	case lower && !rec.Has(record.Loss):
		rec.Reset()
		return false, "no_loss"
	}
	rec.Source = Source
	return true, ""
}

// position reads "00012/21400 (0.06%)", "00012 (0.06%)" and "00250".
func position(head []byte, lower bool, rec *record.Record) bool {
	number, share, hasShare := bytes.Cut(head, []byte(" ("))
	if hasShare != lower || hasShare && !bytes.HasSuffix(share, []byte("%)")) {
		return false
	}
	at, of, hasTotal := bytes.Cut(number, []byte("/"))
	v, ok := decimal.Float(at)
	if !ok {
		return false
	}
	rec.Set(record.Iteration, v)
	if hasTotal {
		if v, ok = decimal.Float(of); !ok {
			return false
		}
		rec.Set(record.Iterations, v)
	}
	return true
}

// set sets one "key: value" and returns how many names of nanochat's own it knew.
func set(field []byte, lower bool, rec *record.Record) int {
	key, value, ok := bytes.Cut(field, valueMark)
	if !ok {
		return 0
	}
	if !lower {
		return title(key, value, rec)
	}
	v, number := decimal.GroupedFloat(value)
	switch string(key) {
	case "loss":
		if number {
			rec.Set(record.Loss, v)
			return 1
		}
	case "grad norm":
		if number {
			rec.Set(record.GradientNorm, v)
			return 1
		}
	case "dt":
		if v, ok := decimal.Float(bytes.TrimSuffix(value, []byte("ms"))); ok {
			rec.SetIn(record.Duration, v, record.Milliseconds)
			return 1
		}
	case "tok/sec":
		if number {
			rec.Set(record.TokenThroughput, v)
			return 1
		}
	case "mfu", "bf16_mfu":
		if number {
			rec.SetIn(record.MFU, v, record.Percent)
			return 1
		}
	case "epoch":
		if v, n := decimal.Leading(value); n > 0 { // "1 pq: 0 rg: 3"
			rec.Set(record.Epoch, v)
			return 1
		}
	case "total time", "eta":
		return 0 // sums and guesses
	}
	return extra(key, value, rec)
}

// title sets one field of the lines that begin with a capital: results, and the steps of the scripts for chat.
func title(key, value []byte, rec *record.Record) int {
	v, number := decimal.GroupedFloat(value)
	switch string(key) {
	case "Validation loss":
		rec.Kind = record.Evaluation
		if number {
			rec.Set(record.ValidationLoss, v)
			return 1
		}
	case "Validation bpb", "CORE metric", "ChatCORE", "ChatCORE_cat", "Pass@1":
		rec.Kind = record.Evaluation
		return extra(key, value, rec)
	case "Training loss":
		if number {
			rec.Set(record.Loss, v)
			return 1
		}
	case "num_tokens":
		if number {
			rec.Set(record.Tokens, v)
			return 1
		}
	case "Average reward", "Average sequence length":
		if !rec.Has(record.Iterations) {
			return 0
		}
		return extra(key, value, rec)
	case "lrm":
		extra(key, value, rec)
	case "loss": // of one of the passes of a step of reinforcement learning
		rec.Unset(record.Iterations)
	}
	return 0
}

func extra(key, value []byte, rec *record.Record) int {
	if v, ok := decimal.GroupedFloat(value); ok {
		rec.AddExtra(record.Extra{Name: key, Value: v})
	} else {
		rec.AddExtra(record.Extra{Name: key, Text: value})
	}
	return 1
}

// Package torchtune reads the lines of torchtune's DiskLogger and StdoutLogger (torchtune/training/metric_logging.py):
//
//	Step 12 | loss:2.3456 lr:2e-05 tokens_per_second_per_gpu:1234.5 peak_memory_active:10.5 peak_memory_alloc:10.4 peak_memory_reserved:11.2 grad_norm:1.5
//	Step 12 | val_loss:2.2
//
// Memory is in GiB (training/memory.py), and its peaks are since the line before. Values may be tensors as Python shows them. Lines state
// neither times nor how long a step took.
package torchtune

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "torchtune"

var (
	stepMark = []byte("Step ")
	barMark  = []byte(" | ")
	tensor   = []byte("tensor(")
)

// Parse fills rec, which must be empty, with the record that b holds. found false and no reason: b is no line of this format.
// A reason: it looks like one, but is malformed. What it puts into rec points into b; when nothing is found, rec stays empty.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	rest, ok := bytes.CutPrefix(b, stepMark)
	if !ok {
		return false, ""
	}
	number, fields, ok := bytes.Cut(rest, barMark)
	step, isNumber := decimal.Float(number)
	if !ok || !isNumber {
		return false, ""
	}
	training, evaluation := false, false
	for fields = bytes.TrimSpace(fields); len(fields) > 0; {
		colon := bytes.IndexByte(fields, ':')
		if colon < 1 || colon+1 == len(fields) || fields[colon+1] == ' ' || bytes.IndexByte(fields[:colon], ' ') >= 0 {
			rec.Reset() // "Step 5 | Validation bpb: 0.9" is another's
			return false, ""
		}
		key := fields[:colon]
		end := valueEnd(fields, colon+1)
		value := fields[colon+1 : end]
		fields = bytes.TrimLeft(fields[end:], " ")
		if string(key) == "val_loss" {
			evaluation = true
		} else {
			training = true
		}
		set(key, value, rec)
	}
	if !training && !evaluation || rec.Empty() {
		rec.Reset()
		return false, ""
	}
	rec.Source = Source
	rec.Set(record.Iteration, step)
	if !training {
		rec.Kind = record.Evaluation
	}
	return true, ""
}

// valueEnd is where the value at i ends: at a blank that is not in brackets. "tensor(1.5, device='cuda:0')" is one value.
func valueEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ' ':
			if depth <= 0 {
				return i
			}
		}
	}
	return i
}

func set(key, value []byte, rec *record.Record) {
	v, ok := decimal.Float(value)
	if in, is := bytes.CutPrefix(value, tensor); !ok && is {
		in = bytes.TrimSuffix(in, []byte(")"))
		in, _, _ = bytes.Cut(in, []byte(","))
		v, ok = decimal.Float(in)
	}
	if !ok {
		rec.AddExtra(record.Extra{Name: key, Text: value})
		return
	}
	switch string(key) {
	case "loss":
		rec.Set(record.Loss, v)
	case "val_loss":
		rec.Set(record.ValidationLoss, v)
	case "lr":
		rec.Set(record.LearningRate, v)
	case "grad_norm":
		rec.Set(record.GradientNorm, v)
	case "tokens_per_second_per_gpu":
		rec.Set(record.DeviceTokenThroughput, v)
	case "peak_memory_alloc":
		rec.SetIn(record.MemoryPeak, v, record.Gibibytes)
	case "peak_memory_reserved":
		rec.SetIn(record.MemoryReservedPeak, v, record.Gibibytes)
	default:
		rec.AddExtra(record.Extra{Name: key, Value: v})
	}
}

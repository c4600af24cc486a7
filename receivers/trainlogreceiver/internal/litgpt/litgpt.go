// Package litgpt reads the lines of LitGPT (Lightning-AI/litgpt, pretrain.py and finetune/*.py), and of its predecessor Lit-GPT:
//
//	Epoch 1 | iter 100 step 25 | loss train: 1.913, val: n/a | iter time: 120.12 ms (step) remaining time: 0:01:02
//	iter 100: val loss 2.0134, val time: 1234.56 ms
//
// iter counts batches and step the optimizer's steps; lines come every log_interval batches or steps, and the time is the time of one batch,
// so the iteration is iter. val is the result of the evaluation before, which has had its own line.
package litgpt

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "litgpt"

var (
	epochMark = []byte("Epoch ")
	iterMark  = []byte("iter ")
	finalMark = []byte("Final evaluation | val loss: ")
	fieldMark = []byte(" | ")

	stepName = []byte("step")
)

// Parse fills rec, which must be empty, with the record that b holds. found false and no reason: b is no line of this format.
// A reason: it looks like one, but is malformed. When nothing is found, rec stays empty.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	epoch := -1.0
	switch {
	case bytes.HasPrefix(b, epochMark):
		text, rest, ok := bytes.Cut(b[len(epochMark):], fieldMark)
		v, isNumber := decimal.Float(text)
		if !ok || !isNumber || !bytes.HasPrefix(rest, iterMark) {
			return false, ""
		}
		epoch, b = v, rest
	case bytes.HasPrefix(b, finalMark):
		return final(b[len(finalMark):], rec), ""
	case !bytes.HasPrefix(b, iterMark):
		return false, ""
	}
	iterText, rest, ok := bytes.Cut(b[len(iterMark):], []byte(" "))
	if !ok {
		return false, ""
	}
	if number, ok := bytes.CutSuffix(iterText, []byte(":")); ok {
		return evaluation(number, rest, rec), ""
	}
	rest, ok = bytes.CutPrefix(rest, []byte("step "))
	if !ok {
		return false, ""
	}
	iteration, ok1 := decimal.Float(iterText)
	step, n := decimal.Leading(rest)
	if !ok1 || n == 0 {
		return false, ""
	}
	loss, ok1 := after(rest, " loss train: ")
	if !ok1 {
		loss, ok1 = after(rest, ": loss ") // Lit-GPT, 2023: "iter 100 step 25: loss 1.9134, iter time: 120.12ms (optimizer.step)"
	}
	ms, ok2 := after(rest, " iter time: ")
	if !ok1 || !ok2 {
		return false, "no_loss_or_time"
	}
	rec.Source = Source
	rec.Set(record.Iteration, iteration)
	if epoch >= 0 {
		rec.Set(record.Epoch, epoch)
	}
	rec.Set(record.Loss, loss)
	rec.SetIn(record.Duration, ms, record.Milliseconds)
	rec.AddExtra(record.Extra{Name: stepName, Value: step})
	return true, ""
}

// evaluation reads "val loss 2.0134, val time: 1234.56 ms".
func evaluation(number, b []byte, rec *record.Record) bool {
	iteration, ok := decimal.Float(number)
	b, isVal := bytes.CutPrefix(b, []byte("val loss "))
	loss, n := decimal.Leading(b)
	if !ok || !isVal || n == 0 {
		return false
	}
	rec.Source, rec.Kind = Source, record.Evaluation
	rec.Set(record.Iteration, iteration)
	rec.Set(record.ValidationLoss, loss)
	if ms, ok := after(b, " val time: "); ok {
		rec.SetIn(record.Duration, ms, record.Milliseconds)
	}
	return true
}

// final reads "1.853 | val ppl: 6.379".
func final(b []byte, rec *record.Record) bool {
	loss, n := decimal.Leading(b)
	if n == 0 {
		return false
	}
	rec.Source, rec.Kind = Source, record.Evaluation
	rec.Set(record.ValidationLoss, loss)
	if v, ok := after(b, " val ppl: "); ok {
		rec.Set(record.Perplexity, v)
	}
	return true
}

// after reads the number behind a mark.
func after(b []byte, mark string) (float64, bool) {
	i := bytes.Index(b, []byte(mark))
	if i < 0 {
		return 0, false
	}
	rest := b[i+len(mark):]
	end := 0
	for end < len(rest) && rest[end] != ',' && rest[end] != ' ' && rest[end] != 'm' {
		end++
	}
	return decimal.Float(rest[:end])
}

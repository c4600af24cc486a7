// Package composer reads the output of Composer's (mosaicml/composer 0.32) ConsoleLogger and FileLogger:
//
//	[epoch=1][batch=3/8]:
//		 Train time/batch: 2
//		 Train loss/train/total: 16.1129
//		 Train throughput/batches_per_sec: 729.6607
//	[Eval batch=4/4] Eval on eval data:
//		 Eval metrics/eval/LanguageCrossEntropy: 9.4941
//
//	[metric][batch=2]: time/batch: 2
//	[metric][batch=2]: loss/train/total: 16.1129
//
// time/batch counts the finished batches of the whole job, whatever the unit in the head of the block. FileLogger copies the console in lines that begin with
// [stderr]; the copy is ignored. Speeds are means over SpeedMonitor's window, without evaluation; memory is in GB of 1e9 bytes.
package composer

import (
	"bytes"
	"encoding/json"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is the record's Source.
const Source = "composer"

// Out takes the records of a line; step.Out implements Out.
type Out interface {
	Record() *record.Record
	Emit(*record.Record)
}

// The last part of a block so far.
const (
	none       = iota
	head       // the first line of a training block, or its time/batch, before its record
	training   // the record of a batch
	evaluation // the record of an evaluation
)

// state is the memory from line to line.
type state struct {
	In         int     `json:"in,omitempty"`         // the part of a block: none, head, training or evaluation
	Epoch      float64 `json:"epoch,omitempty"`      // of the block's head; 0: none
	Iterations float64 `json:"iterations,omitempty"` // planned batches of the job; 0: unknown
	// Batch is the number of finished batches, once time/batch was read: the next metric of the step begins its record.
	Batch *float64 `json:"batch,omitempty"`
	// Away counts other lines since the last line of the block.
	Away int `json:"away,omitempty"`
}

// maxAway is the number of foreign lines, such as another service's in the output of docker compose, that do not end a block.
const maxAway = 3

// Parser reads the lines of one stream. The zero value is ready. Not safe for concurrent use.
type Parser struct{ state state }

var (
	metricMark = []byte("[metric][batch=")
	evalMark   = []byte("[Eval batch=")
	evalOn     = []byte("] Eval on ")
	trainLine  = []byte("Train ")
	evalLine   = []byte("Eval ")

	labelName = []byte("data")
)

// Line reads one line of ConsoleLogger, the head of a block or a metric below, or of FileLogger. mine is false for a line of another format; a few such lines
// do not end a block.
func (p *Parser) Line(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	if rest, ok := bytes.CutPrefix(b, metricMark); ok {
		return p.file(rest, out)
	}
	if len(b) > 0 && b[0] == '[' {
		return p.head(b, out)
	}
	if p.state.In == none {
		return tail.Ignored, "", false
	}
	prefix := trainLine
	if p.state.In == evaluation {
		prefix = evalLine
	}
	// journalctl expands the tab, and Loki's client drops blanks at the beginning.
	text := bytes.TrimLeft(b, " \t")
	rest, ok := bytes.CutPrefix(text, prefix)
	indented := len(text) < len(b)
	if !ok || !indented && !isMetric(rest) {
		if p.state.Away++; p.state.Away > maxAway {
			p.state.In, p.state.Away = none, 0
		}
		return tail.Ignored, "", false
	}
	p.state.Away = 0
	return p.metric(rest, out)
}

// isMetric reports whether a text is "loss/train/total: 16.1129".
func isMetric(b []byte) bool {
	name, value, ok := bytes.Cut(b, []byte(": "))
	_, isNumber := decimal.Float(bytes.TrimSpace(value))
	return ok && isNumber && bytes.IndexByte(name, '/') > 0 && bytes.IndexByte(name, ' ') < 0
}

// head reads the first line of a block: "[epoch=1][batch=3/8]:" begins a training block, whose record comes with its loss;
// "[Eval batch=4/4] Eval on eval data:" is the record of an evaluation, to which the metrics below are added. Without the colon, the line of an evaluation is a
// progress bar.
func (p *Parser) head(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	if rest, ok := bytes.CutPrefix(b, evalMark); ok {
		_, label, ok := bytes.Cut(rest, evalOn)
		if !ok {
			return tail.Ignored, "", false
		}
		label, results := bytes.CutSuffix(label, []byte(":"))
		if !results {
			return tail.Ignored, "progress", true
		}
		p.state.In, p.state.Away = evaluation, 0
		rec := out.Record()
		rec.Source, rec.Kind, rec.Open = Source, record.Evaluation, true
		rec.AddExtra(record.Extra{Name: labelName, Text: bytes.TrimSuffix(label, []byte(" data"))})
		out.Emit(rec)
		return tail.Record, "", true
	}
	b, _ = bytes.CutSuffix(b, []byte(":"))
	next := state{In: head}
	for len(b) > 0 {
		i := bytes.IndexByte(b, ']')
		if b[0] != '[' || i < 0 {
			return tail.Ignored, "", false
		}
		unit, value, ok := bytes.Cut(b[1:i], []byte("="))
		at, of, _ := bytes.Cut(value, []byte("/"))
		n, isNumber := decimal.Float(at)
		if !ok || !isNumber {
			return tail.Ignored, "", false
		}
		switch string(unit) {
		case "epoch":
			next.Epoch = n
		case "batch":
			// In epochs, the total is the length of the epoch.
			if total, ok := decimal.Float(of); ok && next.Epoch == 0 {
				next.Iterations = total
			}
		case "sample", "token", "iteration", "second":
		default:
			return tail.Ignored, "", false
		}
		b = b[i+1:]
	}
	p.state = next
	return tail.Ignored, "head", true
}

var (
	timeMark    = []byte("time/")
	lossMark    = []byte("loss/")
	trainerMark = []byte("trainer/")
)

// metric reads "loss/train/total: 16.1129", of a block. The numbers under time/ come first, and time/batch gives the batch. The next metric under loss/ or
// trainer/ makes the record of the batch; all others are values of the record before (Side), as those that callbacks log at the end of a batch. Behind a head
// without time/batch, the metric's batch is unknown, and the metric is ignored.
func (p *Parser) metric(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	name, value, ok := bytes.Cut(b, []byte(": "))
	if !ok {
		return tail.Ignored, "", false
	}
	value = bytes.TrimSpace(value)
	if bytes.HasPrefix(name, timeMark) {
		if v, ok := decimal.Float(value); ok && string(name) == "time/batch" && p.state.In != evaluation {
			p.state.In, p.state.Batch = head, &v
		}
		return tail.Ignored, "position", true
	}
	if p.state.In == head && p.state.Batch == nil {
		return tail.Ignored, "position", true
	}
	rec := out.Record()
	rec.Source, rec.Kind = Source, record.Side
	if p.state.In == head && (bytes.HasPrefix(name, lossMark) || bytes.HasPrefix(name, trainerMark)) {
		p.step(rec)
	}
	set(name, value, rec)
	out.Emit(rec)
	return tail.Record, "", true
}

// step makes rec the record of the batch after the finished ones. At the end of an epoch time/batch comes twice, and only once do metrics of a batch follow.
func (p *Parser) step(rec *record.Record) {
	rec.Kind, rec.Open = record.Step, true
	rec.Set(record.Iteration, *p.state.Batch+1)
	if p.state.Iterations > 0 {
		rec.Set(record.Iterations, p.state.Iterations)
	}
	if p.state.Epoch > 0 {
		rec.Set(record.Epoch, p.state.Epoch)
	}
	p.state.In, p.state.Batch = training, nil
}

// file reads "2]: loss/train/total: 16.1129", of FileLogger. The number is that of an evaluation's record; metrics of a batch take theirs from time/batch,
// since metrics that callbacks log at the end of a batch have the number of the next batch in brackets.
func (p *Parser) file(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	number, rest, ok := bytes.Cut(b, []byte("]: "))
	at, isNumber := decimal.Float(number)
	if !ok || !isNumber {
		return tail.Ignored, "", false
	}
	p.state.Away = 0
	if !bytes.HasPrefix(rest, []byte("metrics/eval/")) {
		if p.state.In == none || p.state.In == evaluation { // FileLogger has no heads: the metric begins a block
			p.state = state{In: head, Batch: p.state.Batch}
		}
		return p.metric(rest, out)
	}
	name, value, ok := bytes.Cut(rest, []byte(": "))
	if !ok {
		return tail.Ignored, "", false
	}
	rec := out.Record()
	rec.Source, rec.Kind = Source, record.Side
	if p.state.In != evaluation {
		p.state.In = evaluation
		rec.Kind, rec.Open = record.Evaluation, true
		rec.Set(record.Iteration, at)
	}
	set(name, bytes.TrimSpace(value), rec)
	out.Emit(rec)
	return tail.Record, "", true
}

const gigabyte = 1e9

// set puts the value of a metric into its field, or keeps an unknown one under its name.
func set(name, value []byte, rec *record.Record) {
	v, ok := decimal.Float(value)
	if !ok {
		rec.AddExtra(record.Extra{Name: name, Text: value})
		return
	}
	switch string(name) {
	case "loss/train/total":
		rec.Set(record.Loss, v)
	case "metrics/eval/LanguageCrossEntropy", "metrics/eval/CrossEntropy":
		rec.Set(record.ValidationLoss, v)
	case "metrics/eval/LanguagePerplexity", "metrics/eval/Perplexity":
		rec.Set(record.Perplexity, v)
	case "l2_norm/grad/global":
		rec.Set(record.GradientNorm, v)
	case "throughput/batches_per_sec":
		if v > 0 {
			rec.Set(record.Duration, 1/v)
			rec.Of = record.Mean
		}
	case "throughput/samples_per_sec":
		rec.Set(record.SampleThroughput, v)
	case "throughput/tokens_per_sec":
		rec.Set(record.TokenThroughput, v)
	case "throughput/device/tokens_per_sec":
		rec.Set(record.DeviceTokenThroughput, v)
	case "throughput/flops_per_sec":
		rec.Set(record.FlopThroughput, v)
	case "throughput/device/flops_per_sec":
		rec.Set(record.DeviceFlopThroughput, v)
	case "throughput/device/mfu":
		rec.Set(record.MFU, v)
	case "memory/current_allocated_mem":
		rec.Set(record.MemoryUsage, v*gigabyte)
	case "memory/peak_allocated_mem":
		rec.Set(record.MemoryPeak, v*gigabyte)
	case "memory/current_reserved_mem":
		rec.Set(record.MemoryReserved, v*gigabyte)
	case "memory/peak_reserved_mem":
		rec.Set(record.MemoryReservedPeak, v*gigabyte)
	default:
		if bytes.HasPrefix(name, []byte("lr-")) && bytes.HasSuffix(name, []byte("/group0")) {
			rec.Set(record.LearningRate, v)
			return
		}
		rec.AddExtra(record.Extra{Name: name, Value: v})
	}
}

// Save implements tail.Handler.
func (p *Parser) Save() []byte {
	if p.state.In == none {
		return nil
	}
	b, err := json.Marshal(&p.state)
	if err != nil {
		return nil // cannot be: finite numbers
	}
	return b
}

// Restore implements tail.Handler.
func (p *Parser) Restore(saved []byte) {
	var s state
	if json.Unmarshal(saved, &s) == nil {
		p.state = s
	}
}

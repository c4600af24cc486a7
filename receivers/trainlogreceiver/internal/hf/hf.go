// Package hf reads the output of Hugging Face Transformers' Trainer: dicts in Python's notation (ProgressCallback.on_log, written past the progress bar), with
// numbers up to version 4 and with texts since 5; ms-swift's similar dicts; and the log_history of trainer_state.json.
package hf

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/tqdm"
)

// Source is record.Record's Source.
const Source = "hf"

// SourceState is the source of records from trainer_state.json, a repetition of standard output: with two sources each step counts once in each.
const SourceState = "trainer_state"

// Reasons of lines without a record.
const (
	BadDict     = "bad_dict"     // broken
	ProgressBar = "progress_bar" // a bar that completes no record
)

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct {
	objects  *object.Parser
	progress progress // finds the step of a record, which the dict lacks, from the bar drawn around
	// Of the dict that waits for its write: whether the dict is of a step, and whether nothing waits for the numbers, as the dict is broken or has its own.
	step, alone bool
	took        float64 // of a step: the time since the step's row before, s, by runtime; 0: unknown
	runtime     runtime
}

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

// maxTries bounds the attempts to find a dict in one line.
const maxTries = 16

var open, evaluationMark = []byte("{'"), []byte("'eval_")

// Line reads one line, with dicts anywhere in it, possibly after a bar. found: at least one record was handed to out. Otherwise BadDict means a broken line,
// and any other reason a line of another format.
func (p *Parser) Line(b []byte, out object.Out) (found bool, reason string) {
	rest := b
	bar, n := tqdm.Parse(b)
	if n > 0 {
		found, reason = p.bar(&bar, out), ProgressBar
		rest = b[n:]
	}
	for range maxTries {
		i := bytes.Index(rest, open)
		if i < 0 {
			break
		}
		rest = rest[i:]
		rec := out.Record()
		n, ok := p.objects.Parse(rest, rec)
		switch {
		case n < 0: // no whole dict; ok: a training's, by its names so far
			// A comma at the end is from settings that pprint spreads over lines.
			if ok && !found && !bytes.HasSuffix(bytes.TrimSpace(rest), []byte(",")) {
				reason = BadDict
				p.dropBroken(rest)
			}
			n = len(open)
		case ok:
			rec.Source, rec.Key = Source, rest[:n]
			p.numberRecord(rec)
			out.Emit(rec)
			found = true
		}
		rest = rest[n:]
	}
	if found {
		return true, ""
	}
	if n == 0 && reason == "" { // neither a bar nor a record, broken or not
		p.progress.text()
	}
	return false, reason
}

// Blank handles a line of blanks: tqdm erases a bar with blanks.
func (p *Parser) Blank() { p.progress.blank() }

// bar handles a progress bar, and reports whether the bar completed a record: the bar drawn after a dict has the step of the dict's record, and emits the step
// and the time as values of that record (Side). A broken dict, and one with a step of its own, has no such record.
func (p *Parser) bar(b *tqdm.Bar, out object.Out) bool {
	// Other bars have names: "Map", "Loading checkpoint shards". ms-swift calls the bar of the training Train.
	if b.Total == 0 || len(b.Desc) > 0 && string(b.Desc) != "Train" {
		return false
	}
	w, ok := p.progress.bar(b)
	switch {
	case !ok:
		return false
	case p.alone:
		p.drop(&w)
		return false
	}
	rec := out.Record()
	rec.Kind, rec.Source = record.Side, Source
	w.put(rec)
	p.setTime(&w, rec)
	out.Emit(rec)
	return true
}

// dropBroken drops the write that belongs to a broken dict: else a later record would get its numbers.
func (p *Parser) dropBroken(dict []byte) {
	p.step, p.alone, p.runtime = !bytes.Contains(dict, evaluationMark), true, runtime{}
	if w, ok, _ := p.progress.record(math.NaN()); ok {
		p.drop(&w)
	}
}

// drop removes the write of a broken dict. The steps so far were those of a broken step. Steps before a broken evaluation belong to the next step, without
// their time: the evaluation's duration, part of that time, is unknown.
func (p *Parser) drop(w *write) {
	if p.step {
		p.progress.begin()
	} else {
		p.progress.untimed += w.covers
	}
}

// numberRecord gives a record the step and the time of the bar that was drawn after the record was written (progress). If that bar is not read yet, the record
// waits (Unnumbered), provided that the log has a bar at all. A summary, and a record with an iteration of its own, need no bar. The duration of an evaluation
// is subtracted from the next step's time.
func (p *Parser) numberRecord(rec *record.Record) {
	w, ok, waits := p.progress.record(rec.Get(record.Epoch))
	numbered := rec.Kind == record.Summary || rec.Has(record.Iteration)
	p.step = rec.Kind == record.Step
	p.alone = numbered
	p.took = p.runtime.addRow(rec)
	rec.Several = true // a record covers logging_steps steps, a setting that is not in the log
	if rec.Kind == record.Evaluation && rec.Has(record.Duration) {
		p.progress.aside += rec.Get(record.Duration)
	}
	switch {
	case numbered:
	case ok:
		w.put(rec)
		p.setTime(&w, rec)
	default:
		rec.Unnumbered = waits
	}
}

// put sets the step and the planned steps of a record from the bar.
func (w *write) put(rec *record.Record) {
	rec.Set(record.Iteration, w.step)
	rec.Set(record.Iterations, w.steps)
}

// setTime gives a step's record (p.step) the number of steps since the step's record before, and their mean time without the evaluations between, unless the
// record has a duration of its own. The numbers of other records' writes are added to the next step's.
func (p *Parser) setTime(w *write, rec *record.Record) {
	since := &p.progress.since
	since.took, since.covers = since.took+w.took, since.covers+w.covers
	if !p.step {
		return
	}
	took, covers := since.took-p.progress.aside, since.covers
	if p.took > 0 {
		took = p.took
	}
	all := covers + p.progress.untimed
	p.progress.begin()
	if all > 0 && all < 1<<31 {
		rec.Covers = int64(all)
	}
	if took > 0 && covers > 0 {
		setStepTime(rec, took/covers, all)
	}
}

// setStepTime gives a record of several steps the mean time of a step, s, unless the record has a time of its own.
func setStepTime(rec *record.Record, seconds, steps float64) {
	if rec.Has(record.Duration) {
		return
	}
	rec.Set(record.Duration, seconds)
	if steps > 1 {
		rec.Of = record.Mean
	}
}

// runtime makes times of steps from train_runtime, the time since training began. Rows of steps have it with include_num_input_tokens_seen (trainer.py,
// Trainer.log).
type runtime struct {
	step, last float64 // of the step's row before; last, s, 0: none
	aside      float64 // s of evaluations since; NaN: unknown
}

// addRow returns the time, s, from the step's row before to this step's row, without evaluations; 0: unknown, or known too coarsely. Transformers 5 prints four
// digits.
func (r *runtime) addRow(rec *record.Record) float64 {
	switch rec.Kind {
	case record.Evaluation:
		r.aside += rec.Get(record.Duration)
		return 0
	case record.Step:
	default:
		return 0
	}
	at := 0.0
	for i := range rec.Extra {
		if string(rec.Extra[i].Name) == "train_runtime" {
			at = rec.Extra[i].Value
		}
	}
	took := at - r.last - r.aside
	const coarse = 20
	known := r.last > 0 && took > coarse*lastDigit(at)
	*r = runtime{step: rec.Get(record.Iteration), last: at}
	if !known {
		return 0
	}
	return took
}

// lastDigit returns the value of a unit in the last of four digits; 0 for a number of more digits.
func lastDigit(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v))-3)
	if units := v / unit; math.Abs(units-math.Round(units)) > 1e-6 {
		return 0
	}
	return unit
}

// State reads a trainer_state.json: one object, rewritten at each checkpoint, with the rows logged so far in log_history. The results are as in Line.
func (p *Parser) State(b []byte, out object.Out) (found bool, reason string) {
	rows, ok := object.Member(b, "log_history")
	if !ok {
		return false, ""
	}
	since := runtime{}
	found, ok = p.objects.Each(rows, out, func(rec *record.Record, raw []byte) {
		before := since.step
		if took, steps := since.addRow(rec), rec.Get(record.Iteration)-before; took > 0 && steps > 0 {
			setStepTime(rec, took/steps, steps)
		}
		// The row is repeated in every later state.
		rec.Source, rec.Dedup, rec.Key = SourceState, true, raw
	})
	if !ok {
		reason = BadDict
	}
	return found, reason
}

// Package slime reads the lines of slime (THUDM/slime 624b824a, 2026-08-21) about a rollout and its training:
//
//	rollout_metrics.py:268 - perf 3: {'rollout/response_len/mean': 812.5, 'perf/rollout_time': 20.5, 'perf/tokens_per_gpu_per_sec': 634.1}
//	train_metric_utils.py:135 - rollout 3: {'rollout/raw_reward': 0.5, 'rollout/log_probs': -0.21}
//	model.py:918 - step 3: {'train/loss': 0.0123, 'train/grad_norm': 0.25, 'train/lr-pg_0': 1e-06, 'train/step': 3}
//	train_metric_utils.py:401 - perf 3: {'perf/train_wait_time': 30.25, 'perf/actor_train_time': 16.5, 'perf/train_time': 21.75, 'perf/step_time': 52.0}
//	rollout_metrics.py:247 - eval 3: {'eval/aime': 0.3}
//
// The number of a step counts the optimizer's steps, the numbers of the other lines count rollouts. Both agree if each rollout is one step
// (--num-steps-per-rollout 1); then perf/*_time are the parts of the step, in seconds (slime/observability/timer.py). perf/step_time is the time from the
// end of the training before to the end of this one: train_wait_time and train_time. Otherwise all values of a rollout are fields of the rollout's last step.
//
// The lines before a step wait in the parser for the trainer's perf line, which comes last. The critic's lines (critic-step) are left to package hf.
package slime

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is the record's Source.
const Source = "slime"

// Reasons of lines that are no record.
const (
	BadDict = "bad_dict"        // broken
	Rollout = "rollout_metrics" // values that wait for the trainer's perf line
	NoStep  = "no_step"         // the trainer's perf line without a step before
)

const (
	maxKept = 8        // lines of rollouts, up to four of each; the next rollout may begin before the training ends
	maxLine = 16 << 10 // bytes of a kept line
)

// state is the memory from line to line.
type state struct {
	Step *float64 `json:"step,omitempty"` // the number of the last step
	// Several: a rollout has several steps, so a rollout's number is no step's.
	Several bool   `json:"several,omitempty"`
	Kept    []kept `json:"kept,omitempty"`
}

// kept is the dict of a line about a rollout, with the word and the number before.
type kept struct {
	Name    string  `json:"name"`
	Rollout float64 `json:"rollout"`
	Dict    []byte  `json:"dict"`
}

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct {
	objects *object.Parser
	kept    *object.Parser // of kept lines: a parser uses the memory of its last line's texts again
	state   state
	trial   record.Record // takes the values of kept lines
}

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser {
	return &Parser{objects: object.New(mapped), kept: object.New(mapped)}
}

var (
	dictMark     = []byte(": {'")
	stepMark     = []byte("'train/step': ")
	trainMark    = []byte("'perf/train_time': ")
	generateMark = []byte("'perf/rollout_time': ")
	evalMark     = []byte("'eval/")
	perfPrefix   = []byte("perf/")
	timeSuffix   = []byte("_time")
)

// places are the timers of slime/backends/megatron_utils/actor.py, in seconds. Those below train_wait, but for the rollout, are of work between two trainings:
// sleep, save_model and update_weights after the training before, wake_up and data_preprocess before this one. rollout is perf/rollout_time of the rollout
// manager (slime/ray/rollout.py, generate).
var places = record.Outline(`
train_wait
  sleep
  save_model
  update_weights
  rollout
  wake_up
  data_preprocess
train
  ref_log_probs
  teacher_log_probs
  log_probs
  actor_train
`)

// Line reads one line: of a step, of the trainer's perf and of an evaluation, which are records, or another about a rollout, which is kept for perf. mine is
// false for a line of another format.
func (p *Parser) Line(b []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	name, number, dict := find(b)
	switch {
	case dict == nil:
	case name == "step" && bytes.Contains(dict, stepMark):
		return p.step(number, dict, out)
	case name == "perf" && bytes.Contains(dict, trainMark):
		return p.perf(number, dict, out)
	case name == "eval" && bytes.Contains(dict, evalMark):
		return p.eval(number, dict, out)
	case name == "perf" && bytes.Contains(dict, generateMark), ofTrainer(name, dict):
		p.keep(name, number, dict)
		return tail.Ignored, Rollout, true
	}
	return tail.Ignored, "", false
}

// find divides "file.py:12 - perf 3: {'perf/…}" into the word, the number and the dict. dict is nil for another line.
func find(b []byte) (name string, number float64, dict []byte) {
	i := bytes.Index(b, dictMark)
	if i < 0 {
		return "", 0, nil
	}
	head := b[:i]
	blank := bytes.LastIndexByte(head, ' ')
	if blank < 0 {
		return "", 0, nil
	}
	word := head[bytes.LastIndexByte(head[:blank], ' ')+1 : blank]
	number, isNumber := decimal.Float(head[blank+1:])
	if !isNumber || !(number >= 0) || number != math.Trunc(number) {
		return "", 0, nil
	}
	for _, known := range [...]string{"step", "perf", "eval", "rollout", "multi_turn", "passrate"} {
		if string(word) == known {
			return known, number, b[i+len(": "):]
		}
	}
	return "", 0, nil
}

// ofTrainer reports whether a line is one of the trainer's about a rollout: all names in the dict begin with the word before (gather_log_data).
func ofTrainer(name string, dict []byte) bool {
	return (name == "rollout" || name == "multi_turn" || name == "passrate") && bytes.HasPrefix(dict[len("{'"):], []byte(name+"/"))
}

// step emits the record of an optimizer's step. The record waits for the trainer's perf line, which follows when the rollout is trained.
func (p *Parser) step(number float64, dict []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	rec := out.Record()
	if n, found := p.objects.Parse(dict, rec); n < 0 || !found {
		rec.Reset()
		return tail.Rejected, BadDict, true
	}
	rest := rec.Extra[:0]
	for _, e := range rec.Extra {
		if string(e.Name) == "train/lr-pg_0" && e.Text == nil { // of the first parameter group
			rec.Set(record.LearningRate, e.Value)
			continue
		}
		rest = append(rest, e)
	}
	rec.Extra = rest
	rec.Source, rec.Kind, rec.Open = Source, record.Step, true
	rec.Set(record.Iteration, number)
	p.state.Step = &number
	out.Emit(rec)
	return tail.Record, "", true
}

// perf emits the values of a rollout and its training as values of the last step (Side), with the duration and the parts of the step where the rollout is one
// step.
func (p *Parser) perf(rollout float64, dict []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	if p.state.Step == nil {
		return tail.Ignored, NoStep, true
	}
	rec := out.Record()
	if n, _ := p.objects.Parse(dict, rec); n < 0 {
		rec.Reset()
		return tail.Rejected, BadDict, true
	}
	rec.Source, rec.Kind = Source, record.Side
	p.addKept(rollout, rec)
	// The step of rollout r is r if rollouts have one step, and r*k+k-1 if they have k.
	p.state.Several = *p.state.Step != rollout
	if !p.state.Several {
		rec.Set(record.Iteration, rollout)
		parts(rec)
	}
	out.Emit(rec)
	return tail.Record, "", true
}

// parts makes the duration and the parts of a step of perf/*_time. Generation is a part of the wait, unless it took longer: then it ran beside the training
// before (train_async.py), and stays a field. Other times stay fields too, as ref_model_update_time, which follows the step.
func parts(rec *record.Record) {
	wait := math.Inf(1)
	for _, e := range rec.Extra {
		if string(e.Name) == "perf/train_wait_time" {
			wait = e.Value
		}
	}
	rest := rec.Extra[:0]
	for _, e := range rec.Extra {
		name, isPerf := bytes.CutPrefix(e.Name, perfPrefix)
		name, isTime := bytes.CutSuffix(name, timeSuffix)
		isTime = isTime && isPerf && e.Text == nil && e.Value >= 0
		place := places[string(name)]
		switch {
		case isTime && string(name) == "step":
			rec.Set(record.Duration, e.Value)
		case isTime && place != nil && (string(name) != "rollout" || e.Value <= wait):
			rec.Stages = append(rec.Stages, record.Stage{Name: name, Seconds: e.Value, Place: place})
		default:
			rest = append(rest, e)
		}
	}
	rec.Extra = rest
}

// eval emits the results of an evaluation after a rollout: of the step of the same number, or of the last step where numbers differ.
func (p *Parser) eval(rollout float64, dict []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	rec := out.Record()
	if n, _ := p.objects.Parse(dict, rec); n < 0 {
		rec.Reset()
		return tail.Rejected, BadDict, true
	}
	rec.Source, rec.Kind = Source, record.Evaluation
	if !p.state.Several {
		rec.Set(record.Iteration, rollout)
	}
	out.Emit(rec)
	return tail.Record, "", true
}

// keep keeps a line about a rollout, in place of the same line of an earlier attempt at the rollout. The oldest is dropped where there are too many: its
// training is over, or in another log. A dict of more than maxLine bytes is not kept.
func (p *Parser) keep(name string, rollout float64, dict []byte) {
	if len(dict) > maxLine {
		return
	}
	s := &p.state
	s.Kept = slices.DeleteFunc(s.Kept, func(k kept) bool { return k.Name == name && k.Rollout == rollout })
	if len(s.Kept) == maxKept {
		s.Kept = slices.Delete(s.Kept, 0, 1)
	}
	s.Kept = append(s.Kept, kept{name, rollout, bytes.Clone(dict)})
}

// addKept adds the values of the kept lines of a rollout to rec. The lines stay: the trainer's perf line may be read again after a restart.
func (p *Parser) addKept(rollout float64, rec *record.Record) {
	for _, k := range p.state.Kept {
		if k.Rollout != rollout {
			continue
		}
		p.trial.Reset()
		if n, _ := p.kept.Parse(k.Dict, &p.trial); n < 0 { // cut short
			continue
		}
		rec.Merge(&p.trial)
		for _, e := range p.trial.Extra {
			e.Text = bytes.Clone(e.Text)
			rec.AddExtra(e)
		}
	}
}

// Save implements tail.Handler.
func (p *Parser) Save() []byte {
	if p.state.Step == nil && len(p.state.Kept) == 0 {
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

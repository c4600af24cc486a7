// Package openrlhf reads the lines of OpenRLHF's PPO trainers (OpenRLHF/OpenRLHF, trainer/ppo_trainer.py and ppo_trainer_async.py):
//
//	INFO 08-13 19:25:45 ppo_trainer.py:547] ✨ Global step 5: {'policy_loss': 0.0123, 'actor_lr': 1e-06, 'reward': 0.5, 'timing/generation': 12.5,
//
// 'timing/step_total': 40.25}
//
//	✨ Evaluation completed in 0:01:02, global_step 5, eval_metrics: {'eval_default_pass1': 0.5}
//
// timing/* are seconds, and step_total is their sum. Losses of RL stay fields, because they are not comparable with other losses. OpenRLHF's other trainers
// draw tqdm bars only, and are read by package bar.
package openrlhf

import (
	"bytes"
	"slices"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is the record's Source.
const Source = "openrlhf"

var (
	stepMark  = []byte("Global step ")
	evalMark  = []byte("Evaluation completed in ")
	asyncMark = []byte("Eval at step ")
	totalName = []byte("step_total")
)

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct{ objects *object.Parser }

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

// Parse fills rec with the record in b; rec must be empty. found false and no reason: b is a line of another format. A reason: the line is malformed. The
// values in rec point into b; without a record, rec stays empty. A line is about a step, or about an evaluation of the synchronous or the asynchronous trainer.
func (p *Parser) Parse(b []byte, rec *record.Record) (found bool, reason string) {
	kind := record.Step
	var number, rest []byte // of the step, and the dict
	if i := bytes.Index(b, stepMark); i >= 0 {
		number, rest, _ = bytes.Cut(b[i+len(stepMark):], []byte(": "))
	} else if i := bytes.Index(b, asyncMark); i >= 0 {
		kind = record.Evaluation
		number, rest, _ = bytes.Cut(b[i+len(asyncMark):], []byte(": "))
	} else if i := bytes.Index(b, evalMark); i >= 0 {
		kind = record.Evaluation
		_, after, _ := bytes.Cut(b[i+len(evalMark):], []byte(", global_step "))
		number, rest, _ = bytes.Cut(after, []byte(", eval_metrics: "))
	}
	n, isNumber := decimal.Float(number)
	if !isNumber || !bytes.HasPrefix(rest, []byte("{'")) {
		return false, ""
	}
	if length, _ := p.objects.Parse(rest, rec); length < 0 { // cut short
		rec.Reset()
		return false, "bad_dict"
	}
	rec.Source, rec.Kind, rec.Of = Source, kind, record.OneStep // the sum below is of the step itself
	rec.Set(record.Iteration, n)
	// Parts are known by their names, as verl's are; their sum is no part.
	if i := slices.IndexFunc(rec.Stages, func(st record.Stage) bool { return bytes.Equal(st.Name, totalName) }); i >= 0 {
		rec.Set(record.Duration, rec.Stages[i].Seconds)
		rec.Stages = slices.Delete(rec.Stages, i, i+1)
	}
	return true, ""
}

package block

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

const shortRule = 20 // dashes: boxes are wider

// isRule reports whether a line is a rule of dashes.
func isRule(b []byte) bool {
	return len(b) >= shortRule && b[0] == '-' && bytes.Count(b, b[:1]) == len(b)
}

// openBox opens a box if the line is a rule of dashes, and no block is open or only a box.
func (s *state) openBox(b []byte, pre *line.Prefix) {
	if isRule(b) && (s.In == none || s.In == box) {
		s.end()
		s.In = box
		s.setWriter(pre)
		s.Stamp = nil // the rule below has the time
	}
}

// row splits "|    loss | 0.584 |". A group's name ends with a slash and has no value: "| train/ | |".
func row(b []byte) (name, value []byte, group, ok bool) {
	if len(b) < 5 || b[0] != '|' || b[len(b)-1] != '|' || bytes.Count(b, []byte("|")) != 3 {
		return nil, nil, false, false
	}
	name, value, _ = bytes.Cut(b[1:len(b)-1], []byte("|"))
	name, value = bytes.TrimSpace(name), bytes.TrimSpace(value)
	group = len(value) == 0 && len(name) > 1 && name[len(name)-1] == '/'
	return name, value, group, len(name) > 0 && (group || len(value) > 0)
}

// boxed reads a line between two rules, a row, which is kept, or the rule that ends the box and makes the record of the rows. A line that is no row, and rows
// of more than maxLines bytes, end the box without a record; mine is then false, as for a rule without a record.
func (p *Parser) boxed(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	s := &p.state
	if isRule(b) {
		found := len(s.Lines) > 0 && p.boxRecord(out)
		s.openBox(b, out.Prefix()) // two adjacent boxes share a rule
		if found {
			return tail.Record, "", true
		}
		return tail.Ignored, "", false
	}
	_, value, group, ok := row(b)
	if ok && len(s.Lines) == 0 && !group { // a first row with a name for a value is the header of another table
		_, ok = decimal.Float(value)
	}
	if !ok || len(s.Lines)+len(b) > maxLines {
		s.end()
		return tail.Ignored, "", false
	}
	s.Lines = append(append(s.Lines, b...), '\n')
	return tail.Ignored, Value, true
}

// The names in a box for the number of its step, from the surest: to TensorBoard, Stable-Baselines3 logs total_timesteps as the step. Boxes without groups are
// of earlier loggers (openai/baselines, logger.py; openai/spinningup, spinup/utils/logx.py; openai/improved-diffusion, logger.py).
var boxSteps = [...]string{"time/total_timesteps", "train/n_updates", "time/iterations", "step", "total_timesteps", "totalenvinteracts", "iteration", "epoch"}

// boxRecord emits the record of a box about training, and reports whether there was one: a box with a step, and with a number of the group train/ or, without
// groups, a loss. Boxes before the first update have no values of training. The duration of a step is the mean since the box before, by the run's clock in
// both.
func (p *Parser) boxRecord(out Out) bool {
	s := &p.state
	var steps [len(boxSteps)]float64 // the number under each of the names of boxSteps; 0: none
	training, elapsed := false, -1.0 // elapsed: the run's clock, s; negative: none
	rec := out.Record()
	p.objects.Begin(rec)
	group := []byte(nil)
	for text := range bytes.SplitSeq(s.Lines, []byte("\n")) {
		name, value, isGroup, ok := row(text)
		if isGroup {
			group = name
		}
		if !ok || isGroup {
			continue
		}
		name = append(append(make([]byte, 0, len(group)+len(name)), group...), name...)
		n, isNumber := decimal.Float(value)
		training = training || isNumber && (string(group) == "train/" || len(group) == 0 && isLoss(name))
		if i := boxStep(name); i >= 0 && isNumber && whole(n) {
			steps[i] = n
		}
		if isNumber && (string(name) == "time/time_elapsed" || string(name) == "Time" || string(name) == "time_elapsed") {
			elapsed = n
		}
		p.objects.Field(name, value)
	}
	p.objects.End()
	s.Step, s.Steps, s.Epoch = 0, 0, nil
	for i := len(steps) - 1; i >= 0; i-- { // the surest name counts
		if steps[i] > 0 {
			s.Step = steps[i]
		}
	}
	if s.Step == 0 {
		return false
	}
	was := s.Clock
	if elapsed >= 0 {
		s.Clock = &clock{elapsed, s.Step}
	}
	if !training {
		return false
	}
	if was != nil && elapsed > was.Seconds && s.Step > was.Step {
		rec.Set(record.Duration, (elapsed-was.Seconds)/(s.Step-was.Step))
		rec.Of = record.Mean
	}
	p.place(rec)
	out.Emit(rec)
	return true
}

// boxStep returns the index of a name in boxSteps; -1: none.
func boxStep(name []byte) int {
	for i, n := range boxSteps {
		if len(name) == len(n) && bytes.EqualFold(name, []byte(n)) {
			return i
		}
	}
	return -1
}

// isLoss reports whether a name without a group is of a loss: "loss", "LossPi", "policy_loss".
func isLoss(name []byte) bool {
	lower := bytes.ToLower(name)
	return bytes.HasPrefix(lower, []byte("loss")) || bytes.HasSuffix(lower, []byte("loss"))
}

package pairs

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// state is the memory from line to line.
type state struct {
	// Finer: the log has steps, so that an epoch's line is no step. Own: lines of pairs have the steps.
	Finer bool  `json:"finer,omitempty"`
	Own   bool  `json:"own,omitempty"`
	Head  *head `json:"head,omitempty"`
}

// head is a line that names an epoch alone: "Epoch 3/10", "Epoch: 01 | Epoch Time: 0m 12s". Lines below have the losses.
type head struct {
	Epoch   float64 `json:"epoch"`
	Epochs  float64 `json:"epochs,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // duration of the epoch; 0: unknown
	Lines   int     `json:"lines,omitempty"`   // since
}

// mostBelow bounds the lines between the name of an epoch and its loss.
const mostBelow = 200

// readHead reads a line without a loss: if it names an epoch, the losses of which are in lines below, it becomes p.state.Head. "Epoch: 01 | Epoch Time: 0m 12s"
// also has the epoch's time. A line with a step or a result is no head.
func (p *Parser) readHead(b []byte) {
	if h := p.state.Head; h != nil {
		if h.Lines++; h.Lines > mostBelow {
			p.state.Head = nil
		}
	}
	// A quick look first, since nearly all lines of a log come here: "Epoch" or "ep", possibly after decoration. The bit 0x20 makes a capital small.
	if len(b) == 0 || b[0]|0x20 != 'e' && ascii.IsAlphanumeric(b[0]) {
		return
	}
	b = bytes.Trim(b, "=-*#[]>: ")
	if len(b) < 4 || b[0]|0x20 != 'e' || b[1]|0x20 != 'p' {
		return
	}
	if !p.lexer.tokens(b) || p.lexer.leftover > 0 {
		return
	}
	next := head{Epoch: math.NaN()}
	for i := range p.lexer.pairs {
		switch q := &p.lexer.pairs[i]; {
		case isEpoch(q) && math.IsNaN(next.Epoch) && q.number >= 0 && q.number == math.Trunc(q.number):
			next.Epoch, next.Epochs = q.number, q.of
		case isTime(q.name):
			if units[q.unit].suffix == "_s" {
				next.Seconds = q.number
			}
		case q.about.Step || q.about.Evaluation:
			return
		}
	}
	if !math.IsNaN(next.Epoch) {
		p.state.Head = &next
	}
}

// ofEpoch reduces the record of a line about an epoch. In a log without steps the epoch is the step: the record stays. Where lines of pairs have the steps,
// only the result of the epoch's evaluation stays. Where bars or another format have the steps, nothing stays: these have the results too, which would count
// twice. It returns false if nothing stays.
func (p *Parser) ofEpoch(rec *record.Record) bool {
	if !p.state.Finer {
		return true
	}
	if !p.state.Own || !rec.Has(record.ValidationLoss) {
		rec.Reset()
		return false
	}
	rec.Kind = record.Evaluation
	for _, f := range [...]record.Field{record.Loss, record.Iteration, record.Iterations, record.Duration} {
		rec.Unset(f)
	}
	return true
}

// Others is called when another format has found a record: its lines have the steps.
func (p *Parser) Others() { p.state.Finer = true }

// Save implements tail.Handler.
func (p *Parser) Save() []byte {
	if !p.state.Finer && p.state.Head == nil {
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

package object

import (
	"bytes"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Begin starts a record that is given field by field: the cells of a table, the pairs of a line. Names mean what they mean in objects.
func (p *Parser) Begin(rec *record.Record) { p.begin(rec) }

// Field adds a field. An empty value says nothing.
func (p *Parser) Field(name, value []byte) {
	if value = bytes.TrimSpace(value); len(value) > 0 {
		p.text(p.entry(name), value)
	}
}

// End says whether the fields are a record of a training log, and of which kind.
func (p *Parser) End() bool { return p.finish() }

// About is what a name is about, for formats that must not take any text with a number for a record.
type About struct{ Step, Loss, Evaluation bool }

// About says what a name is about. A name with the word loss in it is about a loss.
func (p *Parser) About(name []byte) About {
	e := p.entry(name)
	return About{
		Step:       e.action == set && e.Field == record.Iteration,
		Loss:       e.action == set && (e.Field == record.Loss || e.Field == record.ValidationLoss) || e.loss && e.action == keep,
		Evaluation: e.flags&evaluation != 0,
	}
}

// Known says whether a name has a meaning.
func (p *Parser) Known(name []byte) bool {
	e := p.entry(name)
	return e.action != keep || e.Scale != 0
}

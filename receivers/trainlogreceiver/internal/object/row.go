package object

import (
	"bytes"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Begin starts a record that is given field by field: the cells of a table, the pairs of a line. Names mean the same as in objects.
func (p *Parser) Begin(rec *record.Record) { p.begin(rec) }

// Field adds a field. An empty value is left out.
func (p *Parser) Field(name, value []byte) {
	value = bytes.TrimSpace(value)
	if len(value) > 0 {
		p.text(p.entry(name), value)
	}
}

// End reports whether the fields since Begin are a record of a training log, and sets the record's kind.
func (p *Parser) End() bool { return p.finish() }

// About is the subject of a name, for formats that must not take any text with a number for a record.
type About struct{ Step, Loss, Evaluation bool }

// About returns the subject of a name. An unknown name with the word loss in it is about a loss, too.
func (p *Parser) About(name []byte) About {
	e := p.entry(name)
	return About{
		Step:       e.action == set && e.Field == record.Iteration,
		Loss:       e.action == set && (e.Field == record.Loss || e.Field == record.ValidationLoss) || e.loss && e.action == keep,
		Evaluation: e.flags&evaluation != 0,
	}
}

// Name is a name with its meaning, for formats that know their names before the first line.
type Name struct{ e *entry }

// Name returns a name with its meaning.
func (p *Parser) Name(name []byte) Name { return Name{p.entry(name)} }

// Plain returns a name as that of an unknown field, whatever the name means in rows; the configuration may give it a meaning.
func (p *Parser) Plain(name []byte) Name {
	t, _ := lookUp(string(name), p.mapped)
	return Name{&entry{Target: t, name: name}}
}

// Numeric reports whether the value of the name must be a number: a pattern's placeholder then takes no other text.
func (n Name) Numeric() bool {
	return n.e.Scale != 0 || n.e.action == set || n.e.action == inverse || n.e.action == ratio || n.e.action == rank || n.e.action == part
}

// Number adds a number; raw is its text.
func (p *Parser) Number(n Name, v float64, raw []byte) { p.number(n.e, v, raw) }

// Text adds a text, possibly a number.
func (p *Parser) Text(n Name, value []byte) { p.text(n.e, value) }

// Known reports whether a name has a meaning in training. Names of a host, or of a number of tokens, occur in lines of all kinds, and do not count.
func (p *Parser) Known(name []byte) bool {
	e := p.entry(name)
	return e.action != keep && e.action != eitherTokens && e.action != host || e.Scale != 0
}

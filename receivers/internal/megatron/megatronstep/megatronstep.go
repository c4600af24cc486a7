// Package megatronstep adapts package megatron to step.Parser: results become tail's verdicts, and the argument dump becomes the model.
package megatronstep

import (
	"encoding/json"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/megatron"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/spans"
)

// Parser reads Megatron's lines of one stream. The zero value is ready.
type Parser struct {
	lines megatron.Parser
	state state
}

// state is the model between the argument dump and the first iteration.
type state struct {
	Model spans.Model `json:"model"`
	Dump  bool        `json:"dump"` // within the dump: megatron.Parser.Dump
	Open  bool        `json:"open"` // arguments may still come: from the beginning of the dump to the first record behind it
}

// Line is as in step.Parser: the records of a Megatron line go to out, and the argument dump becomes out.Model. mine is false for a line of another program,
// which the caller may give to another parser.
func (p *Parser) Line(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	result, reason := p.lines.Line(text, out)
	switch result {
	case megatron.Records:
		p.state.Open = p.state.Open && p.lines.Dump // a memory line or a timer within the dump ends nothing; an iteration has ended the dump
		return tail.Record, "", true
	case megatron.Ignored:
		return tail.Ignored, reason, true
	case megatron.Malformed:
		return tail.Rejected, reason, true
	case megatron.Begin:
		p.state = state{Open: true}
		out.Restarted()
		return tail.Ignored, "arguments", true
	case megatron.Arguments:
		return tail.Ignored, p.arguments(out), true
	case megatron.End:
		if p.state.Open {
			out.Model(&p.state.Model)
		}
		return tail.Ignored, "arguments", true
	}
	return tail.Ignored, "", false
}

// arguments adds the line's arguments to the model, and returns the reason why the line is no record.
func (p *Parser) arguments(out step.Out) string {
	for _, a := range p.lines.Arguments() {
		p.state.Model.Set(string(a.Name), a.Value)
	}
	if p.state.Open && !p.lines.Dump { // the padded size of the vocabulary is printed after the dump
		out.Model(&p.state.Model)
	}
	return "arguments"
}

// Save is as in tail.Handler.
func (p *Parser) Save() []byte {
	if !p.state.Open {
		return nil
	}
	p.state.Dump = p.lines.Dump
	b, err := json.Marshal(&p.state)
	if err != nil {
		return nil // cannot be: numbers, texts and booleans
	}
	return b
}

// Restore is as in tail.Handler.
func (p *Parser) Restore(saved []byte) {
	var s state
	if json.Unmarshal(saved, &s) == nil {
		p.state, p.lines.Dump = s, s.Dump
	}
}

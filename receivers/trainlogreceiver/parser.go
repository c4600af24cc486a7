package trainlogreceiver

import (
	"bytes"
	"encoding/json"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/megatron/megatronstep"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/bar"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/composer"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/deepspeed"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/hf"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/jsonl"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/litgpt"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/nanochat"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/nanogpt"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/nemo"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/openrlhf"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pairs"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/table"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/torchtitan"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/torchtune"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/verl"
)

const notRecord = "not_a_record"

// format reads a line. mine is false when it is not of this format.
type format func(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool)

// parser reads the lines of one stream, of one format or of any.
type parser struct {
	formats  []format
	last     int // the format of the record before
	anything int // formats from here on are nobody's own, and come after all others

	dicts    *hf.Parser
	megatron megatronstep.Parser
	composer composer.Parser
	bars     *bar.Parser
	tables   *table.Parser
}

func newParser(name string, mapped map[string]object.Target) *parser {
	p := &parser{bars: bar.New(mapped), tables: table.New(mapped)}
	names := formats
	if name != formatAuto {
		names = []string{name}
	}
	p.dicts = hf.New(mapped)
	for _, n := range names {
		var f format
		switch n {
		case formatJSONL:
			f = lines(jsonl.New(mapped).Line)
			if name == formatJSONL {
				f = either(f, lines(p.dicts.Line)) // print(row) for print(json.dumps(row)) is a usual mistake
			}
		case formatHF:
			f = lines(p.dicts.Line)
		case formatMegatron:
			f = withFields(p.megatron.Line, mapped)
		case formatDeepSpeed:
			f = withFields(single(deepspeed.Parse), mapped)
		case formatTorchtitan:
			f = withFields(single(torchtitan.Parse), mapped)
		case formatNeMo:
			f = withFields(single(nemo.Parse), mapped)
		case formatVerl:
			f = withFields(single(verl.Parse), mapped)
		case formatNanoGPT:
			f = withFields(single(nanogpt.Parse), mapped)
		case formatNanochat:
			f = withFields(single(nanochat.Parse), mapped)
		case formatLitGPT:
			f = withFields(single(litgpt.Parse), mapped)
		case formatTorchtune:
			f = withFields(single(torchtune.Parse), mapped)
		case formatComposer:
			f = withFields(func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.composer.Line(text, out) }, mapped)
		case formatOpenRLHF:
			f = single(openrlhf.New(mapped).Parse)
		case formatTQDM:
			f = func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.bars.Line(text, out) }
		case formatCSV:
			f = func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.tables.Line(text, out) }
		case formatKeyValue:
			p.anything = len(p.formats)
			f = single(pairs.New(mapped).Parse)
		}
		p.formats = append(p.formats, f)
	}
	return p
}

// Line reads one line. The format of the record before comes first.
func (p *parser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	if len(text) == 0 || text[0] <= ' ' && len(bytes.TrimSpace(text)) == 0 {
		if len(text) > 0 {
			p.dicts.Blank()
		}
		return tail.Ignored, "empty"
	}
	v, reason, mine := p.formats[p.last](text, out)
	if mine {
		return v, reason
	}
	for i, f := range p.formats {
		if i == p.last {
			continue
		}
		v, why, mine := f(text, out)
		if mine {
			if v == tail.Record && (i < p.anything || p.anything == 0) {
				p.last = i
			}
			return v, why
		}
		if why != "" {
			reason = why
		}
	}
	if reason == "" {
		reason = notRecord
	}
	return tail.Ignored, reason
}

// parserState is what is kept over a restart, by format.
type parserState struct {
	Megatron json.RawMessage `json:"megatron,omitempty"`
	Composer json.RawMessage `json:"composer,omitempty"`
	Bars     json.RawMessage `json:"tqdm,omitempty"`
	Tables   json.RawMessage `json:"csv,omitempty"`
}

// Save is as in tail.Handler.
func (p *parser) Save() []byte {
	s := parserState{Megatron: p.megatron.Save(), Composer: p.composer.Save(), Bars: p.bars.Save(), Tables: p.tables.Save()}
	if s.Megatron == nil && s.Composer == nil && s.Bars == nil && s.Tables == nil {
		return nil
	}
	b, err := json.Marshal(&s)
	if err != nil {
		return nil // cannot be: each is JSON
	}
	return b
}

// Restore is as in tail.Handler.
func (p *parser) Restore(state []byte) {
	var s parserState
	if json.Unmarshal(state, &s) != nil {
		return
	}
	p.megatron.Restore(s.Megatron)
	p.composer.Restore(s.Composer)
	p.bars.Restore(s.Bars)
	p.tables.Restore(s.Tables)
}

// lines is the format of a parser that looks for any number of records.
func lines(line func(text []byte, out object.Out) (found bool, reason string)) format {
	return func(text []byte, out step.Out) (tail.Verdict, string, bool) {
		found, reason := line(text, out)
		switch {
		case found:
			return tail.Record, "", true
		case reason == jsonl.BadJSON || reason == hf.BadDict:
			return tail.Rejected, reason, true
		}
		return tail.Ignored, reason, false
	}
}

// single is the format of a function that finds one record.
func single(parse func(text []byte, rec *record.Record) (found bool, reason string)) format {
	return func(text []byte, out step.Out) (tail.Verdict, string, bool) {
		rec := out.Record()
		found, reason := parse(text, rec)
		switch {
		case found:
			out.Emit(rec)
			return tail.Record, "", true
		case reason != "":
			return tail.Rejected, reason, true
		}
		return tail.Ignored, "", false
	}
}

func either(first, second format) format {
	return func(text []byte, out step.Out) (tail.Verdict, string, bool) {
		if v, reason, mine := first(text, out); mine {
			return v, reason, mine
		}
		return second(text, out)
	}
}

// withFields gives the fields that a format does not know the meaning they have in the configuration.
func withFields(f format, mapped map[string]object.Target) format {
	if len(mapped) == 0 {
		return f
	}
	return func(text []byte, out step.Out) (tail.Verdict, string, bool) { return f(text, mapper{out, mapped}) }
}

type mapper struct {
	step.Out
	mapped map[string]object.Target
}

func (m mapper) Emit(rec *record.Record) {
	object.Apply(rec, m.mapped)
	m.Out.Emit(rec)
}

// documentParser reads files that are rewritten whole.
type documentParser struct {
	states *hf.Parser
	lines  *jsonl.Parser
}

func newDocumentParser(mapped map[string]object.Target) *documentParser {
	return &documentParser{states: hf.New(mapped), lines: jsonl.New(mapped)}
}

// Line reads one document: a trainer_state.json, or a JSON object or array of objects.
func (p *documentParser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	v, reason, mine := either(lines(p.states.State), lines(p.lines.Line))(text, out)
	if !mine {
		reason = notRecord
	}
	return v, reason
}

// Save is as in tail.Handler.
func (*documentParser) Save() []byte { return nil }

// Restore is as in tail.Handler.
func (*documentParser) Restore([]byte) {}

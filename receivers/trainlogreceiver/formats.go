package trainlogreceiver

import (
	"sync"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/megatron/megatronstep"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/bar"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/block"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/composer"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/deepspeed"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/hf"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/jsonl"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/keras"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/nemo"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/openrlhf"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pairs"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/slime"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/table"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/torchtitan"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/verl"
)

// format is a format of trainers' records.
type format struct {
	name string // as in the configuration
	// open makes the reader of a stream; the reader decides whether a line is of its format.
	open func(fields) reader
	// alone replaces open where the configuration names the format, and no other is tried. nil: as open.
	alone func(fields) reader
	// within: the lines are also those of another format. The format is tried only if named in the configuration.
	within bool
	// common: lines of many writers look like this format. The next line is tried with the other formats first.
	common bool
}

// formats are tried in order. NeMo's lines have Megatron's iterations and the lines of OpenRLHF and slime have dicts, so these come before Megatron and dicts;
// rules of blocks are Megatron's too, so blocks come before; any program may print pairs, so pairs come last. To add a format, add its line.
var formats = []format{
	{name: "jsonl", open: func(f fields) reader { return reader{line: rows(jsonl.New(f).Line)} }, alone: openObjects},
	{name: "openrlhf", open: func(f fields) reader { return reader{line: single(openrlhf.New(f).Parse)} }},
	{name: "slime", open: openSlime},
	{name: "hf", open: openDicts},
	{name: "nemo", open: plain(nemo.Parse)},
	{name: "block", open: openBlocks},
	{name: "megatron", open: openMegatron},
	{name: "deepspeed", open: openDeepSpeed},
	{name: "torchtitan", open: func(f fields) reader { return withFields(reader{line: single(new(torchtitan.Parser).Parse)}, f) }},
	{name: "verl", open: plain(verl.Parse)},
	{name: "composer", open: openComposer},
	{name: "keras", open: openKeras},
	{name: "nanogpt", open: openPatterns(nanoGPT), within: true},
	{name: "nanochat", open: openPatterns(nanochat), within: true},
	{name: "litgpt", open: openPatterns(litGPT), within: true},
	{name: "torchtune", open: openPatterns(torchtune), within: true},
	{name: "pattern", open: openPatterns(builtin)},
	{name: "tqdm", open: openBars},
	{name: "csv", open: openTables},
	{name: "keyvalue", open: openPairs, common: true},
}

// documents are the formats of files that are rewritten whole, in order.
var documents = []format{
	{name: hf.SourceState, open: func(f fields) reader { return reader{line: rows(hf.New(f).State)} }},
	{name: "jsonl", open: func(f fields) reader { return reader{line: rows(jsonl.New(f).Line)} }},
}

// Formats returns the formats of train_log by their names in the configuration, in order.
func Formats() []string {
	names := make([]string, len(formats))
	for i := range formats {
		names[i] = formats[i].name
	}
	return names
}

// fields has the meanings from the configuration (Config.mapped): by the name in the log, the target of a field's value.
type fields = map[string]object.Target

// reader reads the lines of one stream in one format.
type reader struct {
	// line reads a line. mine is false for a line of another format; reason may then name the kind of line.
	line func(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool)
	// blank takes a line of blanks. nil: ignored.
	blank func()
	// others is called when another format has found a record in the stream, once for each such format: then bars without a loss, and rows of epochs, are no
	// steps. nil: ignored.
	others func()
	// memory is the state from line to line. nil: none.
	memory interface {
		Save() []byte // JSON; nil: nothing
		Restore(state []byte)
	}
}

// openDicts opens the format of Python dicts, as printed by Hugging Face's Trainer.
func openDicts(f fields) reader {
	p := hf.New(f)
	return reader{line: rows(p.Line), blank: p.Blank}
}

// openObjects opens the format of JSON objects where the configuration names it, and reads Python dicts too: print(row) for print(json.dumps(row)) is a usual
// mistake. With format auto, dicts have their own format.
func openObjects(f fields) reader {
	objects, dicts := rows(jsonl.New(f).Line), openDicts(f)
	return reader{blank: dicts.blank, line: func(text []byte, out step.Out) (tail.Verdict, string, bool) {
		if v, reason, mine := objects(text, out); mine {
			return v, reason, mine
		}
		return dicts.line(text, out)
	}}
}

// openMegatron opens Megatron's format.
func openMegatron(f fields) reader {
	p := new(megatronstep.Parser)
	return withFields(reader{line: p.Line, memory: p}, f)
}

// openDeepSpeed opens DeepSpeed's format. Timers of a later step, of which no record was printed (DeepSpeed prints one each steps_per_print), are ignored:
// otherwise they would count as rejected.
func openDeepSpeed(f fields) reader {
	p := new(deepspeed.Parser)
	line := single(p.Parse)
	return withFields(reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) {
		v, reason, mine := line(text, out)
		if reason == deepspeed.LaterStep {
			v = tail.Ignored
		}
		return v, reason, mine
	}}, f)
}

// openComposer opens Composer's format.
func openComposer(f fields) reader {
	p := new(composer.Parser)
	return withFields(reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, memory: p}, f)
}

// openBlocks opens the format of blocks.
func openBlocks(f fields) reader {
	p := block.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, memory: p}
}

// openBars opens the format of tqdm's bars.
func openBars(f fields) reader {
	p := bar.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, others: p.Others, memory: p}
}

// openPairs opens the format of key=value lines.
func openPairs(f fields) reader {
	p := pairs.New(f)
	return reader{line: single(p.Parse), others: p.Others, memory: p}
}

// openSlime opens slime's format.
func openSlime(f fields) reader {
	p := slime.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, memory: p}
}

// openKeras opens Keras' format.
func openKeras(f fields) reader {
	p := keras.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, memory: p}
}

// openPatterns returns the open function of a format whose lines are patterns. The set of compiled patterns is large: without fields of the configuration, all
// streams share one, made at first use.
func openPatterns(patterns []*pattern.Pattern) func(fields) reader {
	shared := sync.OnceValue(func() *pattern.Set { return pattern.NewSet(patterns, nil) })
	return func(f fields) reader {
		set := shared()
		if len(f) > 0 { // their names change what a placeholder means
			set = pattern.NewSet(patterns, f)
		}
		return reader{line: single(set.New(f).Parse)}
	}
}

// openTables opens the format of tables.
func openTables(f fields) reader {
	p := table.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, others: p.Others, memory: p}
}

// plain returns the open function of a format of independent lines; parse finds one record in a line.
func plain(parse func(text []byte, rec *record.Record) (found bool, reason string)) func(fields) reader {
	return func(f fields) reader { return withFields(reader{line: single(parse)}, f) }
}

// rows returns a reader.line for a parser that emits any number of records of a line. A line that begins as an object or a dict and is broken is rejected;
// other reasons only say why the line is none of the format's.
func rows(line func(text []byte, out object.Out) (found bool, reason string)) func([]byte, step.Out) (tail.Verdict, string, bool) {
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

// single returns a reader.line for a parser of one record in a line: parse fills the record, and the record is emitted here. If found is false, a reason means
// that the line is the format's, but broken: it is rejected. Without a reason the line is another format's.
func single(parse func(text []byte, rec *record.Record) (found bool, reason string)) func([]byte, step.Out) (tail.Verdict, string, bool) {
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

// withFields returns r with the meanings of the configuration for fields unknown to the format.
func withFields(r reader, f fields) reader {
	if len(f) == 0 {
		return r
	}
	line := r.line
	r.line = func(text []byte, out step.Out) (tail.Verdict, string, bool) { return line(text, mapper{out, f}) }
	return r
}

// mapper is the output of a parser that gives unknown fields their meaning from the configuration.
type mapper struct {
	step.Out
	fields fields
}

// Emit implements step.Out.
func (m mapper) Emit(rec *record.Record) {
	object.Apply(rec, m.fields)
	m.Out.Emit(rec)
}

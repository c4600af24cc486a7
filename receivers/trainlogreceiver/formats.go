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
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/table"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/torchtitan"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/verl"
)

// format is a way in which trainers print their records.
type format struct {
	name string // as in the configuration
	// open makes the reader of a stream. A line is of this format when the reader says so.
	open func(fields) reader
	// alone is open where the configuration names the format, and no other is tried. nil: as open.
	alone func(fields) reader
	// within: another format has its lines, too. It is tried only where the configuration names it.
	within bool
	// common: lines of many writers look like this format. The next line is tried with the other formats first.
	common bool
}

// formats are tried from the first to the last. NeMo's lines have Megatron's iterations and OpenRLHF's lines have dicts, so both come before Megatron
// and dicts; rules of blocks are Megatron's too, so blocks come before; any program may print pairs, so they come last. To add a format, add its line.
var formats = []format{
	{name: "jsonl", open: func(f fields) reader { return reader{line: rows(jsonl.New(f).Line)} }, alone: openObjects},
	{name: "openrlhf", open: func(f fields) reader { return reader{line: single(openrlhf.New(f).Parse)} }},
	{name: "hf", open: openDicts},
	{name: "nemo", open: plain(nemo.Parse)},
	{name: "block", open: openBlocks},
	{name: "megatron", open: openMegatron},
	{name: "deepspeed", open: openDeepSpeed},
	{name: "torchtitan", open: plain(torchtitan.Parse)},
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

// documents are the formats of files that are rewritten whole, in the order in which they are tried.
var documents = []format{
	{name: hf.SourceState, open: func(f fields) reader { return reader{line: rows(hf.New(f).State)} }},
	{name: "jsonl", open: func(f fields) reader { return reader{line: rows(jsonl.New(f).Line)} }},
}

// Formats are the formats of train_log by their names in the configuration, in the order in which they are tried.
func Formats() []string {
	names := make([]string, len(formats))
	for i := range formats {
		names[i] = formats[i].name
	}
	return names
}

// fields are the names that the configuration gives a meaning.
type fields = map[string]object.Target

// reader reads the lines of one stream in one format.
type reader struct {
	// line reads a line. mine is false when it is not of the format; reason may say then what else it is.
	line func(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool)
	// blank takes a line of blanks. nil: they say nothing.
	blank func()
	// others says that another format has told a record. nil: that says nothing.
	others func()
	// memory is the state that earlier lines leave for later ones. nil: there is none.
	memory interface {
		Save() []byte // JSON; nil: nothing
		Restore(state []byte)
	}
}

func openDicts(f fields) reader {
	p := hf.New(f)
	return reader{line: rows(p.Line), blank: p.Blank}
}

// openObjects reads dicts too: print(row) for print(json.dumps(row)) is a usual mistake.
func openObjects(f fields) reader {
	objects, dicts := rows(jsonl.New(f).Line), openDicts(f)
	return reader{blank: dicts.blank, line: func(text []byte, out step.Out) (tail.Verdict, string, bool) {
		if v, reason, mine := objects(text, out); mine {
			return v, reason, mine
		}
		return dicts.line(text, out)
	}}
}

func openMegatron(f fields) reader {
	p := new(megatronstep.Parser)
	return withFields(reader{line: p.Line, memory: p}, f)
}

// openDeepSpeed passes over the timers of steps that have no record.
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

func openComposer(f fields) reader {
	p := new(composer.Parser)
	return withFields(reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, memory: p}, f)
}

func openBlocks(f fields) reader {
	p := block.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, memory: p}
}

func openBars(f fields) reader {
	p := bar.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, others: p.Others, memory: p}
}

func openPairs(f fields) reader {
	p := pairs.New(f)
	return reader{line: single(p.Parse), others: p.Others, memory: p}
}

func openKeras(f fields) reader {
	p := keras.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, memory: p}
}

func openPatterns(patterns []*pattern.Pattern) func(fields) reader {
	plain := sync.OnceValue(func() *pattern.Set { return pattern.NewSet(patterns, nil) }) // large, and the same for all streams
	return func(f fields) reader {
		set := plain()
		if len(f) > 0 {
			set = pattern.NewSet(patterns, f)
		}
		return reader{line: single(set.New(f).Parse)}
	}
}

func openTables(f fields) reader {
	p := table.New(f)
	return reader{line: func(text []byte, out step.Out) (tail.Verdict, string, bool) { return p.Line(text, out) }, others: p.Others, memory: p}
}

// plain opens a format in which each line stands for itself, with a function that finds one record in a line.
func plain(parse func(text []byte, rec *record.Record) (found bool, reason string)) func(fields) reader {
	return func(f fields) reader { return withFields(reader{line: single(parse)}, f) }
}

// rows makes reader.line of a parser that finds any number of records in a line.
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

// single makes reader.line of a parser that finds one record in a line.
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

// withFields gives the fields that a format does not know the meaning they have in the configuration.
func withFields(r reader, f fields) reader {
	if len(f) == 0 {
		return r
	}
	line := r.line
	r.line = func(text []byte, out step.Out) (tail.Verdict, string, bool) { return line(text, mapper{out, f}) }
	return r
}

type mapper struct {
	step.Out
	fields fields
}

func (m mapper) Emit(rec *record.Record) {
	object.Apply(rec, m.fields)
	m.Out.Emit(rec)
}

package perfmonitor

import (
	"bytes"
	"encoding/json"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// Source is record.Record's Source of everything here.
const Source = "perf_monitor"

// Out takes the records; step.Out implements Out. A record is emitted before Record is called again, or not at all.
type Out interface {
	Record() *record.Record
	Emit(*record.Record)
}

// Result is the kind of a line.
type Result uint8

// The results.
const (
	Other     Result = iota // not a line of perf_monitor
	Records                 // handed to Out
	Ignored                 // a line of perf_monitor without a record, with the reason
	Session                 // the start of a session, or the header of a table: the job restarts
	Malformed               // an unreadable record, with the reason
)

// Parser reads the lines of one stream, without their prefixes. The zero value is ready. Not safe for concurrent use.
type Parser struct {
	columns []column // none: no header was seen
	width   int      // number of tokens of a row after its stamp
	header  string   // the text of columns, for Save
	block   block    // the breakdown that is being read
	about   int64    // the iteration of the block

	tokens []token // of the row at hand; memory reused
}

// token is a text between blanks.
type token struct {
	text     []byte
	v        float64
	isNumber bool
}

// block is the subject of the lines after a title.
type block uint8

const (
	noBlock   block = iota
	flopBlock       // FLOP counts / 1e12, named TFLOPS by the writer
	timeBlock       // ms
)

// column is one column of the table.
type column struct {
	kind columnKind
	name []byte
	to   field // of a valueColumn
}

// columnKind is how the values of a column are read.
type columnKind uint8

const (
	unknownColumn columnKind = iota
	stampColumn
	stepColumn
	valueColumn
)

// field is the field of a record for a value, and the unit of the value.
type field struct {
	field record.Field
	unit  record.Unit
}

// defaultHeader is the header of both writers, for a file read from the middle.
const defaultHeader = "Timestamp Step TFLOPS/GPU TFLOPS Samples/s Tokens/s Time(ms) Memory(GB)"

var (
	wordTimestamp = []byte("Timestamp ")
	session       = [][]byte{ // lines around the table
		[]byte("Performance Monitor Session Completed:"), []byte("Summary saved to:"),
		[]byte("Performance monitor initialized"), []byte("[Performance Monitor] "),
	}
	titleFlops = []byte("Estimated FLOPS Breakdown (Iteration ")
	titleTimes = []byte("Performance Breakdown (Iteration ") // the format exists in the first writer, but is never called
)

// maxHeader bounds a header: the header is kept over a restart.
const maxHeader = 4096

// minRule is the least length of a line of = or - that is a rule: 80 in the first writer, 96 in the merged one.
const minRule = 20

// Started begins the line before a table, before its time.
var Started = []byte("Performance Monitor Session Started:")

// Line reads one line: a rule, a header, the start of a session or another line around a table, a row, the title of a breakdown or one of its components.
// stamped says that a time before the line was peeled off, possibly the time of a row. The string is the reason of an Ignored or Malformed line.
func (p *Parser) Line(b []byte, stamped bool, out Out) (Result, string) {
	t := bytes.TrimSpace(rootPrefix(b))
	if len(t) == 0 {
		return Other, ""
	}
	switch c := t[0]; {
	case ascii.IsDigit(c):
		if n := line.StampLen(t); n > 0 || stamped {
			return p.row(t, n, out)
		}
		return Other, ""
	case c == '=' || c == '-':
		if len(t) >= minRule && len(bytes.Trim(t, string(c))) == 0 {
			return Ignored, "rule"
		}
		return Other, ""
	case c == 'T' && p.isHeader(t):
		p.setHeader(string(t))
		return Session, ""
	case c == 'P' || c == 'S' || c == '[': // the first bytes of Started and session
		if bytes.HasPrefix(t, Started) {
			p.columns, p.header, p.block = nil, "", noBlock
			return Session, ""
		}
		for _, s := range session {
			if bytes.HasPrefix(t, s) {
				return Ignored, "session"
			}
		}
	}
	if p.title(t) {
		return Ignored, "breakdown_title"
	}
	if stamped && ascii.IsDigit(t[len(t)-1]) { // perhaps a row with a corrupt step: rows end with a digit
		if result, reason := p.row(t, 0, out); result != Other {
			return result, reason
		}
	}
	if p.block != noBlock {
		return p.component(t, out)
	}
	return Other, ""
}

// rootPrefix removes "INFO:name:", the prefix of Python's root logger: perf_monitor's lines also reach the root logger, beside their own output.
func rootPrefix(b []byte) []byte {
	level := 0 // the length of INFO (the shortest), WARNING, …
	for level < len(b) && b[level] >= 'A' && b[level] <= 'Z' {
		level++
	}
	if level < 4 || level == len(b) || b[level] != ':' {
		return b
	}
	for i, c := range b[level+1:] {
		switch {
		case c == ':' && i > 0:
			return b[level+1+i+1:]
		case !ascii.IsLetter(c) && !ascii.IsDigit(c) && c != '_' && c != '.' && c != '-': // in no logger's name
			return b
		}
	}
	return b
}

// isHeader says whether a line is the header of a table, such as defaultHeader; some versions name the step Iteration.
func (*Parser) isHeader(t []byte) bool {
	return bytes.HasPrefix(t, wordTimestamp) && len(t) <= maxHeader && (bytes.Contains(t, []byte(" Step")) || bytes.Contains(t, []byte(" Iteration")))
}

// setHeader makes the columns of a header. Columns with unknown names are kept: their values become further values of the record.
func (p *Parser) setHeader(text string) {
	p.header, p.block = text, noBlock
	p.columns, p.width = p.columns[:0], 0
	for name := range bytes.FieldsSeq([]byte(text)) {
		c := column{kind: valueColumn, name: name}
		switch string(name) {
		case "Timestamp":
			c.kind = stampColumn
		case "Step", "Iteration":
			c.kind = stepColumn
		case "TFLOPS/GPU":
			c.to = field{record.DeviceFlopThroughput, record.TeraFlopPerSecond}
		case "TFLOPS":
			c.to = field{record.FlopThroughput, record.TeraFlopPerSecond}
		case "Samples/s":
			c.to = field{record.SampleThroughput, record.Base}
		case "Tokens/s":
			c.to = field{record.TokenThroughput, record.Base}
		case "Time(ms)":
			c.to = field{record.Duration, record.Milliseconds}
		case "Memory(GB)":
			c.to = field{record.MemoryUsage, record.Gibibytes} // the writer's GB are GiB
		default:
			c.kind = unknownColumn
		}
		p.columns = append(p.columns, c)
		if c.kind != stampColumn {
			p.width++
		}
	}
}

// row reads a row of the table, "2026-06-12 10:30:05 100 210.51 1684.1 31.2 63897.6 1025.31 61.20". t begins with its stamp of n bytes, or behind a stamp
// already peeled off (n is 0). Fields are separated by blanks: a value wider than its column pushes the rest to the right. A value that is no number is kept
// as a text. Other: no row, but another line with a time. The string is the reason of Malformed.
func (p *Parser) row(t []byte, n int, out Out) (Result, string) {
	if p.columns == nil {
		p.setHeader(defaultHeader)
	}
	p.split(t[n:])
	if !p.looksLikeRow() {
		return Other, ""
	}
	p.block = noBlock // a row ends the breakdown of the row before
	switch {
	case len(p.tokens) < p.width:
		return Malformed, "row_cut_short"
	case len(p.tokens) > p.width:
		return Malformed, "too_many_columns"
	}
	rec := newRow(out)
	rec.Open = true // the breakdown follows
	if n > 0 {
		rec.Stamp = t[:n]
	}
	i := 0 // the token of the column
	for _, c := range p.columns {
		if c.kind == stampColumn {
			continue
		}
		text, v, ok := p.tokens[i].text, p.tokens[i].v, p.tokens[i].isNumber
		i++
		switch {
		case c.kind == stepColumn:
			if !isInteger(text) {
				return Malformed, "bad_step"
			}
			rec.Set(record.Iteration, v)
		case c.kind == valueColumn && ok:
			set(rec, c.to, v)
		case ok:
			rec.AddExtra(record.Extra{Name: c.name, Value: v})
		default:
			rec.AddExtra(record.Extra{Name: c.name, Text: text})
		}
	}
	out.Emit(rec)
	return Records, ""
}

// newRow begins the record of a row. Only rank 0 writes rows.
func newRow(out Out) *record.Record {
	rec := out.Record()
	rec.Source, rec.Of, rec.Dedup, rec.HasRank = Source, record.Median, true, true
	return rec
}

// set sets a field unless 0: a value that was not measured is written as 0 (memory without tracking, FLOP/s of an unknown model), a measured one never.
func set(rec *record.Record, to field, v float64) {
	if v != 0 {
		rec.SetIn(to.field, v, to.unit)
	}
}

// split cuts a row at blanks into p.tokens. A token is a number only as a whole: "61.2GB" is none.
func (p *Parser) split(t []byte) {
	p.tokens = p.tokens[:0]
	for i := 0; i < len(t); {
		if t[i] == ' ' || t[i] == '\t' {
			i++
			continue
		}
		from := i
		v, n := decimal.Leading(t[i:])
		isNumber := n > 0
		for i += n; i < len(t) && t[i] != ' ' && t[i] != '\t'; i++ {
			isNumber = false
		}
		p.tokens = append(p.tokens, token{t[from:i], v, isNumber})
	}
}

// looksLikeRow distinguishes rows from other lines that begin with a time, by p.tokens. A row begins with two numbers, the first an integer (the step): the
// rest may be cut short or corrupt. Without two numbers, a row has as many tokens as columns; of the step and the known values at most one is corrupt, and one
// known value is a number.
func (p *Parser) looksLikeRow() bool {
	numbers := 0
	for numbers < len(p.tokens) && p.tokens[numbers].isNumber {
		numbers++
	}
	if numbers >= 2 {
		return isInteger(p.tokens[0].text)
	}
	if len(p.tokens) != p.width {
		return false
	}
	values, corrupt, i := 0, 0, 0 // known values that are numbers; corrupt ones, or a corrupt step; the token of the column at hand
	for _, c := range p.columns {
		switch {
		case c.kind == stampColumn:
			continue
		case c.kind == stepColumn && !isInteger(p.tokens[i].text), c.kind == valueColumn && !p.tokens[i].isNumber:
			corrupt++
		case c.kind == valueColumn:
			values++
		}
		i++
	}
	return values > 0 && corrupt <= 1
}

// isInteger says whether a text is digits, and few enough for an int64.
func isInteger(b []byte) bool {
	for _, c := range b {
		if !ascii.IsDigit(c) {
			return false
		}
	}
	return len(b) > 0 && len(b) < 16
}

// title reads the title of a breakdown, "Estimated FLOPS Breakdown (Iteration 100):", and says whether the line is one. The lines after it are components of
// the iteration.
func (p *Parser) title(t []byte) bool {
	kind := flopBlock
	b, ok := bytes.CutPrefix(t, titleFlops)
	if !ok {
		kind = timeBlock
		b, ok = bytes.CutPrefix(t, titleTimes)
		if !ok {
			return false
		}
	}
	b, ok = bytes.CutSuffix(b, []byte("):"))
	v, isNumber := decimal.Float(b)
	if !ok || !isNumber || !isInteger(b) {
		return false
	}
	p.block, p.about = kind, int64(v)
	return true
}

// component reads a line of a breakdown, "forward: 972.91 TFLOPS" or "attention           :   120.50 ms", into a record that joins the record of its iteration.
// Any other line ends the breakdown.
func (p *Parser) component(t []byte, out Out) (Result, string) {
	i := bytes.IndexByte(t, ':')
	if i < 1 {
		return p.leaveBlock()
	}
	name, value := bytes.TrimSpace(t[:i]), bytes.TrimSpace(t[i+1:])
	v, n := decimal.Leading(value)
	if n == 0 || len(name) == 0 {
		return p.leaveBlock()
	}
	switch unit := string(bytes.TrimSpace(value[n:])); {
	case unit == "TFLOPS" && p.block == flopBlock:
		rec := p.side(out)
		switch string(name) {
		case "forward":
			rec.SetIn(record.FlopForward, v, record.TeraFlop)
		case "backward":
			rec.SetIn(record.FlopBackward, v, record.TeraFlop)
		case "optimizer":
			rec.SetIn(record.FlopOptimizer, v, record.TeraFlop)
		case "total":
			rec.SetIn(record.FlopCount, v, record.TeraFlop)
		default:
			rec.AddExtra(record.Extra{Name: append([]byte("breakdown."), name...), Value: v})
		}
		out.Emit(rec)
	case unit == "ms" && p.block == timeBlock:
		rec := p.side(out)
		rec.Stages = append(rec.Stages, record.Stage{Name: name, Seconds: v / 1e3, Place: places[string(name)]})
		out.Emit(rec)
	default:
		return p.leaveBlock()
	}
	return Records, ""
}

// leaveBlock ends the breakdown, at a line that is none of its components.
func (p *Parser) leaveBlock() (Result, string) {
	p.block = noBlock
	return Other, ""
}

// side begins the record of a line of the breakdown: one that adds to the record of the same iteration.
func (p *Parser) side(out Out) *record.Record {
	rec := out.Record()
	rec.Kind, rec.Source, rec.HasRank = record.Side, Source, true
	rec.Set(record.Iteration, float64(p.about))
	return rec
}

// saved is the state needed to read the next lines.
type saved struct {
	Header    string `json:"header,omitempty"`
	Block     block  `json:"block,omitempty"`
	Iteration int64  `json:"iteration,omitempty"`
}

// Save returns the layout of the table, and the current breakdown. nil: nothing.
func (p *Parser) Save() []byte {
	if p.columns == nil && p.block == noBlock {
		return nil
	}
	b, err := json.Marshal(saved{p.header, p.block, p.about})
	if err != nil {
		return nil // cannot be: texts and numbers
	}
	return b
}

// Restore reads the result of Save.
func (p *Parser) Restore(b []byte) {
	var s saved
	if json.Unmarshal(b, &s) != nil {
		return
	}
	if p.isHeader([]byte(s.Header)) {
		p.setHeader(s.Header)
	}
	p.block, p.about = s.Block, s.Iteration
}

// places are the parts of the step timed by FlagScale's own training loop.
var places = record.Outline(`
forward
backward
optimizer
`)

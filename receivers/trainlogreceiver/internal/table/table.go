// Package table reads tables of numbers with a header: the metrics.csv of Lightning's CSVLogger (lightning/fabric/loggers/csv_logs.py), also of LitGPT and
// others, and any other table with a column for the step and one for a loss. Cells are separated by commas, semicolons or tabs; a cell without a value is
// empty:
//
//	epoch,lr,step,train_loss_epoch,train_loss_step,val_loss
//	0,0.01,1,,11.587385177612305,
//	1,,15,,,5.326930046081543
//
// Loops print tables to the console too, with bars as Markdown has them, or aligned by blanks; mlx-lm 0.32 (mlx_lm/cli_ui.py) draws arrows after the loss:
//
//	| step | loss | time |                    step       loss   s/step
//	|---:|---:|---:|                             1     2.3641    0.042
//	| 1 | 2.3641 | 0.029 |
//
// Where no column counts steps, epochs are the steps, unless other lines of the log have finer ones: fastai prints tables of epochs, and Ultralytics' YOLO
// draws bars after its rows (ultralytics/engine/trainer.py) and writes results.csv. spaCy (spacy/training/loggers.py) calls steps "#":
//
//	epoch     train_loss  valid_loss  time            Epoch    GPU_mem   box_loss   cls_loss  Instances       Size
//	0         0.5318      0.4127      00:12             1/2      2.51G      3.538      2.141          4        640: 100% ━━━━━━ 6/6 4.4it/s 1.4s
//
// CSVLogger rewrites its file for a metric without a column, and buffers rows. So a row's key is made of its values, sorted by column name, and the time of
// reading is not the time of the row.
package table

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/count"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is record.Record's Source.
const Source = "csv"

// Header is the reason of a line with the names of the columns.
const Header = "header"

// BadRow is the reason of a row of numbers with too few or too many cells.
const BadRow = "bad_row"

// fewColumns is the least number of columns in a table aligned by blanks: fewer words may be a sentence.
const fewColumns = 3

// mostOthers bounds the other lines between two rows of a console's table.
const mostOthers = 1000

const (
	maxColumns = 1024
	maxName    = 256 // bytes
)

// Out takes the records of a line, and learns of the beginning of a table; step.Out implements Out.
type Out interface {
	object.Out
	// Retold is called where the next records may have been read before.
	Retold()
}

// column is the meaning of a column.
type column struct {
	name   []byte
	step   bool // the column that counts steps; exactly one
	other  bool // another column that counts
	result bool // about an evaluation, or the mean over an epoch
	epoch  bool // the number of the epoch
}

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct {
	objects *object.Parser
	header  []byte // as read; empty: none yet
	sep     byte   // between cells
	columns []column
	sorted  []int    // columns by name
	cells   [][]byte // of the current row
	key     []byte   // memory for the key of a record
	own     []byte   // unquoted cells
	others  int      // lines since the header, or the last row, of a console's table
	time    count.Guess
	clock   count.Clock // of results.csv
	epochs  bool        // the step is an epoch
	yolo    bool        // rows are followed by bars
	results bool        // results.csv of Ultralytics: time is the run's
	before  float64     // the epoch of the row before, of yolo
	finer   bool        // other lines have the steps
}

// Others is called when another format has found a record: its lines have the steps, so epochs are no steps.
func (p *Parser) Others() { p.finer = true }

// The separators of tables printed to a console.
const (
	bar   = '|'
	blank = ' '
)

// isPrinted reports whether the table is printed to a console, so never rewritten or buffered.
func (p *Parser) isPrinted() bool { return p.sep == bar || p.sep == blank }

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

// Line reads one line: a header, which begins a table, or a row of the table, which is a record. mine is false outside of tables, and in a table of epochs
// if other lines have the steps. A header of a file means that the file may be rewritten: records may come again.
func (p *Parser) Line(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(b) == 0 || p.epochs && p.finer {
		return tail.Ignored, "", false
	}
	if c := b[0]; ascii.IsLetter(c) || c == '"' || c == '_' || c == bar || c == blank {
		if bytes.Equal(b, p.header) || p.readHeader(b) {
			p.others = 0
			if !p.isPrinted() {
				out.Retold()
			}
			return tail.Ignored, Header, true
		}
	}
	if len(p.columns) == 0 {
		return tail.Ignored, "", false
	}
	return p.row(b, out)
}

// readHeader reads a header, with the first separator that makes names of all cells, among them those of a step and a loss. It returns false for another line,
// and for a table of epochs in a log that has steps.
func (p *Parser) readHeader(b []byte) bool {
	seps := []byte(",\t;") // of files; of a console's tables, bars or blanks
	switch {
	case b[0] == bar:
		seps = []byte{bar}
	case bytes.Contains(bytes.TrimSpace(b), []byte("  ")) && !bytes.ContainsAny(b, ",;"): // gaps between the names
		seps = []byte("\t ")
	case b[0] == blank && !bytes.HasPrefix(bytes.TrimLeft(b, " "), []byte("epoch,")): // results.csv of YOLO pads its names
		return false
	}
	for _, sep := range seps {
		n := bytes.Count(b, []byte{sep})
		sentence := sep == blank && len(bytes.Fields(b)) < fewColumns
		if n == 0 || n >= maxColumns || sentence || !p.split(b, sep) {
			continue
		}
		columns, epochs, ok := p.columnsOf()
		if !ok && sep == blank && p.splitAtGaps(b) { // names of several words
			columns, epochs, ok = p.columnsOf()
		}
		if ok && (!epochs || !p.finer) {
			p.begin(b, sep, columns, epochs)
			return true
		}
	}
	return false
}

// begin starts the table of a header, and recognizes the tables of Ultralytics' YOLO by their first columns.
func (p *Parser) begin(header []byte, sep byte, columns []column, epochs bool) {
	p.header, p.sep, p.columns, p.epochs, p.before = bytes.Clone(header), sep, columns, epochs, -1
	p.yolo = epochs && sep == blank && bytes.EqualFold(columns[min(1, len(columns)-1)].name, gpuMemory)
	p.results = epochs && sep == ',' && len(columns) > 2 && string(columns[1].name) == "time" && bytes.HasPrefix(columns[2].name, []byte("train/"))
	p.sorted = p.sorted[:0]
	for i := range columns {
		p.sorted = append(p.sorted, i)
	}
	slices.SortFunc(p.sorted, func(i, j int) int { return bytes.Compare(columns[i].name, columns[j].name) })
}

// columnsOf makes columns of the cells. ok is false unless all cells are names, among them those of a step and a loss. Without a name for a step, a first
// column for the epoch counts (epochs).
func (p *Parser) columnsOf() (columns []column, epochs, ok bool) {
	step, loss, epoch := -1, false, -1 // indexes of columns, and whether one is a loss
	seen := make(map[string]bool, len(p.cells))
	for i, cell := range p.cells {
		cell = bytes.TrimSpace(cell)
		if !isName(cell) || seen[string(cell)] {
			return nil, false, false
		}
		seen[string(cell)] = true
		about := p.objects.About(cell)
		c := column{
			name: bytes.Clone(cell), other: about.Step, epoch: string(bytes.ToLower(cell)) == "epoch",
			result: about.Evaluation || bytes.HasSuffix(cell, []byte("_epoch")),
		}
		loss = loss || about.Loss || string(cell) == "main/loss" || bytes.HasPrefix(cell, []byte("train/")) && bytes.HasSuffix(cell, []byte("loss"))
		if string(cell) == "#" && i == 1 && string(p.cells[0]) == "E" { // spaCy
			c.other, step = true, i
			columns[0].epoch = true
		}
		if c.epoch && epoch < 0 {
			epoch = i
		}
		// CSVLogger's own column is "step"; the job's other columns may count differently.
		if about.Step && (step < 0 || string(cell) == "step") {
			step = i
		}
		columns = append(columns, c)
	}
	epochs = step < 0 && epoch == 0
	if epochs {
		step = 0
	}
	if step < 0 || !loss {
		return nil, false, false
	}
	columns[step].step, columns[step].other, columns[step].epoch = true, false, false
	return columns, epochs, true
}

var gpuMemory = []byte("GPU_mem")

// splitAtGaps splits the names of a header at two blanks or more, into cells: names may have one blank inside. It returns false for too few names.
func (p *Parser) splitAtGaps(b []byte) bool {
	p.cells = p.cells[:0]
	for b = bytes.TrimSpace(b); len(b) > 0 && len(p.cells) < maxColumns; {
		i := bytes.Index(b, []byte("  "))
		if i < 0 {
			i = len(b)
		}
		p.cells = append(p.cells, b[:i])
		b = bytes.TrimLeft(b[i:], " ")
	}
	return len(p.cells) >= fewColumns
}

// isName reports whether a cell may be the name of a metric: up to four words, and no number.
func isName(b []byte) bool {
	if len(b) == 0 || len(b) > maxName || bytes.Count(b, []byte(" ")) > 3 {
		return false
	}
	if _, ok := decimal.Float(b); ok {
		return false
	}
	for _, c := range b {
		switch {
		case c < ' ', c == ':', c == '=', c == '{', c == '}':
			return false
		}
	}
	return true
}

// split splits a line into cells, with RFC 4180's quotes. It returns false for an unclosed quote, text after one, too many cells, or no bars around.
func (p *Parser) split(b []byte, sep byte) bool {
	p.cells, p.own = p.cells[:0], p.own[:0]
	switch sep {
	case blank:
		for cell := range bytes.FieldsSeq(b) {
			if !isArrow(cell) {
				p.cells = append(p.cells, cell)
			}
		}
		return len(p.cells) < maxColumns
	case bar:
		b = bytes.TrimRight(b, " ")
		if len(b) < 2 || b[len(b)-1] != bar {
			return false
		}
		b = b[1 : len(b)-1]
	}
	for {
		if len(p.cells) == maxColumns {
			return false
		}
		if len(b) > 0 && b[0] == '"' {
			cell, rest, ok := p.quoted(b[1:])
			if !ok || len(rest) > 0 && rest[0] != sep {
				return false
			}
			p.cells = append(p.cells, cell)
			if len(rest) == 0 {
				return true
			}
			b = rest[1:]
			continue
		}
		i := bytes.IndexByte(b, sep)
		if i < 0 {
			p.cells = append(p.cells, b)
			return true
		}
		p.cells = append(p.cells, b[:i])
		b = b[i+1:]
	}
}

// quoted returns the text of a quoted cell and the rest of the line; b begins after the opening quote, and two quotes in the cell are one. It returns false
// without a closing quote.
func (p *Parser) quoted(b []byte) (cell, rest []byte, ok bool) {
	i := bytes.IndexByte(b, '"')
	if i < 0 {
		return nil, nil, false
	}
	if i+1 == len(b) || b[i+1] != '"' {
		return b[:i], b[i+1:], true
	}
	from := len(p.own)
	for {
		i = bytes.IndexByte(b, '"')
		if i < 0 {
			return nil, nil, false
		}
		p.own = append(p.own, b[:i]...)
		if i+1 == len(b) || b[i+1] != '"' {
			return p.own[from:len(p.own):len(p.own)], b[i+1:], true
		}
		p.own = append(p.own, '"')
		b = b[i+2:]
	}
}

// isArrow reports whether a word is an arrow of mlx-lm, which shows whether the loss rises or falls.
func isArrow(cell []byte) bool { return string(cell) == "▼" || string(cell) == "▲" }

// readPrintedRow reads a row of a console's table: all cells are numbers or times, and the step is whole. The duration is that of a column of minutes and
// seconds, of a column for the time of a step or of the run (times), or of the run's clock (clocks). mine is false for another line.
func (p *Parser) readPrintedRow(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	if p.yolo {
		return p.readYOLORow(b, out)
	}
	if p.sep == blank && len(bytes.Trim(b, "- ")) == 0 { // a rule
		return tail.Ignored, Header, true
	}
	if p.sep == bar && b[0] != bar || !p.split(b, p.sep) || len(p.cells) != len(p.columns) {
		return tail.Ignored, "", false
	}
	if p.sep == bar && bytes.Count(b, []byte("-")) >= 3*len(p.columns) && bytes.IndexFunc(b, notOfRule) < 0 { // "|---:|---|"
		return tail.Ignored, Header, true
	}
	step, others, training := 0.0, 0, false // others: numbers beside the step; training: as in row
	for i := range p.cells {
		p.cells[i] = p.plainNumber(p.cells[i])
		v, ok := decimal.Float(p.cells[i])
		c := &p.columns[i]
		switch {
		case c.step && (!ok || v < 0 || v != math.Trunc(v)):
			return tail.Ignored, "", false
		case !ok && len(p.cells[i]) > 0:
			if _, ok := clockSeconds(p.cells[i]); !ok {
				return tail.Ignored, "", false
			}
		case c.step:
			step = v
		case ok:
			others++
			training = training || !c.other && !c.epoch && !c.result
		}
	}
	if others == 0 {
		return tail.Ignored, "", false
	}
	rec := out.Record()
	p.fill(rec)
	if i := p.clockColumn(); i >= 0 && !rec.Has(record.Duration) {
		s, _ := clockSeconds(p.cells[i])
		rec.Set(record.Duration, s)
		// fill has kept the time as an unknown field.
		rec.Extra = slices.DeleteFunc(rec.Extra, func(e record.Extra) bool { return bytes.EqualFold(e.Name, []byte("time")) })
	}
	if i := p.decimalColumn(times); i >= 0 {
		s, _ := decimal.Float(p.cells[i])
		seconds, of := p.time.Step(s, step)
		setDuration(rec, seconds, of)
	} else if i := p.decimalColumn(clocks); i >= 0 {
		s, _ := decimal.Float(p.cells[i])
		seconds, of := p.clock.Step(s, step)
		setDuration(rec, seconds, of)
	}
	p.emit(rec, step, training, out)
	return tail.Record, "", true
}

// notOfRule reports whether a character cannot be in the rule below a Markdown header.
func notOfRule(r rune) bool { return r != bar && r != '-' && r != ':' && r != ' ' }

// plainNumber returns the text of a number without its commas, and without a suffix k: "1200" of "1.2k". Any other cell is returned without blanks around.
func (p *Parser) plainNumber(cell []byte) []byte {
	cell = bytes.TrimSpace(cell)
	number, kilo := bytes.CutSuffix(cell, []byte("k"))
	if !kilo && bytes.IndexByte(cell, ',') < 0 {
		return cell
	}
	v, ok := decimal.GroupedFloat(number)
	switch {
	case !ok:
		return cell
	case kilo:
		return strconv.AppendFloat(nil, v*1e3, 'f', -1, 64)
	}
	return bytes.ReplaceAll(number, []byte(","), nil)
}

// clockSeconds reads "00:12" or "1:02:03", in s. It returns false for another text.
func clockSeconds(cell []byte) (seconds float64, ok bool) {
	seconds, parts := decimal.Sexagesimal(cell, 5)
	return seconds, parts == 2 || parts == 3
}

// clockColumn returns the index of the column called time, if its value is in minutes and seconds; -1: none.
func (p *Parser) clockColumn() int {
	for i := range p.columns {
		if bytes.EqualFold(p.columns[i].name, []byte("time")) {
			if _, ok := clockSeconds(p.cells[i]); ok {
				return i
			}
		}
	}
	return -1
}

// readYOLORow reads a row of YOLO's with a full bar after it: the means over an epoch, and the epoch's duration. The epoch counts as the step. Rows with a bar
// that is not full are drawings of the same row, and not read (mine is false).
func (p *Parser) readYOLORow(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	row, rest, ok := bytes.Cut(b, []byte(": 100%"))
	if !ok || !p.split(row, blank) || len(p.cells) != len(p.columns) {
		return tail.Ignored, "", false
	}
	at, of, _ := bytes.Cut(p.cells[0], []byte("/"))
	epoch, ok1 := decimal.Float(at)
	epochs, ok2 := decimal.Float(of)
	memory, ok3 := decimal.Float(bytes.TrimRight(p.cells[1], "GMB"))
	if !ok1 || !ok2 || !ok3 || !(epoch >= 0) || epoch != math.Trunc(epoch) {
		return tail.Ignored, "", false
	}
	if epoch == p.before { // a closed bar is drawn once more
		return tail.Ignored, repeated, true
	}
	for _, cell := range p.cells[2:] {
		if _, ok := decimal.Float(cell); !ok {
			return tail.Ignored, "", false
		}
	}
	p.before = epoch
	rec := out.Record()
	p.cells[0] = at
	memoryText := p.cells[1]
	p.cells[1] = nil // set below with its unit
	p.fill(rec)
	if memory > 0 && memoryText[len(memoryText)-1] == 'G' { // torch.cuda.memory_reserved() / 1e9
		rec.Set(record.MemoryReserved, memory*1e9)
	}
	rec.Set(record.Iterations, epochs)
	if s := barSeconds(rest); s > 0 {
		rec.Set(record.Duration, s)
	}
	p.emit(rec, epoch, true, out)
	return tail.Record, "", true
}

// repeated is the reason of a row read before.
const repeated = "progress_bar"

// barSeconds returns the elapsed time printed with a progress bar, in s: the last word of "━━━ 6/6 4.4it/s 1.4s", or the text between "[" and "<" of "|███| 6/6
// [00:01<00:00, 4.4it/s]". 0: unknown.
func barSeconds(b []byte) float64 {
	if i := bytes.IndexByte(b, '['); i >= 0 {
		clock, _, _ := bytes.Cut(b[i+1:], []byte("<"))
		s, _ := clockSeconds(clock)
		return s
	}
	words := bytes.Fields(b)
	if len(words) == 0 {
		return 0
	}
	last := words[len(words)-1]
	if s, ok := clockSeconds(last); ok {
		return s
	}
	s, _ := decimal.Float(bytes.TrimSuffix(last, []byte("s")))
	return s
}

// The names of columns for the time of a step, or for the run's time so far, in s with decimals.
var (
	times  = []string{"time", "time (s)", "time(s)", "time_s", "time (sec)", "dur", "duration", "duration (s)", "seconds"}
	clocks = []string{"elapsed", "elapsed_time", "elapsed time", "elapsed (s)", "total time"}
)

// decimalColumn returns the index of the first column that has one of the names and, in the current row, a decimal point; -1: none. Whole numbers are skipped:
// a name such as "time" tells no unit, and only parts of a second show that the unit is s.
func (p *Parser) decimalColumn(names []string) int {
	for i := range p.columns {
		if bytes.IndexByte(p.cells[i], '.') >= 0 && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, string(p.columns[i].name)) }) {
			return i
		}
	}
	return -1
}

// setDuration sets the duration of a record that has none: the mean, s, over of steps.
func setDuration(rec *record.Record, seconds, of float64) {
	if !(seconds > 0) || rec.Has(record.Duration) {
		return
	}
	rec.Set(record.Duration, seconds)
	if of > 1 {
		rec.Of = record.Mean
	}
}

// row reads a row of the table. A row with a step and one more number is a record; a row of numbers with too few or too many cells is rejected; mine is false
// for other lines.
func (p *Parser) row(b []byte, out Out) (v tail.Verdict, reason string, mine bool) {
	if p.isPrinted() {
		v, reason, mine = p.readPrintedRow(b, out)
		if mine {
			p.others = 0
		} else if p.others++; p.others > mostOthers { // numbers this late are of something else
			p.header, p.columns = nil, nil
		}
		return v, reason, mine
	}
	if bytes.IndexByte(b, p.sep) < 0 || !p.split(b, p.sep) {
		return tail.Ignored, "", false
	}
	numbers, training := 0, false
	for i, cell := range p.cells {
		if _, ok := decimal.Float(bytes.TrimSpace(cell)); ok {
			numbers++
			if i < len(p.columns) {
				c := &p.columns[i]
				training = training || !c.step && !c.other && !c.epoch && !c.result
			}
		}
	}
	step := 0
	for !p.columns[step].step {
		step++
	}
	if len(p.cells) != len(p.columns) {
		// Text with commas is of another format; numbers alone are a truncated row, or a row of another header.
		if numbers+p.emptyCells() == len(p.cells) && numbers > 0 {
			return tail.Rejected, BadRow, true
		}
		return tail.Ignored, "", false
	}
	iteration, ok := decimal.Float(bytes.TrimSpace(p.cells[step]))
	if !ok || numbers < 2 {
		return tail.Ignored, "", false
	}
	rec := out.Record()
	p.fill(rec)
	if p.results { // the second column is the run's clock, and a row is an epoch
		if at, ok := decimal.Float(bytes.TrimSpace(p.cells[1])); ok {
			if seconds, of := p.clock.Step(at, iteration); seconds > 0 && of == 1 {
				rec.Set(record.Duration, seconds)
			}
		}
	}
	p.emit(rec, iteration, training, out)
	return tail.Record, "", true
}

// fill adds the cells to a record, all but the step's and the clock of results.csv; other columns that count are kept as unknown fields, whatever their names
// mean.
func (p *Parser) fill(rec *record.Record) {
	p.objects.Begin(rec)
	for i, cell := range p.cells {
		switch c := &p.columns[i]; {
		case c.step, p.results && i == 1:
		case c.other:
			if v, ok := decimal.Float(bytes.TrimSpace(cell)); ok {
				rec.AddExtra(record.Extra{Name: c.name, Value: v})
			}
		default:
			p.objects.Field(c.name, cell)
		}
	}
	p.objects.End()
}

// emit emits the record of a row: a step if the row has values of training and is no result, else an evaluation. Files are rewritten with all their rows, so
// a row with the same values is the same record (Dedup, Key), and the time of reading says nothing (Late).
func (p *Parser) emit(rec *record.Record, iteration float64, training bool, out Out) {
	rec.Source, rec.Late, rec.Dedup = Source, !p.isPrinted(), true
	rec.Set(record.Iteration, iteration)
	if p.epochs {
		rec.Set(record.Epoch, iteration)
	}
	rec.Kind = record.Evaluation
	if training && (!p.objects.IsResult() || p.epochs) { // an epoch's row has both
		// Each logger of a step has a separate row: a callback for the learning rate, one for the speed.
		rec.Kind, rec.Open, rec.Join = record.Step, true, true
	}
	p.key = p.key[:0]
	for _, i := range p.sorted {
		if len(p.cells[i]) > 0 {
			p.key = append(append(p.key, p.columns[i].name...), '=')
			p.key = append(append(p.key, p.cells[i]...), ',')
		}
	}
	rec.Key = p.key
	out.Emit(rec)
}

// emptyCells returns the number of cells without a value.
func (p *Parser) emptyCells() (n int) {
	for _, cell := range p.cells {
		if len(bytes.TrimSpace(cell)) == 0 {
			n++
		}
	}
	return n
}

// Save implements tail.Handler.
func (p *Parser) Save() []byte {
	if len(p.header) == 0 {
		return nil
	}
	b, err := json.Marshal(p.header)
	if err != nil {
		return nil // cannot be: bytes
	}
	return b
}

// Restore implements tail.Handler. The state is the header, from which the columns follow; the clocks begin anew.
func (p *Parser) Restore(saved []byte) {
	var header []byte
	if json.Unmarshal(saved, &header) == nil {
		p.readHeader(header)
	}
}

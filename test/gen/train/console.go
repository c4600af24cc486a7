package train

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/internal/logfile"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/writer"
)

// trainer is the standard output of a trainer as rows of texts and numbers. Trainers with tables, such as Megatron, have a printer of their own. trainers.go
// has all rows.
type trainer struct {
	flag                   string // the trainer's own name for --interval; empty: prints each step
	interval, evalInterval int    // defaults
	ray                    string // the name of the printing actor, for Ray's prefix; empty: a rank, with the prefixes of its launcher
	first                  bool   // prints the first step, too, whatever the interval
	step, eval             []textLine
}

// textLine is a line of a log.
type textLine struct {
	class logfile.Class
	// has says whether the trainer prints the row. nil: always.
	has func(*reading) bool
	// head is the logger's text before the message. nil: nothing.
	head  func(p *console, b []byte, wall int64) []byte
	cells []cell
	tail  string
}

// cell is a number of a row.
type cell struct {
	before string // the text before the number. Without its punctuation, the name of the field
	attr   string // of the span; empty: not an attribute
	stage  bool   // a part of the step, by the same name
	scale  float64
	print  func([]byte, float64) []byte
	value  func(*reading) float64
	has    func(*reading) bool // as of textLine
}

// reading is the state of a trainer when printing: the last step, and the means since the last record.
type reading struct {
	*trainStep
	sim                     *simulation
	horizon                 int64
	covered                 int64   // steps since the last record
	losses, seconds         float64 // per step since the last record
	elapsed                 float64 // s, since the start
	validation, evalSeconds float64 // of the latest evaluation; NaN before
	due                     bool    // the step has a record
	recorded                bool    // after the first record
	timers                  bool
}

func (r *reading) tokens() float64 {
	return float64(r.sim.model.GlobalBatchSize * r.sim.model.SeqLength)
}
func (r *reading) devices() float64 { return float64(r.sim.model.WorldSize) }
func (r *reading) deviceFlops() float64 {
	return r.sim.flops() / (r.seconds * r.devices())
}

// console prints the rows of a trainer.
type console struct {
	*log
	*trainer
	f      *logfile.Log
	prefix string
	stamp  logfile.Stamps
	now    reading
	took   int64 // ns, since the last record
	begun  bool
}

func (p *console) open() (err error) {
	p.f, err = p.file(p.opt.Format + ".log")
	if err != nil {
		return err
	}
	p.prefix = rankPrefix(p.opt.Prefix, 0)
	if p.ray != "" {
		p.prefix = string(writer.RayPrefix(p.opt.Prefix, p.ray, 10_000+p.rng.IntN(2_000_000), ""))
	}
	p.stamp.Loc = p.opt.Timezone
	p.now = reading{sim: p.sim, horizon: p.opt.horizon(), validation: math.NaN(), timers: p.opt.Timers}
	return nil
}

func (p *console) step(s *trainStep) {
	r := &p.now
	r.covered++
	p.took += s.took
	trapped := *s
	p.trap(&trapped)
	r.trainStep = &trapped
	r.losses += trapped.loss
	r.elapsed += float64(s.took) / 1e9
	r.due = s.n%int64(p.opt.Interval) == 0 || p.first && s.n == 1
	r.seconds = float64(trapped.took) / 1e9
	if r.due {
		r.losses /= float64(r.covered)
		if trapped.took == s.took {
			r.seconds = float64(p.took) / 1e9 / float64(r.covered)
		}
	}
	p.print(KindStep, p.trainer.step, s.end)
	if r.due {
		p.took, r.covered, r.losses, r.recorded = 0, 0, 0, true
	}
}

func (p *console) eval(s *trainStep, loss, seconds float64) {
	p.now.trainStep, p.now.validation, p.now.evalSeconds = s, loss, seconds
	p.print(KindEvaluation, p.trainer.eval, p.sim.now)
}

func (p *console) close() {}

// Traps are numbers from logs of runs that go wrong, and a line of a foreign writer.
func (p *console) trap(s *trainStep) {
	if p.opt.Nasty == 0 || p.rng.Float64() >= p.opt.Nasty {
		return
	}
	switch p.rng.IntN(5) {
	case 0:
		s.loss, s.gradNorm = math.NaN(), math.Inf(1)
	case 1:
		s.loss, s.gradNorm, s.lr = 0, 0, 0
	case 2:
		s.loss, s.gradNorm, s.peak = 1.25e9, 987654.4321, 1<<40
	case 3: // too short for the printed precision
		s.took = 900
	case 4:
		p.Line(p.f, p.Text(p.prefix, "UserWarning: step: the loss of 1 rank is not finite (grad_norm: inf)"), logfile.Ignored)
	}
}

// print writes the rows due now, as one record.
func (p *console) print(kind string, rows []textLine, wall int64) {
	p.begun = false
	for i := range rows {
		if w := &rows[i]; w.has == nil && p.now.due || w.has != nil && w.has(&p.now) {
			p.line(kind, w, wall)
		}
	}
	if p.begun {
		p.end()
	}
}

func (p *console) line(kind string, w *textLine, wall int64) {
	if w.class == logfile.Record {
		p.begin(p.f, kind, p.now.trainStep)
		p.begun = true
		p.rec.TrueEndUnixNano = wall
		if kind == KindStep {
			p.covered(p.now.covered, p.took)
		}
	}
	b := p.Text(p.prefix)
	if w.head != nil {
		b = w.head(p, b, wall)
	}
	for i := range w.cells {
		c := &w.cells[i]
		if c.has != nil && !c.has(&p.now) {
			continue
		}
		b = append(b, c.before...)
		from := len(b)
		b = c.print(b, c.value(&p.now))
		if !p.begun {
			continue
		}
		name, text, scale := strings.Trim(c.before, " :=|,'(){}[]/%✨"), bytes.TrimLeft(b[from:], " "), cmp.Or(c.scale, 1)
		if c.stage {
			if v, err := strconv.ParseFloat(string(text), 64); err == nil {
				p.stage(strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], "_time"), v*scale, 0)
			}
			continue
		}
		p.note(name, c.attr, text, scale)
	}
	p.Line(p.f, append(b, w.tail...), w.class)
}

// Python's ways to print a number.

func whole(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'f', 0, 64) }

// fixed is {:.2f}.
func fixed(decimals int) func([]byte, float64) []byte {
	return func(b []byte, v float64) []byte { return writer.AppendPython(b, v, 'f', decimals) }
}

// wide is {:7.4f}: the number is right-aligned in a column.
func wide(width int, number func([]byte, float64) []byte) func([]byte, float64) []byte {
	return func(b []byte, v float64) []byte {
		from := len(b)
		return writer.PadLeft(number(b, v), from, width)
	}
}

// zeros is {:05d}.
func zeros(b []byte, v float64) []byte {
	from := len(b)
	b = writer.PadLeft(whole(b, v), from, 5)
	for i := from; b[i] == ' '; i++ {
		b[i] = '0'
	}
	return b
}

// grouped is {:,.2f}: commas part thousands.
func grouped(number func([]byte, float64) []byte) func([]byte, float64) []byte {
	return func(b []byte, v float64) []byte {
		from := len(b)
		b = number(b, v)
		digits := bytes.IndexByte(b[from:], '.')
		if digits < 0 {
			digits = len(b) - from
		}
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 { // speeds are not negative
			return b
		}
		for at := digits - 3; at > 0; at -= 3 {
			b = append(b, 0)
			copy(b[from+at+1:], b[from+at:])
			b[from+at] = ','
		}
		return b
	}
}

// general is {:.4} of a float: four digits, at least one behind the point, and an exponent below 1e-4 and from 1e3. NeMo prints whole numbers as int.
func general(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, logfile.NonFinite(v, "nan", "inf")...)
	}
	if v == math.Trunc(v) {
		return whole(b, v)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
	if a := math.Abs(rounded); a < 1e-4 || a >= 1e3 {
		return strconv.AppendFloat(b, rounded, 'e', -1, 64)
	}
	return logfile.AppendRepr(b, rounded)
}

// clock is str(timedelta): 0:01:02.
func clock(b []byte, seconds float64) []byte {
	t := int64(seconds)
	b = append(strconv.AppendInt(b, t/3600, 10), ':')
	b = append(logfile.AppendPadded(b, t/60%60, 2), ':')
	return logfile.AppendPadded(b, t%60, 2)
}

// stamped is a head with logging's %(asctime)s between two texts.
func stamped(before, after string) func(*console, []byte, int64) []byte {
	return func(p *console, b []byte, wall int64) []byte {
		if p.begun {
			p.clocked(wall, time.Millisecond)
		}
		return append(p.stamp.Append(append(b, before...), wall), after...)
	}
}

// bracketed is a head with a stamp of whole seconds behind a bracket, before a text: "[2026-08-21 10:01:33] …".
func bracketed(after string) func(*console, []byte, int64) []byte {
	return func(p *console, b []byte, wall int64) []byte {
		if p.begun {
			p.clocked(wall, time.Second)
		}
		return append(time.Unix(0, wall).In(p.opt.Timezone).AppendFormat(append(b, '['), time.DateTime), after...)
	}
}

// unclocked is a head with a stamp without a year, no clock. layout is of package time.
func unclocked(before, layout, after string) func(*console, []byte, int64) []byte {
	return func(p *console, b []byte, wall int64) []byte {
		return append(time.Unix(0, wall).In(p.opt.Timezone).AppendFormat(append(b, before...), layout), after...)
	}
}

// timersHead is print_dist's text before the timers.
func timersHead(_ *console, b []byte, _ int64) []byte { return append(b, "[Rank 0] time (ms)"...) }

// named is the attribute of a field without a name in the vocabulary.
func named(name string) string { return spans.AttrTrainFieldPrefix + name }

// Package keras reads the progress bars of Keras (keras-team/keras, keras/src/utils/progbar.py, 3.15.1; in Keras 2 keras/utils/generic_utils.py):
//
//	Epoch 1/3
//	 3/18 ━━━━━━━━━━━━━━━━━━━━ 0s 38ms/step - accuracy: 0.1250 - loss: 2.3857                 verbose=1
//	18/18 ━━━━━━━━━━━━━━━━━━━━ 1s 56ms/step - accuracy: 0.1198 - loss: 2.4505 - val_loss: 2.4823
//	18/18 - 1s - 54ms/step - accuracy: 0.1198 - loss: 2.4505                                  verbose=2
//	 4/18 [=====>........................] - ETA: 1s - loss: 2.3600 - accuracy: 0.1004        Keras 2
//	18/18 [==============================] - 1s 56ms/step - loss: 2.2000 - val_loss: 2.4346
//
// Losses are means since the epoch began. The time per step is the mean of the epoch without its first step, in whole ms (or s, or us). The time before it is
// the rest of the epoch, and at the last step the duration of the epoch. The last step is drawn once more after the validation. evaluate() draws the same bar
// without a line "Epoch".
package keras

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is the record's Source.
const Source = "keras"

// nothingNew is the reason of bars that repeat the bar before, and of evaluations.
const nothingNew = "progress_bar"

// state is the memory from line to line.
type state struct {
	Epoch, Epochs float64 // from 1; 0: no epoch has begun
	Base          float64 // steps of the epochs before
	N, Total      float64 // count and total of the bar; Total 0: unknown
	First         float64 // duration of the first step, s; 0: unknown
	At, Timed     float64 // the last known time, s from the beginning of the epoch, and the count at that time
}

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct {
	objects *object.Parser
	state   state
}

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

var (
	epochMark = []byte("Epoch ")
	separator = []byte(" - ")
	etaMark   = []byte("ETA: ")
	colon     = []byte(": ")
	unknown   = []byte("Unknown")
	result    = []byte("val_")
)

// bar is one drawing.
type bar struct {
	n, total float64 // steps done and all steps; total 0: unknown
	per, off float64 // s per step, and its possible error; 0: none
	clock    float64 // the remaining time, s, or of the last step the time of the epoch; NaN: none
	pairs    []byte  // from the first name on
}

// Line reads one line with a drawing of the bar, which makes a record of the steps since the drawing before, and one of an evaluation, if the bar has its
// values. A line "Epoch 1/3" begins an epoch, but may be another format's, too: mine is false, as for lines of other formats, and for bars before the first
// epoch.
func (p *Parser) Line(b []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	b = bytes.Trim(b, " \b")
	if rest, ok := bytes.CutPrefix(b, epochMark); ok {
		p.epoch(rest)
		return tail.Ignored, "", false
	}
	if p.state.Epoch == 0 || len(b) == 0 || !ascii.IsDigit(b[0]) {
		return tail.Ignored, "", false
	}
	d, ok := parse(b)
	if !ok {
		return tail.Ignored, "", false
	}
	s := &p.state
	if s.N > 0 && (d.n < s.N || d.total != s.Total) { // evaluate() or predict(): bars count again from the next line "Epoch" on
		*s = state{}
		return tail.Ignored, nothingNew, true
	}
	s.Total = d.total
	if s.Total > 0 {
		s.Base = (s.Epoch - 1) * s.Total
	}
	found := false
	if d.n > s.N {
		found = p.step(&d, b, out)
	}
	if p.results(&d, b, out) {
		found = true
	}
	if !found {
		return tail.Ignored, nothingNew, true
	}
	return tail.Record, "", true
}

// epoch reads "1/3" after "Epoch ", and begins the epoch. Another text changes nothing.
func (p *Parser) epoch(b []byte) {
	at, of, ok := bytes.Cut(b, []byte("/"))
	epoch, ok1 := decimal.Float(at)
	epochs, ok2 := decimal.Float(of)
	if !ok || !ok1 || !ok2 || !(epoch >= 1) || !(epoch <= epochs) {
		return
	}
	base := p.state.Base + p.state.N
	if epoch == 1 { // another training
		base = 0
	}
	p.state = state{Epoch: epoch, Epochs: epochs, Base: base}
}

// parse reads a drawing: the count, the bar, the times, and the pairs from the first name on. ok is false for another line, and for a bar without any time.
func parse(b []byte) (d bar, ok bool) {
	d.clock = math.NaN()
	count, rest, _ := bytes.Cut(b, []byte(" "))
	done, total, _ := bytes.Cut(count, []byte("/"))
	d.n, ok = whole(done)
	if !ok {
		return d, false
	}
	d.total, ok = whole(total)
	if !ok && !bytes.Equal(total, unknown) || d.total > 0 && d.n > d.total {
		return d, false
	}
	rest = bytes.TrimLeft(rest, " ")
	if len(rest) > 0 && rest[0] == '[' { // the bar of Keras 2
		end := bytes.IndexByte(rest, ']')
		if end < 0 {
			return d, false
		}
		rest = rest[end+1:]
	}
	for len(rest) > 0 && (rest[0] >= 0x80 || rest[0] == ' ' || rest[0] == '-') { // the bar of Keras 3 (━), and a separator
		rest = rest[1:]
	}
	timed := false
	for len(rest) > 0 {
		part, more, _ := bytes.Cut(rest, separator)
		eta, isETA := bytes.CutPrefix(part, etaMark)
		switch {
		case isETA:
			d.clock, ok = seconds(bytes.TrimSpace(eta))
			timed = timed || ok
		case bytes.Contains(part, colon):
			d.pairs = rest
			return d, timed
		default:
			timed = d.times(part) || timed
		}
		rest = more
	}
	return d, timed
}

// times reads "1s 56ms/step", "1s" and "56ms/step". false: neither.
func (d *bar) times(b []byte) (found bool) {
	for word := range bytes.SplitSeq(b, []byte(" ")) {
		if v, off, ok := perStep(word); ok {
			d.per, d.off, found = v, off, true
		} else if v, ok := seconds(word); ok {
			d.clock, found = v, true
		}
	}
	return found
}

// perStep reads "56ms/step", s, rounded to a whole number of the unit: off is half of the unit, the possible error.
func perStep(b []byte) (v, off float64, ok bool) {
	text, ok := bytes.CutSuffix(b, []byte("s/step"))
	scale := 1.0
	switch {
	case bytes.HasSuffix(text, []byte("m")):
		scale = 1e-3
	case bytes.HasSuffix(text, []byte("u")):
		scale = 1e-6
	}
	v, isNumber := decimal.Float(bytes.TrimRight(text, "mu"))
	return v * scale, scale / 2, ok && isNumber && v >= 0
}

// seconds reads "12s", "1:02" and "1:02:03", s. It returns false for another text.
func seconds(b []byte) (v float64, ok bool) {
	if text, is := bytes.CutSuffix(b, []byte("s")); is {
		return whole(text)
	}
	parts := 0
	for part := range bytes.SplitSeq(b, []byte(":")) {
		n, is := whole(part)
		if !is {
			return 0, false
		}
		v = v*60 + n
		parts++
	}
	return v, parts > 1 && parts < 4
}

// whole reads a number of digits alone.
func whole(b []byte) (float64, bool) {
	for _, c := range b {
		if !ascii.IsDigit(c) {
			return 0, false
		}
	}
	return decimal.Float(b)
}

// step emits the record of the steps since the drawing before. false: the drawing has no values.
func (p *Parser) step(d *bar, line []byte, out object.Out) bool {
	s := &p.state
	covers := d.n - s.N
	each, of := s.time(d) // before N moves
	s.N = d.n
	rec := out.Record()
	if !p.fields(rec, d.pairs, false) {
		return false
	}
	rec.Source, rec.Kind, rec.Key = Source, record.Step, line
	rec.Set(record.Epoch, s.Epoch)
	rec.Set(record.Iteration, s.Base+d.n)
	if s.Total > 0 {
		rec.Set(record.Iterations, s.Epochs*s.Total)
	}
	if covers < 1<<31 {
		rec.Covers = int64(covers)
	}
	if each > 0 && !rec.Has(record.Duration) {
		rec.Set(record.Duration, each)
		if of > 1 {
			rec.Of = record.Mean
		}
	}
	out.Emit(rec)
	return true
}

// known is the largest relative error of a known time.
const known = 0.25

// time returns the mean time, s, of the steps since the last count with a known time, and their number. The bar prints the mean over the epoch but its first
// step, rounded, and the remaining time, cut to seconds. Both bound the mean: the bounds give the time from the epoch's beginning until this count, and the
// difference to the last known time is that of the steps between. 0: unknown, without a bound, or with bounds too far apart (known).
func (s *state) time(d *bar) (each, of float64) {
	least, most := 0.0, math.Inf(1) // bounds of the mean, s per step
	if d.per > 0 {
		least, most = d.per-d.off, d.per+d.off
	}
	if left := d.total - d.n; left > 0 && d.clock >= 0 { // the remaining time is cut to whole seconds
		from, to := max(d.clock/left, least), min((d.clock+1)/left, most) // the bounds by both
		if from <= to {                                                   // otherwise the two contradict each other
			least, most = from, to
		}
	}
	if math.IsInf(most, 1) {
		return 0, 0
	}
	mean := (least + most) / 2
	// From here on the bounds are of the time from the epoch's beginning until this count.
	if s.First > 0 {
		least, most = s.First+least*(d.n-1), s.First+most*(d.n-1)
	} else {
		least, most = least*d.n, most*d.n
	}
	if most-least > known*(least+most) {
		return 0, 0
	}
	if d.n == 1 {
		s.First = mean
	}
	of = d.n - s.Timed
	at := max(min(max(s.At+of*mean, least), most), s.At) // of this count: the last known time and the mean since, within the bounds; time does not go back
	each = (at - s.At) / of
	s.At, s.Timed = at, d.n
	return each, of
}

// results emits the record of the validation, and reports whether the drawing has one.
func (p *Parser) results(d *bar, line []byte, out object.Out) bool {
	if !bytes.Contains(d.pairs, result) {
		return false
	}
	rec := out.Record()
	if !p.fields(rec, d.pairs, true) {
		return false
	}
	rec.Source, rec.Kind, rec.Key = Source, record.Evaluation, line
	rec.Set(record.Iteration, p.state.Base+d.n)
	out.Emit(rec)
	return true
}

// fields reads the numbers of "accuracy: 0.1198 - loss: 2.4505 - val_loss: 2.4823": with validation only those of the validation (val_), else only the
// others. false: none.
func (p *Parser) fields(rec *record.Record, pairs []byte, validation bool) (found bool) {
	p.objects.Begin(rec)
	for len(pairs) > 0 {
		var part []byte
		part, pairs, _ = bytes.Cut(pairs, separator)
		name, value, ok := bytes.Cut(part, colon)
		if !ok || len(name) == 0 || bytes.HasPrefix(name, result) != validation {
			continue
		}
		if _, ok := decimal.Float(bytes.TrimSpace(value)); !ok {
			continue
		}
		found = true
		p.objects.Field(name, value)
	}
	p.objects.End()
	return found
}

// Save implements tail.Handler.
func (p *Parser) Save() []byte {
	if p.state.Epoch == 0 {
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

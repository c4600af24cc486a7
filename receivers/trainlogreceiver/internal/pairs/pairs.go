// Package pairs reads lines of names and numbers that any training loop may print, where they have a step and a loss:
//
//	step: 100, loss: 2.31, lr: 1e-4, step_time: 0.25s
//	step=100 loss=2.31 tokens/s=12,345
//	Epoch [1/5], Step [100/600], Loss: 0.1234
//	step    4 | loss: 6.5 | lr 1.2e-4 | norm: 1.2 | dt: 338.1ms | tok/sec: 1,550,000
//	completed step: 1, seconds: 0.287, TFLOP/s/device: 110.951, Tokens/s/device: 7131.788, total_weights: 7517, loss: 12.021      MaxText (metric_logger.py)
//	eval metrics after step: 1, loss=12.021, total_weights=7517      MaxText, a result
//	[    INFO] - loss: 1.08, learning_rate: 4e-08, global_step: 1, interval_runtime: 4.87, interval_steps_per_second: 0.205     PaddleNLP (trainer/trainer.py)
//
// The names are the same as in JSON objects. A line is read when it consists of pairs alone: a sentence about a step and its loss, settings
// and the checkpoints that a program loads are not read.
package pairs

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is the record's Source.
const Source = "keyvalue"

const (
	maxLine  = 8 << 10
	maxPairs = 256
	maxWords = 4 // of a name
)

// Parser reads the lines of one stream. It is not safe for concurrent use.
type Parser struct {
	objects *object.Parser
	pairs   []pair
	name    []byte // with its unit
}

// The names in MaxText's lines: its "seconds" are the step time.
var (
	completed = []byte("completed step")
	seconds   = []byte("seconds")
	stepTime  = []byte("step_time")
)

type pair struct {
	name, value, unit []byte
	number            float64
	isNumber          bool
	about             object.About
}

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

// Parse fills rec, which must be empty, with the record that b holds. found false: b is no line of pairs, and rec stays empty.
func (p *Parser) Parse(b []byte, rec *record.Record) (found bool, reason string) {
	b = bytes.TrimSpace(b)
	if len(b) > maxLine || !likely(b) {
		return false, ""
	}
	b = logger(b)
	evaluation := false
	b, evaluation = label(b)
	p.pairs = p.pairs[:0]
	for len(b) > 0 {
		var segment []byte
		segment, b = cut(b)
		if !p.segment(bytes.TrimSpace(segment)) {
			return false, ""
		}
	}
	return p.record(rec, evaluation), ""
}

// likely is a quick look: nearly all lines of a log stop here.
func likely(b []byte) bool {
	return (containsFold(b, "step") || containsFold(b, "iter")) && containsFold(b, "loss")
}

func containsFold(b []byte, word string) bool {
	lower, upper := word[0], word[0]-'a'+'A'
	for i := 0; i+len(word) <= len(b); i++ {
		if c := b[i]; (c == lower || c == upper) && bytes.EqualFold(b[i:i+len(word)], []byte(word)) {
			return true
		}
	}
	return false
}

// logger takes off what Python's logging.basicConfig ("INFO:root:"), absl ("I0317 10:00:13.224641 1253 file.py:181] ") and PaddleNLP ("[    INFO] - ") write.
func logger(b []byte) []byte {
	if i := bytes.Index(b[:min(len(b), 16)], []byte("INFO] - ")); i > 0 && b[0] == '[' {
		return b[i+8:]
	}
	if len(b) > 5 && (b[0] == 'I' || b[0] == 'W') && b[1]-'0' <= 9 && b[4]-'0' <= 9 && b[5] == ' ' {
		if i := bytes.Index(b[:min(len(b), 256)], []byte("] ")); i > 0 {
			return b[i+2:]
		}
	}
	for _, level := range [...]string{"INFO:", "DEBUG:", "WARNING:"} {
		if rest, ok := bytes.CutPrefix(b, []byte(level)); ok {
			if i := bytes.IndexByte(rest, ':'); i > 0 && bytes.IndexByte(rest[:i], ' ') < 0 && bytes.IndexByte(rest[:i], '=') < 0 {
				return bytes.TrimSpace(rest[i+1:])
			}
		}
	}
	return b
}

// label takes off the name of the loop that prints the line: "[train]", "Train:", "Eval |".
func label(b []byte) (rest []byte, evaluation bool) {
	text := b
	closing := byte(0)
	if len(text) > 0 && text[0] == '[' {
		text, closing = text[1:], ']'
	}
	n := 0
	for n < len(text) && text[n]|0x20 >= 'a' && text[n]|0x20 <= 'z' {
		n++
	}
	word, rest := string(bytes.ToLower(text[:n])), text[n:]
	switch word {
	case "train", "training":
	case "eval", "evaluation", "val", "valid", "validation":
		evaluation = true
	default:
		return b, false
	}
	switch {
	case closing != 0:
		if len(rest) == 0 || rest[0] != closing {
			return b, false
		}
		rest = rest[1:]
	case len(rest) > 0 && rest[0] == ':':
		rest = rest[1:]
	case bytes.HasPrefix(rest, []byte(" | ")), bytes.HasPrefix(rest, []byte(" - ")):
		rest = rest[3:]
	case bytes.HasPrefix(rest, []byte(" ")) && len(rest) > 2 && rest[1]|0x20 != 'l': // "Train Step 5", not "train loss: 2"
		rest = rest[1:]
	default:
		return b, false
	}
	return bytes.TrimLeft(rest, " :"), evaluation
}

// cut parts b at the first separator: a bar, a semicolon, a tab, " - ", or a comma that is not in a number.
func cut(b []byte) (segment, rest []byte) {
	for i, c := range b {
		switch c {
		case '|', ';', '\t':
			return b[:i], b[i+1:]
		case ',':
			if !grouping(b, i) {
				return b[:i], b[i+1:]
			}
		case '-':
			if i > 0 && i+1 < len(b) && b[i-1] == ' ' && b[i+1] == ' ' {
				return b[:i], b[i+1:]
			}
		}
	}
	return b, nil
}

// grouping says whether the comma at i parts thousands: "1,234,567".
func grouping(b []byte, i int) bool {
	digit := func(i int) bool { return i >= 0 && i < len(b) && b[i]-'0' <= 9 }
	return digit(i-1) && digit(i+1) && digit(i+2) && digit(i+3) && !digit(i+4)
}

// segment reads pairs with blanks between them. false: there is something else between them.
func (p *Parser) segment(all []byte) bool {
	from, count := -1, 0 // where the name begins whose value is to come, and the number of its words
	for b := all; ; {
		b = bytes.TrimLeft(b, " ")
		if len(b) == 0 {
			return from < 0
		}
		at := len(all) - len(b)
		token, rest := word(b)
		var words []byte
		if from >= 0 {
			words = bytes.TrimRight(all[from:at], " ")
		}
		name, value, isPair := words, token, false
		if i := bytes.IndexAny(token, "=:"); i >= 0 {
			isPair = true
			if i > 0 {
				if token[i] == '=' && from >= 0 { // a name before "=" is one word
					return false
				}
				if from < 0 {
					from = at
				}
				name = all[from : at+i]
			}
			if value = token[i+1:]; len(value) == 0 {
				value, rest = word(bytes.TrimLeft(rest, " "))
			}
		} else if from >= 0 && startsNumber(token) { // "Step 100", "lr 1e-4", "Epoch [1/5]"
			about := p.objects.About(words)
			if isPair = about.Step || about.Loss || known(words); !isPair {
				return false
			}
		}
		switch {
		case isPair:
			if rest = p.add(name, value, rest); rest == nil {
				return false
			}
			from, count = -1, 0
		case from < 0 && aside(token):
			if len(p.pairs) == 0 {
				return false
			}
		default:
			if from < 0 {
				from = at
			}
			if count++; count > maxWords {
				return false
			}
		}
		b = rest
	}
}

// known are the names that may stand before a number without a sign.
func known(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "epoch", "lr", "learning rate", "norm", "grad norm", "grad_norm", "tok/s", "tok/sec":
		return true
	}
	return false
}

// word takes the first word off. Words of a segment have one blank between them, or several words are no name.
func word(b []byte) (token, rest []byte) {
	i := bytes.IndexByte(b, ' ')
	if i < 0 {
		return b, b[len(b):]
	}
	return b[:i], b[i+1:]
}

// aside says whether a word may stand behind a value and say nothing.
func aside(b []byte) bool {
	n := len(b)
	return n > 1 && b[0] == '(' && b[n-1] == ')' || n > 1 && b[n-1] == '%' && b[0]-'0' <= 9
}

func startsNumber(b []byte) bool {
	if len(b) > 1 && (b[0] == '[' || b[0] == '-' || b[0] == '+' || b[0] == '.') {
		b = b[1:]
	}
	return len(b) > 0 && (b[0]-'0' <= 9 || string(b) == "nan" || string(b) == "inf")
}

// units are the words behind a number that belong to it.
var units = map[string]string{
	"ms": "_ms", "s": "_s", "sec": "_s", "secs": "_s", "seconds": "_s", "%": "_percent", "GB": "_gb", "GiB": "_gib", "MB": "_mb", "MiB": "_mib",
	"it/s": "", "tok/s": "", "tok/sec": "", "tokens/s": "", "tokens/sec": "", "samples/s": "", "samples/sec": "", "TFLOPS": "", "TFLOP/s": "", "W": "",
}

// add takes one pair and its unit, and returns what is left of the segment, nil when it is no pair.
func (p *Parser) add(name, value, rest []byte) []byte {
	if !isName(name) || len(value) == 0 || len(p.pairs) == maxPairs {
		return nil
	}
	q := pair{name: name, value: value, about: p.objects.About(name)}
	if n := len(value); n > 2 && value[0] == '[' && value[n-1] == ']' {
		q.value = value[1 : n-1]
	}
	end := len(q.value)
	for end > 0 && (q.value[end-1]|0x20 >= 'a' && q.value[end-1]|0x20 <= 'z' || q.value[end-1] == '%' || q.value[end-1] == '/') {
		end--
	}
	if v, ok := decimal.GroupedFloat(q.value); ok {
		q.number, q.isNumber = v, true
		if next, after := word(bytes.TrimLeft(rest, " ")); len(next) > 0 {
			if _, ok := units[string(next)]; ok {
				q.unit, rest = next, after
			}
		}
	} else if v, ok := decimal.GroupedFloat(q.value[:end]); ok {
		if _, isUnit := units[string(q.value[end:])]; isUnit {
			q.number, q.isNumber, q.unit = v, true, q.value[end:]
			q.value = q.value[:end]
		}
	}
	if !q.isNumber && bytes.ContainsAny(q.value, "=(){}<>'\"") {
		return nil
	}
	p.pairs = append(p.pairs, q)
	if rest == nil {
		rest = []byte{}
	}
	return rest
}

func isName(b []byte) bool {
	if len(b) == 0 || len(b) > 128 || (b[0]|0x20 < 'a' || b[0]|0x20 > 'z') && b[0] != '_' {
		return false
	}
	for _, c := range b {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c-'0' <= 9:
		case bytes.IndexByte([]byte("_-./ %@()"), c) >= 0:
		default:
			return false
		}
	}
	return bytes.Count(b, []byte("(")) == bytes.Count(b, []byte(")"))
}

// record makes a record of the pairs, when there are a step and a loss among them.
func (p *Parser) record(rec *record.Record, evaluation bool) bool {
	step, loss := -1, false
	var iteration, total, epoch, epochs float64
	for i := range p.pairs {
		q := &p.pairs[i]
		if q.about.Loss && q.isNumber {
			loss = true
		}
		isEpoch := bytes.EqualFold(q.name, []byte("epoch"))
		if !q.about.Step && !isEpoch {
			continue
		}
		at, of, ok := position(q)
		switch {
		case !ok:
		case isEpoch:
			epoch, epochs = at, of
		case step < 0:
			step, iteration, total = i, at, of
		}
	}
	if step < 0 || !loss {
		return false
	}
	// "Epoch [2/5], Step [100/600]" counts from 1 and begins anew with each epoch.
	if epochs > 0 && total > 0 && epoch >= 1 && iteration <= total {
		iteration, total = (epoch-1)*total+iteration, epochs*total
	}
	p.objects.Begin(rec)
	for i := range p.pairs {
		q := &p.pairs[i]
		switch {
		case i == step:
		case bytes.Equal(q.name, seconds) && bytes.EqualFold(p.pairs[step].name, completed):
			p.objects.Field(stepTime, q.value)
		case bytes.EqualFold(q.name, []byte("epoch")):
			if at, _, ok := position(q); ok {
				rec.Set(record.Epoch, at)
			}
		case q.about.Step:
			rec.AddExtra(record.Extra{Name: q.name, Text: q.value})
		case q.isNumber:
			p.number(rec, q)
		default:
			p.objects.Field(q.name, q.value)
		}
	}
	p.objects.End()
	rec.Source, rec.Kind = Source, record.Step
	rec.Set(record.Iteration, iteration)
	if total > 0 {
		rec.Set(record.Iterations, total)
	}
	if !rec.Has(record.Loss) && rec.Has(record.ValidationLoss) {
		rec.Kind = record.Evaluation
	}
	if evaluation {
		rec.Kind = record.Evaluation
		if rec.Has(record.Loss) && !rec.Has(record.ValidationLoss) {
			rec.Set(record.ValidationLoss, rec.Get(record.Loss))
			rec.Unset(record.Loss)
		}
	}
	return true
}

// position reads "100", "100/600" and "00100".
func position(q *pair) (at, of float64, ok bool) {
	first, second, _ := bytes.Cut(q.value, []byte("/"))
	at, ok = decimal.GroupedFloat(bytes.TrimSpace(first))
	if v, isNumber := decimal.GroupedFloat(bytes.TrimSpace(second)); isNumber {
		of = v
	}
	return at, of, ok
}

// number takes a number: under the name with its unit, where that name is known. Else a number with a unit is kept as text.
func (p *Parser) number(rec *record.Record, q *pair) {
	var text [40]byte
	value := text[:0]
	for _, c := range q.value {
		if c != ',' {
			value = append(value, c)
		}
	}
	suffix := units[string(q.unit)]
	if suffix == "" {
		p.objects.Field(q.name, value)
		return
	}
	p.name = append(append(p.name[:0], q.name...), suffix...)
	if p.objects.Known(p.name) {
		p.objects.Field(p.name, value)
		return
	}
	rec.AddExtra(record.Extra{Name: q.name, Text: append(bytes.Clone(q.value), q.unit...)})
}

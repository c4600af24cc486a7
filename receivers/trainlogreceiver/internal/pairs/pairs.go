// Package pairs reads lines of names and numbers of any training loop, with a step and a loss among them:
//
//	step: 100, loss: 2.31, lr: 1e-4, step_time: 0.25s
//	step=100 loss=2.31 tokens/s=12,345
//	step 39 loss 0.6881 time 0.055s
//	Epoch [1/5], Step [100/600], Loss: 0.1234
//	[2/20] loss: 2.4165, lr: 5.00e-02, 0.02s/it
//	step    4 | loss: 6.5 | lr 1.2e-4 | norm: 1.2 | dt: 338.1ms | tok/sec: 1,550,000
//	| epoch   1 |    10/   14 batches | lr 20.00 | ms/batch 45.47 | loss 101.18      word_language_model (pytorch/examples)
//	Epoch: [0]  [ 10/45]  eta: 0:00:01  lr: 0.05  loss: 2.2298 (2.2434)  time: 0.0298  data: 0.0001      MetricLogger (torchvision/references)
//	completed step: 1, seconds: 0.287, TFLOP/s/device: 110.951, Tokens/s/device: 7131.788, total_weights: 7517, loss: 12.021      MaxText (metric_logger.py)
//	eval metrics after step: 1, loss=12.021, total_weights=7517      MaxText, a result
//	Epoch 3/10 | Train Loss: 0.5 | Val Loss: 0.6 | 12.3s      an epoch, where the log has no finer line
//	第 3 轮, 损失: 0.52      the words of losses, steps and epochs in other languages
//	[    INFO] - loss: 1.08, learning_rate: 4e-08, global_step: 1, interval_runtime: 4.87, interval_steps_per_second: 0.205     PaddleNLP (trainer/trainer.py)
//
// The names are the same as in JSON objects. A line must consist of names and numbers alone: a sentence about a step and its loss, settings and the checkpoints
// that a program loads are not read.
package pairs

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/count"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is the record's Source.
const Source = "keyvalue"

const (
	maxLine  = 8 << 10
	maxPairs = 256
	maxWords = 4 // of a name
	maxEvent = 3 // words before the pairs of a structured log
)

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct {
	objects *object.Parser
	lexer   lexer
	state   state
	own     []byte // memory for a line in English
	counter count.Counter
	time    count.Guess // tells a step's time from the run's
	timed   float64     // the record's "time", s; NaN: none
	name    []byte      // memory for a name with its unit
	number  [40]byte    // memory for a number without commas
}

// New returns a parser; mapped has the names with a meaning from the configuration, as in object.New.
func New(mapped map[string]object.Target) *Parser {
	p := &Parser{objects: object.New(mapped)}
	p.lexer.objects = p.objects
	return p
}

// Parse fills rec, which must be empty, with the record in b. found is false if b is no line of pairs with a loss; rec then stays empty. Cheap looks at the
// line come first, since nearly all lines of a log are no records.
func (p *Parser) Parse(b []byte, rec *record.Record) (found bool, reason string) {
	b = bytes.TrimSpace(b)
	if len(b) > maxLine {
		return false, ""
	}
	loss, beyondASCII := look(b)
	if beyondASCII && hasForeignWord(b) {
		p.own = english(p.own[:0], b)
		b = p.own
		loss = containsFold(b, "loss")
	}
	if !loss && !bytes.HasPrefix(b, gan) {
		p.readHead(b) // possibly the name of an epoch, whose loss is below
		return false, ""
	}
	if !mayHaveStep(b) && p.state.Head == nil { // without a step, the loss is of the epoch named above, if any
		return false, ""
	}
	b, evaluation := cutLabel(b)
	if !p.lexer.line(b) {
		return false, ""
	}
	return p.record(rec, evaluation || p.lexer.evaluation), ""
}

// Value is a number and its name. Slices point into the text.
type Value struct {
	Name, Text []byte
	Number, Of float64 // of "1/2": 1 and 2; Of is 0 without the second
	// Epoch and Step say that the number is of an epoch, or of a step.
	Epoch, Step bool
}

// Values appends to dst the named numbers in a text of a few words, as in the description of a progress bar. Words without a number are skipped; none are
// appended if the text has more than names and values.
func (p *Parser) Values(dst []Value, b []byte) []Value {
	if len(b) > maxLine || !p.lexer.tokens(b) {
		return dst
	}
	for i := range p.lexer.pairs {
		if q := &p.lexer.pairs[i]; q.isNumber && len(q.name) > 0 {
			lower := bytes.ToLower(q.name)
			dst = append(dst, Value{
				Name: q.name, Text: q.value, Number: q.number, Of: q.of, Epoch: bytes.HasSuffix(lower, []byte("epoch")), Step: p.positionOf(q) > 0,
			})
		}
	}
	return dst
}

// look reports whether a line has the word loss, in small or capital letters, and whether it has bytes beyond ASCII. Nearly all lines of a log end here, so the
// code tests eight bytes at a time: first holds the bytes at i … i+7, second those one further. A byte of lo is 0 where "l" and then "o" are.
func look(b []byte) (loss, beyond bool) {
	const ones, high, small = 0x0101010101010101, 0x8080808080808080, 0x2020202020202020
	var all uint64
	i := 0
	for ; i+9 <= len(b); i += 8 {
		first, second := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+1:])
		all |= first
		lo := ((first | small) ^ 'l'*ones) | ((second | small) ^ 'o'*ones)
		hasZeroByte := (lo-ones)&^lo&high != 0 // subtracting 1 sets the high bit of a zero byte
		if hasZeroByte && !loss {
			loss = containsFold(b[i:min(len(b), i+11)], "loss")
		}
	}
	for _, c := range b[i:] {
		all |= uint64(c)
	}
	return loss || containsFold(b[i:], "loss"), all&high != 0
}

// mayHaveStep reports whether a line with a loss may also name a step, an epoch or an evaluation: it has one of these words or signs.
func mayHaveStep(b []byte) bool {
	for _, word := range [...]string{"step", "iter", "batch", "epoch", "it", "/", "[", "episode", "tick", "val", "eval"} {
		if containsFold(b, word) {
			return true
		}
	}
	return false
}

// containsFold reports whether b has a word, in small or capital letters; word is in small letters.
func containsFold(b []byte, word string) bool {
	lower, upper := word[0], word[0]
	if 'a' <= lower && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	for i := 0; i+len(word) <= len(b); i++ {
		if c := b[i]; (c == lower || c == upper) && bytes.EqualFold(b[i:i+len(word)], []byte(word)) {
			return true
		}
	}
	return false
}

// cutLabel removes the name of the loop before a line, "[train]", "Train:", "Eval |", "- train -", and reports whether the name is of an evaluation. A line
// without such a name is returned whole.
func cutLabel(b []byte) (rest []byte, evaluation bool) {
	text := bytes.TrimPrefix(b, []byte("- ")) // a logger's name after a time
	closing := byte(0)                        // after the name; 0: none
	if len(text) > 0 && text[0] == '[' {
		text, closing = text[1:], ']'
	}
	n := 0 // length of the name
	for n < len(text) && ascii.IsLetter(text[n]) {
		n++
	}
	if n > 10 { // longer than "validation"
		return b, false
	}
	var lower [10]byte
	rest = text[n:]
	switch string(lowered(lower[:0], text[:n])) {
	case "train", "training":
	case "eval", "evaluation", "val", "valid", "validation":
		evaluation = true
	default:
		return b, false
	}
	if ended, ok := afterEnd(rest); ok && evaluation {
		return ended, true
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
	case bytes.HasPrefix(rest, []byte(" :: ")), bytes.HasPrefix(rest, []byte(" => ")), bytes.HasPrefix(rest, []byte(" -> ")):
		rest = rest[4:]
	case bytes.HasPrefix(rest, []byte(" ")) && len(rest) > 2 && rest[1]|0x20 != 'l': // "Train Step 5", not "train loss: 2"
		rest = rest[1:]
	default:
		return b, false
	}
	return bytes.TrimLeft(rest, " :"), evaluation
}

// afterEnd removes the word that says the end of an evaluation, behind the evaluation's name: "Validation finished val_loss=2.31", "Evaluation done in 41.2s,
// loss: 2.31". false: another word follows, or nothing.
func afterEnd(b []byte) (rest []byte, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(" "))
	if !ok {
		return nil, false
	}
	n := 0
	for n < len(b) && ascii.IsLetter(b[n]) {
		n++
	}
	if n > 9 || n == len(b) { // longer than "completed"
		return nil, false
	}
	var lower [9]byte
	switch string(lowered(lower[:0], b[:n])) {
	case "finished", "done", "complete", "completed", "ended", "result", "results":
		return bytes.TrimLeft(b[n:], " :,.|-"), true
	}
	return nil, false
}

// The names of the numbers for a line's step, from the surest to the least.
var stepNames = map[string]int{
	"global_step": 1, "global step": 1, "global_steps": 1, "num_updates": 1, "update": 2, "updates": 2, "train_step": 2, "train step": 2, "training step": 2,
	"step": 3, "steps": 3, "iteration": 3, "iterations": 3, "iter": 3, "iters": 3, "it": 4, "batch": 5, "batches": 5, "batch_idx": 5, "minibatch": 5,
	"episode": 6, "tick": 6, "generation": 6,
}

// positionOf returns the rank of a pair's name among the names for a line's step, 1 for the surest; 0: the pair is no step. A number without a name is in
// brackets, "[2/20]", and ranks with "it".
func (p *Parser) positionOf(q *pair) int {
	if len(q.name) == 0 {
		if q.unit == "" {
			return 4
		}
		return 0 // known by its unit
	}
	if len(q.name) < 16 {
		var lower [16]byte
		if n, ok := stepNames[string(lowered(lower[:0], q.name))]; ok {
			return n
		}
	}
	if q.about.Step {
		return 3
	}
	return 0
}

// lowered appends b to out in small letters, and returns the result. It allocates nothing if out has room.
func lowered(out, b []byte) []byte {
	for _, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return out
}

// subject is what the pairs of a line are about.
type subject struct {
	step          int     // index of the pair with the number of the step; -1: none
	loss, losses  int     // index of the first loss, -1: none; and the number of losses
	epoch, epochs float64 // NaN: none; and the planned epochs, 0: unknown
}

// subject returns the step, the epoch and the losses among the pairs. Of several names for a step the surest with a whole number counts, of equal ones the
// first.
func (p *Parser) subject() subject {
	pairs := p.lexer.pairs
	s, best := subject{step: -1, loss: -1, epoch: math.NaN()}, 0
	for i := range pairs {
		q := &pairs[i]
		if !q.isNumber {
			continue
		}
		if q.about.Loss {
			if s.losses++; s.loss < 0 {
				s.loss = i
			}
		}
		if isEpoch(q) {
			s.epoch, s.epochs = q.number, q.of
			continue
		}
		q.position = p.positionOf(q)
		if n := q.position; n > 0 && (best == 0 || n < best) && q.number == math.Trunc(q.number) {
			s.step, best = i, n
		}
	}
	return s
}

// record makes a record of the pairs, if a step and a loss are among the pairs; a GAN's lines (gan) need no loss. It returns false without a record. Without a
// step the line may be about an epoch, by its own number or by that of the line above (head). evaluation: the line is an evaluation's, by its label or a name.
func (p *Parser) record(rec *record.Record, evaluation bool) bool {
	pairs, s := p.lexer.pairs, p.subject()
	isGAN := s.loss < 0 && s.step >= 0 && s.epoch >= 0 && bytes.HasPrefix(p.lexer.b, gan)
	epochMean := s.step >= 0 && p.lexer.signed == 0 && string(pairs[s.step].name) == "num_updates" // fairseq's line of an epoch
	if s.loss < 0 && !isGAN || epochMean {
		return false
	}
	var iteration, iterations float64
	switch h := p.state.Head; {
	case s.step >= 0:
		iteration, iterations = p.counter.Iteration(s.epoch, s.epochs, pairs[s.step].number, pairs[s.step].of)
	case s.epoch >= 0 && s.epoch == math.Trunc(s.epoch):
		iteration, iterations = s.epoch, s.epochs
	case h != nil && math.IsNaN(s.epoch):
		iteration, iterations = h.Epoch, h.Epochs
	case p.state.Own && s.loss >= 0 && math.IsNaN(s.epoch):
		return p.result(rec, &s, evaluation)
	default:
		return false
	}
	p.fill(rec, &s)
	rec.Source, rec.Kind = Source, record.Step
	rec.Set(record.Iteration, iteration)
	if iterations > 0 {
		rec.Set(record.Iterations, iterations)
	}
	p.setTime(rec, iteration)
	if isGAN {
		return true
	}
	onlyLoss := s.losses == 1 && !rec.Has(record.Loss) && !rec.Has(record.ValidationLoss)
	if q := &pairs[s.loss]; onlyLoss && !q.about.Evaluation { // by a special name
		rec.Set(record.Loss, q.number)
	}
	if !rec.Has(record.Loss) {
		setNamedLosses(rec, pairs)
	}
	if !rec.Has(record.Loss) && rec.Has(record.ValidationLoss) {
		rec.Kind = record.Evaluation
	}
	if evaluation {
		rec.Kind = record.Evaluation
		moveLoss(rec)
	}
	if s.step < 0 {
		return p.ofEpoch(rec)
	}
	if rec.Kind == record.Step {
		p.state.Finer, p.state.Own = true, true
	}
	return true
}

// moveLoss makes the loss of an evaluation's record the validation loss, unless the record has one.
func moveLoss(rec *record.Record) {
	if rec.Has(record.Loss) && !rec.Has(record.ValidationLoss) {
		rec.Set(record.ValidationLoss, rec.Get(record.Loss))
		rec.Unset(record.Loss)
	}
}

// result makes a record of the result of an evaluation that names no step, such as "Validation loss: 2.31" and "[eval] loss=2.31", in a log whose lines of
// pairs have the steps: the evaluation is of the step before. It returns false if the losses are of training.
func (p *Parser) result(rec *record.Record, s *subject, evaluation bool) bool {
	p.fill(rec, s)
	if !rec.Has(record.Loss) {
		setNamedLosses(rec, p.lexer.pairs)
	}
	if evaluation {
		moveLoss(rec)
	}
	if !rec.Has(record.ValidationLoss) {
		rec.Reset()
		return false
	}
	rec.Source, rec.Kind = Source, record.Evaluation
	rec.Unset(record.Loss)
	if p.timed > 0 {
		rec.Set(record.Duration, p.timed)
	}
	return true
}

// fill puts the values of the pairs into rec, except the number of the step, numbers in brackets and a loss whose name was read before. A line without an epoch
// has the epoch of the head. p.timed becomes the line's time, for setTime: the head's on a line about an epoch, else a value called "time"; NaN: none.
func (p *Parser) fill(rec *record.Record, s *subject) {
	p.objects.Begin(rec)
	p.timed = math.NaN()
	if h := p.state.Head; h != nil && math.IsNaN(s.epoch) {
		rec.Set(record.Epoch, h.Epoch)
		if s.step < 0 && h.Seconds > 0 {
			p.timed = h.Seconds
		}
	}
	pairs := p.lexer.pairs
	for i := range pairs {
		q := &pairs[i]
		switch {
		case i == s.step, len(q.name) == 0 && q.unit == "": // the step, or another number in brackets
		case isEpoch(q):
			rec.Set(record.Epoch, q.number)
		case q.about.Loss && wasRead(pairs[:i], q.name): // of another group: "loss[loss=0.3, …], tot_loss[loss=0.4, …]"
		case q.isNumber && q.position > 0: // a less sure name for a step
			rec.AddExtra(record.Extra{Name: q.name, Text: q.value})
		case q.isNumber:
			p.field(rec, q)
		default:
			p.objects.Field(q.name, q.value)
		}
	}
	p.objects.End()
	rec.Dropped += p.lexer.dropped
}

// wasRead reports whether one of the pairs has the name.
func wasRead(pairs []pair, name []byte) bool {
	for i := range pairs {
		if bytes.Equal(pairs[i].name, name) {
			return true
		}
	}
	return false
}

// isEpoch reports whether a pair is the number of the epoch. The first letter rules out most names.
func isEpoch(q *pair) bool {
	if !q.isNumber || len(q.name) < 2 || q.name[0]|0x20 != 'e' && q.name[0]|0x20 != 't' && q.name[0]|0x20 != 'c' {
		return false
	}
	for _, name := range [...]string{"epoch", "ep", "train epoch", "training epoch", "epochs", "current epoch"} {
		if bytes.EqualFold(q.name, []byte(name)) {
			return true
		}
	}
	return false
}

// field puts a number into its field. A time of the step, "time: 0.25s", is left for setTime. The field of other numbers is that of the name with the unit
// ("memory_gb"), of the unit alone ("0.25 s/it"), or of the name. A number whose name with the unit is unknown is kept as text with its unit.
func (p *Parser) field(rec *record.Record, q *pair) {
	value := p.number[:0]
	for _, c := range q.value {
		if c != ',' {
			value = append(value, c)
		}
	}
	unit := units[q.unit]
	name := q.name
	ownField := bytes.IndexByte(name, '_') >= 0 && p.objects.Known(name) // "step_time" is a step's time for certain
	if math.IsNaN(p.timed) && isTime(name) && !ownField {
		_, inName := timeUnit(name)
		fraction := q.unit == "" && bytes.IndexByte(value, '.') >= 0 // a whole number without a unit may be anything
		switch {
		case unit.suffix == "_ms", inName == "_ms":
			p.timed = q.number / 1e3
			return
		case unit.suffix == "_s", inName == "_s", fraction:
			p.timed = q.number
			return
		}
	}
	if len(name) == 0 { // a value known by its unit alone
		if unit.name == "" || unit.name == "step_time" && rec.Has(record.Duration) {
			return
		}
		name = []byte(unit.name)
	}
	if unit.scale > 0 {
		p.objects.Number(p.objects.Name(name), q.number*unit.scale, value)
		return
	}
	if unit.suffix == "" {
		p.objects.Field(name, value)
		return
	}
	p.name = append(append(p.name[:0], name...), unit.suffix...)
	if p.objects.Known(p.name) {
		p.objects.Field(p.name, value)
		return
	}
	rec.AddExtra(record.Extra{Name: name, Text: append(bytes.Clone(q.value), q.unit...)})
}

// setTime sets the duration of a step from the record's "time": a step's, or a clock of the run, as count.Guess finds from the lines so far. Without "time",
// picotron's lines give the duration.
func (p *Parser) setTime(rec *record.Record, iteration float64) {
	if rec.Has(record.Duration) {
		return
	}
	if math.IsNaN(p.timed) {
		if s := picotron(p.lexer.pairs); s > 0 && !math.IsInf(s, 0) {
			rec.Set(record.Duration, s)
		}
		return
	}
	seconds, of := p.time.Step(p.timed, iteration)
	if !(seconds > 0) {
		return
	}
	rec.Set(record.Duration, seconds)
	if of > 1 {
		rec.Of = record.Mean
	}
}

// times are the names of times that loops print with each step, with blanks between their words and without their units.
var times = map[string]bool{
	"time": true, "step time": true, "batch time": true, "time taken": true, "took": true, "t": true, "bt": true, "cost": true, "cost time": true,
	"batch cost": true, "iter dt": true, "time batch": true, "time step": true, "time iter": true, "time per step": true, "time per batch": true,
	"time per iter": true,
	"per step time": true, "in": true, "dur": true, "duration": true, "sec tick": true, "updt s": true, "seconds": true, "time epoch": true, "epoch time": true,
}

// isTime reports whether a name is one of times, without regard to case, to _ - / between its words and to a unit after: "Time per batch (seconds)".
func isTime(name []byte) bool {
	if len(name) == 0 {
		return false
	}
	switch name[0] | 0x20 { // the first letters of times rule out most names
	case 't', 's', 'b', 'c', 'i', 'p', 'd', 'u', 'e':
	default:
		return false
	}
	name, _ = timeUnit(name)
	var out [20]byte // longer than any name of a time
	if len(name) > len(out) {
		return false
	}
	text := lowered(out[:0], name)
	for i, c := range text {
		if c == '_' || c == '-' || c == '/' {
			text[i] = ' '
		}
	}
	return times[string(text)]
}

// timeUnit divides the name of a time from its unit in parentheses: "time (sec)" is "time" and "_s", as units have it. "": no unit.
func timeUnit(name []byte) (bare []byte, unit string) {
	for _, u := range [...]struct{ text, suffix string }{{"(s)", "_s"}, {"(sec)", "_s"}, {"(ms)", "_ms"}, {"(seconds)", "_s"}} {
		if rest, ok := bytes.CutSuffix(name, []byte(u.text)); ok {
			name, unit = rest, u.suffix
			break
		}
	}
	return bytes.TrimRight(name, " "), unit
}

// picotron returns the time of a step by its tokens and its speed, s, as printed by huggingface/picotron (train.py: 248), to about three digits: "Global batch
// size: 1.05M | Tokens/s: 197.08K | Tokens/s/GPU: 24.64K | Tokens: 1.05M". 0: the line has other names.
func picotron(pairs []pair) (seconds float64) {
	for i := range pairs {
		if i+3 >= len(pairs) || string(pairs[i].name) != "Global batch size" {
			continue
		}
		tokens, speed := &pairs[i], &pairs[i+1]
		if string(speed.name) == "Tokens/s" && string(pairs[i+2].name) == "Tokens/s/GPU" && string(pairs[i+3].name) == "Tokens" {
			scale := func(q *pair) float64 { return q.number * max(units[q.unit].scale, 1) }
			return scale(tokens) / scale(speed)
		}
	}
	return 0
}

// gan begins the lines of junyanz/pytorch-CycleGAN-and-pix2pix (util/visualizer.py, print_current_losses): "(epoch: 1, iters: 100, time: 0.123, data: 0.002)
// G_GAN: 0.95 D_real: 0.61". None of these losses is the step's.
var gan = []byte("(epoch: ")

// Package bar reads records in tqdm's progress bars:
//
//	Epoch 0:  12%|█▎        | 1/8 [00:00<00:00, 41.65it/s, v_num=0, train_loss_step=16.20]              Lightning (callbacks/progress/tqdm_progress.py)
//	Epoch 0: :  47%|████▋     | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000, train_step_timing in s=49.50]        NeMo 1
//	Train step of epoch 0:   5%|▌   | 1/17 [00:04<00:32,  2.00s/it, gpt_loss=0.793, lr=1.25e-6]         OpenRLHF (trainer/sft_trainer.py and others)
//	train          Epoch   0:   12%|███▏   | 1/8 [00:00<00:00, 106.81ba/s, loss/train/total=11.5874]      Composer (loggers/progress_bar_logger.py)
//	1|12|Loss: 2.345:  10%|█   | 12/120 [00:10<01:30,  1.20s/it]                                        torchtune (recipes)
//
// and any other loop's set_postfix(loss=…). A bar is drawn again and again, so most drawings have no news:
//   - Lightning advances the bar first and then sets the postfix: the first changed postfix belongs to the count beside it.
//   - In "for batch in tqdm(…)" the postfix is set first: the first drawing of a count has the count's postfix.
//   - Composer shows the number of finished batches beside the loss of the next batch.
//   - torchtune prints the step's number into the description.
//
// Numbers in a postfix have three significant digits (tqdm, format_num). The speed is a mean, over the epoch or the last iterations: times of steps come from
// tqdm.Clock. Where not every step was drawn, a record is of all steps since the record before.
package bar

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pairs"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/tqdm"
)

// The records' Source.
const (
	Source    = "tqdm"
	Lightning = "lightning"
	NeMo      = "nemo"
	OpenRLHF  = "openrlhf"
	Composer  = "composer"
	Torchtune = "torchtune"
)

// nothingNew is the reason of bars that repeat the bar before, or have no loss.
const nothingNew = "progress_bar"

// state is the memory of earlier drawings.
type state struct {
	Desc     []byte  `json:"desc,omitempty"`     // of the drawing before
	At       float64 `json:"at,omitempty"`       // the iteration of the last record
	Training []byte  `json:"training,omitempty"` // the last postfix: its pairs about the step
	Results  []byte  `json:"results,omitempty"`  // and about an evaluation
	// Before: the loop sets the postfix before the count advances. Zero: epochs count from 0.
	Before bool   `json:"before,omitempty"`
	Zero   bool   `json:"zero,omitempty"`
	Bars   []*bar `json:"bars,omitempty"` // the last drawn first
	// Counts is the name of the bar without a loss that counts the steps; Others: other lines have the steps.
	Counts *string `json:"counts,omitempty"`
	Others bool    `json:"others,omitempty"`
}

// bar follows the drawings of one bar.
type bar struct {
	Name   string     `json:"name"`
	Clock  tqdm.Clock `json:"clock"`
	Rounds int        `json:"rounds,omitempty"` // finished bars of the name
	Held   []held     `json:"held,omitempty"`   // drawings without a loss that may become steps
	// FromN and FromAt are the clock's mark before the held drawings.
	FromN  float64 `json:"from_n,omitempty"`
	FromAt float64 `json:"from_at,omitempty"`
}

// maxBars bounds the followed bars: of nested loops, and of an evaluation below the training's.
const maxBars = 4

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct {
	objects  *object.Parser // of the pairs in a postfix
	names    *pairs.Parser  // of the numbers in a description
	state    state
	training []byte        // pairs about the step in the current postfix: "loss=2.3, lr=1e-5, "
	results  []byte        // pairs about an evaluation
	values   []pairs.Value // memory for those of a description
	postfix  []byte        // made of a description
}

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser {
	return &Parser{objects: object.New(mapped), names: pairs.New(mapped)}
}

// Others is called when another format has found a record: its lines have the steps, and bars without a loss would count these twice.
func (p *Parser) Others() {
	p.state.Others = true
	for _, b := range p.state.Bars {
		b.drop()
	}
}

var (
	epochMark  = []byte("Epoch ")
	composer   = []byte("train   ")
	batches    = []byte("ba/s")
	perBatch   = []byte("s/ba")
	rlhfSteps  = []byte("Train step of epoch ")
	rlhfEpoch  = []byte("Train epoch [")
	rlhfEval   = []byte("Eval stage of ")
	nemoLoss   = []byte("reduced_train_loss=")
	lossMark   = []byte("loss")
	version    = []byte("v_num")
	epochEnd   = []byte("_epoch")
	globalStep = []byte("global_step")
	lossName   = []byte("loss")
	stepLoss   = []byte("step_loss")
	pairMark   = []byte(", ")
)

// drawing is a bar, as interpreted for its trainer.
type drawing struct {
	tqdm.Bar
	line    []byte
	clock   *tqdm.Clock
	bar     *bar
	begins  bool // another bar of the name is over
	source  string
	epoch   float64 // as drawn; NaN: none
	epochs  float64 // finished epochs before
	changes bool    // the postfix belongs to the count from its first change on, not from the first drawing of the count
	eval    bool    // an evaluation's
	none    bool    // neither steps nor results
}

// Line reads one line with one drawing of a bar: a record if the drawing has news of a step or an evaluation. mine is false for any other line, and for a bar
// without a loss that counts no steps, or whose steps are in other lines (Others).
func (p *Parser) Line(b []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	parsed, n := tqdm.Parse(b)
	if n == 0 {
		return tail.Ignored, "", false
	}
	d := &drawing{Bar: parsed, line: b, source: Source, epoch: math.NaN()}
	p.follow(d)
	if epoch, step, loss, ok := torchtuneDesc(d.Desc); ok {
		return p.torchtune(d, epoch, step, loss, out)
	}
	withoutLoss := false
	if !bytes.Contains(d.Postfix, lossMark) {
		switch {
		case p.usesDescription(d): // the loss is in the description
		case p.state.Others:
			return tail.Ignored, "", false
		case d.Per >= slow && isTraining(d.Desc): // not held as by count: with steps so slow, the bar would be finished much later
			withoutLoss = true
		case countsSteps(d):
			return p.count(d, out)
		default:
			return tail.Ignored, "", false // the dicts of other trainers stand after bars
		}
	}
	d.bar.drop() // drawings of this bar are steps of their own: those held are not needed
	p.split(d.Postfix)
	p.identifyTrainer(d)
	found := false
	switch {
	case d.none:
	case d.eval: // its results are whole at the bar's end
		if d.Done == d.Total && !bytes.Equal(p.results, p.state.Results) {
			p.emit(p.results, record.Evaluation, numberAtEnd(d.Desc), d, out)
			found = true
		}
	default:
		found = p.train(d, withoutLoss, out)
	}
	if len(p.training) > 0 && !d.none {
		p.state.Training = append(p.state.Training[:0], p.training...)
	}
	if len(p.results) > 0 {
		p.state.Results = append(p.state.Results[:0], p.results...)
	}
	p.state.Desc = append(p.state.Desc[:0], d.Desc...)
	if !found {
		return tail.Ignored, nothingNew, true
	}
	return tail.Record, "", true
}

// follow finds the bar of a drawing among those drawn before, by its total and its name (the description up to the first digit), moves the bar's clock, and
// sets d.bar and d.clock. An unknown bar is added; beyond maxBars it takes the place of the bar not drawn for longest. The bar drawn last comes first. Where
// count or time falls, another bar of the name begins (d.begins), and the one before is finished (Rounds).
func (p *Parser) follow(d *drawing) {
	name := d.Desc
	if i := bytes.IndexAny(name, "0123456789"); i >= 0 {
		name = name[:i]
	}
	bars := p.state.Bars
	at := slices.IndexFunc(bars, func(b *bar) bool { return b.Name == string(name) && b.Clock.Total == d.Total })
	if at < 0 {
		at = len(bars)
		if at < maxBars {
			bars = append(bars, nil)
			p.state.Bars = bars
		} else {
			at--
		}
		bars[at] = &bar{Name: string(name)}
	}
	found := bars[at]
	copy(bars[1:], bars[:at]) // to the front
	bars[0] = found
	drawn := found.Clock.Seen                         // 0: nothing was done yet
	isLightning := bytes.Contains(d.Postfix, version) // whose bars show the mean speed
	if found.Clock.Draw(&d.Bar, isLightning) && drawn > 0 {
		found.Rounds++
		d.begins = true
	}
	d.clock, d.bar = &found.Clock, found
}

// usesDescription replaces the postfix, and sets the epoch, by a description with a loss: "Epoch 1/2 loss 0.67", and llama-cookbook's "Training Epoch: 1/2,
// step 19/20 completed (loss: 1.89)" (meta-llama/llama-cookbook, src/llama_cookbook/utils/train_utils.py). The postfix is in small letters, since its readers
// look for "loss". It returns false, with nothing changed, if the description has no number for a loss.
func (p *Parser) usesDescription(d *drawing) bool {
	if !bytes.Contains(bytes.ToLower(d.Desc), lossMark) {
		return false
	}
	p.values = p.names.Values(p.values[:0], d.Desc)
	p.postfix = p.postfix[:0]
	epoch := math.NaN()
	for i := range p.values {
		switch v := &p.values[i]; {
		case v.Epoch:
			epoch = v.Number
		case !v.Step:
			p.postfix = append(append(p.postfix, v.Name...), '=')
			p.postfix = append(append(p.postfix, v.Text...), pairMark...)
		}
	}
	p.postfix = bytes.ToLower(append(p.postfix, d.Postfix...))
	if !hasLoss(p.postfix) {
		return false
	}
	d.Postfix, d.epoch = p.postfix, epoch
	return true
}

// identifyTrainer identifies the trainer of the bar by its description and postfix, and sets what follows from the trainer: the source, the epoch, what the bar
// counts, and to which count a postfix belongs. For an unknown trainer, epochs count from 1 until an epoch 0 is in the log.
func (p *Parser) identifyTrainer(d *drawing) {
	switch {
	case bytes.HasPrefix(d.Desc, epochMark):
		p.readEpochBar(d)
	case bytes.HasPrefix(d.Desc, composer):
		d.none = !bytes.Contains(d.line, batches) && !bytes.Contains(d.line, perBatch) // counts samples or tokens
		d.source, d.changes = Composer, true
		if rest, ok := bytes.CutPrefix(bytes.TrimLeft(d.Desc[len(composer):], " "), epochMark); ok {
			d.epoch = leadingDigits(bytes.TrimLeft(rest, " "))
		}
		if d.Done < d.Total { // the loss is of the batch after the finished ones
			d.Done++
		}
	case bytes.HasPrefix(d.Desc, rlhfEval):
		d.source, d.eval = OpenRLHF, true
	case bytes.HasPrefix(d.Desc, rlhfSteps):
		d.source = OpenRLHF
		d.epoch = leadingDigits(d.Desc[len(rlhfSteps):])
	case bytes.HasPrefix(d.Desc, rlhfEpoch):
		d.source = OpenRLHF
	case isEvaluation(d.Desc):
		d.none = true
	case bytes.HasPrefix(d.Postfix, stepLoss), bytes.Contains(d.Postfix, []byte(" step_loss=")):
		d.changes = true // the examples of diffusers set the postfix after the count, and at each micro-batch
	}
	d.epochs = d.epoch
	if d.source == Source {
		p.state.Zero = p.state.Zero || d.epoch == 0
		if !p.state.Zero {
			d.epochs--
		}
	}
}

// readEpochBar sets epoch and source of a bar called "Epoch 0": Lightning's, NeMo's or a loop's. Lightning has its version in the postfix, at least at times. A
// loop's bar has a new postfix at count 0 (Before), the number of epochs ("Epoch 1/2") or more text, and keeps the general source.
func (p *Parser) readEpochBar(d *drawing) {
	rest := d.Desc[len(epochMark):]
	if !(d.epoch >= 0) {
		d.epoch = leadingDigits(rest)
	}
	isLightning := bytes.Contains(d.Postfix, version)
	switch {
	case bytes.Contains(d.Postfix, nemoLoss):
		d.source, d.changes = NeMo, true
		return
	case isLightning:
		p.state.Before = false
	case d.Done == 0 && len(p.training) > 0 && !bytes.Equal(p.training, p.state.Training):
		p.state.Before = true
	}
	isLoop := p.state.Before || bytes.IndexByte(rest, '/') >= 0 || len(rest) > 4 // 4 bytes: a number and a colon
	if !isLightning && isLoop {
		return
	}
	d.source, d.changes = Lightning, true
}

// isEvaluation reports whether a bar is of an evaluation, by its description.
func isEvaluation(desc []byte) bool {
	lower := bytes.ToLower(desc[:min(len(desc), 16)])
	for _, word := range [...]string{"val", "eval", "test", "sanity"} {
		if bytes.HasPrefix(lower, []byte(word)) {
			return true
		}
	}
	return false
}

// train emits the news of a training's bar, and reports whether there were any: a step, if the count is new, or the postfix of a bar whose postfix comes after
// the count (d.changes); and the results of an evaluation in the postfix. withoutLoss: the bar is a training's by its name, so the count alone is a step.
func (p *Parser) train(d *drawing, withoutLoss bool, out object.Out) (found bool) {
	at := d.Done
	if d.epochs > 0 {
		at += d.epochs * d.Total
	}
	isNew := at != p.state.At // a closed bar is drawn once more, beside the next one
	// diffusers' postfix, of the general Source, changes several times at a count: the first change counts.
	if d.changes {
		isNew = (isNew || d.source != Source) && !bytes.Equal(p.training, p.state.Training)
	}
	// At 0 the bar shows the last postfix of the epoch before, or the first postfix before the bar advances.
	if d.Done > 0 && isNew && (withoutLoss || hasLoss(p.training)) {
		p.state.At = at
		p.step(at, d, out)
		found = true
	}
	newResults := len(p.results) > 0 && !bytes.Equal(p.results, p.state.Results)
	if newResults {
		p.emit(p.results, record.Evaluation, math.NaN(), d, out)
		found = true
	}
	return found
}

// split separates the pairs of a postfix about the step (training) from the pairs about an evaluation (results), and leaves out Lightning's
// version, means over an epoch, and pairs without a name.
func (p *Parser) split(postfix []byte) {
	p.training, p.results = p.training[:0], p.results[:0]
	for len(postfix) > 0 {
		var pair []byte
		pair, postfix, _ = bytes.Cut(postfix, pairMark)
		i := bytes.LastIndexByte(pair, '=')
		if i < 1 {
			continue
		}
		switch name := pair[:i]; {
		case bytes.Equal(name, version):
		case p.objects.About(name).Evaluation:
			p.results = append(append(p.results, pair...), pairMark...)
		case bytes.HasSuffix(name, epochEnd): // the mean over the epoch before
		default:
			p.training = append(append(p.training, pair...), pairMark...)
		}
	}
}

// hasLoss reports whether pairs have a loss that is a number. The best loss so far, as drawn by searches over trials, is none.
func hasLoss(pairs []byte) bool {
	for len(pairs) > 0 {
		var pair []byte
		pair, pairs, _ = bytes.Cut(pairs, pairMark)
		i := bytes.LastIndexByte(pair, '=')
		if i < 1 {
			continue
		}
		name := pair[:i]
		isLoss := bytes.Contains(name, lossMark) && !bytes.Contains(name, []byte("best")) && !bytes.Contains(name, []byte("min"))
		if _, isNumber := decimal.Float(pair[i+1:]); isNumber && isLoss {
			return true
		}
	}
	return false
}

// step emits the record of a step: at is its number by the bar's count. NeMo prints a number of its own, global_step, counted from 0; from 1000 on tqdm rounds
// this number to three digits ("1.23e+3"), and the bar's count gives the step if both agree.
func (p *Parser) step(at float64, d *drawing, out object.Out) {
	if v, text, ok := value(p.training, globalStep); ok {
		if bytes.IndexByte(text, 'e') < 0 {
			at = v
		} else if math.Abs(d.Done-1-v) <= 0.006*v { // three digits are true within 0.005
			at = d.Done - 1
		}
	}
	rec := p.fill(p.training, record.Step, d.source, out)
	d.setTime(rec)
	rec.Set(record.Iteration, at)
	if d.epoch >= 0 {
		rec.Set(record.Epoch, d.epoch)
	}
	rec.Key = d.line
	out.Emit(rec)
}

// setTime sets the number of steps that the record covers (0: unknown), and the duration of a step if the log has none.
func (d *drawing) setTime(rec *record.Record) {
	steps, per, mean := d.timePerStep()
	rec.Covers = steps
	if per > 0 && !rec.Has(record.Duration) {
		rec.Set(record.Duration, per)
		if mean {
			rec.Of = record.Mean
		}
	}
}

// timePerStep returns the number of steps since the record before, and the time of each, s, from the bar's clock. mean: the time is a mean of several steps.
// Where the clock does not know, as at the first drawing, the time is the bar's speed. The clock's mark moves to this drawing.
func (d *drawing) timePerStep() (steps int64, per float64, mean bool) {
	took, n, guessed := d.clock.Since()
	d.clock.Mark()
	if n > 0 && n < 1<<31 {
		steps = int64(n)
	}
	if took > 0 && !guessed {
		return steps, took / n, n > 1 || d.source == Composer // Composer's time is the previous batch's
	}
	return steps, d.Per, true
}

// emit emits the record of the pairs of an evaluation. at is the step of an evaluation's own bar, whose elapsed time is the evaluation's; NaN for a result in a
// training's bar.
func (p *Parser) emit(pairs []byte, kind record.Kind, at float64, d *drawing, out object.Out) {
	rec := p.fill(pairs, kind, d.source, out)
	if at >= 0 {
		rec.Set(record.Iteration, at)
		if d.Elapsed > 0 {
			rec.Set(record.Duration, d.Elapsed)
		}
	}
	rec.Key = d.line
	out.Emit(rec)
}

// fill returns a record of pairs. NeMo's global_step is left out, since step has read it. "step_loss" is the loss if the pairs have no other.
func (p *Parser) fill(pairs []byte, kind record.Kind, source string, out object.Out) *record.Record {
	rec := out.Record()
	p.objects.Begin(rec)
	alone := bytes.Count(pairs, lossMark) == 1 // one name has "loss"
	for len(pairs) > 0 {
		var pair []byte
		pair, pairs, _ = bytes.Cut(pairs, pairMark)
		i := bytes.LastIndexByte(pair, '=')
		name := pair[:i]
		switch {
		case bytes.Equal(name, globalStep):
			continue
		case alone && bytes.Equal(name, stepLoss):
			name = lossName
		}
		p.objects.Field(name, pair[i+1:])
	}
	p.objects.End()
	rec.Source, rec.Kind = source, kind
	return rec
}

// value returns the number of a name among pairs, and its text; ok is false if the name is not there, or has no number.
func value(pairs, name []byte) (v float64, text []byte, ok bool) {
	for len(pairs) > 0 {
		var pair []byte
		pair, pairs, _ = bytes.Cut(pairs, pairMark)
		if rest, is := bytes.CutPrefix(pair, name); is && len(rest) > 1 && rest[0] == '=' {
			v, ok = decimal.Float(rest[1:])
			return v, rest[1:], ok
		}
	}
	return 0, nil, false
}

// leadingDigits returns the number in the digits at the beginning of b; NaN: none.
func leadingDigits(b []byte) float64 {
	n := 0
	for n < len(b) && ascii.IsDigit(b[n]) {
		n++
	}
	v, ok := decimal.Float(b[:n])
	if !ok {
		return math.NaN()
	}
	return v
}

// numberAtEnd returns the number at the end of a text such as "Eval stage of steps 100"; NaN: none.
func numberAtEnd(b []byte) float64 {
	v, ok := decimal.Float(b[bytes.LastIndexByte(b, ' ')+1:])
	if !ok {
		return math.NaN()
	}
	return v
}

// torchtuneDesc reads a description of torchtune's, "1|12|Loss: 2.345": epoch, step and loss. It returns false for another text.
func torchtuneDesc(b []byte) (epoch, step float64, loss []byte, ok bool) {
	first, rest, ok1 := bytes.Cut(b, []byte("|"))
	second, rest, ok2 := bytes.Cut(rest, []byte("|Loss: "))
	if !ok1 || !ok2 {
		return 0, 0, nil, false
	}
	epoch, ok1 = decimal.Float(first)
	step, ok2 = decimal.Float(second)
	return epoch, step, rest, ok1 && ok2
}

// torchtune emits the record of torchtune's bar, whose step and loss are in the description. The same description again is ignored.
func (p *Parser) torchtune(d *drawing, epoch, step float64, loss []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	seen := bytes.Equal(d.Desc, p.state.Desc)
	p.state.Desc = append(p.state.Desc[:0], d.Desc...)
	if seen {
		return tail.Ignored, nothingNew, true
	}
	rec := out.Record()
	rec.Source, rec.Key = Torchtune, d.line
	rec.Set(record.Iteration, step)
	rec.Set(record.Epoch, epoch)
	if v, ok := decimal.Float(loss); ok {
		rec.Set(record.Loss, v)
	} else {
		rec.AddExtra(record.Extra{Name: lossName, Text: loss})
	}
	d.setTime(rec)
	out.Emit(rec)
	return tail.Record, "", true
}

// Save implements tail.Handler.
func (p *Parser) Save() []byte {
	if p.state.Bars == nil {
		return nil
	}
	b, err := json.Marshal(&p.state)
	if err != nil {
		return nil // a speed of nearly 0 made an infinite time
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

// Package bar reads the records that trainers draw as tqdm's progress bars:
//
//	Epoch 0:  12%|█▎        | 1/8 [00:00<00:00, 41.65it/s, v_num=0, train_loss_step=16.20]              Lightning (callbacks/progress/tqdm_progress.py)
//	Epoch 0: :  47%|████▋     | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000, train_step_timing in s=49.50]        NeMo 1
//	Train step of epoch 0:   5%|▌   | 1/17 [00:04<00:32,  2.00s/it, gpt_loss=0.793, lr=1.25e-6]         OpenRLHF (trainer/sft_trainer.py and others)
//	train          Epoch   0:   12%|███▏   | 1/8 [00:00<00:00, 106.81ba/s, loss/train/total=11.5874]      Composer (loggers/progress_bar_logger.py)
//	1|12|Loss: 2.345:  10%|█   | 12/120 [00:10<01:30,  1.20s/it]                                        torchtune (recipes)
//
// and any other loop's set_postfix(loss=…). A bar is drawn again and again, so most drawings say nothing new:
//   - Lightning advances the bar first and then sets the postfix: the first postfix that differs from the one before belongs to the count beside it.
//   - In "for batch in tqdm(…)" the postfix is set first: the first drawing of a count has that count's postfix.
//   - Composer shows the batches that are done beside the loss of the one after them.
//   - torchtune prints the step's number into the description.
//
// Numbers in a postfix have three significant digits (tqdm, format_num). The speed is a mean, over the epoch or the last iterations.
package bar

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
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

// state is what was drawn last.
type state struct {
	Desc     []byte  `json:"desc,omitempty"`
	At       float64 `json:"at,omitempty"` // the iteration of the last record
	Training []byte  `json:"training,omitempty"`
	Results  []byte  `json:"results,omitempty"`
}

// Parser reads the lines of one stream. It is not safe for concurrent use.
type Parser struct {
	objects  *object.Parser
	state    state
	training []byte // the pairs of the postfix at hand that are about the step
	results  []byte // the pairs that are about an evaluation
}

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

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
	pairMark   = []byte(", ")
)

// Line reads one line, which holds one drawing of a bar. mine is false when it does not.
func (p *Parser) Line(b []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	d, n := tqdm.Parse(b)
	if n == 0 {
		return tail.Ignored, "", false
	}
	if epoch, step, loss, ok := torchtuneDesc(d.Desc); ok {
		return p.torchtune(b, &d, epoch, step, loss, out)
	}
	if len(d.Postfix) == 0 || !bytes.Contains(d.Postfix, lossMark) {
		return tail.Ignored, "", false // the dicts of other trainers stand behind bars
	}
	p.split(d.Postfix)
	source, epoch := Source, math.NaN()
	changes, isEval := false, false
	switch {
	case bytes.HasPrefix(d.Desc, epochMark):
		source = Lightning
		if bytes.Contains(d.Postfix, nemoLoss) {
			source = NeMo
		}
		epoch = number(d.Desc[len(epochMark):])
		changes = true
	case bytes.HasPrefix(d.Desc, composer):
		if !bytes.Contains(b, batches) && !bytes.Contains(b, perBatch) {
			return tail.Ignored, nothingNew, true // it counts samples or tokens
		}
		source, changes = Composer, true
		if rest, ok := bytes.CutPrefix(bytes.TrimLeft(d.Desc[len(composer):], " "), epochMark); ok {
			epoch = number(bytes.TrimLeft(rest, " "))
		}
		if d.Done < d.Total {
			d.Done++
		}
	case bytes.HasPrefix(d.Desc, rlhfEval):
		source, isEval = OpenRLHF, true
	default:
		if rest, ok := bytes.CutPrefix(d.Desc, rlhfSteps); ok {
			source = OpenRLHF
			epoch = number(rest)
		} else if bytes.HasPrefix(d.Desc, rlhfEpoch) {
			source = OpenRLHF
		}
	}
	found := false
	if isEval {
		if d.Done == d.Total && !bytes.Equal(p.results, p.state.Results) {
			found = p.emit(b, p.results, record.Evaluation, source, last(d.Desc), &d, out)
		}
	} else {
		at := d.Done
		if epoch > 0 {
			at += epoch * d.Total
		}
		isNew := at != p.state.At // bars are drawn once more when they are closed, beside the next one
		if changes {
			isNew = !bytes.Equal(p.training, p.state.Training)
		}
		// At 0 the bar shows the postfix that the epoch before left, or the first postfix before the bar goes on.
		if d.Done > 0 && isNew && hasLoss(p.training) {
			p.state.At = at
			found = p.step(b, source, at, epoch, &d, out)
		}
		if len(p.results) > 0 && !bytes.Equal(p.results, p.state.Results) && p.emit(b, p.results, record.Evaluation, source, math.NaN(), &d, out) {
			found = true
		}
	}
	if len(p.training) > 0 {
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

// split separates the pairs about the step from the pairs about an evaluation, and leaves out pairs about neither.
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

// hasLoss says whether pairs have a loss that is a number, and are not of a search over trials.
func hasLoss(pairs []byte) bool {
	for len(pairs) > 0 {
		var pair []byte
		pair, pairs, _ = bytes.Cut(pairs, pairMark)
		i := bytes.LastIndexByte(pair, '=')
		if i < 1 {
			continue
		}
		name := pair[:i]
		if _, ok := decimal.Float(pair[i+1:]); ok && bytes.Contains(name, lossMark) && !bytes.Contains(name, []byte("best")) && !bytes.Contains(name, []byte("min")) {
			return true
		}
	}
	return false
}

// step hands over the record of a step.
func (p *Parser) step(b []byte, source string, at, epoch float64, d *tqdm.Bar, out object.Out) bool {
	if v, text, ok := value(p.training, globalStep); ok {
		// NeMo counts steps from 0. From 1000 on tqdm rounds, and the bar's own count says which step it is.
		if bytes.IndexByte(text, 'e') < 0 {
			at = v
		} else if math.Abs(d.Done-1-v) <= 0.006*v {
			at = d.Done - 1
		}
	}
	rec := p.fill(p.training, record.Step, source, d, out)
	rec.Set(record.Iteration, at)
	if epoch >= 0 {
		rec.Set(record.Epoch, epoch)
	}
	rec.Key = b
	out.Emit(rec)
	return true
}

// emit hands over a result.
func (p *Parser) emit(b, pairs []byte, kind record.Kind, source string, at float64, d *tqdm.Bar, out object.Out) bool {
	rec := p.fill(pairs, kind, source, &tqdm.Bar{}, out)
	if at >= 0 {
		rec.Set(record.Iteration, at)
		if d.Elapsed > 0 {
			rec.Set(record.Duration, d.Elapsed)
		}
	}
	rec.Key = b
	out.Emit(rec)
	return true
}

// fill makes a record of pairs.
func (p *Parser) fill(pairs []byte, kind record.Kind, source string, d *tqdm.Bar, out object.Out) *record.Record {
	rec := out.Record()
	p.objects.Begin(rec)
	for len(pairs) > 0 {
		var pair []byte
		pair, pairs, _ = bytes.Cut(pairs, pairMark)
		i := bytes.LastIndexByte(pair, '=')
		name := pair[:i]
		if bytes.Equal(name, globalStep) {
			continue
		}
		p.objects.Field(name, pair[i+1:])
	}
	p.objects.End()
	rec.Source, rec.Kind = source, kind
	if kind == record.Step && !rec.Has(record.Duration) && d.Per > 0 {
		rec.Set(record.Duration, d.Per)
		rec.Of = record.Mean
	}
	return rec
}

// value finds the number of a name among pairs.
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

// number reads the digits that b begins with.
func number(b []byte) float64 {
	n := 0
	for n < len(b) && b[n]-'0' <= 9 {
		n++
	}
	v, ok := decimal.Float(b[:n])
	if !ok {
		return math.NaN()
	}
	return v
}

// last reads the number at the end of "Eval stage of steps 100".
func last(b []byte) float64 {
	v, ok := decimal.Float(b[bytes.LastIndexByte(b, ' ')+1:])
	if !ok {
		return math.NaN()
	}
	return v
}

// torchtuneDesc reads "1|12|Loss: 2.345".
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

func (p *Parser) torchtune(b []byte, d *tqdm.Bar, epoch, step float64, loss []byte, out object.Out) (v tail.Verdict, reason string, mine bool) {
	seen := bytes.Equal(d.Desc, p.state.Desc)
	p.state.Desc = append(p.state.Desc[:0], d.Desc...)
	if seen {
		return tail.Ignored, nothingNew, true
	}
	rec := out.Record()
	rec.Source, rec.Key = Torchtune, b
	rec.Set(record.Iteration, step)
	rec.Set(record.Epoch, epoch)
	if v, ok := decimal.Float(loss); ok {
		rec.Set(record.Loss, v)
	} else {
		rec.AddExtra(record.Extra{Name: lossName, Text: loss})
	}
	if d.Per > 0 {
		rec.Set(record.Duration, d.Per)
		rec.Of = record.Mean
	}
	out.Emit(rec)
	return tail.Record, "", true
}

// Save is as in tail.Handler.
func (p *Parser) Save() []byte {
	if p.state.Desc == nil {
		return nil
	}
	b, err := json.Marshal(&p.state)
	if err != nil {
		return nil // cannot be: texts and a finite number
	}
	return b
}

// Restore is as in tail.Handler.
func (p *Parser) Restore(saved []byte) {
	var s state
	if json.Unmarshal(saved, &s) == nil {
		p.state = s
	}
}

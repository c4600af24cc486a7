package bar

import (
	"bytes"
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// slow is the time per step, s, from which a bar called train without a loss reports steps at once.
const slow = 1

// mostHeld bounds the waiting drawings.
const mostHeld = 256

// held is a drawing of a bar without a loss. The drawing waits until the bar is finished, or mostHeld are waiting: other lines may have the same steps with a
// loss.
type held struct {
	At     float64  `json:"at"`               // the iteration
	Covers int64    `json:"covers,omitempty"` // number of steps since the drawing before
	Per    float64  `json:"per,omitempty"`    // the time of each, s
	Mean   bool     `json:"mean,omitempty"`   // Per is a mean
	Epoch  *float64 `json:"epoch,omitempty"`
	Source string   `json:"source"`
	Pairs  []byte   `json:"pairs,omitempty"` // of the postfix
}

// isTraining reports whether a description without numbers is a training's. "Train" is missing: ms-swift draws that bar beside its records.
func isTraining(desc []byte) bool {
	return string(desc) == "train" || string(desc) == "training" || string(desc) == "Training" || string(desc) == "train step"
}

// counting are the first words in names of bars that count steps, batches or epochs.
var counting = []string{"training", "train", "epochs", "epoch", "steps", "step", "iterations", "iteration", "iters", "iter", "batches", "batch"}

// otherDescs and otherUnits are parts of the descriptions, and of the speeds, of bars that count other units of work.
var (
	otherDescs = []string{"val", "eval", "test", "data", "load", "split", "token", "exampl", "sampl", "download", "cach", "file", "process", "gen", "shard"}
	otherUnits = []string{"B/s", "examples/s", "ex/s", "img/s", "images/s", "tok/s", "tokens/s", "files/s", "file/s", "samples/s", "rows/s"}
)

// countsSteps reports whether a bar without a loss counts steps, batches or epochs, by the first word of its description ("Training: 10%|…"), and because
// neither description nor speed names other work ("train data", "examples/s"). Composer's bars, bars without a total and long descriptions do not count.
func countsSteps(d *drawing) bool {
	if d.Total < 1 || len(d.Desc) > 64 || bytes.HasPrefix(d.Desc, composer) {
		return false
	}
	desc := strings.ToLower(string(d.Desc))
	is := false
	for _, word := range counting {
		if rest, ok := strings.CutPrefix(desc, word); ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
			is = true
			break
		}
	}
	if !is {
		return false
	}
	for _, part := range otherDescs {
		if strings.Contains(desc, part) {
			return false
		}
	}
	for _, unit := range otherUnits {
		if bytes.Contains(d.line, []byte(unit)) {
			return false
		}
	}
	return true
}

// count takes a drawing of a bar that counts steps. Drawings are held until a bar is finished, or mostHeld wait, since a loss in the bar, or lines of another
// format, may still have the steps. Then this bar is the log's count of steps: its held drawings are records, and further ones become records at once. Of
// nested bars the inner one counts: the inner bar finishes first.
func (p *Parser) count(d *drawing, out object.Out) (v tail.Verdict, reason string, mine bool) {
	b := d.bar
	if p.state.Counts != nil && *p.state.Counts != b.Name {
		return tail.Ignored, nothingNew, true
	}
	p.split(d.Postfix)
	p.identifyTrainer(d)
	if d.none || d.eval {
		return tail.Ignored, nothingNew, true
	}
	was := len(b.Held)
	at := d.Done // the iteration, over all epochs
	switch {
	case d.epochs > 0:
		at += d.epochs * d.Total
	case !(d.epoch >= 0): // the description has no epoch: finished bars of the name are the epochs before
		at += float64(b.Rounds) * d.Total
	}
	isNew := at != p.state.At && (was == 0 || b.Held[was-1].At != at)
	if d.Done > 0 && isNew {
		if was == 0 { // drop puts the mark back
			b.FromN, b.FromAt = b.Clock.FromN, b.Clock.FromAt
		}
		h := held{At: at, Source: d.source, Pairs: bytes.Clone(p.training)}
		h.Covers, h.Per, h.Mean = d.timePerStep()
		if d.epoch >= 0 {
			h.Epoch = &d.epoch
		}
		b.Held = append(b.Held, h)
	}
	finished := d.Done >= d.Total || d.begins
	waits := p.state.Counts == nil && !finished && len(b.Held) < mostHeld
	if waits || len(b.Held) == 0 {
		return tail.Ignored, nothingNew, true
	}
	p.state.Counts = &b.Name
	for i := range b.Held {
		p.emitHeld(&b.Held[i], d, out)
	}
	p.state.At, b.Held = b.Held[len(b.Held)-1].At, nil
	return tail.Record, "", true
}

// drop forgets the held drawings and moves the clock's mark back to before these: other drawings or lines have the steps, and the time since the mark is
// theirs.
func (b *bar) drop() {
	if len(b.Held) > 0 {
		b.Clock.FromN, b.Clock.FromAt, b.Held = b.FromN, b.FromAt, nil
	}
}

// emitHeld emits the record of a held drawing.
func (p *Parser) emitHeld(h *held, d *drawing, out object.Out) {
	rec := p.fill(h.Pairs, record.Step, h.Source, out)
	rec.Covers = h.Covers
	if h.Per > 0 && !math.IsInf(h.Per, 0) {
		rec.Set(record.Duration, h.Per)
		if h.Mean {
			rec.Of = record.Mean
		}
	}
	rec.Set(record.Iteration, h.At)
	if h.Epoch != nil {
		rec.Set(record.Epoch, *h.Epoch)
	}
	rec.Key = d.line
	out.Emit(rec)
}

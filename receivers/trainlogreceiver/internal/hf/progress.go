package hf

import (
	"math"

	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/tqdm"
)

// tqdm.write, by which the Trainer prints its records, takes the bar off (a line of blanks), writes, and draws the bar anew, with the step of
// the record. The bar goes to standard error, the record to standard output: in a file that has both, the record lies between the
// blanks and the bar when Python does not buffer, and many records further down when it does (or further up, where a launcher merges the two).
// Either way the n-th record is of the n-th write.

// write has the numbers of the bar that was drawn after a record was written.
type write struct {
	step, steps float64
	duration    float64 // s of one step, mean; 0: not known
}

// series is the drawings of one bar: they never go back.
type series struct {
	total, done, elapsed float64
	moved                bool
	// Where the time of the next write begins: at the write before, or at the first drawing that has moved, unless that drawing is of step 1.
	fromDone, fromElapsed float64
	// skipped is how many steps too many are in the bar's speed: the steps that a job did before it was resumed (or in the first 0.1 s
	// of a fast job) are one move that took no time.
	skipped float64
	// begun is the time of the bar from which on writes are told, and told what they took since, s.
	begun, told float64
}

// smoothing is the weight of a bar's last move in its speed (tqdm/std.py, __init__).
const smoothing = 0.3

func (s *series) fits(b *tqdm.Bar) bool {
	return s.total == b.Total && b.Done >= s.done && b.Elapsed >= s.elapsed
}

func (s *series) move(b *tqdm.Bar) {
	switch {
	case b.Done == s.done:
	case s.moved:
		s.skipped *= 1 - smoothing
	default:
		s.moved = true
		if b.Done > 1 {
			s.fromDone, s.fromElapsed, s.skipped = b.Done, b.Elapsed, b.Done
			s.begun = b.Elapsed
		}
	}
	s.total, s.done, s.elapsed = b.Total, b.Done, b.Elapsed
}

// write returns the numbers of the write after which the bar was drawn.
func (s *series) write(b *tqdm.Bar) write {
	w := write{step: b.Done, steps: b.Total}
	steps, took := b.Done-s.fromDone, b.Elapsed-s.fromElapsed
	s.fromDone, s.fromElapsed = b.Done, b.Elapsed
	stated := b.Per // smoothed over the steps before, and over evaluations among them
	if s.skipped > 0.05 {
		stated = 0
	}
	w.duration = s.settle(object.Mean(stated, took, steps), steps)
	return w
}

// settle keeps to the time of the bar, which is cut to whole seconds: a speed that is smoothed lags behind, and its errors would add up.
func (s *series) settle(each, steps float64) float64 {
	least := s.elapsed - s.begun - s.told
	if !(each > 0) || !(steps > 0) {
		s.told += max(0, least)
		return each
	}
	took := each * steps
	if settled := max(min(took, least+1), least); math.Abs(settled-took) <= mostSettled*took {
		took = settled
		s.told += took
	} else { // a bar is drawn late, or an evaluation lay between: from here on
		s.begun, s.told = s.elapsed, 0
	}
	return took / steps
}

// mostSettled is by which share of its length a step is settled.
const mostSettled = 0.05

// progress follows the bars of a log: the training's, and the bar of an evaluation, which is drawn below it meanwhile.
type progress struct {
	training, other series
	last            *series // the bar that was drawn last
	known           bool    // the bar in training is the training's for sure

	state  writing
	blanks int      // at cleared
	doubt  tqdm.Bar // at doubtful
	below  bool     // another bar was drawn since the training's moved

	writes []write // whose records have not come
	debt   int     // records whose writes have not come
	epoch  float64 // of the last of these records; NaN: it has none
	// An epoch has at least perEpoch steps and at most mostPerEpoch, by the records so far; 0: not known. NaN: they contradict one another.
	perEpoch, mostPerEpoch float64
}

// writing says how far a write has come.
type writing uint8

const (
	idle     writing = iota
	cleared          // a bar was taken off
	written          // and a record stands behind that
	doubtful         // and a bar that may be an evaluation's
)

// maxWrites bounds the writes that wait for their records: Python buffers 8 KB of them, a launcher some lines.
const maxWrites = 1024

// blank takes a line of blanks.
func (p *progress) blank() {
	switch p.state {
	case doubtful:
	case cleared:
		p.blanks++
	case idle, written:
		p.state, p.blanks = cleared, 1
	}
}

// record returns the write of a record: ok is false where it is not known yet. waits says that it may come.
func (p *progress) record(epoch float64) (w write, ok, waits bool) {
	if len(p.writes) > 0 {
		w, p.writes = p.writes[0], p.writes[1:]
		return w, p.agree(w, epoch), false
	}
	if p.state == cleared { // this record, whatever was printed before past the bar
		p.state, p.debt = written, 0
	} else {
		p.state = idle // records in a row
	}
	p.debt++
	p.epoch = epoch
	return write{}, false, p.last != nil
}

// text takes any other line.
func (p *progress) text() { p.state = idle }

// bar takes a bar. ok is true when it says the step of the record that came last and waits for it.
func (p *progress) bar(b *tqdm.Bar) (w write, ok bool) {
	before := p.training.done
	s := p.draw(b)
	below := p.below
	p.below = s == &p.other || below && b.Done == before
	switch p.state {
	case idle:
		return write{}, false
	case cleared, written:
		if p.state == cleared && p.blanks == 1 && below && !p.below { // it was the other bar that was taken off, at its end
			p.state = idle
			return write{}, false
		}
		if p.known && s == &p.other {
			p.state, p.doubt = doubtful, *b
			p.doubt.Desc, p.doubt.Postfix = nil, nil
			return write{}, false
		}
	case doubtful:
		if s == &p.other { // another job began: of an evaluation's write, the bar of the training would follow
			b = &p.doubt
		}
	}
	p.state = idle
	if s == &p.other {
		p.training, p.other = p.other, p.training
		p.last, p.perEpoch, p.mostPerEpoch, p.writes, p.debt = &p.training, 0, 0, nil, min(p.debt, 1)
	}
	p.known = true
	w = p.training.write(b)
	switch {
	case p.debt > 0:
		p.debt--
		return w, p.debt == 0 && p.agree(w, p.epoch)
	case len(p.writes) < maxWrites:
		p.writes = append(p.writes, w)
	default: // the records of the writes are in another file
		p.writes = p.writes[:0]
		p.perEpoch = math.NaN()
	}
	return w, false
}

// draw finds the series of a bar: where it may be either, the series that it moves less.
func (p *progress) draw(b *tqdm.Bar) *series {
	s := &p.other
	switch training, other := p.training.fits(b), p.other.fits(b); {
	case p.last == nil: // the first bar is the training's, as far as is known
		s = &p.training
	case training && other && p.training.done != p.other.done:
		if p.training.done > p.other.done {
			s = &p.training
		}
	case training && other:
		s = p.last
	case training:
		s = &p.training
	case !other:
		*s = series{}
	}
	s.move(b)
	p.last = s
	return s
}

// rounded is by how much an epoch may be off: older releases of the Trainer print two digits of it.
const rounded = 0.005

// agree says whether step and epoch are as in the records before. Where they differ, a write or a record was lost: then no more records are numbered until
// another bar begins.
func (p *progress) agree(w write, epoch float64) bool {
	if math.IsNaN(p.perEpoch) {
		return false
	}
	if !(epoch > 0) || w.step == 0 {
		return true
	}
	least, most := 0.998*w.step/(epoch+rounded), math.Inf(1)
	if epoch > rounded {
		most = 1.002 * w.step / (epoch - rounded)
	}
	if p.perEpoch > 0 {
		least, most = max(least, p.perEpoch), min(most, p.mostPerEpoch)
	}
	if least > most {
		p.perEpoch = math.NaN()
		return false
	}
	p.perEpoch, p.mostPerEpoch = least, most
	return true
}

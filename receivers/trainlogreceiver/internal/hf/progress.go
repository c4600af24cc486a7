package hf

import (
	"math"

	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/tqdm"
)

// The Trainer prints its records by tqdm.write, which erases the bar (a line of blanks), writes, and draws the bar anew, with the step of the record. The bar
// goes to standard error, the record to standard output: in a file with both, an unbuffered record lies between the blanks and the bar, and a buffered record
// many records further down (or further up, where a launcher merges the two). Either way the n-th record is of the n-th write. The states of a write
// (progress.state), by line:
//
//	            blank line       record without a write    bar                                               other line
//	idle        cleared          idle                      idle                                              idle
//	cleared     cleared          written                   idle: the write is complete, or ambiguous (1),    idle
//	                                                       or idle without a write (2)
//	written     cleared          idle                      idle: the write is complete, or ambiguous (1)     idle
//	ambiguous   ambiguous        idle                      idle: the write is complete (3)                   idle
//
//	(1) the bar is known to differ from the training's: the bar of an evaluation, or of another job.
//	(2) one line of blanks while two bars were drawn, and then the training's moves: the bar of a finished evaluation was erased. A write erases both bars,
//	    with two lines.
//	(3) the training's bar: the write of an evaluation. The other bar again: another job began, and the write is the one at (1).

// write has the numbers of the bar drawn after a record was written.
type write struct {
	step, steps float64 // drawn count and total
	took        float64 // s since the write before, NaN: unknown
	covers      float64 // steps since the write before
}

// series is the drawings of one bar, in ascending order.
type series struct {
	clock tqdm.Clock
	// The first count drawn after 0, if more than 1, and its time, s: a resumed job skips the earlier steps in one move, and a fast job does not draw its first
	// steps.
	firstDone, firstElapsed float64
	moved                   bool // a count above 0 was drawn
	marked                  bool // a write was taken
}

// fits reports whether a drawing may be the next one of the series: the same total, and neither count nor time falls.
func (s *series) fits(b *tqdm.Bar) bool {
	return s.clock.Begun && s.clock.Total == b.Total && b.Done >= s.clock.Seen && b.Elapsed >= s.clock.Elapsed
}

// near reports whether a drawing's speed is about the speed of the one before.
func (s *series) near(b *tqdm.Bar) bool {
	return s.clock.Per == 0 || b.Per == 0 || b.Per < 2*s.clock.Per && s.clock.Per < 2*b.Per
}

// move adds a drawing to the series.
func (s *series) move(b *tqdm.Bar) {
	if another := s.clock.Draw(b, false); another {
		*s = series{clock: s.clock}
	}
	if !s.moved && b.Done > 0 {
		s.moved = true
		if b.Done > 1 {
			s.firstDone, s.firstElapsed = b.Done, s.clock.At
		}
	}
}

// write returns the numbers of the write (of a record) before the bar's drawing b, with the steps and the time since the previous write. The steps skipped by a
// resumed job are not counted. The time is 0 if no step was made, and NaN if the clock only guesses.
func (s *series) write(b *tqdm.Bar) write {
	w := write{step: b.Done, steps: b.Total}
	took, steps, guessed := s.clock.Since()
	if steps <= 0 {
		return w
	}
	if !s.marked && s.firstDone > 0 && s.resumed() {
		took, steps = took-s.firstElapsed, steps-s.firstDone
		guessed = guessed || s.clock.N == s.firstDone // no speed was drawn since: the known time is of the skipped steps alone
	}
	s.clock.Mark()
	s.marked = true
	w.took, w.covers = took, max(steps, 0)
	if guessed {
		w.took = math.NaN()
	}
	return w
}

// The first drawing of a fast job after 0 comes as soon as 0.1 s are over (tqdm/std.py, mininterval); later steps of a resumed job take longer.
const (
	soon   = 0.2 // s
	longer = 3   // times
)

// resumed reports whether the steps up to firstDone were done by an earlier job: they took much less time each than the later steps; without later steps,
// whether the first drawing came too late for a fast job.
func (s *series) resumed() bool {
	if more := s.clock.N - s.firstDone; more > 0 {
		return (s.clock.At-s.firstElapsed)/more > longer*s.firstElapsed/s.firstDone
	}
	return s.firstElapsed >= soon
}

// progress follows the bars of a log: the training's, and the bar of an evaluation, drawn below the training's meanwhile.
type progress struct {
	training, other series  // the training's bar, and another: an evaluation's, or that of the next job
	last            *series // the bar drawn last; nil: none
	known           bool    // the bar in training is the training's for sure

	state     writing
	blanks    int   // lines of blanks in a row, at cleared
	uncertain write // at ambiguous
	below     bool  // another bar was drawn since the training's moved

	since   write   // numbers of other records' writes since the last step's record
	aside   float64 // s of evaluations meanwhile
	untimed float64 // steps meanwhile before broken evaluations: their time is unknown
	writes  []write // without their records so far
	pending int     // records without their writes so far
	epoch   float64 // of the last pending record; NaN: none
	// An epoch has at least perEpoch steps and at most mostPerEpoch, by the records so far; 0: unknown. NaN: contradictory records.
	perEpoch, mostPerEpoch float64
}

// writing is the state of a write.
type writing uint8

const (
	idle      writing = iota
	cleared           // a bar was taken off
	written           // followed by a record
	ambiguous         // followed by a bar that may be an evaluation's
)

// maxWrites bounds the writes that wait for their records: Python buffers 8 KB of them, a launcher some lines.
const maxWrites = 1024

// blank handles a line of blanks: a bar was erased.
func (p *progress) blank() {
	switch p.state {
	case ambiguous:
	case cleared:
		p.blanks++
	case idle, written:
		p.state, p.blanks = cleared, 1
	}
}

// record returns the write of a record, the first of those without their records (n-th record, n-th write); ok is false while unknown, or if write and record
// disagree. waits says that the write may come: then bar returns it.
func (p *progress) record(epoch float64) (w write, ok, waits bool) {
	if len(p.writes) > 0 {
		w, p.writes = p.writes[0], p.writes[1:]
		return w, p.agree(w, epoch), false
	}
	if p.state == cleared { // this record, whatever was printed earlier past the bar
		p.state, p.pending = written, 0
	} else {
		p.state = idle // records in a row
	}
	p.pending++
	p.epoch = epoch
	return write{}, false, p.last != nil
}

// text handles any other line: what was written is no record.
func (p *progress) text() { p.state = idle }

// bar takes a bar, as the table above says. ok: the bar completes the last pending record, with the numbers w. A write without a record waits in writes. A
// write completed by the other bar makes that bar the training's: another job began, or the first bar was not the training's. Then counts start anew (nextJob).
func (p *progress) bar(b *tqdm.Bar) (w write, ok bool) {
	before := p.training.clock.Seen
	s := p.draw(b)
	below := p.below
	p.below = s == &p.other || below && b.Done == before // the training's bar drawn at the same count does not move
	switch p.state {
	case idle:
		return write{}, false
	case cleared, written:
		// The erased bar was the other one, finished: a write would have erased both, with a line of blanks each.
		if p.state == cleared && p.blanks == 1 && below && !p.below {
			p.state = idle
			return write{}, false
		}
		if p.known && s == &p.other { // an evaluation's bar, or the first of another job: the next bar tells
			p.state, p.uncertain = ambiguous, s.write(b)
			return write{}, false
		}
	}
	if p.state == ambiguous && s == &p.other { // another job: of an evaluation's write, the bar of the training would follow
		w = p.uncertain
	} else {
		w = s.write(b)
	}
	p.state = idle
	if s == &p.other {
		p.nextJob()
	}
	p.known = true
	switch {
	case p.pending > 0:
		p.pending--
		return w, p.pending == 0 && p.agree(w, p.epoch)
	case len(p.writes) < maxWrites:
		p.writes = append(p.writes, w)
	default: // the records of the writes are in another file
		p.writes = p.writes[:0]
		p.perEpoch = math.NaN()
	}
	return w, false
}

// nextJob makes the other bar the training's, and forgets what is known of the job before. Of its pending records, one may be the new job's first.
func (p *progress) nextJob() {
	p.training, p.other = p.other, p.training
	p.last, p.perEpoch, p.mostPerEpoch, p.writes, p.pending = &p.training, 0, 0, nil, min(p.pending, 1)
	p.begin()
}

// begin forgets the steps so far: the next step's record counts its steps from here.
func (p *progress) begin() { p.since, p.aside, p.untimed = write{}, 0, 0 }

// draw takes a drawing into the series it belongs to, and returns the series. A drawing that fits neither begins a new other series.
func (p *progress) draw(b *tqdm.Bar) *series {
	var s *series
	switch training, other := p.training.fits(b), p.other.fits(b); {
	case p.last == nil: // the first bar is the training's, as far as is known
		s = &p.training
	case training && other:
		s = p.likelier(b)
	case training:
		s = &p.training
	case other:
		s = &p.other
	default:
		s = &p.other
		*s = series{}
	}
	s.move(b)
	p.last = s
	return s
}

// likelier returns the series of a drawing that fits both: of equal counts the one drawn last, else the one with about the same speed, else the one with the
// higher count, which moves less.
func (p *progress) likelier(b *tqdm.Bar) *series {
	training, other := &p.training, &p.other
	switch near, otherNear := training.near(b), other.near(b); {
	case training.clock.Seen == other.clock.Seen:
		return p.last
	case near && !otherNear:
		return training
	case otherNear && !near:
		return other
	case training.clock.Seen > other.clock.Seen:
		return training
	}
	return other
}

// rounded is the possible error of an epoch: older releases of the Trainer print two digits.
const rounded = 0.005

// agree reports whether step and epoch agree with the records before: step / epoch, the number of steps in an epoch, is the same for all, within the rounding
// of the printed epoch and 0.2 % (since Transformers 5 an epoch has four significant digits). A contradiction means a lost write or record: then no more
// records are numbered until another bar begins.
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

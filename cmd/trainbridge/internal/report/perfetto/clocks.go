package perfetto

import (
	"cmp"
	"math"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/spans"
)

// clock is how far the clock of a host is ahead of the reference host's, as a span of a rank in a collective says.
type clock struct {
	offset, uncertainty float64 // s
	at                  int64   // when: ns since the Unix epoch
	known               bool
}

// clockEvery is how far instants about a clock are apart at least, ns: clocks drift.
const clockEvery = 1e9

// news says whether a measurement is worth an instant: the first, or one that differs from the last written offset by more than the errors of both, clockEvery
// or more after.
func (c clock) news(last clock) bool {
	if !last.known {
		return true
	}
	apart := c.at - last.at
	return (apart >= clockEvery || apart <= -clockEvery) && math.Abs(c.offset-last.offset) > c.uncertainty+last.uncertainty
}

// clock writes an instant about the offset c, which the span of a rank states, on the clock track of the rank's host, if it is news. Without a host in the log,
// each rank counts as a host of its own.
func (w *Writer) clock(it *item, s *source, c clock) {
	if !spans.Finite(c.uncertainty) { // no number: as if the span stated none
		c.uncertainty = 0
	}
	c.at = it.start
	var at where
	at.read(it.span.Attributes(), s)
	o := s.owner
	o.host = at.host
	p := w.tracks.process(o)
	last, whose := &p.clock, at.host
	if whose == "" {
		last, whose = &it.track.clock, it.track.name
	}
	if !c.news(*last) {
		return
	}
	*last = c
	o.host = "" // the process of the whole job has the reference host
	job := w.tracks.process(o)
	uuid := w.tracks.single(who{process: p, what: clocks, number: -1})
	w.beginAt(it.start)
	event := w.event(typeInstant, uuid)
	w.name(c.sentence(whose, job.reference))
	w.category("clock")
	w.doubleAnnotation(spans.AttrNCCLClockOffset, c.offset)
	w.doubleAnnotation(spans.AttrNCCLClockUncertainty, c.uncertainty)
	if job.reference != "" {
		w.textAnnotation(spans.AttrNCCLClockReference, job.reference)
	}
	w.boolAnnotation(spans.AttrNCCLClockCorrected, job.corrected)
	w.raw = shut(w.raw, event)
	w.end()
}

// sentence says how far a clock is off: "node-1 is 1.234 ms ahead of node-0, ± 66 µs".
func (c clock) sentence(whose, reference string) string {
	if whose == reference {
		return whose + " has the clock that others are compared with"
	}
	direction := " ahead of "
	if c.offset < 0 {
		direction = " behind "
	}
	return whose + " is " + human.Seconds(math.Abs(c.offset)) + direction + cmp.Or(reference, "the reference") + ", ± " + human.Seconds(c.uncertainty)
}

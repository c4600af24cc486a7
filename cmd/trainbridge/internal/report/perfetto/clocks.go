package perfetto

import (
	"cmp"
	"math"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/spans"
)

// clock is how far the clock of a host is ahead of the reference host's, as a rank of a collective says, s.
type clock struct {
	offset, uncertainty float64
	at                  int64 // when: ns since the Unix epoch
	known               bool
}

// clockEvery is how far instants about a clock are apart at least, ns: clocks drift.
const clockEvery = 1e9

// news says whether a measurement differs from the last written offset by more than the errors of both.
func (c clock) news(last clock) bool {
	if !last.known {
		return true
	}
	apart := c.at - last.at
	return (apart >= clockEvery || apart <= -clockEvery) && math.Abs(c.offset-last.offset) > c.uncertainty+last.uncertainty
}

// clock writes an instant on the clock track of the rank's host, the first time and at each change of the offset. Without a host in the log, each rank has
// its own clock.
func (w *Writer) clock(it *item, s *source, c clock) {
	if !spans.Finite(c.uncertainty) {
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
	o.host = ""
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

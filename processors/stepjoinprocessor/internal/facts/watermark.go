package facts

import (
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// Watermark is a watermark of a source of collectives. Times are ns.
type Watermark struct {
	Source        string // must not share reused memory
	Epoch, Number int64  // watermarks of an epoch are numbered from 1
	First         bool   // nothing was sent before
	Until         int64  // everything that began before is sent; 0: unknown yet
	Sent          int64  // the latest end sent, also in earlier epochs
}

// mark is the last watermark of a source.
type mark struct {
	epoch, number, until int64
	midway               bool // spans sent before this epoch, or before the first watermark here, may have gone to another gateway, to an extent not stated yet
}

// maxMarks bounds the sources of collectives of a run.
const maxMarks = 4096

// Watermark takes a watermark of a source of collectives. A process that reads a Kafka partition without a gap misses nothing. Any other process, after a
// missed watermark or with a source seen first midway, may lack spans sent until then.
func (r *Run) Watermark(w *Watermark) {
	m, known := r.marks[w.Source]
	switch {
	case !known && len(r.marks) >= maxMarks, known && (w.Epoch < m.epoch || w.Epoch == m.epoch && w.Number <= m.number):
		return
	case !known:
		m.midway = !w.First && (r.takenOver || r.Partition == "")
	case r.Partition != "":
	case w.Epoch != m.epoch:
		m.midway = !w.First
	case w.Number != m.number+1:
		r.Loses(w.Sent, spans.PartialRestart)
	}
	if m.midway {
		r.Loses(w.Sent, spans.PartialRestart)
		m.midway = w.Until == 0
	}
	m.epoch, m.number, m.until = w.Epoch, w.Number, max(m.until, w.Until)
	r.setMark(w.Source, m)
}

func (r *Run) setMark(source string, m mark) {
	if r.marks == nil {
		r.marks = map[string]mark{}
	}
	r.marks[source] = m
}

// Misses records that another process has read facts of the run. The next watermark of each source bounds the missed part.
func (r *Run) Misses(now time.Time) {
	r.takenOver, r.unsettled, r.Since = true, true, now
	for source, m := range r.marks {
		m.midway, m.until = true, 0
		r.marks[source] = m
	}
}

// Awaits says whether a source of collectives has not sent everything that began until a time, or may still be unknown, for at most limit: for a run from
// Kafka, a source taken over by another gateway is silent meanwhile, and a process new to the run does not know the number of sources.
func (r *Run) Awaits(until int64, now time.Time, limit time.Duration) bool {
	if r.Partition != "" && (len(r.marks) == 0 || r.takenOver) && now.Sub(r.Since) < limit {
		return true
	}
	for _, m := range r.marks {
		if m.until < until {
			return true
		}
	}
	return false
}

// Settle marks the windows of a run taken over as incomplete, if no watermark has come for limit: a source may exist.
func (r *Run) Settle(now time.Time, limit time.Duration) {
	if !r.unsettled || now.Sub(r.Since) < limit {
		return
	}
	r.unsettled = false
	if len(r.marks) == 0 {
		r.Loses(r.Reached(), spans.PartialRestart)
	}
}

package facts

import (
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// Watermark says how far a source has sent its collectives: gateways that join ranks send one a second. Times are ns. See docs/reference/adr/0025.
type Watermark struct {
	Source        string // the topic and the partition of the ranks' records; must not share reused memory
	Epoch, Number int64  // the source's start, and the number of the watermark since, from 1
	First         bool   // the first of the run: nothing was sent before; of a later one, others may have sent all up to Sent
	Until         int64  // everything that began before is sent; 0: unknown yet
	Sent          int64  // the latest end sent, also in earlier epochs
	Unreadable    int64  // the latest end of records that the source could not read; 0: none
}

// mark is what the watermarks of a source have said so far.
type mark struct {
	epoch, number, until int64
	midway               bool // spans sent before this epoch, or before the first watermark here, may have gone to another gateway, to an extent not stated yet
}

// maxMarks bounds the sources of collectives of a run.
const maxMarks = 4096

// Watermark applies a watermark of a source of collectives: how far its collectives are sent (Awaits), and whether some went to another gateway (MarkLost).
//
// A process that reads a Kafka partition without a gap misses nothing. Any other process, after a missed watermark or with a source seen first midway, may lack
// spans sent until then.
func (r *Run) Watermark(w *Watermark) {
	m, known := r.marks[w.Source]
	isRepeat := known && (w.Epoch < m.epoch || w.Epoch == m.epoch && w.Number <= m.number)
	switch {
	case !known && len(r.marks) >= maxMarks, isRepeat:
		return
	case !known:
		m.midway = !w.First || w.Number > 1 // the run was another's, or comes by another partition since partitions were added
	case w.First: // again: the topic was made anew, and what waited for other ranks is gone with the old one; or partitions were added
		m.midway = true
	case r.Partition != "" && (w.Epoch == m.epoch || !r.mayHaveMissed(w.Epoch)): // a gap in the partition is recorded by MarkMissed
	case w.Epoch != m.epoch: // the source was restarted
		m.midway = true
	case w.Number != m.number+1: // a watermark, and spans, went elsewhere
		r.MarkLost(w.Sent, spans.PartialRestart)
	}
	if m.midway {
		r.MarkLost(w.Sent, spans.PartialRestart)
		m.midway = w.Until == 0 // else the watermark says how much went elsewhere
	}
	if w.Unreadable > 0 {
		r.MarkLost(w.Unreadable, spans.PartialUnreadable)
	}
	m.epoch, m.number, m.until = w.Epoch, w.Number, max(m.until, w.Until)
	r.setMark(w.Source, m)
}

// mostApart is a bound of the difference of two gateways' clocks.
const mostApart = time.Minute

// mayHaveMissed reports whether a reader of a source, by its epoch, may have sent collectives before this process took the run over. The first watermark since
// then may be of a reader before, which did not know that the source was another's already.
func (r *Run) mayHaveMissed(epoch int64) bool {
	return r.takenOver && epoch < r.Since.Add(mostApart).UnixNano()
}

// setMark stores the state of a source.
func (r *Run) setMark(source string, m mark) {
	if r.marks == nil {
		r.marks = map[string]mark{}
	}
	r.marks[source] = m
}

// MarkMissed records that another process has read facts of the run, since it read the Kafka partition for a while. The next watermark of each source limits
// the missed part.
func (r *Run) MarkMissed(now time.Time) {
	r.takenOver, r.unsettled, r.Since = true, true, now
	for source, m := range r.marks {
		m.midway, m.until = true, 0
		r.marks[source] = m
	}
}

// Awaits reports whether a source of collectives may still send collectives that began before the time until, ns. For a run from Kafka, for at most limit, a
// source may also be unknown yet: a source taken over by another gateway is silent meanwhile, and a process new to the run does not know the number of sources.
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

// Settle is called with each sweep. If limit has passed since a run was taken over and no watermark ever came, it marks the windows so far as incomplete:
// sources may exist, and nothing says what they sent to another gateway. If a watermark has come, the next one says (Watermark).
func (r *Run) Settle(now time.Time, limit time.Duration) {
	if !r.unsettled || now.Sub(r.Since) < limit {
		return
	}
	r.unsettled = false
	if len(r.marks) == 0 {
		r.MarkLost(r.Reached(), spans.PartialRestart)
	}
}

package facts

import "github.com/trainbridge/trainbridge/spans"

// Word is what a source of collectives says of how far it has come. Times are ns.
type Word struct {
	Source        string // must not share memory that is written again
	Epoch, Number int64  // words of an epoch are numbered from 1
	First         bool   // nothing was sent before
	Until         int64  // all that began before is sent; 0: it cannot say yet
	Sent          int64  // the latest end of what was sent, also in earlier epochs
}

// mark is what a source has said last.
type mark struct {
	epoch, number, until int64
	midway               bool // what was sent before this epoch, or before it was heard of, may have gone to another, and how much that is was not said yet
}

// maxMarks bounds the sources of collectives of a run.
const maxMarks = 4096

// Hear takes in what a source of collectives says. Who missed a word, as Kafka gave the partition to another for a while, or hears of the source midway, may
// lack what was sent until then.
func (r *Run) Hear(w *Word) {
	m, known := r.marks[w.Source]
	switch {
	case !known && len(r.marks) >= maxMarks, known && (w.Epoch < m.epoch || w.Epoch == m.epoch && w.Number <= m.number):
		return
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
	if r.marks == nil {
		r.marks = map[string]mark{}
	}
	r.marks[w.Source] = m
}

// Awaits says whether a source of collectives has not sent all that began until a time.
func (r *Run) Awaits(until int64) bool {
	for _, m := range r.marks {
		if m.until < until {
			return true
		}
	}
	return false
}

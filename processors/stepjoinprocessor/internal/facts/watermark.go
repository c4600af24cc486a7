package facts

import "github.com/trainbridge/trainbridge/spans"

// mark is how far a source of collectives has come.
type mark struct {
	until  int64 // when the first began that is not here, ns; 0: not known yet
	midway bool  // what it had sent before it was heard of went to another
}

// maxMarks bounds the sources of collectives of a run.
const maxMarks = 4096

// Sent notes that a source of collectives has sent all that began until a time, 0 where it cannot say yet, and the latest end of what it sent, ns. What it sent
// before it was heard of, where that is not its first word, went to another.
func (r *Run) Sent(source string, until, latest int64, first bool) {
	m, known := r.marks[source]
	if !known {
		if len(r.marks) >= maxMarks {
			return
		}
		if r.marks == nil {
			r.marks = map[string]mark{}
		}
		source, m.midway = string([]byte(source)), !first
	}
	if m.midway && m.until == 0 {
		r.Loses(latest, spans.PartialRestart)
	}
	m.until = max(m.until, until)
	r.marks[source] = m
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

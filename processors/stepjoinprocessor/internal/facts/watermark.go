package facts

import "github.com/trainbridge/trainbridge/spans"

// maxMarks bounds the sources of collectives of a run.
const maxMarks = 4096

// Sent notes that a source of collectives has sent all that began until a time, and the latest end of what it sent, ns. What it sent before the first word
// that is heard of it, where that is not its first, went to another.
func (r *Run) Sent(source string, until, latest int64, first bool) {
	was, known := r.marks[source]
	switch {
	case !known && len(r.marks) >= maxMarks:
		return
	case !known:
		if r.marks == nil {
			r.marks = map[string]int64{}
		}
		source = string([]byte(source))
		if !first {
			r.Loses(latest, spans.PartialRestart)
		}
	}
	r.marks[source] = max(was, until)
}

// Awaits says whether a source of collectives has not sent all that began until a time.
func (r *Run) Awaits(until int64) bool {
	for _, at := range r.marks {
		if at < until {
			return true
		}
	}
	return false
}

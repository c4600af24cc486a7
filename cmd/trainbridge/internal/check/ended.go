package check

import (
	"strings"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
)

// ended reports the runs that ended in an error, or were ended, and those that wait for their first step.
func (r *rules) ended() {
	for _, job := range r.watch.jobs.Rows() {
		const ranks, lastStep, planned = 0, -1, 0 // unknown: check counts none
		end := postmortem.Of(&job.Ends, r.got.FilesOf(job.Run), ranks, lastStep, planned)
		if !end.Failed() && end.Kind != postmortem.KindWaiting {
			continue
		}
		var seen []place
		for _, e := range end.Evidence[:min(len(end.Evidence), mostPlaces)] {
			at := place{File: r.got.Name(e.At.File), Text: e.Text}
			if e.At.Offset >= 0 {
				at.Line = r.got.LineAt(e.At.File, e.At.Offset)
			}
			seen = append(seen, at)
		}
		f := finding{
			Name: "run_ended", Off: true, What: strings.TrimSuffix(end.Sentence, "."), Seen: seen,
			Why: "The run ended in an error: trainbridge report has the evidence.", Fix: end.Advice,
		}
		switch events.Class(end.Kind) {
		case events.ClassCancelled, events.ClassTimeLimit, postmortem.KindSIGTERM:
			f.Why = "The run was ended from outside: trainbridge report has the evidence."
		case postmortem.KindWaiting:
			f = finding{Name: "run_waits", What: f.What, Seen: seen, Why: "No step has come so far: the run waits, or was ended while waiting.", Fix: end.Advice}
		}
		r.find(f)
	}
}

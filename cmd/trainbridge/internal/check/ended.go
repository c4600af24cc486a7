package check

import (
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
)

// ended reports the runs that ended in an error.
func (r *rules) ended() {
	for _, job := range r.watch.jobs.Rows() {
		const ranks, lastStep, planned = 0, -1, 0 // unknown: check counts none
		end := postmortem.Of(&job.Ends, r.got.FilesOf(job.Run), ranks, lastStep, planned)
		if !end.Failed() {
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
		r.find(finding{
			Name: "run_ended", Off: true, What: strings.TrimSuffix(end.Sentence, "."), Seen: seen,
			Why: "The run ended in an error: trainbridge report has the evidence.", Fix: end.Advice,
		})
	}
}

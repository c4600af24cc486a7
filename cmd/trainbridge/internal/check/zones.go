package check

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
)

// shifted adds findings about logs whose stamps, without a zone, are in a different zone from the one assumed. A shift groups the logs of a run with the same
// lead: each shift makes one finding, which states the lead of its first log and has the flags for all.
func (r *rules) shifted() {
	for _, s := range r.got.Shifts {
		var seen []place
		var flags []string
		for _, f := range s.Files {
			seen = append(seen, place{File: f.Name})
			flags = append(flags, fmt.Sprintf("--timezone '%s=%s'", filepath.Base(f.Path), s.Zone))
		}
		last := s.Files[len(s.Files)-1]
		receiver, _, _ := strings.Cut(last.Receiver, "/") // the type without the name; mostly all files have the same receiver
		ahead, which := s.Ahead.Seconds(), "ahead of"
		if ahead < 0 {
			ahead, which = -ahead, "behind"
		}
		r.find(finding{
			Name: "timezone", Off: true,
			What: fmt.Sprintf("%s is %s %s %s and states no time zone", s.Files[0].Name, human.Seconds(ahead), which, s.Other), Seen: seen,
			Why: "The logs of the run cannot be aligned, so slow steps are not explained.",
			Fix: fmt.Sprintf("Add %s here, to report, compare and replay; set 'timezone: %q' for %s of a collector.", strings.Join(flags, " "), s.Zone, receiver),
		})
	}
}

// adrift is the least difference of the clocks of a job's hosts that is a problem, s: clocks set by NTP are nearer.
const adrift = 0.01

// clocks reports the runs whose hosts' clocks differ, as the collectives of NCCL show: a problem from adrift on, else a note.
func (r *rules) clocks() {
	for _, run := range slices.Sorted(maps.Keys(r.watch.runs)) {
		f := r.watch.runs[run]
		if f.apart <= 0 {
			continue
		}
		r.find(finding{
			Name: "clocks_apart", Off: f.apart >= adrift, What: "The clocks of the hosts are " + human.Seconds(f.apart) + " apart", Seen: r.places(f.apartIn),
			Why: "Events of other hosts are placed in a step only if they lasted four times as long.",
			Fix: "Set the clocks by NTP or PTP; of finished logs, set correct_clock of the receiver nccl.",
		})
	}
}

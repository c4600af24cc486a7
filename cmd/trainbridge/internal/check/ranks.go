package check

import (
	"fmt"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// ranks reports communicators of NCCL with ranks without a log, or with a log that ends before the others: up to three per run, and how many more there are.
func (r *rules) ranks() {
	for _, job := range r.watch.jobs.Rows() {
		all := job.Collectives.Unheard()
		for i := range all[:min(len(all), mostPlaces)] {
			r.unheard(&all[i])
		}
		if more := len(all) - mostPlaces; more > 0 {
			r.find(finding{
				Name: "nccl_ranks_unheard", Off: true, What: count(int64(more), "more communicator has", "more communicators have") + " ranks without a whole log",
				Why: whyUnheard, Fix: "As above.",
			})
		}
	}
}

const whyUnheard = "Late ranks and a slow network look the same."

// unheard reports a communicator: ranks without a log, and ranks whose logs end early.
func (r *rules) unheard(u *digest.Unheard) {
	if n := u.Size - u.Heard; n > 0 {
		what := fmt.Sprintf("%s of the %s ranks of communicator %s have a log", human.Thousands(u.Heard), human.Thousands(u.Size), u.Name)
		if len(u.None) > 0 {
			what += ", and none is of " + human.Ranks(u.None)
		}
		r.find(finding{
			Name: "nccl_ranks_unheard", Off: u.Heard > 1, // a single log is a choice
			What: what, Why: whyUnheard, Fix: "Read the logs of all ranks: give the directory that has them all, and look whether these processes write theirs.",
		})
	}
	if ranks, missed := u.Ended(); len(ranks) > 0 {
		r.find(finding{
			Name: "nccl_ranks_end_early", Off: true,
			What: fmt.Sprintf("The logs of %s of communicator %s end %s before those of the others",
				human.Ranks(ranks), u.Name, count(missed, "collective", "collectives")),
			Why: whyUnheard, Fix: "See whether the process ended early, its disk was full, or its log was not copied whole.",
		})
	}
}

package why

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// run has the sums over the windows of a run: the costs of causes, and the data of WhatIf.
type run struct {
	costs    map[blame]*Cost
	steps    int64                     // of WhatIf
	duration float64                   // s, of these steps
	waited   float64                   // s, in these steps, for anyone
	workers  map[breakdown.Who]float64 // s, in these steps, by the rank waited for
	judged   int64                     // windows
	unjudged int64                     // windows with too few alike
}

// blame is a cause without the operation: the costs of one rank are added up over operations.
type blame struct {
	kind breakdown.Kind
	who  breakdown.Who
}

const (
	maxBlames  = 256  // distinguished causes of a run; the cost of others is Unattributed's
	maxWorkers = 4096 // workers of a run known to WhatIf
)

// Cost is the cost of one cause in all slow windows of a run.
type Cost struct {
	Kind       breakdown.Kind // Unattributed: unexplained
	Who        breakdown.Who
	Windows    int64
	Seconds    float64
	GPUSeconds float64 // seconds x ranks, of the windows with known ranks
}

// runOf returns the sums of a run, made if absent.
func (h *History) runOf(id string) *run {
	r, ok := h.runs.Get(id)
	if !ok {
		r = &run{costs: map[blame]*Cost{}, workers: map[breakdown.Who]float64{}}
		h.runs.Add(id, r)
	}
	return r
}

// addCosts adds the verdict on a window to its run: the counters, and the costs of the causes. The costs of one rank are added up over operations.
func (h *History) addCosts(w *window, v *Verdict) {
	r := h.runOf(w.Run)
	if !v.Judged {
		r.unjudged++
		return
	}
	r.judged++
	for _, c := range v.Causes {
		worker, _ := c.Who.RankOnly()
		r.add(blame{c.Kind, worker}, c.Seconds, w.Ranks)
	}
	if v.Unexplained > nothing*v.Excess {
		r.add(blame{kind: breakdown.Unattributed}, v.Unexplained, w.Ranks)
	}
}

// countStep adds a step to the data of WhatIf; ranks has the time waited for each rank. Windows other than steps (of another kind, or named) would count the
// same time again, and are ignored.
func (h *History) countStep(w *Window, ranks []originTime) {
	if w.Of != Step || w.Name != "" {
		return
	}
	r := h.runOf(w.Run)
	r.steps++
	r.duration += w.Breakdown.Duration
	r.waited += w.Breakdown.Time[breakdown.Wait]
	for _, n := range ranks {
		if _, ok := r.workers[n.who]; ok || len(r.workers) < maxWorkers {
			r.workers[n.who] += n.seconds
		}
	}
}

// Judged returns how many windows of a run were judged so far, and how many were not because too few comparable windows were known.
func (h *History) Judged(runID string) (judged, unjudged int64) {
	if r, ok := h.runs.Peek(runID); ok {
		return r.judged, r.unjudged
	}
	return 0, 0
}

// add adds the cost of a cause in one window: seconds, lost by so many ranks; ranks 0: unknown. Beyond maxBlames causes the cost counts as unattributed.
func (r *run) add(cause blame, seconds float64, ranks int64) {
	c := r.costs[cause]
	if c == nil {
		if len(r.costs) >= maxBlames {
			cause = blame{kind: breakdown.Unattributed}
		}
		c = r.costs[cause]
		if c == nil {
			c = &Cost{Kind: cause.kind, Who: cause.who}
			r.costs[cause] = c
		}
	}
	c.Windows++
	c.Seconds += seconds
	c.GPUSeconds += seconds * float64(ranks)
}

// Costs returns the costs of the causes in a run so far, the highest first.
func (h *History) Costs(runID string) (out []Cost) {
	r, ok := h.runs.Peek(runID)
	if !ok {
		return nil
	}
	for _, c := range r.costs {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(x, y Cost) int {
		return cmp.Or(cmp.Compare(y.GPUSeconds, x.GPUSeconds), cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Kind, y.Kind), x.Who.Compare(y.Who))
	})
	return out
}

// Sentence states the cost of a cause, such as "48.1 GPU-seconds (3.01 s) waiting for rank 17 on node-2, in 12 windows".
func (c *Cost) Sentence() string {
	b := human.AppendSeconds(nil, c.Seconds)
	if c.GPUSeconds > 0 {
		b = fmt.Appendf(nil, "%s GPU-seconds (%s)", human.Digits(c.GPUSeconds), b)
	}
	b = append(b, ' ')
	b = appendWhat(b, c.Kind, c.Who)
	if c.Windows == 1 {
		return string(append(b, ", in 1 window"...))
	}
	return string(fmt.Appendf(b, ", in %d windows", c.Windows))
}

// WhatIf compares a run with the same run without waiting: the arithmetic of "Understanding Stragglers in Large Model Training Using What-if Analysis" (Lin et
// al., arXiv 2505.05713; code: ByteDance-Seed/StragglerAnalysis, analyzer/explain_slowdown.py).
//
// The paper simulates the run with ideal durations; here the exclusive time of waiting is subtracted from the measured time. Both agree if nothing else would
// have filled the time. A worker's share is exact if the pieces begin at the arrival of the last but one, since the others would have been waited for anyway.
type WhatIf struct {
	Steps    int64
	Duration float64  // s, T: of all steps
	Ideal    float64  // s, T_ideal: without any waiting for late ranks
	Slowdown float64  // S = T / T_ideal
	Workers  []Worker // the worst first
}

// Worker is a run without waiting for one rank.
type Worker struct {
	Who     breakdown.Who // rank and host
	Without float64       // s, T_w: the run without waiting for the rank
	Faster  float64       // T / T_w - 1: 0.118 is "11.8% faster"
	Share   float64       // (T - T_w) / (T - T_ideal), of all waiting
}

// WhatIf returns the comparison for the steps of a run so far, without warm-up; false: no step, or the steps consist of waiting only.
func (h *History) WhatIf(runID string) (WhatIf, bool) {
	r, ok := h.runs.Peek(runID)
	if !ok || r.duration <= r.waited {
		return WhatIf{}, false
	}
	out := WhatIf{Steps: r.steps, Duration: r.duration, Ideal: r.duration - r.waited, Slowdown: r.duration / (r.duration - r.waited)}
	for who, waited := range r.workers {
		without := r.duration - waited
		out.Workers = append(out.Workers, Worker{who, without, r.duration/without - 1, waited / r.waited})
	}
	slices.SortFunc(out.Workers, func(x, y Worker) int { return cmp.Or(cmp.Compare(x.Without, y.Without), x.Who.Compare(y.Who)) })
	return out, true
}

// Sentence states the cost of the worst rank; empty: no rank was waited for.
func (w *WhatIf) Sentence() string {
	if len(w.Workers) == 0 {
		return ""
	}
	worst := &w.Workers[0]
	b := appendRank([]byte("Without "), worst.Who)
	return string(fmt.Appendf(b, " the run would be %s faster: %s of %s went by waiting for it, which is %s of all waiting for late ranks.",
		human.Percent(worst.Faster), human.Seconds(w.Duration-worst.Without), human.Seconds(w.Duration), human.Percent(worst.Share)))
}

// Slowdown returns the paper's slowdown of a window: the duration over the duration without waiting for late ranks.
func Slowdown(b *breakdown.Breakdown) float64 {
	return b.Duration / (b.Duration - b.Time[breakdown.Wait])
}

package facts

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// plain is a step of a run with only steps.
type plain struct {
	trace   pcommon.TraceID
	window  Window
	service string
	at      time.Time // of arrival
}

const mostPlain = 8192 // steps kept of a run with only steps; some 1.3 MB (plainBytes)

// AddPlain keeps a step of a run that so far has only steps. Nothing can be joined to the step, so no group is made until another fact comes (Mix); beyond
// mostPlain the older half is forgotten. false: the run has other facts, and the step needs a group.
func (r *Run) AddPlain(trace pcommon.TraceID, w Window, service string, now time.Time) bool {
	if r.mixed {
		return false
	}
	if len(r.plain) >= mostPlain {
		r.plain = r.plain[:copy(r.plain, r.plain[mostPlain/2:])]
	}
	r.plain = append(r.plain, plain{trace, w, service, now})
	return true
}

// OnlySteps reports whether the run has only steps, without parts and without traces named by an id: nothing lies in another step.
func (r *Run) OnlySteps() bool { return !r.mixed }

// Mix makes groups of the plain steps. It is called before another fact is added to the run, since that fact may belong to one of the steps.
func (r *Run) Mix() {
	if r.mixed {
		return
	}
	r.mixed = true
	for _, p := range r.plain {
		g := r.Group(p.trace, p.service)
		g.SetService(p.service, p.window.Kind)
		r.AddWindow(g, p.window, p.at)
	}
	r.plain = nil
}

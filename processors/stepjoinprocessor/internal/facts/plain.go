package facts

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// plain is a step of a run of which nothing but steps is known.
type plain struct {
	trace   pcommon.TraceID
	window  Window
	service string
	at      time.Time
}

const mostPlain = 8192

// AddPlain keeps a step of a run of which nothing but steps is known: nothing can be said about it yet. It is false where something else is known.
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

// Mix makes groups of the steps that were kept as plain: there is something to join now.
func (r *Run) Mix() {
	if r.mixed {
		return
	}
	r.mixed = true
	for _, p := range r.plain {
		g := r.Group(p.trace, p.service)
		g.Of(p.service, p.window.Kind)
		r.AddWindow(g, p.window, p.at)
	}
	r.plain = nil
}

// Package health reports to the collector whether a component reaches the system behind it, for the extension health_check.
package health

import (
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// errAway is without the cause, possibly a secret: the page of health_check has no redaction.
var errAway = errors.New("nothing gets through; the log has the cause")

// Reporter reports each change between success and failure. Before Start it reports nothing.
type Reporter struct {
	mu    sync.Mutex
	host  component.Host
	away  bool // no server answers
	fails bool // servers answer with failures
}

// Start begins to report to a host, with the component as reachable.
func (r *Reporter) Start(host component.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host, r.away, r.fails = host, false, false
}

// Through notes an attempt and its success. Cancelled attempts mean nothing and must not be noted.
func (r *Reporter) Through(ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(r.away, !ok)
}

// Answered notes a server that answers or cannot be reached, whatever the results of attempts: both have to succeed.
func (r *Reporter) Answered(ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(!ok, r.fails)
}

// change sets both flags, from Start on. Only if the component as a whole begins or ceases to fail is the collector told.
func (r *Reporter) change(away, fails bool) {
	was := r.away || r.fails
	if r.host == nil {
		return
	}
	r.away, r.fails = away, fails
	if was == (away || fails) {
		return
	}
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if away || fails {
		event = componentstatus.NewRecoverableErrorEvent(errAway)
	}
	componentstatus.ReportStatus(r.host, event) // with the lock held: events keep their order
}

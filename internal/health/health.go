// Package health reports to the collector whether a component gets through to the system behind it, for the extension health_check.
package health

import (
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// errAway is without the cause, which may hold a secret: the page of health_check has no redaction.
var errAway = errors.New("nothing gets through; the log has the cause")

// Reporter reports each change between success and failure. Before Start it reports nothing.
type Reporter struct {
	mu    sync.Mutex
	host  component.Host
	away  bool // no server answers
	fails bool // servers answer that they do not
}

// Start begins to report to a host, as of a component that gets through.
func (r *Reporter) Start(host component.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host, r.away, r.fails = host, false, false
}

// Through takes note of an attempt and its success. Attempts that were cancelled tell nothing and must not come here.
func (r *Reporter) Through(ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(r.away, !ok)
}

// Answered takes note of a server that answers or cannot be reached, whatever becomes of the attempts: both have to succeed.
func (r *Reporter) Answered(ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(!ok, r.fails)
}

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

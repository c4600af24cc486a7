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
	mu   sync.Mutex
	host component.Host
	away bool
}

// Start begins to report to a host, as of a component that gets through.
func (r *Reporter) Start(host component.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host, r.away = host, false
}

// Through takes note of an attempt and its success. Attempts that were cancelled tell nothing and must not come here.
func (r *Reporter) Through(ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.host == nil || r.away == !ok {
		return
	}
	r.away = !ok
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if r.away {
		event = componentstatus.NewRecoverableErrorEvent(errAway)
	}
	componentstatus.ReportStatus(r.host, event) // with the lock held: events keep their order
}

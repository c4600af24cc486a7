// Package healthtest has a host that keeps the reports of components.
package healthtest

import (
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
)

// Host keeps the status of each event.
type Host struct {
	component.Host
	mu   sync.Mutex
	seen []componentstatus.Status
}

// NewHost returns a host without extensions.
func NewHost() *Host { return &Host{Host: componenttest.NewNopHost()} }

// Report implements componentstatus.Reporter.
func (h *Host) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, event.Status())
}

// Seen are the statuses of all events so far, in order.
func (h *Host) Seen() []componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

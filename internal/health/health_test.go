package health

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/trainbridge/trainbridge/internal/health/healthtest"
)

// Only changes are reported, the first of them a failure.
func TestThrough(t *testing.T) {
	host := healthtest.NewHost()
	var r Reporter
	r.Through(false) // not started
	r.Start(host)
	for _, ok := range []bool{true, true, false, false, false, true, true, false} {
		r.Through(ok)
	}
	assert.Equal(t, []componentstatus.Status{
		componentstatus.StatusRecoverableError, componentstatus.StatusOK, componentstatus.StatusRecoverableError,
	}, host.Seen())
	r.Start(host)
	r.Answered(false)
	r.Through(true)
	r.Through(false)
	r.Answered(true)
	assert.Len(t, host.Seen(), 4)
	r.Through(true)
	assert.Len(t, host.Seen(), 5)
	r.Start(componenttest.NewNopHost()) // takes no reports
	r.Through(false)
}

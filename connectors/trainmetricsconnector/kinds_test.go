package trainmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// withKinds puts spans.AttrKind first among the attributes of each span, as our writers do.
func withKinds(td ptrace.Traces) ptrace.Traces {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				kind := view.KindOf(s)
				if kind == view.KindOther {
					continue
				}
				m := pcommon.NewMap()
				m.PutStr(spans.AttrKind, kind.String())
				for name, v := range s.Attributes().All() {
					v.CopyTo(m.PutEmpty(name))
				}
				m.MoveTo(s.Attributes())
			}
		}
	}
	return td
}

// Spans with spans.AttrKind make the same metrics as spans without.
func TestKinds(t *testing.T) {
	of := func(change func(ptrace.Traces) ptrace.Traces) map[string]point {
		c := newBed(t)
		b := spans.NewBatch("test", "")
		for i := range 3 {
			everything(b, resourceA, i)
		}
		c.consume(change(b.Traces()))
		return c.flushed(time.Second)
	}
	want := of(func(td ptrace.Traces) ptrace.Traces { return td })
	require.NotEmpty(t, want)
	assert.Equal(t, want, of(withKinds))
}

package facts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// A step that ends at a whole second by chance, among others that do not, is as exact as the others. If all end at whole seconds, the log has only seconds.
func TestWholeSeconds(t *testing.T) {
	for name, tt := range map[string]struct {
		first  time.Duration // the end of the first step
		want   byte
		unsure bool
	}{
		"by chance": {2345 * time.Millisecond, 1, false},
		"always":    {2 * time.Second, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRun("run")
			from := time.Duration(0)
			for i, end := range []time.Duration{tt.first, 5 * time.Second} {
				id := pcommon.TraceID{byte(i + 1)}
				r.AddWindow(r.Group(id, "train"), Window{
					Span: pcommon.SpanID{1}, Start: int64(from), End: int64(end), Number: int64(i), Name: r.Number(spans.SpanStep),
				}, time.Time{})
				from = end
			}
			r.Sort()
			at := int64(tt.first - 500*time.Millisecond)
			g, by, ambiguous := (&Resolver{Tolerance: time.Millisecond}).Resolve(r, Place{Start: at, End: at + 123_456})
			assert.Equal(t, tt.unsure, ambiguous)
			if tt.want == 0 {
				assert.Nil(t, g)
				return
			}
			assert.Equal(t, pcommon.TraceID{tt.want}, g.ID)
			assert.Equal(t, spans.JoinByRun, by)
		})
	}
}

package series

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/internal/tfevents"
	"github.com/trainbridge/trainbridge/spans"
)

// Each run has its file, with the series of its steps in the order of time.
func TestSeries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	w := Open(format.Request{Dir: dir}).(*writer)
	sink := w.Sink()
	for _, run := range []string{"a/b", "c", ".."} {
		for i := int64(3); i > 0; i-- {
			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr(spans.AttrRunID, run)
			s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			s.SetName(spans.SpanStep)
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_700_000_000+2*i, 0)))
			s.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_700_000_001+2*i, 0)))
			s.Attributes().PutInt(spans.AttrIteration, i)
			s.Attributes().PutDouble(spans.AttrLoss, 3-float64(i))
			require.NoError(t, sink.Traces.ConsumeTraces(t.Context(), td))
		}
	}
	require.NoError(t, w.Finish(t.Context(), nil))
	require.NoError(t, w.Close())
	for _, run := range []string{"a%2Fb", "c", "%2E%2E"} {
		b, err := os.ReadFile(filepath.Join(dir, run, "events.out.tfevents.1700000003.trainbridge"))
		require.NoError(t, err)
		losses := make(map[int64]float64)
		d := tfevents.Decoder{Scalar: func(s tfevents.Scalar) {
			switch s.Tag {
			case "train/loss":
				losses[s.Step] = s.Value
				assert.InDelta(t, 1_700_000_001+2*float64(s.Step), s.WallTime, 0)
			case "train/step_time_s":
				assert.InDelta(t, 1, s.Value, 0)
			default:
				t.Error(s.Tag)
			}
		}}
		require.NoError(t, d.Decode(b))
		assert.Equal(t, map[int64]float64{1: 2, 2: 1, 3: 0}, losses)
	}
}

package offline

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Logs of several receivers, in several files, are one run with one span, from the first record of all logs on, whichever of the parallel readers met the run
// first.
func TestOneSpanOfARun(t *testing.T) {
	dir := t.TempDir()
	first := put(t, dir, "tq/rank_1.log", tq(40, at.Add(-time.Minute)))
	for name, text := range map[string]string{
		"tq/rank_0.log": tq(40, at), "tq/rank_2.log": tq(40, at.Add(time.Minute)), "train/a.jsonl": jsonl(60, at.Add(time.Hour)), "train/b.jsonl": jsonl(60, at),
	} {
		put(t, dir, name, text)
	}
	for range 5 {
		var mu sync.Mutex
		runs := make(map[pcommon.SpanID]ptrace.Span)
		sink, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
			mu.Lock()
			defer mu.Unlock()
			for _, rs := range td.ResourceSpans().All() {
				assert.Equal(t, "job", spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID))
				for _, s := range rs.ScopeSpans().At(0).Spans().All() {
					if s.Name() == spans.SpanRun {
						runs[s.SpanID()] = s
					}
				}
			}
			return nil
		})
		require.NoError(t, err)
		in, err := Open([]string{dir}, strings.NewReader(""))
		require.NoError(t, err)
		_, err = Read(t.Context(), in, Options{Run: "job"}, Sink{Traces: sink})
		in.Close()
		require.NoError(t, err)
		require.Len(t, runs, 1)
		want := spans.RunSpan{Run: "job", Service: "verl", File: first, Start: at.Add(-time.Minute).UnixNano(), Time: spans.TimeLogged}
		for id, s := range runs {
			want.Time = spans.TimeSource(spans.AttrText(s.Attributes(), spans.AttrTimeSource)) // TransferQueue's counters are tied to stamps
			_, wantID := want.IDs()
			assert.Equal(t, wantID, id)
			assert.Equal(t, first, spans.AttrText(s.Attributes(), spans.AttrLogFile))
			assert.Equal(t, want.Start, int64(s.StartTimestamp()))
		}
	}
}

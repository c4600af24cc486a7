package trainperfprocessor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// hop is a consumer that does something with each message.
type hop func(ctx context.Context, td ptrace.Traces) error

func (hop) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (h hop) ConsumeTraces(ctx context.Context, td ptrace.Traces) error { return h(ctx, td) }

// slowGets is a log of calls that spend two thirds of their time in GET.
func slowGets(calls int) string {
	var log strings.Builder
	for i := range calls {
		for n, stage := range []string{"FUNCTION_START", "GET_START", "GET_END | duration=0.4s", "FUNCTION_END | total_duration=0.6s | get_ratio=66.67% | compute_ratio=30% | put_ratio=0%"} {
			fmt.Fprintf(&log, "INFO:2026-11-28 04:42:59,429:[TQ-TRACE] trace_id=%08x-0000-4000-8000-000000000000 | func=rollout | pid=9 | stage=%s | timestamp=%d.%d\n",
				i, stage, 1000+i, 2*n)
		}
	}
	return log.String()
}

// Several batches of a log are under way at once. However late the first of them comes to the processor, the calls are judged in the order of the log: the
// first calls are special, and calls of the later batches are like those before. A judged batch holds up none, however long the backend takes.
func TestOrderOfALog(t *testing.T) {
	const calls = 1500
	path := filepath.Join(t.TempDir(), "driver.log")
	require.NoError(t, os.WriteFile(path, []byte(slowGets(calls)), 0o600))

	var mu sync.Mutex
	said, messages, got := map[string]bool{}, 0, 0
	backend := hop(func(_ context.Context, td ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if _, ok := s.Attributes().Get(spans.AttrVerdictPrefix + spans.VerdictTQOverhead); ok {
					said[s.TraceID().String()[:8]] = true
				}
				if s.Name() == "rollout" {
					got++
				}
			}
		}
		return nil
	})
	perf, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), backend)
	require.NoError(t, err)
	late := hop(func(ctx context.Context, td ptrace.Traces) error {
		mu.Lock()
		messages++
		n := messages
		mu.Unlock()
		if n <= 2 { // the second comes at once with others: the first has the run's span
			time.Sleep(300 * time.Millisecond)
		}
		return perf.ConsumeTraces(ctx, td)
	})
	factory := tqtracereceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*tqtracereceiver.Config)
	cfg.Include, cfg.StartAt, cfg.RunID = []string{path}, "beginning", "job"
	r, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, late)
	require.NoError(t, err)
	require.NoError(t, perf.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got == calls
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, perf.Shutdown(t.Context()))

	assert.Greater(t, messages, 3)
	want := map[string]bool{}
	for i := range 10 { // each of the first, then one of a hundred
		want[fmt.Sprintf("%08x", i)] = true
	}
	for i := 109; i < calls; i += 100 {
		want[fmt.Sprintf("%08x", i)] = true
	}
	assert.Equal(t, want, said)
}

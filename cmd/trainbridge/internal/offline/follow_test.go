package offline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// Each file has its receiver, every time; later lines and later files are read too.
func TestFollow(t *testing.T) {
	for range 5 {
		dir := t.TempDir()
		put := func(name string, from, to int) {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			require.NoError(t, err)
			defer f.Close()
			for i := from; i < to; i++ {
				_, err := fmt.Fprintf(f, `{"step": %d, "timestamp": "2026-01-02T03:04:%02dZ", "loss": %d.5, "step_time_s": 1.5}`+"\n", i, i, i)
				require.NoError(t, err)
			}
		}
		put("a.jsonl", 1, 4)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte(strings.Repeat("nothing of interest\n", 100)), 0o600))
		in, err := Open([]string{dir}, nil)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		steps, points := 0, 0
		came := make(chan struct{}, 100)
		traces, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
			mu.Lock()
			defer mu.Unlock()
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						if view.KindOf(s) == view.KindStep {
							steps++
							came <- struct{}{}
						}
					}
				}
			}
			return nil
		})
		require.NoError(t, err)
		metrics, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			mu.Lock()
			defer mu.Unlock()
			points += md.DataPointCount()
			return nil
		})
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- Follow(ctx, in, Options{}, Sink{Traces: traces, Metrics: metrics}) }()
		for range 3 {
			<-came
		}
		put("a.jsonl", 4, 6)
		put("b.jsonl", 10, 12)
		for range 4 {
			<-came
		}
		stop()
		require.NoError(t, <-done)
		assert.Equal(t, 7, steps)
		assert.Positive(t, points)
	}
}

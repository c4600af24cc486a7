package report

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/sim"
)

// TestAccountLive: the account sent by train_metrics for a simulated job, with spans in messages with flushes among them, is the report's account at the end
// of the job. Lines without records (when a process began, what follows the last step) are not in spans.
func TestAccountLive(t *testing.T) {
	var told atomic.Int32
	t.Cleanup(func() { assert.True(t, testing.Short() || told.Load() >= 30, "%d jobs", told.Load()) })
	for i, scenario := range sim.Scenarios() {
		if testing.Short() && i%8 > 0 {
			continue
		}
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			truth, err := scenario.Write(dir, 1, time.Local)
			require.NoError(t, err)
			if len(truth.Flags) > 0 {
				t.Skip("its logs want flags that a collector has as settings")
			}
			a, err := ask(t, dir, nil)
			require.NoError(t, err)
			jobs := digest.New()
			live := liveAccount(t, dir, jobs)
			if len(a.Jobs) != 1 || a.Jobs[0].Account == nil {
				assert.Empty(t, live)
				return
			}
			told.Add(1)
			of, ok := jobs.Rows()[0].Ledger.Account() // of the same spans
			require.True(t, ok)
			report := a.Jobs[0].Account
			for state, seconds := range of.Seconds {
				name := account.State(state).String()
				assert.InDelta(t, seconds, live[name], 1e-6, name)
				switch account.State(state) {
				case account.StartUp, account.Down, account.AfterEnd:
				default:
					assert.InDelta(t, report.States[name], live[name], 1e-3, name)
				}
			}
			assert.InDelta(t, of.Goodput(), live[""], 1e-9)
			beside := report.States["start_up"] - live["start_up"] + report.States["after_end"] - live["after_end"] + report.States["down"] - live["down"]
			assert.InDelta(t, report.WallS-beside, of.Wall, 1e-3, "lines that are no records tell of the rest")
			assert.InDelta(t, report.Goodput*report.WallS, live[""]*of.Wall, 1e-3*report.WallS)
		})
	}
}

// liveAccount reads logs, and has a connector take the spans and flush all the time. The result is the last account sent, by state, goodput by "".
func liveAccount(t *testing.T, dir string, jobs *digest.Jobs) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() != spans.MetricRunTime && m.Name() != spans.MetricGoodput {
						continue
					}
					for _, p := range spans.Points(m).All() {
						out[spans.AttrText(p.Attributes(), spans.AttrRunState)] = p.DoubleValue()
					}
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	factory := trainmetricsconnector.NewFactory()
	cfg := factory.CreateDefaultConfig().(*trainmetricsconnector.Config)
	cfg.MetricsFlushInterval, cfg.MetricsExpiration = time.Millisecond, 0
	c, err := factory.CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(factory.Type()), cfg, next)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	traces, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		jobs.Batch(td)
		if err := c.ConsumeTraces(ctx, td); err != nil {
			return fmt.Errorf("train_metrics: %w", err)
		}
		return nil
	})
	require.NoError(t, err)
	in, err := offline.Open([]string{dir}, nil)
	require.NoError(t, err)
	defer in.Close()
	_, err = offline.Read(t.Context(), in, offline.Options{}, offline.Sink{Traces: traces})
	require.NoError(t, err)
	require.NoError(t, c.Shutdown(t.Context()))
	for state, v := range out {
		require.False(t, math.IsNaN(v), state)
	}
	return out
}

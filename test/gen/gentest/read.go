package gentest

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Log is a receiver's output for a generated log.
type Log struct {
	Traces  consumertest.TracesSink
	Metrics consumertest.MetricsSink
	tel     *componenttest.Telemetry
	lines   map[string]int64
}

// Read runs a receiver on the logs of a glob until enough returns true, or for a minute; the caller checks the output. The run id is "run", or the caller's.
func Read(t *testing.T, factory receiver.Factory, glob string, enough func(*Log) bool, run ...string) *Log {
	t.Helper()
	l := &Log{tel: componenttest.NewTelemetry(), lines: map[string]int64{}}
	t.Cleanup(func() { assert.NoError(t, l.tel.Shutdown(context.Background())) }) // the counts are asked for later
	set := receivertest.NewNopSettings(factory.Type())
	set.TelemetrySettings = l.tel.NewTelemetrySettings()
	cfg := factory.CreateDefaultConfig()
	settings := map[string]any{"include": []any{glob}, "run_id": "run", "poll_interval": "10ms"}
	for _, id := range run {
		settings["run_id"] = id
	}
	defaults := confmap.New()
	require.NoError(t, defaults.Marshal(cfg))
	if defaults.IsSet("timezone") { // logs of RPCs have no clock
		settings["timezone"] = "UTC"
	}
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(cfg))
	traces, err := factory.CreateTraces(t.Context(), set, cfg, &l.Traces)
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(t.Context(), set, cfg, &l.Metrics)
	require.NoError(t, err)
	for _, r := range []receiver.Traces{traces, metrics} { // one instance, which starts with both
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	}
	assert.Eventually(t, func() bool { return enough(l) }, time.Minute, 10*time.Millisecond)
	for _, r := range []receiver.Traces{traces, metrics} {
		require.NoError(t, r.Shutdown(t.Context()))
	}
	return l
}

// Lines are the log's lines by outcome: "lines", "records", "sent", "ignored", "rejected". Counts of a receiver that has shut down keep their last values.
func (l *Log) Lines() map[string]int64 {
	for _, name := range []string{"lines", "records", "sent", "ignored", "rejected"} {
		m, err := l.tel.GetMetric("trainbridge.tail." + name)
		if err != nil { // none yet, or no longer
			l.lines[name] += 0
			continue
		}
		l.lines[name] = 0
		for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
			l.lines[name] += dp.Value
		}
	}
	return maps.Clone(l.lines)
}

// Settled reports that a log of so many lines was read, and that all of its records were sent.
func (l *Log) Settled(lines int64) bool {
	n := l.Lines()
	return n["lines"] == lines && n["records"]+n["ignored"]+n["rejected"] == lines && n["records"] == n["sent"]
}

// Spans are the spans received, each with the attributes of its resource too.
func (l *Log) Spans() []ptrace.Span { return Spans(l.Traces.AllTraces()) }

// Spans are the spans of messages, each with the attributes of its resource.
func Spans(messages []ptrace.Traces) (all []ptrace.Span) {
	for _, td := range messages {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					for name, v := range rs.Resource().Attributes().All() {
						if _, own := s.Attributes().Get(name); !own {
							v.CopyTo(s.Attributes().PutEmpty(name))
						}
					}
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// Package filereceivertest is what the tests of all receivers of log files share: fixtures with a fixed modification time, reading them whole
// with the accounts held, and the comparison with golden files.
package filereceivertest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// Written is the modification time of the files. They are read an hour later.
var Written = time.Date(2026, 6, 12, 12, 0, 0, 0, time.UTC)

// Result is what came out of files that were read whole.
type Result struct {
	Traces  consumertest.TracesSink
	Metrics consumertest.MetricsSink
	Counts  tail.Counts
}

// Put makes a file.
func Put(tb testing.TB, dir, name, text string) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(tb, os.Chtimes(path, Written, Written))
	return path
}

// Copy makes a copy of a file.
func Copy(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	require.NoError(tb, err)
	return Put(tb, tb.TempDir(), filepath.Base(path), string(b))
}

// Read reads the files of a config whole and holds the accounts.
func Read(tb testing.TB, set receiver.Settings, cfg component.Config, mk filereceiver.Make) *Result {
	tb.Helper()
	r := &Result{}
	var err error
	r.Counts, err = filereceiver.ReadAll(context.Background(), set, cfg, mk, func() time.Time { return Written.Add(time.Hour) }, &r.Traces, &r.Metrics)
	require.NoError(tb, err)
	Accounts(tb, r.Counts)
	return r
}

// Accounts holds the accounting equation.
func Accounts(tb testing.TB, c tail.Counts) {
	tb.Helper()
	sum := c.Records
	for _, reasons := range []map[string]int64{c.Ignored, c.Rejected} {
		for _, n := range reasons {
			sum += n
		}
	}
	assert.Equal(tb, c.Lines, sum, "lines = records + ignored + rejected: %+v", c)
	assert.Equal(tb, c.Records, c.Sent+c.Refused, "records = sent + refused: %+v", c)
	assert.Zero(tb, c.Pending)
}

// All are the spans of a name, or of every name if it is empty, in the order in which they came.
func (r *Result) All(name string) []ptrace.Span {
	var out []ptrace.Span
	for _, td := range r.Traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if name == "" || s.Name() == name {
						out = append(out, s)
					}
				}
			}
		}
	}
	return out
}

// Attr is an attribute as text, empty when there is none.
func Attr(s ptrace.Span, name string) string {
	v, ok := s.Attributes().Get(name)
	if !ok {
		return ""
	}
	return v.AsString()
}

// Golden compares everything with base.traces.yaml and base.metrics.yaml, or writes these anew. The path of the log is cut to its name, and NaN,
// which is equal to nothing, is the largest number.
func (r *Result) Golden(tb testing.TB, base string, update bool) {
	tb.Helper()
	td, md := ptrace.NewTraces(), pmetric.NewMetrics()
	for _, x := range r.Traces.AllTraces() {
		x.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	for _, x := range r.Metrics.AllMetrics() {
		x.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			if v, ok := s.Attributes().Get(spans.AttrLogFile); ok {
				v.SetStr(filepath.Base(v.Str()))
			}
		}
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, dp := range m.Gauge().DataPoints().All() {
				if math.IsNaN(dp.DoubleValue()) {
					dp.SetDoubleValue(math.MaxFloat64)
				}
			}
		}
	}
	if update {
		require.NoError(tb, golden.WriteTracesToFile(base+".traces.yaml", td))
		require.NoError(tb, golden.WriteMetricsToFile(base+".metrics.yaml", md, golden.SkipMetricTimestampNormalization()))
	}
	wantTraces, err := golden.ReadTraces(base + ".traces.yaml")
	require.NoError(tb, err)
	assert.NoError(tb, ptracetest.CompareTraces(wantTraces, td, ptracetest.IgnoreResourceSpansOrder(), ptracetest.IgnoreSpansOrder()))
	wantMetrics, err := golden.ReadMetrics(base + ".metrics.yaml")
	require.NoError(tb, err)
	assert.NoError(tb, pmetrictest.CompareMetrics(wantMetrics, md, pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
}

// Package filereceivertest is the common part of the tests of all receivers of log files: fixtures with a fixed modification time, reading of whole files with
// the accounts checked, and the comparison with golden files.
package filereceivertest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/spans"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Written is the modification time of the files, an hour before they are read. Tests with other golden files set Written in init.
var Written = time.Date(2026, 6, 12, 12, 0, 0, 0, time.UTC)

// Result is the output for whole files.
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

// Write makes a file of lines.
func Write(tb testing.TB, name string, lines ...string) string {
	tb.Helper()
	return Put(tb, tb.TempDir(), name, strings.Join(lines, "\n")+"\n")
}

// Copy makes a copy of a file.
func Copy(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	require.NoError(tb, err)
	return Put(tb, tb.TempDir(), filepath.Base(path), string(b))
}

// Fixture makes a copy of a file of testdata.
func Fixture(tb testing.TB, name string) string {
	tb.Helper()
	return Copy(tb, filepath.Join("testdata", name))
}

// Read reads the files of a config whole and checks the accounts.
func Read(tb testing.TB, set receiver.Settings, cfg component.Config, mk filereceiver.Make) *Result {
	tb.Helper()
	require.NoError(tb, confmap.Validate(cfg))
	r := &Result{}
	traces, metrics := r.next(tb, func() {})
	var err error
	r.Counts, err = filereceiver.ReadAll(context.Background(), set, cfg, mk, func() time.Time { return Written.Add(time.Hour) }, traces, metrics)
	require.NoError(tb, err)
	Accounts(tb, r.Counts)
	assert.Zero(tb, r.Counts.Refused)
	r.readable(tb)
	return r
}

// Accounts checks the accounting equation.
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

// All returns the spans of a name, or of every name if empty, as Spans returns them.
func (r *Result) All(name string) []ptrace.Span { return Spans(r.Traces.AllTraces(), name) }

// Spans returns the spans of a name, or of every name if empty, in the order of arrival: of each message, resource by resource. Spans are copies with the
// attributes of their resource, as a reader sees them; the identity (job, run, host, process, model) stays with the resource.
func Spans(all []ptrace.Traces, name string) []ptrace.Span {
	var out []ptrace.Span
	for _, td := range all {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if name == "" || s.Name() == name {
						out = append(out, whole(rs.Resource().Attributes(), s))
					}
				}
			}
		}
	}
	return out
}

// Took returns the time of one step in s, as a reader finds it: of a span of Spans. NaN: unknown.
func Took(s ptrace.Span) float64 {
	var v view.Step
	v.Read(s, &view.Resource{})
	return v.Duration
}

// ByEnd sorts spans by their end, such as the steps of a job whose resources differ.
func ByEnd(list []ptrace.Span) []ptrace.Span {
	slices.SortStableFunc(list, func(a, b ptrace.Span) int { return cmp.Compare(a.EndTimestamp(), b.EndTimestamp()) })
	return list
}

// whole returns a copy of a span with the attributes of its resource, except the identity (job, run, host, process, model): as a reader of the trace sees the
// span.
func whole(resource pcommon.Map, s ptrace.Span) ptrace.Span {
	out := ptrace.NewSpan()
	s.CopyTo(out)
	for name, v := range resource.All() {
		switch name {
		case spans.AttrServiceName, spans.AttrRunID, spans.AttrHostName, spans.AttrProcessPID:
			continue
		}
		if strings.HasPrefix(name, spans.ModelPrefix) {
			continue
		}
		if own, ok := out.Attributes().GetOrPutEmpty(name); !ok {
			v.CopyTo(own)
		}
	}
	return out
}

// Attr returns an attribute as text, or empty.
func Attr(s ptrace.Span, name string) string {
	v, ok := s.Attributes().Get(name)
	if !ok {
		return ""
	}
	return v.AsString()
}

// merge joins batches, because their number depends on chance: one ResourceSpans or ResourceMetrics per resource, one metric of each name. The path of the log
// is cut to its name, and NaN, unequal even to itself, becomes the largest number.
func merge(tb testing.TB, td ptrace.Traces, md pmetric.Metrics) {
	tb.Helper()
	all := make(map[string]ptrace.SpanSlice) // by resource
	td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		require.Equal(tb, 1, rs.ScopeSpans().Len())
		got, resource := rs.ScopeSpans().At(0).Spans(), fmt.Sprint(rs.Resource().Attributes().AsRaw())
		for _, s := range got.All() {
			for _, name := range []string{spans.AttrLogFile, spans.AttrNCCLClockReference} {
				if v, ok := s.Attributes().Get(name); ok {
					v.SetStr(filepath.Base(v.Str()))
				}
			}
			if s.Name() == spans.SpanRun { // the id follows from the whole path
				_, id := spans.RunIDs(spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID))
				s.SetSpanID(id)
			}
		}
		first, again := all[resource]
		if again {
			got.MoveAndAppendTo(first)
		} else {
			all[resource] = got
		}
		return again
	})
	metrics := make(map[string]pmetric.MetricSlice) // by resource
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		require.Equal(tb, 1, rm.ScopeMetrics().Len())
		got, resource := rm.ScopeMetrics().At(0).Metrics(), fmt.Sprint(rm.Resource().Attributes().AsRaw())
		first, again := metrics[resource]
		if again {
			got.MoveAndAppendTo(first)
		} else {
			metrics[resource] = got
		}
		return again
	})
	for _, list := range metrics {
		points := make(map[string]pmetric.NumberDataPointSlice) // by name
		list.RemoveIf(func(m pmetric.Metric) bool {
			got := numbers(tb, m)
			for _, dp := range got.All() {
				if v, ok := dp.Attributes().Get(spans.AttrLogFile); ok {
					v.SetStr(filepath.Base(v.Str()))
				}
				if dp.ValueType() == pmetric.NumberDataPointValueTypeDouble && math.IsNaN(dp.DoubleValue()) {
					dp.SetDoubleValue(math.MaxFloat64)
				}
			}
			first, again := points[m.Name()]
			if again {
				got.MoveAndAppendTo(first)
			} else {
				points[m.Name()] = got
			}
			return again
		})
		for _, all := range points {
			all.Sort(func(a, b pmetric.NumberDataPoint) bool { // batches come in any order
				return cmp.Or(cmp.Compare(a.Timestamp(), b.Timestamp()), cmp.Compare(a.IntValue(), b.IntValue()), cmp.Compare(a.DoubleValue(), b.DoubleValue())) < 0
			})
		}
	}
}

// numbers returns the points of a gauge or a sum.
func numbers(tb testing.TB, m pmetric.Metric) pmetric.NumberDataPointSlice {
	tb.Helper()
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	require.Equal(tb, pmetric.MetricTypeGauge, m.Type(), m.Name())
	return m.Gauge().DataPoints()
}

// Golden compares the whole output, across batches, with base.traces.yaml and base.metrics.yaml. The output is removed from the result: draw before.
func (r *Result) Golden(tb testing.TB, base string) {
	tb.Helper()
	td, md := ptrace.NewTraces(), pmetric.NewMetrics()
	for _, x := range r.Traces.AllTraces() {
		x.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	for _, x := range r.Metrics.AllMetrics() {
		x.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	}
	merge(tb, td, md)
	if *update {
		require.NoError(tb, golden.WriteTracesToFile(base+".traces.yaml", td))
		require.NoError(tb, golden.WriteMetricsToFile(base+".metrics.yaml", md, golden.SkipMetricTimestampNormalization()))
	}
	wantTraces, err := golden.ReadTraces(base + ".traces.yaml")
	require.NoError(tb, err)
	wantMetrics, err := golden.ReadMetrics(base + ".metrics.yaml")
	require.NoError(tb, err)
	merge(tb, wantTraces, wantMetrics)
	assert.NoError(tb, ptracetest.CompareTraces(wantTraces, td, ptracetest.IgnoreResourceSpansOrder(), ptracetest.IgnoreSpansOrder()))
	assert.NoError(tb, pmetrictest.CompareMetrics(wantMetrics, md,
		pmetrictest.IgnoreResourceMetricsOrder(), pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
}

// GoldenText compares a text, such as drawn spans, with a file.
func GoldenText(tb testing.TB, path, got string) {
	tb.Helper()
	if *update {
		require.NoError(tb, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(tb, err)
	assert.Equal(tb, string(want), got)
}

// Configs checks that each configuration of testdata/config.yaml is refused with the wanted text of its name, or accepted where the text is empty. The result
// has the configurations by name.
func Configs(t *testing.T, f receiver.Factory, want map[string]string) map[string]component.Config {
	t.Helper()
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	out := make(map[string]component.Config)
	for name, text := range want {
		sub, err := cm.Sub(name)
		require.NoError(t, err)
		out[name] = f.CreateDefaultConfig()
		require.NoError(t, sub.Unmarshal(out[name]))
		t.Run(name, func(t *testing.T) {
			err := confmap.Validate(out[name])
			if text == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, text)
			}
		})
	}
	return out
}

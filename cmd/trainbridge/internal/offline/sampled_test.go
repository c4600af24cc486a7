package offline_test // gen imports offline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/gen"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// outcome is the result of a job's logs: values independent of sample_rate, and the drawn spans.
type outcome struct {
	joined   map[string]string       // spans of step_join, but for spans in the traces of collectives, without links
	verdicts map[string]int          // of collectives
	points   map[string]float64      // of train_metrics
	only     map[pcommon.SpanID]bool // of collectives that are not drawn
	drawn    map[pcommon.SpanID]bool // of drawn collectives
	states   map[string]int          // tracestates of drawn collectives
	ranks    map[pcommon.SpanID]int  // drawn spans by trace
	linked   map[pcommon.SpanID]bool // by step_join
	examples map[pcommon.SpanID]bool // exemplars
	partial  int                     // breakdowns
}

func sampledAt(t *testing.T, dir string, rate float64) *outcome {
	t.Helper()
	s := &outcome{
		joined: map[string]string{}, verdicts: map[string]int{}, points: map[string]float64{}, only: map[pcommon.SpanID]bool{}, drawn: map[pcommon.SpanID]bool{},
		states: map[string]int{}, ranks: map[pcommon.SpanID]int{}, linked: map[pcommon.SpanID]bool{}, examples: map[pcommon.SpanID]bool{},
	}
	var mu sync.Mutex
	traces, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range td.ResourceSpans().All() {
			v, _ := rs.Resource().Attributes().Get(spans.AttrRecordOnly)
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					s.span(ss.Scope().Name(), span, v.Bool())
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	derived, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		mu.Lock()
		defer mu.Unlock()
		s.metrics(md)
		return nil
	})
	require.NoError(t, err)
	in, err := offline.Open([]string{dir}, strings.NewReader(""))
	require.NoError(t, err)
	defer in.Close()
	opt := offline.Options{Run: "job"}
	for _, typ := range []string{"tq_trace", "flagscale", "train_log", "zmq_rpc", "nccl", "run_events"} {
		r := offline.Receiver{ID: component.MustNewID(typ), Shared: in.Files}
		if typ == "nccl" {
			r.Conf = map[string]any{"sample_rate": rate}
		}
		opt.Receivers = append(opt.Receivers, r)
	}
	_, err = offline.Read(t.Context(), in, opt, offline.Sink{Traces: traces, Derived: derived})
	require.NoError(t, err)
	return s
}

func (s *outcome) span(scope string, span ptrace.Span, recordOnly bool) {
	switch kind := view.KindOf(span); {
	case strings.HasSuffix(scope, "stepjoinprocessor"):
		for _, l := range span.Links().All() {
			s.linked[l.SpanID()] = true
		}
		if kind == view.KindJoined && span.Name() == spans.SpanStepRoot {
			return // leads back from the trace of a collective
		}
		s.joined[span.TraceID().String()+" "+span.SpanID().String()] = fmt.Sprint(span.Name(), span.StartTimestamp(), span.EndTimestamp(), span.ParentSpanID(),
			span.Attributes().AsRaw(), events(span))
		if _, ok := span.Attributes().Get(spans.AttrJoinPartial); ok {
			s.partial++
		}
	case kind == view.KindCollective:
		for v := range view.Verdicts(span) {
			s.verdicts[v.Name+" "+v.Cause+" "+v.Reason+" "+span.TraceID().String()+span.SpanID().String()]++
		}
		if recordOnly {
			s.only[span.SpanID()] = true
			return
		}
		s.drawn[span.SpanID()] = true
		s.states[span.TraceState().AsRaw()]++
	case kind == view.KindRank:
		s.ranks[span.ParentSpanID()]++
	}
}

func events(span ptrace.Span) (all []string) {
	for _, e := range span.Events().All() {
		all = append(all, fmt.Sprint(e.Name(), e.Timestamp(), e.Attributes().AsRaw()))
	}
	return all
}

func (s *outcome) metrics(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				s.metric(fmt.Sprint(rm.Resource().Attributes().AsRaw(), m.Name()), m)
			}
		}
	}
}

func (s *outcome) metric(name string, m pmetric.Metric) {
	numbers := func(list pmetric.NumberDataPointSlice) {
		for _, p := range list.All() {
			value := p.DoubleValue()
			if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
				value = float64(p.IntValue())
			}
			s.points[fmt.Sprint(name, p.Attributes().AsRaw())] = value
			s.exemplars(p.Exemplars())
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			key := fmt.Sprint(name, p.Attributes().AsRaw())
			s.points[key+" count"], s.points[key+" sum"], s.points[key+" min"], s.points[key+" max"] = float64(p.Count()), p.Sum(), p.Min(), p.Max()
			s.points[fmt.Sprint(key, p.Scale(), p.Positive().Offset(), p.Positive().BucketCounts().AsRaw())] = float64(p.ZeroCount())
			s.exemplars(p.Exemplars())
		}
	default:
		panic(m.Type())
	}
}

func (s *outcome) exemplars(list pmetric.ExemplarSlice) {
	for _, e := range list.All() {
		s.examples[e.SpanID()] = true
	}
}

// Conclusions about a job are independent of the share of drawn collectives: breakdowns and their verdicts, aggregates, all counts. No link leads to a
// collective that is not drawn.
func TestSampling(t *testing.T) {
	for _, ids := range []string{gen.IDsNone, gen.IDsUUID} {
		for _, format := range []string{gen.NCCLInspector, gen.NCCLVCCL} {
			if testing.Short() && (ids != gen.IDsUUID || format != gen.NCCLVCCL) {
				continue
			}
			t.Run(ids+" "+format, func(t *testing.T) {
				opt := gen.DefaultOptions()
				opt.Out, opt.IDs, opt.NCCL, opt.Steps, opt.Collectives, opt.Faults = t.TempDir(), ids, format, 40, 24, []string{gen.FaultStraggler, gen.FaultLink}
				_, err := gen.Generate(t.Context(), opt)
				require.NoError(t, err)
				all := sampledAt(t, opt.Out, 1)
				require.Empty(t, all.only)
				require.NotEmpty(t, all.verdicts)
				require.Greater(t, len(all.joined), opt.Steps)
				require.Greater(t, len(all.drawn), 24*opt.Steps-1)
				require.NotEmpty(t, all.examples)
				cost := 0.0
				for key, n := range all.points {
					if strings.Contains(key, spans.MetricNCCLLateCost) {
						cost += n
					}
				}
				require.Positive(t, cost)
				require.Equal(t, map[string]int{"": len(all.drawn)}, all.states)
				for _, rate := range []float64{0.01, 0} {
					few := sampledAt(t, opt.Out, rate)
					assert.Equal(t, all.joined, few.joined)
					assert.Equal(t, all.partial, few.partial)
					assert.Equal(t, all.verdicts, few.verdicts)
					assert.Equal(t, slices.Sorted(maps.Keys(all.points)), slices.Sorted(maps.Keys(few.points)))
					for key, want := range all.points {
						assert.InEpsilon(t, 1+want, 1+few.points[key], 1e-14, key) // the order of adding differs from reading to reading
					}
					assert.Len(t, few.only, len(all.drawn)-len(few.drawn))
					assert.Less(t, len(few.drawn), len(all.drawn)/5)
					for id := range few.drawn {
						assert.Equal(t, all.ranks[id], few.ranks[id])
					}
					for id := range few.only {
						assert.NotContains(t, few.drawn, id)
						assert.NotContains(t, few.ranks, id)
						assert.NotContains(t, few.linked, id)
						assert.NotContains(t, few.examples, id)
					}
					for state := range few.states {
						threshold, _, _ := strings.Cut(state, ";")
						assert.Contains(t, []string{"ot=th:0", "ot=th:fd70a"}, threshold)
					}
				}
			})
		}
	}
}

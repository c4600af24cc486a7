package train

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/spans"
)

// readBack reads the log of a run with train_log until it has the truth's records, and returns their spans,
// with what their resources say, and the lines by what became of them.
func readBack(t *testing.T, truth *truthFile) (all []ptrace.Span, lines map[string]int64) {
	t.Helper()
	tel := componenttest.NewTelemetry()
	sink, factory := new(consumertest.TracesSink), trainlogreceiver.NewFactory()
	set := receivertest.NewNopSettings(factory.Type())
	set.TelemetrySettings = tel.NewTelemetrySettings()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"include": []any{truth.Run.Files[0].Path}, "run_id": "run", "timezone": "UTC", "poll_interval": "10ms",
	}).Unmarshal(cfg))
	r, err := factory.CreateTraces(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	lines = map[string]int64{}
	assert.Eventually(t, func() bool {
		for _, name := range []string{"lines", "records", "sent", "ignored", "rejected"} {
			lines[name] = 0
			m, err := tel.GetMetric("trainbridge.tail." + name)
			if err != nil { // there is none yet
				continue
			}
			for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
				lines[name] += dp.Value
			}
		}
		sorted := lines["records"] + lines["ignored"] + lines["rejected"]
		return lines["lines"] == truth.Run.Lines && sorted == truth.Run.Lines && lines["records"] == lines["sent"]
	}, 20*time.Second, 10*time.Millisecond, "%v", lines)
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, tel.Shutdown(t.Context()))
	for _, td := range sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					for name, v := range rs.Resource().Attributes().All() { // what the log repeats stands there
						if _, own := s.Attributes().Get(name); !own {
							v.CopyTo(s.Attributes().PutEmpty(name))
						}
					}
					all = append(all, s)
				}
			}
		}
	}
	return all, lines
}

// iterationOf is which step a span is of.
func iterationOf(s ptrace.Span) int64 {
	v, ok := s.Attributes().Get(spans.AttrIteration)
	if !ok {
		return -1
	}
	return v.Int()
}

// number is an attribute as a number; numbers that JSON does not have are texts.
func number(v pcommon.Value) float64 {
	f, err := strconv.ParseFloat(v.AsString(), 64)
	if err != nil {
		return -1
	}
	return f
}

// What the trainers of trainers.go print is read back: each record is a span, with the printed numbers in base units, and there are no other spans of steps.
func TestTrainersAreReadBack(t *testing.T) {
	for name, c := range map[string]struct {
		format string
		change func(*Options)
	}{
		"deepspeed":              {FormatDeepSpeed, func(o *Options) { o.Timers = false }},
		"deepspeed, each step":   {FormatDeepSpeed, func(o *Options) { o.Interval = 1 }},
		"deepspeed, torchrun":    {FormatDeepSpeed, func(o *Options) { o.Interval, o.Prefix = 1, "torchrun" }},
		"deepspeed, with timers": {FormatDeepSpeed, func(o *Options) { o.Timers = true }},
		"torchtitan":             {FormatTorchTitan, nil},
		"torchtitan, rank":       {FormatTorchTitan, func(o *Options) { o.Interval, o.Prefix = 1, "rank" }},
		"torchtitan, 1 device":   {FormatTorchTitan, func(o *Options) { o.WorldSize = 1 }},
		"nemo":                   {FormatNeMo, func(o *Options) { o.Steps = 1300 }},
		"nemo, srun":             {FormatNeMo, func(o *Options) { o.Interval, o.Prefix = 1, "srun" }},
		"openrlhf":               {FormatOpenRLHF, nil},
		"openrlhf, without Ray":  {FormatOpenRLHF, func(o *Options) { o.Prefix = "none" }},
		"nanochat":               {FormatNanochat, func(o *Options) { o.EvalInterval = 50 }},
		"nanochat, rank":         {FormatNanochat, func(o *Options) { o.Prefix = "rank" }},
		"maxtext":                {FormatMaxText, nil},
		"maxtext, torchrun":      {FormatMaxText, func(o *Options) { o.Prefix = "torchrun" }},
	} {
		for _, nasty := range []float64{0, 0.3} {
			t.Run(name+", nasty "+strconv.FormatFloat(nasty, 'f', -1, 64), func(t *testing.T) {
				o := trainOptions(t, c.format, func(o *Options) {
					o.Out, o.Timezone, o.Nasty, o.Slow, o.NaNLossAt = filepath.Join(t.TempDir(), "train.log"), time.UTC, nasty, 0.1, 30
					if c.change != nil {
						c.change(o)
					}
				})
				truth := writeTrain(t, o)
				all, lines := readBack(t, truth)
				assert.Equal(t, map[string]int64{
					"lines": truth.Run.Lines, "records": truth.Run.Records + truth.Run.Sides, "sent": truth.Run.Records + truth.Run.Sides,
					"ignored": truth.Run.Ignored, "rejected": truth.Run.Rejected,
				}, lines)
				checkReadBack(t, truth, all)
			})
		}
	}
}

func checkReadBack(t *testing.T, truth *truthFile, all []ptrace.Span) {
	t.Helper()
	kinds, parts, parents := map[string][]ptrace.Span{}, map[pcommon.SpanID]map[string]float64{}, map[pcommon.SpanID]pcommon.SpanID{}
	for _, s := range all {
		if _, part := s.Attributes().Get(spans.AttrStage); part {
			parents[s.SpanID()] = s.ParentSpanID()
		}
		kinds[s.Name()] = append(kinds[s.Name()], s)
	}
	for _, s := range all {
		of := s.SpanID()
		for parents[of] != (pcommon.SpanID{}) {
			of = parents[of]
		}
		if of != s.SpanID() {
			if parts[of] == nil {
				parts[of] = map[string]float64{}
			}
			parts[of][s.Name()] = s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds()
		}
	}
	for _, kind := range []string{KindStep, KindEvaluation} {
		require.Len(t, kinds[kind], int(truth.Run.Spans[kind]), kind)
		// Several batches are sent at once: they may come in any order.
		slices.SortStableFunc(kinds[kind], func(a, b ptrace.Span) int { return cmp.Compare(iterationOf(a), iterationOf(b)) })
	}
	slices.SortStableFunc(truth.Records, func(a, b Record) int { return cmp.Compare(a.Iteration, b.Iteration) })
	for i := range truth.Records {
		r := &truth.Records[i]
		s := kinds[r.Kind][0]
		kinds[r.Kind] = kinds[r.Kind][1:]
		for attr, want := range r.Values {
			v, ok := s.Attributes().Get(attr)
			if !assert.True(t, ok, "%s of %s %d, printed %v", attr, r.Kind, r.Iteration, r.Printed) {
				continue
			}
			if got := number(v); float64(want) != got && !(math.IsNaN(got) && math.IsNaN(float64(want))) {
				assert.InEpsilon(t, 1+float64(want), 1+got, 1e-12, "%s of %s %d, printed %v", attr, r.Kind, r.Iteration, r.Printed)
			}
		}
		if r.EndUnixNano != 0 {
			late := int64(s.EndTimestamp()) - r.EndUnixNano // a point is 1 ns long
			assert.True(t, late == 0 || late == 1, "the end of %s %d: %d ns", r.Kind, r.Iteration, late)
		}
		assert.Len(t, parts[s.SpanID()], len(r.Stages), "parts of %s %d: %v", r.Kind, r.Iteration, parts[s.SpanID()])
		for _, st := range r.Stages {
			assert.InDelta(t, st.Seconds, parts[s.SpanID()][st.Name], 1e-8, "%s of %s %d", st.Name, r.Kind, r.Iteration)
		}
	}
}

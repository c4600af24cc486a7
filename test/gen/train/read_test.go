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
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
)

// iterationOf is the step of a span.
func iterationOf(s ptrace.Span) int64 {
	v, ok := s.Attributes().Get(spans.AttrIteration)
	if !ok {
		return -1
	}
	return v.Int()
}

// number is an attribute as a number; numbers unknown in JSON are texts.
func number(v pcommon.Value) float64 {
	f, err := strconv.ParseFloat(v.AsString(), 64)
	if err != nil {
		return -1
	}
	return f
}

// The output of the trainers of trainers.go is read back: each record is a span, with the printed numbers in base units, and no more spans of steps exist.
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
		"slime":                  {FormatSlime, nil},
		"slime, without Ray":     {FormatSlime, func(o *Options) { o.Prefix = "none" }},
		"nanochat":               {FormatNanochat, func(o *Options) { o.EvalInterval = 50 }},
		"nanochat, rank":         {FormatNanochat, func(o *Options) { o.Prefix = "rank" }},
		"maxtext":                {FormatMaxText, nil},
		"nemorl":                 {FormatNeMoRL, nil},
		"nemorl, rank":           {FormatNeMoRL, func(o *Options) { o.Prefix = "rank" }},
		"maxtext, torchrun":      {FormatMaxText, func(o *Options) { o.Prefix = "torchrun" }},
	} {
		for _, nasty := range []float64{0, 0.3} {
			t.Run(name+", nasty "+strconv.FormatFloat(nasty, 'f', -1, 64), func(t *testing.T) {
				t.Parallel() // a reader waits for the end of a pause
				o := trainOptions(t, c.format, func(o *Options) {
					o.Out, o.Timezone, o.Nasty, o.Slow, o.NaNLossAt = filepath.Join(t.TempDir(), "train.log"), time.UTC, nasty, 0.1, 30
					if c.change != nil {
						c.change(o)
					}
				})
				truth := writeTrain(t, o)
				log := gentest.Read(t, trainlogreceiver.NewFactory(), truth.Run.Files[0].Path, func(l *gentest.Log) bool { return l.Settled(truth.Run.Lines) })
				assert.Equal(t, map[string]int64{
					"lines": truth.Run.Lines, "records": truth.Run.Records + truth.Run.Sides, "sent": truth.Run.Records + truth.Run.Sides,
					"ignored": truth.Run.Ignored, "rejected": truth.Run.Rejected,
				}, log.Lines())
				checkReadBack(t, truth, log.Spans())
			})
		}
	}
}

// Megatron's standard output is read back by the receiver of FlagScale's logs, which rejects no line.
func TestMegatronIsReadBack(t *testing.T) {
	for _, timers := range []bool{false, true} {
		t.Run(strconv.FormatBool(timers), func(t *testing.T) {
			truth := writeTrain(t, trainOptions(t, FormatMegatron, func(o *Options) {
				o.Out, o.Timezone, o.Interval, o.Timers = filepath.Join(t.TempDir(), "train.log"), time.UTC, 1, timers
			}))
			log := gentest.Read(t, flagscalereceiver.NewFactory(), truth.Run.Files[0].Path, func(l *gentest.Log) bool { return l.Settled(truth.Run.Lines) })
			assert.Zero(t, log.Lines()["rejected"])
			checkReadBack(t, truth, log.Spans())
		})
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
		// Concurrent batches may come in any order.
		slices.SortStableFunc(kinds[kind], func(a, b ptrace.Span) int { return cmp.Compare(iterationOf(a), iterationOf(b)) })
	}
	slices.SortStableFunc(truth.Records, func(a, b Record) int { return cmp.Compare(a.Iteration, b.Iteration) })
	for i := range truth.Records {
		r := &truth.Records[i]
		s := kinds[r.Kind][0]
		kinds[r.Kind] = kinds[r.Kind][1:]
		for attr, want := range r.Values {
			v, ok := s.Attributes().Get(attr)
			if attr == spans.AttrStepDuration && !ok { // the span's length has the value, to the nanosecond
				var took view.Step
				took.Read(s, &view.Resource{})
				assert.InDelta(t, float64(want), took.Duration, 1e-9, "%s %d, printed %v", r.Kind, r.Iteration, r.Printed)
				continue
			}
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

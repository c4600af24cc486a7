package gen

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
)

// join reads all logs of a job and has step_join join them.
func join(t *testing.T, truth *Truth, dir string) []ptrace.Span {
	t.Helper()
	sink, factory := new(consumertest.TracesSink), stepjoinprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig().(*stepjoinprocessor.Config)
	cfg.Wait, cfg.Keep = time.Hour, time.Hour // logs are read one after another, on a busy machine for longer than a step's wait
	p, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	for glob, r := range receivers {
		lines := truth.lines(glob)
		if lines == 0 {
			continue
		}
		log := gentest.Read(t, r.factory(), filepath.Join(dir, glob), func(l *gentest.Log) bool { return l.Settled(lines) })
		for _, td := range log.Traces.AllTraces() {
			require.NoError(t, p.ConsumeTraces(t.Context(), td))
		}
	}
	require.NoError(t, p.Shutdown(t.Context()))
	return gentest.Spans(sink.AllTraces())
}

// withPrefix are the numbers among the attributes with the prefix, by the rest of their names.
func withPrefix(attrs pcommon.Map, prefix string) map[string]float64 {
	all := map[string]float64{}
	for name, v := range attrs.All() {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			all[rest] = v.Double()
		}
	}
	return all
}

// With right clocks the breakdowns of step_join equal the truth, even if collectives have no ids and join by their times.
func TestJoined(t *testing.T) {
	for _, format := range []string{NCCLVCCL, NCCLInspector} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			o := options(t, func(o *Options) { o.Faults, o.NCCL = Faults(), format })
			truth := one(t, o)
			breakdowns := map[pcommon.TraceID]pcommon.Map{}
			for _, s := range join(t, &truth, o.Out) {
				if s.Name() == spans.SpanBreakdown {
					breakdowns[s.TraceID()] = s.Attributes()
				}
			}
			assert.Len(t, breakdowns, len(truth.Steps))
			for _, step := range truth.Steps {
				got, ok := breakdowns[spans.TraceID("run", []byte(step.TraceID))]
				if !assert.True(t, ok, "step %d", step.Step) {
					continue
				}
				assert.InDeltaMapValues(t, step.Time, withPrefix(got, spans.StepTimePrefix), 1e-6, "times of step %d", step.Step)
				delete(step.Sum, spans.PartUnattributed) // unattributed has a time only
				delete(step.Union, spans.PartUnattributed)
				assert.InDeltaMapValues(t, step.Sum, withPrefix(got, spans.StepSumPrefix), 1e-6, "sums of step %d", step.Step)
				assert.InDeltaMapValues(t, step.Union, withPrefix(got, spans.StepUnionPrefix), 1e-6, "unions of step %d", step.Step)
			}
		})
	}
}

// blames reports whether c is the first cause in a sentence.
func blames(reason string, c *Cause) bool {
	_, because, _ := strings.Cut(reason, "): ")
	first := strings.FieldsFunc(because, func(r rune) bool { return strings.ContainsRune(",;", r) })
	if len(first) == 0 {
		return false
	}
	words := map[string]string{
		FaultStraggler: fmt.Sprintf("waiting for rank %d ", c.Rank), FaultGPU: fmt.Sprintf("waiting for rank %d ", c.Rank), FaultLink: "transferring in collectives ",
		FaultData: "loading data ", FaultCheckpoint: "in a checkpoint ", FaultGet: "in TransferQueue GET ", FaultPut: "in TransferQueue PUT ",
		FaultSerialize: "serializing RPC requests ",
	}
	return strings.Contains(strings.TrimSuffix(first[0], ".")+" ", words[c.Kind])
}

// Of 500 causes step_join names at least 99 % first, and never a wrong one; steps without a cause have no reason, with a checkpoint or not. Nor do slow
// checkpoints among the first few, which cannot be known to be slow.
func TestCauses(t *testing.T) {
	const seeds = 5
	var causes, named, wrong, unfounded atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				o := options(t, func(o *Options) { o.Faults, o.Ranks, o.Steps, o.Seed, o.FaultEvery = Faults(), 3, 500, 1+seed, 4 })
				truth := one(t, o)
				reasons := map[pcommon.TraceID]string{}
				for _, s := range join(t, &truth, o.Out) {
					for v := range view.Verdicts(s) {
						if s.Name() == spans.SpanBreakdown {
							reasons[s.TraceID()] = v.Reason
						}
					}
				}
				for _, s := range truth.Steps {
					reason := reasons[spans.TraceID("run", []byte(s.TraceID))]
					switch {
					case s.Cause == nil:
						if reason != "" {
							unfounded.Add(1)
							t.Log(reason)
						}
						continue
					case reason == "" && s.Cause.Kind == FaultCheckpoint && s.Step <= 5*o.CheckpointEvery:
						continue // too few checkpoints to compare with
					}
					causes.Add(1)
					switch {
					case blames(reason, s.Cause):
						named.Add(1)
					case reason == "":
						t.Logf("silent: step %d %+v, %.3f s", s.Step, *s.Cause, float64(s.End-s.Start)/1e9)
					default:
						wrong.Add(1)
						t.Logf("%+v: %s", *s.Cause, reason)
					}
				}
			})
		}
	})
	assert.GreaterOrEqual(t, causes.Load(), int64(500))
	assert.GreaterOrEqual(t, named.Load()*100, causes.Load()*99, "%d of %d", named.Load(), causes.Load())
	assert.Zero(t, wrong.Load())
	assert.Zero(t, unfounded.Load())
}

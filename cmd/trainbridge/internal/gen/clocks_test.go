package gen

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor"
	"github.com/trainbridge/trainbridge/spans"
	"github.com/trainbridge/trainbridge/test/gen/gentest"
)

// joinedJob is a job whose logs the receivers have read, and whose steps step_join has joined.
type joinedJob struct {
	truth *Truth
	run   string
	spans map[pcommon.TraceID]map[pcommon.SpanID]ptrace.Span
	steps map[pcommon.TraceID][]int // the steps of a trace's spans, by the truth: see place
}

// joinJobs writes the logs of one job or two, reads them by the real receivers, and passes the spans through one step_join, which closes all windows at the
// end.
func joinJobs(t *testing.T, change func(*Options)) (opt Options, jobs []*joinedJob) {
	t.Helper()
	opt = options(t, change)
	truths, err := Generate(t.Context(), opt)
	require.NoError(t, err)
	factory, sink := stepjoinprocessor.NewFactory(), new(consumertest.TracesSink)
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"wait": "1h", "keep": "1h", "slowest": 100}).Unmarshal(cfg))
	p, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	for i := range truths {
		dir, run := opt.Out, truths[i].RunID
		if len(truths) > 1 {
			dir = filepath.Join(opt.Out, "job-"+strconv.Itoa(i))
		}
		for glob, r := range receivers {
			lines := truths[i].lines(glob)
			if lines == 0 {
				continue
			}
			log := gentest.Read(t, r.factory(), filepath.Join(dir, glob), func(l *gentest.Log) bool { return l.Settled(lines) }, run)
			for _, td := range log.Traces.AllTraces() {
				require.NoError(t, p.ConsumeTraces(t.Context(), td))
			}
		}
		jobs = append(jobs, &joinedJob{truth: &truths[i], run: run, spans: map[pcommon.TraceID]map[pcommon.SpanID]ptrace.Span{}, steps: map[pcommon.TraceID][]int{}})
	}
	require.NoError(t, p.Shutdown(context.Background()))
	for _, s := range gentest.Spans(sink.AllTraces()) {
		for _, j := range jobs {
			if text(s, spans.AttrRunID) != j.run {
				continue
			}
			if j.spans[s.TraceID()] == nil {
				j.spans[s.TraceID()] = map[pcommon.SpanID]ptrace.Span{}
			}
			j.spans[s.TraceID()][s.SpanID()] = s
		}
	}
	for _, j := range jobs {
		j.place(&opt)
	}
	return opt, jobs
}

func text(s ptrace.Span, name string) string {
	if v, ok := s.Attributes().Get(name); ok {
		return v.AsString()
	}
	return ""
}

// all are the spans of a kind, in order of time.
func (j *joinedJob) all(kind string) (list []ptrace.Span) {
	for _, trace := range j.spans {
		for _, s := range trace {
			if view.KindOf(s).String() == kind {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b ptrace.Span) int {
		id, other := a.SpanID(), b.SpanID()
		return cmp.Or(cmp.Compare(a.StartTimestamp(), b.StartTimestamp()), slices.Compare(id[:], other[:]))
	})
	return list
}

// place finds the step of each span of a log, by certain facts of the truth: the ordinal of a pass, the order of the functions of a process and of the
// collectives, the number of a step. Clocks of two hosts are never compared.
func (j *joinedJob) place(opt *Options) {
	mark := func(s ptrace.Span, steps ...int) {
		for _, n := range steps {
			if !slices.Contains(j.steps[s.TraceID()], n) {
				j.steps[s.TraceID()] = append(j.steps[s.TraceID()], n)
			}
		}
	}
	seen := map[string]int{}
	for _, s := range j.all(spans.KindFunction) {
		key := text(s, spans.AttrProcessPID) + s.Name()
		seen[key]++
		mark(s, seen[key])
	}
	for i, s := range j.all(spans.KindCollective) {
		mark(s, i/opt.Collectives+1)
	}
	for i, s := range j.all(spans.KindPass) {
		mark(s, i+1)
	}
	for _, s := range j.all(spans.KindStep) {
		n, _ := s.Attributes().Get(spans.AttrIteration)
		for k := range j.truth.Steps[0].Covered {
			mark(s, int(n.Int())-k)
		}
	}
}

// within reports whether a function of the next batch, whose sequences are generated meanwhile, ran during one of the steps and during no other step.
func (j *joinedJob) within(s ptrace.Span, steps []int) bool {
	if view.KindOf(s) != view.KindFunction {
		return false
	}
	skew := int64(0)
	for _, h := range j.truth.Hosts {
		if h.Name == text(s, spans.AttrHostName) {
			skew = h.SkewNS
		}
	}
	for _, step := range j.truth.Steps {
		if slices.Contains(steps, step.Step) && int64(s.StartTimestamp())-skew >= step.Start-exact && int64(s.EndTimestamp())-skew <= step.End+exact {
			return true
		}
	}
	return false
}

// exact is by how much times may be off where clocks drift, ns.
const exact = int64(20e6)

// attachments counts the spans of other traces that step_join has attached to a trace, right and wrong ones by the truth; none may be forbidden.
func (j *joinedJob) attachments(t *testing.T) (right int, wrong []string) {
	t.Helper()
	for trace, list := range j.spans {
		for _, s := range list {
			if up := s.ParentSpanID(); !up.IsEmpty() { // without assert.Contains, which lists all spans of the trace for each
				if _, sent := list[up]; !sent {
					assert.Fail(t, "nobody sent the parent", s.Name())
				}
			}
			if view.KindOf(s).String() != spans.KindJoined {
				continue
			}
			to := s.Links().At(0)
			leaf, ok := j.spans[to.TraceID()][to.SpanID()]
			if !assert.True(t, ok, "%s tells of a span that nobody sent", s.Name()) || s.Name() == spans.SpanStepRoot || s.Name() == spans.SpanTQBatch {
				continue // the way back
			}
			if text(s, spans.AttrJoinBy) != spans.JoinByID {
				assert.NotEqual(t, string(spans.TimeSynthetic), text(leaf, spans.AttrTimeSource), "%s joined by a made up time", s.Name())
			}
			ok = j.within(leaf, j.steps[trace])
			for _, n := range j.steps[to.TraceID()] {
				ok = ok || slices.Contains(j.steps[trace], n)
			}
			if ok {
				right++
			} else {
				wrong = append(wrong, fmt.Sprintf("%s of steps %v told in a trace of steps %v by %s", s.Name(), j.steps[to.TraceID()], j.steps[trace], text(s, spans.AttrJoinBy)))
			}
		}
	}
	return right, wrong
}

// breakdowns are the breakdowns of training steps, by step number.
func (j *joinedJob) breakdowns() map[int]ptrace.Span {
	all := map[int]ptrace.Span{}
	for _, s := range j.all(spans.KindBreakdown) {
		if n, ok := s.Attributes().Get(spans.AttrIteration); ok {
			all[int(n.Int())] = s
		}
	}
	return all
}

// silent says whether a sentence names no cause.
func silent(reason string) bool {
	return reason == "" || strings.Contains(reason, "the logs do not say why")
}

// With any fault of clocks, attachments of step_join are right by the truth, and no step is called slow for a wrong reason.
func TestBadClocks(t *testing.T) {
	for _, clocks := range [][]string{
		{ClockSeconds},
		{ClockSkew},
		{ClockNoStart},
		{ClockNA},
		{ClockNSteps},
		{ClockTwoJobs},
		{ClockOverlap},
		{ClockSeconds, ClockSkew},
		{ClockSkew, ClockOverlap, ClockNA},
		{ClockSeconds, ClockNSteps, ClockOverlap},
	} {
		for _, ids := range []string{IDsUUID, IDsNone} {
			t.Run(strings.Join(clocks, "+")+" "+ids, func(t *testing.T) {
				t.Parallel()
				right, steps := 0, 0
				var wrong []string
				for seed := range uint64(2) {
					_, jobs := joinJobs(t, func(o *Options) {
						o.Seed, o.Ranks, o.Steps, o.Faults, o.FaultEvery, o.NCCL, o.IDs, o.Clocks = 1+seed, 16, 40, Faults(), 4, NCCLInspector, ids, clocks
					})
					for _, j := range jobs {
						more, not := j.attachments(t)
						right, wrong = right+more, append(wrong, not...)
						found := j.breakdowns()
						for _, step := range j.truth.Steps {
							steps += step.Covered
							for v := range view.Verdicts(found[step.Step]) {
								switch c := step.Cause; {
								case silent(v.Reason) || step.Time[spans.PartEvaluation] > 0 && strings.Contains(v.Reason, "): "):
								case c == nil:
									assert.Fail(t, "nothing was wrong", "step %d: %s", step.Step, v.Reason)
								default:
									assert.True(t, blames(v.Reason, c), "%+v: %s", *c, v.Reason)
								}
							}
						}
					}
				}
				t.Logf("%d attached in %d steps", right, steps)
				assert.LessOrEqual(t, len(wrong)*1000, right, "of %d: %v", right, wrong[:min(len(wrong), 3)])
			})
		}
	}
}

package trainperfprocessor

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// trainPerf adds shares and verdicts to spans. Calls may run concurrently: what one call needs is in its scratch, and
// what calls share (the sliding windows) has its own lock.
type trainPerf struct {
	telemetry *metadata.TelemetryBuilder
	tq        *tq
	train     *train
	zmq       zmq
	nccl      nccl
	scratch   sync.Pool // of *scratch
	release   func()    // the devices
	crowded   sync.Once // there is no room for another host, and that was said
}

func newTrainPerf(cfg *Config, set component.TelemetrySettings) (*trainPerf, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	p := &trainPerf{telemetry: telemetry, tq: newTQ(cfg.TQ), train: newTrain(cfg.Train, set.Logger), zmq: zmq{cfg: cfg.ZMQ, episodes: newAllEpisodes()}, nccl: nccl{cfg: cfg.NCCL}, release: func() {}}
	p.scratch.New = func() any { return &scratch{status: cfg.VerdictStatus} }
	return p, nil
}

// start reads the files that the config names.
func (p *trainPerf) start(context.Context, component.Host) error { return p.train.start() }

// processTraces works in place. It never fails: what cannot be judged is passed on as it is, and counted.
func (p *trainPerf) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	s := p.scratch.Get().(*scratch)
	for _, rs := range td.ResourceSpans().All() {
		s.resetResource()
		s.resource = rs.Resource().Attributes()
		s.service, s.run = spans.AttrText(s.resource, spans.AttrServiceName), spans.AttrText(s.resource, spans.AttrRunID)
		for _, ss := range rs.ScopeSpans().All() {
			scope := ss.Scope().Attributes()
			_, s.scopeJudged = scope.Get(spans.AttrTQJudged)
			s.scopeTQ = false
			list := ss.Spans()
			for i := range list.Len() {
				p.span(list.At(i), s)
			}
			if s.scopeTQ && !s.scopeJudged {
				scope.PutBool(spans.AttrTQJudged, true)
			}
		}
		p.tq.process(s)
		if len(s.stepSpans) > 0 {
			p.train.process(s.resource, s)
		}
	}
	for i, n := range s.outcomes {
		if n > 0 {
			p.telemetry.ProcessorTrainPerfFunctions.Add(ctx, n, outcomeOptions[i])
		}
	}
	for i, n := range s.steps {
		if n > 0 {
			p.telemetry.ProcessorTrainPerfSteps.Add(ctx, n, stepOptions[i])
		}
	}
	for i, n := range s.groups {
		if n > 0 {
			p.telemetry.ProcessorTrainPerfRPCGroups.Add(ctx, n, groupOptions[i])
		}
	}
	for i, n := range s.collectives {
		if n > 0 {
			p.telemetry.ProcessorTrainPerfCollectives.Add(ctx, n, collectiveOptions[i])
		}
	}
	if s.evicted > 0 {
		p.telemetry.ProcessorTrainPerfWindowsEvicted.Add(ctx, s.evicted)
	}
	s.reset()
	p.scratch.Put(s)
	return td, nil
}

// span judges one span, or sorts it into the scratch where its resource has to be seen whole.
func (p *trainPerf) span(span ptrace.Span, s *scratch) {
	name := span.Name()
	if spans.IsNCCLPart(name) {
		return // thousands below each root, which says what they add up to
	}
	switch name {
	case spans.SpanStep:
		s.stepSpans = append(s.stepSpans, span)
		return
	case spans.SpanRanks:
		p.train.ranks(span, s)
		return
	case spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCDeserialize, spans.SpanRPCServer, spans.SpanRPCUnattributed,
		spans.SpanRPCOffline, spans.SpanRPCSummary:
		return // below calls, or about them
	case spans.SpanRPCPass, spans.SpanRPCCalls, spans.SpanRPCSession:
		if span.Kind() != ptrace.SpanKindClient { // a call is named by its method
			s.groups[p.zmq.group(name, span, s)]++
			return
		}
	}
	in := readTQ(span.Attributes())
	if in.collective {
		s.collectives[p.nccl.collective(span, s)]++
		return
	}
	p.tq.collect(span, &in, s)
}

func (p *trainPerf) shutdown(context.Context) error {
	p.telemetry.Shutdown()
	p.release()
	return nil
}

// scratch is the memory of one processTraces call, reused by the next.
type scratch struct {
	tqScratch
	scopeJudged  bool // another train_perf has seen the TransferQueue spans of the scope
	scopeTQ      bool // it has some
	stepSpans    []ptrace.Span
	step         work
	added        additions
	recent       recentSeries
	recentBy     recentEpisodes
	found        finding
	verdicts     []verdict
	behind       []int64
	status       bool // Config.VerdictStatus
	text         []byte
	resource     pcommon.Map // its attributes
	service, run string      // of the resource
	steps        [stepOutcomes]int64
	groups       [groupOutcomes]int64
	collectives  [collectiveOutcomes]int64
	evicted      int64
}

// reset also lets go of what belongs to the batch: spans, and strings that may share memory with it.
func (s *scratch) reset() {
	s.resetResource()
	s.resource, s.service, s.run = pcommon.Map{}, "", ""
	s.outcomes = [outcomes]int64{}
	s.steps = [stepOutcomes]int64{}
	s.groups = [groupOutcomes]int64{}
	s.collectives = [collectiveOutcomes]int64{}
	s.evicted = 0
	s.step = work{}
}

func (s *scratch) resetResource() {
	clear(s.functions)
	clear(s.apart)
	clear(s.stepSpans)
	clear(s.added[:cap(s.added)])
	s.stepSpans, s.added, s.recent = s.stepSpans[:0], s.added[:0], recentSeries{}
	s.recentBy = recentEpisodes{}
	clear(s.verdicts[:cap(s.verdicts)])
	s.functions, s.children, s.apart, s.verdicts = s.functions[:0], s.children[:0], s.apart[:0], s.verdicts[:0]
}

package trainperfprocessor

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
)

// trainPerf adds shares and verdicts to spans. Calls may run concurrently: what one call needs is in its scratch, and
// what calls share (the sliding windows) has its own lock.
type trainPerf struct {
	telemetry *metadata.TelemetryBuilder
	tq        *tq
	scratch   sync.Pool // of *tqScratch
}

func newTrainPerf(cfg *Config, set component.TelemetrySettings) (*trainPerf, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	p := &trainPerf{telemetry: telemetry, tq: newTQ(cfg.TQ)}
	p.scratch.New = func() any { return new(tqScratch) }
	return p, nil
}

// processTraces works in place. It never fails: what cannot be judged is passed on as it is, and counted.
func (p *trainPerf) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	s := p.scratch.Get().(*tqScratch)
	for _, rs := range td.ResourceSpans().All() {
		p.tq.process(rs, s)
	}
	for i, n := range s.outcomes {
		if n > 0 {
			p.telemetry.ProcessorTrainPerfFunctions.Add(ctx, n, outcomeOptions[i])
		}
	}
	if s.evicted > 0 {
		p.telemetry.ProcessorTrainPerfWindowsEvicted.Add(ctx, s.evicted)
	}
	s.reset()
	p.scratch.Put(s)
	return td, nil
}

func (p *trainPerf) shutdown(context.Context) error {
	p.telemetry.Shutdown()
	return nil
}

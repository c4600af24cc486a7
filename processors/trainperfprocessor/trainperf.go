package trainperfprocessor

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/collectives"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/rpc"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/steps"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/tq"
)

// domains is what train_perf knows about. Each domain is made from its own part of the config, and counts the outcomes of its spans in a counter.
var domains = []struct {
	make  func(*trainPerf, *Config) domain.Domain
	count func(*metadata.TelemetryBuilder) metric.Int64Counter
}{
	{
		func(_ *trainPerf, c *Config) domain.Domain { return tq.New(c.TQ) },
		func(t *metadata.TelemetryBuilder) metric.Int64Counter { return t.ProcessorTrainPerfFunctions },
	},
	{
		func(p *trainPerf, c *Config) domain.Domain { return steps.New(c.Train, p.logger, p.devices) },
		func(t *metadata.TelemetryBuilder) metric.Int64Counter { return t.ProcessorTrainPerfSteps },
	},
	{
		func(_ *trainPerf, c *Config) domain.Domain { return rpc.New(c.ZMQ) },
		func(t *metadata.TelemetryBuilder) metric.Int64Counter { return t.ProcessorTrainPerfRPCGroups },
	},
	{
		func(_ *trainPerf, c *Config) domain.Domain { return collectives.New(c.NCCL) },
		func(t *metadata.TelemetryBuilder) metric.Int64Counter { return t.ProcessorTrainPerfCollectives },
	},
}

// trainPerf has the domains judge spans. Calls may run concurrently: what one call needs is in its panel.
type trainPerf struct {
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	domains   []domain.Domain
	outcomes  [][]metric.AddOption // of each domain
	panels    sync.Pool            // of *domain.Panel
	devices   *devices.Devices
	release   func()    // lets go of the devices
	crowded   sync.Once // there is no room for another host, and that was said
}

func newTrainPerf(cfg *Config, set component.TelemetrySettings, known *devices.Devices, release func()) (*trainPerf, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	p := &trainPerf{logger: set.Logger, telemetry: telemetry, devices: known, release: release}
	for _, of := range domains {
		d := of.make(p, cfg)
		p.domains = append(p.domains, d)
		var options []metric.AddOption
		for _, outcome := range d.Outcomes() {
			options = append(options, metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", outcome))))
		}
		p.outcomes = append(p.outcomes, options)
	}
	p.panels.New = func() any { return domain.NewPanel(cfg.VerdictStatus, p.domains...) }
	return p, nil
}

// start has the domains read the files that the config names.
func (p *trainPerf) start(context.Context, component.Host) error {
	for _, d := range p.domains {
		if d, ok := d.(interface{ Start() error }); ok {
			if err := d.Start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// processTraces works in place. It never fails: what cannot be judged is passed on as it is, and counted.
func (p *trainPerf) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	panel := p.panels.Get().(*domain.Panel)
	panel.Judge(td)
	p.count(ctx, panel)
	panel.Reset()
	p.panels.Put(panel)
	return td, nil
}

func (p *trainPerf) count(ctx context.Context, panel *domain.Panel) {
	evicted := int64(0)
	for i, judge := range panel.Judges {
		tally := judge.Tally()
		for outcome, n := range tally.Outcomes {
			if n > 0 {
				domains[i].count(p.telemetry).Add(ctx, n, p.outcomes[i][outcome])
			}
		}
		evicted += tally.Evicted
	}
	if evicted > 0 {
		p.telemetry.ProcessorTrainPerfWindowsEvicted.Add(ctx, evicted)
	}
}

func (p *trainPerf) shutdown(context.Context) error {
	p.telemetry.Shutdown()
	p.release()
	return nil
}

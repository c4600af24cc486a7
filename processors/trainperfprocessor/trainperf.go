package trainperfprocessor

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/internal/storageclient"
	"github.com/trainbridge/trainbridge/internal/turns"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
)

// countedDomain is a domain with the counter of its outcomes.
type countedDomain struct {
	domain.Domain
	counter  metric.Int64Counter
	outcomes []metric.AddOption
}

// memory has the verdicts of the spans judged last, also by the process before. The instances of one component share it.
type memory struct {
	verdicts verdict.Memory
	storageclient.Memory
}

// newMemory returns an empty memory.
func newMemory() *memory {
	m := new(memory)
	m.Of, m.Purpose, m.Ring.Keep = &m.verdicts, "verdicts", verdict.Remembered
	return m
}

// trainPerf has the domains judge spans. Calls may run concurrently: the state of a call is in its panel.
type trainPerf struct {
	cfg       *Config
	id        component.ID
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	domains   []countedDomain
	panels    sync.Pool // of *domain.Panel
	memory    *memory   // verdicts said
	devices   *devices.Devices
	release   func()    // releases devices and memory
	crowded   sync.Once // guards the log line about too many hosts
}

// newTrainPerf returns an instance with its domains, each with a counter of its outcomes. release is called at shutdown. The caller sets the memory shared with
// other instances before start.
func newTrainPerf(cfg *Config, set component.TelemetrySettings, known *devices.Devices, release func()) (*trainPerf, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	p := &trainPerf{cfg: cfg, logger: set.Logger, telemetry: telemetry, devices: known, memory: newMemory(), release: release}
	p.domains = cfg.domains(p)
	var list []domain.Domain
	for i := range p.domains {
		d := &p.domains[i]
		for _, outcome := range d.Outcomes() {
			d.outcomes = append(d.outcomes, metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", outcome))))
		}
		list = append(list, d.Domain)
	}
	p.panels.New = func() any { return domain.NewPanel(&p.memory.verdicts, cfg.VerdictStatus, list...) }
	return p, nil
}

// start lets the domains read the files of the config, and restores the verdicts of the last process.
func (p *trainPerf) start(ctx context.Context, host component.Host) error {
	for _, d := range p.domains {
		if d, ok := d.Domain.(interface{ Start() error }); ok {
			if err := d.Start(); err != nil {
				return err
			}
		}
	}
	return p.memory.Open(ctx, host, p.cfg.Storage, component.KindProcessor, p.id, p.logger)
}

// processTraces lets the domains judge the spans of a batch, in place, and stores the verdicts before the batch is sent. The error is always nil: spans that
// cannot be judged pass unchanged, and are counted.
func (p *trainPerf) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	panel := p.panels.Get().(*domain.Panel)
	leave := turns.Enter(ctx, p)
	panel.Judge(td)
	leave()
	p.count(ctx, panel)
	panel.Reset()
	p.panels.Put(panel)
	p.memory.Save(ctx, p.logger)
	return td, nil
}

// count adds the outcomes of a batch to the processor's own metrics.
func (p *trainPerf) count(ctx context.Context, panel *domain.Panel) {
	evicted := int64(0)
	for i, judge := range panel.Judges {
		d, tally := &p.domains[i], judge.Tally()
		for outcome, n := range tally.Outcomes {
			if n > 0 {
				d.counter.Add(ctx, n, d.outcomes[outcome])
			}
		}
		evicted += tally.Evicted
	}
	if evicted > 0 {
		p.telemetry.ProcessorTrainPerfWindowsEvicted.Add(ctx, evicted)
	}
}

// shutdown ends an instance of metrics, and is the last part of stop.
func (p *trainPerf) shutdown(context.Context) error {
	p.telemetry.Shutdown()
	p.release()
	return nil
}

// stop ends an instance of traces, which has also opened the storage of the memory.
func (p *trainPerf) stop(ctx context.Context) error {
	return errors.Join(p.memory.Close(ctx), p.shutdown(ctx))
}

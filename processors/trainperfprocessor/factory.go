package trainperfprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/trainbridge/trainbridge/processors/internal/instances"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
)

// NewFactory returns the factory of the train_perf processor.
func NewFactory() processor.Factory {
	f := &factory{devices: instances.New(devices.New), memories: instances.New(newMemory)}
	return processor.NewFactory(metadata.Type, createDefaultConfig,
		processor.WithTraces(f.createTraces, metadata.TracesStability),
		processor.WithMetrics(f.createMetrics, metadata.MetricsStability))
}

// factory has the state shared by the instances of one component.
type factory struct {
	devices  *instances.Shared[*devices.Devices]
	memories *instances.Shared[*memory]
}

// create makes an instance that shares the known devices and the memory of verdicts with the other instances of its component id.
func (f *factory) create(set processor.Settings, cfg component.Config) (*trainPerf, error) {
	known, releaseDevices := f.devices.Use(set.ID)
	verdicts, releaseMemory := f.memories.Use(set.ID)
	release := func() {
		releaseDevices()
		releaseMemory()
	}
	p, err := newTrainPerf(cfg.(*Config), set.TelemetrySettings, known, release)
	if err != nil {
		release()
		return nil, err
	}
	p.id, p.memory = set.ID, verdicts
	return p, nil
}

// createTraces makes the instance for a pipeline of traces, which judges spans.
func (f *factory) createTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	p, err := f.create(set, cfg)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewTraces(ctx, set, cfg, next, p.processTraces,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		processorhelper.WithStart(p.start),
		processorhelper.WithShutdown(p.stop))
}

// createMetrics makes the instance for a pipeline of metrics, which records devices and renames native metrics.
func (f *factory) createMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	p, err := f.create(set, cfg)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewMetrics(ctx, set, cfg, next, p.processMetrics,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		processorhelper.WithShutdown(p.shutdown))
}

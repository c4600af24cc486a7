package stepjoinprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/trainbridge/trainbridge/processors/internal/instances"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/gpus"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadata"
)

// NewFactory returns the factory of the step_join processor.
func NewFactory() processor.Factory {
	f := &factory{gpus: instances.New(gpus.New)}
	return processor.NewFactory(metadata.Type, createDefaultConfig,
		processor.WithTraces(f.createTraces, metadata.TracesStability),
		processor.WithMetrics(f.createMetrics, metadata.MetricsStability))
}

// factory has the state shared by the instances of one component.
type factory struct{ gpus *instances.Shared[*gpus.GPUs] }

// createTraces makes the instance for a pipeline of traces, which shares the GPU values with the instance of metrics of the same component id.
func (f *factory) createTraces(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	p, err := newStepJoin(cfg.(*Config), set, next)
	if err != nil {
		return nil, err
	}
	p.gpus, p.release = f.gpus.Use(set.ID)
	return p, nil
}

package trainperfprocessor

import (
	"errors"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/collectives"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/rpc"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/steps"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/tq"
)

// Config of the train_perf processor.
type Config struct {
	// VerdictStatus sets the status of a span with a bad verdict to Error, with the verdict's sentence: Jaeger and Tempo show and find errors. Default true.
	VerdictStatus bool `mapstructure:"verdict_status"`
	// Storage is the extension that stores the verdicts of the spans judged last: spans sent again after a crash get the same verdicts. Default none: after a
	// restart their verdicts may differ.
	Storage *component.ID `mapstructure:"storage"`
	// TQ holds the thresholds of the verdicts about TransferQueue functions.
	TQ tq.Config `mapstructure:"tq"`
	// Train says how FLOPs of training steps are counted, and when a step gets a verdict.
	Train steps.Config `mapstructure:"train"`
	// ZMQ holds the thresholds of the verdicts about ZeroMQ RPCs.
	ZMQ rpc.Config `mapstructure:"zmq"`
	// NCCL holds the thresholds of the verdicts about collectives.
	NCCL collectives.Config `mapstructure:"nccl"`
}

// domains returns the domains of train_perf, each with its part of the config and the counter of its outcomes.
func (c *Config) domains(p *trainPerf) []countedDomain {
	t := p.telemetry
	return []countedDomain{
		{Domain: tq.New(c.TQ), counter: t.ProcessorTrainPerfFunctions},
		{Domain: steps.New(c.Train, p.logger, p.devices), counter: t.ProcessorTrainPerfSteps},
		{Domain: rpc.New(c.ZMQ), counter: t.ProcessorTrainPerfRPCGroups},
		{Domain: collectives.New(c.NCCL), counter: t.ProcessorTrainPerfCollectives},
	}
}

var _ component.Config = (*Config)(nil)

// createDefaultConfig returns a Config with the defaults.
func createDefaultConfig() component.Config {
	return &Config{VerdictStatus: true, TQ: tq.DefaultConfig(), Train: steps.DefaultConfig(), ZMQ: rpc.DefaultConfig(), NCCL: collectives.DefaultConfig()}
}

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate returns every error of the config, joined.
func (c *Config) Validate() error {
	return errors.Join(slices.Concat(c.TQ.Errors(), c.Train.Errors(), c.ZMQ.Errors(), c.NCCL.Errors())...)
}

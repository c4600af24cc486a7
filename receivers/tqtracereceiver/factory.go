package tqtracereceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// NewFactory makes the factory of tq_trace.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(metadata.Type, createDefaultConfig,
		receiver.WithTraces(createTraces, metadata.TracesStability), receiver.WithMetrics(createMetrics, metadata.MetricsStability))
}

func createDefaultConfig() component.Config {
	return &Config{Config: tail.DefaultConfig(), RunConfig: spans.RunConfig{ServiceName: "verl"}}
}

// shared holds the instance that serves both signals of one configured receiver, so that a file is read once.
var shared struct {
	sync.Mutex
	byConfig map[*Config]*tqReceiver
}

func instance(set receiver.Settings, cfg *Config) (*tqReceiver, error) {
	shared.Lock()
	defer shared.Unlock()
	if r, ok := shared.byConfig[cfg]; ok {
		return r, nil
	}
	r, err := newReceiver(set, cfg)
	if err != nil {
		return nil, err
	}
	if shared.byConfig == nil {
		shared.byConfig = make(map[*Config]*tqReceiver)
	}
	shared.byConfig[cfg] = r
	return r, nil
}

// forget makes the next create call for the config build a new instance.
func forget(cfg *Config) {
	shared.Lock()
	defer shared.Unlock()
	delete(shared.byConfig, cfg)
}

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	r, err := instance(set, cfg.(*Config))
	if err == nil {
		r.traces = next
	}
	return r, err
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	r, err := instance(set, cfg.(*Config))
	if err == nil {
		r.metrics = next
	}
	return r, err
}

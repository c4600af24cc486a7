package otlpackedexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter/internal/metadata"
)

// NewFactory makes the factory of otlp_acked.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(metadata.Type, createDefaultConfig,
		exporter.WithTraces(createTraces, metadata.TracesStability), exporter.WithMetrics(createMetrics, metadata.MetricsStability))
}

// queueBytes is the size of a configured queue: some sixty of the largest requests.
const queueBytes = 64 << 20

// createDefaultConfig: gzip, retries for ever, and no queue; a queue that is configured holds queueBytes, and its callers wait for the result.
func createDefaultConfig() component.Config {
	grpc := configgrpc.NewDefaultClientConfig()
	grpc.Compression = configcompression.TypeGzip
	grpc.WriteBufferSize = 512 << 10
	http := confighttp.NewDefaultClientConfig()
	http.Compression = configcompression.TypeGzip
	http.WriteBufferSize = 512 << 10
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval, retry.MaxInterval, retry.MaxElapsedTime = 200*time.Millisecond, 5*time.Second, 0
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer, queue.QueueSize = exporterhelper.RequestSizerTypeBytes, queueBytes
	queue.WaitForResult, queue.BlockOnOverflow = true, true
	queue.Batch = configoptional.None[exporterhelper.BatchConfig]()
	return &Config{
		ClientConfig: grpc, HTTP: configoptional.Default(http), TimeoutConfig: exporterhelper.TimeoutConfig{Timeout: 30 * time.Second},
		QueueConfig: configoptional.Default(queue), RetryConfig: retry,
	}
}

// quiet keeps exporterhelper from logging an error with a stack trace per attempt, and from logging dropped data that a receiver still holds: the exporter
// itself logs failures.
func quiet(set exporter.Settings) exporter.Settings {
	set.Logger = zap.NewNop()
	return set
}

// options are the parts of exporterhelper that are used, with their settings.
func (e *otlpExporter) options() []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithTimeout(e.cfg.TimeoutConfig), exporterhelper.WithRetry(e.cfg.RetryConfig), exporterhelper.WithQueue(e.cfg.QueueConfig),
		exporterhelper.WithStart(e.start), exporterhelper.WithShutdown(e.shutdown),
	}
}

func createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	e, err := newExporter(ctx, set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	in, err := exporterhelper.NewTraces(ctx, quiet(set), cfg, e.pushTraces, e.options()...)
	return tracesIn{in, e}, err
}

func createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e, err := newExporter(ctx, set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	in, err := exporterhelper.NewMetrics(ctx, quiet(set), cfg, e.pushMetrics, e.options()...)
	return metricsIn{in, e}, err
}

package otlpackedexporter

import (
	"errors"
	"fmt"
	"net/url"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/trainbridge/trainbridge/internal/duration"
)

// Config has the keys of the collector's otlp_grpc exporter, and under http the keys of its otlp_http exporter.
type Config struct {
	// ClientConfig is the gRPC connection: endpoint, tls, compression, headers, auth and so on.
	configgrpc.ClientConfig `mapstructure:",squash"`
	// HTTP sends by HTTP instead, as protobuf to ENDPOINT/v1/traces and ENDPOINT/v1/metrics.
	HTTP configoptional.Optional[confighttp.ClientConfig] `mapstructure:"http"`
	// TimeoutConfig bounds one attempt. Default 30s: a slow backend must not get the same request again and again.
	exporterhelper.TimeoutConfig `mapstructure:",squash"`
	// QueueConfig is a queue between the callers and the backend. Default: none, each caller sends its own request and waits. If set, it holds at most 64 MiB,
	// with num_consumers requests in flight; a caller waits for room and for the result.
	QueueConfig configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	// RecordOnly also sends spans that are joined and counted, but not drawn (trainbridge.record_only), to a collector that joins them. Default: not sent.
	RecordOnly bool `mapstructure:"record_only"`
	// RetryConfig resends requests that were not accepted, by default for ever.
	RetryConfig configretry.BackOffConfig `mapstructure:"retry_on_failure"`
}

const (
	minQueueBytes = 8 << 20
	minQueueItems = 10_000
)

var (
	errQueue    = fmt.Errorf("'sending_queue::queue_size' is less than one request may have: at least %d bytes or %d items", minQueueBytes, minQueueItems)
	errEndpoint = errors.New("'endpoint' is missing: host:port of an OTLP/gRPC server, such as 127.0.0.1:4317; for HTTP set 'http::endpoint'")
	errBoth     = errors.New("'endpoint' (gRPC) and 'http::endpoint' are both set: keep one")
	errURL      = errors.New("'http::endpoint' must be a URL such as http://127.0.0.1:4318")
)

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate names the errors of the configuration.
func (c *Config) Validate() error {
	if q := c.QueueConfig.Get(); q != nil && (q.Sizer == exporterhelper.RequestSizerTypeBytes && q.QueueSize < minQueueBytes ||
		q.Sizer == exporterhelper.RequestSizerTypeItems && q.QueueSize < minQueueItems) {
		return errQueue
	}
	if !c.HTTP.HasValue() {
		if c.Endpoint == "" {
			return errEndpoint
		}
		return nil
	}
	if c.Endpoint != "" {
		return errBoth
	}
	if u, err := url.Parse(c.HTTP.Get().Endpoint); err != nil || u.Scheme == "" || u.Host == "" {
		return fmt.Errorf("%w, not %q", errURL, c.HTTP.Get().Endpoint)
	}
	return nil
}

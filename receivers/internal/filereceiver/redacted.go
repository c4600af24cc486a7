package filereceiver

import (
	"context"

	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/receivers/internal/redact"
)

const scopeName = "github.com/trainbridge/trainbridge/receivers/internal/filereceiver"

// redacted counts the texts of spans that were replaced.
type redacted struct {
	inst                metric.Int64Counter
	keys, values, hosts metric.MeasurementOption
}

func newRedacted(set receiver.Settings) (redacted, error) {
	inst, err := set.MeterProvider.Meter(scopeName).Int64Counter("trainbridge.redacted", metric.WithUnit("{text}"),
		metric.WithDescription("Texts of spans that were replaced by [redacted], because of the name of their field or their shape, or by the hash of a host."))
	by := func(reason string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("receiver", set.ID.String()), attribute.String("reason", reason)))
	}
	return redacted{inst, by("key"), by("value"), by("host")}, err
}

func (c *redacted) add(ctx context.Context, n redact.Counts) {
	for _, x := range [...]struct {
		n  int64
		by metric.MeasurementOption
	}{{n.Keys, c.keys}, {n.Values, c.values}, {n.Hosts, c.hosts}} {
		if x.n > 0 {
			c.inst.Add(ctx, x.n, x.by)
		}
	}
}

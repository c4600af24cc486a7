package perfetto

import (
	"context"

	"go.opentelemetry.io/collector/consumer"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
)

// Open begins a report in the format.
func Open(req format.Request) format.Writer { return report{New(req.Out)} }

type report struct{ *Writer }

func (r report) Sink() offline.Sink {
	traces, _ := consumer.NewTraces(r.ConsumeTraces) // fails for nil
	metrics, _ := consumer.NewMetrics(r.ConsumeMetrics)
	return offline.Sink{Traces: traces, Metrics: metrics}
}

func (r report) Finish(context.Context, *offline.Reading) error { return r.Close() }

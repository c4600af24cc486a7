package trainperfprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/nativemetrics"
)

// Outcomes of Megatron's metrics.
var (
	nativeRenamed = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", "renamed")))
	nativeLeft    = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", "left")))
)

// processMetrics records devices from the metrics of GPUs, and gives the native metrics of Megatron and NCCL our names and units. It judges nothing, and the
// error is always nil.
func (p *trainPerf) processMetrics(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	renamed, left := int64(0), int64(0)
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if devices.IsAbout(m.Name()) {
					p.notice(rm.Resource().Attributes(), m)
					continue
				}
				switch nativemetrics.Rename(m) {
				case nativemetrics.Renamed:
					renamed++
				case nativemetrics.Left:
					left++
				case nativemetrics.Other:
				}
			}
		}
	}
	if renamed > 0 {
		p.telemetry.ProcessorTrainPerfNativeMetrics.Add(ctx, renamed, nativeRenamed)
	}
	if left > 0 {
		p.telemetry.ProcessorTrainPerfNativeMetrics.Add(ctx, left, nativeLeft)
	}
	return md, nil
}

// notice records the devices of a metric, and warns once if there are too many hosts.
func (p *trainPerf) notice(resource pcommon.Map, m pmetric.Metric) {
	if p.devices.Notice(resource, m) {
		return
	}
	p.crowded.Do(func() {
		p.logger.Warn("There are more hosts with GPUs than are kept in mind: training steps of the others have no MFU without 'train::device'.",
			zap.Int("kept", devices.Max))
	})
}

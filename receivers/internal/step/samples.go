package step

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// sample is a value of a GPU, at a time in ns since the epoch.
type sample struct {
	record.GPUSample
	labels labels
	at     int64
}

// series identifies a series of GPU values of some labels.
type series struct {
	metric record.GPUMetric
	device uint16
}

// gpuMetric is a metric of GPUs, with the label that tells the series of one metric apart ("" for none), and the label's value.
type gpuMetric struct {
	spans.Metric
	label, value string
	integer      bool
}

// gpuMetrics are the metrics of record.GPUSample, with the units, types and labels of receivers/nvmlreceiver (metadata.yaml).
var gpuMetrics = [record.NumGPUMetrics]gpuMetric{
	record.GPUUtilization: {Metric: gpuUtilization, label: spans.AttrGPUTask, value: "general"},
	record.GPUMemoryUsage: {
		Metric:  spans.Metric{Name: "hw.gpu.memory.usage", Unit: "By", Description: "Device memory in use.", Instrument: spans.UpDownCounter},
		integer: true,
	},
	record.GPUMemoryUtilization: {
		Metric: spans.Metric{Name: "hw.gpu.memory.utilization", Unit: spans.UnitOne, Description: "Share of the device memory that is in use."},
	},
	record.GPUTemperature: {
		Metric: spans.Metric{Name: spans.MetricHardwareTemperature, Unit: "Cel", Description: "Temperature."}, label: spans.AttrSensorLocation, value: "gpu",
	},
	record.GPUPower: {
		Metric: spans.Metric{Name: spans.MetricHardwarePower, Unit: "W", Description: "Power that the GPU draws."},
		label:  spans.AttrHardwareType, value: spans.HardwareTypeGPU,
	},
	record.GPUEnergy: {
		Metric: spans.Metric{
			Name: "hw.energy", Unit: "J", Description: "Energy that the GPU took since the driver was loaded.", Instrument: spans.Counter,
		},
		label: spans.AttrHardwareType, value: spans.HardwareTypeGPU,
	},
	record.GPUClockSM:        {Metric: gpuClock, label: spans.AttrGPUClockDomain, value: "sm", integer: true},
	record.GPUClockMemory:    {Metric: gpuClock, label: spans.AttrGPUClockDomain, value: "memory", integer: true},
	record.GPUClockGraphics:  {Metric: gpuClock, label: spans.AttrGPUClockDomain, value: "graphics", integer: true},
	record.GPUPCIeReceive:    {Metric: gpuPCIe, label: direction, value: "receive"},
	record.GPUPCIeTransmit:   {Metric: gpuPCIe, label: direction, value: "transmit"},
	record.GPUNVLinkReceive:  {Metric: gpuNVLink, label: direction, value: "receive"},
	record.GPUNVLinkTransmit: {Metric: gpuNVLink, label: direction, value: "transmit"},
}

const direction = "network.io.direction"

var (
	gpuClock  = spans.MetricNamed(spans.MetricGPUClock)
	gpuPCIe   = spans.MetricNamed("trainbridge.gpu.pcie.throughput")
	gpuNVLink = spans.MetricNamed("trainbridge.gpu.nvlink.throughput")
)

// sample adds the GPU values of a record (record.Samples) to the batch, measured at a time in ns since the epoch. They become points, and no attributes of a
// step.
func (b *stepBatch) sample(h *handler, rec *record.Record, at int64) {
	if len(rec.Samples) == 0 {
		return
	}
	of := labels{rec.Source, h.hostOf(rec), h.rank(rec), !rec.HasRank && h.prefix.Local}
	b.hosts = b.hosts || of.host != ""
	for _, s := range rec.Samples {
		b.samples = append(b.samples, sample{s, of, at})
	}
}

// putDevice labels a point of a GPU as the nvml receiver does. Only hw.id differs: the index in the log's list of GPUs, left out where the GPU is unknown.
func putDevice(m pcommon.Map, info *gpuMetric, device int, unknown bool) {
	if !unknown {
		m.PutStr(spans.AttrHardwareID, index(device))
	}
	if info.label != "" {
		m.PutStr(info.label, info.value)
	}
}

// GPUs implements filereceiver.Valued: it passes the values of which Metrics would make points. The utilizations of a GPU in consecutive records are passed
// together; a sample alone.
func (b *stepBatch) GPUs(to func(*spans.GPUValues)) {
	v := spans.GPUValues{Service: b.set.Run.ServiceName, RunID: b.run}
	// Utilization, stated with the records: from and end bound records with the same labels.
	for from, end := 0, 0; from < len(b.items); from = end {
		l, one, devices := b.labels(&b.items[from]), b.items[from].oneGPU, uint32(0)
		for ; end < len(b.items) && b.labels(&b.items[end]) == l && b.items[end].oneGPU == one; end++ {
			devices = max(devices, b.items[end].gpusTo-b.items[end].gpusFrom)
		}
		info := &gpuMetrics[record.GPUUtilization]
		v.Host, v.Rank, v.Metric, v.Label, v.Of = l.host, l.global(), info.Name, info.label, info.value
		for device := range devices {
			v.Device, v.Times, v.Values = deviceOf(int(device), one), v.Times[:0], v.Values[:0]
			for i := range b.items[from:end] {
				if it := &b.items[from+i]; it.gpusFrom+device < it.gpusTo {
					v.Times, v.Values = append(v.Times, it.end), append(v.Values, b.gpus[it.gpusFrom+device])
				}
			}
			to(&v)
		}
	}
	for i := range b.samples {
		s := &b.samples[i]
		info := &gpuMetrics[s.Metric]
		v.Host, v.Rank, v.Device = s.labels.host, s.labels.global(), deviceOf(int(s.Device), s.Device == record.NoDevice)
		v.Metric, v.Label, v.Of = info.Name, info.label, info.value
		v.Times, v.Values = append(v.Times[:0], s.at), append(v.Values[:0], s.Value)
		if info.integer {
			v.Values[0] = math.Round(s.Value)
		}
		to(&v)
	}
}

// deviceOf returns the hw.id of a GPU, its index; "": unknown.
func deviceOf(device int, unknown bool) string {
	if unknown {
		return ""
	}
	return index(device)
}

// global returns the rank among all ranks, -1 if unknown.
func (l labels) global() int64 {
	if l.rank == noRank || l.local {
		return -1
	}
	return l.rank
}

// samplePoints adds the points of the batch's samples to g. With LatestPoints only the last sample of a series has a point.
func (b *stepBatch) samplePoints(g *gauges, md pmetric.Metrics) {
	for i := range b.samples {
		if g.latest != nil {
			i = len(b.samples) - 1 - i // from the last on
		}
		s := &b.samples[i]
		if seen := g.latestOf(s.labels); seen != nil {
			key := series{s.Metric, s.Device}
			if seen.sample[key] {
				continue
			}
			seen.sample[key] = true
		}
		info := &gpuMetrics[s.Metric]
		dp := g.point(g.other(md, &info.Metric), s.labels, s.at)
		if info.integer {
			dp.SetIntValue(int64(math.Round(s.Value)))
		} else {
			dp.SetDoubleValue(s.Value)
		}
		putDevice(dp.Attributes(), info, int(s.Device), s.Device == record.NoDevice)
	}
}

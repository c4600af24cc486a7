package perftest

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Names of devices.
const (
	H200 = "NVIDIA H200"
	A100 = "NVIDIA A100-SXM4-80GB"
)

// GPU is a device as the nvml receiver reports it, or one unknown to the receiver.
type GPU struct {
	Host, Model, Parent string
	Kind                string // hw.type, "" for gpu
}

// Scrape returns the nvml metrics of GPUs: three states, the memory limit and the power of each. A GPU with a parent, a MIG device, has only the memory limit.
func Scrape(gpus ...GPU) pmetric.Metrics {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	status, memory, power := ms.AppendEmpty(), ms.AppendEmpty(), ms.AppendEmpty()
	status.SetName("hw.status")
	memory.SetName("hw.gpu.memory.limit")
	power.SetName("hw.power")
	states, limits, watts := status.SetEmptySum().DataPoints(), memory.SetEmptySum().DataPoints(), power.SetEmptyGauge().DataPoints()
	point := func(list pmetric.NumberDataPointSlice, i int, g GPU, value int64) pcommon.Map {
		dp := list.AppendEmpty()
		dp.SetIntValue(value)
		a := dp.Attributes()
		if g.Host != "" {
			a.PutStr("host.name", g.Host)
		}
		a.PutStr("hw.id", fmt.Sprint("GPU-", i))
		if g.Model != "" {
			a.PutStr("hw.model", g.Model)
		}
		return a
	}
	for i, g := range gpus {
		kind := "gpu"
		if g.Kind != "" {
			kind = g.Kind
		}
		if g.Parent != "" {
			point(limits, i, g, 1<<34).PutStr("hw.parent", g.Parent)
			continue
		}
		for _, state := range []string{"ok", "degraded", "failed"} {
			a := point(states, i, g, 1)
			a.PutStr("hw.type", kind)
			a.PutStr("hw.state", state)
		}
		point(limits, i, g, 1<<37)
		point(watts, i, GPU{Host: g.Host, Model: "a meter"}, 700).PutStr("hw.type", kind)
	}
	return md
}

// Gauge appends a metric with one number.
func Gauge(ms pmetric.MetricSlice, name string, x float64) pmetric.Metric {
	m := ms.AppendEmpty()
	m.SetName(name)
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(x)
	return m
}

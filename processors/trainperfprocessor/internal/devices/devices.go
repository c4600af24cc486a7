// Package devices records the GPUs of hosts from passing metrics: the peak of a training step is that of its host's devices.
package devices

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/spans"
)

const (
	// forgetDevice is the time after its last metric for which a GPU stays known.
	forgetDevice = time.Hour
	// Max bounds the known pairs of host and GPU model: most hosts have one model.
	Max = 4096
	// maxDeviceText bounds the name of a host or model, By.
	maxDeviceText = 256
)

// device is a kind of GPU on a host, "" where the metric names none.
type device struct{ host, model string }

// Devices are the GPUs seen in metrics. The metrics instance of a component writes, the traces instance reads.
type Devices struct {
	now func() time.Time

	mu    sync.Mutex
	seen  map[device]time.Time // when each was last seen
	swept time.Time
	known atomic.Pointer[Models]
}

// Models is an immutable snapshot.
type Models struct {
	byHost map[string]string // the model of a host's GPUs; "": several models
	common string            // the model of all hosts' GPUs; "": several models, or none is known
}

// Of returns the model of the GPUs of a host, or without a host name the model common to all hosts; "": unknown, or several models.
func (m *Models) Of(host string) string {
	if host == "" {
		return m.common
	}
	return m.byHost[host]
}

// New returns empty Devices.
func New() *Devices {
	d := &Devices{now: time.Now, seen: make(map[device]time.Time)}
	d.known.Store(new(Models))
	return d
}

// Known returns the current snapshot.
func (d *Devices) Known() *Models { return d.known.Load() }

// IsAbout reports whether a metric of this name may show devices.
func IsAbout(metric string) bool {
	return metric == spans.MetricHardwareStatus || metric == spans.MetricGPUMemoryLimit
}

// Notice records the GPUs that a metric names, with the host of the point or else of the resource. Points with texts above maxDeviceText are left out. false: a
// new host or model was not recorded, because Max are known.
func (d *Devices) Notice(resource pcommon.Map, m pmetric.Metric) bool {
	whole, host := m.Name() == spans.MetricHardwareStatus, spans.AttrText(resource, spans.AttrHostName)
	d.mu.Lock()
	defer d.mu.Unlock()
	now, room := d.now(), true
	changed := d.sweep(now)
	for _, p := range spans.Points(m).All() {
		dev, ok := readDevice(p.Attributes(), whole)
		if !ok {
			continue
		}
		if dev.host == "" {
			dev.host = host
		}
		if len(dev.host) > maxDeviceText || len(dev.model) > maxDeviceText {
			continue
		}
		if _, ok := d.seen[dev]; !ok {
			if len(d.seen) >= Max {
				room = false
				continue
			}
			dev.host, dev.model = strings.Clone(dev.host), strings.Clone(dev.model) // the names outlive the batch
			changed = true
		}
		d.seen[dev] = now
	}
	if changed {
		d.publish()
	}
	return room
}

// readDevice reads a point of hw.status (whole) or of the memory of a GPU; false: the point names no GPU. From memory points only MIG parts are read: a host
// with parts beside whole GPUs has several models, so its training steps get no peak of a whole GPU.
func readDevice(attrs pcommon.Map, whole bool) (dev device, ok bool) {
	gpu, part := !whole, false
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrHardwareType:
			gpu = spans.ValueText(v) == spans.HardwareTypeGPU
		case spans.AttrHardwareParent:
			part = true
		case spans.AttrHostName:
			dev.host = spans.ValueText(v)
		case spans.AttrDeviceModel:
			dev.model = spans.ValueText(v)
		}
	}
	if part && !strings.Contains(dev.model, "MIG") { // the driver's names of parts contain "MIG"
		dev.model += " MIG"
	}
	return dev, gpu && (whole || part) && dev.model != ""
}

// sweep forgets devices not seen within forgetDevice, at most once a minute, and reports whether any was forgotten.
func (d *Devices) sweep(now time.Time) (changed bool) {
	if now.Sub(d.swept) < time.Minute {
		return false
	}
	d.swept = now
	for dev, at := range d.seen {
		if now.Sub(at) > forgetDevice {
			delete(d.seen, dev)
			changed = true
		}
	}
	return changed
}

// publish stores a new snapshot of the seen devices: the model of a host, and the common model, are empty if there are several.
func (d *Devices) publish() {
	m := &Models{byHost: make(map[string]string, len(d.seen))}
	several, first := false, true
	for dev := range d.seen {
		model, ok := m.byHost[dev.host]
		if !ok {
			model = dev.model
		} else if model != dev.model {
			model = ""
		}
		m.byHost[dev.host] = model
		several = several || !first && m.common != dev.model
		m.common, first = dev.model, false
	}
	if several {
		m.common = ""
	}
	d.known.Store(m)
}

//go:build linux && cgo

package nvmlreceiver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver/internal/metadata"
)

// device is a GPU, or a MIG device of one.
type device struct {
	handle                    nvml.Device
	index                     int // of the GPU
	uuid, name, model, parent string
	wanted                    bool
	nameless                  bool               // NVML did not tell its UUID: index-3 stands for it
	mig                       bool               // it is cut into MIG devices
	migless                   bool               // it cannot be cut
	parts                     map[string]*device // its MIG devices, by UUID
	list                      retry              // of these
	fields                    []fieldOf
	told                      bool // what it does not support has been said

	seen   [sampleKinds]uint64 // time stamp of the last sample of each kind, µs
	pcie   [directions]counter
	nvlink [directions]counter
	links  [directions * nvml.NVLINK_MAX_LINKS]uint64 // bytes of each, as last read
	health
}

// health is what hw.status is made of, besides a GPU being lost. A GPU is silent when all its answers are errors.
type health struct{ silent, remapPending, remapFailed, retirePending, slowed bool }

// fieldOf is a field of one device.
type fieldOf struct {
	*field
	known       bool // it was read once
	unsupported bool
	retry
}

// retry says when to ask again for a value that fails: at the next scrape, then once a minute. Each error of a scrape is a line in the log.
type retry struct {
	failures int
	at       time.Time
}

func (r *retry) fail(now time.Time) {
	if r.failures++; r.failures > 1 {
		r.at = now.Add(lookAgain)
	}
}

// identify finds a GPU and its name; known: an earlier scrape had it. Where NVML refuses, the device is one that matches no other.
func (g *gpus) identify(index int, before []*device) (d *device, known bool, ret nvml.Return) {
	d = &device{index: index, name: fmt.Sprintf("GPU %d", index), uuid: fmt.Sprintf("index-%d", index), nameless: true}
	if d.handle, ret = g.lib.DeviceGetHandleByIndex(index); ret != nvml.SUCCESS {
		return d, false, ret
	}
	uuid, ret := d.handle.GetUUID()
	if ret != nvml.SUCCESS {
		return d, false, ret
	}
	if i := slices.IndexFunc(before, func(b *device) bool { return b.uuid == uuid && !slices.Contains(g.devices, b) }); i >= 0 {
		before[i].handle, before[i].index, before[i].name = d.handle, index, d.name
		return before[i], true, g.migMode(before[i])
	}
	d.uuid, d.nameless = uuid, false
	d.model, _ = d.handle.GetName() // "" where it has none
	d.fields = g.fieldsOf(func(*field) bool { return true })
	d.migless = !g.has("nvmlDeviceGetMigMode")
	return d, false, g.migMode(d)
}

// migMode finds out whether a GPU is cut into MIG devices. On Hopper and later that changes while the driver runs.
func (g *gpus) migMode(d *device) nvml.Return {
	if d.migless {
		return nvml.SUCCESS
	}
	current, _, ret := d.handle.GetMigMode()
	if d.migless = unsupported(ret); ret != nvml.SUCCESS {
		return onlyLost(ret)
	}
	if mig := current == nvml.DEVICE_MIG_ENABLE; mig != d.mig {
		d.mig, d.parts, d.told = mig, nil, false
		d.fields = g.fieldsOf(func(f *field) bool { return !mig || !f.mig || f.whole })
	}
	return nvml.SUCCESS
}

// fieldsOf returns the fields that a metric in use needs.
func (g *gpus) fieldsOf(use func(*field) bool) []fieldOf {
	var list []fieldOf
	for i := range fields {
		if f := &fields[i]; f.enabled(&g.cfg.Metrics) && use(f) {
			list = append(list, fieldOf{field: f})
		}
	}
	return list
}

// has says whether the driver has a function. Calling one that it lacks ends the process: the linker finds it only then.
func (g *gpus) has(symbol string) bool {
	has, known := g.symbols[symbol]
	if !known {
		loading.Lock()
		has = g.lib.Extensions().LookupSymbol(symbol) == nil
		loading.Unlock()
		g.symbols[symbol] = has
	}
	return has
}

// readAll reads the devices and keeps the ones that are still there.
func (g *gpus) readAll() {
	g.devices = slices.DeleteFunc(g.devices, func(d *device) bool {
		if g.broken != nvml.SUCCESS {
			return false
		}
		ret := g.migMode(d)
		if d.wanted && ret == nvml.SUCCESS {
			ret = g.read(d)
		}
		if d.mig && ret == nvml.SUCCESS {
			ret = g.readParts(d)
		}
		if ret == nvml.SUCCESS {
			g.status(d, d.state())
			g.found(d)
			return false
		}
		if (d.wanted || d.mig) && g.lose(d, ret) {
			g.errs.AddPartial(1, fmt.Errorf("%s (%s) is lost: %w", d.name, d.uuid, ret))
		}
		return true
	})
}

// read reads the fields of one device. It says with what the device answered that it is lost.
func (g *gpus) read(d *device) nvml.Return {
	failed, failing, fine := make(map[nvml.Return][]string), false, false
	for i := range d.fields {
		f := &d.fields[i]
		switch ret := g.readField(d, f); {
		case ret == nvml.SUCCESS:
		case lost(ret):
			return ret
		case broken(ret):
			g.broken = ret
			return nvml.SUCCESS
		default:
			failed[ret] = append(failed[ret], f.name)
			g.refused = ret
		}
		failing = failing || f.failures > 0
		fine = fine || f.failures == 0 && !f.unsupported
	}
	for ret, names := range failed {
		g.errs.AddPartial(len(names), fmt.Errorf("%s: %s: %w", d.name, strings.Join(names, ", "), ret))
	}
	d.silent = failing && !fine
	g.supported(d)
	return nvml.SUCCESS
}

// readField reads a field, by its other way where the device or its driver does not have the first. A field that was read once is not given up,
// unless it is deprecated.
func (g *gpus) readField(d *device, f *fieldOf) nvml.Return {
	for !f.unsupported && !g.began.Before(f.at) {
		ret := nvml.ERROR_FUNCTION_NOT_FOUND
		if g.has(f.symbol) {
			ret = f.read(g, d)
		}
		switch {
		case ret == nvml.SUCCESS:
			f.known, f.retry, g.heard = true, retry{}, true
			return ret
		case f.other != nil && (ret == nvml.ERROR_DEPRECATED || !f.known && unsupported(ret)):
			if f.name != f.other.name {
				g.logger.Info(
					"A GPU does not have a field; another takes its place.", zap.String("gpu", d.name), zap.String("field", f.name), zap.String("instead", f.other.name),
				)
			}
			f.field, f.known = f.other, false
		case f.known || !unsupported(ret):
			f.fail(g.began)
			return ret
		default:
			f.unsupported = true
		}
	}
	return nvml.SUCCESS
}

// readParts reads the MIG devices that a GPU has at the moment: they come and go while the driver runs.
func (g *gpus) readParts(gpu *device) nvml.Return {
	if g.began.Before(gpu.list.at) {
		return nvml.SUCCESS
	}
	count, ret := gpu.handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		gpu.list.fail(g.began)
		if !lost(ret) {
			g.errs.AddPartial(1, fmt.Errorf("%s: MIG devices: %w", gpu.name, ret))
		}
		return onlyLost(ret)
	}
	gpu.list = retry{}
	there := make(map[string]*device, len(gpu.parts))
	for i := range count {
		h, ret := gpu.handle.GetMigDeviceHandleByIndex(i)
		if lost(ret) {
			return ret
		}
		if ret != nvml.SUCCESS { // no device has this index, or none that may be used
			continue
		}
		uuid, ret := h.GetUUID()
		if ret != nvml.SUCCESS || there[uuid] != nil { // it moved in between
			continue
		}
		d := gpu.parts[uuid]
		if d == nil {
			d = &device{index: gpu.index, uuid: uuid, parent: gpu.uuid, fields: g.fieldsOf(func(f *field) bool { return f.mig })}
			d.model, _ = h.GetName()
			d.wanted = gpu.wanted || g.wanted(gpu.index, uuid, d.model, nil)
		}
		d.handle, d.name = h, fmt.Sprintf("GPU %d MIG %d", gpu.index, i)
		there[uuid] = d
		if d.wanted {
			if ret := g.read(d); ret != nvml.SUCCESS {
				return ret
			}
		}
	}
	gpu.parts = there
	return nvml.SUCCESS
}

// lose keeps a GPU that fell off the bus, to report that at every scrape. It says so once, and whether that was now.
func (g *gpus) lose(d *device, ret nvml.Return) bool {
	for _, was := range g.gone {
		if was.index == d.index { // the same GPU: a lost GPU does not tell its UUID
			return false
		}
	}
	_, again := g.gone[d.uuid]
	g.gone[d.uuid] = d
	if !again && d.wanted {
		g.logger.Warn("A GPU is lost. The others go on; dmesg has its Xid errors.", zap.String("gpu", d.name), zap.String("uuid", d.uuid), zap.Error(ret))
	}
	return !again
}

// found ends the report of a GPU as lost.
func (g *gpus) found(d *device) {
	if g.gone[d.uuid] != nil {
		delete(g.gone, d.uuid)
		g.logger.Info("A GPU is back.", zap.String("gpu", d.name), zap.String("uuid", d.uuid))
	}
}

// placed takes note of the index of a GPU that told its UUID; known: it was there before. A lost GPU with this index was this GPU without its UUID, or is
// no longer there: NVML then numbers the other GPUs anew.
func (g *gpus) placed(d *device, known bool) {
	for uuid, was := range g.gone {
		switch {
		case uuid == d.uuid || was.index != d.index:
		case was.nameless && !known:
			delete(g.gone, uuid)
			g.gone[d.uuid] = d
		default:
			was.index = -1
		}
	}
}

// lost says whether an answer means that the GPU is no longer to be had.
func lost(ret nvml.Return) bool {
	return ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED || ret == nvml.ERROR_GPU_NOT_FOUND
}

// onlyLost is SUCCESS for every other answer.
func onlyLost(ret nvml.Return) nvml.Return {
	if lost(ret) {
		return ret
	}
	return nvml.SUCCESS
}

// broken says whether an answer means that NVML as a whole does not work any more.
func broken(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return true
	}
	return false
}

// unsupported says whether an answer to the first question for a field will stay the same: it is not asked for again.
func unsupported(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED,
		nvml.ERROR_NO_PERMISSION, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED:
		return true
	}
	return false
}

// state describes a GPU that is there.
func (h *health) state() metadata.AttributeHwState {
	switch {
	case h.silent, h.remapFailed:
		return metadata.AttributeHwStateFailed
	case h.remapPending, h.retirePending, h.slowed:
		return metadata.AttributeHwStateDegraded
	}
	return metadata.AttributeHwStateOk
}

// status reports the state of a GPU: 1 for the state that it is in, 0 for the other states.
func (g *gpus) status(d *device, state metadata.AttributeHwState) {
	if !d.wanted {
		return
	}
	for _, s := range [...]metadata.AttributeHwState{metadata.AttributeHwStateOk, metadata.AttributeHwStateDegraded, metadata.AttributeHwStateFailed} {
		v := int64(0)
		if s == state {
			v = 1
		}
		g.mb.RecordHwStatusDataPoint(g.now, v, g.host, d.uuid, d.name, d.model, metadata.AttributeHwTypeGpu, metadata.AttributeHwVendorNVIDIA, g.driver, s)
	}
}

// supported reports which fields the device has, and logs once which it lacks.
func (g *gpus) supported(d *device) {
	var lacks []string
	for _, f := range d.fields {
		v := int64(1)
		if f.unsupported {
			v = 0
			lacks = append(lacks, f.name)
		}
		g.mb.RecordTrainbridgeGpuFieldSupportedDataPoint(g.now, v, g.host, d.uuid, d.name, d.model, f.name, d.options()...)
	}
	if !d.told && len(lacks) > 0 {
		g.logger.Info("A GPU does not have some fields; they are left out.", zap.String("gpu", d.name), zap.Strings("fields", lacks))
	}
	d.told = true
}

// options is the attribute that only MIG devices have.
func (d *device) options() []metadata.MetricAttributeOption {
	if d.parent == "" {
		return nil
	}
	return []metadata.MetricAttributeOption{metadata.WithHwParentMetricAttribute(d.parent)}
}

// counter makes a rate of a counter of the driver.
type counter struct {
	value uint64
	at    time.Time
}

// add takes the next reading. ok is false for the first reading, and where the counter began anew.
func (c *counter) add(value uint64, at time.Time) (perSecond float64, ok bool) {
	last := *c
	c.value, c.at = value, at
	seconds := at.Sub(last.at).Seconds()
	if last.at.IsZero() || value < last.value || seconds <= 0 {
		return 0, false
	}
	return float64(value-last.value) / seconds, true
}

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

// device is a GPU or a MIG device.
type device struct {
	handle                    nvml.Device
	index                     int                // NVML's index of the GPU, or of a MIG device's GPU; -1: NVML has renumbered the GPUs, and none has this UUID now
	uuid, name, model, parent string             // parent: the UUID of a MIG device's GPU; "" for a GPU
	wanted                    bool               // the configuration asks for the device
	nameless                  bool               // NVML has no UUID of the GPU: uuid is index-3
	mig                       bool               // divided into MIG devices
	migless                   bool               // without MIG support
	parts                     map[string]*device // MIG devices by UUID
	list                      retry              // of the list of MIG devices
	fields                    []fieldOf          // to be read
	logged                    bool               // unsupported fields were logged

	seen   [sampleKinds]uint64 // time stamp of the last sample of each kind, µs
	pcie   [directions]counter
	nvlink [directions]counter                        // over all links
	links  [directions * nvml.NVLINK_MAX_LINKS]uint64 // bytes of each, as last read
	health
}

// health makes hw.status, together with the loss of a GPU; see state.
type health struct {
	silent        bool // all answers of the last scrape were errors
	remapPending  bool // faulty rows of memory are replaced by spare ones at the next reset
	remapFailed   bool // faulty rows cannot be replaced any more
	retirePending bool // faulty pages of memory are left out from the next reset on
	slowed        bool // clocks are held down by a fault: see hardwareSlowdown
}

// fieldOf is a field of one device.
type fieldOf struct {
	*field
	known       bool // was read before
	unsupported bool // neither way is supported: not read again
	retry
}

// retry is the time of the next attempt after a failure: the next scrape, then once a minute, because each error of a scrape is a line in the log.
type retry struct {
	failures int       // in succession
	at       time.Time // of the next attempt
}

// fail notes a failure of an attempt.
func (r *retry) fail(now time.Time) {
	if r.failures++; r.failures > 1 {
		r.at = now.Add(lookAgain)
	}
}

// identify finds the GPU at an index of NVML. If before, the devices known until a restart of NVML, has a device with the GPU's UUID, d is that device, with
// the new handle and index, and known is true; else d is a new device with its model and fields. If NVML refuses the GPU's handle or UUID, ret is the answer to
// the refused call, and d is a new device without a UUID (nameless): uuid is then a text such as index-3. Otherwise ret is the result of migMode: SUCCESS, or
// the answer of a lost GPU.
func (g *gpus) identify(index int, before []*device) (d *device, known bool, ret nvml.Return) {
	d = &device{index: index, name: fmt.Sprintf("GPU %d", index), uuid: fmt.Sprintf("index-%d", index), nameless: true}
	d.handle, ret = g.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return d, false, ret
	}
	uuid, ret := d.handle.GetUUID()
	if ret != nvml.SUCCESS {
		return d, false, ret
	}
	// If UUIDs are not unique on the host, a device in g.devices was found at a smaller index, and is another GPU with the same UUID.
	isThisGPU := func(b *device) bool { return b.uuid == uuid && !slices.Contains(g.devices, b) }
	if i := slices.IndexFunc(before, isThisGPU); i >= 0 {
		same := before[i]
		same.handle, same.index, same.name = d.handle, index, d.name
		return same, true, g.migMode(same)
	}
	d.uuid, d.nameless = uuid, false
	d.model, _ = d.handle.GetName() // "" without a name
	d.fields = g.fieldsOf(func(*field) bool { return true })
	d.migless = !g.has("nvmlDeviceGetMigMode")
	return d, false, g.migMode(d)
}

// migMode reads whether a GPU is divided into MIG devices, and chooses the fields accordingly: a divided GPU lacks the fields that its MIG devices have. On
// Hopper and later the mode changes while the driver runs, so each pass asks again. The result is SUCCESS, or NVML's answer if the answer means a lost GPU.
func (g *gpus) migMode(d *device) nvml.Return {
	if d.migless {
		return nvml.SUCCESS
	}
	current, _, ret := d.handle.GetMigMode()
	d.migless = unsupported(ret)
	if ret != nvml.SUCCESS {
		return onlyLost(ret)
	}
	if mig := current == nvml.DEVICE_MIG_ENABLE; mig != d.mig {
		d.mig, d.parts, d.logged = mig, nil, false
		d.fields = g.fieldsOf(func(f *field) bool { return !mig || !f.mig || f.whole })
	}
	return nvml.SUCCESS
}

// fieldsOf returns the fields of the enabled metrics that use accepts, not read yet.
func (g *gpus) fieldsOf(use func(*field) bool) []fieldOf {
	var list []fieldOf
	for i := range fields {
		if f := &fields[i]; f.enabled(&g.cfg.Metrics) && use(f) {
			list = append(list, fieldOf{field: f})
		}
	}
	return list
}

// has reports whether the driver has a function. A call of a missing function ends the process, because the linker binds functions at the first call.
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

// readAll reads the devices, records their state, and drops the lost ones; those asked for are then in g.gone. It stops where NVML as a whole does not work
// (g.broken). Also a GPU that is not wanted is asked for its MIG mode: its MIG devices may be wanted.
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
		if (d.wanted || d.mig) && g.lose(d, ret) { // else nobody asks for the GPU
			g.errs.AddPartial(1, fmt.Errorf("%s (%s) is lost: %w", d.name, d.uuid, ret))
		}
		return true
	})
}

// read reads the fields of one device. The result is the answer that means a lost device, or SUCCESS. Other errors are partial errors of the scrape, one for
// each kind of answer; an answer that means NVML as a whole is in g.broken.
func (g *gpus) read(d *device) nvml.Return {
	failed := make(map[nvml.Return][]string) // names of fields, by the answer
	failing, fine := false, false            // some field fails, also one that waits for its next attempt; some field is read
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

// readField reads a field of a device, unless the next attempt is later or the field is unsupported: then the answer is SUCCESS. Where the device or the driver
// lacks the first way (field.symbol), the second is tried at once. A way that has worked is not given up for an error, but only if it answers DEPRECATED.
func (g *gpus) readField(d *device, f *fieldOf) nvml.Return {
	for !f.unsupported && !g.began.Before(f.at) {
		ret := nvml.ERROR_FUNCTION_NOT_FOUND
		if g.has(f.symbol) {
			ret = f.read(g, d)
		}
		isLacking := ret == nvml.ERROR_DEPRECATED || !f.known && unsupported(ret)
		switch {
		case ret == nvml.SUCCESS:
			f.known, f.retry, g.answered = true, retry{}, true
			return ret
		case f.other != nil && isLacking:
			if f.name != f.other.name {
				g.logger.Info(
					"A GPU does not have a field; another takes its place.", zap.String("gpu", d.name), zap.String("field", f.name), zap.String("instead", f.other.name),
				)
			}
			f.field, f.known = f.other, false // and once more through the loop
		case f.known || !unsupported(ret):
			f.fail(g.began)
			return ret
		default:
			f.unsupported = true
		}
	}
	return nvml.SUCCESS
}

// readParts reads the current MIG devices of a GPU: MIG devices come and go while the driver runs, so the list is asked for anew each time. The answer is
// SUCCESS, or that of a lost GPU.
func (g *gpus) readParts(gpu *device) nvml.Return {
	if g.began.Before(gpu.list.at) {
		return nvml.SUCCESS
	}
	count, ret := gpu.handle.GetMaxMigDeviceCount() // indices may be free
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
		if ret != nvml.SUCCESS { // no device has this index, or no permission
			continue
		}
		uuid, ret := h.GetUUID()
		if ret != nvml.SUCCESS || there[uuid] != nil { // moved in between
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

// lose puts a GPU that fell off the bus into g.gone, to report the loss at every scrape. The log has the loss once; the result says whether the loss is new.
func (g *gpus) lose(d *device, ret nvml.Return) bool {
	for _, was := range g.gone {
		if was.index == d.index { // the same GPU: a lost GPU has no UUID
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

// placed is called for a GPU with a UUID that is found at an index; known: an earlier scrape had the GPU. A lost GPU of the same index was either this GPU,
// lost without a UUID, and now has the name; or it is gone for good, because NVML has renumbered the GPUs: it no longer has an index (−1).
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

// lost reports whether an answer means that the GPU is gone.
func lost(ret nvml.Return) bool {
	return ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED || ret == nvml.ERROR_GPU_NOT_FOUND
}

// onlyLost returns an answer that means a lost GPU unchanged, and SUCCESS for any other answer.
func onlyLost(ret nvml.Return) nvml.Return {
	if lost(ret) {
		return ret
	}
	return nvml.SUCCESS
}

// broken reports whether an answer means that NVML as a whole no longer works.
func broken(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return true
	}
	return false
}

// unsupported reports whether the first answer for a field is final: the field is not read again.
func unsupported(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED,
		nvml.ERROR_NO_PERMISSION, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED:
		return true
	}
	return false
}

// state is the state of a GPU that is not lost: failed, if it answers nothing or its memory cannot be repaired; degraded, if it works and needs a reset, or is
// held down by a fault of the machine.
func (h *health) state() metadata.AttributeHwState {
	switch {
	case h.silent, h.remapFailed:
		return metadata.AttributeHwStateFailed
	case h.remapPending, h.retirePending, h.slowed:
		return metadata.AttributeHwStateDegraded
	}
	return metadata.AttributeHwStateOk
}

// status reports the state of a GPU: 1 for the current state, 0 for the others.
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

// supported reports the fields that the device has, and logs the missing fields once.
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
	if !d.logged && len(lacks) > 0 {
		g.logger.Info("A GPU does not have some fields; they are left out.", zap.String("gpu", d.name), zap.Strings("fields", lacks))
	}
	d.logged = true
}

// options is the attribute of MIG devices.
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

// add takes the next reading. ok is false for the first reading, after a restart of the counter, and if no time has passed.
func (c *counter) add(value uint64, at time.Time) (perSecond float64, ok bool) {
	last := *c
	c.value, c.at = value, at
	seconds := at.Sub(last.at).Seconds()
	if last.at.IsZero() || value < last.value || seconds <= 0 {
		return 0, false
	}
	return float64(value-last.value) / seconds, true
}

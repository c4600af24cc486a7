//go:build linux && cgo

package nvmlreceiver

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/receivers/nvmlreceiver/internal/metadata"
)

// maxEvents limits the events of one scrape: a failing GPU may queue events faster than a scrape reads them.
const maxEvents = 1000

// xids counts the XID errors of all GPUs. Codes: docs.nvidia.com/deploy/xid-errors.
type xids struct {
	set   nvml.EventSet           // nil: no events in NVML, or no metric needs them
	of    map[nvml.Device]*device // a lost GPU has no UUID, but the handle stays
	count map[xid]int64
	names map[string]*device // the last known of each UUID in count
}

// xid is an error code of a GPU.
type xid struct {
	uuid string
	code uint64
}

func newXIDs() xids {
	return xids{count: make(map[xid]int64), names: make(map[string]*device)}
}

// watch registers for events anew; the counts stay. A driver without events has no event set.
func (x *xids) watch(lib nvml.Interface) {
	x.of = make(map[nvml.Device]*device)
	if set, ret := lib.EventSetCreate(); ret == nvml.SUCCESS {
		x.set = set
	}
}

// register asks NVML for the events of a wanted device. A device without events stays without counts.
func (x *xids) register(d *device) {
	if x.set != nil && d.wanted && d.handle.RegisterEvents(nvml.EventTypeXidCriticalError, x.set) == nvml.SUCCESS {
		x.of[d.handle] = d
	}
}

// free ends the watch, before NVML ends.
func (x *xids) free() {
	if x.set != nil {
		_ = x.set.Free() // the driver may be away
		x.set = nil
	}
}

// readXIDs reads the events that NVML queued since the last scrape. The first event of each code of a GPU is logged.
func (g *gpus) readXIDs() {
	x := &g.xids
	if x.set == nil || len(x.of) == 0 {
		return
	}
	for range maxEvents {
		e, ret := x.set.Wait(0)
		if ret != nvml.SUCCESS { // TIMEOUT: no more events; any other error shows when the devices are read
			return
		}
		d := x.of[e.Device]
		if d == nil || e.EventType != nvml.EventTypeXidCriticalError {
			continue
		}
		key := xid{d.uuid, e.EventData}
		if x.count[key]++; x.count[key] == 1 {
			g.logger.Warn("A GPU reported an XID error.", zap.String("gpu", d.name), zap.String("uuid", d.uuid), zap.Uint64("xid", e.EventData))
		}
		x.names[d.uuid] = d
	}
}

// recordXIDs reports the counts of all GPUs, also of lost ones.
func (g *gpus) recordXIDs() {
	keys := slices.SortedFunc(maps.Keys(g.xids.count), func(a, b xid) int { return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.code, b.code)) })
	for _, key := range keys {
		d := g.xids.names[key.uuid]
		g.mb.RecordHwErrorsDataPoint(g.now, g.xids.count[key], g.host, d.uuid, d.name, d.model, metadata.AttributeHwTypeGpu, "xid_"+strconv.FormatUint(key.code, 10))
	}
}

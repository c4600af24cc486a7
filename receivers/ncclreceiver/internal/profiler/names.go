package profiler

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// category is the kind of an event, its "cat".
type category uint8

const (
	other          category = iota
	group                   // GROUP_API, GROUP
	api                     // COLL_API, P2P_API
	launch                  // KERNEL_LAUNCH
	collective              // COLL
	pointToPoint            // P2P
	copyEngine              // CE_COLL
	copyEnginePart          // CE_SYNC, CE_BATCH
	gpu                     // KernelCh and, in 2.31, KernelStep
	proxy
	net
	netPlugin // NET_IB, NET_SOCK
)

// levels are the nesting levels of categories in the trace. An event never stands within another of its own level.
var levels = [...]uint8{
	other: 9, group: 0, api: 1, launch: 1, collective: 2, pointToPoint: 2, copyEngine: 2, copyEnginePart: 3, gpu: 3, proxy: 4, net: 5, netPlugin: 6,
}

// isOperation reports whether an event of the category is an operation itself: all kinds of operations have the level of a collective, and no other events do.
func (c category) isOperation() bool { return levels[c] == levels[collective] }

// categoryOf returns the category of an event by its "cat", in any version of the plugin; other: the event is of another writer.
func categoryOf(cat []byte) category {
	switch string(cat) {
	case "GROUP_API", "GROUP":
		return group
	case "COLL_API", "P2P_API":
		return api
	case "KERNEL_LAUNCH":
		return launch
	case "COLL":
		return collective
	case "P2P":
		return pointToPoint
	case "CE_COLL":
		return copyEngine
	case "CE_SYNC", "CE_BATCH":
		return copyEnginePart
	case "GPU":
		return gpu
	case "PROXY":
		return proxy
	case "NET":
		return net
	case "NET_IB", "NET_SOCK":
		return netPlugin
	}
	return other
}

// nameOf returns the name of an event as a string, without an allocation for the plugin's usual names.
func nameOf(name []byte) string {
	switch string(name) {
	case "KernelCh":
		return "KernelCh"
	case "ScheduleSend":
		return "ScheduleSend"
	case "ScheduleRecv":
		return "ScheduleRecv"
	case "ProgressSend":
		return "ProgressSend"
	case "ProgressRecv":
		return "ProgressRecv"
	case "SendGpuWait":
		return "SendGpuWait"
	case "SendPeerWait":
		return "SendPeerWait"
	case "SendWait":
		return "SendWait"
	case "RecvWait":
		return "RecvWait"
	case "RecvFlushWait":
		return "RecvFlushWait"
	case "RecvGpuWait":
		return "RecvGpuWait"
	case "SendBufferWait": // until 2.26, as Send and Recv of PROXY
		return "SendBufferWait"
	case "RecvBufferWait":
		return "RecvBufferWait"
	case "Send":
		return "Send"
	case "Recv":
		return "Recv"
	case "Qp":
		return "Qp"
	case "Sock":
		return "Sock"
	case "KernelStep":
		return "KernelStep"
	case "KernelLaunch":
		return "KernelLaunch"
	case "Group API":
		return "Group API"
	case "Group":
		return "Group"
	case "AllReduce":
		return "AllReduce"
	case "AllGather":
		return "AllGather"
	case "ReduceScatter":
		return "ReduceScatter"
	case "Broadcast":
		return "Broadcast"
	case "Reduce":
		return "Reduce"
	}
	return string(name)
}

// isControl reports whether a PROXY event is about the proxy thread itself and not about an operation.
func isControl(name []byte) bool {
	switch string(name) {
	case "Idle", "Sleep", "Wakeup", "Append":
		return true
	}
	return false
}

// bytesOf returns the size of an element, By; 0: unknown. The names are from ncclDatatypeToString, with the enum's other spellings (nccl.h).
func bytesOf(datatype []byte) uint64 {
	switch string(datatype) {
	case "ncclInt8", "ncclChar", "ncclUint8", "ncclFloat8e4m3", "ncclFloat8e5m2":
		return 1
	case "ncclFloat16", "ncclHalf", "ncclBfloat16":
		return 2
	case "ncclInt32", "ncclInt", "ncclUint32", "ncclFloat32", "ncclFloat":
		return 4
	case "ncclInt64", "ncclUint64", "ncclFloat64", "ncclDouble":
		return 8
	}
	return 0
}

// origin is the content of a trace's file name: <dump>_<commHash>_<rank>.json since 2.28, <dump>-<host>-<tid>.txt before (plugin.cc, plugin.c).
type origin struct {
	host    []byte
	comm    uint64
	hasComm bool
	rank    int32 // op.Unknown
}

// originOf reads the name of a trace file. What the name lacks is unknown.
func originOf(file string) origin {
	o := origin{rank: op.Unknown}
	name := filepath.Base(file)
	if base, ok := strings.CutSuffix(name, ".json"); ok {
		parts := strings.Split(base, "_")
		if n := len(parts); n >= 3 {
			comm, err := strconv.ParseUint(parts[n-2], 10, 64)
			rank, bad := strconv.ParseUint(parts[n-1], 10, 31)
			if err == nil && bad == nil {
				o.comm, o.hasComm, o.rank = comm, true, int32(rank)
			}
		}
	} else if base, ok := strings.CutSuffix(name, ".txt"); ok {
		// Both the dump's name and the host's may contain a -: then the border between them is unknown.
		if parts := strings.Split(base, "-"); len(parts) == 3 && parts[1] != "" {
			if _, err := strconv.ParseUint(parts[2], 10, 63); err == nil {
				o.host = []byte(parts[1])
			}
		}
	}
	return o
}

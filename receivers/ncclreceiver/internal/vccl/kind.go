package vccl

import "github.com/trainbridge/trainbridge/internal/collectives/op"

// kindOf reads the name of an operation: "allreduce", "all_reduce", "AllReduce" and "ncclAllReduce" are the same. op.Other: unknown to NCCL.
func kindOf(name []byte) op.Kind {
	var room [24]byte // no name of NCCL's is longer
	b := room[:0]
	for _, c := range name {
		switch {
		case c == '_' || c == '-' || c == ' ':
			continue
		case len(b) == len(room):
			return op.Other
		case c >= 'A' && c <= 'Z':
			c |= 0x20 // the small letter
		}
		b = append(b, c)
	}
	if len(b) > 4 && string(b[:4]) == "nccl" {
		b = b[4:]
	}
	switch string(b) {
	case "allreduce":
		return op.AllReduce
	case "allgather":
		return op.AllGather
	case "reducescatter":
		return op.ReduceScatter
	case "broadcast", "bcast":
		return op.Broadcast
	case "reduce":
		return op.Reduce
	case "alltoall", "alltoallv":
		return op.AllToAll
	case "gather":
		return op.Gather
	case "scatter":
		return op.Scatter
	case "send":
		return op.Send
	case "recv", "receive":
		return op.Recv
	case "sendrecv":
		return op.SendRecv
	}
	return op.Other
}

// together reports whether all ranks take part in an operation of the kind, so that equal numbers on two ranks mean one operation.
func together(k op.Kind) bool { return k != op.Send && k != op.Recv && k != op.SendRecv }

// funcs are NCCL's ncclFunc_t (src/include/nccl_common.h), as VCCL prints them.
var funcs = [...]op.Kind{op.Broadcast, op.Reduce, op.AllGather, op.ReduceScatter, op.AllReduce, op.SendRecv, op.Send, op.Recv}

// funcKind returns the operation of a number of ncclFunc_t; op.Other for numbers outside of VCCL's ncclFunc_t.
func funcKind(n uint64) op.Kind {
	if n < uint64(len(funcs)) {
		return funcs[n]
	}
	return op.Other
}

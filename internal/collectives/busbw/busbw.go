// Package busbw is the factor between algorithm and bus bandwidth: busbw = algbw · f(n), algbw = S/t.
//
// Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md (@03a204a1), and src/*.cu for the operations that it does not name: gather.cu, scatter.cu: (n−1)/n;
// sendrecv.cu: 1. S is the size of nccl-tests: for AllGather, ReduceScatter, AllToAll, Gather and Scatter the bytes of all ranks together, else of the buffer
// or message (op.Op.Total).
package busbw

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// Factor is f(n) of an operation among n ranks. ok is false where there is none: for a communicator of one rank, of an unknown number of ranks (n ≤ 0; but for
// Send and Recv, whose factor does not depend on it), and for operations that nccl-tests does not know. inNetwork says that switches did the reduction
// (see InNetwork): it matters for AllReduce only, the document has no such factor for other operations.
func Factor(kind op.Kind, ranks int, inNetwork bool) (f float64, ok bool) {
	if ranks == 1 || ranks < 1 && kind != op.Send && kind != op.Recv {
		return 0, false
	}
	n := float64(ranks)
	switch kind {
	case op.AllReduce:
		if inNetwork {
			return (n - 1) / (n + 1), true
		}
		return 2 * (n - 1) / n, true
	case op.AllGather, op.ReduceScatter, op.AllToAll, op.Gather, op.Scatter:
		return (n - 1) / n, true
	case op.Broadcast, op.Reduce, op.Send, op.Recv, op.SendRecv:
		return 1, true
	}
	return 0, false
}

// InNetwork says whether an algorithm, as logged in either case, lets switches do the reduction.
func InNetwork(algorithm []byte) bool {
	for _, name := range inNetwork {
		if bytes.EqualFold(algorithm, name) {
			return true
		}
	}
	return false
}

// As NCCL_ALGO and the Inspector write them (NVLS_TREE) and as NCCL's ncclAlgoStr has them (NVLSTree). The others (RING, TREE, PAT) go from rank to rank.
var inNetwork = [][]byte{
	[]byte("NVLS"), []byte("NVLS_TREE"), []byte("NVLSTree"), []byte("COLLNET"), []byte("COLLNET_DIRECT"), []byte("CollNetDirect"), []byte("COLLNET_CHAIN"),
	[]byte("CollNetChain"), []byte("SHARP"),
}

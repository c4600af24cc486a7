// Package busbw is the factor between algorithm and bus bandwidth: busbw = algbw · f(n), algbw = S/t.
//
// Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md (the derivations), and src/*.cu (…GetBw) for what the document does not name. S is what nccl-tests
// calls size: of AllGather, ReduceScatter, AllToAll, Gather and Scatter what all ranks have together, else the buffer or message (op.Op.Total).
package busbw

import (
	"bytes"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/op"
)

// Factor is f(n) of an operation among n ranks. ok is false where there is none: for n ≤ 1 (except Send and Recv, which have two ends whatever the log says
// about the communicator) and for operations nccl-tests does not know. inNetwork says that switches did the reduction (see InNetwork): it matters for AllReduce
// only, as the document has it for nothing else.
func Factor(kind op.Kind, ranks int, inNetwork bool) (f float64, ok bool) {
	switch kind {
	case op.Send, op.Recv:
		return 1, true
	}
	if ranks <= 1 {
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
	case op.Broadcast, op.Reduce, op.SendRecv:
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

// NCCL's names (src/graph/tuning.cc, ncclAlgoStr: NVLS, NVLSTree, CollNetDirect, CollNetChain) with and without the underscores of NCCL_ALGO's readers.
var inNetwork = [][]byte{
	[]byte("NVLS"), []byte("NVLS_TREE"), []byte("NVLSTree"), []byte("COLLNET_DIRECT"), []byte("CollNetDirect"), []byte("COLLNET_CHAIN"), []byte("CollNetChain"),
	[]byte("COLLNET"), []byte("SHARP"),
}

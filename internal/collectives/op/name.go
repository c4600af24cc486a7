package op

import "strings"

var names = [Kinds]string{
	AllReduce: "AllReduce", AllGather: "AllGather", ReduceScatter: "ReduceScatter", Broadcast: "Broadcast", Reduce: "Reduce", AllToAll: "AllToAll",
	Gather: "Gather", Scatter: "Scatter", Send: "Send", Recv: "Recv", SendRecv: "SendRecv",
}

// ProxyStep is the Op.Name of a step of a network proxy's operation.
const ProxyStep = "ProxyStep"

// String returns the name of the operation, empty for Other.
func (k Kind) String() string { return names[k] }

// Symmetric reports whether every rank needs all others: no rank leaves before the last has arrived, and all leave about together.
func (k Kind) Symmetric() bool {
	switch k {
	case AllReduce, AllGather, ReduceScatter, AllToAll:
		return true
	case Other, Broadcast, Reduce, Gather, Scatter, Send, Recv, SendRecv, Kinds:
	}
	return false
}

// Canonical unifies spellings: "all_reduce", "ncclAllReduce" and "AllReduce" are "allreduce".
func Canonical(name string) string {
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
		case c == '_' || c == '-' || c == ' ':
		default:
			b = append(b, c)
		}
	}
	return strings.TrimPrefix(string(b), "nccl")
}

// KindOf returns the operation of a name as spelt by ncclFuncToString (NCCL src/enqueue.cc), or in another known spelling of AllToAll.
func KindOf[T string | []byte](name T) Kind {
	for k, known := range names {
		if known == string(name) {
			return Kind(k)
		}
	}
	switch string(name) {
	case "AlltoAll", "Alltoall":
		return AllToAll
	}
	return Other
}

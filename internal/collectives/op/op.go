// Package op is the common form of collectives' records in every format: the operation of one rank.
package op

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/spans"
)

// Kind is an operation of NCCL.
type Kind uint8

// The operations, named as in NCCL's API without "nccl".
const (
	Other Kind = iota // Op.Name has the name
	AllReduce
	AllGather
	ReduceScatter
	Broadcast
	Reduce
	AllToAll
	Gather
	Scatter
	Send
	Recv
	SendRecv // from VCCL's enum
	Kinds
)

// Unknown is the value of an integer field not in the log.
const Unknown = -1

// State is the progress of an operation when its record was written.
type State uint8

// The states; Scheduled is of PyTorch's Flight Recorder alone.
const (
	Completed State = iota
	Started
	Scheduled
)

// Op is an operation of one rank. Slices point into the line read and are valid as long as the line. Init makes an empty Op.
type Op struct {
	// The communicator. Comm is its id: "0x…" in small letters without leading zeros for a hash, else text as logged; empty for formats without ids.
	Comm, CommName []byte
	CommSize       int32 // ranks; 0: unknown
	Nodes          int32 // 0: unknown
	Rank           int32 // in the communicator; Unknown
	Global         bool  // Rank is the global rank
	Host           []byte
	PID            int64 // 0: unknown

	Kind Kind
	Name []byte // as logged, for Other
	Seq  uint64 // per communicator and Kind, unless SeqOfAll
	// Again: the record was held before a restart. Records between an Again record and the next one may have been accepted before the restart, and do not come
	// again.
	Again bool
	// HasSeq: Seq counts the operations that the ranks do together, and equal numbers of two ranks are one operation. Never for Send and Recv.
	HasSeq bool
	// SeqOfAll: Seq counts all collectives of the communicator together, not per Kind: PyTorch's collective_seq_id.
	SeqOfAll bool
	// Ordinal: Seq is not in the log, but the number of earlier operations of the kind in the rank's log.
	Ordinal bool

	Peer                int32 // of Send and Recv; Unknown
	Source, Destination int32 // ranks, of a record about a transfer between two; Unknown

	// Size is the message size as logged, By. Total is S of algbw = S/t (nccl-tests doc/PERFORMANCE.md): of AllGather, ReduceScatter, AllToAll, Gather and
	// Scatter the bytes of all ranks together. Unknown: not known.
	Size, Total int64

	// Start is Unix ns, 0: unknown; then End is about when the record was written (Time is synthetic), or 0.
	Start, End int64
	Duration   int64 // ns; Unknown. Where Start is known, End = Start + Duration
	Time       spans.TimeSource
	// Waits: Duration includes waiting for the arrival of the other ranks, like the duration of a kernel.
	Waits bool

	Timing                        []byte // Inspector: kernel_gpu, kernel_cpu, collective_cpu, …
	Algorithm, Protocol, Datatype []byte
	Channel, Channels             int32 // Unknown; 0: unknown
	Stream                        int64 // Unknown

	// As logged, in By/s; NaN: absent. ReportedUnit is the log's unit: GB/s or Gbit/s.
	ReportedAlg, ReportedBus float64
	ReportedUnit             string

	Errors, Retries int64
	State           State
	TimedOut        bool // a timeout in the log itself

	// Of VCCL's rows, one per send: their number, and their sliding bandwidth, By/s. 0 sends: not a row of VCCL.
	Sends                             int64
	LinkBandwidth, LinkBandwidthWorst float64

	Details []Detail

	// IDs are the ids of the trace in the record; nil: none.
	IDs *logids.IDs

	// Proxy: an operation of a network proxy for a rank. Its collective, if known, has ParentKind and ParentSeq in the communicator.
	Proxy      bool
	HasParent  bool
	ParentKind Kind
	ParentSeq  uint64
}

// Detail is a part of an operation: of a channel or a proxy.
type Detail struct {
	Name       string // a span name: spans.SpanNCCLChannel, …
	Start, End int64  // Unix ns; 0: unknown
	Duration   int64  // ns; Unknown
	Channel    int32  // Unknown
	Peer       int32  // Unknown
	Step       int32  // Unknown
	Size       int64  // By; Unknown
	Direction  string // send | receive | ""
	Operation  string // the proxy's activity: ScheduleSend, SendWait, …; ""
	// Under is the index in Op.Details of the enclosing detail; Unknown: the operation itself.
	Under int32
}

// Init empties an operation, but for the memory of details.
func (o *Op) Init() {
	*o = Op{
		Rank: Unknown, Peer: Unknown, Source: Unknown, Destination: Unknown, Size: Unknown, Total: Unknown, Duration: Unknown, Channel: Unknown, Stream: Unknown,
		ReportedAlg: math.NaN(), ReportedBus: math.NaN(), Details: o.Details[:0],
	}
}

// Package op has one form for the records of collectives in every format: the operation of one rank.
package op

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/spans"
)

// Kind is an operation of NCCL.
type Kind uint8

// The operations. Their names are those of NCCL's API without "nccl".
const (
	Other Kind = iota // Op.Name has its name
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

// Unknown is the value of an integer field that the log does not state.
const Unknown = -1

// State is how far an operation had come when it was written down.
type State uint8

// The states; the last two are of PyTorch's Flight Recorder.
const (
	Completed State = iota
	Started
	Scheduled
)

// Op is an operation of one rank. Slices point into the line that was read and are valid as long as it is. Init makes an Op in which nothing is known.
type Op struct {
	// The communicator. Comm is its id: "0x…" in small letters without leading zeros for a hash, else text as logged; empty where the format has none.
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
	// Again: the record was held before a restart. Those between it and the next one may have been accepted then, and do not come again.
	Again bool
	// HasSeq says that Seq counts the operations that the ranks do together, so that equal numbers of two ranks are one operation. Never for Send and Recv.
	HasSeq bool
	// SeqOfAll says that Seq counts all collectives of the communicator together, not those of each Kind: PyTorch's collective_seq_id.
	SeqOfAll bool
	// Ordinal says that Seq is not in the log: it is how many operations of this kind the rank's log had before.
	Ordinal bool

	Peer                int32 // of Send and Recv; Unknown
	Source, Destination int32 // ranks, of a record about a transfer between two; Unknown

	// Size is the message size as logged, By. Total is S of algbw = S/t (nccl-tests doc/PERFORMANCE.md): of AllGather, ReduceScatter and AllToAll the bytes of all
	// ranks together. Unknown: not known.
	Size, Total int64

	// Start is Unix ns, 0: unknown; then End is about when the record was written (Time is synthetic), or 0.
	Start, End int64
	Duration   int64 // ns; Unknown. Where Start is known, End = Start + Duration
	Time       spans.TimeSource
	// Waits says that Duration includes waiting for the other ranks to arrive, as the duration of a kernel does.
	Waits bool

	Timing                        []byte // Inspector: kernel_gpu, kernel_cpu, collective_cpu, …
	Algorithm, Protocol, Datatype []byte
	Channel, Channels             int32 // Unknown; 0: unknown
	Stream                        int64 // Unknown

	// As logged, in By/s; NaN: not there. ReportedUnit is the log's unit: GB/s or Gbit/s.
	ReportedAlg, ReportedBus float64
	ReportedUnit             string

	Errors, Retries int64
	State           State
	TimedOut        bool // the log itself says that it waited too long

	// Of VCCL's rows, one per send: how many, and their sliding bandwidth, By/s. 0 sends: the record is no such row.
	Sends                             int64
	LinkBandwidth, LinkBandwidthWorst float64

	Details []Detail

	// IDs are the ids of its trace that the record carries; nil: none.
	IDs *logids.IDs

	// Proxy says that this is an operation of a network proxy for a rank. Its collective, where it is known, is the one with ParentKind and ParentSeq in the
	// communicator.
	Proxy      bool
	HasParent  bool
	ParentKind Kind
	ParentSeq  uint64
}

// Detail is a part of an operation: the part of one channel or one proxy.
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
	// Under is the index in Op.Details of the detail that this is a part of; Unknown: of the operation itself.
	Under int32
}

// Init makes an operation of which nothing is known. It keeps the room for details.
func (o *Op) Init() {
	*o = Op{
		Rank: Unknown, Peer: Unknown, Source: Unknown, Destination: Unknown, Size: Unknown, Total: Unknown, Duration: Unknown, Channel: Unknown, Stream: Unknown,
		ReportedAlg: math.NaN(), ReportedBus: math.NaN(), Details: o.Details[:0],
	}
}

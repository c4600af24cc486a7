package breakdown

import "github.com/trainbridge/trainbridge/spans"

// Kind is an activity: a part of a step, a batch or a pass.
type Kind uint8

// The kinds, the most specific first, except that RPCReceive and RPCServer change places (levels).
const (
	Checkpoint Kind = iota
	Evaluation
	Wait       // from the first rank's arrival at a collective to the last's
	Collective // the rest of a collective
	RPCSerialize
	RPCSend
	RPCReceive // without the server's time, if known
	RPCServer
	RPCDeserialize
	RPCUnattributed
	Compute
	Get // from TransferQueue
	Put // to TransferQueue
	DataLoading
	Unattributed

	// Kinds is the number of kinds; RPCStages, the number of stages of an RPC pass.
	Kinds     = int(Unattributed) + 1
	RPCStages = int(RPCUnattributed-RPCSerialize) + 1
)

var names = [Kinds]string{
	spans.PartCheckpoint, spans.PartEvaluation, spans.PartWait, spans.PartCollective, spans.PartRPCSerialize, spans.PartRPCSend, spans.PartRPCReceive,
	spans.PartRPCServer, spans.PartRPCDeserialize, spans.PartRPCUnattributed, spans.PartCompute, spans.PartGet, spans.PartPut, spans.PartDataLoading,
	spans.PartUnattributed,
}

var times, sums, unions = attributes(spans.StepTimePrefix), attributes(spans.StepSumPrefix), attributes(spans.StepUnionPrefix)

// attributes returns the attribute names of all kinds with a prefix.
func attributes(prefix string) (keys [Kinds]string) {
	for k, name := range names {
		keys[k] = prefix + name
	}
	return keys
}

// String returns the name of the kind, as in spans.AttrStepPart.
func (k Kind) String() string { return names[k] }

// TimeAttribute returns the name of the attribute for Breakdown.Time of the kind.
func (k Kind) TimeAttribute() string { return times[k] }

// SumAttribute returns the name of the attribute for Breakdown.Sum of the kind.
func (k Kind) SumAttribute() string { return sums[k] }

// UnionAttribute returns the name of the attribute for Breakdown.Union of the kind.
func (k Kind) UnionAttribute() string { return unions[k] }

// rpc reports whether the kind is a stage of an RPC, or the unattributed time of one.
func (k Kind) rpc() bool { return RPCSerialize <= k && k <= RPCUnattributed }

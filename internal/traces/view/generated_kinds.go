// Code generated from spans/registry by tools/semconv. DO NOT EDIT.

package view

import "github.com/trainbridge/trainbridge/spans"

// The kinds. Spans that are none of ours, such as a service's own spans, are KindOther.
const (
	KindOther Kind = iota

	KindRun        // A whole run.
	KindAggregate  // Many spans of one name.
	KindCollective // A collective, or a Send or Recv.
	KindRank       // What one rank did in a collective.
	KindPhase      // When a rank was late, waited or transferred.
	KindChannel    // A channel of a rank's kernel.
	KindProxyOp    // What a network proxy did.
	KindProxyStep  // A step of a network proxy's operation.
	KindEvent      // A line of a log about the end of a run.
	KindRoot       // The root of a trace that several logs have written to.
	KindJoined     // A copy of a span of another trace, with a link to the original.
	KindBreakdown  // Where the time of a step, a batch or a pass went.
	KindPass       // A group of calls: one forward pass.
	KindSession    // A group of calls: those before the first pass.
	KindCalls      // A group of calls: those that belong to no pass.
	KindCall       // A call.
	KindCallPart   // What a call spent its time on.
	KindRPCSummary // What a log of calls says about itself at its end.
	KindFunction   // A TransferQueue function.
	KindStage      // A stage of a function, or a client operation.
	KindStep       // A training step.
	KindPart       // A named part of a step.
	KindPartRank   // What a part of a step took on one rank.
	KindRanks      // A report about ranks.
	KindEvaluation // A validation result.
	KindSummary    // What a job says about itself at its end.
	kinds
)

// names are the values of spans.AttrKind.
var names = [kinds]string{
	KindRun:        spans.KindRun,
	KindAggregate:  spans.KindAggregate,
	KindCollective: spans.KindCollective,
	KindRank:       spans.KindRank,
	KindPhase:      spans.KindPhase,
	KindChannel:    spans.KindChannel,
	KindProxyOp:    spans.KindProxyOp,
	KindProxyStep:  spans.KindProxyStep,
	KindEvent:      spans.KindEvent,
	KindRoot:       spans.KindRoot,
	KindJoined:     spans.KindJoined,
	KindBreakdown:  spans.KindBreakdown,
	KindPass:       spans.KindPass,
	KindSession:    spans.KindSession,
	KindCalls:      spans.KindCalls,
	KindCall:       spans.KindCall,
	KindCallPart:   spans.KindCallPart,
	KindRPCSummary: spans.KindRPCSummary,
	KindFunction:   spans.KindFunction,
	KindStage:      spans.KindStage,
	KindStep:       spans.KindStep,
	KindPart:       spans.KindPart,
	KindPartRank:   spans.KindPartRank,
	KindRanks:      spans.KindRanks,
	KindEvaluation: spans.KindEvaluation,
	KindSummary:    spans.KindSummary,
}

package view

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Kind says what a span stands for.
type Kind uint8

// String is the value of spans.AttrKind, empty for KindOther.
func (k Kind) String() string {
	if k >= kinds {
		return ""
	}
	return names[k]
}

// IsGroup says whether the kind is a group of calls.
func (k Kind) IsGroup() bool { return k == KindPass || k == KindSession || k == KindCalls }

// byText finds the kind of a name with one comparison: a switch over all names makes five, for each span that is read.
var byText = func() (table [256]Kind) {
	for k := KindOther + 1; k < kinds; k++ {
		at := slotOf(names[k])
		if table[at] != KindOther {
			panic("view: " + names[k] + " and " + names[table[at]] + " take one place: change the factor in slotOf")
		}
		table[at] = k
	}
	return table
}()

// slotOf is another number for each name. There is far more room than names, so that a new name mostly finds a free one.
func slotOf(name string) uint8 {
	if name == "" {
		return 0
	}
	return uint8(len(name)) + name[0] + 36*name[len(name)-1]
}

func kindNamed(name string) Kind {
	if k := byText[slotOf(name)]; names[k] == name {
		return k
	}
	return KindOther
}

// KindOf says what a span stands for: the kind that its writer says in the first attribute, else the kind that it looks like.
func KindOf(span ptrace.Span) Kind {
	for name, v := range span.Attributes().All() {
		if name != spans.AttrKind {
			break
		}
		if k := kindNamed(v.Str()); k != KindOther {
			return k
		}
	}
	return recognise(span)
}

// IsDetail says whether a span is below a call or below the root of a collective, by its name. A call has five of them and a collective thousands, and what
// they say together stands on the call or on the root: who needs no more than that tells them apart without touching their attributes.
func IsDetail(span ptrace.Span) bool {
	name := span.Name()
	if strings.HasPrefix(name, "rpc.") {
		// A call may have any method for its name. It has attributes, which are beside the name in memory; the kind is not.
		return ofRPC(name) == KindCallPart && (span.Attributes().Len() == 0 || span.Kind() != ptrace.SpanKindClient)
	}
	return spans.IsNCCLPart(name)
}

// recognise finds the kind of a span whose first attribute is not spans.AttrKind: its name says it, it is from another writer, from before the attribute was
// there, or from a store that puts attributes in another order. Names that only we use tell the kind; for other names the attributes that their
// kind always has must be there.
func recognise(span ptrace.Span) Kind {
	k := byName(span)
	if is, ok := span.Attributes().Get(spans.AttrKind); ok {
		if named := kindNamed(spans.ValueText(is)); named != KindOther { // a copy has the name of its original in another trace
			return named
		}
	}
	switch k {
	case KindStep, KindRanks, KindPass, KindSession, KindCalls, KindRPCSummary, KindEvent:
		return k // whatever else they have
	}
	var (
		collective, tq, function, part, aggregate, zeromq, method, source bool

		client = span.Kind() == ptrace.SpanKindClient
	)
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrNCCLRanks:
			collective = IntOf(v).OK
		case spans.AttrTQStage:
			stage := spans.TQStageOf(v)
			tq, function = stage != spans.TQNone, stage == spans.TQFunction
		case spans.AttrStage:
			part = spans.ValueText(v) != ""
		case spans.AttrAggregateCount:
			aggregate = true
		case spans.AttrRPCSystem:
			zeromq = spans.ValueText(v) == spans.RPCSystemZeroMQ
		case spans.AttrRPCMethod:
			method = spans.ValueText(v) != ""
		case spans.AttrSource:
			source = true
		}
	}
	ours := k != KindOther && k != KindEvaluation && k != KindRun && k != KindSummary // a function or an operation may have any other name
	switch {
	case ours && aggregate:
		return KindAggregate
	case k == KindRank && source: // "rank 3" is also the name for the time of a part of a step on a rank
		return KindPartRank
	case ours:
		return k
	case collective:
		return KindCollective
	case function:
		return KindFunction
	case tq:
		return KindStage
	case part:
		return KindPart
	case aggregate:
		return KindAggregate
	case client && zeromq, method && span.Kind() != ptrace.SpanKindServer:
		return KindCall
	}
	return k
}

// byName is the kind of a span whose name only we use. A call may have any method for its name.
func byName(span ptrace.Span) Kind {
	switch name := span.Name(); name {
	case spans.SpanStep:
		return KindStep
	case spans.SpanRanks:
		return KindRanks
	case spans.SpanEvaluation:
		return KindEvaluation
	case spans.SpanRun:
		return KindRun
	case spans.SpanSummary:
		return KindSummary
	case spans.SpanNCCLLate, spans.SpanNCCLWait, spans.SpanNCCLTransfer:
		return KindPhase
	case spans.SpanNCCLChannel:
		return KindChannel
	case spans.SpanNCCLProxyOp:
		return KindProxyOp
	case spans.SpanNCCLProxyStep:
		return KindProxyStep
	default:
		if spans.IsNCCLRank(name) {
			return KindRank
		}
		if !strings.HasPrefix(name, "rpc.") || span.Kind() == ptrace.SpanKindClient {
			return KindOther
		}
		return ofRPC(name)
	}
}

func ofRPC(name string) Kind {
	switch name {
	case spans.SpanRPCPass:
		return KindPass
	case spans.SpanRPCSession:
		return KindSession
	case spans.SpanRPCCalls:
		return KindCalls
	case spans.SpanRPCSummary:
		return KindRPCSummary
	case spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCDeserialize, spans.SpanRPCServer, spans.SpanRPCUnattributed,
		spans.SpanRPCOffline:
		return KindCallPart
	}
	return KindOther
}

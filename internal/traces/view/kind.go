package view

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Kind is the meaning of a span.
type Kind uint8

// String returns the value of spans.AttrKind, empty for KindOther.
func (k Kind) String() string {
	if k >= kinds {
		return ""
	}
	return names[k]
}

// IsGroup reports whether the kind is a group of calls.
func (k Kind) IsGroup() bool { return k == KindPass || k == KindSession || k == KindCalls }

// byText finds the kind of a name with a single comparison: a switch over all names makes five, for each span read.
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

// slotOf returns a hash of a name; the factor 36 keeps all names apart. The table has far more room than names: a new name mostly finds a free slot.
func slotOf(name string) uint8 {
	if name == "" {
		return 0
	}
	return uint8(len(name)) + name[0] + 36*name[len(name)-1]
}

// kindNamed returns the kind of a name, KindOther for an unknown name.
func kindNamed(name string) Kind {
	if k := byText[slotOf(name)]; names[k] == name {
		return k
	}
	return KindOther
}

// KindOf returns the kind of a span: its writer's, in the first attribute, else the recognised one.
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

// IsDetail reports, by the name, whether a span is below a call or below the root of a collective. A call has five details and a collective thousands, summed
// up on the call or on the root: callers content with the sums skip details without reading attributes.
func IsDetail(span ptrace.Span) bool {
	name := span.Name()
	if strings.HasPrefix(name, "rpc.") {
		// The name of a call may be any method. Calls have attributes, stored beside the name in memory, unlike the kind.
		return ofRPC(name) == KindCallPart && (span.Attributes().Len() == 0 || span.Kind() != ptrace.SpanKindClient)
	}
	return spans.IsNCCLPart(name)
}

// recognise finds the kind of a span whose first attribute is not spans.AttrKind, or names no kind known here: the name implies the kind, or the span is of a
// foreign writer, older than the attribute, or from a store with another order of attributes. Names of ours alone imply the kind; for other names the
// attributes mandatory for the kind must be present.
func recognise(span ptrace.Span) Kind {
	k := byName(span)
	// The attribute at another place than the first.
	if is, ok := span.Attributes().Get(spans.AttrKind); ok {
		if named := kindNamed(spans.ValueText(is)); named != KindOther { // a copy in another trace has the name of its original
			return named
		}
	}
	switch k {
	case KindStep, KindRanks, KindPass, KindSession, KindCalls, KindRPCSummary, KindEvent:
		return k // whatever the rest
	}
	// Which attributes are present: each is mandatory for a kind.
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
	// The names "evaluation", "run" and "summary" may be a function's or an operation's: then the attributes decide.
	ours := k != KindOther && k != KindEvaluation && k != KindRun && k != KindSummary
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

// byName returns the kind of a span with a name of ours, else KindOther. A call may have any method's name, so a CLIENT span named "rpc.…" is none of ours by
// its name.
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

// ofRPC returns the kind of a span with a name of ours that begins with "rpc.".
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

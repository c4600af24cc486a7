package view

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// benchSpans are spans as the receivers write and train_perf extends them.
func benchSpans(b *testing.B) map[Kind]ptrace.Span {
	b.Helper()
	of := func(kind Kind, name string, attrs ...attr) ptrace.Span {
		return spanOf(b, name, internal, append([]attr{{spans.AttrKind, kind.String()}, {spans.AttrTimeSource, "logged"}}, attrs...)...)
	}
	return map[Kind]ptrace.Span{
		KindFunction: of(KindFunction, "rollout", attr{spans.AttrTQFunction, "rollout"}, attr{spans.AttrTQStage, "function"}, attr{spans.AttrTQTraceID, "a1b2"},
			attr{spans.AttrProcessPID, 7}, attr{spans.AttrTQBatchSize, 32}, attr{spans.AttrTQGetUtilizationReported, 0.05},
			attr{spans.AttrTQComputeUtilizationReported, 0.9}, attr{spans.AttrTQPutUtilizationReported, 0.05}, attr{spans.AttrTQGetUtilization, 0.05},
			attr{spans.AttrTQComputeUtilization, 0.9}, attr{spans.AttrTQPutUtilization, 0.05}, attr{spans.AttrTQOverheadUtilization, 0.1},
			attr{spans.AttrTQUnattributedUtilization, 0.0}, attr{spans.AttrTQUtilizationDisagreement, 0.0001}),
		KindStage: of(KindStage, "tq.get", attr{spans.AttrTQStage, "get"}, attr{spans.AttrTQFunction, "rollout"}),
		KindStep: of(KindStep, spans.SpanStep, attr{spans.AttrSource, "verl"}, attr{spans.AttrIteration, 7}, attr{spans.AttrStepDuration, 12.5},
			attr{spans.AttrLoss, 2.5}, attr{spans.AttrLearningRate, 1e-4}, attr{spans.AttrGradientNorm, 0.5}, attr{spans.AttrDeviceFlopThroughputReported, 4e14},
			attr{spans.AttrSamples, 1024}, attr{spans.AttrTokens, 4194304}, attr{spans.AttrFlopCount, 1e18}, attr{spans.AttrFlopThroughput, 3.2e15},
			attr{spans.AttrDeviceFlopThroughput, 4e14}, attr{spans.AttrFlopPeak, 989.4e12}, attr{spans.AttrMFU, 0.41}, attr{spans.AttrHFU, 0.41},
			attr{spans.AttrFlopDisagreement, 0.01}),
		KindCall: of(KindCall, "Matmul", attr{spans.AttrRPCSystem, "zeromq"}, attr{spans.AttrRPCMethod, "Matmul"}, attr{spans.AttrNetworkTransport, "unix"},
			attr{spans.AttrZMQCallID, 7}, attr{spans.AttrZMQRequestSize, 8388608}, attr{spans.AttrZMQResponseSize, 25165824}, attr{spans.AttrZMQThroughput, 7.5e9}),
		KindCollective: of(KindCollective, "AllReduce", attr{spans.AttrNCCLRanks, 64}, attr{spans.AttrNCCLOperation, "AllReduce"}, attr{spans.AttrNCCLCommID, "0xabc"},
			attr{spans.AttrNCCLCommName, "DP"}, attr{spans.AttrNCCLCommSize, 64}, attr{spans.AttrNCCLSequence, 7}, attr{spans.AttrNCCLAlgorithm, "RING"},
			attr{spans.AttrNCCLMessageSize, 1 << 28}, attr{spans.AttrNCCLDataSize, 1 << 28}, attr{spans.AttrNCCLDuration, 0.0029},
			attr{spans.AttrNCCLTransferDuration, 0.002}, attr{spans.AttrNCCLBandwidthAlgorithm, 134.2e9}, attr{spans.AttrNCCLBandwidthBus, 264.2e9},
			attr{spans.AttrNCCLLateMax, 0.0009}, attr{spans.AttrNCCLLateRank, 5}, attr{spans.AttrNCCLLateHost, "node-0"}, attr{spans.AttrNCCLLateCost, 0.05},
			attr{spans.AttrNCCLErrors, 0}, attr{spans.AttrNCCLRetries, 0}),
		KindRank: of(KindRank, "rank 3 node-0", attr{spans.AttrNCCLCommRank, 3}, attr{spans.AttrNCCLLate, 0.0001}),
	}
}

func BenchmarkRead(b *testing.B) {
	all := benchSpans(b)
	for kind, v := range map[Kind]any{
		KindFunction: new(Function), KindStage: new(Stage), KindStep: new(Step), KindCall: new(Call), KindCollective: new(Collective), KindRank: new(Rank),
	} {
		span := all[kind]
		b.Run(kind.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read(v, span)
			}
		})
	}
}

func BenchmarkKindOf(b *testing.B) {
	for kind, span := range benchSpans(b) {
		b.Run(kind.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if KindOf(span) != kind {
					b.Fatal(kind)
				}
			}
		})
		span := ptrace.NewSpan()
		all := benchSpans(b)
		all[kind].CopyTo(span)
		span.Attributes().Remove(spans.AttrKind)
		b.Run("recognised "+kind.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				KindOf(span)
			}
		})
	}
}

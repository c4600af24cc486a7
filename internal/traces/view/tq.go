package view

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// shares are the stages of a function that have a share of its time: spans.TQGet, TQCompute and TQPut, which index them.
const shares = 3

// Function is a call of a TransferQueue function. Shares are of the span's time.
type Function struct {
	Head

	Name      string // "" where the span has none
	TraceID   string // as the log has it, where it is not the trace id as a UUID
	Host      string // where it is not the resource's
	BatchSize Int    // samples
	PID       Int    // where it is not the resource's

	Share        [shares]float64
	Overhead     float64         // get + put
	Unattributed float64         // share of the time in no stage
	Reported     [shares]float64 // as FUNCTION_END states them
	Disagreement float64         // the largest |share − reported|
	// Carried says that the span came with shares: who made it has measured them, or a train_perf has.
	Carried bool
}

var noFunction = Function{
	Share: [shares]float64{absent, absent, absent}, Reported: [shares]float64{absent, absent, absent},
	Overhead: absent, Unattributed: absent, Disagreement: absent,
}

// Read reads a span of KindFunction.
func (f *Function) Read(span ptrace.Span) {
	*f = noFunction
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrTQFunction:
			f.Name = spans.ValueText(v)
		case spans.AttrTQTraceID:
			f.TraceID = spans.ValueText(v)
		case spans.AttrHostName:
			f.Host = spans.ValueText(v)
		case spans.AttrTQBatchSize:
			f.BatchSize = IntOf(v)
		case spans.AttrProcessPID:
			f.PID = IntOf(v)
		case spans.AttrTQGetUtilization:
			f.Share[spans.TQGet], f.Carried = spans.ValueNumber(v), true
		case spans.AttrTQComputeUtilization:
			f.Share[spans.TQCompute], f.Carried = spans.ValueNumber(v), true
		case spans.AttrTQPutUtilization:
			f.Share[spans.TQPut], f.Carried = spans.ValueNumber(v), true
		case spans.AttrTQOverheadUtilization:
			f.Overhead, f.Carried = spans.ValueNumber(v), true
		case spans.AttrTQUnattributedUtilization:
			f.Unattributed = spans.ValueNumber(v)
		case spans.AttrTQGetUtilizationReported:
			f.Reported[spans.TQGet] = spans.ValueNumber(v)
		case spans.AttrTQComputeUtilizationReported:
			f.Reported[spans.TQCompute] = spans.ValueNumber(v)
		case spans.AttrTQPutUtilizationReported:
			f.Reported[spans.TQPut] = spans.ValueNumber(v)
		case spans.AttrTQUtilizationDisagreement:
			f.Disagreement = spans.ValueNumber(v)
		default:
			f.take(name, v)
		}
	}
}

// Stage is a stage of a TransferQueue function, or a client operation, alone or within a stage.
type Stage struct {
	Head

	Stage     spans.TQStage // as the span's name says, where it does not say another; TQNone: none that is known
	Function  string        // the function that it is part of
	TraceID   string        // as the log has it, where it is not the trace id as a UUID; only of a stage that stands alone
	BatchSize Int           // samples
	PID       Int           // where it is not the resource's

	Size               float64 // By
	Throughput         float64 // By/s: size by time
	ThroughputReported float64 // By/s, as the log states it
}

var noStage = Stage{Stage: spans.TQNone, Size: absent, Throughput: absent, ThroughputReported: absent}

// Read reads a span of KindStage.
func (s *Stage) Read(span ptrace.Span) {
	*s = noStage
	s.Stage = spans.TQStageNamed(span.Name())
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrTQStage:
			s.Stage = spans.TQStageOf(v)
		case spans.AttrTQFunction:
			s.Function = spans.ValueText(v)
		case spans.AttrTQTraceID:
			s.TraceID = spans.ValueText(v)
		case spans.AttrTQBatchSize:
			s.BatchSize = IntOf(v)
		case spans.AttrProcessPID:
			s.PID = IntOf(v)
		case spans.AttrTQDataSize:
			s.Size = spans.ValueNumber(v)
		case spans.AttrTQThroughput:
			s.Throughput = spans.ValueNumber(v)
		case spans.AttrTQThroughputReported:
			s.ThroughputReported = spans.ValueNumber(v)
		default:
			s.take(name, v)
		}
	}
}

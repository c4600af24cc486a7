package trainperfprocessor

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// tqSpan is what one pass over the attributes of a span finds. Numbers that are not there are NaN.
type tqSpan struct {
	stage              spans.TQStage
	collective         bool // it is none of TransferQueue
	name               string
	incomplete         bool
	done               bool // has a verdict already, or was seen by a train_perf: a retried batch, or one from an agent
	carried            bool // has a share already: who made the span has measured it
	reportedAny        bool // FUNCTION_END was seen, so the total is known
	reported           [childStages]float64
	size               int64 // By
	throughput         float64
	throughputReported float64
	batch, pid         int64  // −1 and 0: not known
	reason             string // why it is incomplete
}

// readTQ passes over the attributes once: a look-up per name would scan them a dozen times. The root of a collective can have any name; what tells it
// is among them too.
func readTQ(attrs pcommon.Map) tqSpan {
	in := tqSpan{
		stage: spans.TQNone, throughput: math.NaN(), throughputReported: math.NaN(), batch: -1,
		reported: [childStages]float64{math.NaN(), math.NaN(), math.NaN()},
	}
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrTQStage:
			in.stage = spans.TQStageOf(v)
		case spans.AttrTQFunction:
			in.name = spans.ValueText(v)
		case spans.AttrIncomplete:
			in.incomplete = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case spans.AttrIncompleteReason:
			in.reason = spans.ValueText(v)
		case spans.AttrTQBatchSize:
			if v.Type() == pcommon.ValueTypeInt {
				in.batch = v.Int()
			}
		case spans.AttrProcessPID:
			if v.Type() == pcommon.ValueTypeInt {
				in.pid = v.Int()
			}
		case spans.AttrVerdict:
			in.done = true
		case spans.AttrTQGetUtilization, spans.AttrTQComputeUtilization, spans.AttrTQPutUtilization, spans.AttrTQOverheadUtilization:
			in.carried = true
		case spans.AttrTQGetUtilizationReported:
			in.report(spans.TQGet, v)
		case spans.AttrTQComputeUtilizationReported:
			in.report(spans.TQCompute, v)
		case spans.AttrTQPutUtilizationReported:
			in.report(spans.TQPut, v)
		case spans.AttrTQThroughput:
			in.throughput = spans.ValueNumber(v)
		case spans.AttrTQThroughputReported:
			in.throughputReported = spans.ValueNumber(v)
		case spans.AttrNCCLRanks:
			if v.Type() == pcommon.ValueTypeInt {
				in.collective = true
				return in
			}
		case spans.AttrTQDataSize:
			if v.Type() == pcommon.ValueTypeInt {
				in.size = v.Int()
			}
		}
	}
	return in
}

func (in *tqSpan) report(st spans.TQStage, v pcommon.Value) {
	in.reported[st] = spans.ValueNumber(v)
	in.reportedAny = in.reportedAny || !math.IsNaN(in.reported[st])
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

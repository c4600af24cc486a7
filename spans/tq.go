package spans

import "go.opentelemetry.io/collector/pdata/pcommon"

// TQStage numbers the values of AttrTQStage. The three stages of a function come first, because they index arrays.
type TQStage uint8

// The stages and client operations of TransferQueue. TQNone is any other text.
const (
	TQGet TQStage = iota
	TQCompute
	TQPut
	TQClientGet
	TQClientPut
	TQClientGetMeta
	TQClientClear
	TQFunction
	TQStages
	TQNone = TQStages
)

var tqStages = [TQStages]string{
	StageGet, StageCompute, StagePut, StageClientGet, StageClientPut, StageClientGetMeta, StageClientClear, StageFunction,
}

// String returns the attribute's text.
func (s TQStage) String() string {
	if s >= TQStages {
		return ""
	}
	return tqStages[s]
}

// TQStageNamed returns the stage or client operation of a span name; TQNone for another name, also a function's, which the log chooses.
func TQStageNamed(span string) TQStage {
	switch span {
	case SpanTQGet:
		return TQGet
	case SpanTQCompute:
		return TQCompute
	case SpanTQPut:
		return TQPut
	case SpanTQClientGet:
		return TQClientGet
	case SpanTQClientPut:
		return TQClientPut
	case SpanTQClientGetMeta:
		return TQClientGetMeta
	case SpanTQClientClear:
		return TQClientClear
	}
	return TQNone
}

// TQStageOf returns the stage in the attribute AttrTQStage, TQNone for another text.
func TQStageOf(v pcommon.Value) TQStage {
	switch ValueText(v) {
	case StageFunction:
		return TQFunction
	case StageGet:
		return TQGet
	case StageCompute:
		return TQCompute
	case StagePut:
		return TQPut
	case StageClientGet:
		return TQClientGet
	case StageClientPut:
		return TQClientPut
	case StageClientGetMeta:
		return TQClientGetMeta
	case StageClientClear:
		return TQClientClear
	}
	return TQNone
}

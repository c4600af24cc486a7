package step

import (
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// fieldInfo is the attribute and the gauge of a field.
type fieldInfo struct {
	name    string        // of the attribute, and of the gauge
	gauge   *spans.Metric // nil: the field is an attribute only
	integer bool
	stated  int // number in spans.Stated, from 1; 0: none
}

// gaugeOf returns a field with an attribute and a gauge of the same name.
func gaugeOf(name string) fieldInfo {
	m := spans.MetricNamed(name)
	return fieldInfo{name: name, gauge: &m}
}

// stated returns f as a field that a log repeats in each record, and that goes to the resource: number is its number in spans.Stated.
func stated(number int, f fieldInfo) fieldInfo {
	f.stated = number + 1
	return f
}

// whole returns f as an integer field.
func whole(f fieldInfo) fieldInfo {
	f.integer = true
	return f
}

var fieldInfos = [record.NumFields]fieldInfo{
	record.Iteration:             whole(gaugeOf(spans.AttrIteration)),
	record.Iterations:            stated(spans.StatedIterations, fieldInfo{name: spans.AttrIterations, integer: true}),
	record.Epoch:                 {name: spans.AttrEpoch},
	record.Duration:              {name: spans.AttrStepDuration},
	record.WorldSize:             stated(spans.StatedWorldSize, fieldInfo{name: spans.AttrWorldSize, integer: true}),
	record.LocalRank:             {name: spans.AttrLocalRank, integer: true},
	record.Loss:                  gaugeOf(spans.AttrLoss),
	record.LearningRate:          gaugeOf(spans.AttrLearningRate),
	record.GradientNorm:          gaugeOf(spans.AttrGradientNorm),
	record.GradientZeros:         {name: spans.AttrGradientZeros},
	record.ParamsNorm:            gaugeOf(spans.AttrParamsNorm),
	record.LossScale:             stated(spans.StatedLossScale, gaugeOf(spans.AttrLossScale)),
	record.ValidationLoss:        gaugeOf(spans.AttrValidationLoss),
	record.Perplexity:            gaugeOf(spans.AttrPerplexity),
	record.BatchSize:             stated(spans.StatedBatchSize, fieldInfo{name: spans.AttrBatchSize, integer: true}),
	record.ConsumedSamples:       {name: spans.AttrConsumedSamples, integer: true},
	record.ConsumedTokens:        {name: spans.AttrConsumedTokens},
	record.Tokens:                {name: spans.AttrTokens, integer: true},
	record.SkippedIterations:     stated(spans.StatedSkippedIterations, whole(gaugeOf(spans.AttrSkippedIterations))),
	record.NaNIterations:         stated(spans.StatedNaNIterations, whole(gaugeOf(spans.AttrNaNIterations))),
	record.SampleThroughput:      gaugeOf(spans.AttrSampleThroughput),
	record.TokenThroughput:       gaugeOf(spans.AttrTokenThroughput),
	record.DeviceTokenThroughput: gaugeOf(spans.AttrDeviceTokenThroughput),
	record.FlopThroughput:        gaugeOf(spans.AttrFlopThroughputReported),
	record.DeviceFlopThroughput:  gaugeOf(spans.AttrDeviceFlopThroughputReported),
	record.MFU:                   gaugeOf(spans.AttrMFUReported),
	record.FlopCount:             gaugeOf(spans.AttrFlopCountReported),
	record.FlopForward:           gaugeOf(spans.AttrFlopCountForward),
	record.FlopBackward:          gaugeOf(spans.AttrFlopCountBackward),
	record.FlopOptimizer:         gaugeOf(spans.AttrFlopCountOptimizer),
	record.MemoryUsage:           gaugeOf(spans.AttrMemoryUsage),
	record.MemoryPeak:            gaugeOf(spans.AttrMemoryPeak),
	record.MemoryReserved:        gaugeOf(spans.AttrMemoryReserved),
	record.MemoryReservedPeak:    gaugeOf(spans.AttrMemoryReservedPeak),
	record.MemoryUtilization:     gaugeOf(spans.AttrMemoryUtilization),
	record.DeviceEnergy:          gaugeOf(spans.AttrDeviceEnergy),
	record.DevicePower:           gaugeOf(spans.AttrDevicePower),
}

// FieldNamed returns the field with an attribute or gauge of this name; false: none.
func FieldNamed(name string) (record.Field, bool) {
	for f := range record.NumFields {
		if fieldInfos[f].name == name {
			return f, true
		}
	}
	return 0, false
}

package step

import (
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// fieldInfo says where a field goes.
type fieldInfo struct {
	name        string // of the attribute, and of the gauge
	unit        string // of the gauge; empty: the field is an attribute only
	description string
	integer     bool
}

var fieldInfos = [record.NumFields]fieldInfo{
	record.Iteration:             {name: spans.AttrIteration, integer: true, unit: spans.UnitIteration, description: "The iteration that was logged last."},
	record.Iterations:            {name: spans.AttrIterations, integer: true},
	record.Epoch:                 {name: spans.AttrEpoch},
	record.Duration:              {name: spans.AttrStepDuration},
	record.WorldSize:             {name: spans.AttrWorldSize, integer: true},
	record.LocalRank:             {name: spans.AttrLocalRank, integer: true},
	record.Loss:                  {name: spans.AttrLoss, unit: spans.UnitLoss, description: "Training loss."},
	record.LearningRate:          {name: spans.AttrLearningRate, unit: spans.UnitLearningRate, description: "Learning rate."},
	record.GradientNorm:          {name: spans.AttrGradientNorm, unit: spans.UnitNorm, description: "Norm of the gradient."},
	record.GradientZeros:         {name: spans.AttrGradientZeros},
	record.ParamsNorm:            {name: spans.AttrParamsNorm, unit: spans.UnitNorm, description: "Norm of the parameters."},
	record.LossScale:             {name: spans.AttrLossScale, unit: spans.UnitLossScale, description: "Loss scale of mixed-precision training."},
	record.ValidationLoss:        {name: spans.AttrValidationLoss, unit: spans.UnitLoss, description: "Validation loss."},
	record.Perplexity:            {name: spans.AttrPerplexity, unit: spans.UnitPerplexity, description: "Validation perplexity."},
	record.BatchSize:             {name: spans.AttrBatchSize, integer: true},
	record.ConsumedSamples:       {name: spans.AttrConsumedSamples, integer: true},
	record.ConsumedTokens:        {name: spans.AttrConsumedTokens},
	record.Tokens:                {name: spans.AttrTokens, integer: true},
	record.SkippedIterations:     {name: spans.AttrSkippedIterations, integer: true, unit: spans.UnitIteration, description: "Skipped iterations, as the log counts them."},
	record.NaNIterations:         {name: spans.AttrNaNIterations, integer: true, unit: spans.UnitIteration, description: "Iterations with a NaN, as the log counts them."},
	record.SampleThroughput:      {name: spans.AttrSampleThroughput, unit: spans.UnitSamplesPerSecond, description: "Samples per second."},
	record.TokenThroughput:       {name: spans.AttrTokenThroughput, unit: spans.UnitTokensPerSecond, description: "Tokens per second, all devices."},
	record.DeviceTokenThroughput: {name: spans.AttrDeviceTokenThroughput, unit: spans.UnitTokensPerSecond, description: "Tokens per second and device."},
	record.FlopThroughput:        {name: spans.AttrFlopThroughputReported, unit: spans.UnitFlopPerSecond, description: "FLOP/s of all devices, as the log states it."},
	record.DeviceFlopThroughput:  {name: spans.AttrDeviceFlopThroughputReported, unit: spans.UnitFlopPerSecond, description: "FLOP/s of one device, as the log states it."},
	record.MFU:                   {name: spans.AttrMFUReported, unit: spans.UnitOne, description: "Model FLOP/s utilization (MFU), as the log states it."},
	record.FlopCount:             {name: spans.AttrFlopCountReported, unit: spans.UnitFlop, description: "FLOPs of one step, all devices, as the log states it."},
	record.FlopForward:           {name: spans.AttrFlopCountForward, unit: spans.UnitFlop, description: "FLOPs of the forward pass of one step, as the log states it."},
	record.FlopBackward:          {name: spans.AttrFlopCountBackward, unit: spans.UnitFlop, description: "FLOPs of the backward pass of one step, as the log states it."},
	record.FlopOptimizer:         {name: spans.AttrFlopCountOptimizer, unit: spans.UnitFlop, description: "FLOPs of the optimizer in one step, as the log states it."},
	record.MemoryUsage:           {name: spans.AttrMemoryUsage, unit: spans.UnitBytes, description: "Device memory allocated on the rank that logs."},
	record.MemoryPeak:            {name: spans.AttrMemoryPeak, unit: spans.UnitBytes, description: "Most device memory allocated so far on the rank that logs."},
	record.MemoryReserved:        {name: spans.AttrMemoryReserved, unit: spans.UnitBytes, description: "Device memory reserved by the allocator on the rank that logs."},
	record.MemoryReservedPeak:    {name: spans.AttrMemoryReservedPeak, unit: spans.UnitBytes, description: "Most device memory reserved so far on the rank that logs."},
	record.MemoryUtilization:     {name: spans.AttrMemoryUtilization, unit: spans.UnitOne, description: "Share of the device memory in use."},
	record.DeviceEnergy:          {name: spans.AttrDeviceEnergy, unit: spans.UnitJoules, description: "Energy of one device in one step."},
	record.DevicePower:           {name: spans.AttrDevicePower, unit: spans.UnitWatts, description: "Power of one device."},
}

// FieldNamed returns the field whose attribute and gauge have a name.
func FieldNamed(name string) (record.Field, bool) {
	for f := range record.NumFields {
		if fieldInfos[f].name == name {
			return f, true
		}
	}
	return 0, false
}

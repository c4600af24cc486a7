package step

import "github.com/trainbridge/trainbridge/spans"

// Field numbers what a record can say.
type Field uint8

// The fields, with their base units.
const (
	Iteration  Field = iota // integer
	Iterations              // planned, integer
	Epoch
	Duration  // s, of one step
	WorldSize // integer
	LocalRank // integer
	Loss
	LearningRate
	GradientNorm
	GradientZeros
	ParamsNorm
	LossScale
	ValidationLoss
	Perplexity
	BatchSize       // samples per step over all data-parallel ranks, integer
	ConsumedSamples // integer
	ConsumedTokens
	SkippedIterations // integer
	NaNIterations     // integer
	SampleThroughput  // {sample}/s
	TokenThroughput   // {token}/s, all devices
	DeviceTokenThroughput
	FlopThroughput // {flop}/s, all devices
	DeviceFlopThroughput
	MFU         // 0..1
	FlopCount   // {flop}, one step, all devices
	FlopForward // of FlopCount
	FlopBackward
	FlopOptimizer
	MemoryUsage // By
	MemoryPeak
	MemoryReserved
	MemoryReservedPeak
	MemoryUtilization // 0..1
	DeviceEnergy      // J per step
	DevicePower       // W
	NumFields
)

type fieldInfo struct {
	name        string // of the attribute, and of the gauge
	unit        string // of the gauge; empty: the field is an attribute only
	description string
	integer     bool
}

var fieldInfos = [NumFields]fieldInfo{
	Iteration:             {name: spans.AttrIteration, integer: true, unit: spans.UnitOne, description: "The iteration that was logged last."},
	Iterations:            {name: spans.AttrIterations, integer: true},
	Epoch:                 {name: spans.AttrEpoch},
	Duration:              {name: spans.AttrStepDuration},
	WorldSize:             {name: spans.AttrWorldSize, integer: true},
	LocalRank:             {name: spans.AttrLocalRank, integer: true},
	Loss:                  {name: spans.AttrLoss, unit: spans.UnitOne, description: "Training loss."},
	LearningRate:          {name: spans.AttrLearningRate, unit: spans.UnitOne, description: "Learning rate."},
	GradientNorm:          {name: spans.AttrGradientNorm, unit: spans.UnitOne, description: "Norm of the gradient."},
	GradientZeros:         {name: spans.AttrGradientZeros},
	ParamsNorm:            {name: spans.AttrParamsNorm, unit: spans.UnitOne, description: "Norm of the parameters."},
	LossScale:             {name: spans.AttrLossScale, unit: spans.UnitOne, description: "Loss scale of mixed-precision training."},
	ValidationLoss:        {name: spans.AttrValidationLoss, unit: spans.UnitOne, description: "Validation loss."},
	Perplexity:            {name: spans.AttrPerplexity, unit: spans.UnitOne, description: "Validation perplexity."},
	BatchSize:             {name: spans.AttrBatchSize, integer: true},
	ConsumedSamples:       {name: spans.AttrConsumedSamples, integer: true},
	ConsumedTokens:        {name: spans.AttrConsumedTokens},
	SkippedIterations:     {name: spans.AttrSkippedIterations, integer: true, unit: spans.UnitOne, description: "Skipped iterations, as the log counts them."},
	NaNIterations:         {name: spans.AttrNaNIterations, integer: true, unit: spans.UnitOne, description: "Iterations with a NaN, as the log counts them."},
	SampleThroughput:      {name: spans.AttrSampleThroughput, unit: spans.UnitSamplesPerSecond, description: "Samples per second."},
	TokenThroughput:       {name: spans.AttrTokenThroughput, unit: spans.UnitTokensPerSecond, description: "Tokens per second, all devices."},
	DeviceTokenThroughput: {name: spans.AttrDeviceTokenThroughput, unit: spans.UnitTokensPerSecond, description: "Tokens per second and device."},
	FlopThroughput:        {name: spans.AttrFlopThroughputReported, unit: spans.UnitFlopPerSecond, description: "FLOP/s of all devices, as the log states it."},
	DeviceFlopThroughput:  {name: spans.AttrDeviceFlopThroughputReported, unit: spans.UnitFlopPerSecond, description: "FLOP/s of one device, as the log states it."},
	MFU:                   {name: spans.AttrMFUReported, unit: spans.UnitOne, description: "Model FLOP/s utilization (MFU), as the log states it."},
	FlopCount:             {name: spans.AttrFlopCountReported},
	FlopForward:           {name: spans.AttrFlopCountForward},
	FlopBackward:          {name: spans.AttrFlopCountBackward},
	FlopOptimizer:         {name: spans.AttrFlopCountOptimizer},
	MemoryUsage:           {name: spans.AttrMemoryUsage, unit: spans.UnitBytes, description: "Device memory allocated on the rank that logs."},
	MemoryPeak:            {name: spans.AttrMemoryPeak, unit: spans.UnitBytes, description: "Most device memory allocated so far on the rank that logs."},
	MemoryReserved:        {name: spans.AttrMemoryReserved, unit: spans.UnitBytes, description: "Device memory reserved by the allocator on the rank that logs."},
	MemoryReservedPeak:    {name: spans.AttrMemoryReservedPeak, unit: spans.UnitBytes, description: "Most device memory reserved so far on the rank that logs."},
	MemoryUtilization:     {name: spans.AttrMemoryUtilization, unit: spans.UnitOne, description: "Share of the device memory in use."},
	DeviceEnergy:          {name: spans.AttrDeviceEnergy, unit: spans.UnitJoules, description: "Energy of one device in one step."},
	DevicePower:           {name: spans.AttrDevicePower, unit: spans.UnitWatts, description: "Power of one device."},
}

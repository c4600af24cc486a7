package record

// Field numbers the values of a record.
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
	Tokens            // of the record's steps, all devices, integer
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

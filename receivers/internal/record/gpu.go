package record

// GPUSample is a value of a GPU at a moment.
type GPUSample struct {
	Metric GPUMetric
	Device uint16  // index on the host, or NoDevice
	Value  float64 // in the unit of the metric
}

// NoDevice is the device of a value without a device number.
const NoDevice = 1<<16 - 1

// GPUMetric is a metric of GPUs as nvml has it, with the label that distinguishes its series.
type GPUMetric uint8

// The metrics, with their units.
const (
	GPUUtilization       GPUMetric = iota // share of the time with a running kernel
	GPUMemoryUsage                        // By
	GPUMemoryUtilization                  // share of the memory in use
	GPUTemperature                        // Cel
	GPUPower                              // W
	GPUEnergy                             // J since the driver was loaded
	GPUClockSM                            // Hz
	GPUClockMemory
	GPUClockGraphics
	GPUPCIeReceive // By/s
	GPUPCIeTransmit
	GPUNVLinkReceive // By/s, over all links
	GPUNVLinkTransmit
	NumGPUMetrics
)

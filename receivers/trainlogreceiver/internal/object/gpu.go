package object

import (
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// gpuNames are the names of W&B's samples with a metric of nvml, after "gpu.N.". wandb/wandb, commit 0397b12288ab2f8fdc9a595874b1ec288a0640d2,
// xpu/src/gpu_nvidia.rs, get_metrics; gpu_amd.rs in the same folder and wandb/sdk/internal/system/assets/gpu.py of 0.16.6 have some of them. "memory" is the
// share of time with memory reads or writes, not a share of the memory's size.
var gpuNames = map[string]Target{
	"gpu":                  {GPU: record.GPUUtilization, Unit: record.Percent},
	"memoryAllocated":      {GPU: record.GPUMemoryUtilization, Unit: record.Percent},
	"memoryAllocatedBytes": {GPU: record.GPUMemoryUsage},
	"temp":                 {GPU: record.GPUTemperature},
	"powerWatts":           {GPU: record.GPUPower},
	"energyJoules":         {GPU: record.GPUEnergy},
	"smClock":              {GPU: record.GPUClockSM, Unit: record.Megahertz},
	"memoryClock":          {GPU: record.GPUClockMemory, Unit: record.Megahertz},
	"graphicsClock":        {GPU: record.GPUClockGraphics, Unit: record.Megahertz},
	"pcieRxBytes":          {GPU: record.GPUPCIeReceive}, // per second
	"pcieTxBytes":          {GPU: record.GPUPCIeTransmit},
	"nvlinkRxBytes":        {GPU: record.GPUNVLinkReceive},
	"nvlinkTxBytes":        {GPU: record.GPUNVLinkTransmit},
}

// sampled returns the target of a GPU's value in W&B's samples of the system: "system.gpu.0.powerWatts", and after "/l:" the label of the writer
// (core/internal/monitor/monitor.go, monitorResource). It returns false for another name.
func sampled(name string) (Target, bool) {
	name, ok := strings.CutPrefix(name, "system.gpu.")
	if !ok {
		return Target{}, false
	}
	name, _, _ = strings.Cut(name, "/l:")
	index, value, _ := strings.Cut(name, ".") // "0", "powerWatts"
	device, err := strconv.ParseUint(index, 10, 16)
	t, ok := gpuNames[value]
	t.action, t.Device = ofGPU, uint16(device)
	return t, ok && err == nil
}

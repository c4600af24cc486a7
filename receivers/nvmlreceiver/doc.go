//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package nvmlreceiver samples NVIDIA GPUs through the driver's management library (NVML), which go-nvml loads when it runs: neither building nor starting
// needs a driver. Metrics have the names of the hardware semantic conventions (hw.*), others begin with trainbridge.gpu.
//
// gpus.go holds the driver and scrapes the devices, device.go reads one, fields.go lists the fields of a device, events.go counts XID errors. All four need cgo
// on Linux; elsewhere idle.go logs one line.
package nvmlreceiver

//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package nvmlreceiver samples NVIDIA GPUs through NVML.
package nvmlreceiver

//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package trainlogreceiver tails the logs of training jobs and turns every record of a step into a span and gauges: JSON lines,
// Hugging Face Trainer, DeepSpeed, Megatron, torchtitan, NeMo, verl and more ([Formats]).
package trainlogreceiver

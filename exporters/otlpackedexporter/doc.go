//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package otlpackedexporter sends OTLP and reports the result: which requests a backend took, how many items it rejected of the requests it took, and whether
// refused data is wrong itself or only came at the wrong time. Receivers that move a file offset when data was accepted need to know. See
// docs/adr/0006-an-exporter-of-our-own.md.
package otlpackedexporter

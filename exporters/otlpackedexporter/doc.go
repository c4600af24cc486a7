//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package otlpackedexporter sends OTLP and reports the result: the requests accepted by a backend, the number of items rejected in them, and whether refused
// data is itself invalid or may be sent later. Receivers that advance a file offset on acceptance need these results. See
// docs/reference/adr/0006-an-exporter-of-our-own.md.
package otlpackedexporter

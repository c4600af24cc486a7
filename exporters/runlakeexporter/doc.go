//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package runlakeexporter is the run_lake exporter: it writes the runs of a gateway into a lake (internal/lake).
//
// Spans are kept on disk until their run is silent, in DIRECTORY/_spans/run=<run>/<writer>: a file for each process of a gateway, all gateways of a lake in one
// place. A run is written from all of its files, each span once. So neither a restart nor another gateway makes a row of a part of a run.
package runlakeexporter
